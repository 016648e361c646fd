/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.c -- futures in every order of the accesses of their holder and of
 * their poller: polled, waited for, cancelled, with a function, dropped, used
 * again, and the end of the poller, each while the work request completes. A
 * lost wake-up is an order in which every thread waits.
 *
 * The device is made up; the poller runs its rounds, and sleeps when its inbox
 * is empty.
 */

#include <time.h>

#include "explore.h"
#include "future/future.h"
#include "poller/source.h"
#include "rt_fake.h"

#define FUTURES 2

static struct fake *f;
static struct rpma_rt_conn *conns[FUTURES]; /* with one future, with two */
/*
 * with one future; room for one work request in the queue, for two in the line
 */
static struct rpma_rt_conn *narrow;

/* of an order */
static struct rpma_rt_conn *conn;
static struct rpma_rt_future futures[FUTURES];
static struct rt_future *slots[FUTURES];
static int posted;
static int completed;
static bool is_recv;
static bool is_holder_through;
static bool is_beside_out; /* a poster without a future */
static bool is_refused;	   /* a refused poster */
static int called;
static int taken; /* messages taken by the holder */
static bool is_dropped_called;
static struct rt_futures *source; /* of items; NULL: work requests */
static uint32_t offered;	  /* items */
static uint32_t refused;	  /* messages without a holder */

/* ------------------------------------------------- untraced parts --- */

static bool is_of_poller(const struct rt_inbox *inbox)
{
	return f != NULL && inbox == &f->poller->inbox;
}

void __real_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
void __wrap_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
void __wrap_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg)
{
	if (is_of_poller(inbox))
		explore_touch(inbox);
	__real_rt_inbox_push_mt(inbox, msg);
}

int __real_rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner,
				   int max);
int __wrap_rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner,
				   int max);
int __wrap_rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner, int max)
{
	if (is_of_poller(inbox))
		explore_touch(inbox);
	return __real_rt_inbox_run_some_owner(inbox, owner, max);
}

static bool is_rung(void *arg)
{
	const struct rt_bell *bell = arg;

	/* relaxed: one thread runs at a time */
	return atomic_load_explicit(&bell->word, memory_order_relaxed) ==
	       RT_BELL_AWAKE;
}

void __wrap_rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns);
void __wrap_rt_bell_sleep_armed(struct rt_bell *bell, int64_t timeout_ns)
{
	(void)timeout_ns; /* without end, in these plays */
	explore_wait(&bell->word, is_rung, bell);
}

/* Advances time with each look: a spinning thread spins once. */
int __wrap_clock_gettime(clockid_t which, struct timespec *time);
int __wrap_clock_gettime(clockid_t which, struct timespec *time)
{
	static long ms;

	(void)which;
	ms++;
	*time = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	return 0;
}

/* ------------------------------------------------------------ an order --- */

static int post(int index)
{
	const struct rpma_rt_recv_wr recv = {.context = (uint64_t)posted,
					     .future = &futures[index]};
	const struct rpma_rt_wr send = {.op = RPMA_RT_OP_SEND,
					.context = (uint64_t)posted,
					.future = &futures[index]};
	int ret = is_recv ? fake_post_recv(conn, &recv)
			  : fake_post_send(conn, &send);

	/* the device has the work request: after earlier stores */
	explore_touch(&f->poller->inbox);
	posted += ret == 0;
	return ret;
}

static void watch(const struct rt_future *slot)
{
	explore_watch(&slot->waiter, sizeof(slot->waiter));
	explore_watch(&slot->state, sizeof(slot->state));
	explore_watch(&slot->asked, sizeof(slot->asked));
	explore_watch(&slot->claim, sizeof(slot->claim));
	explore_watch(&slot->line, sizeof(slot->line));
}

static void watch_place(void)
{
	struct rt_future_place *place = rt_future_lot_take();

	EXPLORE_CHECK(place != NULL);
	explore_watch(&place->bell.word, sizeof(place->bell.word));
	explore_watch(&place->pushed, sizeof(place->pushed));
	rt_future_lot_return(place);
}

