/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* nth_life.c -- see nth_life.h. Only the thread of the test runs this code. */

#include "nth_life.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define ADDR	    "127.0.0.1"
#define PATIENCE_MS 300000 /* longer is for ever */
#define DEPTH	    4
#define SIZE	    32

/* contexts of work requests */
enum { SENT = 1, WRITTEN = 2, RECEIVED = 3 };

const struct life lives[] = {
	{.name = "closed"},
	{.name = "stopped", .is_stopped = true},
	{.name = "manual", .is_manual = true},
	{.name = "shared", .is_shared = true},
	{.name = "futures", .live = life_of_futures},
	{.name = "shards", .live = life_of_shards},
	{.name = NULL},
};

/* an end of the connection; the user pointer of its items */
struct end {
	struct rpma_rt_conn *conn;
	bool established;
	unsigned owed; /* completions */
};

static struct {
	const struct life *life;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_rt *rt;
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *other; /* where a route leads */
	struct rpma_rt_listener *listener;
	struct rpma_rt_route *route;
	struct rpma_rt_srq *srq;
	unsigned srqs_made;
	unsigned srqs_closed;
	_Atomic unsigned srq_owed; /* receives posted to the SRQ */
	_Atomic int refill_ret;	   /* the first error of the poller's */
	char port[8];
	struct end active;
	struct end passive;
	/* of the route to a function: posted; calls by the poller */
	unsigned fn_owed;
	_Atomic unsigned fn_called;
	_Atomic unsigned fn_closed;
	_Atomic bool fn_succeeded;
	unsigned succeeded; /* bits of contexts */
	int ret;	    /* the first error */
} all;

static char memory[4096];

const char *life_trouble = "nothing fails";

void life_open(void)
{
	struct ibv_context *ibv_ctx;
	char desc[64];
	size_t size;

	MUST(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL,
					&ibv_ctx));
	MUST(rpma_peer_new(ibv_ctx, &all.peer));
	MUST(rpma_mr_reg(all.peer, memory, sizeof(memory), 0xff, &all.mr));
	MUST(rpma_mr_get_descriptor_size(all.mr, &size));
	CHECK(size <= sizeof(desc));
	MUST(rpma_mr_get_descriptor(all.mr, desc));
	MUST(rpma_mr_remote_from_descriptor(desc, size, &all.remote));
}

struct rpma_peer *life_peer(void)
{
	return all.peer;
}

static bool is_done(void)
{
	unsigned succeeded = all.succeeded;

	/* relaxed: read again */
	if (atomic_load_explicit(&all.fn_succeeded, memory_order_relaxed))
		succeeded |= 1u << SENT;
	return succeeded == (1u << SENT | 1u << WRITTEN | 1u << RECEIVED) &&
	       all.passive.established;
}

void life_raise(void)
{
	struct ibv_context *ibv_ctx;

	MUST(rpma_peer_get_ibv_context(all.peer, &ibv_ctx));
	MUST(rpma_loopback_raise(IBV_EVENT_PORT_ERR, ibv_ctx));
}

static void failed(int ret)
{
	if (all.ret == 0)
		all.ret = ret;
}

static bool refill_failed(void)
{
	/* relaxed: read again */
	failed(atomic_load_explicit(&all.refill_ret, memory_order_relaxed));
	return all.ret != 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ------------------------------------------------------------ the steps --- */

static int start(void)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode =
		all.life->is_manual ? RPMA_RT_MODE_MANUAL : RPMA_RT_MODE_EVENT;
	cfg.backstop_ms = 0;
	cfg.cq_size = 64;
	return rpma_rt_new(&cfg, &all.rt);
}

/*
 * Refills, on the poller. Relaxed: counts, ordered by the effects of the posts.
 */
