/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight_posts.c -- posts of single messages and receives by the keeper of
 * the right to post, and of several, in shorter ways, beside single posts on a
 * connection whose right is not kept: each field of a special work request has
 * the same effect on all. The keeper's child of a fork posts nothing.
 */

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

#define DEPTH 16
#define KEPT  1200 /* more posts than a thread needs to keep the right */
#define LANE  64
#define LIMIT 1

enum {
	SHORT, /* of a kept right */
	LONG,
	CHAIN, /* behind a plain work request of the same call */
	WAYS
};

struct posts {
	struct stage s;
	struct rpma_rt_queue *queue; /* with a short lane */
	struct world_pair pairs[WAYS];
	struct rpma_rt_route *routes[WAYS][2]; /* by side */
	struct rpma_sge piece;
};

static void ping(struct posts *p, struct world_pair *pair)
{
	stage_ping(&p->s, pair, 1);
}

static void set_up(struct posts *p)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	enum rpma_rt_side side;
	int i;

	memset(p, 0, sizeof(*p));
	stage_open(&p->s, &cfg);
	p->s.cfg->waiting = RPMA_RT_NO_WAITING;
	p->piece = (struct rpma_sge){.mr = p->s.mr, .offset = 64, .len = 8};
	MUST(rpma_rt_poller_attach(p->s.world.rt, 0));
	for (i = 0; i < WAYS; i++) {
		stage_connect(&p->s, &p->pairs[i]);
		for (side = 0; side < 2; side++)
			MUST(rpma_rt_route_open(
				side == RPMA_RT_SEND_SIDE ? p->pairs[i].active
							  : p->pairs[i].passive,
				side, p->s.pq, &p->routes[i][side]));
	}
	for (i = 0; i < KEPT; i++)
		ping(p, &p->pairs[SHORT]);
	ping(p, &p->pairs[LONG]);
	ping(p, &p->pairs[CHAIN]);
}

static void until_closed(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	int closed = 0;

	while (closed < WAYS) {
		item = world_next(queue);
		closed += item.kind == RPMA_RT_EVENT &&
			  item.opcode == RPMA_RT_EVENT_CLOSED;
	}
}

static void tear_down(struct posts *p)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < WAYS; i++)
		MUST(rpma_rt_conn_close(p->pairs[i].active));
	until_closed(p->s.aq);
	until_closed(p->s.pq);
	/* ROUTE_CLOSED of active ends */
	while (rpma_rt_queue_poll(p->s.pq, &item, 1) == 1)
		CHECK(item.kind == RPMA_RT_EVENT);
	for (i = 0; i < WAYS; i++)
		world_unref(&p->pairs[i]);
	stage_close(&p->s);
}

/* What a call and its work request came to. */
struct outcome {
	int ret;
	enum rpma_rt_again reason;
	struct rpma_rt_completion send;
	struct rpma_rt_completion recv;
	bool has_send;
	bool send_at_pq; /* the completion of the send */
};

/* Takes the completions of a posted message: of the receive, and of the send
 * unless the send is silent. */
static void note(struct posts *p, bool is_silent, struct outcome *o)
{
	struct rpma_rt_completion item;
	bool has_recv = false;
	bool at_pq;

	while (!has_recv || (!is_silent && !o->has_send)) {
		at_pq = true;
		if (rpma_rt_queue_wait(p->s.pq, &item, 1, 0) == 0) {
			at_pq = false;
			if (rpma_rt_queue_wait(p->s.aq, &item, 1, 0) == 0)
				continue;
		}
		if (item.opcode & IBV_WC_RECV) {
			o->recv = item;
			has_recv = true;
			continue;
		}
		CHECK(!o->has_send && !is_silent);
		o->has_send = true;
		o->send_at_pq = at_pq;
		o->send = item;
	}
}

static void compare_to(struct outcome *o, const struct outcome *other)
{
	CHECK(o->ret == other->ret);
	CHECK(o->reason == other->reason);
	CHECK(o->has_send == other->has_send);
	CHECK(o->send_at_pq == other->send_at_pq);
	CHECK(memcmp(&o->send, &other->send, sizeof(o->send)) == 0);
	CHECK(memcmp(&o->recv, &other->recv, sizeof(o->recv)) == 0);
}

