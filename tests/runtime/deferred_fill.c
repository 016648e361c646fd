/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * deferred_fill.c -- a consumer that runs its own rounds answers messages whose
 * receives come from a pool. The receives are posted before the answer, in a
 * single group for the messages of several rounds: whenever an answer is
 * posted, the receive queue is full, so a peer with as many messages under way
 * as the queue has receives never waits. Without an answer the queue is full
 * after two idle rounds, after some rounds at most, and before a sleep; where
 * another thread answers, after each round. doc/protocols/pool.md.
 *
 * The test counts the receives in place of the device.
 */

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

#define DEPTH	  16
#define SLOTS	  (8 * DEPTH)
#define SLOT_SIZE 64
/* more than the posts after which the right to post is kept for a thread */
#define LONE	    1024
#define MANY_ROUNDS 16 /* for which a fill may be deferred, see the page */
#define QPS	    1024

enum { PASSIVE, ACTIVE }; /* pollers, of the ends */

struct fills {
	struct stage s;
	struct rpma_rt_pool *pool;
	struct world_pair pair;
	struct rpma_rt_completion items[DEPTH];
	bool refill_answers; /* the next refill */
};

/* what the device got, and what came on the passive end's queue pair */
static struct {
	struct ibv_context_ops real;
	uint32_t posted[QPS]; /* receives, by number of the queue pair */
	uint32_t qp_num;      /* of the passive end */
	uint32_t calls;	      /* that posted receives */
	uint32_t came;	      /* messages that the consumer took */
	uint32_t answers;
	uint32_t least; /* receives that were out when an answer was posted */
} device;

/* The calling thread runs the pollers; one thread at a time does. Posts of the
 * control thread, when a connection ends, are not counted. */
static _Thread_local bool is_counted;

static uint32_t out(void)
{
	return device.posted[device.qp_num % QPS] - device.came;
}

static int count_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad)
{
	int ret = device.real.post_recv(qp, wr, bad);

	CHECK(ret == 0);
	if (!is_counted)
		return 0;
	device.calls += qp->qp_num == device.qp_num;
	for (; wr != NULL; wr = wr->next)
		device.posted[qp->qp_num % QPS]++;
	return 0;
}

static int count_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		      struct ibv_send_wr **bad)
{
	if (is_counted && qp->qp_num == device.qp_num) {
		device.answers++;
		if (out() < device.least)
			device.least = out();
	}
	return device.real.post_send(qp, wr, bad);
}

/* ------------------------------------------------------------- messages --- */

static void say(struct rpma_rt_conn *conn, const struct fills *f)
{
	MUST(rpma_rt_send(conn, f->s.mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, 0));
}

/* Runs rounds of the active end until its queue has an item. */
static struct rpma_rt_completion next_of_active(const struct fills *f)
{
	struct rpma_rt_completion item;
	int got;

	do {
		CHECK(rpma_rt_poller_run(f->s.world.rt, ACTIVE, DEPTH) >= 0);
		got = rpma_rt_queue_poll(f->s.aq, &item, 1);
	} while (got == 0);
	CHECK(got == 1);
	return item;
}

/* Sends messages, and waits until the device has delivered the messages. */
static void ask_of(const struct fills *f, struct rpma_rt_conn *conn, int count)
{
	while (--count > 0)
		say(conn, f);
	MUST(rpma_rt_send(conn, f->s.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, 0));
	CHECK(next_of_active(f).opcode == IBV_WC_SEND);
}

static void ask(const struct fills *f, int count)
{
	ask_of(f, f->pair.active, count);
}

static void answer(const struct fills *f)
{
	say(f->pair.passive, f);
}

static void let_go(const struct rpma_rt_completion *items, int count)
{
	struct rpma_rt_lease lease;
	int i;

	for (i = 0; i < count; i++) {
		CHECK(rpma_rt_completion_lease(&items[i], &lease));
		MUST(rpma_rt_lease_release(&lease));
	}
}

/* Runs a round for the passive end's queue; returns the number of messages. */
static int take_some(struct fills *f, int max)
{
	bool busy;
	int got = rpma_rt_poller_take(f->s.world.rt, PASSIVE, f->s.pq, f->items,
				      max, &busy);

	CHECK(got >= 0);
	device.came += (uint32_t)got;
	let_go(f->items, got);
	return got;
}

/* Takes an even number of messages of the passive end, two in each round: the
 * receive of a single message is posted at once. */
static void take(struct fills *f, int count)
{
	for (; count > 0; count -= 2)
		CHECK(take_some(f, 2) == 2);
}

