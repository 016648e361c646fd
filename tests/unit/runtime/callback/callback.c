/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Routes to functions on a made-up device: a function is called once for each
 * work request, in order, after the credit is back, never inside another
 * function; the calls allowed in a function; refusals inside; the last item.
 */

#include <string.h>

#include "rt_fake.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS
#define LARGE  200

/* the items of a function, and the action of each call */
struct ear {
	struct fake *f;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	struct rpma_rt_completion items[FAKE_QUEUE];
	int got;
	int depth; /* nesting of calls */
	void (*act)(struct ear *ear, const struct rpma_rt_completion *cmpl);
};

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct ear *ear = arg;

	assert_int_equal(ear->depth++, 0);
	ear->items[ear->got++] = *cmpl;
	if (ear->act != NULL)
		ear->act(ear, cmpl);
	ear->depth--;
}

static struct ear *ear_open(struct fake *f, struct rpma_rt_conn *conn,
			    enum rpma_rt_side side)
{
	struct ear *ear = calloc(1, sizeof(*ear));

	assert_non_null(ear);
	ear->f = f;
	ear->conn = conn;
	ok(rpma_rt_route_open_callback(conn, side, hear, ear, &ear->route));
	return ear;
}

static int ear_post(const struct ear *ear, uint64_t context)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = ALWAYS,
				.context = context,
				.route = ear->route};

	return fake_post_send(ear->conn, &wr);
}

/* The connection dies; the function must get the last item. */
static void ear_close(struct fake *f, struct ear *ear)
{
	const struct rpma_rt_completion *last;

	ear->act = NULL;
	fake_bury(f, &ear->conn);
	last = &ear->items[ear->got - 1];
	assert_int_equal(last->kind, RPMA_RT_EVENT);
	assert_int_equal(last->opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
	free(ear);
}

/* ------------------------------------------------------------- delivery --- */

FAKE_TEST(round__called_once_each_in_order)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);
	int i;

	for (i = 0; i < FAKE_SQ; i++)
		ok(ear_post(ear, (uint64_t)i));
	for (i = 0; i < FAKE_SQ; i++)
		fake_sent(conn, (uint32_t)i, IBV_WC_SUCCESS);
	assert_int_equal(fake_round(f), FAKE_SQ);
	assert_int_equal(ear->got, FAKE_SQ);
	for (i = 0; i < FAKE_SQ; i++) {
		assert_int_equal(ear->items[i].context, i);
		assert_int_equal(ear->items[i].kind, RPMA_RT_COMPLETION);
		assert_int_equal(ear->items[i].status, IBV_WC_SUCCESS);
		assert_ptr_equal(ear->items[i].user, f);
	}
	assert_int_equal(fake_take(f, f->queue), 0);
	ear_close(f, ear);
}

FAKE_TEST(round__more_than_are_collected_all_called_in_order)
{
	struct rpma_rt_conn *conn;
	struct ear *ear;
	int i;

	f->rt_cfg.sq_size = LARGE;
	conn = fake_established(f);
	ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);
	for (i = 0; i < LARGE; i++)
		ok(ear_post(ear, (uint64_t)i));
	/* broken at the first: all the others are kept, finished at once */
	fake_sent(conn, 0, IBV_WC_RETRY_EXC_ERR);
	for (i = 1; i < LARGE; i++)
		fake_sent(conn, (uint32_t)i, IBV_WC_WR_FLUSH_ERR);
	while (fake_round(f) > 0)
		;
	assert_int_equal(ear->got, 0);
	ear_close(f, ear);
}

static void act_repost(struct ear *ear, const struct rpma_rt_completion *cmpl)
{
	if (cmpl->kind == RPMA_RT_COMPLETION && cmpl->context < 4)
		ok(ear_post(ear, cmpl->context + 4));
}

