/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Futures on a made-up device, each step by hand: when a result is seen, what a
 * cancel and a drop find before and after the result, the order of futures for
 * messages, functions, links, death, returned slots.
 */

#include <string.h>

#include "base/cancel.h"
#include "base/owner.h"
#include "base/self.h"
#include "future/future.h"
#include "poller/future.h"
#include "rt_fake.h"

#define FUTURES 4
#define LARGE	200

static struct rpma_rt_conn *established(struct fake *f, uint32_t futures)
{
	f->rt_cfg.futures = futures;
	return fake_established(f);
}

static int post_recv(struct rpma_rt_conn *conn, uint64_t context,
		     struct rpma_rt_future *future)
{
	const struct rpma_rt_recv_wr wr = {.context = context,
					   .future = future};

	return fake_post_recv(conn, &wr);
}

static int post_send(struct rpma_rt_conn *conn, uint64_t context,
		     struct rpma_rt_future *future)
{
	const struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_SEND, .context = context, .future = future};

	return fake_post_send(conn, &wr);
}

/* Until there is nothing more to do. */
static void run(struct fake *f)
{
	while (fake_round(f) > 0)
		;
}

static struct rpma_rt_completion completed(const struct rpma_rt_future *future,
					   uint64_t context,
					   enum ibv_wc_status status)
{
	struct rpma_rt_completion cmpl;

	assert_int_equal(rpma_rt_future_poll(future, &cmpl), 1);
	assert_int_equal(cmpl.context, context);
	assert_int_equal(cmpl.status, status);
	return cmpl;
}

static void pending(const struct rpma_rt_future *future)
{
	struct rpma_rt_completion cmpl;

	assert_int_equal(rpma_rt_future_poll(future, &cmpl), 0);
}

/* Asserts that the queue has exactly this message. */
static void left(struct fake *f, uint64_t context)
{
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[0].status, IBV_WC_SUCCESS);
	assert_int_equal(f->items[0].context, context);
}

/* ------------------------------------------------------------- results --- */

