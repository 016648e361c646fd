/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bind.h -- a connection on its poller, from its first routes to established.
 * doc/protocols/connection.md.
 */

#ifndef RT_CONN_BIND_H
#define RT_CONN_BIND_H

#include "conn/conn.h"

struct rpma_rt_route;

/* OPEN: slot, its own routes, their spill. */
void rt_bind_open_poller(struct rpma_rt_conn *conn);
/* BIND: its queue pair has a number. */
void rt_bind_qp_poller(struct rpma_rt_conn *conn);
/* READY, ESTABLISHED: a side is open; writes the event to its queue. */
void rt_bind_ready_poller(struct rpma_rt_conn *conn);
void rt_bind_established_poller(struct rpma_rt_conn *conn);

/* conn dies: it does not wait for its queue pair's number any more. */
void rt_bind_give_up_poller(struct rpma_rt_conn *conn);
/* conn is swept: another connection may have its queue pair's number. */
void rt_bind_leave_poller(struct rpma_rt_conn *conn);

#endif /* RT_CONN_BIND_H */
