/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A living connection gets another queue, and routes are closed, on a made-up
 * device: owed completions go along, ROUTE_CLOSED is the last item in the
 * former queue, every refused poster gets WRITABLE, and a number comes back
 * when nothing with the number is outstanding.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rt_fake.h"
#include "queue/impl.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define LANE	 64
#define LIMIT	 4

static struct rpma_rt_queue *queue_new(struct fake *f)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;

	cfg.lane_size = LANE;
	cfg.backlog_limit = LIMIT;
	ok(rpma_rt_queue_new(f->rt, &cfg, &queue));
	return queue;
}

static struct rpma_rt_route *open_to(struct rpma_rt_conn *conn,
				     struct rpma_rt_queue *queue)
{
	struct rpma_rt_route *route;

	ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, queue, &route));
	return route;
}

static int post(struct rpma_rt_conn *conn, const struct rpma_rt_route *route,
		uint64_t context, int flags)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = flags,
				.context = context,
				.route = route};

	return fake_post_send(conn, &wr);
}

static void expect_completion(struct fake *f, struct rpma_rt_queue *queue,
			      uint64_t context)
{
	assert_int_equal(fake_take(f, queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[0].context, context);
}

static bool is_event(const struct rpma_rt_completion *item, uint8_t event)
{
	return item->kind == RPMA_RT_EVENT && item->opcode == event;
}

/* Asserts that ROUTE_CLOSED is the only item. */
static void expect_closed(struct fake *f, struct rpma_rt_queue *queue)
{
	assert_int_equal(fake_take(f, queue), 1);
	assert_true(is_event(&f->items[0], RPMA_RT_EVENT_ROUTE_CLOSED));
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
}

static void expect_writable(struct fake *f, struct rpma_rt_queue *queue)
{
	assert_int_equal(fake_take(f, queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	assert_int_equal(f->items[0].opcode, RPMA_RT_SEND_SIDE);
}

/* Lets the connection die; CLOSED is the last item in its queue. */
static void bury_in(struct fake *f, struct rpma_rt_conn **conn,
		    struct rpma_rt_queue *queue)
{
	ok(rpma_rt_conn_close(*conn));
	fake_finish_down(f);
	fake_markers(*conn);
	fake_finish_down(f);
	while (fake_take(f, queue) == LANE)
		fake_round(f);
	assert_true(f->got > 0);
	assert_true(is_event(&f->items[f->got - 1], RPMA_RT_EVENT_CLOSED));
	ok(rpma_rt_conn_unref(conn));
}

static uint32_t numbers_left(const struct rpma_rt_conn *conn)
{
	return rt_numbers_left(&conn->cq->numbers);
}

/* ---------------------------------------------------------- own queue --- */

FAKE_TEST(set_queue__what_is_owed_goes_along)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *next = queue_new(f);
	uint32_t left = numbers_left(conn);

	ok(fake_recv(conn, 7));
	ok(fake_send(conn, 1, ALWAYS));
	ok(fake_send(conn, 2, ALWAYS));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	ok(rpma_rt_conn_set_queue(conn, next));
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].context, 1);
	assert_true(is_event(&f->items[1], RPMA_RT_EVENT_ROUTE_CLOSED));
	assert_int_equal(f->items[1].context, (uintptr_t)conn);
	assert_int_equal(f->queue->users, 0);
	assert_int_equal(f->queue->leaving, 0);
	assert_int_equal(numbers_left(conn), left);
	fake_sent(conn, 1, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, next, 2);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, next, 7);
	/* and back, and again: a ROUTE_CLOSED each time */
	ok(rpma_rt_conn_set_queue(conn, f->queue));
	expect_closed(f, next);
	ok(rpma_rt_conn_set_queue(conn, next));
	expect_closed(f, f->queue);
	bury_in(f, &conn, next);
	assert_int_equal(fake_take(f, f->queue), 0);
	ok(rpma_rt_queue_delete(&next));
}

FAKE_TEST(set_queue__the_same_nothing)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(rpma_rt_conn_set_queue(conn, f->queue));
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(set_queue__after_a_post_a_last_item)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *next = queue_new(f);

	ok(fake_recv(conn, 1));
	ok(rpma_rt_conn_set_queue(conn, next));
	expect_closed(f, f->queue);
	bury_in(f, &conn, next);
	ok(rpma_rt_queue_delete(&next));
}