static void watch_block(const struct rt_futures *of)
{
	explore_watch(&of->requests, sizeof(of->requests));
	explore_watch(&of->msg_sent, sizeof(of->msg_sent));
	explore_watch(&of->ending, sizeof(of->ending));
	explore_watch(&of->sleepers, sizeof(of->sleepers));
	explore_watch(&f->poller->stopping, sizeof(f->poller->stopping));
	explore_watch(&f->rt->stopped, sizeof(f->rt->stopped));
	watch_place();
}

/* After an order that ended with a stop: its message may be in the inbox. */
static void go_on(void)
{
	/* relaxed, both: no thread runs */
	atomic_store_explicit(&f->rt->stopped, false, memory_order_relaxed);
	atomic_store_explicit(&f->poller->stopping, false,
			      memory_order_relaxed);
	while (fake_round(f) > 0)
		;
}

static void begin(int count)
{
	int i;

	go_on();
	conn = conns[count - 1];
	fake_qp(conn)->sq_count = 0;
	fake_qp(conn)->rq_count = 0;
	is_holder_through = is_dropped_called = false;
	called = taken = posted = completed = 0;
	explore_watch_nothing();
	for (i = 0; i < count; i++) {
		EXPLORE_CHECK(post(i) == 0);
		slots[i] = rt_future_slot(&futures[i]);
		watch(slots[i]);
	}
	watch_block(slots[0]->of);
}

static void begin_send(void)
{
	is_recv = false;
	begin(1);
}

static void begin_recv(void)
{
	is_recv = true;
	begin(1);
}

static void begin_two(void)
{
	is_recv = false;
	begin(2);
}

/* Runs when the device has the work requests, after earlier stores. */
static void in_verb(void *arg)
{
	explore_touch(&f->poller->inbox);
	fake_when_posting(in_verb, arg);
}

/* The queue is full, and the work request of the future stands in line. */
static void begin_line(void)
{
	go_on();
	conn = narrow;
	is_recv = false;
	fake_qp(conn)->sq_count = 0;
	is_holder_through = is_dropped_called = is_refused = false;
	called = taken = posted = completed = 0;
	explore_watch_nothing();
	EXPLORE_CHECK(fake_send(conn, 9, RPMA_F_COMPLETION_ON_ERROR) == 0);
	EXPLORE_CHECK(post(0) == 0);
	EXPLORE_CHECK(fake_qp(conn)->sq_count == 1);
	fake_when_posting(in_verb, NULL);
	slots[0] = rt_future_slot(&futures[0]);
	watch(slots[0]);
	watch_block(slots[0]->of);
}

static void begin_beside(void)
{
	begin_line();
	/* the last place */
	EXPLORE_CHECK(fake_send(conn, 7, RPMA_F_COMPLETION_ON_ERROR) == 0);
	is_beside_out = true;
}

static void count_drop(const struct rpma_rt_completion *item)
{
	(void)item;
	refused++;
}

static void begin_next(void)
{
	const struct rt_source_cfg cfg = {.kind = &rt_source_messages,
					  .poller = f->poller,
					  .futures = FUTURES,
					  .messages = 2,
					  .owner = f};
	uint32_t i;

	go_on();
	conn = NULL;
	is_holder_through = is_dropped_called = false;
	posted = completed = called = taken = 0;
	offered = refused = 0;
	is_recv = true;
	explore_watch_nothing();
	pthread_mutex_lock(&f->rt->lock);
	source = rt_source_new(&cfg);
	pthread_mutex_unlock(&f->rt->lock);
	EXPLORE_CHECK(source != NULL);
	for (i = 1; i <= FUTURES; i++)
		watch(&source->slots[i]);
	watch_block(source);
}

static void complete(uint32_t index)
{
	if (is_recv)
		fake_received(conn, index, IBV_WC_SUCCESS);
	else
		fake_sent(conn, index, IBV_WC_SUCCESS);
	completed++;
}

/* So many work requests the device has had. */
static int given(void)
{
	return conn == narrow ? (int)fake_qp(conn)->sq_count : posted;
}

