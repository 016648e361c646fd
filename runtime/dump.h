/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.h -- a picture of a runtime: taken under the directory's lock (dump.c),
 * printed when nothing is held any more by dump_human.c, dump_json.c or
 * dump_prometheus.c.
 */

#ifndef RT_DUMP_H
#define RT_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
	bool failed;	  /* it, or its channel: takes nobody in */
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
	int pollers_count;
	uint32_t cqs_count;
	uint32_t queues_count;
	uint32_t conns_count;
	struct rt_dump_poller *pollers;
	struct rt_dump_cq *cqs; /* in the order of their pollers */
	struct rt_dump_queue *queues;
	struct rt_dump_conn *conns;
};

/* a counter in one of the two structs of statistics */
struct rt_dump_field {
	const char *name;
	size_t offset;
	bool is_gauge;
	const char *help;
};

#define RT_DUMP_POLLER_FIELDS 16
#define RT_DUMP_QUEUE_FIELDS  10
#define RT_DUMP_STATES	      (RT_CONN_DELETING + 1)
extern const struct rt_dump_field rt_dump_poller_fields[RT_DUMP_POLLER_FIELDS];
extern const struct rt_dump_field rt_dump_queue_fields[RT_DUMP_QUEUE_FIELDS];

const char *rt_dump_state(uint32_t state);
const char *rt_dump_gate(uint32_t gate);
const char *rt_dump_reason(uint32_t reason);
const char *rt_dump_opcode(uint8_t opcode);

static inline uint64_t rt_dump_value(const void *stats,
				     const struct rt_dump_field *field)
{
	return *(const uint64_t *)((const char *)stats + field->offset);
}

void rt_dump_human(const struct rt_dump *dump, FILE *out);
void rt_dump_json(const struct rt_dump *dump, FILE *out);
void rt_dump_prometheus(const struct rt_dump *dump, FILE *out);

#endif /* RT_DUMP_H */
