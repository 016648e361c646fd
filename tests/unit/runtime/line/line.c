/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Work requests in line: taken up to rpma_rt_conn_cfg.waiting beyond the queue,
 * posted in order as room comes, a link whole, independent of the consumers;
 * owed when their route is closed; NOT_POSTED when the connection ends, posted
 * before the marker of a drain.
 */

#include <errno.h>

#include "rt_fake.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define WAITING	 4
#define LANE	 64

static struct rpma_rt_conn *established(struct fake *f)
{
	f->rt_cfg.waiting = WAITING;
	return fake_established(f);
}

/* So many sends, of the contexts from first on. */
static void send_many(struct rpma_rt_conn *conn, uint64_t first, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ok(fake_send(conn, first + i, ALWAYS));
}

static void expect_full(struct rpma_rt_conn *conn)
{
	assert_int_equal(fake_send(conn, 99, ALWAYS), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
}

/* Asserts that the index-th posted work request has the context. */
static void expect_posted(const struct rpma_rt_conn *conn, uint32_t index,
			  uint64_t context)
{
	assert_true(index < fake_qp(conn)->sq_count);
	assert_int_equal(rt_wr_id_cookie(fake_sq_id(conn, index)), context);
}

static void succeed(struct fake *f, struct rpma_rt_conn *conn, uint32_t from,
		    uint32_t count)
{
	uint32_t i;

	for (i = from; i < from + count; i++)
		fake_sent(conn, i, IBV_WC_SUCCESS);
	fake_round(f);
}

static void expect(const struct fake *f, int i, uint64_t context, uint8_t flags)
{
	assert_true(i < f->got);
	assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[i].context, context);
	assert_int_equal(f->items[i].flags &
				 (RPMA_RT_C_NOT_POSTED | RPMA_RT_C_SYNTHESIZED),
			 flags);
}

/* ----------------------------------------------------------------- room --- */

/* The default is as many as the queue holds; NO_WAITING is the queue alone. */
FAKE_TEST(line__so_many_as_were_asked_for)
{
	const uint32_t waiting[] = {0, 1, FAKE_SQ, RPMA_RT_NO_WAITING};
	const uint32_t places[] = {2 * FAKE_SQ, FAKE_SQ + 1, 2 * FAKE_SQ,
				   FAKE_SQ};
	struct rpma_rt_conn *conn;
	size_t i;

	for (i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
		f->rt_cfg.waiting = waiting[i];
		conn = fake_established(f);
		send_many(conn, 0, places[i]);
		expect_full(conn);
		fake_bury(f, &conn);
	}
}

/* As many of a call as there are places, a link whole or not at all. */
FAKE_TEST(line__a_part_of_a_call)
{
	struct rpma_rt_conn *conn = established(f);
	struct rpma_rt_wr wrs[FAKE_SQ + WAITING + 1];
	uint32_t i;

	for (i = 0; i < FAKE_SQ + WAITING + 1; i++)
		wrs[i] = (struct rpma_rt_wr){
			.op = RPMA_RT_OP_SEND, .flags = ALWAYS, .context = i};
	wrs[FAKE_SQ + WAITING - 1].flags |= RPMA_RT_F_LINKED;
	assert_int_equal(rpma_rt_post_send(conn, wrs, FAKE_SQ + WAITING + 1),
			 FAKE_SQ + WAITING - 1);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
	assert_int_equal(fake_qp(conn)->sq_count, FAKE_SQ);
	assert_int_equal(
		rpma_rt_post_send(conn, &wrs[FAKE_SQ + WAITING - 1], 2),
		RPMA_E_AGAIN);
	send_many(conn, 50, 1);
	expect_full(conn);
	fake_bury(f, &conn);
}

/* Enough silent work requests complete for the line to go on, where no thread
 * posts any more. */
