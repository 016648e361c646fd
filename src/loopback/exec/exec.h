/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exec.h -- a request under execution, between exec.c (the requester),
 * respond.c (the peer) and copy.c (the bytes).
 */

#ifndef LB_EXEC_H
#define LB_EXEC_H

#include "loopback.h"

/* What became of an attempt; a positive value is an ibv_wc_status. */
enum {
	LB_EXEC_OK = 0,
	LB_EXEC_AGAIN = -1,  /* the budget is used up */
	LB_EXEC_SILENT = -2, /* the peer did not answer */
	LB_EXEC_RNR = -3,    /* the peer has no receive */
	LB_EXEC_WAIT = -4,   /* a timer runs */
};

/* A request under execution. */
struct lb_work {
	struct lb_run *run;
	struct lb_qp *qp;   /* sq.lock held */
	struct lb_qp *peer; /* rq.pop held once it answers */
	struct lb_wqe *wqe;
	uint64_t budget;
	struct lb_span local[LB_MAX_SGE + 1]; /* ends with a length of 0 */
	struct lb_mr_row *window;	      /* held: see lb_mr_remote() */
};

static inline uint32_t lb_qp_state(const struct lb_qp *qp)
{
	/* relaxed: the locks order it */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t lb_qp_number(const struct lb_qp *qp)
{
	/* relaxed: constant while one of the locks is held */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool lb_wqe_reads(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ ||
	       wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Has it nothing to do with a peer? */
static inline bool lb_wqe_is_local(const struct lb_wqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

/* bind.c: make wqe a request to bind: 0 or EINVAL; execute it: 0 or a status */
int lb_bind_set(struct lb_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);
int lb_bind_execute(const struct lb_qp *qp, const struct lb_wqe *wqe);

/* copy.c */

/*
 * The first length bytes of a scatter/gather list as memory of this process.
 * ENOSPC if it is shorter than that, another errno if a key does not allow it.
 */
int lb_to_spans(const struct ibv_sge *sge, uint32_t nsge, uint64_t length,
		uint32_t access, const struct ibv_pd *pd, struct lb_span *span);
/*
 * Move n bytes from offset at of src to offset to of dst; last: they are the
 * end of a message.
 */
void lb_move(const struct lb_span *dst, uint64_t to, const struct lb_span *src,
	     uint64_t at, uint64_t n, bool last);
/*
 * Of a message of total bytes, whose first done have been moved, move up to
 * budget more: how many.
 */
uint64_t lb_move_slice(const struct lb_span *dst, const struct lb_span *src,
		       uint64_t total, uint64_t done, uint64_t budget);

/* respond.c: what the peer makes of it; both locks held */
int lb_respond(struct lb_work *w);
/* Of these, the receive: false if there is none; its end, one way or other. */
bool lb_respond_take(struct lb_work *w);
int lb_respond_complete(struct lb_work *w);
void lb_respond_fail(struct lb_work *w, enum ibv_wc_status status);

/* ud.c: 0 or the status of a datagram that cannot be sent */
int lb_ud_execute(struct lb_work *w);

/* uc.c: LB_EXEC_OK, also if the message was dropped, or LB_EXEC_AGAIN */
int lb_uc_execute(struct lb_work *w);

#endif /* LB_EXEC_H */
