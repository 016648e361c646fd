/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.h -- resolves names into numbers, on a thread of its own: a name
 * server may take its whole time-out, and no other work is to wait for that.
 */

#ifndef RT_CONN_RESOLVE_H
#define RT_CONN_RESOLVE_H

#include <stdbool.h>

#include "base/log.h"

struct rpma_rt;
struct rpma_rt_conn;

/* what a numeric address needs at most, its scope included */
#define RT_ADDR_SIZE 64
#define RT_PORT_SIZE 8

/* An IPv4 or IPv6 address and a port, both as numbers? */
bool rt_resolve_is_numeric(const char *addr, const char *port);
/* 0, or RPMA_E_INVAL, logged: a number of more than 16 bits, of which the
 * resolver would take the lower 16. */
int rt_resolve_check_port(const struct rt_log_place *place, const char *port);

/*
 * Starts the thread, if it is the first name. REQUIRES: the runtime's lock.
 * ERRORS: RPMA_E_PROVIDER, RPMA_E_NOMEM
 */
int rt_resolve_start(struct rpma_rt *rt);
/*
 * Has addr and port of an active connection resolved in place, then its
 * begin_msg, which holds the connection, sent to the control thread; addr is
 * "" if there is no such host. The thread runs.
 */
void rt_resolve_push(struct rpma_rt_conn *conn);
/* Ends the thread, if there is one; a question under way is waited for. */
void rt_resolve_stop(struct rpma_rt *rt);

#endif /* RT_CONN_RESOLVE_H */
