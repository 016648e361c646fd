/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exec.c -- executes send queues. One thread at a time executes a QP, the one
 * that holds its sq.lock; while it works with the peer's responder it holds
 * the peer's rq.pop too. The oldest request is taken as far as it goes: to
 * its end, to the end of the budget, or to a wait for a timer.
 */

#include "loopback.h"
#include "internal.h"

#include <errno.h>
#include <string.h>

/* a budget counts bytes; a request without any costs this much */
#define WR_COST 64

/* what of a message becomes visible at once, and after the rest of it */
#define LAST_WORD 8

/* a silent peer whose QP has no timeout is looked at this often */
#define NO_TIMEOUT_NS 10000000u

/* What became of an attempt; a positive value is an ibv_wc_status. */
enum {
	EXEC_OK = 0,
	EXEC_AGAIN = -1,  /* the budget is used up */
	EXEC_SILENT = -2, /* the peer did not answer */
	EXEC_RNR = -3,	  /* the peer has no receive */
	EXEC_WAIT = -4,	  /* a timer runs */
};

/* Wait after "receiver not ready" by timer code, in units of 10 us. */
static const uint32_t rnr_units[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	 32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024, 1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

/* A request under execution. */
struct work {
	struct lb_run *run;
	struct lb_qp *qp;   /* sq.lock held */
	struct lb_qp *peer; /* rq.pop held once it answers */
	struct lb_wqe *wqe;
	uint64_t budget;
	struct lb_span local[LB_MAX_SGE + 1]; /* ends with a length of 0 */
};

/* --- what a thread owes */

void lb_run_begin(struct lb_run *run)
{
	run->due = NULL;
	run->kick = NULL;
	run->kick2 = NULL;
}

static void kick_job(void *arg)
{
	struct lb_qp *qp = lb_qp_at((uint32_t)(uintptr_t)arg);

	if (qp)
		lb_qp_kick(qp);
}

static int kick_later(const struct lb_qp *qp, uint64_t delay_ns)
{
	/* the slot's index is enough: whoever has it now may be kicked */
	return lb_service_post(kick_job, (void *)(uintptr_t)qp->slot, delay_ns);
}

void lb_run_kick(struct lb_run *run, struct lb_qp *qp)
{
	if (!run->kick || run->kick == qp)
		run->kick = qp;
	else if (!run->kick2 || run->kick2 == qp)
		run->kick2 = qp;
	else if (kick_later(qp, 0))
		lb_log(0, "no memory: a send queue is not flushed");
}

static struct lb_qp *next_kick(struct lb_run *run)
{
	struct lb_qp *qp = run->kick;

	run->kick = run->kick2;
	run->kick2 = NULL;
	return qp;
}

/* Let the CQ's channel have its events. */
static void pay_due(struct lb_cq *cq)
{
	uint32_t n;

	lb_lock_get(&cq->push);
	n = cq->due;
	cq->due = 0;
	cq->delivering++; /* keeps ibv_destroy_cq() waiting */
	lb_lock_put(&cq->push);
	lb_hook(RPMA_LOOPBACK_DELIVER, &cq->ibv);
	while (n--)
		lb_deliver_event(cq);
	lb_hook(RPMA_LOOPBACK_DELIVER_DONE, &cq->ibv);
	lb_lock_get(&cq->push);
	cq->delivering--;
	lb_lock_put(&cq->push);
}

static void pay(struct lb_run *run)
{
	struct lb_qp *qp;
	struct lb_cq *cq;

	while ((qp = next_kick(run))) {
		lb_lock_get(&qp->sq_lock);
		lb_sq_submit(run, qp);
		lb_lock_put(&qp->sq_lock);
	}
	while ((cq = run->due)) {
		run->due = cq->due_next;
		pay_due(cq);
	}
}

void lb_run_end(struct lb_run *run)
{
	while (run->kick || run->due)
		pay(run);
}

void lb_qp_kick(struct lb_qp *qp)
{
	struct lb_run run;

	lb_run_begin(&run);
	lb_run_kick(&run, qp);
	lb_run_end(&run);
}

/* --- small facts */

static uint32_t state_of(const struct lb_qp *qp)
{
	/* relaxed: the locks order it */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static uint32_t qpn_of(const struct lb_qp *qp)
{
	/* relaxed: constant while one of the locks is held */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static bool is_read_like(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ ||
	       wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool has_imm(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_IMM ||
	       wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool takes_receive(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND ||
	       wqe->opcode == IBV_WR_SEND_WITH_IMM ||
	       wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static enum ibv_wc_opcode wc_opcode(const struct lb_wqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_SEND;
	}
}

/* --- memory */

/*
 * The first length bytes of a scatter/gather list as memory of this process.
 * ENOSPC if it is shorter than that, another errno if a key does not allow it.
 */
static int to_spans(const struct ibv_sge *sge, uint32_t nsge, uint64_t length,
		    uint32_t access, const struct ibv_pd *pd,
		    struct lb_span *span)
{
	uint32_t i;
	int err;

	for (i = 0; i < nsge && length; i++) {
		uint64_t n = sge[i].length < length ? sge[i].length : length;

		if (!n)
			continue;
		err = lb_mr_local(sge[i].lkey, sge[i].addr, n, access, pd,
				  &span->addr);
		if (err)
			return err;
		span++->len = n;
		length -= n;
	}
	span->len = 0;
	return length ? ENOSPC : 0;
}

/* Move n bytes from offset at of src to offset to of dst. */
static void move(const struct lb_span *dst, uint64_t to,
		 const struct lb_span *src, uint64_t at, uint64_t n, bool last)
{
	while (to && to >= dst->len)
		to -= dst++->len;
	while (at && at >= src->len)
		at -= src++->len;
	while (n) {
		uint64_t piece = n;

		if (piece > dst->len - to)
			piece = dst->len - to;
		if (piece > src->len - at)
			piece = src->len - at;
		n -= piece;
		lb_copy(dst->addr + to, src->addr + at, piece, last && !n);
		to += piece;
		at += piece;
		if (to == dst->len)
			dst++, to = 0;
		if (at == src->len)
			src++, at = 0;
	}
}

/* The end of a message whose last word comes from several places. */
static void move_end(const struct lb_span *dst, const struct lb_span *src,
		     uint64_t from, uint64_t n)
{
	uint64_t word;
	const struct lb_span tail[2] = {{(uint8_t *)&word, sizeof(word)}};

	n -= sizeof(word);
	move(dst, from, src, from, n, false);
	move(tail, 0, src, from + n, sizeof(word), false);
	move(dst, from + n, tail, 0, sizeof(word), true);
}

/* Move as much as the budget allows, but the last word in one piece. */
static int move_slice(struct work *w, const struct lb_span *dst,
		      const struct lb_span *src, uint64_t total)
{
	struct lb_exec *x = &w->qp->exec;
	uint64_t n = total - x->done;

	if (n > w->budget) {
		n = w->budget;
		if (total - x->done <= LAST_WORD)
			n = total - x->done;
		else if (total - x->done - n < LAST_WORD)
			n = total - x->done - LAST_WORD;
	}
	if (x->done + n == total && n >= LAST_WORD && src[0].len < total)
		move_end(dst, src, x->done, n);
	else
		move(dst, x->done, src, x->done, n, x->done + n == total);
	x->done += n;
	w->budget -= n < w->budget ? n : w->budget;
	w->qp->stats.bytes += n;
	return x->done == total ? EXEC_OK : EXEC_AGAIN;
}

/* Fill w->local; 0 or the status of a request that must not be sent. */
static int check_local(struct work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	bool reads = is_read_like(wqe);

	if (wqe->length > LB_MAX_MSG)
		return IBV_WC_LOC_LEN_ERR;
	if (reads && !w->qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	if (wqe->length != 8 && (wqe->opcode == IBV_WR_ATOMIC_WRITE ||
				 (reads && wqe->opcode != IBV_WR_RDMA_READ)))
		return IBV_WC_LOC_LEN_ERR;
	if (wqe->is_inline) {
		w->local[0].addr = (uint8_t *)w->wqe->data;
		w->local[0].len = wqe->length;
		w->local[1].len = 0;
		return 0;
	}
	if (to_spans(wqe->sge, wqe->nsge, wqe->length,
		     reads ? IBV_ACCESS_LOCAL_WRITE : 0, w->qp->pd, w->local))
		return IBV_WC_LOC_PROT_ERR;
	return 0;
}

/* --- the responder; rq.pop of the peer held */

static bool is_answering(const struct work *w)
{
	const struct lb_qp *qp = w->qp, *peer = w->peer;
	uint32_t state = state_of(peer);

	return qpn_of(peer) == qp->peer_qpn && peer->dev == qp->peer_dev &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD) &&
	       peer->peer_qpn == qpn_of(qp) && peer->peer_dev == qp->dev;
}

static void note_first_message(struct lb_qp *peer)
{
	if (lb_likely(peer->resp.comm_est))
		return;
	peer->resp.comm_est = true;
	if (state_of(peer) == IBV_QPS_RTR)
		lb_async_qp(peer, IBV_EVENT_COMM_EST);
}

/* The request is not acceptable: the responder breaks and says why. */
static int reject(struct work *w, enum ibv_event_type event, int status)
{
	lb_async_qp(w->peer, event);
	lb_resp_fail(w->run, w->peer);
	return status;
}

static bool take_receive(struct work *w)
{
	struct lb_qp *peer = w->peer;
	struct lb_rqe *rqe;
	uint32_t pos;

	if (peer->srq)
		return lb_srq_take(peer->srq, &peer->resp);
	rqe = lb_rq_pop(&peer->rq, &pos);
	if (rqe)
		lb_resp_set(&peer->resp, rqe, pos);
	return rqe;
}

static uintptr_t receive_owner(const struct lb_qp *peer)
{
	return (uintptr_t)peer | (peer->srq ? LB_OWNER_NONE : LB_OWNER_RQ);
}

/* The receive that the message took ends with an error, and with it the QP. */
static void fail_receive(struct work *w, enum ibv_wc_status status)
{
	struct lb_resp *resp = &w->peer->resp;
	struct ibv_wc wc = {
		.wr_id = resp->wr_id,
		.status = status,
		.qp_num = qpn_of(w->peer),
	};

	resp->busy = false;
	lb_cq_push(w->run, w->peer->recv_cq, &wc, receive_owner(w->peer),
		   resp->pos, false);
	lb_resp_fail(w->run, w->peer);
}

static int complete_receive(struct work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_resp *resp = &w->peer->resp;
	struct ibv_wc wc = {
		.wr_id = resp->wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM
				  ? IBV_WC_RECV_RDMA_WITH_IMM
				  : IBV_WC_RECV,
		.byte_len = wqe->length,
		.imm_data = has_imm(wqe) ? wqe->imm : 0,
		.wc_flags = has_imm(wqe) ? IBV_WC_WITH_IMM : 0,
		.qp_num = qpn_of(w->peer),
		.src_qp = qpn_of(w->qp),
	};

	resp->busy = false;
	if (lb_likely(!lb_cq_push(w->run, w->peer->recv_cq, &wc,
				  receive_owner(w->peer), resp->pos,
				  wqe->flags & IBV_SEND_SOLICITED)))
		return EXEC_OK;
	return reject(w, IBV_EVENT_QP_FATAL, IBV_WC_REM_OP_ERR);
}

static int respond_send(struct work *w)
{
	struct lb_resp *resp = &w->peer->resp;
	const struct lb_qp *peer = w->peer;
	const struct ibv_pd *pd = peer->srq ? &peer->srq->pd->ibv : peer->pd;
	struct lb_span dst[LB_MAX_SGE + 1];
	int ret;

	ret = to_spans(resp->sge, resp->nsge, w->wqe->length,
		       IBV_ACCESS_LOCAL_WRITE, pd, dst);
	if (!ret)
		return move_slice(w, dst, w->local, w->wqe->length);
	if (ret == ENOSPC) {
		fail_receive(w, IBV_WC_LOC_LEN_ERR);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	fail_receive(w, IBV_WC_LOC_PROT_ERR);
	return IBV_WC_REM_OP_ERR;
}

/* The remote side of an RDMA request, checked. 0 or the status. */
static int check_remote(struct work *w, uint32_t access, struct lb_span *remote)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_qp *peer = w->peer;

	if (!(peer->access & access))
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	remote[0].addr = NULL;
	remote[0].len = wqe->length;
	remote[1].len = 0;
	if (!wqe->length || /* then the key does not matter */
	    !lb_mr_remote(wqe->rkey, wqe->remote_addr, wqe->length, access,
			  peer->pd, &remote[0].addr))
		return 0;
	return reject(w, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
}

static int respond_write(struct work *w)
{
	struct lb_span remote[2];
	int ret = check_remote(w, IBV_ACCESS_REMOTE_WRITE, remote);

	if (ret)
		return ret;
	if (w->wqe->opcode == IBV_WR_ATOMIC_WRITE && (w->wqe->remote_addr & 7))
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	return move_slice(w, remote, w->local, w->wqe->length);
}

static int respond_read(struct work *w)
{
	struct lb_span remote[2];
	int ret;

	if (!w->peer->attr.max_dest_rd_atomic)
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	ret = check_remote(w, IBV_ACCESS_REMOTE_READ, remote);
	if (ret)
		return ret;
	return move_slice(w, w->local, remote, w->wqe->length);
}

static int respond_atomic(struct work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	struct lb_span remote[2], old[2];
	_Atomic uint64_t *word;
	uint64_t value;
	int ret;

	if (!w->peer->attr.max_dest_rd_atomic || (wqe->remote_addr & 7))
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	ret = check_remote(w, IBV_ACCESS_REMOTE_ATOMIC, remote);
	if (ret)
		return ret;
	word = (_Atomic uint64_t *)remote[0].addr;
	if ((uintptr_t)word & 7)
		return reject(w, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
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
	old[0].addr = (uint8_t *)&value;
	old[0].len = sizeof(value);
	old[1].len = 0;
	move(w->local, 0, old, 0, sizeof(value), true);
	w->qp->stats.bytes += sizeof(value);
	return EXEC_OK;
}

static int respond(struct work *w)
{
	struct lb_exec *x = &w->qp->exec;
	int ret;

	if (!is_answering(w))
		return EXEC_SILENT;
	if (x->claimed && x->epoch != w->peer->resp.epoch)
		return EXEC_SILENT; /* it was reset or broke in between */
	if (!x->claimed) {
		note_first_message(w->peer);
		if (takes_receive(w->wqe) && !take_receive(w))
			return EXEC_RNR;
		x->claimed = true;
		x->epoch = w->peer->resp.epoch;
	}
	switch (w->wqe->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		ret = respond_send(w);
		break;
	case IBV_WR_RDMA_READ:
		ret = respond_read(w);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ret = respond_atomic(w);
		break;
	default:
		ret = respond_write(w);
		break;
	}
	if (ret == EXEC_OK && takes_receive(w->wqe))
		ret = complete_receive(w);
	return ret;
}

/* --- the requester; sq.lock held */

static int wait_for(struct lb_qp *qp, uint64_t ns)
{
	qp->exec.wait_until = lb_now() + ns;
	return kick_later(qp, ns) ? (int)IBV_WC_GENERAL_ERR : EXEC_WAIT;
}

static int begin(struct work *w)
{
	struct lb_qp *qp = w->qp;
	struct lb_exec *x = &qp->exec;

	memset(x, 0, sizeof(*x));
	x->begun = true;
	x->rnr_left = qp->attr.rnr_retry;
	x->retry_left = qp->attr.retry_cnt;
	/* relaxed: a rule may miss requests that are on their way */
	if (lb_likely(!atomic_load_explicit(&lb_faults, memory_order_relaxed)))
		return EXEC_OK;
	lb_fault_wr(qp, w->wqe, &x->fault);
	if (x->fault.delay_us)
		return wait_for(qp, x->fault.delay_us * 1000u);
	return EXEC_OK;
}

/* The peer had no receive: try again later, or give up. */
static int on_rnr(struct lb_qp *qp, uint32_t timer)
{
	struct lb_exec *x = &qp->exec;

	qp->stats.rnr++;
	if (qp->attr.rnr_retry != 7) { /* 7 is for ever */
		if (!x->rnr_left)
			return IBV_WC_RNR_RETRY_EXC_ERR;
		x->rnr_left--;
	}
	return wait_for(qp, rnr_units[timer & 31] * 10000ull);
}

/* The peer did not answer: wait for as long as its answer could take. */
static int on_silence(struct lb_qp *qp)
{
	uint64_t ns = NO_TIMEOUT_NS;
	uint32_t cap_us = lb_knob(LB_KNOB_RETRY_US);

	if (qp->attr.timeout)
		ns = 4096ull << qp->attr.timeout;
	if (cap_us && ns > cap_us * 1000ull)
		ns = cap_us * 1000ull;
	qp->exec.silent = true;
	return wait_for(qp, ns);
}

/* Is there a try left after a wait in silence? A timeout of 0 is for ever. */
static bool may_retry(struct lb_qp *qp)
{
	struct lb_exec *x = &qp->exec;

	if (!x->silent)
		return true;
	x->silent = false;
	if (!qp->attr.timeout)
		return true;
	qp->stats.retries++;
	if (!x->retry_left || x->claimed)
		return false;
	x->retry_left--;
	return true;
}

static int attempt(struct work *w)
{
	struct lb_qp *qp = w->qp;
	struct lb_exec *x = &qp->exec;
	uint32_t timer = 0;
	int ret = EXEC_OK;

	if (!x->begun)
		ret = begin(w);
	if (ret)
		return ret;
	if (x->wait_until && lb_now() < x->wait_until)
		return EXEC_WAIT;
	x->wait_until = 0;
	if (!may_retry(qp))
		return IBV_WC_RETRY_EXC_ERR;
	if (x->fault.status && !x->fault.after)
		return x->fault.status;
	if (x->fault.rnr) {
		x->fault.rnr--;
		return on_rnr(qp, 1);
	}
	ret = check_local(w);
	if (ret)
		return ret;
	w->peer = lb_qp_at(qp->peer_qpn);
	if (!w->peer)
		return on_silence(qp);
	lb_lock_get(&w->peer->rq.pop);
	ret = respond(w);
	timer = w->peer->attr.min_rnr_timer;
	lb_lock_put(&w->peer->rq.pop);
	if (ret == EXEC_RNR)
		return on_rnr(qp, timer);
	if (ret == EXEC_SILENT)
		return on_silence(qp);
	if (ret == EXEC_OK && x->fault.status)
		return x->fault.status;
	return ret;
}

/* Was the buffer left alone while the request was under way? */
static void check_hash(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	uint64_t then = qp->sq_checks[qp->sq_exec & qp->sq_mask];
	uint64_t now = then ? lb_wqe_hash(qp, wqe) : 0;

	if (then && now && then != now)
		lb_misuse("the buffer of request %#llx changed before its "
			  "completion",
			  (unsigned long long)wqe->wr_id);
}

static int complete(struct work *w)
{
	struct lb_qp *qp = w->qp;
	const struct lb_wqe *wqe = w->wqe;
	struct ibv_wc wc;

	if (lb_is_strict())
		check_hash(qp, wqe);
	if (!qp->sig_all && !(wqe->flags & IBV_SEND_SIGNALED))
		return 0;
	memset(&wc, 0, sizeof(wc));
	wc.wr_id = wqe->wr_id;
	wc.status = IBV_WC_SUCCESS;
	wc.opcode = wc_opcode(wqe);
	wc.byte_len = wqe->length;
	wc.qp_num = qpn_of(qp);
	return lb_cq_push(w->run, qp->send_cq, &wc, (uintptr_t)qp | LB_OWNER_SQ,
			  qp->sq_exec, false);
}

/* The request ends with an error, and with it the QP. */
static void fail(struct work *w, int status)
{
	struct lb_qp *qp = w->qp;
	struct ibv_wc wc = {
		.wr_id = w->wqe->wr_id,
		.status = (enum ibv_wc_status)status,
		.qp_num = qpn_of(qp),
	};

	lb_log(2, "qp %#x: request %#llx failed with status %d", qpn_of(qp),
	       (unsigned long long)w->wqe->wr_id, status);
	qp->stats.failed++;
	lb_cq_push(w->run, qp->send_cq, &wc, (uintptr_t)qp | LB_OWNER_SQ,
		   qp->sq_exec, false);
	qp->sq_exec++;
	lb_qp_fail(w->run, qp);
}

static enum lb_step execute_head(struct work *w)
{
	struct lb_qp *qp = w->qp;
	int ret;

	w->wqe = lb_sq_slot(qp, qp->sq_exec);
	ret = attempt(w);
	if (ret == EXEC_WAIT)
		return LB_WAIT;
	if (ret == EXEC_AGAIN)
		return LB_AGAIN;
	qp->stats.executed++;
	qp->exec.begun = false;
	if (ret) {
		fail(w, ret);
		return LB_DONE;
	}
	if (lb_likely(!complete(w))) {
		qp->sq_exec++;
		return LB_DONE;
	}
	lb_async_qp(qp, IBV_EVENT_QP_FATAL);
	qp->sq_exec++;
	lb_qp_fail(w->run, qp);
	return LB_DONE;
}

enum lb_step lb_sq_run(struct lb_run *run, struct lb_qp *qp, uint64_t budget)
{
	struct work w;
	enum lb_step step;

	w.run = run;
	w.qp = qp;
	w.budget = budget;
	while (qp->sq_exec != qp->sq_tail) {
		uint32_t state = state_of(qp);

		if (state == IBV_QPS_ERR) {
			lb_sq_flush(run, qp);
			break;
		}
		if (state == IBV_QPS_SQD && !qp->exec.begun)
			break;
		if (!w.budget)
			return LB_AGAIN;
		step = execute_head(&w);
		if (step != LB_DONE)
			return step;
		w.budget -= w.budget < WR_COST ? w.budget : WR_COST;
	}
	lb_sq_drained(qp);
	return LB_DONE;
}

void lb_sq_submit(struct lb_run *run, struct lb_qp *qp)
{
	/* relaxed: an option */
	if (lb_likely(atomic_load_explicit(&lb.mode, memory_order_relaxed) ==
		      RPMA_LOOPBACK_INLINE))
		lb_sq_run(run, qp, UINT64_MAX);
	else if (qp->sq_exec != qp->sq_tail)
		lb_thread_add(qp);
}
