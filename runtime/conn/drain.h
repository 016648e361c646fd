/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.h -- the death of a connection on its poller: completions that are no
 * success, draining, sweeping. doc/protocols/connection.md, ledger.md.
 */

#ifndef RT_CONN_DRAIN_H
#define RT_CONN_DRAIN_H

#include <infiniband/verbs.h>

#include "conn/conn.h"

/* What leaves the success path of its sides. */
extern const struct rt_side_ops rt_drain_side_ops;

/* A marker of the side came in. Before HANDOVER: all that was posted there has
 * completed, and RT_CTL_EMPTY is told; or it broke. */
void rt_drain_marker_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			    enum ibv_wc_status status);
/* The time begins after which a draining connection is closed. */
void rt_drain_time_poller(struct rpma_rt_conn *conn);

/* HANDOVER: the ledgers are the poller's. Ends with RT_CTL_DRAINED. */
void rt_drain_begin_poller(struct rpma_rt_conn *conn);
/* GONE: the queue pair is destroyed. Ends with RT_CTL_SWEPT. */
void rt_drain_sweep_poller(struct rpma_rt_conn *conn);

/* The device reports that the queue pair takes no receive of its SRQ any
 * more. */
void rt_drain_last_wqe_poller(struct rpma_rt_conn *conn);

#endif /* RT_CONN_DRAIN_H */