/* More than a batch of the poller's has room for. */
FAKE_TEST(poll__many_at_once)
{
	struct rpma_rt_future *futures = calloc(LARGE, sizeof(*futures));
	struct rpma_rt_conn *conn;
	uint32_t i;

	assert_non_null(futures);
	f->rt_cfg.sq_size = LARGE;
	conn = established(f, LARGE);
	for (i = 0; i < LARGE; i++)
		ok(post_send(conn, i, &futures[i]));
	/* broken at the first: all the others are kept, finished at once */
	fake_sent(conn, 0, IBV_WC_RETRY_EXC_ERR);
	for (i = 1; i < LARGE; i++)
		fake_sent(conn, i, IBV_WC_WR_FLUSH_ERR);
	run(f);
	fake_bury(f, &conn);
	completed(&futures[0], 0, IBV_WC_RETRY_EXC_ERR);
	for (i = 0; i < LARGE; i++) {
		if (i > 0)
			completed(&futures[i], i, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(rpma_rt_future_drop(&futures[i]), 0);
	}
	free(futures);
}

/* A round that completes more futures than the batch of the poller has room
 * for: each CQ gives 32. */
FAKE_TEST(poll__three_full_cqs_in_a_round)
{
	enum { CONNS = 3, EACH = 32 };
	struct rpma_rt_future futures[CONNS][EACH];
	struct rpma_rt_conn *conns[CONNS];
	const int max_cqe = fake_attr.max_cqe;
	uint32_t c;
	uint32_t i;

	fake_attr.max_cqe = EACH + FAKE_RQ + 2; /* a CQ for each connection */
	f->rt_cfg.sq_size = EACH;
	for (c = 0; c < CONNS; c++)
		conns[c] = established(f, EACH);
	for (c = 0; c < CONNS; c++) {
		for (i = 0; i < EACH; i++)
			ok(post_send(conns[c], 100 * c + i, &futures[c][i]));
		for (i = 0; i < EACH; i++)
			fake_sent(conns[c], i, IBV_WC_SUCCESS);
	}
	assert_int_equal(fake_round(f), CONNS * EACH);
	for (c = 0; c < CONNS; c++) {
		for (i = 0; i < EACH; i++) {
			completed(&futures[c][i], 100 * c + i, IBV_WC_SUCCESS);
			assert_int_equal(rpma_rt_future_drop(&futures[c][i]),
					 0);
		}
		/* the credits are back */
		for (i = 0; i < EACH; i++)
			ok(post_send(conns[c], i, &futures[c][i]));
		for (i = 0; i < EACH; i++)
			assert_int_equal(rpma_rt_future_drop(&futures[c][i]),
					 0);
		fake_bury(f, &conns[c]);
	}
	fake_attr.max_cqe = max_cqe;
}

FAKE_TEST(link__the_error_of_a_part)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future future;
	const struct rpma_rt_wr wr[2] = {
		{.op = RPMA_RT_OP_SEND,
		 .flags = RPMA_RT_F_LINKED | RPMA_RT_F_PART},
		{.op = RPMA_RT_OP_SEND, .context = 7, .future = &future}};

	assert_int_equal(rpma_rt_post_send(conn, wr, 2), 2);
	fake_sent(conn, 0, IBV_WC_REM_ACCESS_ERR);
	fake_sent(conn, 1, IBV_WC_WR_FLUSH_ERR);
	run(f);
	fake_bury(f, &conn);
	completed(&future, 7, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(rpma_rt_future_drop(&future), 0);
}

/* ----------------------------------------------------- cancel and drop --- */

static void cancel(const struct rpma_rt_future *future,
		   enum rpma_rt_cancelled expected)
{
	enum rpma_rt_cancelled cancelled;

	ok(rpma_rt_future_cancel(future, &cancelled));
	assert_int_equal(cancelled, expected);
}

/* early: the poller gets the request before the message, else after. */
static void cancel_beside_a_message(struct fake *f, bool early)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	ok(post_recv(conn, 3, &future));
	if (!early)
		fake_received(conn, 0, IBV_WC_SUCCESS);
	cancel(&future, RPMA_RT_CANCELLED_DETACHED);
	run(f);
	if (early) {
		pending(&future);
		fake_received(conn, 0, IBV_WC_SUCCESS);
		run(f);
	}
	cmpl = completed(&future, 3, IBV_WC_GENERAL_ERR);
	assert_int_equal(cmpl.flags, RPMA_RT_C_DETACHED);
	left(f, 3);
	cancel(&future, RPMA_RT_CANCELLED_DETACHED);
	assert_int_equal(rpma_rt_future_drop(&future), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(cancel__message_to_the_queue)
{
	cancel_beside_a_message(f, true);
	cancel_beside_a_message(f, false);
}

/* The message comes to the queue, whenever the drop happens. */
FAKE_TEST(drop__message_to_the_queue)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future future;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ok(post_recv(conn, i, &future));
		if (i == 0) {
			assert_int_equal(rpma_rt_future_drop(&future), 0);
			run(f);
		}
		fake_received(conn, i, IBV_WC_SUCCESS);
		if (i == 1)
			run(f);
		if (i > 0)
			assert_int_equal(rpma_rt_future_drop(&future), 0);
		run(f);
		left(f, i);
	}
	fake_bury(f, &conn);
}

/* ----------------------------------------------------------- functions --- */

static int calls;
static struct rpma_rt_completion heard;

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct rpma_rt_future *future = arg;

	calls++;
	heard = *cmpl;
	if (future != NULL)
		assert_int_equal(rpma_rt_future_drop(future), 1);
}

FAKE_TEST(then__called_once)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future future;

	calls = 0;
	ok(post_recv(conn, 1, &future));
	ok(rpma_rt_future_then(&future, hear, &future));
	run(f);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	run(f);
	assert_int_equal(calls, 1);
	assert_int_equal(heard.context, 1);
	assert_int_equal(future.opaque[0], 0);
	ok(post_recv(conn, 2, &future)); /* the result is there */
	fake_received(conn, 1, IBV_WC_SUCCESS);
	run(f);
	ok(rpma_rt_future_then(&future, hear, NULL));
	assert_int_equal(calls, 1);
	run(f);
	assert_int_equal(calls, 2);
	assert_int_equal(rpma_rt_future_drop(&future), 1);
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_bury(f, &conn);
}

