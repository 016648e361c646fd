/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Tests of turn.c by a thread in all parts: slots, publications and
 * the order of publications, the right to post, returning room, pause,
 * drain, close, a kept right. The last test has threads.
 * tests/interleave/turn.c has every order of two posters.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/order.h"
#include "base/turn.h"

#define SLOTS 8
#define LOG   64
#define KEEPS 3 /* holds in a row until the right is kept */

static struct side {
	struct rt_turn turn;
	uint16_t in_line[SLOTS];
	_Atomic uint16_t next[SLOTS]; /* the whole slot */
	int content[SLOTS];
	uint32_t room;
	uint32_t late_room; /* comes when the right was given back */
	int posted[LOG];
	int count;
	int refuses;	/* the work request that the device refuses */
	bool publishes; /* a work request, while the right is held */
	bool line;	/* said to the poller */
	bool pauses;	/* while a thread is inside the verb */
} side;

static bool is_left(const struct rt_turn *turn)
{
	return !(rt_turn_look(turn) & RT_TURN_HELD);
}

static void publish_one(int content, enum rt_turn_answer expected)
{
	uint16_t slot = rt_freelist_take(&side.turn.free, 1, SLOTS);

	assert_int_not_equal(slot, 0);
	side.content[slot - 1] = content;
	assert_int_equal(rt_turn_publish(&side.turn, rt_turn_look(&side.turn),
					 slot, slot),
			 expected);
}

static uint32_t post(struct rt_turn *turn, void *arg)
{
	uint16_t front = rt_turn_front(turn);

	(void)arg;
	assert_false(is_left(turn));
	if (side.room == 0)
		return 0;
	if (side.publishes) {
		side.publishes = false;
		publish_one(100, RT_TURN_LEFT);
	}
	if (side.pauses)
		assert_true(rt_turn_pause(turn));
	if (side.content[front - 1] == side.refuses) {
		rt_turn_close(turn);
		return 0;
	}
	side.room--;
	side.posted[side.count++] = side.content[front - 1];
	rt_turn_leave_line(turn, 1);
	return 1;
}

static uint32_t needs(struct rt_turn *turn, void *arg)
{
	(void)arg;
	assert_int_not_equal(rt_turn_front(turn), 0);
	return 1;
}

static bool has_room(struct rt_turn *turn, uint32_t wanted, void *arg)
{
	(void)turn;
	(void)arg;
	side.room += side.late_room;
	side.late_room = 0;
	return side.room >= wanted;
}

static void say(struct rt_turn *turn, bool waits, void *arg)
{
	(void)arg;
	assert_false(is_left(turn));
	assert_int_not_equal(side.line, waits);
	assert_int_equal(rt_turn_front(turn) != 0, waits);
	side.line = waits;
}

static const struct rt_turn_ops ops = {
	.post = post, .needs = needs, .has_room = has_room, .say = say};

/* The end of a post alone; returns whether the poller has to look. */
static bool leave(uint64_t seen)
{
	return !rt_turn_leave_alone(&side.turn, seen) &&
	       rt_turn_hold(&side.turn, &ops, NULL, 64);
}

static bool hold(uint32_t budget)
{
	return rt_turn_hold(&side.turn, &ops, NULL, budget);
}

static int set_up(void **state)
{
	(void)state;
	memset(&side, 0, sizeof(side));
	side.refuses = -1;
	rt_turn_init(&side.turn, side.in_line, side.next, sizeof(side.next[0]),
		     SLOTS);
	rt_turn_open(&side.turn);
	return 0;
}

static void expect_posted(int count, ...)
{
	va_list list;
	int i;

	assert_int_equal(side.count, count);
	va_start(list, count);
	for (i = 0; i < count; i++)
		assert_int_equal(side.posted[i], va_arg(list, int));
	va_end(list);
}

