/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * create.h -- everything a connection needs before its queue pair exists: slot,
 * route numbers, CQ room, ledgers, lane and spill. All or nothing.
 */

#ifndef RT_CONN_CREATE_H
#define RT_CONN_CREATE_H

#include "conn/cfg.h"
#include "conn/conn.h"

/* what a connection is made of */
struct rt_conn_spec {
	struct rpma_rt *rt;
	struct rt_device *device;      /* its peer's */
	const struct rt_conn_cfg *cfg; /* the caller's; copied */
	bool passive;
	struct rpma_rt_listener *listener; /* passive: whose request it is */
	/* active: where to, and what begins on the control thread */
	const char *addr;
	const char *port;
	void (*begin)(struct rt_msg *msg, void *owner);
	/* what its bits for the control thread, its CM events bring about */
	void (*control)(struct rt_msg *msg, void *owner);
	const struct rt_cm_ops *cm_ops;
};

/*
 * A connection with all it needs, known to its poller and in the runtime's
 * list. Any thread. ERRORS: RPMA_E_NOMEM, RPMA_E_INVAL, RPMA_E_PROVIDER,
 * RPMA_RT_E_CLOSED, RPMA_RT_E_BUSY (no queue takes it)
 */
int rt_conn_create(const struct rt_conn_spec *spec,
		   struct rpma_rt_conn **conn_ptr);

/* Gives numbers, slot, room, lanes and queues back, all but its pool: the
 * connection is DONE. */
void rt_conn_unreserve(struct rpma_rt_conn *conn);
/* Frees what only the way to established needs; once more does nothing.
 * Control thread. */
void rt_conn_end_handshake(struct rpma_rt_conn *conn);
/* Frees the record. REQUIRES: no references are left */
void rt_conn_free(struct rpma_rt_conn *conn);
/* Frees those whose last holder was on a poller. Not on a poller. */
void rt_conn_free_left(struct rpma_rt *rt);

#endif /* RT_CONN_CREATE_H */
