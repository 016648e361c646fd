/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * respond.c -- the responder half of a request of a connection: checks the
 * request, takes a receive, moves the data, completes the receive. Run with
 * rq.pop of the peer held, by the thread that executes the requester, with
 * sq.lock of the requester, or by inbound.c, for a requester in another
 * process.
 */

#include "exec/respond.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/newer.h"
#include "cq/cq.h"
#include "exec/work.h"
#include "memory/copy.h"
#include "memory/lost.h"
#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/power.h"
#include "object/limits.h"
#include "qp/ah.h"
#include "qp/flush.h"
#include "qp/qp.h"
#include "qp/resp.h"
#include "qp/rq.h"
#include "qp/srq.h"
#include "qp/wqe.h"

static bool has_imm(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_IMM ||
	       wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_inv(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_INV;
}

bool lb_respond_takes(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || has_inv(wqe) ||
	       wqe->opcode == IBV_WR_SEND_WITH_IMM ||
	       wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_answering(const struct lb_work *w)
{
	const struct lb_qp *qp = w->qp, *peer = w->peer;

	return lb_qp_number(peer) == qp->peer_qpn &&
	       peer->home == qp->peer_home &&
	       lb_qp_takes_in(lb_qp_state(peer)) &&
	       peer->peer_qpn == lb_qp_number(qp) &&
	       peer->peer_home == qp->home;
}

static void note_first_message(struct lb_qp *peer)
{
	if (lb_likely(peer->resp.comm_est))
		return;
	peer->resp.comm_est = true;
	if (lb_qp_state(peer) == IBV_QPS_RTR)
		lb_qp_event(peer, IBV_EVENT_COMM_EST);
}

/* The request is not acceptable: the responder breaks and says why. */
static int reject(struct lb_work *w, enum ibv_event_type event, int status)
{
	lb_mr_done(&w->window);
	lb_qp_event(w->peer, event);
	lb_flush_responder(w->run, w->peer);
	return status;
}

/* Refuses a request; on an unreliable connection the request is dropped. */
static int refuse(struct lb_work *w, enum ibv_event_type event, int status)
{
	if (w->peer->type != IBV_QPT_UC)
		return reject(w, event, status);
	lb_mr_done(&w->window);
	return status;
}

bool lb_respond_take(struct lb_work *w)
{
	struct lb_qp *peer = w->peer;
	struct lb_rqe *rqe;
	uint32_t pos;

	/* a message cut off by a reset of the sender: this message fills the
	 * receive anew */
	if (peer->resp.busy)
		return true;
	if (peer->srq)
		return lb_srq_take(peer->srq, &peer->resp);
	rqe = lb_rq_pop(&peer->rq, &pos);
	if (rqe)
		lb_resp_set(&peer->resp, rqe, pos);
	return rqe;
}

/*
 * Returns the word moved on by the poll of a receive: a slot of an SRQ is free
 * already.
 */
static _Atomic uint32_t *receive_freed(struct lb_qp *peer)
{
	return peer->srq ? &lb_cq_no_slot : &peer->rq.freed;
}

/* Ends the receive taken by the message with an error, and the QP too. */
void lb_respond_fail(struct lb_work *w, enum ibv_wc_status status)
{
	struct lb_resp *resp = &w->peer->resp;
	struct ibv_wc wc = {
		.wr_id = resp->wr_id,
		.status = status,
		.qp_num = lb_qp_number(w->peer),
	};

	resp->busy = false;
	lb_cq_push(&w->run->due, w->peer->recv_cq, &wc, receive_freed(w->peer),
		   resp->pos, false);
	lb_flush_responder(w->run, w->peer);
}

/* Invalidates the window taken away by the sender of the message. */
static int invalidate(struct lb_work *w)
{
	if (lb_mw_invalidate(w->wqe->imm, w->peer->pd))
		return LB_EXEC_OK;
	lb_respond_fail(w, IBV_WC_REM_INV_REQ_ERR);
	return IBV_WC_REM_OP_ERR;
}

int lb_respond_complete(struct lb_work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_resp *resp = &w->peer->resp;
	bool is_ud = w->peer->type == IBV_QPT_UD;
	struct ibv_wc wc = {
		.wr_id = resp->wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM
				  ? IBV_WC_RECV_RDMA_WITH_IMM
				  : IBV_WC_RECV,
		.byte_len = wqe->length + (is_ud ? LB_GRH : 0),
		/* or the invalidated rkey, which has the same place */
		.imm_data = has_imm(wqe) || has_inv(wqe) ? wqe->imm : 0,
		.wc_flags = has_imm(wqe)   ? IBV_WC_WITH_IMM
			    : has_inv(wqe) ? IBV_WC_WITH_INV
					   : 0,
		.qp_num = lb_qp_number(w->peer),
		.src_qp = w->from,
	};

	if (is_ud) {
		wc.wc_flags |= IBV_WC_GRH;
		wc.sl = w->sl;
	}
	resp->busy = false;
	w->peer->tally->received++;
	if (lb_likely(!lb_cq_push(&w->run->due, w->peer->recv_cq, &wc,
				  receive_freed(w->peer), resp->pos,
				  wqe->flags & IBV_SEND_SOLICITED)))
		return LB_EXEC_OK;
	return reject(w, IBV_EVENT_QP_FATAL, IBV_WC_REM_OP_ERR);
}

/*
 * Ends a request whose access met memory unmapped by the program: of this side,
 * the responder's, or of the requester.
 */
LB_COLD static int lose(struct lb_work *w, const struct lb_span *ours)
{
	if (!lb_lost_take(ours) && w->qp)
		return IBV_WC_LOC_PROT_ERR;
	if (lb_respond_takes(w->wqe) &&
	    w->wqe->opcode != IBV_WR_RDMA_WRITE_WITH_IMM) {
		lb_respond_fail(w, IBV_WC_LOC_PROT_ERR);
		return IBV_WC_REM_OP_ERR;
	}
	return refuse(w, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
}

/*
 * The next slice is about to go to memory of the queue pair; with the first the
 * request arrives.
 */
LB_COLD static void note_slice(const struct lb_work *w, const struct lb_qp *qp,
			       const struct lb_span *dst)
{
	uint64_t done = w->peer->resp.done;

	if (!done)
		lb_power_arrive();
	lb_power_deliver(qp->order, dst, done,
			 lb_copy_piece(w->wqe->length - done, w->budget));
}

/*
 * Moves as much as the budget allows between the responder's memory, dst or
 * src, and the requester's: LB_EXEC_OK, LB_EXEC_AGAIN, or the status.
 */
static inline int move_slice(struct lb_work *w, const struct lb_span *dst,
			     const struct lb_span *src, uint64_t total)
{
	struct lb_resp *resp = &w->peer->resp;
	uint64_t n = lb_copy_slice(dst, src, total, resp->done, w->budget);

	if (lb_lost_is())
		return lose(w, dst == w->local ? src : dst);
	resp->done += n;
	w->budget -= n < w->budget ? n : w->budget;
	w->moved += n;
	return resp->done == total ? LB_EXEC_OK : LB_EXEC_AGAIN;
}

static int respond_send(struct lb_work *w)
{
	struct lb_resp *resp = &w->peer->resp;
	const struct lb_qp *peer = w->peer;
	const struct ibv_pd *pd = peer->srq ? &peer->srq->pd->ibv : peer->pd;
	struct lb_span dst[LB_MAX_SGE + 1];
	int ret;

	ret = lb_copy_spans(resp->sge, resp->nsge, w->wqe->length,
			    IBV_ACCESS_LOCAL_WRITE, pd, dst);
	if (!ret && lb_power_is_on())
		note_slice(w, peer, dst);
	if (!ret)
		return move_slice(w, dst, w->local, w->wqe->length);
	if (ret == ENOSPC) {
		lb_respond_fail(w, IBV_WC_LOC_LEN_ERR);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	lb_respond_fail(w, IBV_WC_LOC_PROT_ERR);
	return IBV_WC_REM_OP_ERR;
}

/* The remote side of an RDMA request, checked. 0 or the status. */
static int check_remote(struct lb_work *w, uint32_t access,
			struct lb_span *remote)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_qp *peer = w->peer;
	const struct lb_mr_user user = {peer->pd, peer->order};

	if (!(peer->access & access))
		return refuse(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	remote[0].addr = NULL;
	remote[0].len = wqe->length;
	remote[1].len = 0;
	if (!wqe->length || /* then the key does not matter */
	    !lb_mr_remote(wqe->rkey, wqe->remote_addr, wqe->length, access,
			  &user, &remote[0].addr, &w->window))
		return 0;
	return refuse(w, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
}

static int respond_write(struct lb_work *w)
{
	struct lb_span remote[2];
	int ret = check_remote(w, IBV_ACCESS_REMOTE_WRITE, remote);

	if (ret)
		return ret;
	if (w->wqe->opcode == IBV_WR_ATOMIC_WRITE &&
	    ((w->wqe->remote_addr | (uintptr_t)remote[0].addr) & 7))
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	if (lb_power_is_on())
		note_slice(w, w->peer, remote);
	return move_slice(w, remote, w->local, w->wqe->length);
}

/*
 * Checks the destination of the answer: returns 0, or the status of a requester
 * that must not write there. A requester in another process checks at the
 * answer.
 */
static int check_answer(struct lb_work *w)
{
	if (!w->qp)
		return 0;
	return lb_copy_spans(w->wqe->sge, w->wqe->nsge, w->wqe->length,
			     IBV_ACCESS_LOCAL_WRITE, w->qp->pd, w->local)
		       ? IBV_WC_LOC_PROT_ERR
		       : 0;
}

/*
 * A READ is about to read: what the queue pair wrote before persists, unless
 * the READ reads no memory.
 */
LB_COLD static void note_read(const struct lb_work *w)
{
	if (w->wqe->length)
		lb_power_read(w->peer->order);
}

static int respond_read(struct lb_work *w)
{
	struct lb_span remote[2];
	int ret;

	ret = check_remote(w, IBV_ACCESS_REMOTE_READ, remote);
	if (!ret)
		ret = check_answer(w);
	if (ret)
		return ret;
	if (lb_power_is_on()) {
		note_slice(w, w->qp, w->local);
		note_read(w);
	}
	return move_slice(w, w->local, remote, w->wqe->length);
}

static int check_counted(struct lb_work *w)
{
	if (lb_wqe_is_counted(w->wqe) && !w->peer->attr.max_dest_rd_atomic)
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	return 0;
}

int lb_respond_reads(struct lb_work *w, struct lb_span remote[2])
{
	int ret = check_counted(w);

	if (!ret)
		ret = check_remote(w, IBV_ACCESS_REMOTE_READ, remote);
	if (ret)
		return ret;
	if (lb_power_is_on()) {
		lb_power_arrive();
		note_read(w);
	}
	lb_lost_touch(remote);
	return lb_lost_is() ? lose(w, remote) : 0;
}

static int respond_atomic(struct lb_work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_span remote[2], old[2];
	_Atomic uint64_t *word;
	uint64_t value;
	int ret;

	if (wqe->remote_addr & 7)
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	ret = check_remote(w, IBV_ACCESS_REMOTE_ATOMIC, remote);
	if (ret)
		return ret;
	word = (_Atomic uint64_t *)remote[0].addr;
	if ((uintptr_t)word & 7)
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	if (lb_power_is_on())
		note_slice(w, w->peer, remote);
	/* acq_rel, both: pairs with whoever else works on the word */
	if (wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		value = atomic_fetch_add_explicit(word, wqe->compare_add,
						  memory_order_acq_rel);
	} else {
		value = wqe->compare_add;
		atomic_compare_exchange_strong_explicit(word, &value, wqe->swap,
							memory_order_acq_rel,
							memory_order_acquire);
	}
	if (lb_lost_is())
		return lose(w, remote);
	ret = check_answer(w);
	if (ret) /* the effects at the peer stay, as on a wire */
		return ret;
	old[0].addr = (uint8_t *)&value;
	old[0].len = sizeof(value);
	old[1].len = 0;
	if (lb_power_is_on() && w->qp)
		lb_power_deliver(w->qp->order, w->local, 0, sizeof(value));
	lb_copy_move(w->local, 0, old, 0, sizeof(value), true);
	if (lb_lost_is())
		return lose(w, remote);
	w->moved += sizeof(value);
	return LB_EXEC_OK;
}

static uint32_t flush_rights(const struct lb_wqe *wqe)
{
	uint32_t rights = 0;

	if (wqe->flush_type & LB_FLUSH_GLOBAL)
		rights |= LB_RIGHT_FLUSH_GLOBAL;
	if (wqe->flush_type & LB_FLUSH_PERSISTENT)
		rights |= LB_RIGHT_FLUSH_PERSISTENT;
	return rights;
}

/* What the queue pair wrote before to the range of the flush persists. */
LB_COLD static void note_flush(const struct lb_work *w, const uint8_t *mem)
{
	const struct lb_wqe *wqe = w->wqe;
	const struct lb_mr_row *row = lb_mr_row_of(wqe->rkey);

	lb_power_arrive();
	if (!(wqe->flush_type & LB_FLUSH_PERSISTENT))
		return;
	if (wqe->flush_all)
		lb_power_flush(w->peer->order, row->base, row->length);
	else
		lb_power_flush(w->peer->order, mem, wqe->flush_length);
}

/*
 * A flush has nothing to do once allowed: earlier writes are in memory, because
 * requests are executed in order, and any thread that sees the completion or a
 * later write sees the earlier writes. Persistent memory is the memory behind
 * the mapping, as for any store, unless the power can fail.
 */
static int respond_flush(struct lb_work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_qp *peer = w->peer;
	const struct lb_mr_user user = {peer->pd, peer->order};
	uint32_t rights = flush_rights(wqe);
	uint8_t *mem;

	if ((peer->access & rights) != rights)
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	if (lb_mr_remote(wqe->rkey, wqe->flush_addr,
			 wqe->flush_all ? LB_MR_ALL : wqe->flush_length, rights,
			 &user, &mem, &w->window))
		return reject(w, IBV_EVENT_QP_ACCESS_ERR,
			      IBV_WC_REM_ACCESS_ERR);
	if (lb_power_is_on())
		note_flush(w, mem);
	return LB_EXEC_OK;
}

static int respond(struct lb_work *w)
{
	int ret = check_counted(w);

	if (ret)
		return ret;
	switch (w->wqe->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		ret = respond_send(w);
		break;
	case IBV_WR_RDMA_READ:
		ret = respond_read(w);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ret = respond_atomic(w);
		break;
	case LB_WR_FLUSH:
		ret = respond_flush(w);
		break;
	default:
		ret = respond_write(w);
		break;
	}
	lb_mr_done(&w->window);
	if (ret == LB_EXEC_OK && has_inv(w->wqe))
		ret = invalidate(w);
	if (ret == LB_EXEC_OK && lb_respond_takes(w->wqe))
		ret = lb_respond_complete(w);
	return ret;
}

int lb_respond_begin(struct lb_work *w)
{
	struct lb_resp *resp = &w->peer->resp;

	note_first_message(w->peer);
	resp->is_working = false; /* the message before may be cut off */
	if (lb_respond_takes(w->wqe) && !lb_respond_take(w))
		return LB_EXEC_RNR;
	resp->is_working = true;
	resp->done = 0;
	return LB_EXEC_OK;
}

int lb_respond_some(struct lb_work *w)
{
	int ret = respond(w);

	if (ret != LB_EXEC_AGAIN)
		w->peer->resp.is_working = false;
	return ret;
}

int lb_respond(struct lb_work *w)
{
	struct lb_exec *x = &w->qp->exec;
	int ret;

	if (!is_answering(w))
		return LB_EXEC_SILENT;
	if (!x->accepted) {
		ret = lb_respond_begin(w);
		if (ret != LB_EXEC_OK)
			return ret;
		x->accepted = true;
	} else if (!w->peer->resp.is_working) {
		return LB_EXEC_SILENT; /* reset or broken in between */
	}
	return lb_respond_some(w);
}