/* Asserts the contents of the line, the front first. */
static void expect_line(int count, ...)
{
	uint16_t slot;
	va_list list;
	int i;

	assert_int_equal(rt_turn_length(&side.turn), count);
	va_start(list, count);
	for (i = 0; i < count; i++) {
		slot = rt_turn_at(&side.turn, (uint32_t)i);
		assert_int_equal(side.content[slot - 1], va_arg(list, int));
	}
	va_end(list);
}

/* ---------------------------------------------------------------- slots --- */

static void slots__as_many_as_the_limit(void **state)
{
	uint16_t first;
	uint16_t all;

	(void)state;
	assert_int_equal(rt_freelist_take(&side.turn.free, 3, 2), 0);
	first = rt_freelist_take(&side.turn.free, 3, 4);
	assert_int_not_equal(first, 0);
	assert_int_equal(rt_freelist_used(&side.turn.free), 3);
	assert_int_equal(rt_freelist_take(&side.turn.free, 2, 4), 0);
	all = rt_freelist_take(&side.turn.free, SLOTS - 3, SLOTS);
	assert_int_not_equal(all, 0);
	assert_int_equal(rt_freelist_take(&side.turn.free, 1, SLOTS), 0);
}

static void slots__a_chain_is_GIVEN_BACK(void **state)
{
	uint16_t at[SLOTS];
	bool seen[SLOTS + 1] = {false};
	uint16_t slot;
	int i;

	(void)state;
	slot = rt_freelist_take(&side.turn.free, SLOTS, SLOTS);
	for (i = 0; i < SLOTS; i++) {
		assert_in_range(slot, 1, SLOTS);
		assert_false(seen[slot]);
		seen[slot] = true;
		at[i] = slot;
		slot = rt_freelist_next(&side.turn.free, slot);
	}
	assert_int_equal(slot, 0);
	rt_freelist_give(&side.turn.free, at[0], at[SLOTS - 1], SLOTS);
	assert_int_equal(rt_freelist_used(&side.turn.free), 0);
	assert_int_equal(rt_freelist_take(&side.turn.free, SLOTS, SLOTS),
			 at[0]);
}

/* ----------------------------------------------------------- publishing --- */

static void publish__free_word_THE_RIGHT_COMES_ALONG(void **state)
{
	(void)state;
	side.room = 4;
	publish_one(1, RT_TURN_HOLDS);
	publish_one(2, RT_TURN_LEFT);
	publish_one(3, RT_TURN_LEFT);
	assert_false(hold(64));
	expect_posted(3, 1, 2, 3);
	assert_true(is_left(&side.turn));
	assert_int_equal(rt_freelist_used(&side.turn.free), 0);
}

static void publish__a_call_IS_CONTIGUOUS(void **state)
{
	uint16_t top;
	uint16_t bottom;
	uint64_t seen = rt_turn_look(&side.turn);

	(void)state;
	side.room = 8;
	publish_one(1, RT_TURN_HOLDS);
	top = rt_freelist_take(&side.turn.free, 2, SLOTS);
	bottom = rt_freelist_next(&side.turn.free, top);
	side.content[top - 1] = 12; /* the last of the call */
	side.content[bottom - 1] = 11;
	publish_one(2, RT_TURN_LEFT);
	assert_int_equal(rt_turn_publish(&side.turn, seen, top, bottom),
			 RT_TURN_LEFT);
	publish_one(3, RT_TURN_LEFT);
	assert_false(hold(64));
	expect_posted(5, 1, 2, 11, 12, 3);
}

static void publish__while_held_THE_HOLDER_POSTS_IT(void **state)
{
	(void)state;
	side.room = 4;
	side.publishes = true;
	publish_one(1, RT_TURN_HOLDS);
	assert_false(hold(64));
	expect_posted(2, 1, 100);
}

