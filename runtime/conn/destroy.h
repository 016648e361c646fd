/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * destroy.h -- a connection's queue pair and CM id are destroyed by the
 * device's destroyer thread, as that may take as long as the device likes. The
 * answer is a bit for the control thread.
 */

#ifndef RT_CONN_DESTROY_H
#define RT_CONN_DESTROY_H

#include "conn/conn.h"

/* Has the queue pair destroyed; RT_CTL_DESTROYED is the answer. */
void rt_destroy_qp_control(struct rpma_rt_conn *conn);
/* Has the CM id and what is left destroyed; RT_CTL_DELETED is the answer. */
void rt_destroy_id_control(struct rpma_rt_conn *conn);

#endif /* RT_CONN_DESTROY_H */