FAKE_TEST(line__of_silent_ones_goes_on)
{
	struct rpma_rt_conn *conn = established(f);
	uint32_t done = 0;
	uint32_t i;

	for (i = 0; i < FAKE_SQ + WAITING; i++)
		ok(fake_send(conn, i, ON_ERROR));
	while (fake_qp(conn)->sq_count < FAKE_SQ + WAITING) {
		while (done < fake_qp(conn)->sq_count &&
		       !fake_qp(conn)->signaled[done])
			done++;
		assert_true(done < fake_qp(conn)->sq_count);
		succeed(f, conn, done++, 1);
	}
	for (i = 0; i < FAKE_SQ + WAITING; i++)
		expect_posted(conn, i, i);
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_bury(f, &conn);
}

/* ---------------------------------------------------------------- order --- */

static void fill_link(struct rpma_rt_wr *wrs, uint64_t context)
{
	int i;

	for (i = 0; i < 3; i++)
		wrs[i] = (struct rpma_rt_wr){
			.op = RPMA_RT_OP_SEND,
			.flags = i < 2 ? RPMA_RT_F_LINKED | RPMA_RT_F_PART : 0,
			.context = i < 2 ? 0 : context};
}

/* The longest allowed link finds room behind silent work requests. */
FAKE_TEST(line__longest_link_behind_silent_ones)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_wr wrs[FAKE_SQ / 2 + 1];
	uint32_t done = 0;
	uint32_t i;

	f->rt_cfg.waiting = FAKE_SQ;
	conn = fake_established(f);
	for (i = 0; i < FAKE_SQ / 2 + 1; i++)
		wrs[i] = (struct rpma_rt_wr){.op = RPMA_RT_OP_SEND,
					     .flags = RPMA_RT_F_LINKED};
	wrs[FAKE_SQ / 2].flags = 0;
	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(conn, i, ON_ERROR));
	assert_int_equal(rpma_rt_post_send(conn, wrs, FAKE_SQ / 2 + 1),
			 FAKE_SQ / 2 + 1);
	assert_int_equal(fake_qp(conn)->sq_count, FAKE_SQ);
	for (done = 0; done < FAKE_SQ; done++) {
		if (fake_qp(conn)->signaled[done])
			succeed(f, conn, done, 1);
	}
	assert_int_equal(fake_qp(conn)->sq_count, FAKE_SQ + FAKE_SQ / 2 + 1);
	fake_bury(f, &conn);
}

/* A consumer falls behind while work requests for the consumer stand in line:
 * the line is posted all the same, later posts are refused. */
FAKE_TEST(line__ignores_a_backlog)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_conn *conn = established(f);
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND, .flags = ALWAYS};
	struct rpma_rt_route *route;
	struct rpma_rt_queue *slow;
	uint32_t i;

	cfg.lane_size = LANE;
	cfg.backlog_limit = 1;
	ok(rpma_rt_queue_new(f->rt, &cfg, &slow));
	ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, slow, &route));
	wr.route = route;
	for (i = 0; i < LANE; i++) {
		ok(fake_post_send(conn, &wr));
		succeed(f, conn, i, 1);
	}
	ok(fake_post_send(conn, &wr)); /* brings the lane to its limit */
	send_many(conn, 0, FAKE_SQ - 1);
	wr.context = 70;
	ok(fake_post_send(conn, &wr));
	send_many(conn, 71, 1);
	assert_int_equal(fake_qp(conn)->sq_count, LANE + FAKE_SQ);
	succeed(f, conn, LANE, 1);
	expect_posted(conn, LANE + FAKE_SQ, 70);
	assert_int_equal(fake_post_send(conn, &wr), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_BACKLOG);
	succeed(f, conn, LANE + 1, 1);
	expect_posted(conn, LANE + FAKE_SQ + 1, 71);
	fake_bury(f, &conn);
	while (fake_take(f, slow) > 0)
		fake_round(f);
	ok(rpma_rt_queue_delete(&slow));
}

/* ----------------------------------------------------------------- ends --- */

