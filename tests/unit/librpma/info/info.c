/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of address resolution. */

#include "mocks.h"

#include <errno.h>

#include "info.h"

static struct rdma_cm_id *id;

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

static void passive__EACH_FAILURE(void **state)
{
	const struct failure failures[] = {
		{"getaddrinfo", 1, ENOENT, RPMA_E_PROVIDER,
		 "getaddrinfo(passive)"},
		{"bind_addr", 1, EADDRINUSE, RPMA_E_PROVIDER,
		 "getaddrinfo(passive) bind_addr freeaddrinfo"},
		{NULL, 0, 0, 0, "getaddrinfo(passive) bind_addr freeaddrinfo"},
	};

	(void)state;
	id = mock_new_id();
	EACH_FAILURE(get_and_bind, failures);
	ok(rdma_destroy_id(id));
}

static void active__EACH_FAILURE(void **state)
{
	const struct failure failures[] = {
		{"resolve_addr", 1, ENODEV, RPMA_E_PROVIDER,
		 "getaddrinfo resolve_addr(42) freeaddrinfo"},
		{NULL, 0, 0, 0, "getaddrinfo resolve_addr(42) freeaddrinfo"},
	};

	(void)state;
	id = mock_new_id();
	EACH_FAILURE(get_and_resolve, failures);
	ok(rdma_destroy_id(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		mock_test(passive__EACH_FAILURE),
		mock_test(active__EACH_FAILURE),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
