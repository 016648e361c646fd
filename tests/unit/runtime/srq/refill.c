/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Posts to an SRQ on a made-up device: refused posts, backlog, refill before
 * functions, the limit, and the poller at work while a post is in the device.
 */

#include <errno.h>
#include <string.h>

#include "scene.h"
#include "poller/post.h"
#include "poller/route.h"
#include "poller/side.h"

/* ---------------------------------------------------------------- posts --- */

SRQ_TEST(post__bad_input_keeps_no_place)
{
	struct rpma_rt_recv_wr wrs[4] = {
		{.context = 1}, {.context = 2}, {.context = 3}, {.context = 4}};

	assert_int_equal(rpma_rt_srq_post_recv(NULL, wrs, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, NULL, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, -1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, NULL, 0), 0);
	assert_int_equal(scene_post(s, RT_COOKIE_MASK + 1), RPMA_E_INVAL);
	wrs[2].route = (const struct rpma_rt_route *)&s;
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 4), RPMA_E_INVAL);
	wrs[2].route = NULL;
	wrs[3].len = 1;
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 4), RPMA_E_INVAL);
	wrs[3].len = 0;
	/* no slot was used up */
	scene_post_many(s, SIZE);
	assert_int_equal(scene_post(s, 1), RPMA_E_AGAIN);
	scene_delete(s, SIZE);
}

/* Receives taken by the device stay outstanding; the rest comes back, and
 * others may be posted. */
SRQ_TEST(post__refused_by_the_device_NOT_POSTED)
{
	struct rpma_rt_recv_wr wrs[4] = {
		{.context = 1}, {.context = 2}, {.context = 3}, {.context = 4}};
	int i;

	fake_fail("srq_post", 3, 12);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 4), 4);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NONE);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->queue), 2);
	for (i = 0; i < 2; i++) {
		scene_expect(s->f, i, (uint64_t)i + 3, IBV_WC_GENERAL_ERR);
		assert_int_equal(s->f->items[i].flags, RPMA_RT_C_NOT_POSTED);
	}
	/* no place was used up */
	scene_post_many(s, SIZE - 2);
	assert_int_equal(scene_post(s, 5), RPMA_E_AGAIN);
	scene_delete(s, SIZE);
}

/* -------------------------------------------------------------- backlog --- */

/*
 * A consumer far behind stops posts; after catching up there is a single
 * WRITABLE.
 */
SRQ_TEST(backlog__holds_the_srq_until_it_clears)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *slow;
	struct rpma_rt_conn *conn;
	uint32_t next = 0;
	uint32_t round;
	int left = 0;

	cfg.lane_size = 64;
	cfg.backlog_limit = 2 * SIZE;
	ok(rpma_rt_queue_new(s->f->rt, &cfg, &slow));
	conn = fake_request(s->f);
	ok(rpma_rt_conn_set_queue(conn, slow));
	/* no consumer: ring, then spill to its limit, then outstanding
	 * receives */
	for (round = 0; round < 100 && left == 0; round++) {
		while ((left = scene_post(s, next)) == 0) {
			fake_srq_wc(conn, s->srq, next, IBV_WC_SUCCESS);
			next++;
		}
		if (rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT)
			left = 0;
		fake_round(s->f);
	}
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_BACKLOG);
	assert_in_range(next, 64 + 2 * SIZE, 64 + 4 * SIZE);
	assert_true(s->srq->held == 1);
	/* earlier CREDIT refusals were answered */
	fake_take(s->f, s->queue);
	assert_int_equal(fake_take(s->f, slow), 64);
	fake_round(s->f);
	assert_int_equal(s->srq->held, 0);
	assert_int_equal(fake_take(s->f, s->queue), 1);
	assert_int_equal(s->f->items[0].kind, RPMA_RT_WRITABLE);
	ok(scene_post(s, next));
	assert_int_equal(fake_take(s->f, slow), (int)next - 64);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s->f);
	scene_sq_marker(conn);
	fake_last_wqe(conn);
	fake_finish_down(s->f);
	fake_take(s->f, slow);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&slow));
	scene_delete(s, 1);
}

