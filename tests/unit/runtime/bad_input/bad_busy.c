/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * RPMA_RT_E_BUSY: a queue whose consumer is behind, another thread that is
 * inside, handles that are held. See bad_input.c.
 */

#include "bad_input.h"

#define LANE   64
#define LIMIT  4
#define BEHIND "consumer is behind|poll the queue"

/* A queue with as many items as bar new users, its connection and route. */
struct behind {
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
};

static void fall_behind(struct fake *f, struct behind *b)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND, .flags = ALWAYS};
	uint32_t i;

	cfg.lane_size = LANE;
	cfg.backlog_limit = LIMIT;
	ok(rpma_rt_queue_new(f->rt, &cfg, &b->queue));
	b->conn = fake_established(f);
	ok(rpma_rt_route_open(b->conn, RPMA_RT_SEND_SIDE, b->queue, &b->route));
	wr.route = b->route;
	for (i = 0; i < LANE + LIMIT; i++) {
		wr.context = i;
		ok(fake_post_send(b->conn, &wr));
		fake_sent(b->conn, i, IBV_WC_SUCCESS);
		fake_round(f);
	}
}

static void catch_up(struct fake *f, struct behind *b)
{
	while (fake_take(f, b->queue) > 0)
		fake_round(f);
	fake_bury(f, &b->conn);
	assert_int_equal(fake_take(f, b->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
	ok(rpma_rt_queue_delete(&b->queue));
}

/* Those that would bring more to it. */
void a_queue_behind(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_srq_cfg srq_cfg;
	struct rpma_rt_route *route = NULL;
	struct behind b;
	int ret;

	fall_behind(f, &b);
	f->rt_cfg.queue = b.queue;
	BAD_SAYS(BEHIND, RPMA_RT_E_BUSY, rpma_rt_conn_new, f->rt, "::1", "1",
		 &f->rt_cfg, &out.conn);
	f->rt_cfg.queue = f->queue;
	srq_cfg = bad_srq_cfg(b.queue);
	sweep_begin("rpma_rt_srq_new"); /* makes one of librpma's first */
	ret = rpma_rt_srq_new(f->rt, &srq_cfg, &out.srq);
	assert_int_equal(ret, RPMA_RT_E_BUSY);
	sweep_log("rpma_rt_srq_new", __LINE__, ret, BEHIND);
	BAD_SAYS(BEHIND, RPMA_RT_E_BUSY, rpma_rt_conn_set_queue, b.conn,
		 b.queue);
	BAD_SAYS(BEHIND, RPMA_RT_E_BUSY, rpma_rt_route_open, b.conn,
		 RPMA_RT_SEND_SIDE, b.queue, &out.route);
	ok(rpma_rt_route_open(b.conn, RPMA_RT_SEND_SIDE, f->queue, &route));
	BAD_SAYS(BEHIND, RPMA_RT_E_BUSY, rpma_rt_route_close, route, b.route);
	ok(rpma_rt_route_close(route, NULL));
	catch_up(f, &b);
}

void adoption_of_what_is_in_use(void **state)
{
	struct fake *f = *state;
	struct rpma_channel *channel;
	struct rpma_conn conn = {0};
	struct rpma_srq srq = {0};
	struct behind b;

	fall_behind(f, &b);
	ok(rpma_channel_new(&fake_ctx, &channel));
	ok(rpma_cq_new(&fake_ctx, 8, channel, 0, NULL, &conn.cq));
	srq.rcq = conn.cq;
	BAD_SAYS(BEHIND, RPMA_RT_E_BUSY, rpma_rt_adopt, f->rt, &conn, 0,
		 b.queue, NULL, &out.adopted);
	BAD_SAYS(BEHIND, RPMA_RT_E_BUSY, rpma_rt_adopt_srq, f->rt, &srq, 0,
		 b.queue, NULL, &out.adopted);
	fake_fail("cq_claim", 1, RPMA_E_AGAIN);
	BAD_SAYS("a thread waits on the connection's CQ", RPMA_RT_E_BUSY,
		 rpma_rt_adopt, f->rt, &conn, 0, f->queue, NULL, &out.adopted);
	fake_fail("cq_claim", 1, RPMA_E_AGAIN);
	BAD_SAYS("a thread waits on the connection's CQ", RPMA_RT_E_BUSY,
		 rpma_rt_adopt_srq, f->rt, &srq, 0, f->queue, NULL,
		 &out.adopted);
	ok(rpma_cq_delete(&conn.cq));
	ok(rpma_channel_delete(&channel));
	catch_up(f, &b);
}

void a_queue_full_of_messages(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_queue *queue;
	uint32_t i;

	ok(rpma_rt_queue_new(f->rt, NULL, &queue));
	for (i = 0; i < RPMA_RT_MAX_MESSAGES; i++)
		ok(rpma_rt_queue_push(
			queue, &(struct rpma_rt_completion){.context = i}));
	BAD_SAYS("as many messages as it holds|poll it", RPMA_RT_E_BUSY,
		 rpma_rt_queue_push, queue, out.items);
	while (fake_take(f, queue) > 0)
		;
	ok(rpma_rt_queue_delete(&queue));
}

/* The poller belongs to another thread. */
void another_thread_owns(void **state)
{
	static struct rt_owner other = {.tid = 4711, .name = "shard-1"};
	struct fake *f = *state;

	/* relaxed: another thread would do it; there is none here */
	atomic_store_explicit(&f->poller->owned.owner, &other,
			      memory_order_relaxed);
	BAD_SAYS("poller 0 belongs to thread shard-1 (4711)|_release()",
		 RPMA_RT_E_BUSY, rpma_rt_poller_run, f->rt, 0, 1);
	BAD_SAYS("poller 0|4711", RPMA_RT_E_BUSY, rpma_rt_poller_arm, f->rt, 0);
	BAD_SAYS("poller 0|4711", RPMA_RT_E_BUSY, rpma_rt_poller_attach, f->rt,
		 0);
	BAD_SAYS("poller 0|4711", RPMA_RT_E_BUSY, rpma_rt_poller_release, f->rt,
		 0);
	atomic_store_explicit(&f->poller->owned.owner, NULL,
			      memory_order_relaxed);
	ok(rpma_rt_poller_run(f->rt, 0, 1));
}

/* It has stopped by then. */
void a_runtime_with_handles(void **state)
{
	struct rpma_rt_queue *queue = NULL;
	struct rpma_rt *rt = NULL;

	(void)state;
	queue = foreign_queue(&rt);
	ok(rpma_rt_stop(rt));
	BAD_SAYS("1 handles of it are held|rpma_rt_dump() lists them",
		 RPMA_RT_E_BUSY, rpma_rt_delete, &rt);
	foreign_end(rt, queue);
}
