/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Answers to refused posters when a backlog clears: those that wait for it and
 * no others, so many in a round, and those put off for the connection's own
 * queue.
 */

#include "rt_fake.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define LANE	 64
#define LIMIT	 4
#define A_ROUND	 64 /* answers */
#define MANY	 (A_ROUND + 16)
#define REFUSALS 2

/* A queue of the smallest lane, and a connection that fills it. */
struct narrow {
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	uint32_t sent;
};

static struct rpma_rt_route *open_route(struct rpma_rt_conn *conn,
					struct rpma_rt_queue *queue)
{
	struct rpma_rt_route *route;

	ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, queue, &route));
	return route;
}

static void narrow_new(struct fake *f, struct narrow *n)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	cfg.lane_size = LANE;
	cfg.backlog_limit = LIMIT;
	ok(rpma_rt_queue_new(f->rt, &cfg, &n->queue));
	n->conn = fake_established(f);
	n->route = open_route(n->conn, n->queue);
	n->sent = 0;
}

static int post(struct rpma_rt_conn *conn, struct rpma_rt_route *route)
{
	struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_SEND, .flags = ALWAYS, .route = route};

	return fake_post_send(conn, &wr);
}

static void expect_refused(struct rpma_rt_conn *conn,
			   struct rpma_rt_route *route)
{
	assert_int_equal(post(conn, route), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_BACKLOG);
}

/* Up to its limit: nobody takes. */
static void narrow_fill(struct fake *f, struct narrow *n)
{
	uint32_t i;

	for (i = 0; i < LANE + LIMIT; i++) {
		ok(post(n->conn, n->route));
		fake_sent(n->conn, n->sent++, IBV_WC_SUCCESS);
		fake_round(f);
	}
	expect_refused(n->conn, n->route);
}

/* Its consumer comes; the next round finds the room. */
static void narrow_take(struct fake *f, struct narrow *n)
{
	assert_int_equal(fake_take(f, n->queue), LANE);
}

static void narrow_delete(struct fake *f, struct narrow *n)
{
	fake_bury(f, &n->conn);
	while (fake_take(f, n->queue) > 0)
		fake_round(f);
	ok(rpma_rt_queue_delete(&n->queue));
}

/* The queue holds WRITABLEs only, so many; the first is of conn. */
static void expect_writable(struct fake *f, struct rpma_rt_queue *queue,
			    const struct rpma_rt_conn *conn, int count)
{
	int i;

	assert_int_equal(fake_take(f, queue), count);
	for (i = 0; i < count; i++)
		assert_int_equal(f->items[i].kind, RPMA_RT_WRITABLE);
	if (count > 0)
		assert_int_equal(f->items[0].context, (uintptr_t)conn);
}

FAKE_TEST(eased__who_waits_for_another_lane_not_told)
{
	struct narrow first;
	struct narrow second;

	narrow_new(f, &first);
	narrow_new(f, &second);
	narrow_fill(f, &first);
	narrow_fill(f, &second);
	narrow_take(f, &first);
	fake_round(f);
	expect_writable(f, f->queue, first.conn, 1);
	narrow_take(f, &second);
	fake_round(f);
	expect_writable(f, f->queue, second.conn, 1);
	narrow_delete(f, &first);
	narrow_delete(f, &second);
}

FAKE_TEST(eased__so_many_a_round)
{
	struct rpma_rt_conn *conns[MANY];
	struct rpma_rt_route *routes[MANY];
	struct narrow n;
	int i;
	int j;

	narrow_new(f, &n);
	for (i = 0; i < MANY; i++) {
		conns[i] = fake_established(f);
		routes[i] = open_route(conns[i], n.queue);
	}
	narrow_fill(f, &n);
	for (j = 0; j < REFUSALS; j++) {
		for (i = 0; i < MANY; i++)
			expect_refused(conns[i], routes[i]);
	}
	narrow_take(f, &n);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), A_ROUND);
	/* the lane's queue stays for those that are left */
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), MANY + 1 - A_ROUND);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_null(f->poller->spilling);
	for (i = 0; i < MANY; i++)
		fake_bury(f, &conns[i]);
	narrow_delete(f, &n);
}

/* whoever waited is gone when the backlog clears, or it never does */
FAKE_TEST(closed__while_it_waits)
{
	struct rpma_rt_conn *conns[2];
	struct rpma_rt_route *routes[2];
	struct narrow n;
	int i;

	narrow_new(f, &n);
	for (i = 0; i < 2; i++) {
		conns[i] = fake_established(f);
		routes[i] = open_route(conns[i], n.queue);
	}
	narrow_fill(f, &n);
	for (i = 0; i < 2; i++)
		expect_refused(conns[i], routes[i]);
	fake_bury(f, &conns[0]);
	fake_take(f, n.queue);
	fake_round(f);
	expect_writable(f, f->queue, n.conn, 2);
	fake_bury(f, &conns[1]);
	narrow_delete(f, &n);
}

/* WRITABLE waits for the connection's own queue, also when credit came back */
FAKE_TEST(answer__own_queue_over_its_limit_waits)
{
	struct rpma_rt_conn *conn;
	struct narrow n;
	uint32_t i;

	narrow_new(f, &n);
	conn = fake_request(f);
	ok(rpma_rt_conn_set_queue(conn, n.queue));
	ok(rpma_rt_conn_accept(conn, NULL));
	fake_finish_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, n.queue), 1);
	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(conn, i, ALWAYS));
	assert_int_equal(fake_send(conn, i, ALWAYS), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
	narrow_fill(f, &n);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, n.queue), LANE);
	fake_round(f);
	expect_writable(f, f->queue, n.conn, 1);
	/* behind what was spilled */
	assert_int_equal(fake_take(f, n.queue), LIMIT + 2);
	assert_int_equal(f->items[LIMIT + 1].kind, RPMA_RT_WRITABLE);
	assert_int_equal(f->items[LIMIT + 1].context, (uintptr_t)conn);
	rpma_rt_conn_close(conn);
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	fake_take(f, n.queue);
	ok(rpma_rt_conn_unref(&conn));
	narrow_delete(f, &n);
}

TEST_MAIN()
