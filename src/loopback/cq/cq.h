/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq.h -- completion queues.
 */

#ifndef LB_CQ_CQ_H
#define LB_CQ_CQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/process.h"
#include "cq/due.h"
#include "object/async.h"
#include "object/object.h"

struct lb_channel;

/* A completion, in a cache line. */
struct lb_cqe {
	struct ibv_wc wc;
	_Atomic uint32_t seq; /* position + 1 when full; see cq.c */
	uint32_t pos;	      /* the slot of the request */
	/*
	 * The word moved on behind pos by the poll of this entry: of the queue,
	 * or lb_cq_no_slot; NULL: cleaned, skip. In the slot of a queue pair,
	 * which is never freed.
	 */
	_Atomic uint32_t *freed;
};

/* The time of a completion, in a CQ with timestamps. */
struct lb_stamp {
	uint64_t raw;  /* nanoseconds of lb_clock_now() */
	uint64_t wall; /* nanoseconds since 1970 */
};

enum lb_arm {
	LB_ARM_NONE,
	LB_ARM_SOLICITED,
	LB_ARM_ANY,
};

struct lb_cq {
	union {
		struct ibv_cq ibv; /* first: the handle */
		struct ibv_cq_ex ex;
	};
	uint8_t slack[64]; /* for callers built with a longer ibv_cq_ex */
	struct lb_obj obj;
	uint32_t magic;
	bool has_ex;
	uint64_t wc_flags;
	struct lb_channel *channel;
	uint32_t cap; /* entries; under both locks */
	uint32_t mask;
	struct lb_cqe *ring;
	struct lb_stamp *stamps; /* a stamp for each entry; NULL: no
				  * timestamps */

	/* under push: by completing executors, and by arming */
	LB_ALIGNED struct lb_lock push;
	uint32_t tail;
	uint32_t head_seen; /* head as of the last look */
	enum lb_arm armed;
	bool dead;
	uint32_t due;		/* events made, not yet handed to the channel */
	uint32_t delivering;	/* being handed to the channel */
	struct lb_cq *due_next; /* by the thread that set due to 1 */

	/* under poll: by the poller */
	LB_ALIGNED struct lb_lock poll;
	_Atomic uint32_t head;
	struct lb_cqe cur; /* of ibv_start_poll() */
	struct lb_stamp cur_stamp;

	/* under the channel's lock */
	LB_ALIGNED struct lb_list node;
	uint32_t pending;  /* events in the channel */
	uint32_t reported; /* events given out by ibv_get_cq_event() */
	pthread_t reader;  /* the thread of the last event */

	struct lb_asyncs asyncs;
};

extern _Atomic uint32_t lb_cq_no_slot; /* only the address counts: nothing to
				        * free */
int lb_cq_push(struct lb_due *due, struct lb_cq *cq, const struct ibv_wc *wc,
	       _Atomic uint32_t *freed, uint32_t pos, bool solicited);
void lb_cq_clean(struct lb_cq *cq, uint32_t qpn);
int lb_cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int lb_cq_arm(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *lb_cq_ex_create(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr);
/*
 * Keeps times of completions from now on. Returns 0 or ENOMEM; the CQ is unused
 * yet.
 */
int lb_cq_keep_times(struct lb_cq *cq);
/* The next completion; cq.poll held. */
bool lb_cq_take(struct lb_cq *cq, struct lb_cqe *out);
struct lb_cq *lb_cq_new(struct ibv_context *context, int cqe, void *cq_context,
			struct ibv_comp_channel *channel, int vector);
uint64_t lb_cq_overrun_count(void);
/* Returns EINVAL; says why, if a parent process made the CQ. */
int lb_cq_refuse(struct lb_cq *cq);
/* A child can only destroy the CQs of its parent. */
void lb_cq_fork(enum lb_fork_step step);

#endif /* LB_CQ_CQ_H */
