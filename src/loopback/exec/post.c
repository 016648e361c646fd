/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- ibv_post_send() and its like: each request is checked, copied to
 * its ring, and submitted to exec.c. Any thread.
 */

#include "exec/post.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/opener.h"
#include "exec/bind.h"
#include "exec/hash.h"
#include "exec/run.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"
#include "qp/ah.h"
#include "qp/flush.h"
#include "qp/kick.h"
#include "qp/qp.h"
#include "qp/rq.h"
#include "qp/sq.h"
#include "qp/wqe.h"
#include "rpma_loopback.h"

#define KNOWN_FLAGS                                                \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
	 IBV_SEND_INLINE)

/* --- the send queue; sq.lock held */

/*
 * Returns 0 if the state allows posts. Only ERR may come meanwhile, and the
 * thread that sets ERR flushes.
 */
static int check_state(const struct lb_qp *qp)
{
	if (lb_qp_takes_sends(lb_qp_state(qp)))
		return 0;
	lb_log_misuse("send posted to a QP that is not connected");
	return EINVAL;
}

static int set_inline(struct lb_wqe *wqe, const struct ibv_send_wr *wr,
		      const struct lb_qp *qp)
{
	uint8_t *to = wqe->data;
	uint64_t length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length > qp->cap.max_inline_data)
		return lb_log_refuse(EINVAL,
				     "ibv_post_send(): %llu bytes inline: the "
				     "queue pair has max_inline_data %u",
				     (unsigned long long)length,
				     qp->cap.max_inline_data);
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
	wqe->is_inline = 1;
	wqe->length = (uint32_t)length;
	return 0;
}

static void set_sges(struct lb_wqe *wqe, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		length += wr->sg_list[i].length;
	}
	wqe->is_inline = 0;
	wqe->nsge = (uint8_t)wr->num_sge;
	/* what is too long for any message is too long for this word */
	wqe->length = length > LB_MAX_MSG ? UINT32_MAX : (uint32_t)length;
}

static void set_no_sges(struct lb_wqe *wqe)
{
	wqe->is_inline = 0;
	wqe->nsge = 0;
	wqe->length = 0;
}

/*
 * Sets the fields of a datagram. Operations on memory of the peer fail when
 * executed, as on other devices.
 */
static int set_datagram(struct lb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct lb_qp *qp)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return lb_ah_set(wqe, qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				 wr->wr.ud.remote_qkey);
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->opcode = IBV_WR_SEND;
		wqe->route.device = LB_NO_ROUTE;
		return 0;
	default:
		return EINVAL;
	}
}

/*
 * Returns true if the operation needs no answer, as on an unreliable
 * connection.
 */
static bool is_one_way(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
		return false;
	default:
		return true;
	}
}

static int set_operation(struct lb_wqe *wqe, const struct ibv_send_wr *wr,
			 const struct lb_qp *qp)
{
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->imm = wr->imm_data; /* or the rkey to invalidate */
	if (qp->type != IBV_QPT_RC) {
		if (qp->type == IBV_QPT_UD)
			return set_datagram(wqe, wr, qp);
		if (!is_one_way(wr->opcode))
			return EINVAL;
	}
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return 0;
	case IBV_WR_LOCAL_INV:
		return wr->send_flags & IBV_SEND_INLINE ? EINVAL : 0;
	case IBV_WR_BIND_MW:
		if (wr->send_flags & IBV_SEND_INLINE)
			return EINVAL;
		return lb_bind_set(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
				   &wr->bind_mw.bind_info);
	case IBV_WR_RDMA_READ:
		if (wr->send_flags & IBV_SEND_INLINE)
			return EINVAL;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_WRITE:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if (wr->send_flags & IBV_SEND_INLINE)
			return EINVAL;
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		return 0;
	default:
		return EINVAL;
	}
}