/* Everything is back, and no message is lost or doubled. */
static void check(void)
{
	int got = fake_take(f, f->queue);

	EXPLORE_CHECK(rt_future_held(f->rt) == 0);
	EXPLORE_CHECK(taken + got == (is_recv ? posted : 0));
	EXPLORE_CHECK(called == is_dropped_called);
}

/* Asserts that the line is empty, places are free, and a refused poster was
 * told. */
static void check_line(void)
{
	fake_when_posting(NULL, NULL);
	EXPLORE_CHECK(rt_future_held(f->rt) == 0);
	EXPLORE_CHECK(fake_take(f, f->queue) == is_refused);
	EXPLORE_CHECK(rt_freelist_used(&conn->gate[0].turn.free) == 0);
	EXPLORE_CHECK(completed == given());
}

/* Each item was read, or is dropped with the source. */
static void check_next(void)
{
	rt_source_drop_mt(source);
	while (fake_round(f) > 0)
		;
	EXPLORE_CHECK(rt_future_held(f->rt) == 0);
	EXPLORE_CHECK((uint32_t)taken + refused == offered);
	EXPLORE_CHECK(called == is_dropped_called);
	pthread_mutex_lock(&f->rt->lock);
	rt_future_block_return(source);
	pthread_mutex_unlock(&f->rt->lock);
}

/* ---------------------------------------------------------- the poller --- */

static bool has_work(void *arg)
{
	(void)arg;
	return !rt_inbox_is_empty(&f->poller->inbox) || completed < given() ||
	       (is_holder_through && !is_beside_out);
}

/* Completes posted work, until the holder has finished and nothing is requested
 * any more. */
static void run_rounds(void)
{
	do {
		if (completed < given())
			complete((uint32_t)completed);
		while (fake_round(f) > 0)
			;
		explore_wait(&f->poller->inbox, has_work, NULL);
	} while (!rt_inbox_is_empty(&f->poller->inbox) || completed < given());
}

static bool is_asked(void *arg)
{
	(void)arg;
	return !rt_inbox_is_empty(&f->poller->inbox);
}

/* Handles requests of futures before the line moves. */
static void run_asked_first(void)
{
	explore_wait(&f->poller->inbox, is_asked, NULL);
	fake_round(f);
	run_rounds();
}

static void offer(void)
{
	const struct rpma_rt_completion item = {.context = offered,
						.status = IBV_WC_SUCCESS};

	explore_touch(&f->poller->inbox);
	offered++;
	rt_source_put_poller(source->source, &item);
	rt_deliver_asked(f->poller, source, 0);
	rt_deliver_flush(f->poller);
}

static void offer_one(void)
{
	offer();
	run_rounds();
}

static void offer_two(void)
{
	offer();
	fake_round(f);
	offer();
	run_rounds();
}

/* A completion in each batch, the second future first. */
static void run_two(void)
{
	complete(1);
	fake_round(f);
	complete(0);
	run_rounds();
}

/* Like rpma_rt_stop(): the last rounds of the poller, when all work is
 * complete; then later requests. */
static void stop(void)
{
	explore_store(&f->poller->stopping, true, 1);
	while (fake_round(f) > 0)
		;
	explore_touch(&f->poller->inbox);
	rt_inbox_run_owner(&f->poller->inbox, f->poller);
	explore_store(&f->rt->stopped, true, 1);
	rt_future_finish_all(f->rt);
}

static void run_and_stop(void)
{
	complete(0);
	while (fake_round(f) > 0)
		;
	stop();
}

static void offer_and_stop(void)
{
	const struct rpma_rt_completion end = {.kind = RPMA_RT_EVENT};

	offer();
	rt_source_end_poller(source, &end);
	rt_deliver_flush(f->poller);
	stop();
}

static void run_two_and_stop(void)
{
	complete(1);
	complete(0);
	while (fake_round(f) > 0)
		;
	stop();
}

/* ---------------------------------------------------------- the holder --- */

static void end_holder(void)
{
	explore_touch(&f->poller->inbox);
	is_holder_through = true;
}

static void drop(int index)
{
	int ret = rpma_rt_future_drop(&futures[index]);

	EXPLORE_CHECK(ret >= 0);
	is_dropped_called |= ret;
}

