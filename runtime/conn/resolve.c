/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.c -- see resolve.h. Owns setup->resolve of an active connection to a
 * name: any thread makes the struct, then the control thread uses it.
 */

#define _GNU_SOURCE
#include "conn/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/log.h"
#include "base/lookup.h"
#include "base/refuse.h"
#include "conn/conn.h"
#include "conn/reason.h"

#define MS_NS UINT64_C(1000000)

/* setup->resolve */
struct rt_resolve {
	struct rpma_rt_conn *conn;
	void (*over)(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
		     int err);
	struct rt_lookup *lookup;    /* NULL: given up */
	struct rt_timer limit;	     /* set while the look-up goes on */
	uint64_t until_ns;	     /* the limit of all that follows */
	bool is_over;		     /* the look-up is */
	const struct addrinfo *next; /* not tried yet */
	uint64_t left_ns;	     /* of the limit, when since_ns was */
	uint64_t since_ns;
};

/* -------------------------------------------------------------- numbers --- */

/* As in getaddrinfo(): also "127.1", and no blank behind the number. */
static bool is_ipv4(const char *addr)
{
	struct in_addr bytes;

	return addr[strspn(addr, "0123456789abcdefABCDEFxX.")] == '\0' &&
	       inet_aton(addr, &bytes) == 1;
}

/* With or without a scope. */
static bool is_ipv6(const char *addr)
{
	char text[INET6_ADDRSTRLEN];
	size_t len = strcspn(addr, "%");
	struct in6_addr bytes;

	if (len >= sizeof(text))
		return false;
	memcpy(text, addr, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &bytes) == 1;
}