static void compare(struct outcome *o)
{
	int i;

	for (i = 0; i < WAYS; i++)
		o[i].send.qp_num = o[i].recv.qp_num = 0;
	compare_to(&o[LONG], &o[SHORT]);
	compare_to(&o[LONG], &o[CHAIN]);
}

/* A silent message, which finds the next receive, with the context. */
static void send_silent(struct posts *p, int way, uint64_t context)
{
	MUST(rpma_rt_send(p->pairs[way].active, p->s.mr, 64, 8,
			  RPMA_F_COMPLETION_ON_ERROR, 0));
	stage_completion(p->s.pq, context, IBV_WC_SUCCESS);
}

/* --------------------------------------------------------------- sends --- */

enum send_kind {
	SEND_PLAIN,
	SEND_SILENT,
	SEND_FLAGS_0,
	SEND_HALF_OF_ALWAYS,
	SEND_UNKNOWN_FLAG,
	SEND_INLINE,
	SEND_SOLICITED,
	SEND_LINKED,
	SEND_RESERVED,
	SEND_CONTEXT,
	SEND_FUTURE,
	SEND_PIECES,
	SEND_NO_PIECES,
	SEND_NO_REGION,
	SEND_ROUTE,
	SEND_FOREIGN_ROUTE,
	SEND_IMM,
	SEND_UNKNOWN_OP,
	SEND_REMOTE,
	SEND_KINDS
};

static const bool send_is_valid[SEND_KINDS] = {
	[SEND_PLAIN] = true,	 [SEND_SILENT] = true, [SEND_FLAGS_0] = true,
	[SEND_SOLICITED] = true, [SEND_INLINE] = true, [SEND_PIECES] = true,
	[SEND_ROUTE] = true,	 [SEND_IMM] = true,    [SEND_REMOTE] = true,
};

static void make_send(struct posts *p, int way, enum send_kind kind,
		      struct rpma_rt_wr *wr, struct rpma_rt_future *future)
{
	rpma_rt_prep_send(wr, p->s.mr, 64, 8, RPMA_F_COMPLETION_ALWAYS, 7);
	switch (kind) {
	case SEND_SILENT:
		wr->flags = RPMA_F_COMPLETION_ON_ERROR;
		break;
	case SEND_FLAGS_0:
		wr->flags = 0;
		break;
	case SEND_HALF_OF_ALWAYS:
		wr->flags =
			RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR;
		break;
	case SEND_UNKNOWN_FLAG:
		wr->flags |= 1u << 20;
		break;
	case SEND_INLINE:
		wr->flags |= RPMA_RT_F_INLINE;
		break;
	case SEND_SOLICITED:
		wr->flags |= RPMA_RT_F_SOLICITED;
		break;
	case SEND_LINKED:
		wr->flags |= RPMA_RT_F_LINKED;
		break;
	case SEND_RESERVED:
		wr->reserved32 = 1;
		break;
	case SEND_CONTEXT:
		wr->context = UINT64_C(1) << 48;
		break;
	case SEND_FUTURE:
		wr->future = future;
		break;
	case SEND_PIECES:
		rpma_rt_wr_set_pieces(wr, &p->piece, 1);
		break;
	case SEND_NO_PIECES:
		rpma_rt_wr_set_pieces(wr, NULL, 1);
		break;
	case SEND_NO_REGION:
		wr->local = NULL;
		break;
	case SEND_ROUTE:
		wr->route = p->routes[way][RPMA_RT_SEND_SIDE];
		break;
	case SEND_FOREIGN_ROUTE:
		wr->route = p->routes[(way + 1) % WAYS][RPMA_RT_SEND_SIDE];
		break;
	case SEND_IMM:
		wr->op = RPMA_RT_OP_SEND_WITH_IMM;
		wr->imm = 5;
		break;
	case SEND_UNKNOWN_OP:
		wr->op = 200;
		break;
	case SEND_REMOTE:
		wr->remote = p->s.remote;
		break;
	default:
		break;
	}
}

