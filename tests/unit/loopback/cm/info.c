/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* info.c -- rdma_getaddrinfo(). */

#include "fixture.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

/* getaddrinfo: passive fills the source, active the destination */
static void getaddrinfo__passive_SOURCE(void **state)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_qp_type = IBV_QPT_RC,
				      .ai_port_space = RDMA_PS_TCP};
	struct sockaddr_in want = v4("127.0.0.1", 7204);
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7204", &hints, &res),
			 0);
	assert_int_equal(res->ai_flags, RAI_PASSIVE);
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(res->ai_src_len, sizeof(want));
	assert_memory_equal(res->ai_src_addr, &want, sizeof(want));
	assert_int_equal(res->ai_dst_len, 0);
	assert_null(res->ai_dst_addr);
	assert_null(res->ai_next);
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__active_DESTINATION(void **state)
{
	struct sockaddr_in want = v4("127.0.0.1", 7204);
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7204", NULL, &res), 0);
	assert_int_equal(res->ai_flags, 0);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(res->ai_dst_len, sizeof(want));
	assert_memory_equal(res->ai_dst_addr, &want, sizeof(want));
	assert_null(res->ai_src_addr);
	rdma_freeaddrinfo(res);
}

/* getaddrinfo: no service is port 0; no node and passive is the wildcard */
static void getaddrinfo__node_or_service_ONE(void **state)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_family = AF_INET,
				      .ai_port_space = RDMA_PS_TCP};
	struct sockaddr_in want = v4("0.0.0.0", 80);
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, "80", &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &want, sizeof(want));
	rdma_freeaddrinfo(res);
	want = v4("127.0.0.1", 0);
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &want, sizeof(want));
	rdma_freeaddrinfo(res);
}

/* getaddrinfo: hints may bring both addresses */
static void getaddrinfo__hints_only_COPIED(void **state)
{
	struct sockaddr_in src = v4("127.0.0.1", 0);
	struct sockaddr_in dst = v4("127.0.1.1", 9);
	struct rdma_addrinfo hints = {.ai_family = AF_INET,
				      .ai_qp_type = IBV_QPT_RC,
				      .ai_port_space = RDMA_PS_TCP,
				      .ai_src_len = sizeof(src),
				      .ai_dst_len = sizeof(dst),
				      .ai_src_addr = SA(src),
				      .ai_dst_addr = SA(dst)};
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src));
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(dst));
	assert_ptr_not_equal(res->ai_src_addr, hints.ai_src_addr);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src));
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__ipv6_FAMILY(void **state)
{
	struct sockaddr_in6 want = v6("::1", 7);
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("::1", "7", NULL, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	assert_int_equal(res->ai_dst_len, sizeof(want));
	assert_memory_equal(res->ai_dst_addr, &want, sizeof(want));
	rdma_freeaddrinfo(res);
}

/* getaddrinfo: the resolver's codes are passed on */
static void getaddrinfo__bad_names_EAI(void **state)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *res = NULL;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("localhost", "1", &hints, &res),
			 EAI_NONAME);
	assert_int_equal(
		rdma_getaddrinfo("127.0.0.1", "no-such-service", NULL, &res),
		EAI_SERVICE);
	hints.ai_family = 9999;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res),
			 EAI_FAMILY);
	assert_null(res);
}

static void getaddrinfo__nothing_asked_EINVAL(void **state)
{
	struct rdma_addrinfo *res = NULL;

	(void)state;
	assert_fails(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	assert_null(res);
	rdma_freeaddrinfo(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, reset, reset)
		T(getaddrinfo__passive_SOURCE),
		T(getaddrinfo__active_DESTINATION),
		T(getaddrinfo__node_or_service_ONE),
		T(getaddrinfo__hints_only_COPIED),
		T(getaddrinfo__ipv6_FAMILY),
		T(getaddrinfo__bad_names_EAI),
		T(getaddrinfo__nothing_asked_EINVAL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
