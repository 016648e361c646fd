/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fault.h -- what may be wrong with a work request of a connection: looked for
 * in those that are not plain, and logged in words.
 */

#ifndef RT_CONN_FAULT_H
#define RT_CONN_FAULT_H

#include "conn/conn.h"

/* Of count, the one of that index. ERRORS: RPMA_E_INVAL, logged;
 * RPMA_RT_E_CLOSED (its route is) */
int rt_fault_check_send(const struct rpma_rt_conn *conn,
			const struct rpma_rt_wr *wrs, int count, int index);
int rt_fault_check_recv(const struct rpma_rt_conn *conn,
			const struct rpma_rt_recv_wr *wr, int index);

#endif /* RT_CONN_FAULT_H */