static struct rpma_rt_completion wait_for(int index)
{
	struct rpma_rt_completion cmpl;

	EXPLORE_CHECK(rpma_rt_future_wait(&futures[index], &cmpl, -1) == 1);
	return cmpl;
}

static void wait_and_drop(void)
{
	struct rpma_rt_completion cmpl = wait_for(0);

	EXPLORE_CHECK(cmpl.status == IBV_WC_SUCCESS && cmpl.context == 0);
	drop(0);
	end_holder();
}

static void poll_and_drop(void)
{
	struct rpma_rt_completion cmpl;
	int ret = rpma_rt_future_poll(&futures[0], &cmpl);

	EXPLORE_CHECK(ret >= 0);
	taken += ret && is_recv;
	drop(0);
	end_holder();
}

/* The result of the cancel is true. */
static void cancel_and_drop(void)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	bool is_detached;

	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[0], &cancelled) == 0);
	EXPLORE_CHECK(cancelled != RPMA_RT_CANCELLED_NOT_POSTED);
	is_detached = cancelled == RPMA_RT_CANCELLED_DETACHED;
	cmpl = wait_for(0);
	EXPLORE_CHECK((cmpl.status == IBV_WC_SUCCESS) == !is_detached);
	EXPLORE_CHECK(!(cmpl.flags & RPMA_RT_C_DETACHED) == !is_detached);
	taken += is_recv && !is_detached;
	drop(0);
	end_holder();
}

/* The result may stay in its slot: the wait comes to an end. */
static void cancel_in_a_stop(void)
{
	enum rpma_rt_cancelled cancelled;

	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[0], &cancelled) == 0);
	wait_for(0);
	drop(0);
}

static void wait_in_a_stop(void)
{
	enum rpma_rt_cancelled cancelled;

	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[1], &cancelled) == 0);
	EXPLORE_CHECK(rpma_rt_future_wait_some(futures, 2, 2, -1) != 0);
	EXPLORE_CHECK(rpma_rt_future_wait_some(&futures[0], 1, 1, -1) == 1);
	wait_for(1);
	drop(0);
	drop(1);
}

static void drop_in_a_stop(void)
{
	drop(0);
}

static void count_call(const struct rpma_rt_completion *item, void *arg)
{
	(void)arg;
	EXPLORE_CHECK(item->status == IBV_WC_SUCCESS);
	called++;
	taken += is_recv;
}

static void then_and_drop(void)
{
	EXPLORE_CHECK(rpma_rt_future_then(&futures[0], count_call, NULL) == 0);
	drop(0);
	end_holder();
}

static void then_cancel_and_drop(void)
{
	enum rpma_rt_cancelled cancelled;

	EXPLORE_CHECK(rpma_rt_future_then(&futures[0], count_call, NULL) == 0);
	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[0], &cancelled) == 0);
	drop(0);
	/* either the cancel or the function gets the result; neither, if the
	 * result is there and the drop comes before the function */
	EXPLORE_CHECK(cancelled == RPMA_RT_CANCELLED_DONE ||
		      !is_dropped_called);
	end_holder();
}

static void wait_for_one_of_two(void)
{
	EXPLORE_CHECK(rpma_rt_future_wait_some(futures, 2, 1, -1) >= 1);
	drop(0);
	drop(1);
	end_holder();
}

static void wait_for_two(void)
{
	EXPLORE_CHECK(rpma_rt_future_wait_some(futures, 2, 2, -1) == 2);
	drop(0);
	drop(1);
	end_holder();
}

/* Both cancels have to succeed, and a single future is cancelled. */
static void cancel_one_of_two(void)
{
	enum rpma_rt_cancelled cancelled;
	int ret;

	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[0], &cancelled) == 0);
	ret = rpma_rt_future_wait_some(futures, 2, 2, -1);
	if (cancelled == RPMA_RT_CANCELLED_DONE)
		EXPLORE_CHECK(ret == 2);
	else
		EXPLORE_CHECK(ret == RPMA_RT_E_FAILED);
	drop(0);
	drop(1);
	end_holder();
}