bool rt_resolve_is_numeric(const char *addr, const char *port)
{
	return port[0] != '\0' && port[strspn(port, "0123456789")] == '\0' &&
	       (is_ipv4(addr) || is_ipv6(addr));
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

/* -------------------------------------------------------------- look-up --- */

struct rt_resolve *rt_resolve_new(struct rpma_rt_conn *conn, const char *addr,
				  const char *port,
				  const struct rpma_conn_cfg *verbs)
{
	struct rt_resolve *resolve = calloc(1, sizeof(*resolve));
	int timeout_ms;

	if (resolve == NULL)
		return NULL;
	resolve->lookup = rt_lookup_new(addr, port);
	if (resolve->lookup == NULL) {
		free(resolve);
		return NULL;
	}
	rpma_conn_cfg_get_timeout(verbs, &timeout_ms);
	resolve->conn = conn;
	resolve->until_ns = rt_now_ns() + (uint64_t)timeout_ms * MS_NS;
	return resolve;
}

void rt_resolve_free(struct rt_resolve *resolve)
{
	if (resolve == NULL)
		return;
	if (resolve->lookup != NULL)
		rt_lookup_delete(resolve->lookup);
	free(resolve);
}

/* Logs the cause, which the death then does not log again. */
static void fail(struct rpma_rt_conn *conn, enum rpma_rt_reason reason, int err,
		 const char *why, const char *advice)
{
	struct rt_conn_setup *setup = conn->setup;

	RT_LOG_ERROR("there is no address for host \"%s\", port \"%s\": %s. %s",
		     rt_lookup_name(setup->resolve->lookup), setup->port, why,
		     advice);
	setup->addr[0] = '\0';
	setup->resolve->over(conn, reason, err);
}

static void time_over(struct rpma_rt_conn *conn)
{
	char why[128] = "the name server has not answered within timeout_ms";

	if (rt_lookup_is_waiting(conn->setup->resolve->lookup))
		snprintf(why, sizeof(why),
			 "timeout_ms has passed, and %d look-ups of this "
			 "process, the most at a time, have no answer",
			 RT_LOOKUPS_MAX);
	fail(conn, RPMA_RT_REASON_UNREACHABLE, ETIMEDOUT, why,
	     "Raise rpma_rt_conn_cfg.timeout_ms, or give an IP address and a "
	     "port as numbers");
}

/* err: of getaddrinfo(). A want of memory and an errno are troubles of this
 * machine, and say nothing of the name. */
static void not_found(struct rpma_rt_conn *conn, int err, int errnum)
{
	enum rpma_rt_reason reason = RPMA_RT_REASON_UNREACHABLE;
	const char *why = gai_strerror(err);
	int detail = 0;
	char text[128];

	if (err == EAI_SYSTEM || err == EAI_MEMORY) {
		reason = RPMA_RT_REASON_FAILED;
		detail = err == EAI_MEMORY ? ENOMEM : errnum;
	}
	if (err == EAI_SYSTEM)
		why = strerror_r(errnum, text, sizeof(text));
	fail(conn, reason, detail, why,
	     "Give a name that the resolver knows, or an IP address, and a "
	     "port");
}

/* ------------------------------------------------------------ addresses --- */

static int addr_text(const struct addrinfo *info, char *addr, char *port)
{
	return getnameinfo(info->ai_addr, info->ai_addrlen, addr, RT_ADDR_SIZE,
			   port, port != NULL ? RT_PORT_SIZE : 0,
			   NI_NUMERICHOST | NI_NUMERICSERV);
}

int rt_resolve_wait(const struct rt_log_place *place, const char *name,
		    const char *service, char *addr, char *port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *info;
	int err = getaddrinfo(name, service, &hints, &info);
	int errnum = errno;
	char text[128];

	if (err == 0) {
		err = addr_text(info, addr, port);
		errnum = errno;
		freeaddrinfo(info);
	}
	if (err == 0)
		return 0;
	return rt_refuse(place, RPMA_E_PROVIDER,
			 "there is no address for host \"%s\", port \"%s\": %s",
			 name, service,
			 err == EAI_SYSTEM
				 ? strerror_r(errnum, text, sizeof(text))
				 : gai_strerror(err));
}

static uint64_t addr_count(const struct addrinfo *info)
{
	uint64_t n = 0;

	for (; info != NULL; info = info->ai_next)
		n++;
	return n;
}

/* Puts the next address into the setup, and half of the address's share of the
 * time into the configuration: librpma limits two steps by the time-out, the
 * address and the route. Returns 0, or an error of getaddrinfo() without an
 * address. */
static int take_next(struct rt_resolve *resolve)
{
	struct rt_conn_setup *setup = resolve->conn->setup;
	const struct addrinfo *info = resolve->next;
	uint64_t now = rt_now_ns();
	uint64_t used = now - resolve->since_ns;
	uint64_t ms;

	if (info == NULL)
		return EAI_NONAME;
	resolve->left_ns -= used < resolve->left_ns ? used : resolve->left_ns;
	resolve->since_ns = now;
	ms = resolve->left_ns / MS_NS / 2 / addr_count(info);
	rpma_conn_cfg_set_timeout(setup->cfg, ms > 0 ? (int)ms : 1);
	resolve->next = info->ai_next;
	return addr_text(info, setup->addr, setup->port);
}

/* Does another device than the connection's lead to the address? */
static bool is_elsewhere(const struct rpma_rt_conn *conn)
{
	struct rdma_cm_id *id;

	return conn->setup->req != NULL &&
	       rpma_conn_req_get_cm_id(conn->setup->req, &id) == 0 &&
	       id->verbs != NULL && id->verbs != conn->device->ibv_ctx;
}

/* Destroys the id of an address that failed. The id has no queue pair, and this
 * thread has acknowledged each event of the id. */
static void delete_request(struct rpma_rt_conn *conn)
{
	if (conn->setup->req != NULL && rpma_conn_req_delete(&conn->setup->req))
		rt_cm_keep_control(conn->device->cm, &conn->target);
}

/* Returns whether another address may be reached all the same. ENODEV: no RDMA
 * device leads to this address; EAFNOSUPPORT: the kernel has no such addresses.
 */
static bool is_of_address(const struct rpma_rt_conn *conn,
			  const struct rt_reason *why)
{
	return why->reason == RPMA_RT_REASON_UNREACHABLE ||
	       why->err == ENODEV || why->err == EAFNOSUPPORT ||
	       is_elsewhere(conn);
}

bool rt_resolve_next_control(struct rpma_rt_conn *conn,
			     const struct rt_reason *why)
{
	struct rt_resolve *resolve = conn->setup->resolve;

	if (resolve == NULL || resolve->next == NULL ||
	    !is_of_address(conn, why))
		return false;
	delete_request(conn);
	return take_next(resolve) == 0;
}

void rt_resolve_target(const struct rt_conn_setup *setup, char *text,
		       size_t size)
{
	const struct rt_resolve *resolve = setup->resolve;
	const struct addrinfo *info;
	const char *before = " (";
	char addr[RT_ADDR_SIZE];
	size_t len;

	if (resolve == NULL || !resolve->is_over) {
		snprintf(text, size, "%s", setup->addr);
		return;
	}
	snprintf(text, size, "%s", rt_lookup_name(resolve->lookup));
	info = rt_lookup_addresses(resolve->lookup);
	for (; info != resolve->next; info = info->ai_next) {
		len = strlen(text);
		if (addr_text(info, addr, NULL))
			continue;
		snprintf(text + len, size - len, "%s%s", before, addr);
		before = ", ";
	}
	len = strlen(text);
	snprintf(text + len, size - len, ")");
}

/* ------------------------------------------------- the way of a look-up --- */

/* The look-up is over. */
static void answered(void *asker)
{
	struct rpma_rt_conn *conn = asker;
	struct rt_resolve *resolve = conn->setup->resolve;
	int errnum;
	int err = rt_lookup_error(resolve->lookup, &errnum);
	uint64_t over_ns = rt_lookup_over_ns(resolve->lookup);

	rt_thread_cancel_timer(&conn->device->control, &resolve->limit);
	resolve->is_over = true;
	if (err) {
		not_found(conn, err, errnum);
		return;
	}
	if (over_ns >= resolve->until_ns) {
		time_over(conn);
		return;
	}
	resolve->left_ns = resolve->until_ns - over_ns;
	resolve->since_ns = rt_now_ns();
	resolve->next = rt_lookup_addresses(resolve->lookup);
	err = take_next(resolve);
	if (err)
		not_found(conn, err, errno);
	else
		resolve->over(conn, RPMA_RT_REASON_LOCAL, 0);
}

static void limit_due(struct rt_timer *timer)
{
	time_over(RT_FROM(struct rt_resolve, limit, timer)->conn);
}

void rt_resolve_begin_control(struct rpma_rt_conn *conn,
			      void (*over)(struct rpma_rt_conn *conn,
					   enum rpma_rt_reason reason, int err))
{
	struct rt_resolve *resolve = conn->setup->resolve;
	struct rt_thread *control = &conn->device->control;
	int err;

	resolve->over = over;
	if (rt_lookup_begin(resolve->lookup, &control->inbox, answered, conn)) {
		err = errno;
		rt_refuse_forget();
		not_found(conn, EAI_SYSTEM, err);
		return;
	}
	resolve->limit.due = limit_due;
	rt_thread_set_timer(control, &resolve->limit, resolve->until_ns);
}

void rt_resolve_end_control(struct rpma_rt_conn *conn)
{
	struct rt_resolve *resolve = NULL;

	if (conn->setup != NULL) /* it is not established */
		resolve = conn->setup->resolve;
	if (resolve == NULL || resolve->is_over || resolve->lookup == NULL)
		return;
	rt_thread_cancel_timer(&conn->device->control, &resolve->limit);
	rt_lookup_delete(resolve->lookup);
	resolve->lookup = NULL;
}
