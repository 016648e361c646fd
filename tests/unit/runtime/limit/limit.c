/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of the log's limit, with a clock of the test's own: ten messages a
 * second and place, then a count; and of reasons that are noted and logged
 * later. librpma's log is a fake.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../../../cases.h"
#include "base/log.h"
#include "rpma_rt.h"

#define SECOND	UINT64_C(1000000000)
#define THREADS 4
#define EACH	2500

static enum rpma_log_level threshold = RPMA_LOG_LEVEL_WARNING;
static enum rpma_log_level level_said;
static char said[1200];
static int count_said;

int rpma_log_get_threshold(enum rpma_log_threshold which,
			   enum rpma_log_level *level)
{
	assert_int_equal(which, RPMA_LOG_THRESHOLD);
	*level = threshold;
	return 0;
}

void rpma_log_message(enum rpma_log_level level, const char *file_name,
		      int line_no, const char *function_name,
		      const char *message_format, ...)
{
	va_list args;

	assert_non_null(file_name);
	assert_non_null(function_name);
	assert_true(line_no > 0);
	va_start(args, message_format);
	vsnprintf(said, sizeof(said), message_format, args);
	va_end(args);
	level_said = level;
	count_said++;
}

static bool pass(uint64_t now_ns, const char *file, int line)
{
	uint32_t left_out;
	bool is_last;

	return rt_limit_pass(now_ns, file, line, &left_out, &is_last);
}

__attribute__((format(printf, 3, 4))) static void
say(uint64_t now_ns, const struct rt_log_place *place, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	rt_log_at(now_ns, place, RPMA_LOG_LEVEL_ERROR, format, args);
	va_end(args);
}

TEST(pass__ten_a_second_THEN_A_COUNT)
{
	static const char file[] = "a.c";
	uint32_t left_out = 7;
	bool is_last = true;
	int i;

	for (i = 1; i <= 10; i++) {
		assert_true(rt_limit_pass(5 * SECOND + (uint64_t)i, file, 1,
					  &left_out, &is_last));
		assert_int_equal(left_out, 0);
		assert_int_equal(is_last, i == 10);
	}
	for (i = 0; i < 23; i++)
		assert_false(pass(6 * SECOND - 1, file, 1));
	assert_true(rt_limit_pass(6 * SECOND, file, 1, &left_out, &is_last));
	assert_int_equal(left_out, 23);
	assert_true(rt_limit_pass(9 * SECOND, file, 1, &left_out, &is_last));
	assert_int_equal(left_out, 0); /* said once */
}

TEST(pass__places_EACH_FOR_ITSELF)
{
	static const char file[] = "b.c";
	static const char other[] = "c.c";
	int i;

	for (i = 0; i < 10; i++)
		assert_true(pass(SECOND, file, 1));
	assert_false(pass(SECOND, file, 1));
	assert_true(pass(SECOND, file, 2));
	assert_true(pass(SECOND, other, 1));
	for (i = 0; i < 500; i++)
		assert_true(pass(SECOND, file, 1000 + i));
}

/* A thread that read the clock, and was late. */
TEST(pass__clock_of_before_COUNTS_NOW)
{
	static const char file[] = "d.c";
	int i;

	for (i = 0; i < 10; i++)
		assert_true(pass(3 * SECOND - (uint64_t)(i % 2), file, 1));
	/* the first was in the second before: not a second ten of it */
	assert_false(pass(3 * SECOND - 1, file, 1));
}

static const char many_file[] = "e.c";
static _Atomic int passed;

static void *log_much(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < EACH; i++) {
		if (pass(SECOND, many_file, 1))
			/* relaxed: a count, read when they have ended */
			atomic_fetch_add_explicit(&passed, 1,
						  memory_order_relaxed);
	}
	return NULL;
}

TEST(pass__threads_TEN_TOGETHER)
{
	pthread_t threads[THREADS];
	uint32_t left_out;
	bool is_last;
	int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, log_much, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* relaxed: they have ended */
	assert_int_equal(atomic_load_explicit(&passed, memory_order_relaxed),
			 10);
	assert_true(
		rt_limit_pass(2 * SECOND, many_file, 1, &left_out, &is_last));
	assert_int_equal(left_out, THREADS * EACH - 10);
}