/* Makes a line: a send, a silent send, and a link. */
static struct rpma_rt_conn *with_line(struct fake *f)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_wr wrs[3];

	f->rt_cfg.waiting = 5;
	conn = fake_established(f);
	send_many(conn, 0, FAKE_SQ);
	ok(fake_send(conn, 20, ALWAYS));
	ok(fake_send(conn, 21, ON_ERROR));
	fill_link(wrs, 22);
	assert_int_equal(rpma_rt_post_send(conn, wrs, 3), 3);
	assert_int_equal(fake_qp(conn)->sq_count, FAKE_SQ);
	return conn;
}

/* Flushes the work requests of the queue from index from on. */
static void flush_from(struct rpma_rt_conn *conn, uint32_t from)
{
	uint32_t i;

	for (i = from; i < FAKE_SQ; i++)
		fake_sent(conn, i, IBV_WC_WR_FLUSH_ERR);
}

static void expect_not_posted(const struct fake *f, int first)
{
	int i;

	for (i = 0; i < 3; i++) {
		expect(f, first + i, 20 + (uint64_t)i, RPMA_RT_C_NOT_POSTED);
		assert_int_equal(f->items[first + i].status,
				 IBV_WC_GENERAL_ERR);
		assert_int_equal(f->items[first + i].opcode, IBV_WC_SEND);
	}
	assert_int_equal(f->got, first + 3 + 1); /* and CLOSED */
}

FAKE_TEST(line__closed_NOT_POSTED)
{
	struct rpma_rt_conn *conn = with_line(f);
	uint32_t i;

	ok(rpma_rt_conn_close(conn));
	flush_from(conn, 0);
	fake_bury(f, &conn);
	for (i = 0; i < FAKE_SQ; i++)
		expect(f, (int)i, i, 0);
	expect_not_posted(f, FAKE_SQ);
}

/* A failure: nothing of the line is posted. */
FAKE_TEST(line__broken_NOT_POSTED)
{
	struct rpma_rt_conn *conn = with_line(f);

	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_sent(conn, 1, IBV_WC_RETRY_EXC_ERR);
	flush_from(conn, 2);
	fake_round(f);
	assert_int_equal(fake_qp(conn)->sq_count, FAKE_SQ);
	fake_bury(f, &conn);
	expect_not_posted(f, FAKE_SQ);
}