/* Posts the work request in a way. The receives of the messages are there: of
 * the plain message in front with the context 2, then with the context 3.
 * Returns 1, or an error: nothing is posted, and the receives are gone. */
static int post_send(struct posts *p, int way, const struct rpma_rt_wr *wr)
{
	struct rpma_rt_wr both[2];
	int count = way == CHAIN ? 2 : 1;
	int ret;

	rpma_rt_prep_send(&both[0], p->s.mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR,
			  0);
	both[1] = *wr;
	if (count == 2)
		MUST(rpma_rt_recv(p->pairs[way].passive, p->s.mr, 0, 8, 2));
	MUST(rpma_rt_recv(p->pairs[way].passive, p->s.mr, 0, 8, 3));
	ret = rpma_rt_post_send(p->pairs[way].active, &both[2 - count], count);
	CHECK(ret == count || ret < 0);
	if (ret < 0) {
		if (count == 2)
			send_silent(p, way, 2);
		send_silent(p, way, 3);
		return ret;
	}
	if (count == 2)
		stage_completion(p->s.pq, 2, IBV_WC_SUCCESS);
	return 1;
}

static void post_send__each_field_ALIKE(struct posts *p)
{
	struct rpma_rt_future future = {{0, 0}};
	struct outcome o[WAYS];
	struct rpma_rt_wr wr;
	enum send_kind kind;
	int way;

	for (kind = 0; kind < SEND_KINDS; kind++) {
		memset(o, 0, sizeof(o));
		for (way = 0; way < WAYS; way++) {
			make_send(p, way, kind, &wr, &future);
			o[way].ret = post_send(p, way, &wr);
			o[way].reason = rpma_rt_again_reason();
			if (o[way].ret == 1)
				note(p, kind == SEND_SILENT, &o[way]);
		}
		compare(o);
		CHECK(o[SHORT].ret == (send_is_valid[kind] ? 1 : RPMA_E_INVAL));
		CHECK(o[SHORT].ret != 1 || kind == SEND_SILENT ||
		      o[SHORT].send.context == 7);
	}
}

/* ------------------------------------------------------------ receives --- */

enum recv_kind {
	RECV_PLAIN,
	RECV_RESERVED,
	RECV_CONTEXT,
	RECV_FUTURE,
	RECV_PIECES,
	RECV_NO_PIECES,
	RECV_NO_REGION,
	RECV_ROUTE,
	RECV_FOREIGN_ROUTE,
	RECV_KINDS
};

static const bool recv_is_valid[RECV_KINDS] = {
	[RECV_PLAIN] = true, [RECV_PIECES] = true, [RECV_ROUTE] = true};

static void make_recv(struct posts *p, int way, enum recv_kind kind,
		      struct rpma_rt_recv_wr *wr, struct rpma_rt_future *future)
{
	rpma_rt_prep_recv(wr, p->s.mr, 0, 8, 4);
	switch (kind) {
	case RECV_RESERVED:
		wr->reserved32 = 1;
		break;
	case RECV_CONTEXT:
		wr->context = UINT64_C(1) << 48;
		break;
	case RECV_FUTURE:
		wr->future = future;
		break;
	case RECV_PIECES:
		rpma_rt_recv_wr_set_pieces(wr, &p->piece, 1);
		break;
	case RECV_NO_PIECES:
		rpma_rt_recv_wr_set_pieces(wr, NULL, 1);
		break;
	case RECV_NO_REGION:
		wr->dst = NULL;
		break;
	case RECV_ROUTE:
		wr->route = p->routes[way][RPMA_RT_RECV_SIDE];
		break;
	case RECV_FOREIGN_ROUTE:
		wr->route = p->routes[(way + 1) % WAYS][RPMA_RT_RECV_SIDE];
		break;
	default:
		break;
	}
}

/* Posts the receive in a way. A plain receive in front has the context 2.
 * Returns 1, or an error: nothing is posted. */