/* A lane filled by an earlier SRQ with the same number holds up nothing. */
SRQ_TEST(backlog__not_of_a_lane_that_it_never_filled)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *slow;
	struct rpma_rt_conn *shares;
	struct rpma_rt_conn *conn;
	uint32_t number;
	uint32_t i;

	cfg.lane_size = 64;
	cfg.backlog_limit = 1;
	ok(rpma_rt_queue_new(s->f->rt, &cfg, &slow));
	shares = fake_request(s->f);
	ok(rpma_rt_conn_set_queue(shares, slow));
	ok(scene_post(s, 1));
	scene_complete(s, shares, 0, 1);
	assert_int_equal(fake_take(s->f, slow), 1);
	scene_bury_in(s->f, &shares, slow);
	number = s->srq->number;
	scene_delete(s, 0);
	scene_srq(s);
	assert_int_equal(s->srq->number, number);
	shares = fake_established(s->f);
	s->f->rt_cfg.srq_count = 0;
	conn = fake_request(s->f);
	ok(rpma_rt_conn_set_queue(conn, slow));
	s->f->rt_cfg.srqs = &s->srq;
	s->f->rt_cfg.srq_count = 1;
	/* other receives bring the lane over its limit, in a batch with a
	 * receive of this SRQ */
	for (i = 0; !rt_lane_is_backlogged(rt_conn_lane(conn)); i++) {
		ok(fake_recv(conn, i));
		fake_received(conn, i, IBV_WC_SUCCESS);
		ok(scene_post(s, i));
		scene_complete(s, shares, i, 1);
		scene_drop(s);
	}
	assert_int_equal(s->srq->held, 0);
	ok(scene_post(s, 1));
	fake_take(s->f, slow);
	fake_round(s->f);
	fake_take(s->f, slow);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s->f);
	fake_markers(conn);
	fake_finish_down(s->f);
	fake_take(s->f, slow);
	ok(rpma_rt_conn_unref(&conn));
	scene_bury(s->f, &shares);
	ok(rpma_rt_queue_delete(&slow));
	scene_delete(s, 1);
}

/* --------------------------------------------------------------- refill --- */

static int heard;
static int heard_at; /* refills so far, at the first */
static int refills;

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)arg;
	if (cmpl->kind != RPMA_RT_COMPLETION)
		return;
	heard++;
	heard_at = refills;
}

static int refill_room;
static int refill_posts; /* so many at most */
static int refill_ret;

static void refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	int i;

	assert_non_null(arg);
	assert_in_range(room, 1, srq->cfg.srq_size);
	refills++;
	refill_room = room;
	refill_ret = 0;
	for (i = 0; i < refill_posts && refill_ret == 0; i++)
		refill_ret = rpma_rt_srq_recv(srq, NULL, 0, 0, 300);
}

static void scene_refill(struct scene *s, uint32_t limit, int posts)
{
	refills = 0;
	refill_posts = posts;
	s->cfg.limit = limit;
	s->cfg.refill = refill;
	s->cfg.refill_arg = s;
	scene_srq(s);
	fake_round(s->f);
	/* once at the beginning */
	assert_int_equal(refills, 1);
	assert_int_equal(refill_room, SIZE);
}

SCENE_TEST(refill__below_the_limit_before_functions)
{
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;

	heard = 0;
	scene_refill(s, SIZE / 2, SIZE + 1);
	assert_int_equal(refill_ret, RPMA_E_AGAIN);
	conn = fake_established(s->f);
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, hear, NULL,
				       &route));
	fake_srq_wc(conn, s->srq, 0, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(refills, 1); /* enough is out */
	fake_srq_wc(conn, s->srq, 1, IBV_WC_SUCCESS);
	fake_srq_wc(conn, s->srq, 2, IBV_WC_SUCCESS);
	fake_srq_wc(conn, s->srq, 3, IBV_WC_SUCCESS);
	fake_srq_wc(conn, s->srq, 4, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, 5);
	assert_int_equal(heard, 5);
	assert_int_equal(heard_at, 2);
	/* no WRITABLE for refusals inside */
	assert_int_equal(fake_take(s->f, s->queue), 0);
	scene_bury(s->f, &conn);
	scene_delete(s, SIZE);
}

/* The device refuses the only receive that is posted, for a while: no
 * completion ever brings the next refill. The pause is longer each time, and
 * short again behind a success. */
