/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of log control. */

#include "mocks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

/* what the log function of the tests got last */
static char last[2048];
static enum rpma_log_level last_level;
static const char *last_file;
static const char *last_function;
static int calls;

static void log_it(enum rpma_log_level level, const char *file_name,
		   const int line_no, const char *function_name,
		   const char *message_format, ...)
{
	va_list args;

	(void)line_no;
	/* as the page promises */
	assert_int_equal(*(strchr(message_format, '\0') - 1), '\n');
	va_start(args, message_format);
	vsnprintf(last, sizeof(last), message_format, args);
	va_end(args);
	last_level = level;
	last_file = file_name;
	last_function = function_name;
	calls++;
}

/* before anything is set: what a program starts with */
TEST(defaults__release)
{
	enum rpma_log_level level = RPMA_LOG_LEVEL_DEBUG;

	ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
	assert_int_equal(level, RPMA_LOG_LEVEL_WARNING);
	ok(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &level));
	assert_int_equal(level, RPMA_LOG_DISABLED);
}

TEST(threshold__set_then_get_IS_THE_SAME)
{
	enum rpma_log_level level;
	int threshold;
	int value;

	for (threshold = 0; threshold < RPMA_LOG_THRESHOLD_MAX; threshold++) {
		for (value = -1; value <= 5; value++) {
			ok(rpma_log_set_threshold(threshold, value));
			ok(rpma_log_get_threshold(threshold, &level));
			assert_int_equal(level, value);
		}
	}
}

