/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wr.c -- the ibv_wr_* interface: requests are built in the ring itself,
 * behind sq_tail, between ibv_wr_start() and ibv_wr_complete() or
 * ibv_wr_abort(). The thread that builds a batch keeps other posts away by
 * sq_batch and holds no lock meanwhile, because the program decides how long a
 * batch is open. The first error of a batch makes complete() post nothing of
 * the batch.
 */

#include "exec/wr.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/lock.h"
#include "base/log.h"
#include "exec/bind.h"
#include "exec/hash.h"
#include "exec/run.h"
#include "fault/fault.h"
#include "object/limits.h"
#include "qp/ah.h"
#include "qp/kick.h"
#include "qp/qp.h"
#include "qp/sq.h"
#include "qp/wqe.h"
#include "rpma_loopback.h"

static struct lb_qp_handle *from_ex(struct ibv_qp_ex *ex)
{
	return (struct lb_qp_handle *)ex;
}

static void set_error(struct lb_qp_handle *h, int err)
{
	if (!h->wr_error)
		h->wr_error = err;
}

/* --- the batch */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct lb_qp_handle *h = from_ex(ex);
	struct lb_qp *qp = h->qp;

	lb_hook(RPMA_LOOPBACK_POST_SEND, ex);
	lb_run_look(qp);
	lb_sq_lock_to_post(qp);
	qp->sq_batch = h;
	h->wr_tail = qp->sq_tail;
	h->wr_last = NULL;
	h->wr_error = lb_fault_errno("ibv_wr_complete");
	if (!lb_likely(h->magic == LB_QP))
		set_error(h, lb_qp_refuse(h));
	if (!lb_qp_takes_sends(lb_qp_state(qp))) {
		lb_log_misuse("send posted to a QP that is not connected");
		set_error(h, EINVAL);
	}
	lb_lock_put(&qp->sq_lock);
}

/* Returns true unless a reset has ended the batch; sq.lock. */
static bool end_batch(struct lb_qp_handle *h)
{
	bool was_open = h->qp->sq_batch == h;

	if (was_open)
		h->qp->sq_batch = NULL;
	return was_open;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct lb_qp_handle *h = from_ex(ex);
	struct lb_qp *qp = h->qp;
	struct lb_run run;
	int err = h->wr_error;

	lb_run_begin(&run);
	lb_lock_get(&qp->sq_lock);
	if (!end_batch(h) && !err)
		err = EINVAL;
	if (!err) {
		qp->sq_tail = h->wr_tail;
		lb_run_submit(&run, qp);
	}
	lb_lock_put(&qp->sq_lock);
	lb_run_end(&run);
	lb_hook(RPMA_LOOPBACK_POST_SEND_DONE, ex);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct lb_qp_handle *h = from_ex(ex);

	lb_lock_get(&h->qp->sq_lock);
	end_batch(h);
	lb_lock_put(&h->qp->sq_lock);
	lb_hook(RPMA_LOOPBACK_POST_SEND_DONE, ex);
}

/* --- requests */

static struct lb_wqe *add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
			  uint64_t op_flag)
{
	struct lb_qp_handle *h = from_ex(ex);
	struct lb_qp *qp = h->qp;
	struct lb_wqe *wqe;

	h->wr_last = NULL;
	if (!(h->send_ops & op_flag))
		set_error(h, EINVAL);
	else if (!lb_sq_has_room(qp, h->wr_tail))
		set_error(h, ENOMEM);
	if (h->wr_error)
		return NULL;
	qp->sq_checks[h->wr_tail & qp->sq_mask] = 0;
	wqe = lb_sq_slot(qp, h->wr_tail++);
	memset(wqe, 0, offsetof(struct lb_wqe, sge));
	wqe->wr_id = ex->wr_id;
	wqe->opcode = (uint8_t)opcode;
	wqe->flags = (uint8_t)ex->wr_flags;
	h->wr_last = wqe;
	return wqe;
}