FAKE_TEST(set_queue__no_memory_as_before)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *next = queue_new(f);
	uint32_t left = numbers_left(conn);
	int nth;

	ok(fake_send(conn, 1, ALWAYS));
	/* two routes, their waiters, the lane */
	for (nth = 1; nth <= 4; nth++) {
		fake_fail("malloc", nth, 1);
		assert_int_equal(rpma_rt_conn_set_queue(conn, next),
				 RPMA_E_NOMEM);
		assert_int_equal(numbers_left(conn), left);
		assert_int_equal(fake_take(f, f->queue), 0);
	}
	ok(rpma_rt_conn_set_queue(conn, next));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	expect_closed(f, f->queue);
	expect_completion(f, next, 1);
	bury_in(f, &conn, next);
	ok(rpma_rt_queue_delete(&next));
}

/* The last route leading there leaves ROUTE_CLOSED. */
FAKE_TEST(set_queue__another_route_leads_there)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *next = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, f->queue);

	ok(rpma_rt_conn_set_queue(conn, next));
	assert_int_equal(fake_take(f, f->queue), 0);
	ok(rpma_rt_route_close(route, NULL));
	expect_closed(f, f->queue);
	bury_in(f, &conn, next);
	assert_int_equal(fake_take(f, f->queue), 0);
	ok(rpma_rt_queue_delete(&next));
}

/* ------------------------------------------------ refused and waiting --- */

/*
 * Posts until the lane of the route is over its limit; returns the next
 * context.
 */
static uint32_t fill(struct fake *f, struct rpma_rt_conn *conn,
		     const struct rpma_rt_route *route)
{
	uint32_t i;

	for (i = 0; i < LANE + LIMIT; i++) {
		ok(post(conn, route, i, ALWAYS));
		fake_sent(conn, i, IBV_WC_SUCCESS);
		fake_round(f);
	}
	assert_int_equal(post(conn, route, i, ALWAYS), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_BACKLOG);
	return i;
}

static void take_all(struct fake *f, struct rpma_rt_queue *queue)
{
	while (fake_take(f, queue) > 0)
		fake_round(f);
}

/* Refused for the former lane: told, because the route leads elsewhere now. */
FAKE_TEST(set_queue__who_was_refused_is_told)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *slow = queue_new(f);
	uint32_t next;

	ok(rpma_rt_conn_set_queue(conn, slow));
	expect_closed(f, f->queue);
	next = fill(f, conn, NULL);
	ok(rpma_rt_conn_set_queue(conn, f->queue));
	expect_writable(f, f->queue);
	ok(post(conn, NULL, 1000, ALWAYS));
	fake_sent(conn, next, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, f->queue, 1000);
	/* ring, then spill, and ROUTE_CLOSED behind */
	assert_int_equal(fake_take(f, slow), LANE);
	fake_round(f);
	assert_int_equal(fake_take(f, slow), LIMIT + 1);
	assert_true(is_event(&f->items[LIMIT], RPMA_RT_EVENT_ROUTE_CLOSED));
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	ok(rpma_rt_queue_delete(&slow));
	fake_bury(f, &conn);
}

/* WRITABLE had to wait for the connection's own lane, which is another now. */
FAKE_TEST(set_queue__an_answer_put_off_comes)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *slow = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, f->queue);
	uint32_t next;
	uint32_t i;

	ok(rpma_rt_conn_set_queue(conn, slow));
	next = fill(f, conn, NULL);
	assert_int_equal(fake_take(f, f->queue), 0);
	for (i = 0; i < FAKE_SQ; i++)
		ok(post(conn, route, i, ALWAYS));
	assert_int_equal(post(conn, route, 9, ALWAYS), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
	fake_sent(conn, next, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, f->queue, 0); /* and no WRITABLE in slow */
	ok(rpma_rt_conn_set_queue(conn, f->queue));
	expect_writable(f, f->queue);
	take_all(f, slow);
	ok(rpma_rt_queue_delete(&slow));
	fake_bury(f, &conn);
}

FAKE_TEST(close__who_was_refused_is_told)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *slow = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, slow);

	fill(f, conn, route);
	ok(rpma_rt_route_close(route, NULL));
	expect_writable(f, f->queue);
	assert_int_equal(post(conn, route, 1, ALWAYS), RPMA_RT_E_CLOSED);
	ok(post(conn, NULL, 1, ALWAYS));
	take_all(f, slow);
	ok(rpma_rt_queue_delete(&slow));
	fake_bury(f, &conn);
}

