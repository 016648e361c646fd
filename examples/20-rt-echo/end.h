/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.h: one end of the echo, its workers and its connections ("links").
 *
 * Threads: main makes and deletes ends, starts and joins workers, and sends
 * them commands through their queues. A worker owns its links: no other thread
 * touches a link after it was handed over. The report reads only struct stats
 * meanwhile, whose words have one writer each, the worker.
 */

#ifndef ECHO_END_H
#define ECHO_END_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rpma_rt.h>

#include "histogram.h"
#include "options.h"
#include "tally.h"

struct end;
struct link;
struct worker;

/* What main tells a worker, as the context of a message in its queue. */
enum command {
	COMMAND_TAKE = 1,   /* server: user is a new link */
	COMMAND_CLOSED = 2, /* server: user is a link that closed early */
	COMMAND_GO = 3,	    /* client: all are connected, start */
	COMMAND_STOP = 4,   /* finish what is outstanding, close, end */
	COMMAND_ABORT = 5   /* close now, end */
};

/* What makes an end a server or a client; called by its workers. */
struct end_ops {
	void (*on_command)(struct worker *worker, enum command command,
			   struct link *link);
	void (*on_event)(struct worker *worker, struct link *link,
			 const struct rpma_rt_completion *event);
	/* a receive of the link succeeded */
	void (*on_received)(struct worker *worker, struct link *link,
			    uint32_t slot, uint32_t len);
	/* a send succeeded */
	void (*on_sent)(struct worker *worker, struct link *link,
			uint32_t slot);
	/* once per batch for each link that something came for */
	void (*pump)(struct worker *worker, struct link *link);
	/* the link got its CLOSED, its last item, and goes next */
	void (*on_gone)(struct worker *worker, struct link *link);
};

/* written by the worker, read by anyone, all relaxed: they count */
struct stats {
	_Atomic uint64_t posted;
	_Atomic uint64_t delivered;
	_Atomic uint64_t failed; /* of those delivered: not successful */
	_Atomic uint64_t lost;
	_Atomic uint64_t duplicated;
	_Atomic uint64_t misrouted;
	_Atomic uint64_t verify_errors;
	_Atomic uint64_t messages;
	_Atomic uint64_t unanswered;
	_Atomic uint64_t links; /* it ever had */
	_Atomic uint64_t first_ns;
	_Atomic uint64_t last_ns;
	struct histogram latency;
};

struct worker {
	/* immutable while its thread runs */
	struct end *end;
	unsigned id;	 /* in tickets: no two workers of a process share it */
	unsigned number; /* within its end */
	int poller;	 /* the one it runs itself, or -1 */
	struct rpma_rt_queue *queue;
	int fds[2]; /* to sleep on when it polls itself */
	pthread_t thread;
	bool is_running;

	/* the worker's own */
	struct link *links; /* all it has, doubly linked */
	struct link *dirty; /* those to pump, singly linked */
	uint64_t now_ns;    /* read once per batch */
	unsigned idle;	    /* rounds without work */
	bool has_go;
	bool is_stopping;

	_Alignas(64) struct stats stats;
};

struct end {
	const char *name;
	const struct end_ops *ops;
	bool is_from_last; /* it takes the last CPUs first */
	const struct options *options;
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	unsigned worker_count;
	struct worker *workers;
	/* by their number in tickets; NULL = free. Stored by main, cleared by
	 * the worker that deletes the link. */
	_Atomic(struct link *) links[TICKET_LINKS];
	_Atomic unsigned open;	      /* links that are not NULL */
	_Atomic unsigned established; /* client: connections */
	_Atomic uint64_t memory;      /* bytes that links hold */
	_Atomic bool is_failed;
	/* the report's */
	struct hist_counts *reported;
	uint64_t reported_messages;
	uint64_t reported_delivered;
	uint64_t reported_ns;
};

/*
 * first_id: of its workers in tickets; first_poller: of worker 0 in manual
 * mode. false: one line on stderr said why.
 */
bool end_init(struct end *end, const char *name, const struct end_ops *ops,
	      const struct options *options, struct rpma_rt *rt,
	      struct rpma_peer *peer, unsigned first_id);
bool end_start(struct end *end);
/* To every worker. */
void end_tell(struct end *end, enum command command);
/* Waits for the workers, which were told to stop. */
void end_join(struct end *end);
/* After the runtime stopped: what is in a queue now was one too many. */
void end_sweep(struct end *end);
void end_fini(struct end *end);
/* Queues of the depth, some receives more; the caller adds the queue. */
struct rpma_rt_conn_cfg end_conn_cfg(const struct end *end);

/* One line on stderr for the first failure of an end; marks it failed. */
__attribute__((format(printf, 2, 3))) void end_fail(struct end *end,
						    const char *format, ...);

uint64_t now_ns(void);

static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* relaxed: one writer, readers need no order with anything else */
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

static inline uint64_t counted(const _Atomic uint64_t *counter)
{
	/* relaxed: as in count() */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif /* ECHO_END_H */
