/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The table of failures: each step with each errno has the reason that the
 * table in rpma_rt_life(7) promises, and words.
 */

#include "rt_fake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"

#define ERRNO_MAX 133 /* of Linux */
#define LINE_MAX  256

/* ------------------------------------------------------------- the page --- */

/* How the page calls the steps. */
static const char *const steps[RT_STEPS] = {
	[RT_STEP_BEGIN] = "begin",   [RT_STEP_ADDR] = "address",
	[RT_STEP_ROUTE] = "route",   [RT_STEP_PATH] = "path",
	[RT_STEP_QP] = "queue pair", [RT_STEP_CONNECT] = "connect",
	[RT_STEP_ANSWER] = "answer", [RT_STEP_ESTABLISH] = "establish",
	[RT_STEP_ACCEPT] = "accept", [RT_STEP_POST] = "post",
	[RT_STEP_EVENTS] = "events",
};

static const struct {
	const char *name;
	int err;
} errnos[] = {
	{"ENETUNREACH", ENETUNREACH},
	{"ENETDOWN", ENETDOWN},
	{"EHOSTUNREACH", EHOSTUNREACH},
	{"EHOSTDOWN", EHOSTDOWN},
	{"ETIMEDOUT", ETIMEDOUT},
	{"EADDRNOTAVAIL", EADDRNOTAVAIL},
	{"ECONNREFUSED", ECONNREFUSED},
	{"ECONNRESET", ECONNRESET},
	{"EINVAL", EINVAL},
	{"0", 0},
};

/* The reasons by the page; FAILED where the page has no row. */
static enum rpma_rt_reason reasons[RT_STEPS][ERRNO_MAX + 1];

static int errno_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (strcmp(errnos[i].name, name) == 0)
			return errnos[i].err;
	}
	fail_msg("%s: an errno that the test does not know", name);
	return 0;
}

static enum rpma_rt_reason reason_of(const char *name)
{
	static const enum rpma_rt_reason all[] = {RPMA_RT_REASON_UNREACHABLE,
						  RPMA_RT_REASON_REJECTED,
						  RPMA_RT_REASON_DISCONNECTED};
	static const char *const names[] = {"RPMA_RT_REASON_UNREACHABLE",
					    "RPMA_RT_REASON_REJECTED",
					    "RPMA_RT_REASON_DISCONNECTED"};
	int i;

	for (i = 0; i < 3; i++) {
		if (strcmp(names[i], name) == 0)
			return all[i];
	}
	fail_msg("%s: a reason that the test does not know", name);
	return RPMA_RT_REASON_FAILED;
}

/* Notes the reason for a step of the list "begin, address". */
static void note(const char *list, int err, enum rpma_rt_reason reason)
{
	const char *at = list;
	size_t len;
	int step;

	while (*at != '\0') {
		len = strcspn(at, ",");
		for (step = 1; step < RT_STEPS; step++) {
			if (strlen(steps[step]) == len &&
			    strncmp(steps[step], at, len) == 0)
				break;
		}
		if (step == RT_STEPS)
			fail_msg("%s: a step that the test does not know", at);
		reasons[step][err] = reason;
		at += len;
		at += strspn(at, ", ");
	}
}

/* ".It Er NAME Ta "STEPS" Ta Dv REASON" are the rows. How many there are. */
static int read_page(void)
{
	FILE *page = fopen(PAGE, "r");
	char line[LINE_MAX];
	char name[LINE_MAX];
	char list[LINE_MAX];
	char reason[LINE_MAX];
	int rows = 0;
	int step;
	int err;

	assert_non_null(page);
	for (step = 0; step < RT_STEPS; step++) {
		for (err = 0; err <= ERRNO_MAX; err++)
			reasons[step][err] = RPMA_RT_REASON_FAILED;
	}
	while (fgets(line, sizeof(line), page) != NULL) {
		if (sscanf(line, ".It Er %s Ta \"%[^\"]\" Ta Dv %s", name, list,
			   reason) != 3)
			continue;
		note(list, errno_of(name), reason_of(reason));
		rows++;
	}
	fclose(page);
	return rows;
}

TEST(reason__each_step_and_errno_AS_THE_PAGE_SAYS)
{
	enum rpma_rt_reason reason;
	int step;
	int err;

	assert_true(read_page() > 5);
	for (step = 1; step < RT_STEPS; step++) {
		for (err = 0; err <= ERRNO_MAX; err++) {
			reason = rt_failure_reason((enum rt_step)step, err);
			if (reason != reasons[step][err])
				fail_msg("step \"%s\", %s: %s, and the page "
					 "says %s",
					 steps[step], strerror(err),
					 rpma_rt_reason_2str(reason),
					 rpma_rt_reason_2str(
						 reasons[step][err]));
		}
		assert_int_equal(
			rt_failure_reason((enum rt_step)step, RT_ERRNO_UNKNOWN),
			RPMA_RT_REASON_FAILED);
	}
}

/* ------------------------------------------------------------ the words --- */

TEST(words__each_step_and_errno_COMPLETE)
{
	char words[RT_FAILURE_WORDS];
	int step;
	int err;

	for (step = 1; step < RT_STEPS; step++) {
		for (err = RT_ERRNO_UNKNOWN; err <= ERRNO_MAX; err++) {
			assert_ptr_equal(
				rt_failure_2str((enum rt_step)step, err, words),
				words);
			assert_non_null(strstr(words, " failed"));
			if (err > 0)
				assert_non_null(strstr(words, strerror(err)));
			/* room for the reason before the words, too */
			assert_true(strlen(words) + 16 < RT_FAILURE_WORDS);
		}
	}
}

TEST(words__an_example)
{
	char words[RT_FAILURE_WORDS];

	assert_string_equal(
		rt_failure_2str(RT_STEP_QP, ENODEV, words),
		"making the queue pair failed: No such device: the device is "
		"gone: rdma link shows devices");
	assert_string_equal(rt_failure_2str(RT_STEP_POST, EBUSY, words),
			    "posting failed: Device or resource busy");
}

/* --------------------------------------------------------------- errnos --- */

TEST(errno__of_an_error)
{
	errno = EMFILE;
	assert_int_equal(rt_failure_errno(RPMA_E_PROVIDER), EMFILE);
	assert_int_equal(rt_failure_errno(RPMA_E_NOMEM), ENOMEM);
	assert_int_equal(rt_failure_errno(RPMA_E_INVAL), EINVAL);
	assert_int_equal(rt_failure_errno(RPMA_E_NOSUPP), EOPNOTSUPP);
	assert_int_equal(rt_failure_errno(RPMA_RT_E_CLOSED), 0);
}

TEST(answer__an_errno_or_beside_it)
{
	errno = EMFILE;
	assert_int_equal(rt_failure_answer(EACCES), EACCES);
	assert_int_equal(rt_failure_answer(-1), EMFILE);
	assert_int_equal(rt_failure_answer(-ENOMEM), ENOMEM);
}

TEST_MAIN()