/* The device refuses the front of the line: the device has the rest. */
FAKE_TEST(line__front_refused_NOT_POSTED)
{
	struct rpma_rt_conn *conn = with_line(f);

	fake_fail("post_send", 1, ENOMEM);
	succeed(f, conn, 0, 1);
	assert_int_equal(fake_send(conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
	flush_from(conn, 1);
	fake_finish_down(f);
	fake_bury(f, &conn);
	expect_not_posted(f, FAKE_SQ);
	assert_int_equal(f->items[f->got - 1].status, RPMA_RT_REASON_FAILED);
}

static void marker(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		   enum ibv_wc_status status)
{
	const bool sends = side == RPMA_RT_SEND_SIDE;

	fake_wc(conn->cq,
		rt_wr_id_internal(sends ? RT_SQ_MARKER : RT_RQ_MARKER,
				  conn->slot),
		status, sends ? IBV_WC_RDMA_WRITE : IBV_WC_DRIVER1,
		conn->qp_num);
}

FAKE_TEST(line__drained_before_the_marker)
{
	struct rpma_rt_conn *conn = established(f);
	uint32_t i;

	send_many(conn, 0, FAKE_SQ + 3);
	ok(rpma_rt_conn_drain(conn, 0));
	assert_int_equal(fake_send(conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
	fake_finish_down(f);
	assert_int_equal(fake_qp(conn)->sq_count, FAKE_SQ);
	for (i = 0; i < 3; i++) {
		fake_sent(conn, i, IBV_WC_SUCCESS);
		fake_finish_down(f);
		expect_posted(conn, FAKE_SQ + i, FAKE_SQ + i);
	}
	assert_int_equal(fake_sq_id(conn, FAKE_SQ + 3),
			 rt_wr_id_internal(RT_SQ_MARKER, conn->slot));
	for (i = 3; i < FAKE_SQ + 3; i++)
		fake_sent(conn, i, IBV_WC_SUCCESS);
	marker(conn, RPMA_RT_SEND_SIDE, IBV_WC_SUCCESS);
	fake_finish_down(f);
	marker(conn, RPMA_RT_RECV_SIDE, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), FAKE_SQ + 3 + 1);
	for (i = 0; i < FAKE_SQ + 3; i++)
		expect(f, (int)i, i, 0);
	assert_int_equal(f->items[FAKE_SQ + 3].status, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* A drain with a line, cut short by a close or a failure. */
FAKE_TEST(line__drain_cut_short_NOT_POSTED)
{
	struct rpma_rt_conn *conn;
	int fails;

	for (fails = 0; fails < 2; fails++) {
		conn = with_line(f);
		ok(rpma_rt_conn_drain(conn, 0));
		fake_finish_down(f);
		if (fails)
			fake_sent(conn, 0, IBV_WC_RETRY_EXC_ERR);
		else
			ok(rpma_rt_conn_close(conn));
		fake_finish_down(f);
		fake_bury(f, &conn);
		expect_not_posted(f, FAKE_SQ);
	}
}

/* --------------------------------------------------------------- routes --- */

/* The route is closed while its work requests stand in line: the completions
 * are owed, and come to the queue that the route leads to now. */
FAKE_TEST(line__route_closed_OWED)
{
	struct rpma_rt_conn *conn = established(f);
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND, .flags = ALWAYS};
	struct rpma_rt_route *route;
	struct rpma_rt_route *other;
	struct rpma_rt_queue *aside;
	uint32_t number;
	uint32_t i;

	ok(rpma_rt_queue_new(f->rt, NULL, &aside));
	ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, aside, &route));
	number = route->number;
	send_many(conn, 0, FAKE_SQ);
	wr.route = route;
	for (wr.context = 30; wr.context < 32; wr.context++)
		ok(fake_post_send(conn, &wr));
	ok(rpma_rt_route_close(route, NULL));
	assert_int_equal(fake_post_send(conn, &wr), RPMA_RT_E_CLOSED);
	assert_int_equal(fake_take(f, aside), 1); /* ROUTE_CLOSED */
	for (i = 0; i < FAKE_SQ; i++) {
		succeed(f, conn, i, 1);
		/* the number is in use as long as a completion is owed */
		ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, aside, &other));
		assert_int_not_equal(other->number, number);
		ok(rpma_rt_route_close(other, NULL));
		assert_int_equal(fake_take(f, aside), 1);
	}
	succeed(f, conn, FAKE_SQ, 2);
	assert_int_equal(fake_take(f, f->queue), FAKE_SQ + 2);
	expect(f, FAKE_SQ, 30, 0);
	expect(f, FAKE_SQ + 1, 31, 0);
	ok(rpma_rt_queue_delete(&aside));
	fake_bury(f, &conn);
}

/* The connection gets another queue: the line goes there. */
FAKE_TEST(line__set_queue_GOES_ALONG)
{
	struct rpma_rt_conn *conn = established(f);
	struct rpma_rt_queue *next;
	int i;

	ok(rpma_rt_queue_new(f->rt, NULL, &next));
	send_many(conn, 0, FAKE_SQ + WAITING);
	succeed(f, conn, 0, 1);
	ok(rpma_rt_conn_set_queue(conn, next));
	assert_int_equal(fake_take(f, f->queue), 2);
	succeed(f, conn, 1, FAKE_SQ);
	succeed(f, conn, FAKE_SQ + 1, WAITING - 1);
	assert_int_equal(fake_take(f, next), FAKE_SQ + WAITING - 1);
	for (i = 1; i < FAKE_SQ + WAITING; i++)
		expect(f, i - 1, (uint64_t)i, 0);
	ok(rpma_rt_conn_set_queue(conn, f->queue));
	fake_take(f, next);
	ok(rpma_rt_queue_delete(&next));
	fake_bury(f, &conn);
}

TEST_MAIN()
