/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The trace, requested failures, and the count of the objects that exist. */

#include "mocks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_MAX 8192
#define SAID_MAX  1024
#define PLANS_MAX 4

void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);

static char trace[TRACE_MAX];
static size_t trace_len;
static int live;
static bool is_quiet;
static char said[SAID_MAX];
static int said_count;

/* calls that are to fail; call NULL: free */
static struct plan {
	const char *call;
	int left;
	int err;
} plans[PLANS_MAX];

void mocks_reset(void)
{
	trace[0] = '\0';
	trace_len = 0;
	said[0] = '\0';
	said_count = 0;
	memset(plans, 0, sizeof(plans));
}

void mocks_quiet(void)
{
	mocks_reset();
	is_quiet = true;
}

void mock_fail(const char *call, int nth, int err)
{
	struct plan *plan = plans;

	while (plan->call)
		plan++;
	assert_true(plan < plans + PLANS_MAX);
	*plan = (struct plan){call, nth, err};
}

static int planned_error(const char *call)
{
	struct plan *plan;
	int err = 0;

	for (plan = plans; plan < plans + PLANS_MAX; plan++) {
		if (plan->call && strcmp(plan->call, call) == 0 &&
		    --plan->left == 0)
			err = plan->err;
	}
	return err;
}

void (*mock_hook)(const char *call);

int mock_enter(const char *call, const char *format, ...)
{
	va_list args;
	int err = planned_error(call);

	if (err == 0)
		errno = ECHILD; /* a call that succeeds may leave anything */
	if (format == NULL || is_quiet)
		return err;
	trace_len += (size_t)snprintf(trace + trace_len, TRACE_MAX - trace_len,
				      "%s%s", trace_len ? " " : "", call);
	va_start(args, format);
	trace_len += (size_t)vsnprintf(trace + trace_len, TRACE_MAX - trace_len,
				       format, args);
	va_end(args);
	assert_true(trace_len < TRACE_MAX);
	if (mock_hook)
		mock_hook(call);
	return err;
}

const char *mocks_trace(void)
{
	return trace;
}

void *mock_alloc(size_t size)
{
	live++;
	return __real_calloc(1, size);
}

void mock_free(void *memory)
{
	live--;
	__real_free(memory);
}

int mocks_live(void)
{
	return live;
}

/* ---- the log ---- */

static void keep_error(enum rpma_log_level level, const char *file_name,
		       const int line_no, const char *function_name,
		       const char *message_format, ...)
{
	va_list args;

	(void)file_name;
	(void)line_no;
	(void)function_name;
	if (level > RPMA_LOG_LEVEL_ERROR)
		return;
	va_start(args, message_format);
	(void)vsnprintf(said, sizeof(said), message_format, args);
	va_end(args);
	said_count++;
}

void mocks_listen(void)
{
	(void)rpma_log_set_function(keep_error);
	(void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
	said[0] = '\0';
	said_count = 0;
}

int mocks_said_count(void)
{
	return said_count;
}

const char *mocks_said(void)
{
	return said;
}

void expect_said(const char *part)
{
	if (said_count != 1 || strstr(said, part) == NULL)
		fail_msg("\"%s\" is not the one error: %d, the last is \"%s\"",
			 part, said_count, said);
}

/* ---- the allocator, as the library sees it; not in the trace ---- */

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);
void *__real_malloc(size_t size);
void *__real_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
	errno = mock_enter("malloc", NULL);
	if (errno)
		return NULL;
	live++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	errno = mock_enter("malloc", NULL);
	if (errno)
		return NULL;
	live++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	errno = mock_enter("malloc", NULL);
	if (errno)
		return NULL;
	live += memory == NULL;
	return __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
	live -= memory != NULL;
	__real_free(memory);
}

/* ---- cancellation ---- */

static int cancelled_ret;

static void cancel_here(const char *call)
{
	(void)call;
	(void)pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void *run_cancelled(void *arg)
{
	int (*const *call)(void) = arg;

	cancelled_ret = (*call)();
	return NULL;
}

int mock_cancelled(int (*call)(void))
{
	pthread_t thread;
	void *end;

	mock_hook = cancel_here;
	ok(pthread_create(&thread, NULL, run_cancelled, &call));
	ok(pthread_join(thread, &end));
	mock_hook = NULL;
	assert_null(end);
	return cancelled_ret;
}

/* ---- tests ---- */

int mocks_setup(void **state)
{
	(void)state;
	mocks_reset();
	(void)rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
	(void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return 0;
}

int mocks_teardown(void **state)
{
	(void)state;
	if (live == 0)
		return 0;
	print_error("%d objects are left\n", live);
	live = 0;
	return -1;
}

/* An error was said; that memory is missing, once and in these words. */
static void expect_reason(const struct failure *failure)
{
	switch (failure->ret) {
	case 0:
	case RPMA_E_AGAIN:
	case RPMA_E_NO_COMPLETION:
	case RPMA_E_NO_EVENT:
		return;
	case RPMA_E_NOMEM:
		expect_said("no memory for ");
		return;
	default:
		if (said_count == 0)
			fail_msg("%s fails, and nothing is said",
				 failure->call);
	}
}

/* Whatever was undone and said since. Errors of the resolver are no errno. */
static void expect_errno(const struct failure *failure, int err)
{
	if (failure->ret != RPMA_E_PROVIDER || failure->err <= 0)
		return;
	if (err != failure->err)
		print_error("%s fails: errno is %s\n", failure->call,
			    strerror(err));
	assert_int_equal(err, failure->err);
}

void each_failure(int (*op)(void), const struct failure *failures, size_t count,
		  bool has_errno)
{
	int before = live;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct failure *failure = &failures[i];
		int err;
		int ret;

		mocks_reset();
		mocks_listen();
		if (failure->call)
			mock_fail(failure->call, failure->nth, failure->err);
		ret = op();
		err = errno;
		if (ret != failure->ret)
			print_error("%s fails: %s\n", failure->call,
				    rpma_err_2str(ret));
		assert_int_equal(ret, failure->ret);
		expect_reason(failure);
		if (has_errno)
			expect_errno(failure, err);
		if (failure->trace)
			expect_trace(failure->trace);
		if (live != before)
			print_error("%s fails: %d objects are left\n",
				    failure->call, live - before);
		assert_int_equal(live, before);
	}
	mocks_reset();
}