SCENE_TEST(refill__refused_by_the_device_REPEATED)
{
	int i;

	fake_fail("srq_post", 1, ENOMEM);
	scene_refill(s, 0, 1);
	assert_int_equal(s->srq->again_ms, 10);
	for (i = 2; i <= 4; i++) {
		fake_fail("srq_post", 1, ENOMEM);
		while (refills < i)
			fake_round(s->f);
	}
	assert_int_equal(s->srq->again_ms, 80);
	while (refills < 5)
		fake_round(s->f);
	assert_int_equal(s->srq->again_ms, 0);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->queue), 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(s->f->items[i].flags, RPMA_RT_C_NOT_POSTED);
	fake_logged();
	scene_delete(s, 1);
}

/* Asserts: the queue's only item is SRQ_LIMIT. */
static void expect_limit(const struct scene *s)
{
	assert_int_equal(fake_take(s->f, s->queue), 1);
	assert_int_equal(s->f->items[0].kind, RPMA_RT_EVENT);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_SRQ_LIMIT);
	assert_int_equal(s->f->items[0].context, (uintptr_t)s->srq);
}

SCENE_TEST(limit__told_once_and_again_when_as_many_were_posted)
{
	struct rpma_rt_conn *conn;
	uint32_t i;

	s->cfg.limit = 4;
	scene_srq(s);
	conn = fake_established(s->f);
	scene_post_many(s, 3);
	scene_complete(s, conn, 0, 1);
	assert_int_equal(fake_take(s->f, s->queue), 0); /* too few */
	scene_post_many(s, 3);				/* 5 */
	scene_complete(s, conn, 1, 1);
	assert_int_equal(fake_take(s->f, s->queue), 0);
	scene_complete(s, conn, 2, 1);
	expect_limit(s);
	scene_complete(s, conn, 3, 1);
	assert_int_equal(fake_take(s->f, s->queue), 0); /* told already */
	scene_post_many(s, 2);				/* 4 */
	scene_complete(s, conn, 4, 4);
	expect_limit(s);
	/* never as many outstanding, but posted since the limit came */
	for (i = 8; i < 12; i++) {
		assert_int_equal(fake_take(s->f, s->queue), 0);
		scene_post_many(s, 1);
		scene_complete(s, conn, i, 1);
	}
	expect_limit(s);
	/* the word of the device is not needed */
	assert_int_equal(s->srq->srq->limit, 0);
	fake_srq_limit(s->srq);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->queue), 0);
	scene_drop(s);
	scene_bury(s->f, &conn);
}

/* Work of the poller while a post is inside the device. */
static struct {
	struct scene *s;
	struct rpma_rt_conn *conn;
	uint32_t from;
	uint32_t count;
	uint32_t posts; /* to wait for */
} meanwhile;

static void poll_meanwhile(void)
{
	if (meanwhile.posts-- != 1)
		return;
	fake_srq_posted = NULL;
	scene_complete(meanwhile.s, meanwhile.conn, meanwhile.from,
		       meanwhile.count);
}

/* From the nth call of the device on: so many receives complete, and the poller
 * runs a round, before the post goes on. */
static void at_post(struct scene *s, struct rpma_rt_conn *conn, uint32_t nth,
		    uint32_t from, uint32_t count)
{
	meanwhile.s = s;
	meanwhile.conn = conn;
	meanwhile.from = from;
	meanwhile.count = count;
	meanwhile.posts = nth;
	fake_srq_posted = poll_meanwhile;
}

SCENE_TEST(limit__all_taken_before_the_post_returns)
{
	struct rpma_rt_recv_wr wrs[4] = {0};
	struct rpma_rt_conn *conn;

	s->cfg.limit = 4;
	scene_srq(s);
	conn = fake_established(s->f);
	at_post(s, conn, 1, 0, 4);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 4), 4);
	fake_finish_down(s->f);
	expect_limit(s);
	scene_drop(s);
	scene_bury(s->f, &conn);
}

/* A post counted by the poller, and then refused by the device. */
SCENE_TEST(limit__told_after_a_refused_post)
{
	struct rpma_rt_recv_wr wrs[4] = {0};
	int limits = 0;
	int i;

	s->cfg.limit = 4;
	scene_srq(s);
	fake_fail("srq_post", 3, 12);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 4), 4);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->queue), 3);
	for (i = 0; i < 3; i++)
		limits += s->f->items[i].kind == RPMA_RT_EVENT &&
			  s->f->items[i].opcode == RPMA_RT_EVENT_SRQ_LIMIT;
	assert_int_equal(limits, 1);
	scene_delete(s, 2);
}

