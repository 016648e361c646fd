/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A lock that is kept for the thread which takes the lock nearly always: when
 * the keeping begins and ends, and who is refused. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rt_fake.h"
#include "base/keep.h"

#define KEEPS 3

static struct rt_keep lock;
static int fences; /* calls of membarrier() */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	fences += number == SYS_membarrier;
	return __real_syscall(number, a, b, c, d, e, f);
}

static bool is_kept(void)
{
	/* relaxed: no other thread runs */
	return atomic_load_explicit(&lock.word, memory_order_relaxed) ==
	       RT_KEEP_KEPT;
}

static void take_often(int times)
{
	while (times-- > 0) {
		assert_true(rt_keep_take(&lock));
		assert_true(rt_keep_is_taken(&lock));
		rt_keep_give_back(&lock);
		assert_false(rt_keep_is_taken(&lock));
	}
}

/* Takes as a poll does. */
static void poll_often(int times)
{
	while (times-- > 0) {
		assert_true(rt_keep_is_here(&lock));
		assert_true(rt_keep_go_in(&lock));
		assert_true(rt_keep_is_taken(&lock));
		rt_keep_go_out(&lock);
		assert_false(rt_keep_is_taken(&lock));
	}
}

/* The first case: rt_fence_start() was not called. */
TEST(keep__without_membarrier_NEVER)
{
	rt_keep_after = KEEPS;
	rt_keep_init(&lock);
	assert_false(rt_fence_is_ready());
	take_often(5 * KEEPS);
	assert_false(is_kept());
	assert_int_equal(fences, 0);
}

static int set_up(void **state)
{
	(void)state;
	rt_fence_start();
	rt_keep_after = KEEPS;
	rt_keep_init(&lock);
	fences = 0;
	return 0;
}

/* The lock is kept for the calling thread from here on. Skips the test where
 * the kernel has no membarrier(). */
static void keep(void)
{
	if (!rt_fence_is_ready())
		skip();
	/* the first take makes the thread known */
	take_often(KEEPS + 1);
	assert_true(is_kept());
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

	ok(pthread_create(&thread, NULL, run_it, &function));
	ok(pthread_join(thread, NULL));
}

TEST_WITH(keep__for_the_only_thread, set_up, NULL)
{
	keep();
	assert_true(rt_keep_is_here(&lock));
	assert_true(rt_keep_is_free(&lock));
	poll_often(5);
	take_often(5); /* a wait of the keeper */
	assert_true(is_kept());
	poll_often(1);
	assert_int_equal(fences, 0);
}

static void take_once(void)
{
	take_often(1);
}

/* Threads take the lock in turn, and have no number before. */
TEST_WITH(keep__threads_in_turn_NOT_KEPT, set_up, NULL)
{
	int i;

	for (i = 0; i < 5 * KEEPS; i++) {
		in_another_thread(take_once);
		assert_false(is_kept());
	}
}

static void see_no_keeping(void)
{
	assert_false(rt_keep_is_here(&lock));
	assert_true(rt_keep_is_free(&lock));
}

static void look_at_new_lock(void)
{
	rt_keep_init(&lock);
	assert_false(rt_keep_is_keeper(&lock));
	assert_false(rt_keep_is_here(&lock));
}

/* A thread without a number is nobody's keeper. */
TEST_WITH(keep__not_for_a_thread_without_number, set_up, NULL)
{
	in_another_thread(look_at_new_lock);
	keep();
	in_another_thread(see_no_keeping);
}

TEST_WITH(take__kept_ENDS_THE_KEEPING, set_up, NULL)
{
	keep();
	in_another_thread(take_once);
	assert_int_equal(fences, 1);
	assert_false(is_kept());
	assert_false(rt_keep_is_here(&lock));
	in_another_thread(take_once);
	assert_int_equal(fences, 1);
	/* the count begins again */
	take_often(KEEPS - 1);
	assert_false(is_kept());
	take_often(1);
	assert_true(is_kept());
	poll_often(1);
}

static void take_very_often(void)
{
	take_often(5 * KEEPS);
}

TEST_WITH(keep__no_second_keeper, set_up, NULL)
{
	keep();
	in_another_thread(take_very_often);
	assert_false(is_kept());
	take_often(KEEPS);
	assert_true(is_kept());
}

static void be_refused(void)
{
	assert_false(rt_keep_take(&lock));
}

/* The keeping goes on: the keeper is inside. */
TEST_WITH(take__keeper_inside_REFUSED, set_up, NULL)
{
	keep();
	assert_true(rt_keep_go_in(&lock));
	in_another_thread(be_refused);
	assert_int_equal(fences, 1);
	assert_true(rt_keep_is_taken(&lock));
	assert_false(rt_keep_take(&lock)); /* nor the keeper once more */
	rt_keep_go_out(&lock);
	assert_true(is_kept());
	poll_often(1);
	in_another_thread(take_once);
}

TEST_WITH(take__taken_REFUSED, set_up, NULL)
{
	assert_true(rt_keep_take(&lock));
	assert_false(rt_keep_take(&lock));
	in_another_thread(be_refused);
	rt_keep_give_back(&lock);
	keep();
	assert_true(rt_keep_take(&lock));
	assert_false(rt_keep_is_free(&lock));
	assert_false(rt_keep_is_here(&lock));
	assert_false(rt_keep_take(&lock));
	in_another_thread(be_refused);
	rt_keep_give_back(&lock);
	assert_true(is_kept());
	assert_int_equal(fences, 0);
}

static void take_in(void)
{
	assert_true(rt_keep_take(&lock));
}

/* Another thread has ended the keeping behind the keeper's look. */
TEST_WITH(go_in__taken_meanwhile_OUTSIDE, set_up, NULL)
{
	keep();
	assert_true(rt_keep_is_here(&lock));
	in_another_thread(take_in);
	assert_false(rt_keep_go_in(&lock));
	/* relaxed: no other thread runs */
	assert_false(atomic_load_explicit(&lock.inside, memory_order_relaxed));
	assert_false(rt_keep_take(&lock));
	rt_keep_give_back(&lock);
	take_often(1);
}

static void keep_elsewhere(void)
{
	take_often(KEEPS + 1);
}

/* The keeper has ended. */
TEST_WITH(thread__its_end_KEEPS_NOTHING_FROM_OTHERS, set_up, NULL)
{
	if (!rt_fence_is_ready())
		skip();
	in_another_thread(keep_elsewhere);
	assert_true(is_kept());
	assert_false(rt_keep_is_here(&lock));
	take_often(5 * KEEPS);
	assert_false(is_kept());
	assert_int_equal(fences, 1);
}

TEST_MAIN()