static int post_recv(struct posts *p, int way, const struct rpma_rt_recv_wr *wr)
{
	struct rpma_rt_recv_wr both[2];
	int count = way == CHAIN ? 2 : 1;
	int ret;

	rpma_rt_prep_recv(&both[0], p->s.mr, 0, 8, 2);
	both[1] = *wr;
	ret = rpma_rt_post_recv(p->pairs[way].passive, &both[2 - count], count);
	CHECK(ret == count || ret < 0);
	if (ret == 2)
		send_silent(p, way, 2);
	return ret < 0 ? ret : 1;
}

static void post_recv__each_field_ALIKE(struct posts *p)
{
	struct rpma_rt_future future = {{0, 0}};
	struct rpma_rt_recv_wr wr;
	struct outcome o[WAYS];
	enum recv_kind kind;
	int way;

	for (kind = 0; kind < RECV_KINDS; kind++) {
		memset(o, 0, sizeof(o));
		for (way = 0; way < WAYS; way++) {
			make_recv(p, way, kind, &wr, &future);
			o[way].ret = post_recv(p, way, &wr);
			o[way].reason = rpma_rt_again_reason();
			if (o[way].ret != 1)
				continue;
			MUST(rpma_rt_send(p->pairs[way].active, p->s.mr, 64, 8,
					  RPMA_F_COMPLETION_ON_ERROR, 0));
			note(p, true, &o[way]);
		}
		compare(o);
		CHECK(o[SHORT].ret == (recv_is_valid[kind] ? 1 : RPMA_E_INVAL));
		CHECK(o[SHORT].ret != 1 || o[SHORT].recv.context == 4);
	}
}

/* --------------------------------------------------------- no room now --- */

/* Takes so many completions, and the WRITABLE of a side. */
static void take_all(struct rpma_rt_queue *queue, int completions)
{
	bool is_writable = false;
	struct rpma_rt_completion item;

	while (completions > 0 || !is_writable) {
		item = world_next(queue);
		if (item.kind == RPMA_RT_WRITABLE)
			is_writable = true;
		else
			completions--;
	}
	CHECK(completions == 0);
}

/* A full queue refuses, and each taken work request completes. */
static void post__full_queue_REFUSED(struct posts *p)
{
	struct rpma_rt_conn *from, *to;
	int sends, recvs;
	int way;

	for (way = 0; way < WAYS; way++) {
		from = p->pairs[way].active;
		to = p->pairs[way].passive;
		for (recvs = 0; rpma_rt_recv(to, p->s.mr, 0, 8, 1) == 0;)
			recvs++;
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
		CHECK(recvs == DEPTH);
		for (sends = 0; rpma_rt_send(from, p->s.mr, 64, 8,
					     RPMA_F_COMPLETION_ALWAYS, 1) == 0;)
			sends++;
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
		/* as many as there are receives, at most */
		CHECK(sends > DEPTH / 2 && sends <= DEPTH);
		take_all(p->s.aq, sends);
		take_all(p->s.pq, sends);
		for (; recvs > sends; recvs--) {
			MUST(rpma_rt_send(from, p->s.mr, 64, 8,
					  RPMA_F_COMPLETION_ALWAYS, 2));
			stage_completion(p->s.pq, 1, IBV_WC_SUCCESS);
			stage_completion(p->s.aq, 2, IBV_WC_SUCCESS);
		}
		ping(p, &p->pairs[way]);
	}
}

/* -------------------------------------------------------------- behind --- */

/* Several messages, and a row of leases, are refused as a single message. */
static void refused_behind(const struct stage *s, struct rpma_rt_conn *conn)
{
	struct rpma_rt_pool *pool =
		stage_pool(s, NULL, 2, 64, RPMA_RT_POOL_NO_SENDS);
	const struct rpma_rt_lease *leases[2];
	struct rpma_rt_lease lease;
	struct rpma_rt_wr wrs[2];

	rpma_rt_prep_send(&wrs[0], s->mr, 64, 8, 0, 1);
	wrs[1] = wrs[0];
	MUST_ANSWER(RPMA_E_AGAIN, rpma_rt_post_send(conn, wrs, 2));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG);
	MUST(rpma_rt_pool_take(pool, &lease));
	leases[0] = leases[1] = &lease;
	MUST_ANSWER(RPMA_E_AGAIN, rpma_rt_post_leases(conn, leases, 2, 0, 1));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG);
	MUST(rpma_rt_lease_release(&lease));
	MUST(rpma_rt_pool_delete(&pool));
}