/* Successes in a row, of which one in the middle leads to a function, one was
 * cancelled, one was dropped, and one has no future. */
FAKE_TEST(row__each_future_AS_ASKED)
{
	enum { ROW = 8 };
	struct rpma_rt_conn *conn = established(f, ROW);
	struct rpma_rt_future futures[ROW];
	struct rpma_rt_completion cmpl;
	uint32_t i;

	calls = 0;
	for (i = 0; i < ROW; i++)
		ok(post_recv(conn, i, i == 5 ? NULL : &futures[i]));
	ok(rpma_rt_future_then(&futures[1], hear, NULL));
	cancel(&futures[2], RPMA_RT_CANCELLED_DETACHED);
	assert_int_equal(rpma_rt_future_drop(&futures[3]), 0);
	run(f);
	for (i = 0; i < ROW; i++)
		fake_received(conn, i, IBV_WC_SUCCESS);
	run(f);
	completed(&futures[0], 0, IBV_WC_SUCCESS);
	assert_int_equal(calls, 1);
	assert_int_equal(heard.context, 1);
	cmpl = completed(&futures[2], 2, IBV_WC_GENERAL_ERR);
	assert_int_equal(cmpl.flags, RPMA_RT_C_DETACHED);
	for (i = 4; i < ROW; i++) {
		if (i != 5)
			completed(&futures[i], i, IBV_WC_SUCCESS);
	}
	/* messages of the cancelled and the dropped, and without a future */
	assert_int_equal(fake_take(f, f->queue), 3);
	assert_int_equal(f->items[0].context, 2);
	assert_int_equal(f->items[1].context, 3);
	assert_int_equal(f->items[2].context, 5);
	for (i = 0; i < ROW; i++) {
		if (i != 3 && i != 5)
			assert_int_equal(rpma_rt_future_drop(&futures[i]),
					 i == 1);
	}
	fake_bury(f, &conn);
}

FAKE_TEST(take__as_many_as_are_COMPLETE)
{
	enum { ROW = 6 };
	struct rpma_rt_conn *conn = established(f, ROW);
	struct rpma_rt_completion items[ROW];
	struct rpma_rt_future futures[ROW];
	uint32_t taken = 0;
	uint32_t done;
	uint32_t i;

	for (i = 0; i < ROW; i++)
		ok(post_recv(conn, i, &futures[i]));
	run(f);
	for (done = 0; done <= ROW; done += 3) {
		for (i = taken; i < done; i++)
			fake_received(conn, i, IBV_WC_SUCCESS);
		run(f);
		assert_int_equal(rpma_rt_futures_take(&futures[taken],
						      ROW - (int)taken, items),
				 done - taken);
		for (i = 0; taken < done; i++, taken++) {
			assert_int_equal(items[i].context, taken);
			assert_int_equal(items[i].status, IBV_WC_SUCCESS);
			assert_int_equal(futures[taken].opaque[0], 0);
		}
		if (done == ROW)
			break;
		pending(&futures[taken]);
	}
	/* the slots are free */
	for (i = 0; i < ROW; i++)
		ok(post_recv(conn, i, &futures[i]));
	fake_bury(f, &conn);
	assert_int_equal(rpma_rt_futures_take(futures, 4, items), 4);
	assert_int_not_equal(items[3].status, IBV_WC_SUCCESS);
	assert_int_equal(rpma_rt_futures_take(&futures[4], 2, items), 2);
}

/* Futures that are cancelled, that led to a function, that were polled before,
 * and of an event, are taken as by a poll and a drop; a handle that was dropped
 * ends the call. */
