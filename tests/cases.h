/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cases.h -- the cases of a suite on cmocka. A case is written where the case
 * stands, and lists itself before main() begins; the cases run in the order of
 * the file:
 *
 *	TEST(send__of_nothing_COMPLETES)
 *	{
 *		...
 *	}
 *
 *	TEST_MAIN()
 *
 * A suite with arguments has a main() of its own, which ends in tests_run().
 */

#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define TESTS_MAX 256

__attribute__((unused)) static struct CMUnitTest tests_listed[TESTS_MAX];
__attribute__((unused)) static size_t tests_count;

static inline void tests_list(const struct CMUnitTest *test)
{
	assert(tests_count < TESTS_MAX);
	tests_listed[tests_count++] = *test;
}

/* Runs the cases; set_up and tear_down, if not NULL, run once. */
static inline int tests_run(CMFixtureFunction set_up,
			    CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests("tests", tests_listed, tests_count,
				       set_up, tear_down);
}

#define TEST_NAMED(title, name, set_up, tear_down)                   \
	static void name(void **state);                              \
	__attribute__((constructor)) static void list_##name(void)   \
	{                                                            \
		tests_list(&(struct CMUnitTest){title, name, set_up, \
						tear_down, NULL});   \
	}                                                            \
	static void name(__attribute__((unused)) void **state)

/* Begins a case between set_up and tear_down, each a function or NULL. */
#define TEST_WITH(name, set_up, tear_down) \
	TEST_NAMED(#name, name, set_up, tear_down)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Begins a case with a parameter: what set_up has left in *state. */
#define TEST_OF(parameter, name, set_up, tear_down)      \
	static void name(parameter);                     \
	TEST_NAMED(#name, run_##name, set_up, tear_down) \
	{                                                \
		name(*state);                            \
	}                                                \
	static void name(__attribute__((unused)) parameter)

/* Makes main(), which runs the cases. */
#define TEST_MAIN()                           \
	int main(void)                        \
	{                                     \
		return tests_run(NULL, NULL); \
	}

#endif /* TESTS_CASES_H */