/* The owed completions would exceed the places of the lane. */
FAKE_TEST(close__the_other_is_behind_BUSY)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *slow = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, f->queue);
	struct rpma_rt_route *behind = open_to(conn, slow);

	fill(f, conn, behind);
	assert_int_equal(rpma_rt_route_close(route, behind), RPMA_RT_E_BUSY);
	ok(post(conn, route, 1, ALWAYS)); /* as before */
	take_all(f, slow);
	expect_writable(f, f->queue);
	ok(rpma_rt_route_close(route, behind));
	fake_sent(conn, LANE + LIMIT, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, slow, 1);
	fake_bury(f, &conn);
	expect_closed(f, slow);
	ok(rpma_rt_queue_delete(&slow));
}

/* ------------------------------------------------------------ closing --- */

FAKE_TEST(close__what_is_owed_and_its_number)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, queue);
	uint32_t number = route->number;
	uint32_t left;

	ok(post(conn, route, 1, ALWAYS));
	ok(post(conn, route, 2, ALWAYS));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	left = numbers_left(conn);
	ok(rpma_rt_route_close(route, NULL));
	assert_int_equal(fake_take(f, queue), 2);
	assert_true(is_event(&f->items[1], RPMA_RT_EVENT_ROUTE_CLOSED));
	ok(rpma_rt_queue_delete(&queue));
	assert_int_equal(numbers_left(conn), left); /* a number is in use */
	fake_sent(conn, 1, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, f->queue, 2);
	assert_int_equal(numbers_left(conn), left + 1);
	assert_int_equal(conn->side[RPMA_RT_SEND_SIDE].want, 0);
	assert_int_equal(conn->cq->routes[number].qp_key, RT_QP_KEY_NONE);
	/* the handle stays good for an answer */
	assert_int_equal(post(conn, route, 3, ALWAYS), RPMA_RT_E_CLOSED);
	route = open_to(conn, f->queue);
	assert_int_equal(route->number, number);
	ok(post(conn, route, 4, ALWAYS));
	fake_sent(conn, 2, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, f->queue, 4);
	fake_bury(f, &conn);
}

/* Until the next signaled send has retired, the silent send may still fail. */
FAKE_TEST(close__one_on_error_only_its_number_waits)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_route *route = open_to(conn, f->queue);
	uint32_t left = numbers_left(conn);

	ok(post(conn, NULL, 1, ALWAYS));
	ok(post(conn, route, 2, ON_ERROR));
	ok(rpma_rt_route_close(route, NULL));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(numbers_left(conn), left);
	ok(post(conn, NULL, 3, ALWAYS));
	fake_sent(conn, 2, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(numbers_left(conn), left + 1);
	assert_int_equal(fake_take(f, f->queue), 2);
	fake_bury(f, &conn);
}

FAKE_TEST(close__one_on_error_only_fails_later)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, queue);

	ok(post(conn, route, 2, ON_ERROR));
	ok(rpma_rt_route_close(route, NULL));
	expect_closed(f, queue);
	fake_sent(conn, 0, IBV_WC_RETRY_EXC_ERR);
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].context, 2);
	assert_int_equal(f->items[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_true(is_event(&f->items[1], RPMA_RT_EVENT_CLOSED));
	assert_int_equal(fake_take(f, queue), 0);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&queue));
}

/* Completions owed by several routes are merged, and led on together. */
FAKE_TEST(close__chains_that_meet)
{
	enum { ROUTES = 6 };
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queues[ROUTES];
	struct rpma_rt_route *routes[ROUTES];
	int i;

	for (i = 0; i < ROUTES; i++) {
		queues[i] = queue_new(f);
		routes[i] = open_to(conn, queues[i]);
	}
	for (i = 0; i < 5; i++)
		ok(post(conn, routes[i], (uint64_t)i, ALWAYS));
	ok(rpma_rt_route_close(routes[0], routes[1]));
	ok(rpma_rt_route_close(routes[2], routes[3]));
	ok(rpma_rt_route_close(routes[3], routes[4]));
	ok(rpma_rt_route_close(routes[1], routes[4]));
	for (i = 0; i < 4; i++)
		expect_closed(f, queues[i]);
	for (i = 0; i < 2; i++) {
		fake_sent(conn, (uint32_t)i, IBV_WC_SUCCESS);
		fake_round(f);
		expect_completion(f, queues[4], (uint64_t)i);
	}
	ok(rpma_rt_route_close(routes[4], routes[5]));
	assert_int_equal(rpma_rt_route_close(routes[5], routes[4]),
			 RPMA_RT_E_CLOSED);
	expect_closed(f, queues[4]);
	fake_sent(conn, 2, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, queues[5], 2);
	ok(rpma_rt_route_close(routes[5], NULL));
	expect_closed(f, queues[5]);
	fake_sent(conn, 3, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, f->queue, 3);
	ok(rpma_rt_conn_set_queue(conn, queues[0]));
	expect_closed(f, f->queue);
	fake_sent(conn, 4, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, queues[0], 4);
	bury_in(f, &conn, queues[0]);
	for (i = 0; i < ROUTES; i++) {
		assert_int_equal(fake_take(f, queues[i]), 0);
		ok(rpma_rt_queue_delete(&queues[i]));
	}
}