static void refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	uint32_t i;
	int ret = 0;

	(void)arg;
	for (i = 0; i < room && ret == 0; i++) {
		/* relaxed: before the receive can come back */
		atomic_fetch_add_explicit(&all.srq_owed, 1,
					  memory_order_relaxed);
		ret = rpma_rt_srq_recv(srq, all.mr, 0, SIZE, RECEIVED);
		if (ret)
			/* relaxed: the receive was never posted */
			atomic_fetch_sub_explicit(&all.srq_owed, 1,
						  memory_order_relaxed);
	}
	if (ret && ret != RPMA_E_AGAIN && ret != RPMA_RT_E_CLOSED)
		/* relaxed: read again */
		atomic_store_explicit(&all.refill_ret, ret,
				      memory_order_relaxed);
}

static int share(struct rpma_rt_conn_cfg *conn_cfg)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;
	int ret;

	cfg.peer = all.peer;
	cfg.queue = all.other;
	cfg.user = &all.srq;
	cfg.srq_size = 2 * DEPTH;
	cfg.limit = DEPTH;
	cfg.refill = refill;
	ret = rpma_rt_srq_new(all.rt, &cfg, &all.srq);
	if (ret)
		return ret;
	all.srqs_made++;
	conn_cfg->srqs = &all.srq;
	conn_cfg->srq_count = 1;
	return 0;
}

static int listen_and_call(struct rpma_rt_conn_cfg *cfg)
{
	uint16_t port;
	int ret;

	cfg->user = &all.passive;
	ret = rpma_rt_listen(all.rt, ADDR, "0", cfg, &all.listener);
	if (ret)
		return ret;
	MUST(rpma_rt_listener_get_port(all.listener, &port));
	snprintf(all.port, sizeof(all.port), "%u", port);
	cfg->user = &all.active;
	return rpma_rt_conn_new(all.rt, ADDR, all.port, cfg, &all.active.conn);
}

static int begin(void)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	int ret = start();

	if (ret == 0)
		ret = rpma_rt_queue_new(all.rt, NULL, &all.queue);
	if (ret == 0)
		ret = rpma_rt_queue_new(all.rt, NULL, &all.other);
	if (ret)
		return ret;
	cfg.poller = 0;
	cfg.peer = all.peer;
	cfg.queue = all.queue;
	cfg.sq_size = DEPTH;
	cfg.rq_size = DEPTH;
	cfg.backlog = 4;
	if (all.life->is_shared)
		ret = share(&cfg);
	return ret ? ret : listen_and_call(&cfg);
}

static void post_recvs(struct end *end)
{
	int ret;
	int i;

	for (i = 0; i < DEPTH && !all.life->is_shared; i++) {
		ret = rpma_rt_recv(end->conn, all.mr, 0, SIZE, RECEIVED);
		end->owed += ret == 0;
		if (ret && ret != RPMA_RT_E_CLOSED)
			failed(ret);
	}
}

/* On the poller. Relaxed: read by others when CLOSED came, or for a count. */
static void call(const struct rpma_rt_completion *cmpl, void *arg)
{
	CHECK(arg == &all.active);
	if (cmpl->kind == RPMA_RT_EVENT) {
		CHECK(cmpl->opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
		/* relaxed: see above */
		atomic_fetch_add_explicit(&all.fn_closed, 1,
					  memory_order_relaxed);
		return;
	}
	CHECK(cmpl->kind == RPMA_RT_COMPLETION && cmpl->context == SENT);
	/* relaxed: see above */
	atomic_fetch_add_explicit(&all.fn_called, 1, memory_order_relaxed);
	if (cmpl->status == IBV_WC_SUCCESS)
		/* relaxed: see above */
		atomic_store_explicit(&all.fn_succeeded, true,
				      memory_order_relaxed);
}

static int open_route(struct end *end)
{
	return all.life->is_shared
		       ? rpma_rt_route_open_callback(end->conn,
						     RPMA_RT_SEND_SIDE, call,
						     end, &all.route)
		       : rpma_rt_route_open(end->conn, RPMA_RT_SEND_SIDE,
					    all.other, &all.route);
}

/* Sends a message by a separate route, and a write. */
static int use(struct end *end)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = RPMA_F_COMPLETION_ALWAYS,
				.context = SENT,
				.local = all.mr,
				.len = SIZE};
	int ret;

	ret = open_route(end);
	if (ret)
		return ret;
	wr.route = all.route;
	ret = rpma_rt_post_send(end->conn, &wr, 1);
	ret = ret < 0 ? ret : 0;
	*(all.life->is_shared ? &all.fn_owed : &end->owed) += ret == 0;
	if (ret)
		return ret;
	ret = rpma_rt_write(end->conn, all.remote, SIZE, all.mr, 0, SIZE,
			    RPMA_F_COMPLETION_ALWAYS, WRITTEN);
	end->owed += ret == 0;
	return ret;
}