/* Posts to the queue of a slow consumer are refused. */
static void post__consumer_behind_REFUSED(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct rpma_rt_queue_cfg qcfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	struct world_pair pair;
	struct stage s;
	int ret;
	int i;

	stage_open(&s, &cfg);
	qcfg.lane_size = LANE;
	qcfg.backlog_limit = LIMIT;
	MUST(rpma_rt_queue_new(s.world.rt, &qcfg, &queue));
	MUST(rpma_rt_poller_attach(s.world.rt, 0));
	world_connect(&s.world, s.cfg, 0, queue, s.pq, &pair);
	for (i = 0; i < KEPT; i++) {
		MUST(rpma_rt_recv(pair.passive, s.mr, 0, 8, 1));
		MUST(rpma_rt_send(pair.active, s.mr, 64, 8,
				  RPMA_F_COMPLETION_ALWAYS, 1));
		stage_completion(s.pq, 1, IBV_WC_SUCCESS);
		stage_completion(queue, 1, IBV_WC_SUCCESS);
	}
	for (i = 0;; i++) {
		CHECK(i < 2 * LANE);
		MUST(rpma_rt_recv(pair.passive, s.mr, 0, 8, 1));
		ret = rpma_rt_send(pair.active, s.mr, 64, 8,
				   RPMA_F_COMPLETION_ALWAYS, (uint64_t)i);
		if (ret)
			break;
		stage_completion(s.pq, 1, IBV_WC_SUCCESS);
	}
	CHECK(ret == RPMA_E_AGAIN);
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG);
	refused_behind(&s, pair.active);
	while (i-- > 0)
		CHECK(world_next(queue).kind == RPMA_RT_COMPLETION);
	CHECK(world_next(queue).kind == RPMA_RT_WRITABLE);
	MUST(rpma_rt_conn_close(pair.active));
	world_until_closed(queue);
	world_until_closed(s.pq);
	world_unref(&pair);
	MUST(rpma_rt_queue_delete(&queue));
	stage_close(&s);
}

/* ------------------------------------------------------------ no posts --- */

/* Counts and pointers that name no work request. */
static void post__nothing_REFUSED(struct posts *p)
{
	struct rpma_rt_conn *conn = p->pairs[SHORT].active;
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, p->s.mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR, 0);
	CHECK(rpma_rt_post_send(conn, &wr, 0) == 0);
	CHECK(rpma_rt_post_send(conn, NULL, 0) == 0);
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_send(conn, &wr, -1));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_send(conn, NULL, 1));
	MUST_ANSWER(RPMA_E_INVAL, rpma_rt_post_send(NULL, &wr, 1));
	ping(p, &p->pairs[SHORT]);
}

/* The thread keeps the right to post, and has the only poller: its child of a
 * fork does not. */
static void child(struct posts *p)
{
	struct rpma_rt_conn *conn = p->pairs[SHORT].active;
	struct rpma_rt_completion item;

	CHECK(rpma_rt_recv(conn, p->s.mr, 0, 8, 1) == RPMA_RT_E_FORKED);
	CHECK(rpma_rt_send(conn, p->s.mr, 64, 8, RPMA_F_COMPLETION_ON_ERROR,
			   0) == RPMA_RT_E_FORKED);
	CHECK(rpma_rt_queue_wait(p->s.aq, &item, 1, 0) == RPMA_RT_E_FORKED);
	CHECK(rpma_rt_queue_wait(p->s.pq, &item, 1, 0) == RPMA_RT_E_FORKED);
}

static void post__child_of_the_keeper_FORKED(struct posts *p)
{
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		child(p);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ping(p, &p->pairs[SHORT]);
}

int main(void)
{
	struct posts p;

	set_up(&p);
	post_send__each_field_ALIKE(&p);
	post_recv__each_field_ALIKE(&p);
	post__full_queue_REFUSED(&p);
	post__nothing_REFUSED(&p);
	post__child_of_the_keeper_FORKED(&p);
	tear_down(&p);
	post__consumer_behind_REFUSED();
	puts("ok");
	return 0;
}