FAKE_TEST(take__each_future_AS_A_POLL_AND_A_DROP)
{
	enum { ROW = 5 };
	struct rpma_rt_conn *conn = established(f, ROW);
	struct rpma_rt_completion items[ROW + 2];
	struct rpma_rt_future futures[ROW + 2];
	uint32_t i;

	calls = 0;
	for (i = 0; i < ROW; i++)
		ok(post_recv(conn, i, &futures[i]));
	ok(rpma_rt_conn_future(conn, RPMA_RT_EVENT_ESTABLISHED, &futures[ROW]));
	futures[ROW + 1] = (struct rpma_rt_future){{0, 0}};
	ok(rpma_rt_future_then(&futures[1], hear, NULL));
	cancel(&futures[2], RPMA_RT_CANCELLED_DETACHED);
	run(f);
	for (i = 0; i < ROW; i++)
		fake_received(conn, i, IBV_WC_SUCCESS);
	run(f);
	completed(&futures[3], 3, IBV_WC_SUCCESS);
	assert_int_equal(calls, 1);
	assert_int_equal(rpma_rt_futures_take(futures, ROW + 2, items),
			 ROW + 1);
	for (i = 0; i < ROW; i++) {
		assert_int_equal(items[i].context, i);
		assert_int_equal(items[i].flags & RPMA_RT_C_DETACHED,
				 i == 2 ? RPMA_RT_C_DETACHED : 0);
	}
	assert_int_equal(items[ROW].kind, RPMA_RT_EVENT);
	assert_int_equal(items[ROW].opcode, RPMA_RT_EVENT_ESTABLISHED);
	assert_int_equal(rpma_rt_futures_take(futures, ROW, items),
			 RPMA_E_INVAL);
	left(f, 2); /* the message of the cancelled future */
	/* the slots are free */
	for (i = 0; i < ROW; i++)
		ok(post_recv(conn, i, &futures[i]));
	for (i = 0; i < ROW; i++)
		assert_int_equal(rpma_rt_future_drop(&futures[i]), 0);
	fake_bury(f, &conn);
}

static struct rpma_rt_future cancelled_late;

static void take_cancelled(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct rpma_rt_completion item;

	(void)cmpl;
	(void)arg;
	/* published, and the poller has still to do what was asked */
	calls++;
	assert_int_equal(rpma_rt_futures_take(&cancelled_late, 1, &item), 0);
}

/* A future that completes while the poller does not know of the cancel yet. */
FAKE_TEST(take__cancelled_a_moment_ago_NOT_YET)
{
	struct rpma_rt_conn *conn = established(f, 2);
	struct rpma_rt_completion item;
	struct rpma_rt_future first;

	calls = 0;
	ok(post_recv(conn, 0, &first));
	ok(post_recv(conn, 1, &cancelled_late));
	ok(rpma_rt_future_then(&first, take_cancelled, NULL));
	run(f);
	cancel(&cancelled_late, RPMA_RT_CANCELLED_DETACHED);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_received(conn, 1, IBV_WC_SUCCESS);
	run(f);
	assert_int_equal(calls, 1);
	assert_int_equal(rpma_rt_futures_take(&cancelled_late, 1, &item), 1);
	assert_int_equal(item.flags, RPMA_RT_C_DETACHED);
	assert_int_equal(rpma_rt_futures_take(&first, 1, &item), 1);
	left(f, 1);
	fake_bury(f, &conn);
}

/* A drop that forbids the function, before and after the result. */
FAKE_TEST(then__dropped_never)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future future;
	uint32_t i;

	calls = 0;
	for (i = 0; i < 2; i++) {
		ok(post_recv(conn, i, &future));
		if (i == 1) {
			fake_received(conn, i, IBV_WC_SUCCESS);
			run(f);
		}
		ok(rpma_rt_future_then(&future, hear, NULL));
		assert_int_equal(rpma_rt_future_drop(&future), 0);
		if (i == 0)
			fake_received(conn, i, IBV_WC_SUCCESS);
		run(f);
		left(f, i);
	}
	assert_int_equal(calls, 0);
	fake_bury(f, &conn);
}