/* ------------------------------------------------------------ the items --- */

static void close_end(struct end *end)
{
	if (end->conn != NULL)
		MUST(rpma_rt_conn_close(end->conn));
}

/* The function has heard everything. */
static void check_function(void)
{
	bool is_open = all.life->is_shared && all.route != NULL;

	/* relaxed: CLOSED came after */
	CHECK(atomic_load_explicit(&all.fn_called, memory_order_relaxed) ==
	      all.fn_owed);
	/* relaxed: likewise */
	CHECK(atomic_load_explicit(&all.fn_closed, memory_order_relaxed) ==
	      is_open);
}

static bool take(struct rpma_rt_queue *queue);

/* The last item: no work request is outstanding; the peer need not notice. */
static void closed(struct end *end, const struct rpma_rt_completion *item)
{
	CHECK((uintptr_t)end->conn == item->context);
	/* completions owed by the route may still lie in the other queue */
	while (take(all.other))
		;
	CHECK(end->owed == 0);
	if (end == &all.active)
		check_function();
	MUST(rpma_rt_conn_unref(&end->conn));
	close_end(&all.active);
	close_end(&all.passive);
}

static void event(struct end *end, const struct rpma_rt_completion *item)
{
	int ret = 0;

	switch (item->opcode) {
	case RPMA_RT_EVENT_REQUEST:
		CHECK(end->conn == NULL);
		end->conn = (struct rpma_rt_conn *)(uintptr_t)item->context;
		post_recvs(end);
		ret = rpma_rt_conn_accept(end->conn, NULL);
		break;
	case RPMA_RT_EVENT_READY:
		post_recvs(end);
		ret = rpma_rt_conn_connect(end->conn, NULL);
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		end->established = true;
		if (end == &all.active)
			ret = use(end);
		break;
	case RPMA_RT_EVENT_ROUTE_CLOSED:
		break;
	case RPMA_RT_EVENT_CLOSED:
		if (!is_done())
			failed(LIFE_CLOSED);
		closed(end, item);
		break;
	}
	/* the end is reported in the queue */
	if (ret == RPMA_RT_E_CLOSED)
		ret = LIFE_CLOSED;
	if (ret)
		failed(ret);
}

/* Counts a receive of the SRQ that has come back. */
static void came_back(const struct rpma_rt_completion *item)
{
	CHECK(item->context == RECEIVED);
	/* relaxed: counted before the post */
	CHECK(atomic_fetch_sub_explicit(&all.srq_owed, 1,
					memory_order_relaxed) > 0);
	if (item->status == IBV_WC_SUCCESS)
		all.succeeded |= 1u << RECEIVED;
}

/* In the queue of the SRQ. */
static void heard_of_srq(const struct rpma_rt_completion *item)
{
	if (item->kind == RPMA_RT_COMPLETION)
		came_back(item);
	else if (item->opcode == RPMA_RT_EVENT_SRQ_CLOSED)
		all.srqs_closed++;
}

