/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote.c -- executes the send queue of a queue pair whose peer is in another
 * process, as far as the requester is concerned: requests are cut into parts,
 * which go into the ring of the link in order, and the oldest request completes
 * when the answer to its last part was taken. Outstanding requests lie between
 * two places of the queue, acked and sent; everything to be tried again begins
 * anew at acked. inbound.c is the responder, and takes answers.
 * doc/protocols/wire.md.
 */

#include "exec/remote.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "capture/file.h"
#include "cq/cq.h"
#include "exec/bind.h"
#include "exec/captured.h"
#include "exec/work.h"
#include "fault/fault.h"
#include "memory/barrier.h"
#include "memory/copy.h"
#include "memory/lost.h"
#include "memory/power.h"
#include "object/limits.h"
#include "qp/flush.h"
#include "qp/qp.h"
#include "qp/remote.h"
#include "qp/sq.h"
#include "qp/wqe.h"
#include "wire/link.h"
#include "wire/record.h"

/* --- requests as records */

static uint8_t type_of(const struct lb_wqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return LB_RECORD_WRITE;
	case IBV_WR_RDMA_READ:
		return LB_RECORD_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return LB_RECORD_CMP_SWP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return LB_RECORD_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return LB_RECORD_ATOMIC_WRITE;
	case LB_WR_FLUSH:
		return LB_RECORD_FLUSH;
	default:
		return LB_RECORD_SEND;
	}
}