/* Takes the answers; some wait for room in the send queue. */
static void take_answers(struct fills *f, int count)
{
	int got;

	for (; count > 0; count -= got) {
		CHECK(take_some(f, 1) == 0);
		CHECK(rpma_rt_poller_run(f->s.world.rt, ACTIVE, DEPTH) >= 0);
		got = rpma_rt_queue_poll(f->s.aq, f->items, DEPTH);
		CHECK(got >= 0);
		let_go(f->items, got);
	}
}

static void ping(struct fills *f)
{
	ask(f, 1);
	/* a silent completion may take room in the first round of a thread */
	CHECK(take_some(f, DEPTH) == 1);
	answer(f);
	take_answers(f, 1);
}

/* ---------------------------------------------------------------- scene --- */

/* passive: the configuration of the passive end */
static void open_pair_with(struct fills *f, struct world_pair *pair,
			   const struct rpma_rt_conn_cfg *passive)
{
	struct world *w = &f->s.world;
	struct rpma_rt_listener *listener;
	uint16_t port;

	MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 1, passive, PASSIVE,
			     f->s.pq, NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(w->port, sizeof(w->port), "%u", port);
	pair->active = world_ready(w, f->s.cfg, ACTIVE, f->s.aq);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = world_request(f->s.pq);
	world_accept(pair, f->s.aq, f->s.pq);
	world_unlisten(&listener, f->s.pq);
}

static void open_pair(struct fills *f, struct world_pair *pair)
{
	open_pair_with(f, pair, f->s.cfg);
}

/* Has the right to post sends of a passive end kept for the calling thread. */
static void post_alone(struct fills *f, struct rpma_rt_conn *conn)
{
	bool busy;
	int got;
	int i;

	for (i = 1; i <= LONE; i++) {
		MUST(rpma_rt_write(conn, f->s.remote, 0, f->s.mr, 64, 8,
				   i % 8 ? RPMA_F_COMPLETION_ON_ERROR
					 : RPMA_F_COMPLETION_ALWAYS,
				   0));
		if (i % 8)
			continue;
		do {
			got = rpma_rt_poller_take(f->s.world.rt, PASSIVE,
						  f->s.pq, f->items, 1, &busy);
		} while (got == 0);
		CHECK(got == 1 && f->items[0].opcode == IBV_WC_RDMA_WRITE);
	}
}

