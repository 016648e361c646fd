/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stubs.c -- the slots of a context, and every exported verb that the device
 * does not support. Those must be here too: the real functions would follow
 * private fields that the objects of the loopback device lack.
 */

#include <errno.h>

#include "base/base.h"
#include "base/log.h"
#include "cq/cq.h"
#include "exec/post.h"
#include "memory/mw.h"
#include "memory/pd.h"
#include "object/query.h"
#include "qp/srq.h"
#include "verbs/ops.h"
#include "verbs/qp_ex.h"

static void *no_pointer(const char *verb)
{
	lb_log_refuse_verb(verb);
	return NULL;
}

/* --- inline verbs that call through the context */

void lb_stubs_fill_ops(struct verbs_context *vctx)
{
	struct ibv_context_ops *ops = &vctx->context.ops;

	ops->alloc_mw = lb_mw_alloc;
	ops->bind_mw = lb_post_bind_mw;
	ops->dealloc_mw = lb_mw_dealloc;
	ops->poll_cq = lb_cq_poll;
	ops->req_notify_cq = lb_cq_arm;
	ops->post_srq_recv = lb_srq_post_recv;
	ops->post_send = lb_post_send;
	ops->post_recv = lb_post_recv;
	vctx->query_port = lb_query_port;
	vctx->query_device_ex = lb_query_device_ex;
	vctx->query_rt_values = lb_query_rt_values;
	vctx->create_cq_ex = lb_cq_ex_create;
	vctx->create_qp_ex = lb_qp_ex_create;
	vctx->create_srq_ex = lb_srq_create_ex;
	vctx->get_srq_num = lb_srq_get_num;
	vctx->alloc_parent_domain = lb_pd_alloc_parent;
	/* the others stay NULL: their inline verbs say EOPNOTSUPP */
}

/* --- memory */

LB_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			   void *addr, size_t length, int access)
{
	(void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
	lb_log_refuse_verb("ibv_rereg_mr");
	return IBV_REREG_MR_ERR_INPUT; /* nothing was changed */
}

LB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					   size_t length, uint64_t iova, int fd,
					   int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd;
	(void)access;
	return no_pointer("ibv_reg_dmabuf_mr");
}

/* --- datagrams */

LB_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
					  struct ibv_ah_attr *attr,
					  uint8_t eth_mac[6], uint16_t *vid)
{
	(void)context, (void)attr, (void)eth_mac, (void)vid;
	return lb_log_refuse_verb("ibv_resolve_eth_l2_from_gid");
}

/* --- queue pairs */

LB_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	ece->vendor_id = 0; /* no vendor has options here */
	ece->options = 0;
	ece->comp_mask = 0;
	return 0;
}

LB_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return lb_log_refuse_verb("ibv_set_ece");
}

/* The last 8 bytes go last, the others in any order: not what this asks. */
LB_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp,
					 enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0;
}

/* --- sharing between processes */

LB_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return no_pointer("ibv_import_device");
}

LB_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
				       uint32_t pd_handle)
{
	(void)context, (void)pd_handle;
	return no_pointer("ibv_import_pd");
}

LB_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

LB_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	(void)pd, (void)mr_handle;
	return no_pointer("ibv_import_mr");
}

LB_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

LB_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
				       uint32_t dm_handle)
{
	(void)context, (void)dm_handle;
	return no_pointer("ibv_import_dm");
}

LB_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}

/* --- fork: nothing is pinned, so there is nothing to protect */

LB_EXPORT int ibv_fork_init(void)
{
	return 0;
}

LB_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

LB_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

LB_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

/* --- sysfs: the device is not there */

/*
 * Belongs to a private version of the real library, but its tools call the
 * function.
 */
LB_EXPORT int ibv_read_ibdev_sysfs_file(char *buf, size_t size,
					struct ibv_device *device,
					const char *fmt, ...)
{
	(void)buf, (void)size, (void)device, (void)fmt;
	errno = ENOENT;
	return -1;
}
