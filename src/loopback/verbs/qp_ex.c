/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp_ex.c -- ibv_create_qp_ex(): a queue pair with the ibv_wr_* interface. Any
 * thread.
 */

#include "verbs/qp_ex.h"

#include <errno.h>

#include "base/newer.h"
#include "exec/wr.h"
#include "object/object.h"
#include "qp/qp.h"

/* the ibv_wr_* operations of the types of queue pairs */
#define LB_SEND_OPS                                                            \
	((uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE |                                \
		    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
		    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |  \
		    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                        \
		    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                      \
		    IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |        \
		    IBV_QP_EX_WITH_SEND_WITH_INV |                             \
		    IBV_QP_EX_WITH_ATOMIC_WRITE | LB_SEND_OPS_FLUSH))

#define LB_SEND_OPS_UC                                                         \
	((uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE |                                \
		    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
		    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |  \
		    IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV))

#define LB_SEND_OPS_UD \
	((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))

/* What ibv_create_qp_ex() may ask for in send_ops_flags. */
static uint64_t send_ops_of(enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return LB_SEND_OPS_UD;
	return type == IBV_QPT_UC ? LB_SEND_OPS_UC : LB_SEND_OPS;
}

struct ibv_qp *lb_qp_ex_create(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;
	struct lb_qp_handle *handle;
	struct ibv_qp_init_attr init = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
	};
	bool has_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	int err = 0;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) ||
	    !lb_object_check(attr->pd, LB_PD) || attr->pd->context != context)
		err = EINVAL;
	else if ((attr->comp_mask & ~known) ||
		 ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
		  attr->create_flags) ||
		 (has_ops &&
		  (attr->send_ops_flags & ~send_ops_of(attr->qp_type))))
		err = EOPNOTSUPP;
	if (err) {
		lb_error_of("ibv_create_qp_ex", err);
		return NULL;
	}
	handle = lb_qp_new(attr->pd, &init);
	if (!handle)
		return NULL;
	attr->cap = handle->init.cap;
	if (has_ops) {
		handle->send_ops = attr->send_ops_flags;
		lb_wr_init(handle);
	}
	return &handle->ibv;
}
