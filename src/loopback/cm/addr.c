/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * addr.c -- addresses, IPv4 and IPv6 in one shape. Any thread.
 */

#include "cm/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "cm/cm.h"
#include "qp/mcast.h"

#define SAID 64 /* so many addresses are printed */

socklen_t lb_cm_addr_len(const struct sockaddr *sa)
{
	if (sa && sa->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (sa && sa->sa_family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

bool lb_cm_addr_from(struct lb_cm_addr *addr, const struct sockaddr *sa)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

	memset(addr, 0, sizeof(*addr));
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const void *)sa;

		memcpy(addr->ip.s6_addr, v4_prefix, sizeof(v4_prefix));
		memcpy(addr->ip.s6_addr + 12, &sin->sin_addr, 4);
		addr->port = sin->sin_port;
		addr->v4 = true;
		addr->any = sin->sin_addr.s_addr == htonl(INADDR_ANY);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const void *)sa;

		addr->ip = sin6->sin6_addr;
		addr->port = sin6->sin6_port;
		addr->v4 = IN6_IS_ADDR_V4MAPPED(&addr->ip);
		addr->any = IN6_IS_ADDR_UNSPECIFIED(&addr->ip);
		return true;
	}
	return false;
}

bool lb_cm_addr_is_same_ip(const struct lb_cm_addr *a,
			   const struct lb_cm_addr *b)
{
	return !memcmp(&a->ip, &b->ip, sizeof(a->ip));
}

void lb_cm_addr_set_port(struct sockaddr_storage *ss, in_port_t port)
{
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = port;
	else
		((struct sockaddr_in6 *)ss)->sin6_port = port;
}

void lb_cm_addr_to_gid(const struct sockaddr *sa, union ibv_gid *gid)
{
	struct lb_cm_addr addr;

	lb_cm_addr_from(&addr, sa);
	memcpy(gid->raw, addr.ip.s6_addr, sizeof(gid->raw));
}

bool lb_cm_addr_is_multicast(const struct sockaddr *sa)
{
	union ibv_gid gid;

	lb_cm_addr_to_gid(sa, &gid);
	return lb_mcast_is(&gid);
}

/*
 * Returns true for an address at the first call, so that a program that tries
 * again until its peer is there gets a single line; and only for the first
 * addresses, so that a program that tries thousands of addresses does not get
 * thousands of lines.
 */
static bool addr_is_news(const struct lb_cm_addr *addr)
{
	static _Atomic uint64_t said[SAID]; /* hashes; 0: a free place */
	uint64_t key = addr->port, word;
	unsigned i;

	for (i = 0; i < sizeof(addr->ip); i += sizeof(word)) {
		memcpy(&word, addr->ip.s6_addr + i, sizeof(word));
		key = (key ^ word) * 0x9e3779b97f4a7c15u;
	}
	key |= 1;
	for (i = 0; i < SAID; i++) {
		word = 0;
		/* relaxed, both: the hash is all there is */
		if (atomic_compare_exchange_strong_explicit(
			    &said[((key >> 32) + i) % SAID], &word, key,
			    memory_order_relaxed, memory_order_relaxed))
			return true;
		if (word == key)
			return false;
	}
	return false;
}

void lb_cm_addr_log_nobody(const struct sockaddr_storage *ss)
{
	const struct sockaddr *dst = (const struct sockaddr *)ss;
	char addr[INET6_ADDRSTRLEN] = "?";
	struct lb_cm_addr to = {0};

	if (!lb_cm_addr_from(&to, dst))
		return;
	if (dst->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)dst)->sin_addr,
			  addr, sizeof(addr));
	else
		inet_ntop(AF_INET6, &to.ip, addr, sizeof(addr));
	lb_log(addr_is_news(&to) ? 0 : 1,
	       "rdma_connect: nobody listens at %s port %u: refused. The other "
	       "end must be a process of this user and network namespace, on "
	       "the loopback device too",
	       addr, ntohs(to.port));
}
