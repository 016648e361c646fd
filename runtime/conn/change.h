/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* change.h -- a change under way at the end of its connection. */

#ifndef RT_CONN_CHANGE_H
#define RT_CONN_CHANGE_H

#include <stdbool.h>

struct rpma_rt_conn;

/* At DONE: no further change. False: one is under way, and DONE is sent again
 * at its end. */
bool rt_change_close_control(struct rpma_rt_conn *conn);

#endif /* RT_CONN_CHANGE_H */