static void close_pair(struct fills *f, struct world_pair *pair)
{
	MUST(rpma_rt_conn_close(pair->active));
	world_event(f->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(f->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(pair);
}

/* rq: the size of the receive queues; 0: the library's choice */
static void set_up(struct fills *f, uint32_t rq, uint32_t slots)
{
	const struct stage_cfg cfg = {
		.pollers = 2, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct ibv_context *ibv_ctx;

	memset(f, 0, sizeof(*f));
	memset(&device, 0, sizeof(device));
	stage_open(&f->s, &cfg);
	MUST(rpma_rt_poller_attach(f->s.world.rt, PASSIVE));
	MUST(rpma_rt_poller_attach(f->s.world.rt, ACTIVE));
	f->pool = stage_pool(&f->s, NULL, slots, SLOT_SIZE,
			     RPMA_RT_POOL_NO_SENDS);
	f->s.cfg->pool = f->pool;
	f->s.cfg->rq_size = rq;
	ibv_ctx = f->s.world.ibv_ctx;
	device.real = ibv_ctx->ops;
	device.least = UINT32_MAX;
	ibv_ctx->ops.post_recv = count_recv;
	ibv_ctx->ops.post_send = count_send;
	open_pair(f, &f->pair);
	MUST(rpma_rt_conn_get_qp_num(f->pair.passive, &device.qp_num));
	post_alone(f, f->pair.passive);
	device.calls = 0;
}

static void tear_down(struct fills *f)
{
	close_pair(f, &f->pair);
	f->s.world.ibv_ctx->ops.post_recv = device.real.post_recv;
	f->s.world.ibv_ctx->ops.post_send = device.real.post_send;
	/* BUSY, if a slot were missing */
	MUST(rpma_rt_pool_delete(&f->pool));
	stage_close(&f->s);
}

/* ---------------------------------------------------------------- tests --- */

static void answer__after_rounds_FILLS_ONCE_BEFORE(struct fills *f)
{
	int i;

	for (i = 2; i <= DEPTH; i += 2) {
		device.calls = 0;
		ask(f, i);
		take(f, i);
		answer(f);
		CHECK(device.calls == 1 && out() == DEPTH);
		take_answers(f, 1);
	}
	CHECK(device.least == DEPTH);
}

/* All receives of the queue have messages, which are answered one by one. */
static void answers__of_a_whole_window_FIND_A_FULL_QUEUE(struct fills *f)
{
	int i;
	int k;

	for (i = 0; i < 50; i++) {
		ask(f, DEPTH);
		for (k = 0; k < DEPTH / 4; k++)
			CHECK(take_some(f, 4) == 4);
		CHECK(i > 0 || out() == 0);
		for (k = 0; k < DEPTH; k++)
			answer(f);
		take_answers(f, DEPTH);
	}
	CHECK(device.least == DEPTH);
}

/* By a chain, and by a chain of leases. */
static void answers__as_chains_FIND_A_FULL_QUEUE(struct fills *f)
{
	const struct rpma_rt_lease *rows[2];
	struct rpma_rt_lease leases[2];
	struct rpma_rt_wr wrs[2];
	int i;

	for (i = 0; i < 2; i++)
		rpma_rt_prep_send(&wrs[i], f->s.mr, 0, 8,
				  RPMA_F_COMPLETION_ON_ERROR, 0);
	ask(f, 4);
	take(f, 4);
	CHECK(out() < DEPTH);
	MUST_ANSWER(2, rpma_rt_post_send(f->pair.passive, wrs, 2));
	take_answers(f, 2);
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_pool_take(f->pool, &leases[i]));
		leases[i].len = 8;
		rows[i] = &leases[i];
	}
	ask(f, 4);
	take(f, 4);
	CHECK(out() < DEPTH);
	MUST_ANSWER(2, rpma_rt_post_leases(f->pair.passive, rows, 2,
					   RPMA_F_COMPLETION_ON_ERROR, 0));
	take_answers(f, 2);
	CHECK(rpma_rt_leases_release(rows, 2) == 0);
	CHECK(device.least == DEPTH);
}

static void message__alone_FILLS_AT_ONCE(struct fills *f)
{
	ask(f, 1);
	CHECK(take_some(f, DEPTH) == 1);
	CHECK(device.calls == 1 && out() == DEPTH);
}

static void take__idle_twice_FILLS(struct fills *f)
{
	ask(f, 6);
	take(f, 6);
	/* a turn ends with an idle round, and then posts its answers */
	CHECK(take_some(f, DEPTH) == 0);
	CHECK(out() == DEPTH - 6);
	CHECK(take_some(f, DEPTH) == 0);
	CHECK(device.calls == 1 && out() == DEPTH);
	CHECK(take_some(f, DEPTH) == 0);
	CHECK(device.calls == 1);
}

static void poller__armed_FILLS(struct fills *f)
{
	ask(f, 2);
	take(f, 2);
	CHECK(out() < DEPTH);
	MUST(rpma_rt_poller_arm(f->s.world.rt, PASSIVE));
	CHECK(out() == DEPTH);
}

static void poller__run_FILLS(struct fills *f)
{
	ask(f, 2);
	take(f, 2);
	CHECK(out() < DEPTH);
	CHECK(rpma_rt_poller_run(f->s.world.rt, PASSIVE, DEPTH) >= 0);
	CHECK(out() == DEPTH);
}

/* A consumer that has not answered a batch is not waited for again soon. */
static void take__without_answers_FILLS_EACH_ROUND(struct fills *f)
{
	int i;

	ask(f, 2);
	take(f, 2);
	CHECK(take_some(f, DEPTH) == 0);
	CHECK(take_some(f, DEPTH) == 0);
	for (i = 0; i < 50; i++) {
		ask(f, 2);
		take(f, 2);
		CHECK(out() == DEPTH);
	}
	/* and is again, once the consumer answers */
	for (i = 0; i < 50; i++) {
		ask(f, 2);
		take(f, 2);
		answer(f);
		take_answers(f, 1);
	}
	answer__after_rounds_FILLS_ONCE_BEFORE(f);
}

/* A consumer that is busy with another connection, and answers nothing. */
static void take__busy_FILLS_SOON(struct fills *f)
{
	struct world_pair other;
	int i;

	open_pair(f, &other);
	ask(f, 2);
	take(f, 2);
	for (i = 0; i < MANY_ROUNDS; i++) {
		ask_of(f, other.active, 1);
		CHECK(take_some(f, 1) == 1);
		device.came--; /* is not the connection's */
	}
	CHECK(out() == DEPTH);
	close_pair(f, &other);
}

static void *answer_elsewhere(void *arg)
{
	answer(arg);
	return NULL;
}

static void thread__answers_FILLS_EACH_ROUND(struct fills *f)
{
	pthread_t thread;
	int i;

	/* more than the batches for which no fill is deferred in any case */
	for (i = 0; i < 70; i++) {
		ask(f, 2);
		take(f, 2);
		/* the first answer ends the keeping */
		CHECK(i == 0 || out() == DEPTH);
		CHECK(!pthread_create(&thread, NULL, answer_elsewhere, f));
		CHECK(!pthread_join(thread, NULL));
		take_answers(f, 1);
	}
}

static void on_write(const struct rpma_rt_completion *item, void *arg)
{
	const struct fills *f = arg;

	if (item->kind != RPMA_RT_COMPLETION)
		return;
	answer(f);
	/* the thread is still the poller of the function */
	MUST_ANSWER(RPMA_RT_E_THREAD, rpma_rt_stop(f->s.world.rt));
}

/* Takes messages, whose receives are not posted again yet. */
static void take_unanswered(struct fills *f)
{
	ask(f, 4);
	take(f, 4);
	CHECK(out() < DEPTH);
}

/* A function is called that answers. queue: whose rounds call the function */
static void answer_in_function(struct fills *f, uint32_t poller,
			       struct rpma_rt_queue *queue)
{
	uint32_t answers = device.answers;
	bool busy;

	while (device.answers == answers)
		CHECK(rpma_rt_poller_take(f->s.world.rt, poller, queue,
					  f->items, 1, &busy) == 0);
	CHECK(device.least == DEPTH);
	take_answers(f, 1);
}

/* Posts a write of another connection, which completes as said in wr. */
static void write_beside(const struct fills *f, struct rpma_rt_conn *other,
			 struct rpma_rt_route *route,
			 struct rpma_rt_future *future)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_write(&wr, f->s.remote, 0, f->s.mr, 64, 8,
			   RPMA_F_COMPLETION_ALWAYS, 0);
	wr.route = route;
	wr.future = future;
	MUST(world_post_send(other, &wr));
}

