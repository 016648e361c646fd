/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Posts beside a thread in the middle of a post: inside the verb, or between
 * the preparation of work requests and their publication. No post is refused
 * because of the other thread; all are posted in order, or end as NOT_POSTED
 * when the connection ends meanwhile, and every refused poster gets WRITABLE.
 */

#include <errno.h>

#include "rt_fake.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define WAITING	 4
#define A_HOLD	 64  /* of other threads at most, in one hold */
#define MANY	 100 /* more */

/* what other threads do meanwhile */
struct meanwhile {
	struct fake *f;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct rpma_rt_future future;
	uint32_t count;
	int ret;
};

static struct meanwhile *begin_with(struct fake *f, uint32_t waiting,
				    uint32_t futures)
{
	static struct meanwhile m;

	f->rt_cfg.waiting = waiting;
	f->rt_cfg.futures = futures;
	m = (struct meanwhile){.f = f, .conn = fake_established(f)};
	return &m;
}

static struct meanwhile *begin(struct fake *f, uint32_t waiting)
{
	return begin_with(f, waiting, 0);
}

static void expect_posted(const struct meanwhile *m, uint32_t index,
			  uint64_t context)
{
	assert_true(index < fake_qp(m->conn)->sq_count);
	assert_int_equal(rt_wr_id_cookie(fake_sq_id(m->conn, index)), context);
}

static void expect(const struct meanwhile *m, int i, uint64_t context,
		   uint8_t flags)
{
	assert_true(i < m->f->got);
	assert_int_equal(m->f->items[i].kind, RPMA_RT_COMPLETION);
	assert_int_equal(m->f->items[i].context, context);
	assert_int_equal(m->f->items[i].flags &
				 (RPMA_RT_C_NOT_POSTED | RPMA_RT_C_SYNTHESIZED),
			 flags);
}

/* Posts a work request that librpma may refuse. */
static int flush(const struct meanwhile *m, uint64_t context)
{
	const struct rpma_rt_wr wr = {.op = RPMA_RT_OP_FLUSH,
				      .flags = ALWAYS,
				      .context = context,
				      .route = m->route,
				      .remote = fake_remote,
				      .len = 8,
				      .flush_type = RPMA_FLUSH_TYPE_VISIBILITY};

	return fake_post_send(m->conn, &wr);
}

/* ----------------------------------------------------- inside the verb --- */

/* Posts contexts from 1 on; the last two in a single call. */
static void post_some(void *arg)
{
	const struct meanwhile *m = arg;
	struct rpma_rt_wr wrs[2] = {{.op = RPMA_RT_OP_SEND, .flags = ALWAYS},
				    {.op = RPMA_RT_OP_SEND, .flags = ALWAYS}};
	uint32_t i;

	for (i = 1; i <= m->count; i++)
		ok(fake_send(m->conn, i, ALWAYS));
	wrs[0].context = i;
	wrs[1].context = i + 1;
	assert_int_equal(rpma_rt_post_send(m->conn, wrs, 2), 2);
	assert_int_equal(fake_qp(m->conn)->sq_count, 0);
}

FAKE_TEST(verb__others_are_TAKEN_in_order)
{
	struct meanwhile *m = begin(f, WAITING);
	uint32_t i;

	m->count = 3;
	fake_when_posting(post_some, m);
	ok(fake_send(m->conn, 0, ALWAYS));
	assert_int_equal(fake_qp(m->conn)->sq_count, 6);
	for (i = 0; i < 6; i++) {
		expect_posted(m, i, i);
		fake_sent(m->conn, i, IBV_WC_SUCCESS);
	}
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 6);
	fake_bury(f, &m->conn);
}

static void recv_some(void *arg)
{
	const struct meanwhile *m = arg;
	uint32_t i;

	for (i = 1; i <= m->count; i++)
		ok(fake_recv(m->conn, i));
}

FAKE_TEST(verb__receives_are_TAKEN_in_order)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);
	uint32_t i;

	m->count = FAKE_RQ - 1;
	fake_when_posting(recv_some, m);
	ok(fake_recv(m->conn, 0));
	assert_int_equal(fake_qp(m->conn)->rq_count, FAKE_RQ);
	for (i = 0; i < FAKE_RQ; i++)
		assert_int_equal(rt_wr_id_cookie(fake_rq_id(m->conn, i)), i);
	fake_bury(f, &m->conn);
}

static void post_all_places(void *arg)
{
	struct meanwhile *m = arg;

	while (fake_send(m->conn, m->count + 1, ALWAYS) == 0)
		m->count++;
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
}