FAKE_TEST(then__cancelled_never)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future future;

	calls = 0;
	ok(post_recv(conn, 1, &future));
	ok(rpma_rt_future_then(&future, hear, NULL));
	run(f);
	cancel(&future, RPMA_RT_CANCELLED_DETACHED);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	run(f);
	left(f, 1);
	completed(&future, 1, IBV_WC_GENERAL_ERR);
	assert_int_equal(calls, 0);
	assert_int_equal(rpma_rt_future_drop(&future), 0);
	fake_bury(f, &conn);
}

/* A result led to the queue is not taken back: the result comes there. */
FAKE_TEST(then__to_the_queue_then_cancelled_DONE)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_future future;
	int i;

	ok(post_recv(conn, 5, &future));
	ok(rpma_rt_future_deliver(&future, NULL));
	for (i = 0; i < 2; i++) {
		ok(rpma_rt_future_cancel(&future, &cancelled));
		assert_int_equal(cancelled, RPMA_RT_CANCELLED_DONE);
		pending(&future);
	}
	fake_received(conn, 0, IBV_WC_SUCCESS);
	run(f);
	left(f, 5);
	ok(rpma_rt_future_cancel(&future, &cancelled));
	assert_int_equal(cancelled, RPMA_RT_CANCELLED_DONE);
	completed(&future, 5, IBV_WC_GENERAL_ERR);
	assert_int_equal(rpma_rt_future_drop(&future), 1);
	fake_bury(f, &conn);
}

/* ---------------------------------------------------------------- ends --- */

/* A message in a slot whose connection has closed stays there. */
FAKE_TEST(death__a_result_stays)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future futures[2];

	ok(post_recv(conn, 1, &futures[0]));
	ok(post_recv(conn, 2, &futures[1]));
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_received(conn, 1, IBV_WC_SUCCESS);
	run(f);
	fake_bury(f, &conn);
	ok(rpma_rt_future_deliver(&futures[0], NULL));
	run(f);
	completed(&futures[0], 1, IBV_WC_SUCCESS);
	assert_int_equal(rpma_rt_future_drop(&futures[0]), 0);
	assert_int_equal(rpma_rt_future_drop(&futures[1]), 0);
	run(f);
}

/* ------------------------------------------------ a cancel at the end --- */

/* Events between the look of a cancel at a pending slot and its next step. */
static struct fake *ending;
static struct rpma_rt_conn *ends;
static bool is_stopped;

bool __real_rt_future_take_post_back(struct rt_future *slot);
bool __wrap_rt_future_take_post_back(struct rt_future *slot);
bool __wrap_rt_future_take_post_back(struct rt_future *slot)
{
	struct fake *f = ending;

	ending = NULL;
	if (f != NULL) {
		fake_sent(ends, 0, IBV_WC_SUCCESS);
		fake_received(ends, 0, IBV_WC_SUCCESS);
		fake_received(ends, 1, IBV_WC_SUCCESS);
		run(f);
		fake_bury(f, &ends);
		/* relaxed: a single thread */
		atomic_store_explicit(&f->rt->stopped, is_stopped,
				      memory_order_relaxed);
	}
	return __real_rt_future_take_post_back(slot);
}

/* The call says cancelled, so the future has not succeeded, and its holder has
 * no result; except a message without a queue. */
