/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bind.h -- requests that bind memory windows or make keys invalid.
 */

#ifndef LB_EXEC_BIND_H
#define LB_EXEC_BIND_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct lb_qp;
struct lb_wqe;

/* Make wqe a request to bind: 0 or EINVAL; execute it: 0 or a status */
int lb_bind_set(struct lb_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);
int lb_bind_execute(const struct lb_qp *qp, const struct lb_wqe *wqe);

#endif /* LB_EXEC_BIND_H */