static uint8_t flags_of(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	uint8_t flags = 0;

	if (wqe->opcode == IBV_WR_SEND_WITH_IMM ||
	    wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		flags |= LB_RECORD_IMM;
	if (wqe->opcode == IBV_WR_SEND_WITH_INV)
		flags |= LB_RECORD_INV;
	if (wqe->flags & IBV_SEND_SOLICITED)
		flags |= LB_RECORD_SOLICITED;
	if (qp->type == IBV_QPT_UC)
		flags |= LB_RECORD_UNRELIABLE;
	if (wqe->opcode == LB_WR_FLUSH && wqe->flush_all)
		flags |= LB_RECORD_ALL;
	return flags;
}

/*
 * Describes the next n bytes of a request that moves bytes or asks for bytes.
 */
static void describe_part(const struct lb_qp *qp, const struct lb_wqe *wqe,
			  uint32_t n, struct lb_record *record)
{
	uint32_t offset = qp->remote.sent.offset;

	record->remote_addr = wqe->remote_addr + offset;
	record->offset = offset;
	record->total = wqe->length;
	if (record->type == LB_RECORD_READ)
		record->total = n;
	else
		record->length = (uint16_t)n;
	if (!offset)
		record->flags |= LB_RECORD_FIRST;
	if (offset + n == wqe->length)
		record->flags |= LB_RECORD_LAST;
	if (n <= LB_RECORD_SMALL &&
	    (record->type == LB_RECORD_SEND || record->type == LB_RECORD_WRITE))
		record->flags |= LB_RECORD_INLINE;
}

static void describe(const struct lb_qp *qp, const struct lb_wqe *wqe,
		     uint32_t n, struct lb_record *record)
{
	memset(record, 0, sizeof(*record));
	record->type = type_of(wqe);
	record->flags = flags_of(qp, wqe);
	record->life = qp->remote.life;
	record->device = (uint8_t)qp->dev->index;
	record->to_device = qp->remote.device;
	record->path_mtu = (uint8_t)qp->attr.path_mtu;
	record->from = lb_qp_number(qp);
	record->to = qp->peer_qpn;
	record->psn = qp->remote.sent.psn;
	record->key = wqe->rkey;
	record->imm = wqe->imm;
	switch (record->type) {
	case LB_RECORD_FETCH_ADD:
	case LB_RECORD_CMP_SWP:
		record->remote_addr = wqe->remote_addr;
		record->operand = wqe->compare_add;
		record->swap = wqe->swap;
		break;
	case LB_RECORD_FLUSH:
		record->remote_addr = wqe->flush_addr;
		record->total = wqe->flush_length;
		record->code = wqe->flush_type;
		break;
	default:
		describe_part(qp, wqe, n, record);
	}
}

/* --- sending */

/* n bytes more of the request are behind the place. */
static void advance(struct lb_place *place, const struct lb_qp *qp,
		    const struct lb_wqe *wqe, uint32_t n)
{
	place->psn += lb_psn_count(n, qp->attr.path_mtu);
	place->psn &= LB_PSN_MASK;
	place->offset += n;
	if (place->offset < wqe->length)
		return;
	place->offset = 0;
	place->pos++;
}

static uint32_t next_part(const struct lb_wqe *wqe,
			  const struct lb_place *place)
{
	return (uint32_t)lb_copy_piece(wqe->length - place->offset,
				       LB_RECORD_PAYLOAD);
}

/* Counts n bytes sent over an unreliable connection, where no acknowledgement
 * comes: everything sent counts as acknowledged, and the request is finished if
 * all parts of the request were sent. */
static void forget_sent(struct lb_work *w, uint32_t n)
{
	struct lb_qp *qp = w->qp;
	struct lb_remote *r = &qp->remote;

	qp->tally->bytes += n;
	r->acked = r->sent;
	if (r->sent.pos != qp->sq_exec)
		lb_exec_finish(w, qp->exec.fault.status);
}

/* The oldest request, of an unreliable connection, gets nowhere. */
static int lose(struct lb_work *w)
{
	w->qp->remote.sent.pos = w->qp->sq_exec + 1;
	w->qp->remote.sent.offset = 0;
	forget_sent(w, 0);
	return LB_EXEC_AGAIN;
}

static int send_part(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	struct lb_remote *r = &qp->remote;
	uint32_t n = next_part(w->wqe, &r->sent);
	uint64_t cost = n < LB_EXEC_COST ? LB_EXEC_COST : n;
	struct lb_record record;

	describe(qp, w->wqe, n, &record);
	switch (lb_link_request(r->link, &record, w->local, r->sent.offset,
				&r->waiter)) {
	case LB_PUT_OK:
		w->has_put = true;
		break;
	case LB_PUT_DEAD:
		return LB_EXEC_SILENT;
	case LB_PUT_LOST:
		qp->tally->lost++;
		return lose(w);
	default: /* the waiter is told */
		return LB_EXEC_WAIT;
	}
	if (lb_file_is_wanted())
		lb_captured_part(w, &record);
	w->budget -= cost < w->budget ? cost : w->budget;
	if (!r->sent.offset && lb_wqe_is_counted(w->wqe))
		r->reads++;
	advance(&r->sent, qp, w->wqe, n);
	if (qp->type == IBV_QPT_UC) {
		lb_link_show(r->link); /* before the request counts as sent */
		forget_sent(w, n);
	}
	return LB_EXEC_OK;
}

/* Returns true if the request may follow the outstanding requests. */
static bool may_follow(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	if (qp->remote.sent.offset)
		return true; /* and so may the other parts */
	if (lb_qp_state(qp) == IBV_QPS_SQD || lb_wqe_is_local(wqe))
		return false;
	/* relaxed: a rule may miss outstanding requests */
	if (atomic_load_explicit(&lb_fault_count, memory_order_relaxed))
		return false;
	if ((wqe->flags & IBV_SEND_FENCE) && qp->remote.reads)
		return false;
	return !lb_wqe_is_counted(wqe) ||
	       qp->remote.reads < qp->attr.max_rd_atomic;
}

/* Nothing is under way: the request is the head of the queue. */
static int start_head(struct lb_work *w)
{
	struct lb_exec *x = &w->qp->exec;
	int ret = LB_EXEC_OK;

	if (!x->begun && lb_qp_state(w->qp) == IBV_QPS_SQD)
		return LB_EXEC_WAIT;
	if (!x->begun)
		ret = lb_exec_begin(w);
	if (ret)
		return ret;
	if (!lb_exec_may_retry(w->qp))
		return IBV_WC_RETRY_EXC_ERR;
	if (x->fault.status && !x->fault.after)
		return x->fault.status;
	if (!x->fault.rnr)
		return LB_EXEC_OK;
	x->fault.rnr--;
	return w->qp->type == IBV_QPT_RC ? lb_exec_rnr(w, 1) : lose(w);
}

static int execute_local(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	int ret = lb_bind_execute(qp, w->wqe);

	qp->remote.sent.pos++;
	lb_exec_finish(w, ret ? ret : qp->exec.fault.status);
	return LB_EXEC_OK;
}

/* Returns 0, or the status of a message that the program has unmapped. */
static int check_memory(const struct lb_work *w)
{
	lb_lost_touch_ends(w->local);
	return lb_lost_is() && lb_lost_take(w->local) ? IBV_WC_LOC_PROT_ERR : 0;
}

/* Sends a part, or as much as possible now. */
static int go_on(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	struct lb_remote *r = &qp->remote;
	struct lb_exec *x = &qp->exec;
	bool is_alone = !lb_qp_is_under_way(qp);
	int ret = LB_EXEC_OK;

	if (x->wait_until && lb_clock_now() < x->wait_until)
		return LB_EXEC_WAIT;
	x->wait_until = 0;
	if (!is_alone && lb_link_state(r->link) == LB_LINK_DEAD)
		return LB_EXEC_SILENT;
	if (r->sent.pos == qp->sq_tail)
		return LB_EXEC_WAIT;
	w->wqe = lb_sq_slot(qp, r->sent.pos);
	if (is_alone)
		ret = start_head(w);
	else if (!may_follow(qp, w->wqe))
		return LB_EXEC_WAIT;
	if (ret)
		return ret;
	if (lb_wqe_is_local(w->wqe))
		return execute_local(w);
	w->local[0].len = 0;
	ret = lb_exec_check(w);
	if (!ret)
		ret = check_memory(w);
	if (ret) /* earlier requests come to their end first */
		return is_alone ? ret : LB_EXEC_WAIT;
	return send_part(w);
}

/* Goes back after the peer has gone: sent requests are tried again, in vain. */
static int go_back_in_silence(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;

	lb_sq_go_back(qp);
	if (qp->type != IBV_QPT_RC)
		return lose(w);
	w->wqe = lb_sq_slot(qp, qp->sq_exec);
	return lb_exec_silence(w);
}

static enum lb_step run_queue(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	int ret;

	for (;;) {
		if (lb_qp_flushes(lb_qp_state(qp))) {
			lb_flush_sends(w->run, qp);
			return LB_DONE;
		}
		if (!w->budget)
			return LB_AGAIN;
		ret = go_on(w);
		if (ret == LB_EXEC_SILENT)
			ret = go_back_in_silence(w);
		if (ret == LB_EXEC_WAIT)
			return LB_WAIT;
		if (ret > 0)
			lb_exec_finish(w, ret);
	}
}

enum lb_step lb_remote_run(struct lb_run *run, struct lb_qp *qp,
			   uint64_t budget)
{
	struct lb_executor *self = lb_barrier_enter();
	struct lb_link *link = qp->remote.link;
	struct lb_work w;
	enum lb_step step;

	w.run = run;
	w.qp = qp;
	w.budget = budget;
	w.has_put = false;
	step = run_queue(&w);
	if (w.has_put)
		lb_link_show(link);
	lb_sq_drained(qp);
	lb_barrier_leave(self);
	return step;
}

/* --- answers */

static uint32_t psn_distance(uint32_t from, uint32_t to)
{
	return (to - from) & LB_PSN_MASK;
}

/* Returns true if an ACK stands for the part behind acked, and for others up to
 * an outstanding part. */
static bool is_among(const struct lb_remote *r, const struct lb_record *ack)
{
	return psn_distance(ack->total, r->acked.psn) <=
		       psn_distance(ack->total, ack->psn) &&
	       psn_distance(r->acked.psn, ack->psn) <
		       psn_distance(r->acked.psn, r->sent.psn);
}

bool lb_remote_awaits(const struct lb_qp *qp, const struct lb_record *answer)
{
	const struct lb_remote *r = &qp->remote;

	if (qp->type != IBV_QPT_RC || r->life != answer->life ||
	    lb_qp_flushes(lb_qp_state(qp)) || !lb_qp_is_under_way(qp))
		return false;
	return answer->type == LB_RECORD_ACK ? is_among(r, answer)
					     : r->acked.psn == answer->psn;
}

/*
 * Returns the status for the refusal of a responder, or for an unknown refusal.
 */
static int status_of(const struct lb_record *nak)
{
	switch (nak->code) {
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
		return nak->code;
	default:
		return IBV_WC_BAD_RESP_ERR;
	}
}

/*
 * Copies the bytes of a READ, or the value found by an atomic, to the place in
 * the request.
 */
static int take_bytes(struct lb_work *w, const struct lb_span *bytes,
		      uint32_t n)
{
	const struct lb_wqe *wqe = w->wqe;
	uint32_t offset = w->qp->remote.acked.offset;
	struct lb_span src[4] = {{NULL, offset}}, *next = src;
	unsigned i;

	if (offset) /* earlier bytes are passed over */
		next++;
	for (i = 0; i < 2 && bytes[i].len; i++)
		*next++ = bytes[i];
	next->len = 0;
	if (lb_copy_spans(wqe->sge, wqe->nsge, wqe->length,
			  IBV_ACCESS_LOCAL_WRITE, w->qp->pd, w->local))
		return IBV_WC_LOC_PROT_ERR;
	if (lb_power_is_on())
		lb_power_deliver(w->qp->order, w->local, offset, n);
	lb_copy_slice(w->local, src, wqe->length, offset, n);
	return lb_lost_is() && lb_lost_take(w->local) ? IBV_WC_LOC_PROT_ERR
						      : LB_EXEC_OK;
}

/* The part behind acked was executed: 0 or a status of the requester's. */
static int take_success(struct lb_work *w, const struct lb_record *a,
			const struct lb_span *bytes)
{
	uint32_t n = next_part(w->wqe, &w->qp->remote.acked);
	uint64_t value = a->operand;
	const struct lb_span found[2] = {{(uint8_t *)&value, sizeof(value)}};

	switch (type_of(w->wqe)) {
	case LB_RECORD_READ:
		if (a->type != LB_RECORD_BYTES || a->length != n)
			return IBV_WC_BAD_RESP_ERR;
		return take_bytes(w, bytes, n);
	case LB_RECORD_FETCH_ADD:
	case LB_RECORD_CMP_SWP:
		if (a->type != LB_RECORD_VALUE)
			return IBV_WC_BAD_RESP_ERR;
		return take_bytes(w, found, sizeof(value));
	default:
		return a->type == LB_RECORD_ACK ? LB_EXEC_OK
						: IBV_WC_BAD_RESP_ERR;
	}
}

/* A part of the head is done, and perhaps the head. */
static void acknowledge(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	struct lb_remote *r = &qp->remote;
	uint32_t n = next_part(w->wqe, &r->acked);

	qp->tally->bytes += n;
	qp->exec.accepted = true;
	r->acked.pos = qp->sq_exec;
	advance(&r->acked, qp, w->wqe, n);
	if (r->acked.pos == qp->sq_exec)
		return;
	if (lb_wqe_is_counted(w->wqe))
		r->reads--;
	lb_exec_finish(w, qp->exec.fault.status);
	if (lb_qp_is_under_way(qp))
		lb_exec_reset(qp);
}

static int take(struct lb_work *w, const struct lb_record *a,
		const struct lb_span *bytes)
{
	struct lb_qp *qp = w->qp;

	switch (a->type) {
	case LB_RECORD_RNR:
		lb_sq_go_back(qp);
		return lb_exec_rnr(w, a->code);
	case LB_RECORD_NOBODY:
		lb_sq_go_back(qp);
		return lb_exec_silence(w);
	case LB_RECORD_NAK:
		return status_of(a);
	default:
		return take_success(w, a, bytes);
	}
}

/* True: the part behind acked is done. */
static bool take_next(struct lb_work *w, const struct lb_record *answer,
		      const struct lb_span *bytes)
{
	int ret;

	w->wqe = lb_sq_slot(w->qp, w->qp->sq_exec);
	ret = take(w, answer, bytes);
	if (ret == LB_EXEC_OK)
		acknowledge(w);
	else if (ret > 0)
		lb_exec_finish(w, ret);
	return ret == LB_EXEC_OK;
}

void lb_remote_take(struct lb_run *run, struct lb_qp *qp,
		    const struct lb_record *answer, const struct lb_span *bytes)
{
	struct lb_executor *self = lb_barrier_enter();
	struct lb_work w;
	bool is_last;

	w.run = run;
	w.qp = qp;
	do { /* earlier requests were executed, too */
		is_last = qp->remote.acked.psn == answer->psn;
	} while (take_next(&w, answer, bytes) && !is_last &&
		 lb_remote_awaits(qp, answer));
	lb_sq_drained(qp);
	lb_barrier_leave(self);
}