static void cancel_at_the_end(struct fake *f, int which)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future futures[4];
	struct rpma_rt_completion cmpl;
	int i;

	ends = conn;
	ok(post_send(conn, 0, &futures[0]));
	ok(post_recv(conn, 1, &futures[1]));
	ok(post_recv(conn, 2, &futures[2]));
	ok(rpma_rt_conn_future(conn, RPMA_RT_EVENT_CLOSED, &futures[3]));
	run(f);
	ending = f;
	cancel(&futures[which], RPMA_RT_CANCELLED_DETACHED);
	assert_null(ending);
	run(f);
	/* relaxed: a single thread */
	atomic_store_explicit(&f->rt->stopped, false, memory_order_relaxed);
	cancel(&futures[which], RPMA_RT_CANCELLED_DETACHED);
	assert_int_equal(rpma_rt_future_wait_some(&futures[which], 1, 1, 0),
			 RPMA_RT_E_FAILED);
	assert_int_equal(rpma_rt_future_wait_some(futures, 4, 4, 0),
			 RPMA_RT_E_FAILED);
	assert_int_equal(rpma_rt_future_wait_some(futures, 4, 3, 0), 3);
	assert_int_equal(rpma_rt_future_poll(&futures[which], &cmpl), 1);
	if (which == 1) {
		assert_int_equal(cmpl.status, IBV_WC_SUCCESS);
		assert_int_equal(cmpl.context, 1);
	} else {
		assert_int_equal(cmpl.status, IBV_WC_GENERAL_ERR);
		assert_int_equal(cmpl.flags, RPMA_RT_C_DETACHED);
		assert_int_equal(cmpl.kind, RPMA_RT_COMPLETION);
	}
	for (i = 0; i < 4; i++)
		ok(rpma_rt_future_drop(&futures[i]));
	run(f);
}

FAKE_TEST(cancel__carried_out_after_CLOSED)
{
	is_stopped = false;
	cancel_at_the_end(f, 0);
	cancel_at_the_end(f, 1);
	cancel_at_the_end(f, 3);
}

FAKE_TEST(cancel__carried_out_by_the_stop)
{
	is_stopped = true;
	cancel_at_the_end(f, 0);
	cancel_at_the_end(f, 1);
	cancel_at_the_end(f, 3);
}

/* --------------------------------------------------------------- slots --- */

#ifdef RT_POISONS
/* A free slot is never read. */
FAKE_TEST(drop__slot_is_poisoned)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct rpma_rt_future future;
	struct rt_future *slot;

	ok(post_send(conn, 1, &future));
	slot = rt_future_slot(&future);
	assert_null(
		__asan_region_is_poisoned(&slot->result, sizeof(slot->result)));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	run(f);
	completed(&future, 1, IBV_WC_SUCCESS);
	assert_int_equal(rpma_rt_future_drop(&future), 0);
	assert_ptr_equal(
		__asan_region_is_poisoned(&slot->result, sizeof(slot->result)),
		&slot->result);
	fake_bury(f, &conn);
}
#endif

