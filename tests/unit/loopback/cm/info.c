/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* info.c -- rdma_getaddrinfo(). */

#include "fixture.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

/* getaddrinfo: no service is port 0; no node and passive is the wildcard */
TEST_WITH(getaddrinfo__node_or_service_ONE, reset, reset)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_family = AF_INET,
				      .ai_port_space = RDMA_PS_TCP};
	struct sockaddr_in want = v4("0.0.0.0", 80);
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(NULL, "80", &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &want, sizeof(want));
	rdma_freeaddrinfo(res);
	want = v4("127.0.0.1", 0);
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &want, sizeof(want));
	rdma_freeaddrinfo(res);
}

/* getaddrinfo: hints may bring both addresses */
TEST_WITH(getaddrinfo__hints_only_COPIED, reset, reset)
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

	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src));
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(dst));
	assert_ptr_not_equal(res->ai_src_addr, hints.ai_src_addr);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src));
	rdma_freeaddrinfo(res);
}

TEST_WITH(getaddrinfo__ipv6_FAMILY, reset, reset)
{
	struct sockaddr_in6 want = v6("::1", 7);
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo("::1", "7", NULL, &res), 0);
	assert_int_equal(res->ai_family, AF_INET6);
	assert_int_equal(res->ai_dst_len, sizeof(want));
	assert_memory_equal(res->ai_dst_addr, &want, sizeof(want));
	rdma_freeaddrinfo(res);
}

/* getaddrinfo: the resolver's codes are passed on */
TEST_WITH(getaddrinfo__bad_names_EAI, reset, reset)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *res = NULL;

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

TEST_WITH(getaddrinfo__nothing_asked_EINVAL, reset, reset)
{
	struct rdma_addrinfo *res = NULL;

	assert_fails(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	assert_null(res);
	rdma_freeaddrinfo(NULL);
}

TEST_MAIN()