static void callback__answers_FINDS_A_FULL_QUEUE(struct fills *f)
{
	struct rpma_rt_route *route;
	struct world_pair other;

	open_pair(f, &other);
	MUST(rpma_rt_route_open_callback(other.passive, RPMA_RT_SEND_SIDE,
					 on_write, f, &route));
	take_unanswered(f);
	write_beside(f, other.passive, route, NULL);
	answer_in_function(f, PASSIVE, f->s.pq);
	MUST(rpma_rt_route_close(route, NULL));
	close_pair(f, &other);
}

static void callback__of_another_poller_FINDS_A_FULL_QUEUE(struct fills *f)
{
	struct rpma_rt_route *route;

	MUST(rpma_rt_route_open_callback(f->pair.active, RPMA_RT_SEND_SIDE,
					 on_write, f, &route));
	take_unanswered(f);
	write_beside(f, f->pair.active, route, NULL);
	answer_in_function(f, ACTIVE, f->s.aq);
	MUST(rpma_rt_route_close(route, NULL));
}

static void continuation__answers_FINDS_A_FULL_QUEUE(struct fills *f)
{
	struct rpma_rt_future future;
	struct world_pair other;

	f->s.cfg->futures = 1;
	open_pair(f, &other);
	take_unanswered(f);
	write_beside(f, other.passive, NULL, &future);
	MUST(rpma_rt_future_then(&future, on_write, f));
	answer_in_function(f, PASSIVE, f->s.pq);
	MUST_ANSWER(1, rpma_rt_future_drop(&future)); /* the function ran */
	close_pair(f, &other);
}

/* The refill of an SRQ that the program fills. */
static void refill_and_answer(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	struct fills *f = arg;

	while (room-- > 0)
		MUST(rpma_rt_srq_recv(srq, f->s.mr, 128, 8, 0));
	if (f->refill_answers)
		answer(f);
	f->refill_answers = false;
}