static void publish__not_open_closed_drained(void **state)
{
	uint16_t slot = rt_freelist_take(&side.turn.free, 1, SLOTS);

	(void)state;
	memset(side.next, 0, sizeof(side.next));
	rt_turn_init(&side.turn, side.in_line, side.next, sizeof(side.next[0]),
		     SLOTS);
	slot = rt_freelist_take(&side.turn.free, 1, SLOTS);
	assert_int_equal(rt_turn_publish(&side.turn, 0, slot, slot),
			 RT_TURN_NOT_YET);
	rt_turn_open(&side.turn);
	rt_turn_drain(&side.turn);
	assert_int_equal(rt_turn_publish(&side.turn, 0, slot, slot),
			 RT_TURN_REFUSED);
	rt_turn_close(&side.turn);
	assert_int_equal(rt_turn_publish(&side.turn, 0, slot, slot),
			 RT_TURN_REFUSED);
}

static void publish__route_led_elsewhere_STALE(void **state)
{
	uint64_t seen = rt_turn_look(&side.turn);
	uint16_t slot = rt_freelist_take(&side.turn.free, 1, SLOTS);

	(void)state;
	assert_true(rt_turn_pause(&side.turn));
	assert_false(rt_turn_pause(&side.turn)); /* another one's */
	rt_turn_move_routes(&side.turn);
	assert_int_equal(rt_turn_publish(&side.turn, seen, slot, slot),
			 RT_TURN_STALE);
	assert_false(rt_turn_resume(&side.turn));
	assert_int_equal(rt_turn_publish(&side.turn, seen, slot, slot),
			 RT_TURN_STALE);
	assert_false(rt_turn_take_alone(&side.turn, seen));
	assert_true(rt_turn_pause(&side.turn));
	seen = rt_turn_look(&side.turn);
	assert_false(rt_turn_resume(&side.turn));
	assert_int_equal(rt_turn_publish(&side.turn, seen, slot, slot),
			 RT_TURN_HOLDS);
}

/* ---------------------------------------------------------------- alone --- */

static void alone__only_where_nothing_is_ahead(void **state)
{
	uint64_t seen = rt_turn_look(&side.turn);

	(void)state;
	assert_true(rt_turn_take_alone(&side.turn, seen));
	assert_false(rt_turn_take_alone(&side.turn, rt_turn_look(&side.turn)));
	assert_false(leave(seen));
	publish_one(1, RT_TURN_HOLDS);
	assert_false(hold(64)); /* no room: it waits */
	assert_true(is_left(&side.turn));
	assert_false(rt_turn_take_alone(&side.turn, rt_turn_look(&side.turn)));
}

static void alone__published_meanwhile_IS_POSTED(void **state)
{
	uint64_t seen = rt_turn_look(&side.turn);

	(void)state;
	side.room = 1;
	assert_true(rt_turn_take_alone(&side.turn, seen));
	publish_one(7, RT_TURN_LEFT);
	assert_false(leave(seen));
	expect_posted(1, 7);
}

/* ----------------------------------------------------------------- room --- */

static void room__came_while_held_IS_SEEN(void **state)
{
	(void)state;
	side.late_room = 1;
	publish_one(1, RT_TURN_HOLDS);
	publish_one(2, RT_TURN_LEFT);
	assert_false(hold(64));
	expect_posted(1, 1);
}

static void room__comes_later_THE_POLLER_POSTS(void **state)
{
	(void)state;
	assert_false(rt_turn_take_waiting(&side.turn));
	publish_one(1, RT_TURN_HOLDS);
	assert_false(rt_turn_take_waiting(&side.turn)); /* it is held */
	assert_false(hold(64));
	publish_one(2, RT_TURN_HOLDS);
	assert_false(hold(64));
	side.room = 1;
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_false(hold(64));
	expect_posted(1, 1);
	side.room = 1;
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_true(side.line);
	assert_false(hold(64));
	expect_posted(2, 1, 2);
	assert_false(side.line);
	assert_false(rt_turn_take_waiting(&side.turn));
}

static void budget__the_poller_HAS_THE_REST(void **state)
{
	int i;

	(void)state;
	side.room = 8;
	for (i = 0; i < 5; i++)
		publish_one(i, i == 0 ? RT_TURN_HOLDS : RT_TURN_LEFT);
	assert_true(hold(2));
	expect_posted(2, 0, 1);
	/* a poster that comes is behind */
	publish_one(5, RT_TURN_HOLDS);
	assert_true(hold(2));
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_false(hold(64));
	expect_posted(6, 0, 1, 2, 3, 4, 5);
}

