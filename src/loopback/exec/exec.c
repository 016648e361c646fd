/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exec.c -- executes send queues. One thread at a time executes a QP, the one
 * that holds its sq.lock; while it works with the peer's responder it holds
 * the peer's rq.pop too. The oldest request is executed as far as possible: to
 * its end, to the end of the budget, or to a wait for a timer.
 */

#include "exec/exec.h"

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/newer.h"
#include "capture/file.h"
#include "cq/cq.h"
#include "exec/bind.h"
#include "exec/captured.h"
#include "exec/hash.h"
#include "exec/respond.h"
#include "exec/uc.h"
#include "exec/ud.h"
#include "exec/work.h"
#include "fault/fault.h"
#include "memory/barrier.h"
#include "memory/copy.h"
#include "object/limits.h"
#include "qp/flush.h"
#include "qp/kick.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/sq.h"
#include "qp/wqe.h"

/* a silent peer whose QP has no timeout is looked at this often */
#define NO_TIMEOUT_NS 10000000u

/* Wait after "receiver not ready" by timer code, in units of 10 us. */
static const uint32_t rnr_units[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	 32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024, 1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

static int wait_for(struct lb_work *w, uint64_t ns)
{
	w->qp->exec.wait_until = lb_clock_now() + ns;
	return w->run->later(w->qp, ns) ? (int)IBV_WC_GENERAL_ERR
					: LB_EXEC_WAIT;
}

static void ask_rules(struct lb_work *w)
{
	const struct lb_fault_of of = {
		.qpn = lb_qp_number(w->qp),
		.order = w->qp->order,
		.opcode = w->wqe->opcode,
		.wr_id = w->wqe->wr_id,
	};

	lb_fault_wr(&of, &w->qp->exec.fault);
}

void lb_exec_reset(struct lb_qp *qp)
{
	struct lb_exec *x = &qp->exec;

	memset(x, 0, sizeof(*x));
	x->begun = true;
	x->rnr_left = qp->attr.rnr_retry;
	x->retry_left = qp->attr.retry_cnt;
}

int lb_exec_begin(struct lb_work *w)
{
	struct lb_exec *x = &w->qp->exec;

	lb_exec_reset(w->qp);
	/* relaxed: a rule may miss requests that are on their way */
	if (lb_likely(!atomic_load_explicit(&lb_fault_count,
					    memory_order_relaxed)))
		return LB_EXEC_OK;
	ask_rules(w);
	if (x->fault.delay_us)
		return wait_for(w, x->fault.delay_us * 1000ull);
	return LB_EXEC_OK;
}

int lb_exec_rnr(struct lb_work *w, uint32_t timer)
{
	struct lb_qp *qp = w->qp;
	struct lb_exec *x = &qp->exec;

	if (qp->type != IBV_QPT_RC)
		return LB_EXEC_OK; /* it is dropped */
	qp->tally->rnr++;
	if (qp->attr.rnr_retry != 7) { /* 7 is for ever */
		if (!x->rnr_left)
			return IBV_WC_RNR_RETRY_EXC_ERR;
		x->rnr_left--;
	}
	return wait_for(w, rnr_units[timer & 31] * 10000ull);
}

int lb_exec_silence(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	uint64_t ns = NO_TIMEOUT_NS;
	uint32_t cap_us = lb_fault_knob(LB_KNOB_RETRY_US);

	if (qp->attr.timeout)
		ns = 4096ull << qp->attr.timeout;
	if (cap_us && ns > cap_us * 1000ull)
		ns = cap_us * 1000ull;
	qp->exec.silent = true;
	return wait_for(w, ns);
}

bool lb_exec_may_retry(struct lb_qp *qp)
{
	struct lb_exec *x = &qp->exec;

	if (!x->silent)
		return true;
	x->silent = false;
	if (!qp->attr.timeout)
		return true;
	qp->tally->retries++;
	if (!x->retry_left || x->accepted)
		return false;
	x->retry_left--;
	return true;
}

int lb_exec_check(struct lb_work *w)
{
	const struct lb_wqe *wqe = w->wqe;
	bool reads = lb_wqe_reads(wqe);

	if (wqe->length > LB_MAX_MSG)
		return IBV_WC_LOC_LEN_ERR;
	if (lb_wqe_is_counted(wqe) && !w->qp->attr.max_rd_atomic)
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
	if (reads) /* it is the answer that looks where to go */
		return 0;
	return lb_copy_spans(wqe->sge, wqe->nsge, wqe->length, 0, w->qp->pd,
			     w->local)
		       ? IBV_WC_LOC_PROT_ERR
		       : 0;
}

/* A message that nobody answers. */
static int execute_unreliable(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	int ret = qp->type == IBV_QPT_UD ? lb_ud_execute(w) : lb_uc_execute(w);

	return ret ? ret : qp->exec.fault.status;
}

static int attempt(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	struct lb_exec *x = &qp->exec;
	uint32_t timer = 0;
	int ret = LB_EXEC_OK;

	if (!x->begun)
		ret = lb_exec_begin(w);
	if (ret)
		return ret;
	if (x->wait_until && lb_clock_now() < x->wait_until)
		return LB_EXEC_WAIT;
	x->wait_until = 0;
	if (!lb_exec_may_retry(qp))
		return IBV_WC_RETRY_EXC_ERR;
	if (x->fault.status && !x->fault.after)
		return x->fault.status;
	if (x->fault.rnr) {
		x->fault.rnr--;
		return lb_exec_rnr(w, 1);
	}
	if (lb_wqe_is_local(w->wqe)) {
		ret = lb_bind_execute(qp, w->wqe);
		return ret ? ret : x->fault.status;
	}
	ret = lb_exec_check(w);
	if (ret)
		return ret;
	if (qp->type != IBV_QPT_RC)
		return execute_unreliable(w);
	w->peer = lb_qp_at(qp->peer_qpn);
	if (!w->peer)
		return lb_exec_silence(w);
	lb_lock_get(&w->peer->rq.pop);
	ret = lb_respond(w);
	timer = w->peer->attr.min_rnr_timer;
	lb_lock_put(&w->peer->rq.pop);
	if (ret == LB_EXEC_RNR)
		return lb_exec_rnr(w, timer);
	if (ret == LB_EXEC_SILENT)
		return lb_exec_silence(w);
	if (ret == LB_EXEC_OK && x->fault.status)
		return x->fault.status;
	return ret;
}

/*
 * Checks that the program left the buffer alone while the request was
 * outstanding.
 */
static void check_hash(struct lb_qp *qp, const struct lb_wqe *wqe)
{
	uint64_t *check = &qp->sq_checks[qp->sq_exec & qp->sq_mask];
	uint64_t then = *check;
	uint64_t now = then ? lb_hash_wqe(qp, wqe) : 0;

	*check = 0;
	if (then && now && then != now)
		lb_log_misuse("the buffer of request %#llx changed before its "
			      "completion",
			      (unsigned long long)wqe->wr_id);
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
	case LB_WR_FLUSH:
		return (enum ibv_wc_opcode)LB_WC_FLUSH;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

static int complete(struct lb_work *w)
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
	wc.qp_num = lb_qp_number(qp);
	return lb_cq_push(&w->run->due, qp->send_cq, &wc, &qp->sq_freed,
			  qp->sq_exec, false);
}

/* The request ends with an error, and with it the QP, or its send queue. */
static void fail(struct lb_work *w, int status)
{
	struct lb_qp *qp = w->qp;
	struct ibv_wc wc = {
		.wr_id = w->wqe->wr_id,
		.status = (enum ibv_wc_status)status,
		.qp_num = lb_qp_number(qp),
	};

	lb_log(2, "qp %#x: request %#llx failed with status %d",
	       lb_qp_number(qp), (unsigned long long)w->wqe->wr_id, status);
	qp->tally->failed++;
	lb_cq_push(&w->run->due, qp->send_cq, &wc, &qp->sq_freed, qp->sq_exec,
		   false);
	qp->sq_exec++;
	if (qp->type == IBV_QPT_RC)
		lb_qp_fail(w->run, qp);
	else
		lb_qp_fail_sends(w->run, qp);
}

void lb_exec_finish(struct lb_work *w, int status)
{
	struct lb_qp *qp = w->qp;

	qp->tally->executed++;
	qp->exec.begun = false;
	if (status) {
		fail(w, status);
		return;
	}
	if (lb_likely(!complete(w))) {
		qp->sq_exec++;
		return;
	}
	lb_qp_event(qp, IBV_EVENT_QP_FATAL);
	qp->sq_exec++;
	lb_qp_fail(w->run, qp);
}

static enum lb_step execute_head(struct lb_work *w)
{
	struct lb_qp *qp = w->qp;
	int ret;

	w->wqe = lb_sq_slot(qp, qp->sq_exec);
	w->moved = 0;
	ret = attempt(w);
	qp->tally->bytes += w->moved;
	if (lb_file_is_wanted())
		lb_captured_request(w, ret);
	if (ret == LB_EXEC_WAIT)
		return LB_WAIT;
	if (ret == LB_EXEC_AGAIN)
		return LB_AGAIN;
	lb_exec_finish(w, ret);
	return LB_DONE;
}

static enum lb_step sq_run(struct lb_run *run, struct lb_qp *qp,
			   uint64_t budget)
{
	struct lb_work w;
	enum lb_step step;

	w.run = run;
	w.qp = qp;
	w.from = lb_qp_number(qp);
	w.window = NULL;
	w.budget = budget;
	while (qp->sq_exec != qp->sq_tail) {
		uint32_t state = lb_qp_state(qp);

		if (lb_qp_flushes(state)) {
			lb_flush_sends(run, qp);
			break;
		}
		if (state == IBV_QPS_SQD && !qp->exec.begun)
			break;
		if (!w.budget)
			return LB_AGAIN;
		step = execute_head(&w);
		if (step != LB_DONE)
			return step;
		w.budget -= w.budget < LB_EXEC_COST ? w.budget : LB_EXEC_COST;
	}
	lb_sq_drained(qp);
	return LB_DONE;
}

enum lb_step lb_exec_run(struct lb_run *run, struct lb_qp *qp, uint64_t budget)
{
	struct lb_executor *self = lb_barrier_enter();
	enum lb_step step = sq_run(run, qp, budget);

	lb_barrier_leave(self);
	return step;
}