static void refill__answers_FINDS_A_FULL_QUEUE(struct fills *f)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	struct rpma_rt_conn_cfg passive = *f->s.cfg;
	struct rpma_rt_srq *srq;
	struct world_pair other;
	uint32_t answers;
	bool busy;

	cfg.poller = PASSIVE;
	cfg.peer = f->s.world.peer;
	cfg.queue = f->s.pq;
	cfg.srq_size = 1;
	cfg.refill = refill_and_answer;
	cfg.refill_arg = f;
	MUST(rpma_rt_srq_new(f->s.world.rt, &cfg, &srq));
	passive.pool = NULL;
	passive.srqs = &srq;
	passive.srq_count = 1;
	open_pair_with(f, &other, &passive);
	take_unanswered(f);
	answers = device.answers;
	f->refill_answers = true;
	ask_of(f, other.active, 1);
	while (device.answers == answers)
		CHECK(rpma_rt_poller_take(f->s.world.rt, PASSIVE, f->s.pq,
					  f->items, DEPTH, &busy) >= 0);
	CHECK(device.least == DEPTH);
	take_answers(f, 1);
	close_pair(f, &other);
	MUST(rpma_rt_srq_delete(&srq));
	/* the receive of the SRQ comes back, unused */
	while (world_next(f->s.pq).opcode != RPMA_RT_EVENT_SRQ_CLOSED)
		;
}

/* A drained connection takes what the peer has sent, but is not filled. */
static void drain__begins_WITH_A_FULL_QUEUE(struct fills *f)
{
	take_unanswered(f);
	MUST(rpma_rt_conn_drain(f->pair.passive, 10000));
	CHECK(out() == DEPTH);
	world_event(f->s.pq, RPMA_RT_EVENT_CLOSED);
	world_event(f->s.aq, RPMA_RT_EVENT_CLOSED);
	world_unref(&f->pair);
	open_pair(f, &f->pair);
}

static void poller__released_FILLS(struct fills *f)
{
	take_unanswered(f);
	MUST(rpma_rt_poller_release(f->s.world.rt, PASSIVE));
	CHECK(out() == DEPTH);
	MUST(rpma_rt_poller_attach(f->s.world.rt, PASSIVE));
}

static void *second_main(void *arg)
{
	struct fills *f = arg;
	int i;

	is_counted = true;
	MUST(rpma_rt_poller_attach(f->s.world.rt, PASSIVE));
	MUST(rpma_rt_poller_attach(f->s.world.rt, ACTIVE));
	for (i = 0; i < 4 * DEPTH; i++)
		ping(f);
	CHECK(out() == DEPTH);
	MUST(rpma_rt_poller_release(f->s.world.rt, PASSIVE));
	MUST(rpma_rt_poller_release(f->s.world.rt, ACTIVE));
	return NULL;
}

/* The rights to post sends and receives are kept for the first thread, when a
 * second thread takes the pollers over. */
static void pollers__of_another_thread_FILL(struct fills *f)
{
	pthread_t second;
	int i;

	for (i = 0; i < LONE; i++)
		ping(f);
	MUST(rpma_rt_poller_release(f->s.world.rt, PASSIVE));
	MUST(rpma_rt_poller_release(f->s.world.rt, ACTIVE));
	CHECK(!pthread_create(&second, NULL, second_main, f));
	CHECK(!pthread_join(second, NULL));
	MUST(rpma_rt_poller_attach(f->s.world.rt, PASSIVE));
	MUST(rpma_rt_poller_attach(f->s.world.rt, ACTIVE));
}

/* Has the right to post sends kept for the calling thread, but not the right to
 * post receives: the dump ends both. */
static void keep_sends_only(struct fills *f)
{
	int null = open("/dev/null", O_WRONLY);

	CHECK(null >= 0);
	MUST(rpma_rt_dump(f->s.world.rt, null, RPMA_RT_DUMP_JSON));
	CHECK(close(null) == 0);
	post_alone(f, f->pair.passive);
}

/* A post of a child is refused, and posts no receives for the parent. */
static void child__posts_LEAVES_THE_DEVICE_ALONE(struct fills *f)
{
	const struct rpma_rt_lease *row[1];
	struct rpma_rt_lease lease;
	uint32_t calls;
	pid_t child;
	int status;

	MUST(rpma_rt_pool_take(f->pool, &lease));
	lease.len = 8;
	row[0] = &lease;
	keep_sends_only(f);
	take_unanswered(f);
	calls = device.calls;
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		MUST_ANSWER(RPMA_RT_E_FORKED,
			    rpma_rt_post_leases(f->pair.passive, row, 1,
						RPMA_F_COMPLETION_ALWAYS, 0));
		CHECK(device.calls == calls);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(device.calls == calls && out() < DEPTH);
	MUST(rpma_rt_lease_release(&lease));
}