/* The slots of a refused post are free again. */
FAKE_TEST(post__refused_slots_come_back)
{
	struct rpma_rt_conn *conn = established(f, 1);
	struct rpma_rt_future future = {{0, 0}};
	struct rpma_rt_wr wr[2] = {{.op = RPMA_RT_OP_SEND, .future = &future}};

	/* the second work request is wrong: nothing is posted */
	assert_int_equal(rpma_rt_post_send(conn, wr, 2), RPMA_E_INVAL);
	assert_int_equal(future.opaque[0], 0);
	/* the second has no slot: the first is posted, alone */
	wr[1] = wr[0];
	assert_int_equal(rpma_rt_post_send(conn, wr, 2), 1);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_FUTURES);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	run(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	assert_int_equal(rpma_rt_future_drop(&future), 0);
	/* a link has slots for all parts, or no slot */
	wr[0].flags |= RPMA_RT_F_LINKED;
	assert_int_equal(rpma_rt_post_send(conn, wr, 2), RPMA_E_AGAIN);
	assert_int_equal(future.opaque[0], 0);
	ok(post_send(conn, 1, &future));
	assert_int_equal(rpma_rt_future_drop(&future), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(post__refused_by_the_device_NOT_POSTED)
{
	struct rpma_rt_conn *conn = established(f, 1);
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	fake_fail("post_send", 1, ENOMEM);
	ok(post_send(conn, 1, &future));
	fake_bury(f, &conn);
	assert_int_equal(rpma_rt_future_poll(&future, &cmpl), 1);
	assert_int_equal(cmpl.context, 1);
	assert_int_equal(cmpl.flags, RPMA_RT_C_NOT_POSTED);
	assert_int_equal(cmpl.status, IBV_WC_GENERAL_ERR);
	assert_int_equal(rpma_rt_future_drop(&future), 0);
}

/* As when another connection ends. */
static void run_free(struct fake *f)
{
	run(f);
	rt_conn_free_left(f->rt);
}

/* A connection has as many futures as its configuration says, also in the slots
 * of a past connection with more. */
FAKE_TEST(block__used_again_by_one_with_fewer)
{
	struct rpma_rt_conn *conn = established(f, FUTURES + 4);
	struct rpma_rt_future futures[FUTURES + 4];
	int memory;
	int i;

	for (i = 0; i < FUTURES + 4; i++)
		ok(post_recv(conn, 1, &futures[i]));
	fake_bury(f, &conn);
	for (i = 0; i < FUTURES + 4; i++)
		assert_int_equal(rpma_rt_future_drop(&futures[i]), 0);
	run_free(f);
	memory = fake_memory();
	conn = established(f, FUTURES + 1);
	for (i = 0; i < FUTURES + 1; i++)
		ok(post_recv(conn, 1, &futures[i]));
	assert_int_equal(post_recv(conn, 1, &futures[i]), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_FUTURES);
	fake_bury(f, &conn);
	for (i = 0; i < FUTURES + 1; i++)
		assert_int_equal(rpma_rt_future_drop(&futures[i]), 0);
	run_free(f);
	assert_int_equal(fake_memory(), memory);
}

/* As many blocks as are held stay, and no more. */
FAKE_TEST(block__held_by_many_others_used_again)
{
	struct rpma_rt_future held[LARGE / 4];
	struct rpma_rt_future future;
	struct rpma_rt_conn *conn;
	int memory = 0;
	int i;

	for (i = 0; i < LARGE / 4; i++) {
		conn = established(f, FUTURES);
		ok(post_send(conn, 1, &held[i]));
		fake_bury(f, &conn);
	}
	run_free(f);
	for (i = 0; i < LARGE / 4; i++) {
		conn = established(f, FUTURES);
		ok(post_recv(conn, 1, &future));
		fake_bury(f, &conn);
		assert_int_equal(rpma_rt_future_drop(&future), 0);
		run_free(f);
		if (i == 0)
			memory = fake_memory();
	}
	assert_int_equal(fake_memory(), memory);
	for (i = 0; i < LARGE / 4; i++)
		assert_int_equal(rpma_rt_future_drop(&held[i]), 0);
}

/* --------------------------------------------------------------- a wait --- */

#define ROUNDS 5

/* A poller of the waiting thread; the send of the future completes in the last
 * round. */
struct turns {
	struct rt_owned owned; /* first */
	struct rt_bell bell;
	struct rt_inbox inbox;
	struct fake *fake;
	struct rpma_rt_conn *conn;
	int rounds;
};

static int sleeps;

void __real_rt_cancel_sleep_armed(struct rt_bell *bell, int64_t timeout_ns,
				  void (*cancelled)(void *arg), void *arg);
void __wrap_rt_cancel_sleep_armed(struct rt_bell *bell, int64_t timeout_ns,
				  void (*cancelled)(void *arg), void *arg);
void __wrap_rt_cancel_sleep_armed(struct rt_bell *bell, int64_t timeout_ns,
				  void (*cancelled)(void *arg), void *arg)
{
	sleeps++;
	__real_rt_cancel_sleep_armed(bell, timeout_ns, cancelled, arg);
}

static void take_turn(struct rt_owned *owned)
{
	struct turns *turns = (struct turns *)owned;

	if (++turns->rounds != ROUNDS)
		return;
	fake_sent(turns->conn, 0, IBV_WC_SUCCESS);
	run(turns->fake);
}

FAKE_TEST(wait__runs_its_poller_BEFORE_SLEEPING)
{
	struct rpma_rt_conn *conn = established(f, FUTURES);
	struct turns turns = {.fake = f, .conn = conn};
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	ok(rt_bell_init(&turns.bell));
	ok(rt_inbox_init(&turns.inbox, &turns.bell));
	ok(rt_owner_start());
	rt_owner_init(&turns.owned, 1, &turns.inbox, take_turn);
	ok(rt_owner_enter(&turns.owned));
	ok(rt_owner_attach(&turns.owned));
	rt_owner_leave(&turns.owned);
	/* no other thread wants the CPU, on a busy machine too */
	rt_share_known.share = RT_SHARE_ALONE;
	rt_share_known.until_ns = UINT64_MAX;
	ok(post_send(conn, 1, &future));
	sleeps = 0;
	assert_int_equal(rpma_rt_future_wait(&future, &cmpl, -1), 1);
	assert_int_equal(turns.rounds, ROUNDS);
	assert_int_equal(sleeps, 0);
	rt_share_known.until_ns = 0;
	assert_int_equal(rpma_rt_future_drop(&future), 0);
	assert_true(rt_owner_close(&turns.owned));
	rt_inbox_fini(&turns.inbox);
	rt_bell_fini(&turns.bell);
	fake_bury(f, &conn);
}

/* ------------------------------------------------------- rows of slots --- */

/* Takes rows until no slot is free, and drops none. Returns the number of
 * slots, each of which is taken once. */
static uint32_t take_all_rows(struct rt_futures *block, bool *is_taken)
{
	struct rt_future *first = NULL;
	uint32_t generation;
	uint32_t total = 0;
	uint32_t n;
	uint32_t i;

	while ((n = rt_future_take_row(block, LARGE, &first)) > 0) {
		for (i = 0; i < n; i++) {
			assert_false(is_taken[first - block->slots + i]);
			is_taken[first - block->slots + i] = true;
			rt_future_begin(&first[i], i, &generation);
		}
		total += n;
	}
	return total;
}

static void free_slot(struct rt_futures *block, bool *is_taken, int index)
{
	rt_future_free_holder(&block->slots[index]);
	is_taken[index] = false;
}

FAKE_TEST(rows__EACH_FREE_SLOT_IS_TAKEN_ONCE)
{
	struct rpma_rt_conn *conn = established(f, LARGE);
	struct rt_futures *block = conn->side[RPMA_RT_SEND_SIDE].futures;
	bool is_taken[LARGE] = {false};
	int round;
	int i;

	assert_int_equal(take_all_rows(block, is_taken), LARGE);
	assert_false(rt_future_has_free(block));
	/* slots used an odd and an even number of times, side by side */
	for (round = 0; round < 3; round++) {
		for (i = round; i < LARGE; i += 3)
			free_slot(block, is_taken, i);
		assert_true(rt_future_has_free(block));
		assert_int_equal(take_all_rows(block, is_taken),
				 (LARGE - round + 2) / 3);
		assert_false(rt_future_has_free(block));
		free_slot(block, is_taken, LARGE / 2);
		assert_int_equal(take_all_rows(block, is_taken), 1);
	}
	for (i = 0; i < LARGE; i++)
		free_slot(block, is_taken, i);
	assert_int_equal(rt_future_held(f->rt), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(rows__few_futures_USE_FEW_SLOTS)
{
	struct rpma_rt_conn *conn = established(f, LARGE);
	struct rt_futures *block = conn->side[RPMA_RT_SEND_SIDE].futures;
	struct rpma_rt_future futures[2];
	int i;

	ok(post_send(conn, 0, &futures[1]));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	run(f);
	for (i = 1; i < 2 * FUTURES; i++) {
		ok(post_send(conn, (uint64_t)i, &futures[i % 2 == 0]));
		fake_sent(conn, (uint64_t)i, IBV_WC_SUCCESS);
		run(f);
		completed(&futures[i % 2 != 0], (uint64_t)i - 1,
			  IBV_WC_SUCCESS);
		assert_int_equal(rpma_rt_future_drop(&futures[i % 2 != 0]), 0);
	}
	assert_int_equal(rpma_rt_future_drop(&futures[i % 2 != 0]), 0);
	for (i = 2; i < LARGE; i++)
		/* relaxed: one thread */
		assert_int_equal(
			atomic_load_explicit(&block->slots[i].generation,
					     memory_order_relaxed),
			0);
	fake_bury(f, &conn);
}

TEST_MAIN()