/* As many as there are places, while the queue is empty; then WRITABLE. */
FAKE_TEST(verb__others_take_all_places)
{
	struct meanwhile *m = begin(f, WAITING);
	uint32_t i;

	fake_when_posting(post_all_places, m);
	ok(fake_send(m->conn, 0, ALWAYS));
	assert_in_range(m->count, FAKE_SQ + WAITING - 1, FAKE_SQ + WAITING);
	assert_int_equal(fake_qp(m->conn)->sq_count, FAKE_SQ);
	for (i = 0; i <= m->count; i++) {
		expect_posted(m, i, i);
		fake_sent(m->conn, i, IBV_WC_SUCCESS);
		fake_round(f);
	}
	assert_int_equal(fake_take(f, f->queue), (int)m->count + 2);
	fake_bury(f, &m->conn);
}

/* Two sends complete, counted by the poller, while a thread is inside: the
 * thread finds the room. */
static void post_and_complete(void *arg)
{
	struct meanwhile *m = arg;
	uint32_t i;

	for (i = 0; i < 3; i++)
		ok(fake_send(m->conn, FAKE_SQ + i, ALWAYS));
	fake_sent(m->conn, 0, IBV_WC_SUCCESS);
	fake_sent(m->conn, 1, IBV_WC_SUCCESS);
	fake_round(m->f);
}

FAKE_TEST(verb__room_comes_back_meanwhile)
{
	struct meanwhile *m = begin(f, WAITING);
	uint32_t i;

	for (i = 0; i < FAKE_SQ - 1; i++)
		ok(fake_send(m->conn, i, ALWAYS));
	fake_when_posting(post_and_complete, m);
	ok(fake_send(m->conn, FAKE_SQ - 1, ALWAYS));
	assert_int_equal(fake_qp(m->conn)->sq_count, FAKE_SQ + 2);
	fake_sent(m->conn, 2, IBV_WC_SUCCESS);
	fake_round(f);
	for (i = 0; i < FAKE_SQ + 3; i++)
		expect_posted(m, i, i);
	assert_int_equal(fake_take(f, f->queue), 3);
	fake_bury(f, &m->conn);
}

static void post_many(void *arg)
{
	const struct meanwhile *m = arg;
	uint32_t i;

	for (i = 1; i <= m->count; i++)
		ok(fake_send(m->conn, i, ALWAYS));
}

/* A thread goes on for others up to a bound, then the poller does; in manual
 * mode, where perhaps no thread runs the poller, without a bound. */
FAKE_TEST(hold__ends_and_the_poller_goes_on)
{
	struct meanwhile *m;
	int threaded;
	uint32_t i;

	for (threaded = 0; threaded < 2; threaded++) {
		f->poller->threaded = threaded;
		f->rt_cfg.sq_size = 2 * MANY;
		m = begin(f, RPMA_RT_NO_WAITING);
		m->count = MANY;
		fake_when_posting(post_many, m);
		ok(fake_send(m->conn, 0, ALWAYS));
		if (threaded)
			assert_in_range(fake_qp(m->conn)->sq_count, 2,
					A_HOLD + 1);
		else
			assert_int_equal(fake_qp(m->conn)->sq_count, MANY + 1);
		fake_round(f);
		fake_round(f);
		assert_int_equal(fake_qp(m->conn)->sq_count, MANY + 1);
		for (i = 0; i <= MANY; i++)
			expect_posted(m, i, i);
		f->poller->threaded = false;
		fake_bury(f, &m->conn);
	}
}

/* ------------------------------------------ the end of the connection --- */

static void post_three(void *arg)
{
	const struct meanwhile *m = arg;
	struct rpma_rt_wr wrs[2] = {
		{.op = RPMA_RT_OP_SEND,
		 .flags = RPMA_RT_F_LINKED | RPMA_RT_F_PART},
		{.op = RPMA_RT_OP_SEND, .context = 3}};

	ok(fake_send(m->conn, 1, ALWAYS));
	ok(fake_send(m->conn, 2, ON_ERROR));
	assert_int_equal(rpma_rt_post_send(m->conn, wrs, 2), 2);
}

static struct rpma_rt_wr a_part(uint64_t context, uint32_t more)
{
	return (struct rpma_rt_wr){.op = RPMA_RT_OP_SEND,
				   .flags = ALWAYS | more,
				   .local = fake_local,
				   .len = 8,
				   .context = context};
}