/* ------------------------------------------------------------- control --- */

static void pause__what_is_published_WAITS(void **state)
{
	(void)state;
	side.room = 4;
	assert_true(rt_turn_pause(&side.turn));
	assert_true(is_left(&side.turn));
	publish_one(1, RT_TURN_LEFT);
	assert_false(rt_turn_take_waiting(&side.turn));
	rt_turn_move_routes(&side.turn);
	assert_true(rt_turn_resume(&side.turn));
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_false(hold(64));
	expect_posted(1, 1);
}

static void pause__what_is_gathered_WAITS(void **state)
{
	uint64_t seen;

	(void)state;
	side.room = 4;
	assert_true(rt_turn_pause(&side.turn));
	publish_one(1, RT_TURN_LEFT);
	rt_turn_gather(&side.turn);
	assert_true(rt_turn_resume(&side.turn));
	seen = rt_turn_look(&side.turn);
	assert_false(rt_turn_take_alone(&side.turn, seen));
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_false(hold(64));
	expect_posted(1, 1);
}

static void pause__in_the_verb_THE_HOLDER_ENDS(void **state)
{
	(void)state;
	side.room = 4;
	side.pauses = true;
	publish_one(1, RT_TURN_HOLDS);
	publish_one(2, RT_TURN_LEFT);
	assert_false(hold(64));
	expect_posted(1, 1);
	assert_true(is_left(&side.turn));
	assert_true(rt_turn_resume(&side.turn));
	side.pauses = false;
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_false(hold(64));
	expect_posted(2, 1, 2);
}

static void close__what_is_left_IS_GATHERED(void **state)
{
	(void)state;
	publish_one(1, RT_TURN_HOLDS);
	assert_false(hold(64)); /* in line */
	publish_one(2, RT_TURN_HOLDS);
	publish_one(3, RT_TURN_LEFT);
	rt_turn_close(&side.turn);
	assert_false(is_left(&side.turn));
	side.room = 4;
	assert_false(hold(64));
	assert_true(is_left(&side.turn));
	assert_int_equal(side.count, 0);
	assert_false(rt_turn_take_waiting(&side.turn));
	rt_turn_gather(&side.turn);
	expect_line(3, 1, 2, 3);
}

/* Slots are taken from the middle of the line: the rest keeps the order. */
static void line__cut_FREES_THOSE_SLOTS_ALONE(void **state)
{
	int i;

	(void)state;
	for (i = 1; i <= 5; i++)
		publish_one(i, i == 1 ? RT_TURN_HOLDS : RT_TURN_LEFT);
	assert_false(hold(64));
	assert_true(rt_turn_try_take(&side.turn));
	rt_turn_cut_line(&side.turn, 1, 2);
	expect_line(3, 1, 4, 5);
	rt_turn_cut_line(&side.turn, 2, 1);
	expect_line(2, 1, 4);
	assert_int_equal(rt_freelist_used(&side.turn.free), 2);
	/* the ring goes round, and all slots are in use */
	for (i = 6; i <= 11; i++)
		publish_one(i, RT_TURN_LEFT);
	assert_int_equal(rt_freelist_take(&side.turn.free, 1, SLOTS), 0);
	rt_turn_gather(&side.turn);
	expect_line(8, 1, 4, 6, 7, 8, 9, 10, 11);
	side.room = 8;
	assert_false(hold(64));
	expect_posted(8, 1, 4, 6, 7, 8, 9, 10, 11);
	assert_int_equal(rt_freelist_used(&side.turn.free), 0);
}

static void close__by_the_holder_WHERE_THE_DEVICE_REFUSES(void **state)
{
	(void)state;
	side.room = 4;
	side.refuses = 2;
	publish_one(1, RT_TURN_HOLDS);
	publish_one(2, RT_TURN_LEFT);
	publish_one(3, RT_TURN_LEFT);
	assert_false(hold(64));
	expect_posted(1, 1);
	rt_turn_gather(&side.turn);
	assert_int_equal(side.content[rt_turn_front(&side.turn) - 1], 2);
	assert_int_equal(rt_freelist_used(&side.turn.free), 2);
}

