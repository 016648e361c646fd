/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.c -- a runtime's resolver thread: one question after the other. It
 * has the loop of the control thread and an inbox of its own.
 */

#define _GNU_SOURCE
#include "conn/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "base/log.h"
#include "base/refuse.h"
#include "base/runtime.h"
#include "conn/conn.h"

bool rt_resolve_is_numeric(const char *addr, const char *port)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return port[0] != '\0' && port[strspn(port, "0123456789")] == '\0' &&
	       (inet_pton(AF_INET, addr, bytes) == 1 ||
		inet_pton(AF_INET6, addr, bytes) == 1);
}

int rt_resolve_check_port(const struct rt_log_place *place, const char *port)
{
	if (port[strspn(port, "0123456789")] != '\0' ||
	    strtoul(port, NULL, 10) <= UINT16_MAX)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL,
			 "port is \"%s\", it may be 0..65535 or the name of a "
			 "service",
			 port);
}

static void log_unknown(const struct rt_conn_setup *setup, int err)
{
	char text[128];

	if (err == EAI_SYSTEM)
		snprintf(text, sizeof(text), "%m"); /* errno, in words */
	else
		snprintf(text, sizeof(text), "%s", gai_strerror(err));
	RT_LOG_ERROR("there is no address for host \"%s\", port \"%s\": %s. "
		     "Give a name that the resolver knows, or an IP address, "
		     "and a port",
		     setup->addr, setup->port, text);
}

static bool resolve(struct rt_conn_setup *setup)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *info;
	int err = getaddrinfo(setup->addr, setup->port, &hints, &info);

	if (err) {
		log_unknown(setup, err);
		return false;
	}
	err = getnameinfo(info->ai_addr, info->ai_addrlen, setup->addr,
			  RT_ADDR_SIZE, setup->port, RT_PORT_SIZE,
			  NI_NUMERICHOST | NI_NUMERICSERV);
	freeaddrinfo(info);
	if (err)
		log_unknown(setup, err);
	return err == 0;
}

/* Resolver thread. */
static void question(struct rt_msg *msg, void *owner)
{
	struct rt_conn_setup *setup =
		RT_FROM(struct rt_conn_setup, begin_msg, msg);
	struct rpma_rt_conn *conn = setup->conn;
	/* relaxed: a hint; closed meanwhile, so the answer is not needed */
	bool closed =
		atomic_load_explicit(&conn->gate[RPMA_RT_RECV_SIDE].state,
				     memory_order_relaxed) == RT_GATE_CLOSED;

	(void)owner;
	if (closed || !resolve(setup))
		setup->addr[0] = '\0';
	msg->fn = setup->begin;
	rt_inbox_push_mt(&conn->device->control.inbox, msg);
}

int rt_resolve_start(struct rpma_rt *rt)
{
	int ret;

	if (rt->has_resolver)
		return 0;
	ret = rt_thread_start(&rt->resolver, rt, "rt-name");
	rt->has_resolver = ret == 0;
	return ret;
}

void rt_resolve_push(struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;

	setup->begin = setup->begin_msg.fn;
	setup->begin_msg.fn = question;
	rt_inbox_push_mt(&conn->rt->resolver.inbox, &setup->begin_msg);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

void rt_resolve_stop(struct rpma_rt *rt)
{
	if (rt->has_resolver) {
		/* its last question may take long, and a join waits without
		 * running pollers */
		rt_call_sync(rt, &rt->resolver.inbox, nothing, NULL);
		rt_thread_stop(&rt->resolver);
	}
	rt->has_resolver = false;
}
