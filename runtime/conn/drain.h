/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.h -- a connection on its poller: messages of the control thread,
 * completions that are no success, draining, sweeping.
 * doc/protocols/connection.md, ledger.md.
 */

#ifndef RT_CONN_DRAIN_H
#define RT_CONN_DRAIN_H

#include "conn/conn.h"

/* What leaves the success path of its sides. */
extern const struct rt_side_ops rt_drain_side_ops;

/* Runs conn.poll_msg: the bits that were set, in the order of life. */
void rt_messages_poll(struct rt_msg *msg, void *owner);

/* The handler of completions of the runtime's own work requests, and the slots
 * of connections; before the poller runs, after it has ended.
 * ERRORS: RPMA_E_NOMEM */
int rt_internal_new(struct rt_poller *poller);
void rt_internal_delete(struct rt_poller *poller);

#endif /* RT_CONN_DRAIN_H */
