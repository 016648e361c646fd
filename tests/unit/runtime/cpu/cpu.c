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

TEST(check__any_is_always_right)
{
	ok(rt_cpu_check(RPMA_RT_CPU_ANY));
}

TEST(check__no_such_cpu_INVAL)
{
	cpu_set_t set;
	int cpu = 0;

	assert_int_equal(rt_cpu_check(-2), RPMA_E_INVAL);
	assert_int_equal(rt_cpu_check(CPU_SETSIZE), RPMA_E_INVAL);
	ok(sched_getaffinity(0, sizeof(set), &set));
	while (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set))
		cpu++;
	assert_int_equal(rt_cpu_check(cpu), RPMA_E_INVAL);
}

/* Where the caller is pinned does not count. */
TEST(check__pinned_caller_every_CPU_of_the_process)
{
	cpu_set_t before;
	int cpu;

	ok(sched_getaffinity(0, sizeof(before), &before));
	rt_cpu_place(pthread_self(), first_of(&before));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &before))
			ok(rt_cpu_check(cpu));
	}
	rt_cpu_place(pthread_self(), RPMA_RT_CPU_ANY);
}

TEST(place__there_it_runs_and_any_takes_it_back)
{
	cpu_set_t before;
	cpu_set_t set;

	ok(sched_getaffinity(0, sizeof(before), &before));
	rt_cpu_place(pthread_self(), first_of(&before));
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(first_of(&before), &set));
	rt_cpu_place(pthread_self(), RPMA_RT_CPU_ANY);
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_true(CPU_EQUAL(&set, &before));
}

TEST(place__refused_it_runs_where_it_ran)
{
	cpu_set_t before;
	cpu_set_t set;

	ok(sched_getaffinity(0, sizeof(before), &before));
	fake_fail("pthread_setaffinity_np", 1, EINVAL);
	rt_cpu_place(pthread_self(), first_of(&before));
	assert_true(fake_failed());
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_true(CPU_EQUAL(&set, &before));
}

TEST_MAIN()
