/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp.h -- queue pairs.
 *
 * struct lb_qp never returns to malloc: any thread may keep a pointer, but the
 * pointer means something only after the lock is held and the number compared.
 * The handle of the application (struct lb_qp_handle) does return to malloc, so
 * that a sanitizer sees late uses.
 */

#ifndef LB_QP_QP_H
#define LB_QP_QP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/tally.h"
#include "cq/cq.h"
#include "fault/fault.h"
#include "object/async.h"
#include "object/device.h"
#include "object/object.h"
#include "qp/remote.h"
#include "qp/resp.h"
#include "qp/rq.h"
#include "qp/srq.h"
#include "qp/wqe.h"
#include "rpma_loopback.h"

/*
 * The progress of the requester with the oldest work request; the responder of
 * the peer knows how much is done. Under sq.lock.
 */
struct lb_exec {
	bool begun;    /* the fields below are valid */
	bool accepted; /* the responder of the peer has begun */
	bool silent;   /* the peer has not answered the last attempt */
	struct lb_wr_fault fault;
	uint32_t rnr_left;
	uint32_t retry_left;
	uint64_t wait_until; /* nanoseconds of lb_clock_now(); 0: not waiting */
};

struct lb_qp {
	/*
	 * Written with sq.lock, rq.pop and rq.post held; read with any of the
	 * locks. A single exception: state becomes ERR with rq.pop and rq.post,
	 * and the thread that sets ERR handles the SQ afterwards.
	 */
	LB_ALIGNED _Atomic uint32_t qpn; /* 0: free */
	_Atomic uint32_t state;		 /* enum ibv_qp_state */
	uint32_t peer_qpn;
	uint32_t access;
	struct lb_cq *send_cq;
	struct lb_cq *recv_cq;
	struct lb_srq *srq;
	struct ibv_pd *pd;
	const char *home; /* see lb_home() */
	const char *peer_home;
	struct lb_device *dev;
	struct lb_qp_handle *handle; /* for events only */
	struct lb_context *ctx;
	struct ibv_qp_attr attr; /* the result of ibv_query_qp() */
	struct ibv_qp_cap cap;
	uint32_t max_sge;
	enum ibv_qp_type type;
	uint64_t order;		 /* of creation, from 1 */
	struct lb_qp *next;	 /* of all slots; under lb.big */
	struct lb_qp *free_next; /* under lb.big */
	bool sig_all;

	/* under sq.lock: by posters and executors */
	LB_ALIGNED struct lb_lock sq_lock;
	uint32_t sq_tail;	/* next to post */
	uint32_t sq_exec;	/* next to execute */
	uint32_t sq_freed_seen; /* of the thread that posts or builds a batch */
	uint32_t sq_mask;
	uint32_t sq_stride;
	/* not NULL: a thread builds a batch, exec/wr.c, and no other posts */
	const struct lb_qp_handle *sq_batch;
	uint8_t *sq;
	uint64_t
		*sq_checks; /* hashes of the buffers when posted; strict only */
	bool sq_drained_wanted;
	uint32_t sent_packets; /* since the reset: counted for a capture */
	uint32_t sent_messages;
	uint32_t answered_messages; /* to another process; under rq.pop */
	struct lb_exec exec;
	struct lb_remote remote;
	struct lb_tally *tally; /* its own below, or on the board */
	struct lb_tally own_tally;

	/* slots before this may be reused; set by the poll of send_cq */
	LB_ALIGNED _Atomic uint32_t sq_freed;

	struct lb_rq rq;
	LB_ALIGNED struct lb_resp resp;

	bool run_queued; /* thread.c: has work */
};

/* The object behind the struct ibv_qp * of the application. */
struct lb_qp_handle {
	union {
		struct ibv_qp ibv; /* first: the handle */
		struct ibv_qp_ex ex;
	};
	uint8_t slack[256]; /* for callers built with a longer ibv_qp_ex */
	struct lb_obj obj;
	uint32_t magic;
	struct lb_qp *qp;
	uint32_t qpn;
	struct ibv_qp_init_attr init;
	uint64_t send_ops; /* 0: no ibv_wr_ interface */
	struct lb_asyncs asyncs;
	/* the open batch, of the thread that builds the batch */
	uint32_t wr_tail;
	int wr_error;
	struct lb_wqe *wr_last;
};

static inline uint32_t lb_qp_state(const struct lb_qp *qp)
{
	/* relaxed: ordered by the locks */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* Returns true if a queue pair in the state takes incoming messages. */
static inline bool lb_qp_takes_in(uint32_t state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
	       state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

/* Returns true if sends are flushed in the state. */
static inline bool lb_qp_flushes(uint32_t state)
{
	return state == IBV_QPS_ERR || state == IBV_QPS_SQE;
}

/* Returns true if sends may be posted in the state, if only to be flushed. */
static inline bool lb_qp_takes_sends(uint32_t state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       lb_qp_flushes(state);
}

static inline uint32_t lb_qp_number(const struct lb_qp *qp)
{
	/* relaxed: constant while one of the locks is held */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

/* Returns true if sends are on the way to another process. sq.lock. */
static inline bool lb_qp_is_under_way(const struct lb_qp *qp)
{
	return qp->remote.sent.pos != qp->sq_exec ||
	       qp->remote.sent.offset != qp->remote.acked.offset;
}

void lb_qp_event(struct lb_qp *qp, enum ibv_event_type type); /* any lock */
/* Makes the object of ibv_create_qp(); returns NULL with errno. */
struct lb_qp_handle *lb_qp_new(struct ibv_pd *pd,
			       const struct ibv_qp_init_attr *init);
/* Returns EINVAL; says why, if a parent process made the QP. */
int lb_qp_refuse(struct lb_qp_handle *handle);
void lb_qp_lock(struct lb_qp *qp);
void lb_qp_unlock(struct lb_qp *qp);
/* All locks of the QP held. */
void lb_qp_reset(struct lb_qp *qp);
/* A child can only destroy the QPs of its parent, and counts from 0. */
void lb_qp_fork(enum lb_fork_step step);
/* The first of all slots; lb.big held. */
struct lb_qp *lb_qp_slots(void);
/*
 * Adds up the counts of all slots. Waits for no lock for long: exit() may be
 * called in a signal handler, inside any lock, and then the counts are read as
 * the launcher reads a board, without the lock.
 */
void lb_qp_tally(struct lb_tally *sum);

#endif /* LB_QP_QP_H */