TEST(log__count_IN_THE_NEXT_MESSAGE)
{
	const struct rt_log_place *place = RT_LOG_HERE;
	int i;

	count_said = 0;
	for (i = 1; i <= 12; i++)
		say(SECOND, place, "number %d", i);
	assert_int_equal(count_said, 10);
	assert_string_equal(said, "number 10 (others within this second are "
				  "counted only)");
	say(2 * SECOND, place, "number %d", 13);
	assert_int_equal(count_said, 11);
	assert_string_equal(said, "number 13 (2 like it were left out before)");
	assert_int_equal(level_said, RPMA_LOG_LEVEL_ERROR);
}

TEST(log__below_the_threshold_NOT_COUNTED)
{
	const struct rt_log_place *place = RT_LOG_HERE;
	int i;

	threshold = RPMA_LOG_DISABLED;
	count_said = 0;
	for (i = 0; i < 30; i++)
		say(SECOND, place, "unseen");
	assert_int_equal(count_said, 0);
	threshold = RPMA_LOG_LEVEL_WARNING;
	say(SECOND, place, "seen");
	assert_string_equal(said, "seen");
}

/* ------------------------------------------------------------- reasons --- */

TEST(refuse__LEVEL_OF_ITS_ERROR)
{
	threshold = RPMA_LOG_LEVEL_INFO;
	assert_int_equal(RT_REFUSE(RPMA_E_INVAL, "a %d", 1), RPMA_E_INVAL);
	assert_int_equal(level_said, RPMA_LOG_LEVEL_ERROR);
	assert_string_equal(said, "a 1");
	assert_int_equal(RT_REFUSE(RPMA_RT_E_BUSY, "b"), RPMA_RT_E_BUSY);
	assert_int_equal(level_said, RPMA_LOG_LEVEL_ERROR);
	assert_int_equal(RT_REFUSE(RPMA_RT_E_CLOSED, "c"), RPMA_RT_E_CLOSED);
	assert_int_equal(level_said, RPMA_LOG_LEVEL_INFO);
	threshold = RPMA_LOG_LEVEL_WARNING;
}

TEST(refuse_null__NAMES_THE_FIRST)
{
	const char *one = "";
	const char *two = NULL;
	const char *three = NULL;

	assert_int_equal(RT_REFUSE_NULL(one), 0);
	assert_int_equal(RT_REFUSE_NULL(one, two, three), RPMA_E_INVAL);
	assert_string_equal(said, "two is NULL");
	assert_int_equal(RT_REFUSE_NULL(one, one, three), RPMA_E_INVAL);
	assert_string_equal(said, "three is NULL");
}

/* Noted under a lock, logged without, once. */
TEST(later__SAID_AT_THE_END)
{
	count_said = 0;
	assert_int_equal(rt_refuse_later(RPMA_E_INVAL, "it is %ld", 5),
			 RPMA_E_INVAL);
	assert_int_equal(rt_refuse_wr(RPMA_E_INVAL, 3, "is odd"), RPMA_E_INVAL);
	assert_int_equal(count_said, 0);
	assert_int_equal(RT_REFUSED(RPMA_E_INVAL, "none"), RPMA_E_INVAL);
	assert_string_equal(said, "none: work request 3 of the call is odd");
	assert_int_equal(RT_REFUSED(RPMA_E_INVAL, "none"), RPMA_E_INVAL);
	assert_int_equal(count_said, 1); /* another has logged this one */
	errno = EMFILE;
	assert_int_equal(rt_refuse_system("eventfd"), RPMA_E_PROVIDER);
	errno = 0;
	RT_REFUSED(RPMA_E_PROVIDER, "none");
	assert_string_equal(said,
			    "none: eventfd() failed: Too many open files");
}

TEST(later__of_another_error_DROPPED)
{
	count_said = 0;
	rt_refuse_later(RPMA_E_INVAL, "it is %ld", 5);
	assert_int_equal(RT_REFUSED(RPMA_E_NOMEM, "none"), RPMA_E_NOMEM);
	assert_non_null(strstr(said, "none: no memory"));
	RT_REFUSED(RPMA_E_INVAL, "none");
	rt_refuse_later(RPMA_E_INVAL, "it is %ld", 5);
	rt_refuse_forget();
	RT_REFUSED(RPMA_E_INVAL, "none");
	assert_int_equal(count_said, 1);
	assert_int_equal(RT_REFUSED(0, "none"), 0);
}

TEST_MAIN()
