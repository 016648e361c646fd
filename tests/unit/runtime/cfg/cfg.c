/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The runtime's configuration: defaults, ranges, nothing kept on failure. */

#include <limits.h>

#include "rt_fake.h"

static struct rpma_rt_cfg *cfg;

static int setup(void **state)
{
	(void)state;
	return rpma_rt_cfg_new(&cfg);
}

static int teardown(void **state)
{
	(void)state;
	ok(rpma_rt_cfg_delete(&cfg));
	assert_null(cfg);
	assert_int_equal(fake_memory(), 0);
	return fake_failed() ? 0 : -1;
}

static void new__invalid_INVAL(void **state)
{
	(void)state;
	assert_int_equal(rpma_rt_cfg_new(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_delete(NULL), RPMA_E_INVAL);
}

static void new__no_memory_NOMEM(void **state)
{
	struct rpma_rt_cfg *other = cfg;

	(void)state;
	fake_fail("malloc", 1, 1);
	assert_int_equal(rpma_rt_cfg_new(&other), RPMA_E_NOMEM);
	assert_ptr_equal(other, cfg); /* written only on success */
}

static void new__defaults(void **state)
{
	enum rpma_rt_mode mode;
	uint32_t value;
	int pollers;

	(void)state;
	ok(rpma_rt_cfg_get_pollers(cfg, &pollers));
	assert_int_equal(pollers, 1);
	ok(rpma_rt_cfg_get_mode(cfg, &mode));
	assert_int_equal(mode, RPMA_RT_MODE_ADAPTIVE);
	ok(rpma_rt_cfg_get_spin_us(cfg, &value));
	assert_int_equal(value, RPMA_RT_DEFAULT_SPIN_US);
	ok(rpma_rt_cfg_get_backstop_ms(cfg, &value));
	assert_int_equal(value, RPMA_RT_DEFAULT_BACKSTOP_MS);
	ok(rpma_rt_cfg_get_cq_size(cfg, &value));
	assert_int_equal(value, RPMA_RT_DEFAULT_CQ_SIZE);
	ok(rpma_rt_cfg_get_drain_ms(cfg, &value));
	assert_int_equal(value, RPMA_RT_DEFAULT_DRAIN_MS);
	assert_int_equal(cfg->cpus_count, 0);
}

static void delete__null_inside(void **state)
{
	struct rpma_rt_cfg *none = NULL;

	(void)state;
	ok(rpma_rt_cfg_delete(&none));
}

/* a setter and getter of a number, and its range */
struct number {
	int (*set)(struct rpma_rt_cfg *cfg, uint32_t value);
	int (*get)(const struct rpma_rt_cfg *cfg, uint32_t *value);
	uint32_t min;
	uint32_t max;
};

static const struct number numbers[] = {
	{rpma_rt_cfg_set_spin_us, rpma_rt_cfg_get_spin_us, 0, 1000000},
	{rpma_rt_cfg_set_backstop_ms, rpma_rt_cfg_get_backstop_ms, 0, 60000},
	{rpma_rt_cfg_set_cq_size, rpma_rt_cfg_get_cq_size, 1, INT32_MAX},
	{rpma_rt_cfg_set_drain_ms, rpma_rt_cfg_get_drain_ms, 1, 600000},
};

static void number__range(const struct number *n)
{
	uint32_t value;

	ok(n->set(cfg, n->max));
	ok(n->get(cfg, &value));
	assert_int_equal(value, n->max);
	ok(n->set(cfg, n->min));
	assert_int_equal(n->set(cfg, n->max + 1), RPMA_E_INVAL);
	if (n->min > 0)
		assert_int_equal(n->set(cfg, n->min - 1), RPMA_E_INVAL);
	ok(n->get(cfg, &value));
	assert_int_equal(value, n->min);
	assert_int_equal(n->set(NULL, n->min), RPMA_E_INVAL);
	assert_int_equal(n->get(NULL, &value), RPMA_E_INVAL);
	assert_int_equal(n->get(cfg, NULL), RPMA_E_INVAL);
}

static void numbers__range(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		number__range(&numbers[i]);
}

static void pollers__range(void **state)
{
	int count;

	(void)state;
	ok(rpma_rt_cfg_set_pollers(cfg, RPMA_RT_MAX_POLLERS));
	assert_int_equal(rpma_rt_cfg_set_pollers(cfg, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_pollers(cfg, -1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_pollers(cfg, RPMA_RT_MAX_POLLERS + 1),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_pollers(NULL, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_get_pollers(NULL, &count), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_get_pollers(cfg, NULL), RPMA_E_INVAL);
	ok(rpma_rt_cfg_get_pollers(cfg, &count));
	assert_int_equal(count, RPMA_RT_MAX_POLLERS);
}

static void timing__any_number(void **state)
{
	uint32_t every;

	(void)state;
	ok(rpma_rt_cfg_get_timing(cfg, &every));
	assert_int_equal(every, 0);
	ok(rpma_rt_cfg_set_timing(cfg, 7));
	ok(rpma_rt_cfg_get_timing(cfg, &every));
	assert_int_equal(every, 7);
	assert_int_equal(rpma_rt_cfg_set_timing(NULL, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_get_timing(NULL, &every), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_get_timing(cfg, NULL), RPMA_E_INVAL);
}

static void mode__range(void **state)
{
	enum rpma_rt_mode mode;

	(void)state;
	ok(rpma_rt_cfg_set_mode(cfg, RPMA_RT_MODE_MANUAL));
	assert_int_equal(rpma_rt_cfg_set_mode(cfg, (enum rpma_rt_mode)4),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_mode(cfg, (enum rpma_rt_mode) - 1),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_mode(NULL, RPMA_RT_MODE_BUSY),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_get_mode(NULL, &mode), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_get_mode(cfg, NULL), RPMA_E_INVAL);
	ok(rpma_rt_cfg_get_mode(cfg, &mode));
	assert_int_equal(mode, RPMA_RT_MODE_MANUAL);
}

static void cpus__copied(void **state)
{
	int cpus[RPMA_RT_MAX_POLLERS] = {3, RPMA_RT_CPU_ANY};

	(void)state;
	assert_int_equal(rpma_rt_cfg_set_cpus(NULL, cpus, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_cpus(cfg, NULL, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_cfg_set_cpus(cfg, cpus, 0), RPMA_E_INVAL);
	assert_int_equal(
		rpma_rt_cfg_set_cpus(cfg, cpus, RPMA_RT_MAX_POLLERS + 1),
		RPMA_E_INVAL);
	assert_int_equal(cfg->cpus_count, 0);
	ok(rpma_rt_cfg_set_cpus(cfg, cpus, 2));
	cpus[0] = 99;
	assert_int_equal(cfg->cpus_count, 2);
	assert_int_equal(cfg->cpus[0], 3);
	assert_int_equal(cfg->cpus[1], RPMA_RT_CPU_ANY);
	ok(rpma_rt_cfg_set_cpus(cfg, cpus, RPMA_RT_MAX_POLLERS));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(new__invalid_INVAL), TEST(new__no_memory_NOMEM),
		TEST(new__defaults),	  TEST(delete__null_inside),
		TEST(numbers__range),	  TEST(pollers__range),
		TEST(mode__range),	  TEST(cpus__copied),
		TEST(timing__any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
