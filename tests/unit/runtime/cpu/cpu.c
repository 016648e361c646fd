/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* CPUs allowed to the process, and pinning. */

#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>

#include "base/cpu.h"
#include "rt_fake.h"

static void nth_allowed__round_again(void **state)
{
	cpu_set_t set;
	int first;
	int cpu;
	int n;

	(void)state;
	ok(sched_getaffinity(0, sizeof(set), &set));
	for (n = 0; n < CPU_COUNT(&set); n++) {
		ok(rt_cpu_nth_allowed(n, &cpu));
		assert_true(CPU_ISSET(cpu, &set));
	}
	ok(rt_cpu_nth_allowed(0, &first));
	ok(rt_cpu_nth_allowed(CPU_COUNT(&set), &cpu));
	assert_int_equal(cpu, first);
}

static void nth_allowed__system_refuses_PROVIDER(void **state)
{
	int cpu = 5;

	(void)state;
	fake_fail("sched_getaffinity", 1, EPERM);
	assert_int_equal(rt_cpu_nth_allowed(0, &cpu), RPMA_E_PROVIDER);
	assert_int_equal(cpu, 5);
}

static void check__any_is_always_right(void **state)
{
	(void)state;
	fake_fail("sched_getaffinity", 1, EPERM); /* not asked */
	ok(rt_cpu_check(RPMA_RT_CPU_ANY));
	assert_false(fake_failed());
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

static void check__system_refuses_PROVIDER(void **state)
{
	(void)state;
	fake_fail("sched_getaffinity", 1, EPERM);
	assert_int_equal(rt_cpu_check(0), RPMA_E_PROVIDER);
}

static void pin_self__there_it_runs(void **state)
{
	cpu_set_t before;
	cpu_set_t set;
	int cpu;

	(void)state;
	ok(sched_getaffinity(0, sizeof(before), &before));
	ok(rt_cpu_nth_allowed(0, &cpu));
	ok(rt_cpu_pin_self(cpu));
	ok(sched_getaffinity(0, sizeof(set), &set));
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(cpu, &set));
	ok(sched_setaffinity(0, sizeof(before), &before));
}

static void pin_self__any_leaves_it(void **state)
{
	(void)state;
	fake_fail("pthread_setaffinity_np", 1, EINVAL);
	ok(rt_cpu_pin_self(RPMA_RT_CPU_ANY));
	assert_int_equal(rt_cpu_pin_self(0), RPMA_E_PROVIDER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_allowed__round_again),
		cmocka_unit_test(nth_allowed__system_refuses_PROVIDER),
		cmocka_unit_test(check__any_is_always_right),
		cmocka_unit_test(check__no_such_cpu_INVAL),
		cmocka_unit_test(check__system_refuses_PROVIDER),
		cmocka_unit_test(pin_self__there_it_runs),
		cmocka_unit_test(pin_self__any_leaves_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
