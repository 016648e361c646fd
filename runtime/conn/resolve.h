/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.h -- from a name and a port to addresses: the look-up of an active
 * connection, the limit of the look-up, and the addresses, which are tried in
 * turn. A numeric address has no look-up. doc/protocols/name.md.
 */

#ifndef RT_CONN_RESOLVE_H
#define RT_CONN_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include "rpma_rt.h"
#include "base/log.h"

struct rpma_conn_cfg;
struct rpma_rt_conn;
struct rt_conn_setup;
struct rt_reason;
struct rt_resolve;

/* room for a numeric address, its scope included; and for a port */
#define RT_ADDR_SIZE 64
#define RT_PORT_SIZE 8

/* Returns whether addr is an IPv4 address, or an IPv6 address with or without a
 * scope, and port a number: no name server is needed. */
bool rt_resolve_is_numeric(const char *addr, const char *port);
/* Returns 0, or RPMA_E_INVAL, logged: port has more than 16 bits, and the
 * resolver would take the lower 16. */
int rt_resolve_check_port(const struct rt_log_place *place, const char *port);

/* Writes the first address of a name, and the port, as numbers, into addr of
 * RT_ADDR_SIZE and port of RT_PORT_SIZE bytes. Waits for the name server, so
 * the caller holds neither a lock nor the runtime.
 * ERRORS: RPMA_E_PROVIDER, logged */
int rt_resolve_wait(const struct rt_log_place *place, const char *name,
		    const char *service, char *addr, char *port);

/* Makes the look-up of a connection that is being made. Returns NULL without
 * memory. The time-out of verbs counts from here. */
struct rt_resolve *rt_resolve_new(struct rpma_rt_conn *conn, const char *addr,
				  const char *port,
				  const struct rpma_conn_cfg *verbs);
/* Frees resolve, which may be NULL. REQUIRES: rt_resolve_begin_control() was
 * not called, or rt_resolve_end_control() was */
void rt_resolve_free(struct rt_resolve *resolve);

/* In the child of a fork: no look-up runs or waits. */
void rt_lookup_forked(void);

/* The following run on the control thread. */

/* Begins the look-up, and calls over() at the end of the look-up: the first
 * address is in setup->addr; or setup->addr is "", the cause is logged, and the
 * connection has to die for the reason and the errno err. */
void rt_resolve_begin_control(struct rpma_rt_conn *conn,
			      void (*over)(struct rpma_rt_conn *conn,
					   enum rpma_rt_reason reason,
					   int err));
/* Puts the next address of the name into setup->addr, deletes the request of
 * the last address, and returns true; returns false if no address is left, or
 * if the reason for which the last address failed holds for the others too. */
bool rt_resolve_next_control(struct rpma_rt_conn *conn,
			     const struct rt_reason *why);
/* Gives up a look-up that goes on: the connection leaves RESOLVING. */
void rt_resolve_end_control(struct rpma_rt_conn *conn);
/* Writes where the connection goes: setup->addr, or the name and in brackets
 * the addresses that were tried. */
void rt_resolve_target(const struct rt_conn_setup *setup, char *text,
		       size_t size);

#endif /* RT_CONN_RESOLVE_H */