/* The last item comes with the last of a connection's routes to the queue. */
FAKE_TEST(close__several_to_one_queue)
{
	enum { ROUTES = 3 };
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_queue *other = queue_new(f);
	struct rpma_rt_route *routes[ROUTES];
	struct rpma_rt_route *beside = open_to(conn, other);
	int i;

	for (i = 0; i < ROUTES; i++)
		routes[i] = open_to(conn, queue);
	for (i = 0; i < ROUTES; i++) {
		assert_int_equal(fake_take(f, queue), 0);
		ok(rpma_rt_route_close(routes[(i + 1) % ROUTES], NULL));
	}
	expect_closed(f, queue);
	assert_int_equal(fake_take(f, other), 0);
	ok(rpma_rt_route_close(beside, NULL));
	expect_closed(f, other);
	fake_bury(f, &conn);
	ok(rpma_rt_queue_delete(&queue));
	ok(rpma_rt_queue_delete(&other));
}

FAKE_TEST(close__no_memory_as_before)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, queue);

	fake_fail("malloc", 1, 1);
	assert_int_equal(rpma_rt_route_close(route, NULL), RPMA_E_NOMEM);
	ok(post(conn, route, 1, ALWAYS));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	expect_completion(f, queue, 1);
	ok(rpma_rt_route_close(route, NULL));
	expect_closed(f, queue);
	ok(rpma_rt_queue_delete(&queue));
	fake_bury(f, &conn);
}

/* ---------------------------------------------------------- functions --- */

struct ear {
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	uint64_t contexts[8];
	int got;
	int ends;
	bool posts; /* in its last call */
	int answer;
};

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct ear *ear = arg;

	assert_int_equal(ear->ends, 0);
	if (is_event(cmpl, RPMA_RT_EVENT_ROUTE_CLOSED)) {
		ear->ends++;
		if (ear->posts)
			ear->answer = post(ear->conn, NULL, 50, ALWAYS);
		return;
	}
	ear->contexts[ear->got++] = cmpl->context;
	if (ear->posts)
		ear->answer = post(ear->conn, NULL, 51, ALWAYS);
}

static void ear_open(struct ear *ear, struct rpma_rt_conn *conn)
{
	*ear = (struct ear){.conn = conn};
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_SEND_SIDE, hear, ear,
				       &ear->route));
}

FAKE_TEST(close__a_function_its_last_call)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear ear;

	ear_open(&ear, conn);
	ok(post(conn, ear.route, 1, ALWAYS));
	ok(post(conn, ear.route, 2, ALWAYS));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(ear.got, 1);
	ok(rpma_rt_route_close(ear.route, NULL));
	assert_int_equal(ear.ends, 1);
	fake_sent(conn, 1, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(ear.got, 1);
	expect_completion(f, f->queue, 2);
	fake_bury(f, &conn);
	assert_int_equal(ear.ends, 1);
}

FAKE_TEST(close__to_a_function)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_route *route = open_to(conn, f->queue);
	struct ear ear;

	ear_open(&ear, conn);
	ok(post(conn, route, 1, ALWAYS));
	ok(rpma_rt_route_close(route, ear.route));
	assert_int_equal(fake_take(f, f->queue), 0); /* still its own */
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(ear.got, 1);
	assert_int_equal(ear.contexts[0], 1);
	fake_bury(f, &conn);
	assert_int_equal(ear.ends, 1);
}