/* In the verb of the holder that posts the line: the device completes all, and
 * a link that needs two places finds only one. */
static void complete_and_be_refused(void *arg)
{
	struct meanwhile *m = arg;
	const struct rpma_rt_wr wrs[2] = {a_part(20, RPMA_RT_F_LINKED),
					  a_part(21, 0)};
	uint32_t i;

	for (i = 0; i < FAKE_SQ; i++)
		fake_sent(m->conn, i, IBV_WC_SUCCESS);
	fake_round(m->f);
	assert_int_equal(fake_take(m->f, m->f->queue), FAKE_SQ);
	assert_int_equal(rpma_rt_post_send(m->conn, wrs, 2), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
}

static void fill_the_line(void *arg)
{
	struct meanwhile *m = arg;
	uint32_t i;

	for (i = 1; i < FAKE_SQ; i++)
		ok(fake_send(m->conn, i, ALWAYS));
}

static void fill_and_await(void *arg)
{
	fake_when_posting(NULL, NULL);
	fake_when_posted(complete_and_be_refused, arg);
}

/* In the verb of the first: the rest stands in line, and is posted next. */
static void fill_first(void *arg)
{
	fill_the_line(arg);
	fake_when_posting(fill_and_await, arg);
}

/* A place is missing only because a holder has not yet given its slots back: no
 * completion will tell the refused poster. */
FAKE_TEST(refused__slots_come_back_WRITABLE)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);

	fake_when_posting(fill_first, m);
	ok(fake_send(m->conn, 0, ALWAYS));
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	fake_bury(f, &m->conn);
}

/* The verb refuses: work requests published meanwhile end the same way, in
 * order, also if they want no completion otherwise. */
FAKE_TEST(verb__refuses_all_are_NOT_POSTED)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);
	int i;

	fake_when_posting(post_three, m);
	fake_fail("post_send", 1, ENOMEM);
	ok(fake_send(m->conn, 0, ALWAYS));
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NONE);
	assert_int_equal(fake_send(m->conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
	fake_finish_down(f);
	fake_bury(f, &m->conn);
	assert_int_equal(f->got, 5);
	for (i = 0; i < 4; i++)
		expect(m, i, (uint64_t)i, RPMA_RT_C_NOT_POSTED);
	assert_int_equal(f->items[4].status, RPMA_RT_REASON_FAILED);
}

/* A holder refuses in the middle of the published work requests of others. */
FAKE_TEST(verb__refuses_others_NOT_POSTED)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);
	int i;

	fake_when_posting(post_three, m);
	fake_fail("post_send", 3, ENOMEM);
	ok(fake_send(m->conn, 0, ALWAYS));
	assert_int_equal(fake_qp(m->conn)->sq_count, 2);
	fake_sent(m->conn, 0, IBV_WC_SUCCESS);
	fake_sent(m->conn, 1, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(f);
	fake_bury(f, &m->conn);
	assert_int_equal(f->got, 5);
	for (i = 0; i < 4; i++)
		expect(m, i, (uint64_t)i, i < 2 ? 0 : RPMA_RT_C_NOT_POSTED);
}

/* The device has the first part of a link: the outcome of the last part is
 * unknown, and is delivered once. */
FAKE_TEST(verb__cuts_a_link_SYNTHESIZED)
{
	struct rpma_rt_wr wrs[4] = {
		{.op = RPMA_RT_OP_SEND, .flags = ALWAYS, .context = 1},
		{.op = RPMA_RT_OP_SEND,
		 .flags = RPMA_RT_F_LINKED | RPMA_RT_F_PART},
		{.op = RPMA_RT_OP_SEND,
		 .flags = RPMA_RT_F_LINKED | RPMA_RT_F_PART},
		{.op = RPMA_RT_OP_SEND, .context = 4}};
	struct meanwhile *m;
	int part_fails;

	for (part_fails = 0; part_fails < 2; part_fails++) {
		m = begin(f, RPMA_RT_NO_WAITING);
		fake_fail("post_send", 3, ENOMEM);
		assert_int_equal(rpma_rt_post_send(m->conn, wrs, 4), 4);
		assert_int_equal(fake_qp(m->conn)->sq_count, 2);
		fake_sent(m->conn, 0, IBV_WC_SUCCESS);
		if (part_fails)
			fake_sent(m->conn, 1, IBV_WC_WR_FLUSH_ERR);
		fake_finish_down(f);
		fake_bury(f, &m->conn);
		assert_int_equal(f->got, 3);
		expect(m, 0, 1, 0);
		expect(m, 1, 4, RPMA_RT_C_SYNTHESIZED);
	}
}