/* Messages of a queue that another thread may poll at once. */
static void message__of_another_queue_FILLS_EACH_ROUND(struct fills *f)
{
	struct rpma_rt_queue *former = f->s.pq;
	struct rpma_rt_completion items[2];
	struct rpma_rt_queue *queue;
	struct world_pair other;
	bool busy;
	int i;

	MUST(rpma_rt_queue_new(f->s.world.rt, NULL, &queue));
	f->s.pq = queue;
	open_pair(f, &other);
	MUST(rpma_rt_conn_get_qp_num(other.passive, &device.qp_num));
	device.came = 0;
	post_alone(f, other.passive);
	for (i = 0; i < 10; i++) {
		ask_of(f, other.active, 2);
		MUST(rpma_rt_poller_take(f->s.world.rt, PASSIVE, former,
					 f->items, DEPTH, &busy));
		MUST_ANSWER(2, rpma_rt_queue_poll(queue, items, 2));
		device.came += 2;
		let_go(items, 2);
		CHECK(out() == DEPTH);
		say(other.passive, f);
		take_answers(f, 1);
	}
	close_pair(f, &other);
	f->s.pq = former;
	MUST(rpma_rt_queue_delete(&queue));
}

/* The rounds of the passive end are a consumer's only, and not idle. */
static void
connection__closed_with_a_deferred_fill_GIVES_SLOTS_BACK(struct fills *f)
{
	bool is_closed = false;
	bool busy;
	int got;

	take_unanswered(f);
	MUST(rpma_rt_conn_close(f->pair.passive));
	CHECK(next_of_active(f).opcode == RPMA_RT_EVENT_CLOSED);
	while (!is_closed) {
		got = rpma_rt_poller_take(f->s.world.rt, PASSIVE, f->s.pq,
					  f->items, 1, &busy);
		CHECK(got >= 0);
		is_closed =
			got == 1 && f->items[0].opcode == RPMA_RT_EVENT_CLOSED;
	}
	world_unref(&f->pair);
	open_pair(f, &f->pair);
}

/* A receive queue whose size the library chooses is more than half full. */
static void queue__without_a_set_size_IS_NEVER_LOW(void)
{
	uint32_t least = UINT32_MAX;
	struct fills f;
	int i;

	set_up(&f, 0, SLOTS);
	for (i = 0; i < 4 * DEPTH; i++) {
		ask(&f, 2);
		take(&f, 2);
		if (out() < least)
			least = out();
	}
	CHECK(least > 4 && least < 8); /* the smallest share is 8 */
	tear_down(&f);
}

/* The pool has no slots for a larger share, so the share is always posted. */
static void queue__of_a_short_pool_FILLS_EACH_ROUND(void)
{
	struct fills f;
	int i;

	set_up(&f, 0, DEPTH + DEPTH / 2);
	ask(&f, 4);
	take(&f, 4);
	for (i = 0; i < DEPTH; i++) {
		ask(&f, 2);
		take(&f, 2);
		CHECK(out() == 8);
	}
	tear_down(&f);
}

int main(void)
{
	void (*const tests[])(struct fills *) = {
		answer__after_rounds_FILLS_ONCE_BEFORE,
		answers__of_a_whole_window_FIND_A_FULL_QUEUE,
		answers__as_chains_FIND_A_FULL_QUEUE,
		message__alone_FILLS_AT_ONCE,
		take__idle_twice_FILLS,
		poller__armed_FILLS,
		poller__run_FILLS,
		take__without_answers_FILLS_EACH_ROUND,
		take__busy_FILLS_SOON,
		thread__answers_FILLS_EACH_ROUND,
		callback__answers_FINDS_A_FULL_QUEUE,
		callback__of_another_poller_FINDS_A_FULL_QUEUE,
		continuation__answers_FINDS_A_FULL_QUEUE,
		refill__answers_FINDS_A_FULL_QUEUE,
		drain__begins_WITH_A_FULL_QUEUE,
		message__of_another_queue_FILLS_EACH_ROUND,
		poller__released_FILLS,
		pollers__of_another_thread_FILL,
		child__posts_LEAVES_THE_DEVICE_ALONE,
		connection__closed_with_a_deferred_fill_GIVES_SLOTS_BACK,
	};
	struct fills f;
	size_t i;

	is_counted = true;
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		set_up(&f, DEPTH, SLOTS);
		tests[i](&f);
		tear_down(&f);
	}
	queue__without_a_set_size_IS_NEVER_LOW();
	queue__of_a_short_pool_FILLS_EACH_ROUND();
	return 0;
}