static void drain__goes_on_UNTIL_IT_IS_THROUGH(void **state)
{
	(void)state;
	publish_one(1, RT_TURN_HOLDS);
	assert_false(hold(64));
	rt_turn_drain(&side.turn);
	assert_false(rt_turn_is_through(&side.turn));
	side.room = 1;
	assert_true(rt_turn_take_waiting(&side.turn));
	assert_false(rt_turn_is_through(&side.turn));
	assert_true(hold(64)); /* the poller has to look */
	assert_true(rt_turn_is_through(&side.turn));
	expect_posted(1, 1);
}

/* -------------------------------------------------------------- threads --- */

#define THREADS 4
#define EACH	20000

static struct {
	struct rt_turn turn;
	uint16_t in_line[SLOTS];
	_Atomic uint16_t next[SLOTS]; /* all that is in a slot */
	uint64_t content[SLOTS];
	uint32_t newest[THREADS]; /* the holder's */
	uint64_t posted;
} many;

static uint32_t post_of_many(struct rt_turn *turn, void *arg)
{
	const uint64_t content = many.content[rt_turn_front(turn) - 1];

	(void)arg;
	assert_int_equal(many.newest[content >> 32] + 1, (uint32_t)content);
	many.newest[content >> 32]++;
	many.posted++;
	rt_turn_leave_line(turn, 1);
	return 1;
}

static bool there_is_room(struct rt_turn *turn, uint32_t wanted, void *arg)
{
	(void)turn;
	(void)wanted;
	(void)arg;
	return true;
}

static void say_of_many(struct rt_turn *turn, bool waits, void *arg)
{
	(void)turn;
	(void)waits;
	(void)arg;
}

static const struct rt_turn_ops ops_of_many = {.post = post_of_many,
					       .needs = needs,
					       .has_room = there_is_room,
					       .say = say_of_many};

static void *post_many(void *arg)
{
	const uint64_t thread = (uintptr_t)arg;
	uint64_t i = 1;
	uint64_t seen;
	uint16_t slot;

	while (i <= EACH) {
		seen = rt_turn_look(&many.turn);
		slot = rt_freelist_take(&many.turn.free, 1, SLOTS);
		if (slot == 0)
			continue;
		many.content[slot - 1] = thread << 32 | i++;
		if (rt_turn_publish(&many.turn, seen, slot, slot) ==
		    RT_TURN_HOLDS)
			while (rt_turn_hold(&many.turn, &ops_of_many, NULL,
					    3) &&
			       rt_turn_take_waiting(&many.turn))
				;
	}
	return NULL;
}

static void threads__each_in_its_order(void **state)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	(void)state;
	rt_turn_init(&many.turn, many.in_line, many.next, sizeof(many.next[0]),
		     SLOTS);
	rt_turn_open(&many.turn);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, post_many, (void *)i),
			0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(many.posted, THREADS * EACH);
	assert_int_equal(rt_freelist_used(&many.turn.free), 0);
}

/* ------------------------------------------------------- a kept right --- */

static bool is_refused; /* the kernel refuses membarrier() */
static int fences;	/* calls of membarrier() */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_membarrier)
		return __real_syscall(number, a, b, c, d, e, f);
	fences++;
	if (!is_refused)
		return __real_syscall(number, a, b, c);
	errno = EPERM;
	return -1;
}

static void hold_alone(int times)
{
	uint64_t seen;

	while (times-- > 0) {
		seen = rt_turn_look(&side.turn);
		assert_true(rt_turn_take_alone(&side.turn, seen));
		assert_true(rt_turn_is_held(&side.turn));
		assert_false(leave(seen));
		assert_false(rt_turn_is_held(&side.turn));
	}
}

static bool is_kept(void)
{
	return rt_turn_look(&side.turn) & RT_TURN_KEPT;
}

