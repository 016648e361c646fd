/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp_ex.h -- ibv_create_qp_ex().
 */

#ifndef LB_VERBS_QP_EX_H
#define LB_VERBS_QP_EX_H

#include <infiniband/verbs.h>

struct ibv_qp *lb_qp_ex_create(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *attr);

#endif /* LB_VERBS_QP_EX_H */