/* A link of which the device has nothing: nothing was posted. */
FAKE_TEST(verb__refuses_a_whole_link_NOT_POSTED)
{
	struct rpma_rt_wr wrs[2] = {
		{.op = RPMA_RT_OP_SEND,
		 .flags = RPMA_RT_F_LINKED | RPMA_RT_F_PART},
		{.op = RPMA_RT_OP_SEND, .context = 4}};
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);

	fake_fail("post_send", 1, ENOMEM);
	assert_int_equal(rpma_rt_post_send(m->conn, wrs, 2), 2);
	fake_bury(f, &m->conn);
	assert_int_equal(f->got, 2);
	expect(m, 0, 4, RPMA_RT_C_NOT_POSTED);
}

static void post_and_close(void *arg)
{
	const struct meanwhile *m = arg;

	post_three(arg);
	ok(rpma_rt_conn_close(m->conn));
	assert_int_equal(fake_send(m->conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
}

static void post_and_break(void *arg)
{
	const struct meanwhile *m = arg;

	post_three(arg);
	fake_sent(m->conn, 0, IBV_WC_RETRY_EXC_ERR);
	fake_round(m->f);
	assert_int_equal(fake_send(m->conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
}

/* The connection is closed, or broken, while a thread is inside: the device has
 * the work requests of the thread, and nothing else. */
FAKE_TEST(verb__ended_meanwhile_NOT_POSTED)
{
	struct meanwhile *m;
	int breaks;
	int i;

	for (breaks = 0; breaks < 2; breaks++) {
		m = begin(f, RPMA_RT_NO_WAITING);
		ok(fake_send(m->conn, 50, ALWAYS));
		fake_when_posting(breaks ? post_and_break : post_and_close, m);
		ok(fake_send(m->conn, 0, ALWAYS));
		assert_int_equal(fake_qp(m->conn)->sq_count, 2);
		if (!breaks)
			fake_sent(m->conn, 0, IBV_WC_SUCCESS);
		fake_sent(m->conn, 1, IBV_WC_WR_FLUSH_ERR);
		fake_finish_down(f);
		fake_bury(f, &m->conn);
		assert_int_equal(f->got, 6);
		expect(m, 0, 50, 0);
		expect(m, 1, 0, 0);
		for (i = 1; i < 4; i++)
			expect(m, i + 1, (uint64_t)i, RPMA_RT_C_NOT_POSTED);
	}
}

/*
 * A drain begins while a thread is inside: the drain posts published work
 * requests.
 */
static void drain_it(void *arg)
{
	const struct meanwhile *m = arg;

	post_three(arg);
	ok(rpma_rt_conn_drain(m->conn, 0));
	assert_int_equal(fake_send(m->conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
}

FAKE_TEST(verb__drained_meanwhile_POSTED)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);

	fake_when_posting(drain_it, m);
	ok(fake_send(m->conn, 0, ALWAYS));
	fake_finish_down(f);
	assert_int_equal(fake_qp(m->conn)->sq_count, 6);
	expect_posted(m, 4, 3);
	assert_int_equal(fake_sq_id(m->conn, 5),
			 rt_wr_id_internal(RT_SQ_MARKER, m->conn->slot));
	fake_bury(f, &m->conn);
}

/* ------------------------------------------------- before publication --- */

static void close_route(void *arg)
{
	struct meanwhile *m = arg;

	ok(rpma_rt_route_close(m->route, NULL));
}

/*
 * The route is closed while a thread prepares: nothing is posted along the
 * route.
 */
FAKE_TEST(prepare__route_closed_meanwhile_CLOSED)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);
	uint32_t i;

	ok(rpma_rt_route_open(m->conn, RPMA_RT_SEND_SIDE, f->queue, &m->route));
	fake_when_preparing(close_route, m);
	assert_int_equal(flush(m, 1), RPMA_RT_E_CLOSED);
	assert_int_equal(fake_qp(m->conn)->sq_count, 0);
	/* and no place is kept */
	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(m->conn, i, ALWAYS));
	fake_bury(f, &m->conn);
}

static void set_queue(void *arg)
{
	const struct meanwhile *m = arg;

	ok(rpma_rt_conn_set_queue(m->conn, m->queue));
}

/* The connection is led to another queue meanwhile: taken, and delivered
 * there. */
FAKE_TEST(prepare__led_elsewhere_meanwhile_TAKEN)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);

	ok(rpma_rt_queue_new(f->rt, NULL, &m->queue));
	fake_when_preparing(set_queue, m);
	ok(flush(m, 1));
	assert_int_equal(fake_take(f, f->queue), 1); /* ROUTE_CLOSED */
	fake_sent(m->conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, m->queue), 1);
	expect(m, 0, 1, 0);
	ok(rpma_rt_conn_set_queue(m->conn, f->queue));
	fake_take(f, m->queue);
	ok(rpma_rt_queue_delete(&m->queue));
	fake_bury(f, &m->conn);
}