static void heard(const struct rpma_rt_completion *item)
{
	struct end *end = item->user;

	if (item->user == &all.srq) {
		heard_of_srq(item);
		return;
	}
	CHECK(end == &all.active || end == &all.passive);
	if (item->kind == RPMA_RT_EVENT) {
		event(end, item);
		return;
	}
	CHECK(item->kind == RPMA_RT_COMPLETION);
	if (all.life->is_shared && item->context == RECEIVED) {
		came_back(item);
		return;
	}
	CHECK(end->owed > 0);
	end->owed--;
	if (item->status == IBV_WC_SUCCESS)
		all.succeeded |= 1u << item->context;
}

static bool take(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	if (queue == NULL || rpma_rt_queue_poll(queue, &item, 1) <= 0)
		return false;
	heard(&item);
	return true;
}

static _Noreturn void hang(void)
{
	fprintf(stderr, "%s: %s: nothing comes any more\n", all.life->name,
		life_trouble);
	rpma_rt_dump(all.rt, 2, RPMA_RT_DUMP_HUMAN);
	abort();
}

/* Waits for another item, or until all planned work is done. */
static void hear(bool closing)
{
	uint64_t end_ms = now_ms() + PATIENCE_MS;
	struct rpma_rt_completion item;
	int done;

	while (!take(all.other) && !take(all.queue)) {
		if (!closing && (is_done() || refill_failed()))
			return;
		if (now_ms() > end_ms)
			hang();
		if (all.life->is_manual) {
			done = rpma_rt_poller_run(all.rt, 0, 8);
			CHECK(done >= 0);
			if (done == 0)
				sched_yield(); /* to the control thread */
		} else if (rpma_rt_queue_wait(all.queue, &item, 1, 1) > 0) {
			heard(&item);
			return;
		}
	}
}

/* ------------------------------------------------------------- the life --- */

/* Deletes the SRQ, before the stop if unused; or after the stop. */
static void delete_srq(void)
{
	int ret = rpma_rt_srq_delete(&all.srq);

	CHECK(ret == 0 || ret == RPMA_RT_E_BUSY || ret == RPMA_E_PROVIDER);
	if (ret != RPMA_RT_E_BUSY)
		failed(ret);
}

static void end_life(void)
{
	if (all.rt == NULL)
		return;
	MUST(rpma_rt_listener_delete(&all.listener));
	if (!all.life->is_stopped)
		delete_srq();
	MUST(rpma_rt_stop(all.rt));
	while (take(all.other) || take(all.queue))
		;
	delete_srq();
	CHECK(all.active.conn == NULL && all.passive.conn == NULL);
	/* relaxed: no poller runs */
	CHECK(all.srq == NULL &&
	      atomic_load_explicit(&all.srq_owed, memory_order_relaxed) == 0);
	CHECK(all.srqs_closed == all.srqs_made);
	MUST(rpma_rt_queue_delete(&all.other));
	MUST(rpma_rt_queue_delete(&all.queue));
	MUST(rpma_rt_delete(&all.rt));
}

int life_live(const struct life *life)
{
	if (life->live != NULL)
		return life->live();
	all.life = life;
	all.ret = 0;
	all.succeeded = 0;
	all.route = NULL;
	all.srqs_made = 0;
	all.srqs_closed = 0;
	all.fn_owed = 0;
	/* relaxed: no other thread runs */
	atomic_store_explicit(&all.srq_owed, 0, memory_order_relaxed);
	atomic_store_explicit(&all.refill_ret, 0, memory_order_relaxed);
	atomic_store_explicit(&all.fn_called, 0, memory_order_relaxed);
	atomic_store_explicit(&all.fn_closed, 0, memory_order_relaxed);
	atomic_store_explicit(&all.fn_succeeded, false, memory_order_relaxed);
	all.active = (struct end){0};
	all.passive = (struct end){0};
	failed(begin());
	/* an error during the start leaves nothing to wait for */
	while (!refill_failed() && !is_done())
		hear(false);
	if (!life->is_stopped) {
		close_end(&all.active);
		close_end(&all.passive);
		while (all.active.conn != NULL || all.passive.conn != NULL)
			hear(true);
	}
	end_life();
	return all.ret;
}
