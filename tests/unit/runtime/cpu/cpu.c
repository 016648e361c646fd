/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* CPUs of the process, and where a thread is placed. */

#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>

#include "base/thread.h"
#include "rt_fake.h"

static int first_of(const cpu_set_t *set)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, set))
		cpu++;
	return cpu;
}

static void check__any_is_always_right(void **state)
{
	(void)state;
	ok(rt_cpu_check(RPMA_RT_CPU_ANY));
}

static void check__no_such_cpu_INVAL(void **state)
{
	cpu_set_t set;
	int cpu = 0;

	(void)state;
	assert_int_equal(rt_cpu_check(-2), RPMA_E_INVAL);
	assert_int_equal(rt_cpu_check(CPU_SETSIZE), RPMA_E_INVAL);
	ok(sched_getaffinity(0, sizeof(set), &set));
	while (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set))
		cpu++;
	assert_int_equal(rt_cpu_check(cpu), RPMA_E_INVAL);
}

/* Where the caller is pinned does not count. */
static void check__pinned_caller_every_CPU_of_the_process(void **state)
{
	cpu_set_t before;
	int cpu;

	(void)state;
	ok(sched_getaffinity(0, sizeof(before), &before));
	rt_cpu_place(pthread_self(), first_of(&before));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &before))
			ok(rt_cpu_check(cpu));
	}
	rt_cpu_place(pthread_self(), RPMA_RT_CPU_ANY);
}

static void place__there_it_runs_and_any_takes_it_back(void **state)
{
	cpu_set_t before;
	cpu_set_t set;

	(void)state;
	ok(sched_getaffinity(0, sizeof(before), &before));
	rt_cpu_place(pthread_self(), first_of(&before));
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(first_of(&before), &set));
	rt_cpu_place(pthread_self(), RPMA_RT_CPU_ANY);
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_true(CPU_EQUAL(&set, &before));
}

static void place__refused_it_runs_where_it_ran(void **state)
{
	cpu_set_t before;
	cpu_set_t set;

	(void)state;
	ok(sched_getaffinity(0, sizeof(before), &before));
	fake_fail("pthread_setaffinity_np", 1, EINVAL);
	rt_cpu_place(pthread_self(), first_of(&before));
	assert_true(fake_failed());
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_true(CPU_EQUAL(&set, &before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check__any_is_always_right),
		cmocka_unit_test(check__no_such_cpu_INVAL),
		cmocka_unit_test(check__pinned_caller_every_CPU_of_the_process),
		cmocka_unit_test(place__there_it_runs_and_any_takes_it_back),
		cmocka_unit_test(place__refused_it_runs_where_it_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