SCENE_TEST(limit__event_calls_the_refill)
{
	scene_refill(s, 2, 2);
	fake_finish_down(s->f);
	assert_int_equal(s->srq->srq->limit, 2);
	fake_srq_limit(s->srq);
	fake_finish_down(s->f);
	assert_int_equal(refills, 2);
	assert_int_equal(fake_take(s->f, s->queue), 0);
	scene_delete(s, 4);
}

/* A post hands everything over before returning: receives posted by the refill
 * function meanwhile are taken, and posted behind. */
SCENE_TEST(refill__beside_another_poster_TAKEN)
{
	struct rpma_rt_recv_wr wrs[SIZE] = {0};
	struct rpma_rt_conn *conn;

	scene_refill(s, 0, 0); /* nothing to post at first */
	conn = fake_established(s->f);
	refill_posts = 3;
	at_post(s, conn, 1, 0, SIZE);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, SIZE), SIZE);
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, SIZE);
	assert_int_equal(refill_ret, 0);
	assert_int_equal(s->srq->srq->count, SIZE + 3);
	scene_drop(s);
	scene_bury(s->f, &conn);
	scene_delete(s, 3);
}

static void post_in_a_function(const struct rpma_rt_completion *cmpl, void *arg)
{
	if (cmpl->kind == RPMA_RT_COMPLETION)
		ok(scene_post(arg, 200));
}

/* A function of a connection posts while another thread is inside the verb: the
 * function is not asked to try again. */
SRQ_TEST(post__in_a_function_beside_another_TAKEN)
{
	struct rpma_rt_recv_wr wrs[2] = {{.context = 1}, {.context = 2}};
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn = fake_established(s->f);

	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE,
				       post_in_a_function, s, &route));
	at_post(s, conn, 1, 0, 1);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 2), 2);
	assert_int_equal(s->srq->srq->count, 3);
	assert_int_equal(fake_round(s->f), 0);
	assert_int_equal(fake_take(s->f, s->queue), 0);
	scene_bury(s->f, &conn);
	scene_delete(s, 2);
}

/*
 * The refill function in the middle of a post with several calls of the device.
 */
SCENE_TEST(refill__room_is_never_more_than_there_is)
{
	struct rpma_rt_recv_wr wrs[3 * RT_POST_CHUNK] = {0};
	struct rpma_rt_conn *conn;

	s->cfg.srq_size = 4 * RT_POST_CHUNK;
	refills = 0;
	refill_posts = 0;
	s->cfg.refill = refill;
	s->cfg.refill_arg = &s;
	scene_srq(s);
	fake_round(s->f);
	conn = fake_established(s->f);
	at_post(s, conn, 2, 0, RT_POST_CHUNK - 1);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 3 * RT_POST_CHUNK),
			 3 * RT_POST_CHUNK);
	/* of the first two calls, a chunk and one receive are outstanding */
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, 3 * RT_POST_CHUNK - 1);
	scene_drop(s);
	scene_bury(s->f, &conn);
	scene_delete(s, 2 * RT_POST_CHUNK + 1);
}

SCENE_TEST(refill__called_after_a_refused_post)
{
	struct rpma_rt_recv_wr wrs[4] = {0};
	struct rpma_rt_conn *conn;

	scene_refill(s, 4, 4);
	conn = fake_established(s->f);
	/* enough seems to be out when the poller counts */
	at_post(s, conn, 1, 0, 1);
	fake_fail("srq_post", 1, 12);
	assert_int_equal(rpma_rt_srq_post_recv(s->srq, wrs, 4), 4);
	assert_int_equal(refills, 1);
	fake_finish_down(s->f);
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, SIZE - 3);
	assert_int_equal(fake_take(s->f, s->queue), 4); /* NOT_POSTED */
	/* refused posts of the function do not call the function again */
	fake_fail("srq_post", 1, 12);
	scene_complete(s, conn, 1, 4);
	fake_finish_down(s->f);
	assert_int_equal(refills, 3);
	fake_take(s->f, s->queue);
	scene_drop(s);
	scene_bury(s->f, &conn);
	fake_take(s->f, s->queue);
	scene_delete(s, 6);
}

TEST_MAIN()
