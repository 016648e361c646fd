/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The lock of four bytes: one thread inside, and nobody sleeps for ever. */

#include <pthread.h>
#include <sched.h>

#include "base/lock.h"
#include "rt_fake.h"

#define THREADS 4
#define TIMES	20000

static struct rt_lock lock;
static uint32_t count; /* under the lock */

static uint32_t word(void)
{
	/* relaxed: only what it is */
	return atomic_load_explicit(&lock.word, memory_order_relaxed);
}

static void try__held_false(void **state)
{
	(void)state;
	rt_lock_take(&lock);
	assert_false(rt_lock_try(&lock));
	rt_lock_release(&lock);
	assert_true(rt_lock_try(&lock));
	assert_false(rt_lock_try(&lock));
	rt_lock_release(&lock);
	assert_int_equal(word(), RT_LOCK_FREE);
}

static void *add_one(void *arg)
{
	(void)arg;
	rt_lock_take(&lock);
	count++;
	rt_lock_release(&lock);
	return NULL;
}

/* Threads that sleep are woken, each by the release of the one before. */
static void release__wakes_all_who_sleep(void **state)
{
	pthread_t threads[THREADS];
	int i;

	(void)state;
	count = 0;
	rt_lock_take(&lock);
	for (i = 0; i < THREADS; i++)
		ok(pthread_create(&threads[i], NULL, add_one, NULL));
	while (word() != RT_LOCK_AWAITED)
		sched_yield();
	assert_int_equal(count, 0);
	rt_lock_release(&lock);
	for (i = 0; i < THREADS; i++)
		ok(pthread_join(threads[i], NULL));
	assert_int_equal(count, THREADS);
	assert_int_equal(word(), RT_LOCK_FREE);
}

static void *add_many(void *arg)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		while (i % 2 && !rt_lock_try(&lock))
			sched_yield();
		if (i % 2 == 0)
			rt_lock_take(&lock);
		count++;
		rt_lock_release(&lock);
	}
	return arg;
}

static void take__one_thread_inside(void **state)
{
	pthread_t threads[THREADS];
	int i;

	(void)state;
	count = 0;
	for (i = 0; i < THREADS; i++)
		ok(pthread_create(&threads[i], NULL, add_many, NULL));
	for (i = 0; i < THREADS; i++)
		ok(pthread_join(threads[i], NULL));
	assert_int_equal(count, THREADS * TIMES);
	assert_int_equal(word(), RT_LOCK_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(try__held_false),
		cmocka_unit_test(release__wakes_all_who_sleep),
		cmocka_unit_test(take__one_thread_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