static int set_up_kept(void **state)
{
	is_refused = false;
	rt_fence_start();
	rt_keep_after = KEEPS;
	return set_up(state);
}

/* The right is kept for the calling thread from here on. Skips the test where
 * the kernel has no membarrier(). */
static void keep(void)
{
	if (!rt_fence_is_ready())
		skip();
	/* the first hold makes the thread known */
	hold_alone(2 * KEEPS + 1);
	assert_true(is_kept());
	fences = 0;
}

static void *run_it(void *arg)
{
	void (**function)(void) = arg;

	(*function)();
	return NULL;
}

static void in_another_thread(void (*function)(void))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_it, &function), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void kept__not_without_the_fence(void **state)
{
	(void)state;
	assert_false(rt_fence_is_ready());
	rt_keep_after = KEEPS;
	hold_alone(5 * KEEPS);
	assert_false(is_kept());
}

static void kept__for_the_only_thread(void **state)
{
	(void)state;
	keep();
	hold_alone(2);
	assert_true(is_kept());
	assert_int_equal(fences, 0);
}

static void publish_and_post(void)
{
	publish_one(1, RT_TURN_HOLDS);
	assert_false(hold(64));
}

static void kept__outside_ANOTHER_THREAD_HOLDS(void **state)
{
	(void)state;
	side.room = 4;
	keep();
	in_another_thread(publish_and_post);
	expect_posted(1, 1);
	assert_int_equal(fences, 1);
	assert_true(is_left(&side.turn));
	hold_alone(1);
}

static void publish_and_leave(void)
{
	publish_one(1, RT_TURN_LEFT);
}

static void kept__inside_THE_KEEPER_POSTS(void **state)
{
	uint64_t seen;

	(void)state;
	side.room = 4;
	keep();
	seen = rt_turn_look(&side.turn);
	assert_true(rt_turn_take_alone(&side.turn, seen));
	in_another_thread(publish_and_leave);
	in_another_thread(publish_and_leave);
	assert_int_equal(fences, 1); /* once for all */
	expect_posted(0);
	assert_false(leave(seen));
	expect_posted(2, 1, 1);
	assert_true(is_left(&side.turn));
}

/* The route was looked at before another thread recalled the right. */
static void kept__recalled_meanwhile_IS_NOT_TAKEN(void **state)
{
	uint64_t seen;

	(void)state;
	side.room = 4;
	keep();
	seen = rt_turn_look(&side.turn);
	in_another_thread(publish_and_post);
	assert_false(rt_turn_take_alone(&side.turn, seen));
	assert_false(rt_turn_answer_recall(&side.turn, seen));
	assert_true(is_left(&side.turn));
}

static void kept__by_the_keeper_PUBLISHED(void **state)
{
	(void)state;
	side.room = 4;
	keep();
	publish_one(1, RT_TURN_HOLDS);
	assert_false(hold(64));
	expect_posted(1, 1);
	assert_int_equal(fences, 0);
	assert_true(is_left(&side.turn));
	hold_alone(1);
	assert_true(is_kept()); /* no other thread held */
}

static void hold_often(void)
{
	hold_alone(5 * KEEPS);
	assert_false(is_kept());
}

static void kept__again_FOR_THE_SAME_THREAD(void **state)
{
	(void)state;
	side.room = 4;
	keep();
	in_another_thread(publish_and_post);
	in_another_thread(hold_often);
	hold_alone(KEEPS - 1);
	assert_false(is_kept());
	hold_alone(1);
	assert_true(is_kept());
}

static void pause_it(void)
{
	assert_true(rt_turn_pause(&side.turn));
	rt_turn_await(&side.turn, RT_TURN_HELD);
	assert_false(is_kept());
}

static void kept__paused_closed_drained(void **state)
{
	(void)state;
	keep();
	in_another_thread(pause_it);
	assert_true(is_left(&side.turn));
	assert_false(rt_turn_take_alone(&side.turn, rt_turn_look(&side.turn)));
	assert_false(rt_turn_resume(&side.turn));
	keep();
	rt_turn_close(&side.turn);
	rt_turn_await(&side.turn, RT_TURN_HELD);
	assert_false(is_kept());
	set_up(state);
	keep();
	assert_true(rt_turn_drain(&side.turn)); /* it is through */
	assert_true(rt_turn_is_through(&side.turn));
}