static int enqueue(struct lb_qp *qp, const struct ibv_send_wr *wr)
{
	struct lb_wqe *wqe;
	int err;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge ||
	    (wr->send_flags & ~(unsigned)KNOWN_FLAGS))
		return lb_log_refuse(EINVAL,
				     "ibv_post_send(): %d pieces, send_flags "
				     "%#x: the queue pair has %u pieces",
				     wr->num_sge, wr->send_flags,
				     qp->cap.max_send_sge);
	if (!lb_sq_has_room(qp, qp->sq_tail))
		return lb_log_refuse(ENOMEM,
				     "ibv_post_send(): all %u places of the "
				     "send queue are taken: poll completions",
				     qp->cap.max_send_wr);
	wqe = lb_sq_slot(qp, qp->sq_tail);
	err = set_operation(wqe, wr, qp);
	if (err)
		return err;
	wqe->wr_id = wr->wr_id;
	wqe->flags = (uint8_t)wr->send_flags;
	if (wr->send_flags & IBV_SEND_INLINE) {
		err = set_inline(wqe, wr, qp);
		if (err)
			return err;
	} else if (lb_wqe_is_local(wqe)) {
		set_no_sges(wqe);
	} else {
		set_sges(wqe, wr);
	}
	if (lb_is_strict())
		lb_hash_remember(qp, qp->sq_tail);
	qp->sq_tail++;
	return 0;
}

int lb_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)ibv;
	struct lb_qp *qp = handle->qp;
	struct lb_run run;
	int err = lb_fault_errno("ibv_post_send");

	if (!lb_likely(handle->magic == LB_QP))
		err = lb_qp_refuse(handle);
	if (lb_opener_is_asked() && !err)
		err = lb_opener_check(
			&lb_device_context_of(ibv->context)->opener);
	if (err) {
		*bad = wr;
		return err;
	}
	lb_hook(RPMA_LOOPBACK_POST_SEND, ibv);
	lb_run_look(qp);
	lb_run_begin(&run);
	lb_sq_lock_to_post(qp);
	err = check_state(qp);
	for (; wr && !err; wr = wr->next) {
		err = enqueue(qp, wr);
		if (err)
			break;
	}
	lb_run_submit(&run, qp);
	lb_lock_put(&qp->sq_lock);
	lb_run_end(&run);
	if (err)
		*bad = wr;
	lb_hook(RPMA_LOOPBACK_POST_SEND_DONE, ibv);
	return err;
}

int lb_post_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		    struct ibv_mw_bind *ask)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = ask->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = ask->send_flags,
			.bind_mw =
				{
					.mw = mw,
					.rkey = ibv_inc_rkey(mw->rkey),
					.bind_info = ask->bind_info,
				},
		};
	int err = lb_fault_errno("ibv_bind_mw");

	if (!err &&
	    (!lb_object_check(qp, LB_QP) || !lb_object_check(mw, LB_MW)))
		err = errno;
	if (!err && (ask->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED))
		err = EINVAL; /* of a type 1 window */
	if (!err)
		err = lb_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return lb_error(err);
}

/* --- the receive queue */

/* A receive came to a QP in error: it is flushed like those before it. */
static void flush_late(struct lb_qp *qp)
{
	struct lb_run run;

	lb_run_begin(&run);
	lb_lock_get(&qp->rq.pop);
	lb_lock_get(&qp->rq.post);
	/* relaxed: constant while the locks are held */
	if (atomic_load_explicit(&qp->state, memory_order_relaxed) ==
	    IBV_QPS_ERR)
		lb_flush_receives(&run, qp);
	lb_lock_put(&qp->rq.post);
	lb_lock_put(&qp->rq.pop);
	lb_run_end(&run);
}

int lb_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)ibv;
	struct lb_qp *qp = handle->qp;
	uint32_t state;
	int err = lb_fault_errno("ibv_post_recv");

	if (!lb_likely(handle->magic == LB_QP))
		err = lb_qp_refuse(handle);
	else if (ibv->srq)
		err = EINVAL;
	if (err) {
		*bad = wr;
		return err;
	}
	lb_hook(RPMA_LOOPBACK_POST_RECV, ibv);
	lb_lock_get(&qp->rq.post);
	/* relaxed: it changes only with rq.post held */
	state = atomic_load_explicit(&qp->state, memory_order_relaxed);
	if (state == IBV_QPS_RESET) {
		lb_log_misuse("receive posted to a QP in RESET");
		err = EINVAL;
	}
	for (; wr && !err; wr = wr->next) {
		err = lb_rq_post(&qp->rq, wr);
		if (err)
			break;
	}
	lb_lock_put(&qp->rq.post);
	if (err)
		*bad = wr;
	if (state == IBV_QPS_ERR)
		flush_late(qp);
	lb_hook(RPMA_LOOPBACK_POST_RECV_DONE, ibv);
	return err;
}
