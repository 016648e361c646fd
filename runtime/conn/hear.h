/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hear.h -- asynchronous events of a connection's queue pair, and
 * which CM events are not about it.
 */

#ifndef RT_CONN_HEAR_H
#define RT_CONN_HEAR_H

#include "conn/conn.h"

/* Control thread, and the queue pair exists: its asynchronous events come from
 * here on, until rt_async_disown(). */
void rt_hear_begin(struct rpma_rt_conn *conn);
/* Control thread, RT_CTL_HEARD: those that end nothing. */
void rt_hear_control(struct rpma_rt_conn *conn);
/* Control thread: is a CM event of that type about the connection? If not, the
 * log says that it came. */
bool rt_hear_concerns(struct rpma_rt_conn *conn, uint32_t type);

#endif /* RT_CONN_HEAR_H */