static void kept__closed_by_the_keeper_inside(void **state)
{
	uint64_t seen;

	(void)state;
	keep();
	seen = rt_turn_look(&side.turn);
	assert_true(rt_turn_take_alone(&side.turn, seen));
	rt_turn_close(&side.turn);
	assert_false(leave(seen));
	rt_turn_await(&side.turn, RT_TURN_HELD);
}

static void recall_and_let_go(void)
{
	uint64_t asked;

	assert_false(rt_turn_try_take(&side.turn));
	assert_true(rt_turn_ask_keeper(&side.turn, &asked));
	rt_fence_heavy();
	assert_true(rt_turn_recall_asked(&side.turn, asked));
	assert_false(is_kept());
	assert_false(rt_turn_ask_keeper(&side.turn, &asked));
	assert_false(rt_turn_let_go(&side.turn));
}

static void kept__looked_into_BY_THE_DUMP(void **state)
{
	(void)state;
	keep();
	in_another_thread(recall_and_let_go);
	hold_alone(1);
	assert_false(is_kept());
}

/* A sandbox that came after the start. */
static void kept__fence_refused_NO_MORE_IS_KEPT(void **state)
{
	(void)state;
	side.room = 4;
	keep();
	is_refused = true;
	in_another_thread(publish_and_post);
	expect_posted(1, 1);
	rt_fence_start(); /* of another runtime */
	assert_false(rt_fence_is_ready());
	hold_alone(5 * KEEPS);
	assert_false(is_kept());
}

int main(void)
{
#define TEST_KEPT(name) cmocka_unit_test_setup(name, set_up_kept)
#define TEST(name)	cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		TEST(kept__not_without_the_fence), /* the first */
		TEST_KEPT(kept__for_the_only_thread),
		TEST_KEPT(kept__outside_ANOTHER_THREAD_HOLDS),
		TEST_KEPT(kept__inside_THE_KEEPER_POSTS),
		TEST_KEPT(kept__recalled_meanwhile_IS_NOT_TAKEN),
		TEST_KEPT(kept__by_the_keeper_PUBLISHED),
		TEST_KEPT(kept__again_FOR_THE_SAME_THREAD),
		TEST_KEPT(kept__paused_closed_drained),
		TEST_KEPT(kept__closed_by_the_keeper_inside),
		TEST_KEPT(kept__looked_into_BY_THE_DUMP),
		TEST_KEPT(kept__fence_refused_NO_MORE_IS_KEPT),
		TEST(slots__as_many_as_the_limit),
		TEST(slots__a_chain_is_GIVEN_BACK),
		TEST(publish__free_word_THE_RIGHT_COMES_ALONG),
		TEST(publish__a_call_IS_CONTIGUOUS),
		TEST(publish__while_held_THE_HOLDER_POSTS_IT),
		TEST(publish__not_open_closed_drained),
		TEST(publish__route_led_elsewhere_STALE),
		TEST(alone__only_where_nothing_is_ahead),
		TEST(alone__published_meanwhile_IS_POSTED),
		TEST(room__came_while_held_IS_SEEN),
		TEST(room__comes_later_THE_POLLER_POSTS),
		TEST(budget__the_poller_HAS_THE_REST),
		TEST(pause__what_is_published_WAITS),
		TEST(pause__what_is_gathered_WAITS),
		TEST(pause__in_the_verb_THE_HOLDER_ENDS),
		TEST(close__what_is_left_IS_GATHERED),
		TEST(line__cut_FREES_THOSE_SLOTS_ALONE),
		TEST(close__by_the_holder_WHERE_THE_DEVICE_REFUSES),
		TEST(drain__goes_on_UNTIL_IT_IS_THROUGH),
		TEST(threads__each_in_its_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
