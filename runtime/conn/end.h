/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.h -- the last items of a connection: ROUTE_CLOSED wherever it had a route
 * to, then CLOSED. Runs on its poller. doc/protocols/connection.md.
 */

#ifndef RT_CONN_END_H
#define RT_CONN_END_H

#include "conn/conn.h"

/* LAST: everything of it is out. Ends with RT_CTL_DONE. */
void rt_end_begin_poller(struct rpma_rt_conn *conn);

#endif /* RT_CONN_END_H */
