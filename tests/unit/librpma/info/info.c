/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of address resolution. */

#include "mocks.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

static char said[512];

static struct rdma_cm_id *id;

static void hear(enum rpma_log_level level, const char *file_name,
		 const int line_no, const char *function_name,
		 const char *message_format, ...)
{
	va_list args;

	(void)file_name;
	(void)line_no;
	(void)function_name;
	assert_int_equal(level, RPMA_LOG_LEVEL_ERROR);
	va_start(args, message_format);
	vsnprintf(said, sizeof(said), message_format, args);
	va_end(args);
}

static void begin_to_hear(void)
{
	said[0] = '\0';
	ok(rpma_log_set_function(hear));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR));
}

static int get_and_bind(void)
{
	struct rdma_addrinfo *info = NULL;
	int ret = rpma__info_get("host", "1", RPMA__INFO_PASSIVE, &info);

	assert_int_equal(info != NULL, ret == 0);
	if (ret)
		return ret;
	ret = rpma__info_bind_addr(info, id);
	rdma_freeaddrinfo(info);
	return ret;
}

static int get_and_resolve(void)
{
	struct rdma_addrinfo *info = NULL;
	int ret = rpma__info_get("host", "1", RPMA__INFO_ACTIVE, &info);

	if (ret)
		return ret;
	ret = rpma__info_resolve_addr(info, id, 42);
	rdma_freeaddrinfo(info);
	return ret;
}

MOCK_TEST(passive__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"getaddrinfo", 1, ENOENT, RPMA_E_PROVIDER,
		 "getaddrinfo(passive)"},
		{"bind_addr", 1, EADDRINUSE, RPMA_E_PROVIDER,
		 "getaddrinfo(passive) bind_addr freeaddrinfo"},
		{NULL, 0, 0, 0, "getaddrinfo(passive) bind_addr freeaddrinfo"},
	};

	id = mock_new_id();
	EACH_FAILURE(get_and_bind, failures);
	ok(rdma_destroy_id(id));
}

MOCK_TEST(active__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"resolve_addr", 1, ENODEV, RPMA_E_PROVIDER,
		 "getaddrinfo resolve_addr(42) freeaddrinfo"},
		{NULL, 0, 0, 0, "getaddrinfo resolve_addr(42) freeaddrinfo"},
	};

	id = mock_new_id();
	EACH_FAILURE(get_and_resolve, failures);
	ok(rdma_destroy_id(id));
}

/* What the resolver answers is no errno: errno says "Success". */
MOCK_TEST(get__unknown_name_THE_RESOLVERS_WORDS)
{
	struct rdma_addrinfo *info = NULL;

	begin_to_hear();
	errno = 0;
	mock_fail("getaddrinfo", 1, EAI_NONAME);
	assert_int_equal(
		rpma__info_get("nowhere", "70", RPMA__INFO_ACTIVE, &info),
		RPMA_E_PROVIDER);
	assert_non_null(strstr(said, "nowhere, 70"));
	assert_non_null(strstr(said, gai_strerror(EAI_NONAME)));
	assert_null(strstr(said, "Success"));
	errno = ECONNRESET;
	mock_fail("getaddrinfo", 1, EAI_SYSTEM);
	assert_int_equal(
		rpma__info_get("nowhere", NULL, RPMA__INFO_ACTIVE, &info),
		RPMA_E_PROVIDER);
	assert_non_null(strstr(said, strerror(ECONNRESET)));
	ok(rpma_log_set_function(NULL));
}

MOCK_TEST(get__no_rdma_SAYS_WHAT_IS_NEEDED)
{
	struct rdma_addrinfo *info = NULL;

	begin_to_hear();
	mock_fail("getaddrinfo", 1, ENODEV);
	assert_int_equal(rpma__info_get("host", "1", RPMA__INFO_ACTIVE, &info),
			 RPMA_E_PROVIDER);
	assert_non_null(strstr(said, strerror(ENODEV)));
	assert_non_null(strstr(said, "/dev/infiniband/rdma_cm"));
	assert_non_null(strstr(said, "librpma_loopback.so"));
	ok(rpma_log_set_function(NULL));
}

TEST_MAIN()