/*
 * A callback posts in its last call (ROUTE_CLOSED), and the post is refused,
 * because the send queue is full: WRITABLE comes to the connection's queue.
 * before: the callback took the last free place in an earlier call; otherwise
 * the test took the place.
 */
static void close__refused_inside_told_in_the_queue(bool before, struct fake *f)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear ear;
	uint32_t i;

	ear_open(&ear, conn);
	ok(post(conn, ear.route, 0, ALWAYS));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	for (i = 1; i < FAKE_SQ; i++)
		ok(post(conn, NULL, i, ALWAYS));
	ear.posts = before;
	fake_round(f);
	assert_int_equal(ear.got, 1);
	if (before) /* takes the place that was left */
		assert_int_equal(ear.answer, 0);
	else
		ok(post(conn, NULL, 9, ALWAYS));
	ear.posts = true;
	ok(rpma_rt_route_close(ear.route, NULL));
	assert_int_equal(ear.answer, RPMA_E_AGAIN);
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_sent(conn, 1, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].context, 1);
	assert_int_equal(f->items[1].kind, RPMA_RT_WRITABLE);
	fake_bury(f, &conn);
}

FAKE_TEST(close__refused_in_the_last_call)
{
	close__refused_inside_told_in_the_queue(true, f);
	close__refused_inside_told_in_the_queue(false, f);
}

/* ------------------------------------------------------------- deaths --- */

/* The connection ends between the steps of a change. */
FAKE_TEST(close__dies_meanwhile)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rt_cq *cq = conn->cq;
	uint32_t left = rt_numbers_left(&cq->numbers);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, queue);

	ok(post(conn, route, 1, ALWAYS));
	fake_when_answered(fake_die, f);
	ok(rpma_rt_route_close(route, NULL));
	fake_finish_down(f);
	expect_closed(f, queue);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].flags, RPMA_RT_C_SYNTHESIZED);
	assert_true(is_event(&f->items[1], RPMA_RT_EVENT_CLOSED));
	assert_int_equal(queue->users, 0);
	assert_int_equal(queue->leaving, 0);
	assert_int_equal(rt_numbers_left(&cq->numbers), left + 3);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&queue));
}

FAKE_TEST(change__of_a_dying_one_CLOSED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_route *route = open_to(conn, queue);
	struct rpma_rt_route *late;
	int i;

	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	assert_int_equal(rpma_rt_route_open_callback(conn, RPMA_RT_SEND_SIDE,
						     hear, NULL, &late),
			 RPMA_RT_E_CLOSED);
	for (i = 0; i < 2; i++) {
		assert_int_equal(rpma_rt_route_close(route, NULL),
				 RPMA_RT_E_CLOSED);
		assert_int_equal(rpma_rt_conn_set_queue(conn, queue),
				 RPMA_RT_E_CLOSED);
		fake_markers(conn);
		fake_finish_down(f);
	}
	assert_int_equal(fake_take(f, queue), 1);
	assert_true(is_event(&f->items[0], RPMA_RT_EVENT_ROUTE_CLOSED));
	assert_int_equal(fake_take(f, f->queue), 1);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&queue));
}

/* --------------------------------------------------------------- dump --- */

static bool dump_has(struct fake *f, const char *words)
{
	char text[8192] = "";
	FILE *file = tmpfile();

	assert_non_null(file);
	ok(rpma_rt_dump(f->rt, fileno(file), RPMA_RT_DUMP_HUMAN));
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return strstr(text, words) != NULL;
}

/* Completions owed by a closed route are listed at their future queue. */
FAKE_TEST(dump__what_a_closed_one_owes)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *queue = queue_new(f);
	struct rpma_rt_queue *last = NULL;
	struct rpma_rt_route *route = open_to(conn, queue);
	struct rpma_rt_route *to;
	char words[32];

	ok(rpma_rt_queue_new(f->rt, &cfg, &last));
	to = open_to(conn, last);
	snprintf(words, sizeof(words), "queue %u", rt_queue_id(last));
	ok(post(conn, route, 77, ALWAYS));
	ok(rpma_rt_route_close(route, to));
	assert_true(dump_has(f, words));
	assert_non_null(conn->listed_closed);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	ok(rpma_rt_route_close(to, NULL));
	assert_null(conn->listed_closed); /* to owes nothing */
	take_all(f, queue);
	take_all(f, last);
	fake_bury(f, &conn);
	ok(rpma_rt_queue_delete(&queue));
	ok(rpma_rt_queue_delete(&last));
}

TEST_MAIN()