static bool is_free(void *arg)
{
	const struct rt_future *slot = arg;

	/* relaxed: one thread runs at a time */
	return rt_future_is_free_state(
		(enum rt_future_state)atomic_load_explicit(
			&slot->state, memory_order_relaxed));
}

/*
 * The slot is used again as soon as the slot is free; an old handle names
 * nothing.
 */
static void drop_and_post(void)
{
	struct rpma_rt_future old = futures[0];
	struct rpma_rt_completion cmpl;

	drop(0);
	explore_wait(&slots[0]->state, is_free, slots[0]);
	EXPLORE_CHECK(post(0) == 0);
	EXPLORE_CHECK(rt_future_slot(&futures[0]) == slots[0]);
	EXPLORE_CHECK(rpma_rt_future_poll(&old, &cmpl) == RPMA_E_INVAL);
	cmpl = wait_for(0);
	EXPLORE_CHECK(cmpl.status == IBV_WC_SUCCESS && cmpl.context == 1);
	drop(0);
	end_holder();
}

/* The poller may be about to push the slot for its former use. */
static void wait_and_wait_again(void)
{
	struct rpma_rt_completion cmpl = wait_for(0);

	EXPLORE_CHECK(cmpl.context == 0);
	drop(0);
	EXPLORE_CHECK(post(0) == 0);
	EXPLORE_CHECK(rt_future_slot(&futures[0]) == slots[0]);
	cmpl = wait_for(0);
	EXPLORE_CHECK(cmpl.status == IBV_WC_SUCCESS && cmpl.context == 1);
	drop(0);
	end_holder();
}

/* Waits for any of the remaining futures, one after the other. */
static void wait_for_any_of_two(void)
{
	struct rpma_rt_completion cmpl;
	int first;

	EXPLORE_CHECK(rpma_rt_future_wait_some(futures, 2, 1, -1) >= 1);
	first = rpma_rt_future_poll(&futures[1], &cmpl) == 1 ? 1 : 0;
	drop(first);
	EXPLORE_CHECK(rpma_rt_future_wait_some(&futures[!first], 1, 1, -1) ==
		      1);
	drop(!first);
	end_holder();
}

/* A future named twice counts twice. */
static void wait_for_one_twice(void)
{
	const struct rpma_rt_future twice[] = {futures[0], futures[0]};

	EXPLORE_CHECK(rpma_rt_future_wait_some(twice, 2, 2, -1) == 2);
	drop(0);
	end_holder();
}

/* ------------------------------------------------------------- in line --- */

/* Returns true if the device has had a work request with a future. */
static bool is_posted(void)
{
	int i = given();

	while (--i > 0 && rt_wr_id_route(fake_sq_id(conn, (uint32_t)i)) !=
				  slots[0]->of->number)
		;
	return i > 0;
}

/* The result of the cancel is true: the work request is not posted, or is. */
static void cancel_in_line(void)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	bool is_taken_back;

	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[0], &cancelled) == 0);
	is_taken_back = cancelled == RPMA_RT_CANCELLED_NOT_POSTED;
	cmpl = wait_for(0);
	EXPLORE_CHECK(!(cmpl.flags & RPMA_RT_C_NOT_POSTED) == !is_taken_back);
	EXPLORE_CHECK((cmpl.status == IBV_WC_SUCCESS) ==
		      (cancelled == RPMA_RT_CANCELLED_DONE));
	EXPLORE_CHECK(is_posted() == !is_taken_back);
	drop(0);
	end_holder();
}

/*
 * The slot is used again as soon as the slot is free, which never happens in
 * the line.
 */
static void drop_and_post_in_line(void)
{
	struct rpma_rt_completion cmpl;

	drop(0);
	explore_wait(&slots[0]->state, is_free, slots[0]);
	EXPLORE_CHECK(post(0) == 0);
	EXPLORE_CHECK(rt_future_slot(&futures[0]) == slots[0]);
	cmpl = wait_for(0);
	EXPLORE_CHECK(cmpl.status == IBV_WC_SUCCESS && cmpl.context == 1);
	EXPLORE_CHECK(is_posted());
	drop(0);
	end_holder();
}