static void close_conn(void *arg)
{
	const struct meanwhile *m = arg;

	ok(rpma_rt_conn_close(m->conn));
}

FAKE_TEST(prepare__closed_meanwhile_CLOSED)
{
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);

	fake_when_preparing(close_conn, m);
	assert_int_equal(flush(m, 1), RPMA_RT_E_CLOSED);
	fake_bury(f, &m->conn);
	assert_int_equal(f->got, 1);
}

static void post_one(void *arg)
{
	struct meanwhile *m = arg;

	m->ret = fake_send(m->conn, 7, ALWAYS);
}

/* A thread that prepares delays no other thread. */
FAKE_TEST(prepare__another_posts_AT_ONCE)
{
	struct meanwhile *m = begin(f, WAITING);

	fake_when_preparing(post_one, m);
	ok(flush(m, 1));
	assert_int_equal(m->ret, 0);
	expect_posted(m, 0, 7);
	expect_posted(m, 1, 1);
	fake_bury(f, &m->conn);
}

/* A post is refused because another thread has all places, and the other thread
 * gives the places back without a post: no completion will tell the refused
 * poster. */
FAKE_TEST(prepare__refused_places_are_TOLD)
{
	struct rpma_rt_wr wrs[FAKE_SQ];
	struct meanwhile *m = begin(f, RPMA_RT_NO_WAITING);
	int i;

	for (i = 0; i < FAKE_SQ; i++)
		wrs[i] = (struct rpma_rt_wr){.op = RPMA_RT_OP_FLUSH,
					     .flags = ALWAYS,
					     .remote = fake_remote,
					     .len = 8,
					     .flush_type =
						     RPMA_FLUSH_TYPE_VISIBILITY,
					     .context = (uint64_t)i};
	fake_when_preparing(post_one, m);
	fake_fail("wr_flush", FAKE_SQ, RPMA_E_NOSUPP);
	assert_int_equal(rpma_rt_post_send(m->conn, wrs, FAKE_SQ),
			 RPMA_E_NOSUPP);
	fake_round(f);
	fake_round(f);
	if (m->ret != 0) {
		assert_int_equal(m->ret, RPMA_E_AGAIN);
		assert_int_equal(fake_take(f, f->queue), 1);
		assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	}
	fake_bury(f, &m->conn);
}

/* Another poster is refused, and then a cancelled future makes a place. */
static void refuse_another_then_cancel(void *arg)
{
	struct meanwhile *m = arg;
	enum rpma_rt_cancelled cancelled;

	m->ret = fake_send(m->conn, 7, ALWAYS);
	ok(rpma_rt_future_cancel(&m->future, &cancelled));
}

/* A refused poster that sees a place at the second look leaves the want of the
 * side alone: another poster was refused before the place came. */
FAKE_TEST(prepare__refused_beside_one_that_finds_room_WRITABLE)
{
	struct rpma_rt_wr wrs[2] = {{.op = RPMA_RT_OP_FLUSH,
				     .flags = ALWAYS,
				     .remote = fake_remote,
				     .len = 8,
				     .flush_type = RPMA_FLUSH_TYPE_VISIBILITY}};
	struct rpma_rt_wr waits = {.op = RPMA_RT_OP_SEND, .flags = ALWAYS};
	struct meanwhile *m = begin_with(f, 2, 1);
	uint32_t i;

	waits.future = &m->future;
	wrs[1] = wrs[0];
	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(m->conn, i, ALWAYS));
	ok(fake_post_send(m->conn, &waits));
	fake_when_preparing(refuse_another_then_cancel, m);
	assert_int_equal(rpma_rt_post_send(m->conn, wrs, 2), 1);
	assert_int_equal(m->ret, RPMA_E_AGAIN);
	fake_round(f);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	ok(rpma_rt_future_drop(&m->future));
	fake_bury(f, &m->conn);
}

TEST_MAIN()