static struct lb_wqe *add_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
			       uint64_t op_flag, uint32_t rkey,
			       uint64_t remote_addr)
{
	struct lb_wqe *wqe = add(ex, opcode, op_flag);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->remote_addr = remote_addr;
	}
	return wqe;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add(ex, IBV_WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct lb_wqe *wqe =
		add(ex, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM);

	if (wqe)
		wqe->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct lb_wqe *wqe =
		add(ex, IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV);

	if (wqe)
		wqe->imm = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct lb_wqe *wqe =
		add(ex, IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV);

	if (wqe)
		wqe->imm = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct lb_wqe *wqe = add(ex, IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);

	if (wqe && lb_bind_set(wqe, mw, rkey, bind_info))
		set_error(from_ex(ex), EINVAL);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	add_rdma(ex, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, rkey,
		 remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	add_rdma(ex, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey,
		 remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	struct lb_wqe *wqe =
		add_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM,
			 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (wqe)
		wqe->imm = imm_data;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	struct lb_wqe *wqe =
		add_rdma(ex, IBV_WR_ATOMIC_CMP_AND_SWP,
			 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, rkey, remote_addr);

	if (wqe) {
		wqe->compare_add = compare;
		wqe->swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t value)
{
	struct lb_wqe *wqe = add_rdma(ex, IBV_WR_ATOMIC_FETCH_AND_ADD,
				      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, rkey,
				      remote_addr);

	if (wqe)
		wqe->compare_add = value;
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct lb_wqe *wqe =
		add_rdma(ex, IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE,
			 rkey, remote_addr);

	if (!wqe)
		return;
	memcpy(wqe->data, atomic_wr, sizeof(uint64_t));
	wqe->is_inline = 1;
	wqe->length = sizeof(uint64_t);
}

#ifdef RPMA_HAVE_NATIVE_FLUSH
/* A flush has no data. */
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
		     size_t len, uint8_t type, uint8_t level)
{
	struct lb_wqe *wqe = add_rdma(ex, IBV_WR_FLUSH, IBV_QP_EX_WITH_FLUSH,
				      rkey, remote_addr);

	from_ex(ex)->wr_last = NULL;
	if (!wqe)
		return;
	if (len > UINT32_MAX || level > IBV_FLUSH_MR ||
	    (type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)))
		set_error(from_ex(ex), EINVAL);
	wqe->flush_length = (uint32_t)len;
	wqe->flush_type = type;
	wqe->flush_all = level == IBV_FLUSH_MR;
}
#endif

/* --- their data */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct lb_qp_handle *h = from_ex(ex);

	if (h->qp->type != IBV_QPT_UD)
		set_error(h, EINVAL);
	else if (h->wr_last &&
		 lb_ah_set(h->wr_last, h->qp, ah, remote_qpn, remote_qkey))
		set_error(h, EINVAL);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct lb_qp_handle *h = from_ex(ex);
	struct lb_wqe *wqe = h->wr_last;
	uint64_t length = 0;
	size_t i;

	if (num_sge > h->qp->cap.max_send_sge)
		set_error(h, EINVAL);
	if (!wqe || h->wr_error)
		return;
	for (i = 0; i < num_sge; i++) {
		wqe->sge[i] = sg_list[i];
		length += sg_list[i].length;
	}
	wqe->nsge = (uint8_t)num_sge;
	wqe->length = length > LB_MAX_MSG ? UINT32_MAX : (uint32_t)length;
	if (lb_is_strict())
		lb_hash_remember(h->qp, h->wr_tail - 1);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct lb_qp_handle *h = from_ex(ex);
	struct lb_wqe *wqe = h->wr_last;
	size_t i, length = 0;

	for (i = 0; i < num_buf; i++) {
		if (buf_list[i].length > h->qp->cap.max_inline_data - length) {
			set_error(h, EINVAL);
			return;
		}
		length += buf_list[i].length;
	}
	if (!wqe || h->wr_error)
		return;
	length = 0;
	for (i = 0; i < num_buf; i++) {
		if (buf_list[i].length)
			memcpy(wqe->data + length, buf_list[i].addr,
			       buf_list[i].length);
		length += buf_list[i].length;
	}
	wqe->is_inline = 1;
	wqe->length = (uint32_t)length;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* --- what the device does not have */

static void no_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
		   uint16_t mss)
{
	(void)hdr, (void)hdr_sz, (void)mss;
	set_error(from_ex(ex), EOPNOTSUPP);
}

static void no_xrc(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	(void)remote_srqn;
	set_error(from_ex(ex), EOPNOTSUPP);
}

void lb_wr_init(struct lb_qp_handle *handle)
{
	struct ibv_qp_ex *ex = &handle->ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_send_tso = no_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = no_xrc;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
#ifdef RPMA_HAVE_NATIVE_FLUSH
	ex->wr_flush = wr_flush;
#endif
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}

LB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)qp;

	return handle->send_ops ? &handle->ex : NULL;
}