FAKE_TEST(call__finds_the_credit_of_what_completed)
{
	struct rpma_rt_conn *conn;
	struct ear *ear;
	uint32_t i;

	f->rt_cfg.sq_size = 4;
	conn = fake_established(f);
	ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);
	ear->act = act_repost;
	for (i = 0; i < 4; i++)
		ok(ear_post(ear, i));
	assert_int_equal(ear_post(ear, 9), RPMA_E_AGAIN);
	for (i = 0; i < 4; i++)
		fake_sent(conn, i, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_qp(conn)->sq_count, 8);
	/* the refusal outside: answered in the queue, not to the function */
	assert_int_equal(ear->got, 4);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	for (i = 4; i < 8; i++)
		fake_sent(conn, i, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(ear->got, 8);
	ear_close(f, ear);
}

/* Posts until a post is refused, in every call. */
static void act_flood(struct ear *ear, const struct rpma_rt_completion *cmpl)
{
	int ret;

	if (cmpl->kind == RPMA_RT_EVENT)
		return;
	do
		ret = ear_post(ear, 7);
	while (ret == 0);
	assert_int_equal(ret, RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
}

FAKE_TEST(refused__inside_WRITABLE_to_the_function_once)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);
	struct ear *deaf = ear_open(f, conn, RPMA_RT_SEND_SIDE);

	ear->act = act_flood;
	ok(ear_post(ear, 1));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(ear->got, 1);
	fake_sent(conn, 1, IBV_WC_SUCCESS);
	fake_round(f);
	/* the completion of the function, refused again, and WRITABLE for the
	 * first refusal */
	assert_int_equal(ear->got, 3);
	assert_int_equal(ear->items[1].kind, RPMA_RT_COMPLETION);
	assert_int_equal(ear->items[2].kind, RPMA_RT_WRITABLE);
	assert_int_equal(ear->items[2].opcode, RPMA_RT_SEND_SIDE);
	assert_int_equal(ear->items[2].context, (uintptr_t)conn);
	assert_int_equal(deaf->got, 0);
	assert_int_equal(fake_take(f, f->queue), 0);
	ear->act = NULL;
	ear_close(f, ear);
	assert_int_equal(deaf->got, 1);
	free(deaf);
}

/* ------------------------------------------------------ allowed calls --- */

static void act_allowed(struct ear *ear, const struct rpma_rt_completion *cmpl)
{
	struct rpma_rt_conn *conn = ear->conn;

	if (cmpl->kind != RPMA_RT_COMPLETION)
		return;
	ok(rpma_rt_queue_push(ear->f->queue,
			      &(struct rpma_rt_completion){.context = 5}));
	ok(fake_recv(conn, 3));
	ok(rpma_rt_conn_ref(conn));
	ok(rpma_rt_conn_unref(&conn));
	/* a thread waiting for this poller may hold the lock of the runtime */
	pthread_mutex_lock(&ear->f->rt->lock);
	ok(rpma_rt_conn_close(ear->conn));
	pthread_mutex_unlock(&ear->f->rt->lock);
	assert_int_equal(ear_post(ear, 1), RPMA_RT_E_CLOSED);
}

static void inside(struct fake *f,
		   void (*act)(struct ear *, const struct rpma_rt_completion *))
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);

	ear->act = act;
	ok(ear_post(ear, 1));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(ear->got, 1);
	fake_take(f, f->queue); /* the item pushed by the function */
	ear_close(f, ear);
}

FAKE_TEST(inside__post_close_push_get_put_ok)
{
	inside(f, act_allowed);
}

/* -------------------------------------------------------------- the end --- */

FAKE_TEST(death__outstanding_synthesized_to_the_function)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);

	ok(ear_post(ear, 1));
	ok(fake_send(conn, 2, ALWAYS));
	ok(ear_post(ear, 3));
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(ear->got, 3);
	assert_int_equal(ear->items[0].context, 1);
	assert_int_equal(ear->items[1].context, 3);
	assert_int_equal(ear->items[1].flags, RPMA_RT_C_SYNTHESIZED);
	assert_int_equal(ear->items[2].kind, RPMA_RT_EVENT);
	ear_close(f, ear);
}