TEST(threshold__out_of_range_INVAL)
{
	enum rpma_log_level level = RPMA_LOG_LEVEL_NOTICE;

	assert_int_equal(rpma_log_set_threshold(2, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_log_set_threshold(-1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_log_set_threshold(0, 6), RPMA_E_INVAL);
	assert_int_equal(rpma_log_set_threshold(0, -2), RPMA_E_INVAL);
	assert_int_equal(rpma_log_get_threshold(2, &level), RPMA_E_INVAL);
	assert_int_equal(rpma_log_get_threshold(0, NULL), RPMA_E_INVAL);
	assert_int_equal(level, RPMA_LOG_LEVEL_NOTICE);
}

TEST(function__own_GETS_WHAT_PASSES)
{
	calls = 0;
	ok(rpma_log_set_function(log_it));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
	RPMA_LOG_NOTICE("not this");
	assert_int_equal(calls, 0);
	RPMA_LOG_WARNING("this %d", 7);
	assert_int_equal(calls, 1);
	assert_string_equal(last, "this 7\n");
	assert_int_equal(last_level, RPMA_LOG_LEVEL_WARNING);
	assert_string_equal(last_file, __FILE__);
	assert_string_equal(last_function, __func__);
	RPMA_LOG_FATAL("and this");
	assert_string_equal(last, "and this\n");

	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	RPMA_LOG_FATAL("nothing");
	assert_int_equal(calls, 2);
	ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
}

/* The auxiliary threshold is the default function's, nobody else's. */
TEST(function__own_IGNORES_AUX)
{
	calls = 0;
	ok(rpma_log_set_function(log_it));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
	RPMA_LOG_DEBUG("passes");
	RPMA_LOG_INFO("passes");
	RPMA_LOG_ERROR("passes");
	assert_int_equal(calls, 3);
	ok(rpma_log_set_function(NULL));
	RPMA_LOG_DEBUG("to the default function");
	assert_int_equal(calls, 3);
}

TEST(message__of_another_library_LIKE_OURS)
{
	calls = 0;
	ok(rpma_log_set_function(log_it));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
	rpma_log_message(RPMA_LOG_LEVEL_NOTICE, "f.c", 1, "f", "not this");
	assert_int_equal(calls, 0);
	rpma_log_message(RPMA_LOG_LEVEL_WARNING, "f.c", 1, "f", "this %d%%", 7);
	assert_int_equal(calls, 1);
	assert_string_equal(last, "this 7%\n");
	assert_int_equal(last_level, RPMA_LOG_LEVEL_WARNING);
	assert_string_equal(last_file, "f.c");
	assert_string_equal(last_function, "f");
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
	rpma_log_message(RPMA_LOG_LEVEL_DEBUG, "f.c", 1, "f", "debug");
	assert_int_equal(calls, 2);
	rpma_log_message(RPMA_LOG_LEVEL_FATAL, "f.c", 1, "f", "fatal");
	assert_int_equal(calls, 3);
	ok(rpma_log_set_function(NULL));
}

TEST(message__no_level_or_format_NOTHING)
{
	const char *none = NULL;

	calls = 0;
	ok(rpma_log_set_function(log_it));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
	rpma_log_message(RPMA_LOG_DISABLED, "f.c", 1, "f", "text");
	rpma_log_message(RPMA_LOG_LEVEL_DEBUG + 1, "f.c", 1, "f", "text");
	rpma_log_message(RPMA_LOG_LEVEL_ERROR, "f.c", 1, "f", none, 1);
	assert_int_equal(calls, 0);
	ok(rpma_log_set_function(NULL));
}

/* It ends in its newline all the same. */
TEST(message__long_IS_CUT)
{
	char text[3000];

	calls = 0;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ok(rpma_log_set_function(log_it));
	rpma_log_message(RPMA_LOG_LEVEL_ERROR, "f.c", 1, "f", "%s", text);
	assert_int_equal(calls, 1);
	assert_int_equal(strlen(last), 1024);
	assert_int_equal(last[1023], '\n');
	ok(rpma_log_set_function(NULL));
}

/* ---------------------------------------------------------------- held --- */

static void log_to_us(void)
{
	calls = 0;
	ok(rpma_log_set_function(log_it));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
}

MOCK_TEST(hold__nested_NOTHING_BEFORE_THE_LAST_RELEASE)
{
	log_to_us();
	rpma_log_hold();
	RPMA_LOG_ERROR("first %d", 1);
	rpma_log_hold();
	rpma_log_message(RPMA_LOG_LEVEL_WARNING, "f.c", 1, "f", "second");
	RPMA_LOG_INFO("not this");
	rpma_log_release();
	assert_int_equal(calls, 0);
	rpma_log_release();
	assert_int_equal(calls, 2);
	assert_string_equal(last, "second\n");
	assert_int_equal(last_level, RPMA_LOG_LEVEL_WARNING);
	assert_string_equal(last_file, "f.c");
	assert_string_equal(last_function, "f");
	RPMA_LOG_ERROR("at once again");
	assert_int_equal(calls, 3);
	rpma_log_release(); /* of no pair */
	RPMA_LOG_ERROR("as before");
	assert_int_equal(calls, 4);
	ok(rpma_log_set_function(NULL));
}

MOCK_TEST(hold__long_THE_SAME_TEXT)
{
	char text[1024];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_to_us();
	rpma_log_hold();
	rpma_log_message(RPMA_LOG_LEVEL_ERROR, "f.c", 1, "f", "%s", text);
	rpma_log_release();
	assert_int_equal(calls, 1);
	assert_int_equal(strlen(last), 1024);
	assert_int_equal(last[1023], '\n');
	/* longer: cut */
	rpma_log_hold();
	RPMA_LOG_ERROR("%s%s", text, text);
	rpma_log_release();
	assert_int_equal(strlen(last), 1024);
	assert_int_equal(last[1023], '\n');
	ok(rpma_log_set_function(NULL));
}

MOCK_TEST(hold__no_memory_COUNTED)
{
	log_to_us();
	rpma_log_hold();
	mock_fail("malloc", 1, ENOMEM);
	RPMA_LOG_ERROR("lost");
	RPMA_LOG_ERROR("kept");
	rpma_log_release();
	assert_int_equal(calls, 2);
	assert_string_equal(last, "no memory for 1 messages of the log\n");
	ok(rpma_log_set_function(NULL));
}

/* Logs, and holds, when it is called the first time. */
static void log_more(enum rpma_log_level level, const char *file_name,
		     const int line_no, const char *function_name,
		     const char *message_format, ...)
{
	(void)level;
	(void)file_name;
	(void)line_no;
	(void)function_name;
	(void)message_format;
	if (calls++ > 0)
		return;
	rpma_log_hold();
	RPMA_LOG_ERROR("of the function itself");
	assert_int_equal(calls, 1);
	rpma_log_release();
	assert_int_equal(calls, 2);
}

MOCK_TEST(release__function_holds_too_EACH_ONCE)
{
	log_to_us();
	ok(rpma_log_set_function(log_more));
	rpma_log_hold();
	RPMA_LOG_ERROR("one");
	RPMA_LOG_ERROR("two");
	rpma_log_release();
	assert_int_equal(calls, 3);
	ok(rpma_log_set_function(NULL));
}

static void *log_there(void *arg)
{
	(void)arg;
	RPMA_LOG_ERROR("of another thread");
	return NULL;
}

MOCK_TEST(hold__of_a_thread_ITS_OWN_ONLY)
{
	pthread_t thread;

	log_to_us();
	rpma_log_hold();
	assert_int_equal(pthread_create(&thread, NULL, log_there, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(calls, 1);
	rpma_log_release();
	assert_int_equal(calls, 1);
	ok(rpma_log_set_function(NULL));
}

TEST_MAIN()
