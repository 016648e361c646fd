/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.h -- the ibv_wr_* interface.
 */

#ifndef LB_EXEC_WR_H
#define LB_EXEC_WR_H

struct lb_qp_handle;

void lb_wr_init(struct lb_qp_handle *handle);

#endif /* LB_EXEC_WR_H */