static void act_put(struct ear *ear, const struct rpma_rt_completion *cmpl)
{
	if (cmpl->kind == RPMA_RT_EVENT)
		ok(rpma_rt_conn_unref(&ear->conn));
}

FAKE_TEST(death__last_handle_put_inside_the_last_call)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_RECV_SIDE);

	ear->act = act_put;
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(ear->got, 1);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	free(ear);
}

static void act_post(struct ear *ear, const struct rpma_rt_completion *cmpl)
{
	if (cmpl->kind != RPMA_RT_EVENT)
		ok(ear_post(ear, 7));
}

static void round_of(void *arg)
{
	fake_round(arg);
}

/* Another thread is inside the verb: posts of the function go behind the posts
 * of the thread, and the function is not asked to try again. */
FAKE_TEST(call__beside_another_poster_TAKEN)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);

	ok(ear_post(ear, 1));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	ear->act = act_post;
	fake_when_posting(round_of, f);
	ok(ear_post(ear, 2));
	assert_int_equal(ear->got, 1);
	assert_int_equal(fake_qp(conn)->sq_count, 3);
	assert_int_equal(rt_wr_id_cookie(fake_sq_id(conn, 1)), 2);
	assert_int_equal(rt_wr_id_cookie(fake_sq_id(conn, 2)), 7);
	ear->act = NULL;
	fake_sent(conn, 1, IBV_WC_SUCCESS);
	fake_sent(conn, 2, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(ear->got, 3);
	assert_int_equal(fake_take(f, f->queue), 0);
	ear_close(f, ear);
}

static void act_answer(struct ear *ear, const struct rpma_rt_completion *cmpl)
{
	if (cmpl->kind != RPMA_RT_EVENT)
		ok(fake_send(ear->conn, 7, ALWAYS));
}

static void act_answer_too_early(struct ear *ear,
				 const struct rpma_rt_completion *cmpl)
{
	assert_int_equal(cmpl->kind, RPMA_RT_COMPLETION);
	assert_int_equal(fake_send(ear->conn, 7, ALWAYS), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NOT_YET);
	ear->act = act_answer;
}

/* A message overtakes the end of the handshake: the function answers after
 * WRITABLE. */
FAKE_TEST(call__before_ESTABLISHED_WRITABLE_behind_it)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_RECV_SIDE);
	struct rpma_rt_recv_wr wr = {.route = ear->route};

	ok(fake_post_recv(conn, &wr));
	ok(rpma_rt_conn_accept(conn, NULL));
	fake_finish_down(f);
	ear->act = act_answer_too_early;
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(ear->got, 1);
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_finish_down(f);
	assert_int_equal(ear->got, 2);
	assert_int_equal(ear->items[1].kind, RPMA_RT_WRITABLE);
	assert_int_equal(ear->items[1].opcode, RPMA_RT_SEND_SIDE);
	assert_int_equal(fake_qp(conn)->sq_count, 1);
	assert_int_equal(fake_take(f, f->queue), 1); /* ESTABLISHED alone */
	ear_close(f, ear);
}

static void act_post_closed(struct ear *ear,
			    const struct rpma_rt_completion *cmpl)
{
	(void)cmpl;
	assert_int_equal(ear_post(ear, 7), RPMA_RT_E_CLOSED);
}

static void close_and_round(void *arg)
{
	struct ear *ear = arg;

	ok(rpma_rt_conn_close(ear->conn));
	fake_round(ear->f);
}

/*
 * A closed connection is closed, also while a thread is inside: no call tries
 * again.
 */
FAKE_TEST(call__beside_another_in_what_is_closed_CLOSED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct ear *ear = ear_open(f, conn, RPMA_RT_SEND_SIDE);

	ok(ear_post(ear, 1));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	ear->act = act_post_closed;
	fake_when_posting(close_and_round, ear);
	ok(ear_post(ear, 2));
	assert_int_equal(ear->got, 1);
	assert_int_equal(fake_qp(conn)->sq_count, 2);
	ear_close(f, ear);
}

TEST_MAIN()