/* There is a place when the other work request was taken back or posted. */
static void post_beside(void)
{
	int ret = fake_send(conn, 8, RPMA_F_COMPLETION_ON_ERROR);

	EXPLORE_CHECK(ret == 0 || ret == RPMA_E_AGAIN);
	is_refused = ret != 0;
	explore_touch(&f->poller->inbox);
	is_beside_out = false;
}

/* ------------------------------------------------------ the next item --- */

static void next(int index)
{
	EXPLORE_CHECK(rt_source_next(source, &futures[index]) == 0);
}

/* Asserts the item of the future. */
static void brings(int index, uint64_t context)
{
	const struct rpma_rt_completion cmpl = wait_for(index);

	EXPLORE_CHECK(cmpl.status == IBV_WC_SUCCESS && cmpl.context == context);
	taken++;
	drop(index);
}

/* The first of two futures is dropped; the second gets the only item. */
static void next_drop(void)
{
	next(0);
	next(1);
	drop(0);
	brings(1, 0);
	end_holder();
}

/* The result of the cancel is true. */
static void next_cancel(void)
{
	enum rpma_rt_cancelled cancelled;

	next(0);
	EXPLORE_CHECK(rpma_rt_future_cancel(&futures[0], &cancelled) == 0);
	if (cancelled == RPMA_RT_CANCELLED_DONE) {
		brings(0, 0);
	} else {
		EXPLORE_CHECK(wait_for(0).flags & RPMA_RT_C_DETACHED);
		drop(0);
	}
	end_holder();
}

/* An item given back has its place before the next item. */
static void next_order(void)
{
	next(0);
	drop(0);
	next(1);
	brings(1, 0);
	end_holder();
}

static void next_then(void)
{
	next(0);
	EXPLORE_CHECK(rpma_rt_future_then(&futures[0], count_call, NULL) == 0);
	drop(0);
	end_holder();
}

/* The item, or the end; requests after the stop, too. */
static void next_in_a_stop(void)
{
	struct rpma_rt_completion cmpl;

	next(0);
	drop(0);
	next(1);
	cmpl = wait_for(1);
	EXPLORE_CHECK(cmpl.kind == RPMA_RT_EVENT || cmpl.context == 0);
	taken += cmpl.kind != RPMA_RT_EVENT;
	drop(1);
}

static void next_drop_in_a_stop(void)
{
	next(0);
	drop(0);
}

/* ------------------------------------------------------- rows of slots --- */

static struct rt_futures *block;
static bool is_taken[FUTURES];

static void begin_rows(void)
{
	struct rt_future *slot;
	int i;

	go_on();
	explore_watch_nothing();
	block = conns[FUTURES - 1]->side[RPMA_RT_SEND_SIDE].futures;
	/* relaxed, all: one thread runs at a time; as in a new block */
	atomic_store_explicit(&block->cursor, 0, memory_order_relaxed);
	atomic_store_explicit(&block->taken[0], 0, memory_order_relaxed);
	explore_watch(&block->taken[0], sizeof(block->taken[0]));
	for (i = 0; i < FUTURES; i++) {
		slot = &block->slots[i];
		/* relaxed, both: as above */
		atomic_store_explicit(&slot->generation, 0,
				      memory_order_relaxed);
		atomic_store_explicit(&slot->state, RT_FUTURE_FREE,
				      memory_order_relaxed);
		explore_watch(&slot->state, sizeof(slot->state));
	}
}

/* Takes a slot that no other thread has; NULL: no slot is free. */
static struct rt_future *take_one(void)
{
	struct rt_future *slot = rt_future_take(block, 0);

	if (slot == NULL)
		return NULL;
	EXPLORE_CHECK(!is_taken[slot - block->slots]);
	is_taken[slot - block->slots] = true;
	return slot;
}

static void give_back(struct rt_future *slot)
{
	is_taken[slot - block->slots] = false;
	rt_future_return(slot);
}

static void take_two(void)
{
	take_one();
	take_one();
}

static void take_again(void)
{
	struct rt_future *slot = take_one();

	if (slot == NULL)
		return;
	give_back(slot);
	take_one();
}

