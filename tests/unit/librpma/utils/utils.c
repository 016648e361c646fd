/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of devices by address, their capabilities, names of events. */

#include "mocks.h"

#include <errno.h>

static struct ibv_context *ctx;

static int get_local(void)
{
	ctx = NULL;
	return rpma_utils_get_ibv_context("host", RPMA_UTIL_IBV_CONTEXT_LOCAL,
					  &ctx);
}

static int get_remote(void)
{
	ctx = NULL;
	return rpma_utils_get_ibv_context("host", RPMA_UTIL_IBV_CONTEXT_REMOTE,
					  &ctx);
}

MOCK_TEST(get_ibv_context__local_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"getaddrinfo", 1, ENOENT, RPMA_E_PROVIDER,
		 "getaddrinfo(passive)(no service)"},
		{"create_id", 1, ENOMEM, RPMA_E_PROVIDER,
		 "getaddrinfo(passive)(no service) create_id freeaddrinfo"},
		{"bind_addr", 1, ENODEV, RPMA_E_PROVIDER,
		 "getaddrinfo(passive)(no service) create_id bind_addr "
		 "destroy_id freeaddrinfo"},
		{NULL, 0, 0, 0,
		 "getaddrinfo(passive)(no service) create_id bind_addr "
		 "destroy_id freeaddrinfo"},
	};

	EACH_FAILURE(get_local, failures);
	assert_ptr_equal(ctx, MOCK_CTX);
}

MOCK_TEST(get_ibv_context__remote_EACH_FAILURE)
{
	const struct failure failures[] = {
		{"resolve_addr", 1, ENODEV, RPMA_E_PROVIDER,
		 "getaddrinfo(no service) create_id resolve_addr(1000) "
		 "destroy_id freeaddrinfo"},
		{NULL, 0, 0, 0,
		 "getaddrinfo(no service) create_id resolve_addr(1000) "
		 "destroy_id freeaddrinfo"},
	};

	EACH_FAILURE(get_remote, failures);
	assert_ptr_equal(ctx, MOCK_CTX);
}

MOCK_TEST(get_ibv_context__fails_OUT_UNTOUCHED)
{
	struct ibv_context *out = (void *)7;

	mock_fail("resolve_addr", 1, ENODEV);
	assert_int_equal(rpma_utils_get_ibv_context(
				 "host", RPMA_UTIL_IBV_CONTEXT_REMOTE, &out),
			 RPMA_E_PROVIDER);
	assert_ptr_equal(out, (void *)7);
}

MOCK_TEST(get_ibv_context__arguments_INVAL)
{
	assert_int_equal(rpma_utils_get_ibv_context(NULL, 0, &ctx),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_utils_get_ibv_context("host", 0, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_utils_get_ibv_context("host", 2, &ctx),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_utils_get_ibv_context("host", -1, &ctx),
			 RPMA_E_INVAL);
	expect_trace("");
}

MOCK_TEST(odp_capable__needs_SUPPORT_READ_AND_WRITE)
{
	struct ibv_odp_caps *caps = &mock_attr.odp_caps;
	uint32_t *rc = &caps->per_transport_caps.rc_odp_caps;
	int capable = -1;

	ok(rpma_utils_ibv_context_is_odp_capable(MOCK_CTX, &capable));
	assert_int_equal(capable, 0);
	caps->general_caps = IBV_ODP_SUPPORT;
	*rc = IBV_ODP_SUPPORT_READ;
	ok(rpma_utils_ibv_context_is_odp_capable(MOCK_CTX, &capable));
	assert_int_equal(capable, 0);
	*rc = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
	ok(rpma_utils_ibv_context_is_odp_capable(MOCK_CTX, &capable));
	assert_int_equal(capable, 1);
	caps->general_caps = 0;
	ok(rpma_utils_ibv_context_is_odp_capable(MOCK_CTX, &capable));
	assert_int_equal(capable, 0);
	*rc = 0;
}

MOCK_TEST(odp_capable__query_fails_PROVIDER)
{
	int capable = -1;

	mock_fail("query_device", 1, EIO);
	assert_int_equal(
		rpma_utils_ibv_context_is_odp_capable(MOCK_CTX, &capable),
		RPMA_E_PROVIDER);
	assert_int_equal(capable, 0);
}

MOCK_TEST(odp_capable__arguments_INVAL)
{
	int capable = -1;

	assert_int_equal(rpma_utils_ibv_context_is_odp_capable(NULL, &capable),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_utils_ibv_context_is_odp_capable(MOCK_CTX, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(capable, -1);
}

MOCK_TEST(conn_event_2str__every_event)
{
	const char *names[] = {
		"Undefined connection event",
		"Connection established",
		"Connection closed",
		"Connection lost",
		"Connection rejected",
		"Connection unreachable",
		"Unsupported connection event",
	};
	int event;

	for (event = -1; event <= 5; event++)
		assert_string_equal(rpma_utils_conn_event_2str(event),
				    names[event + 1]);
}

TEST_MAIN()
