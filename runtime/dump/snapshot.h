/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * snapshot.h -- a snapshot of a runtime, taken under the directory's lock
 * (snapshot.c, conn.c, others.c), judged (wrong.c) and
 * printed after the lock is released (dump.c).
 */

#ifndef RT_DUMP_SNAPSHOT_H
#define RT_DUMP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/owner.h"
#include "conn/conn.h"
#include "queue/queue.h"

#define RT_DUMP_WRS 16 /* outstanding ones shown of each side, the oldest */
#define RT_DUMP_HOLDS \
	64 /* holders of queues shown, where a delete is refused */
#define RT_DUMP_ADDR  64  /* bytes of an address and a port, as text */
#define RT_DUMP_LABEL 128 /* bytes of "connection " and its name, and others */

struct rt_dump_wr {
	uint64_t context;
	uint32_t queue; /* its id; 0: a function, or a future */
	uint32_t age_ms;
	uint8_t opcode;
	bool on_error_only;
	bool has_future;
};

struct rt_dump_side {
	const char *unread; /* why the ledger could not be; NULL: it was */
	uint32_t gate;	    /* of RT_TURN_STATES */
	uint32_t want;	    /* bits: refused for credit 1, backlog 2 */
	uint32_t depth;
	bool is_inside; /* a thread is inside a post, as far as can be seen */
	uint32_t outstanding;
	uint32_t in_line;    /* and in slots that are not published yet */
	uint32_t retired;    /* in all, modulo 2^32 */
	uint32_t retired_ms; /* ago, the last; if there was one */
	/* the oldest whose success gives a completion */
	bool has_waiting;
	uint8_t waiting_opcode;
	uint32_t waiting_ms;
	uint32_t shown;
	struct rt_dump_wr wrs[RT_DUMP_WRS];
};

struct rt_dump_conn {
	const void *handle;
	uint32_t slot;
	uint32_t number; /* in this process */
	char name[RPMA_RT_NAME_MAX + 1];
	bool is_named;		 /* by the program */
	uint32_t qp_num;	 /* 0: none yet */
	char peer[RT_DUMP_ADDR]; /* "": not known yet */
	const void *user;
	uint32_t state;	     /* enum rt_conn_state */
	uint32_t state_ms;   /* for so long */
	uint32_t reason;     /* if it dies */
	bool is_ended;	     /* DONE: CLOSED is out, and the handle is held */
	bool is_decided;     /* connect or reject was called */
	bool is_closing;     /* its gates close, or are closed, */
	uint32_t closing_ms; /* for so long, */
	bool is_drained;     /* as a drain was asked for */
	int poller;
	uint32_t queue; /* its own */
	uint32_t holders;
	uint32_t held; /* of them: by the program */
	bool passive;
	bool has_srq;	    /* or a pool: it posts no receives itself */
	bool is_backlogged; /* a queue that it has a route to */
	struct rt_dump_side side[2];
};

struct rt_dump_queue {
	struct rt_queue_state view;
	struct rpma_rt_queue_stats stats;
	char take_name[RT_THREAD_NAME]; /* of view.take.tid; "": it ended */
	char inside_name[RT_THREAD_NAME];
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
	bool manual;
	enum rt_owner_known known; /* manual: whose it is */
	pid_t owner_tid;
	char owner_name[RT_THREAD_NAME];
	bool has_work; /* manual: messages, or its descriptor is readable */
	const void *function;		 /* whose function runs; NULL: none */
	char function_of[RT_DUMP_LABEL]; /* the same; "": unknown */
	uint32_t function_ms;
	uint32_t clock_age_ms;
	uint32_t channels;
	uint32_t unacked; /* the sum over its CQs */
	struct rpma_rt_poller_stats stats;
};

struct rt_dump_listener {
	uint32_t number; /* in this process */
	uint16_t port;
	const void *user;
	uint32_t queue; /* its id; 0: one a poller */
	bool is_over;
	uint32_t refused;
	uint32_t refused_ms; /* ago, the last, */
	int refused_for;     /* an error, or the device's errno */
};

struct rt_dump_srq {
	const void *handle;
	int poller;
	uint32_t number; /* of that poller */
	const void *user;
	uint32_t queue;
	uint32_t size;
	uint32_t out;	   /* receives posted */
	uint32_t messages; /* that no future was asked for */
	uint32_t retired_ms;
	uint32_t users; /* connections among those shown */
	bool is_over;	/* deleted, or stopped: the handle is left */
	bool is_behind; /* a lane over its limit holds it */
	bool delete_refused;
};