static void check_rows(void)
{
	int i;

	for (i = 0; i < FUTURES; i++) {
		if (is_taken[i])
			give_back(&block->slots[i]);
	}
	EXPLORE_CHECK(rt_future_held(f->rt) == 0);
}

int main(int argc, char **argv)
{
#define LINE(title, holder)                                        \
	.name = title, .threads = 2, .body = {holder, run_rounds}, \
	.setup = begin_line, .check = check_line
#define NEXT(title, holder, poller)                            \
	.name = title, .threads = 2, .body = {holder, poller}, \
	.setup = begin_next, .check = check_next
#define PLAY(title, holder, poller, begin)                                     \
	.name = title, .threads = 2, .body = {holder, poller}, .setup = begin, \
	.check = check
	static const struct explore plays[] = {
		{PLAY("wait", wait_and_drop, run_rounds, begin_send)},
		{PLAY("poll", poll_and_drop, run_rounds, begin_send)},
		{PLAY("cancel", cancel_and_drop, run_rounds, begin_send)},
		{PLAY("message", poll_and_drop, run_rounds, begin_recv)},
		{PLAY("message_cancel", cancel_and_drop, run_rounds,
		      begin_recv)},
		{PLAY("then", then_and_drop, run_rounds, begin_send)},
		{PLAY("message_then", then_and_drop, run_rounds, begin_recv)},
		{PLAY("then_cancel", then_cancel_and_drop, run_rounds,
		      begin_recv)},
		{PLAY("wait_again", wait_and_wait_again, run_rounds,
		      begin_send)},
		{PLAY("twice", wait_for_one_twice, run_rounds, begin_send)},
		{PLAY("any_of_two", wait_for_any_of_two, run_two, begin_two)},
		{PLAY("again", drop_and_post, run_rounds, begin_send)},
		{PLAY("stop", cancel_in_a_stop, run_and_stop, begin_send)},
		{PLAY("stop_drop", drop_in_a_stop, run_and_stop, begin_send)},
		{PLAY("one_of_two", wait_for_one_of_two, run_two, begin_two)},
		{PLAY("two_of_two", wait_for_two, run_two, begin_two)},
		{PLAY("cancel_of_two", cancel_one_of_two, run_two, begin_two)},
		{NEXT("next_drop", next_drop, offer_one)},
		{NEXT("next_cancel", next_cancel, offer_one)},
		{NEXT("next_order", next_order, offer_two)},
		{NEXT("next_then", next_then, offer_one)},
		{NEXT("next_stop_drop", next_drop_in_a_stop, offer_and_stop)},
		{LINE("line_cancel", cancel_in_line)},
		{LINE("line_drop", poll_and_drop)},
		{.name = "line_again",
		 .threads = 2,
		 .body = {drop_and_post_in_line, run_asked_first},
		 .setup = begin_line,
		 .check = check_line},
		{.name = "line_beside",
		 .threads = 3,
		 .body = {cancel_in_line, run_rounds, post_beside},
		 .setup = begin_beside,
		 .check = check_line,
		 .bound = 2},
		{.name = "rows",
		 .threads = 2,
		 .body = {take_two, take_again},
		 .setup = begin_rows,
		 .check = check_rows},
		{NEXT("next_stop", next_in_a_stop, offer_and_stop),
		 .is_long = true},
		{PLAY("stop_two", wait_in_a_stop, run_two_and_stop, begin_two),
		 .is_long = true},
		{.name = NULL},
	};
	void *state;
	uint32_t i;

	EXPLORE_CHECK(fake_setup(&state) == 0);
	f = state;
	for (i = 0; i < FUTURES; i++) {
		f->rt_cfg.futures = i + 1;
		conns[i] = fake_established(f);
	}
	f->rt_cfg.futures = 1;
	f->rt_cfg.sq_size = 1;
	f->rt_cfg.waiting = 2;
	narrow = fake_established(f);
	f->rt->drop_item = count_drop;
	/* no waiting thread runs the poller */
	f->poller->threaded = true;
	return explore_main(argc, argv, plays);
}
