/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq_ex.c -- the extended interface to a completion queue: ibv_start_poll()
 * takes cq.poll, and ibv_end_poll() gives it back, as providers do.
 */

#include <errno.h>

#include "base/hook.h"
#include "base/lock.h"
#include "base/turn.h"
#include "cq/cq.h"
#include "rpma_loopback.h"
#include "wire/nic.h"

#define WC_TIMES                                          \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
/* no flow tags and no tag matching: there is neither steering nor an RNDV */
#define WC_FLAGS                                                            \
	((uint64_t)IBV_WC_STANDARD_FLAGS | (uint64_t)IBV_WC_EX_WITH_CVLAN | \
	 WC_TIMES)

static struct lb_cq *from_ex(struct ibv_cq_ex *ex)
{
	return (struct lb_cq *)ex;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct lb_cq *cq = from_ex(ex);

	if (!lb_cq_take(cq, &cq->cur))
		return ENOENT;
	ex->wr_id = cq->cur.wc.wr_id;
	ex->status = cq->cur.wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct lb_cq *cq = from_ex(ex);
	int ret;

	if (cq->magic != LB_CQ)
		return lb_cq_refuse(cq);
	if (attr->comp_mask)
		return EINVAL;
	lb_hook(RPMA_LOOPBACK_POLL, ex);
	if (lb_nic_has_links())
		lb_nic_poll();
	lb_lock_get(&cq->poll);
	ret = next_poll(ex);
	if (ret)
		lb_lock_put(&cq->poll); /* no ibv_end_poll() follows */
	if (lb_turn_has_others())
		lb_turn_polled(&lb_turn_mine, !ret);
	return ret;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	lb_lock_put(&from_ex(ex)->poll);
	lb_hook(RPMA_LOOPBACK_POLL_DONE, ex);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur.wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur_stamp.raw;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return from_ex(ex)->cur_stamp.wall;
}

/* There are no VLANs within a process. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

struct ibv_cq_ex *lb_cq_ex_create(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr)
{
	struct lb_cq *cq;
	struct ibv_cq_ex *ex;

	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    (attr->wc_flags & ~WC_FLAGS) ||
	    ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	     (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = lb_cq_new(context, (int)attr->cqe, attr->cq_context, attr->channel,
		       (int)attr->comp_vector);
	if (!cq)
		return NULL;
	if ((attr->wc_flags & WC_TIMES) && lb_cq_keep_times(cq)) {
		ibv_destroy_cq(&cq->ibv);
		errno = ENOMEM;
		return NULL;
	}
	ex = &cq->ex;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
	ex->read_cvlan = read_cvlan;
	return ex;
}