struct rt_dump_pool {
	char name[RPMA_RT_NAME_MAX + 1];
	uint32_t count;
	uint32_t slot_size;
	uint32_t out;	   /* slots posted, and leases */
	uint32_t receives; /* slots for receives; the others are for sends */
	uint32_t receives_out;
	uint32_t fills;	     /* receives of the queues filled from the pool */
	uint32_t lows;	     /* pollers with a receive queue that is low */
	uint32_t low_for_ms; /* the one of them that is so for longest */
	uint64_t times_low;  /* from none to one */
	bool delete_refused;
};

struct rt_dump_adopted {
	const void *handle;
	int poller;
	uint32_t queue; /* 0: given back in a stop */
	bool is_over;	/* likewise */
	const void *user;
};

/* messages from that shard, published and not taken */
struct rt_dump_lane {
	uint32_t from;
	uint32_t waiting;
	bool wants_room; /* that shard was refused */
};

struct rt_dump_shard {
	uint32_t set; /* 0.., in the order in which they were made */
	uint32_t index;
	uint32_t queue; /* its id; 0: deleted */
	bool asleep;
	bool is_run;	 /* a thread is inside rpma_rt_shard_run() */
	uint32_t phase;	 /* enum rt_shard_phase */
	uint32_t timers; /* set */
	struct rpma_rt_shard_stats stats;
	uint32_t waiting; /* the sum over its lanes */
	uint32_t lanes_count;
	struct rt_dump_lane lanes[RPMA_RT_MAX_POLLERS];
};

/* something that holds a queue whose delete was refused */
struct rt_dump_hold {
	uint32_t queue;
	char by[RT_DUMP_LABEL];
};

struct rt_dump_wrongs; /* wrong.h */

struct rt_dump {
	uint32_t now_ms;
	bool stopped;
	bool delete_refused;
	uint32_t futures_held;	   /* when a delete was refused */
	uint64_t requests_refused; /* became no connection */
	int cm_errno; /* for which CM events are read no more; 0: they are */
	int pollers_count;
	uint32_t cqs_count;
	uint32_t queues_count;
	uint32_t conns_count; /* with those that ended */
	uint32_t listeners_count;
	uint32_t srqs_count;
	uint32_t adopted_count;
	uint32_t pools_count;
	uint32_t shards_count;
	bool has_refused;     /* a queue whose delete was refused */
	uint32_t holds_count; /* found; RT_DUMP_HOLDS of them are there */
	struct rt_dump_poller *pollers;
	struct rt_dump_cq *cqs; /* in the order of their pollers */
	struct rt_dump_queue *queues;
	struct rt_dump_conn *conns;
	struct rt_dump_listener *listeners;
	struct rt_dump_srq *srqs;
	struct rt_dump_adopted *adopted;
	struct rt_dump_pool *pools;
	struct rt_dump_shard *shards;
	struct rt_dump_hold *holds;
	struct rt_dump_wrongs *wrongs;
};

/*
 * Fills dump, which is zeroed; the caller frees it. ERRORS: RPMA_RT_E_BUSY (the
 * directory's lock was not free in a second), RPMA_E_NOMEM
 */
int rt_dump_snapshot_take(struct rpma_rt *rt, struct rt_dump *dump);
void rt_dump_snapshot_free(struct rt_dump *dump);

/* The parts of it, under the directory's lock. Queues and pollers first. */
void rt_dump_conn_take(struct rpma_rt_conn *conn, struct rt_dump *dump,
		       struct rt_dump_conn *out);
/* A connection that is DONE: of what it names nothing is looked at. */
void rt_dump_conn_take_ended(struct rpma_rt_conn *conn, uint32_t now_ms,
			     struct rt_dump_conn *out);
/* Before connections. */
void rt_dump_others_take(const struct rpma_rt *rt, struct rt_dump *dump);
void rt_dump_others_count(const struct rpma_rt *rt, struct rt_dump *dump);
/* shards.c */
void rt_dump_shards_take(const struct rpma_rt *rt, struct rt_dump *dump);
void rt_dump_shards_count(const struct rpma_rt *rt, struct rt_dump *dump);

/* If a delete of that queue was refused, notes that `by` holds it. */
void rt_dump_hold(struct rt_dump *dump, uint32_t queue, const char *by);

#endif /* RT_DUMP_SNAPSHOT_H */
