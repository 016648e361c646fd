/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_snapshot.h -- a snapshot of a runtime, taken under the directory's lock
 * (dump_snapshot.c) and printed after the lock is released (dump.c).
 */

#ifndef RT_DUMP_SNAPSHOT_H
#define RT_DUMP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "conn/conn.h"
#include "queue/queue.h"

#define RT_DUMP_WRS 16 /* outstanding ones shown of each side, the oldest */

struct rt_dump_wr {
	uint64_t context;
	uint32_t queue; /* its id; 0: a function */
	uint32_t age_ms;
	uint8_t opcode;
	bool on_error_only;
};

struct rt_dump_side {
	const char *unread; /* why the ledger could not be; NULL: it was */
	uint32_t gate;	    /* enum rt_gate */
	uint32_t want;	    /* bits: refused for credit 1, backlog 2 */
	uint32_t depth;
	bool counted; /* outstanding is known */
	uint32_t outstanding;
	uint32_t shown;
	struct rt_dump_wr wrs[RT_DUMP_WRS];
};

struct rt_dump_conn {
	const void *handle;
	uint32_t slot;
	uint32_t number; /* in this process */
	char name[RPMA_RT_NAME_MAX + 1];
	bool is_named;	 /* by the program */
	uint32_t qp_num; /* 0: none yet */
	uint32_t state;	 /* enum rt_conn_state */
	uint32_t reason; /* if it dies */
	int poller;
	uint32_t queue; /* its own */
	uint32_t holders;
	bool passive;
	bool is_backlogged; /* a queue that it has a route to */
	struct rt_dump_side side[2];
};

struct rt_dump_queue {
	struct rt_queue_state view;
	struct rpma_rt_queue_stats stats;
};

struct rt_dump_cq {
	int poller;
	uint32_t channel; /* of the poller, the newest is 0 */
	uint32_t size;
	uint32_t room;	  /* entries that nobody has reserved */
	uint32_t unacked; /* events read and not acknowledged yet */
	bool failed;	  /* it or its channel failed: no further users */
};

struct rt_dump_poller {
	int index;
	int cpu;
	bool asleep;   /* armed, or about to sleep */
	bool stopping; /* or stopped */
	uint32_t clock_age_ms;
	uint32_t channels;
	uint32_t unacked; /* the sum over its CQs */
	struct rpma_rt_poller_stats stats;
};

struct rt_dump {
	bool stopped;
	uint64_t requests_refused; /* every queue was over its limit */
	int pollers_count;
	uint32_t cqs_count;
	uint32_t queues_count;
	uint32_t conns_count;
	struct rt_dump_poller *pollers;
	struct rt_dump_cq *cqs; /* in the order of their pollers */
	struct rt_dump_queue *queues;
	struct rt_dump_conn *conns;
};

/*
 * Fills dump, which is zeroed; the caller frees it. ERRORS: RPMA_RT_E_BUSY (the
 * directory's lock was not free in a second), RPMA_E_NOMEM
 */
int rt_dump_snapshot_take(struct rpma_rt *rt, struct rt_dump *dump);
void rt_dump_snapshot_free(struct rt_dump *dump);

#endif /* RT_DUMP_SNAPSHOT_H */
