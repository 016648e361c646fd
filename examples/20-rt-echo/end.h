/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * end.h: an end of the echo, with workers and connections ("links").
 *
 * Threads: main makes and deletes ends, starts and joins workers, and sends
 * commands to workers through their queues. A worker owns its links: after a
 * link is handed over, no other thread touches the link. The report reads only
 * struct stats meanwhile; only the worker writes struct stats.
 */

#ifndef ECHO_END_H
#define ECHO_END_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rpma_rt.h>

#include "../common/histogram.h"
#include "options.h"
#include "tally.h"

struct end;
struct link;
struct worker;

/* Commands from main to a worker, the context of a message in the queue. */
enum command {
	COMMAND_TAKE = 1,   /* server: user is a new link */
	COMMAND_CLOSED = 2, /* server: user is a link that closed early */
	COMMAND_GO = 3,	    /* client: all are connected, start */
	COMMAND_STOP = 4,   /* finish outstanding work, close, end */
	COMMAND_ABORT = 5   /* close now, end */
};

/* The functions of a server or a client, called by workers. */
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
	/* once per batch for each link with new items */
	void (*pump)(struct worker *worker, struct link *link);
	/* after CLOSED, the last item of the link, which is then deleted */
	void (*on_gone)(struct worker *worker, struct link *link);
};

/* written by the worker, read by any thread, all relaxed: counters */
struct stats {
	_Atomic uint64_t posted;
	_Atomic uint64_t delivered;
	_Atomic uint64_t failed; /* unsuccessful completions among the
				  * delivered */
	_Atomic uint64_t lost;
	_Atomic uint64_t duplicated;
	_Atomic uint64_t misrouted;
	_Atomic uint64_t verify_errors;
	_Atomic uint64_t messages;
	_Atomic uint64_t unanswered;
	_Atomic uint64_t links; /* links so far */
	_Atomic uint64_t first_ns;
	_Atomic uint64_t last_ns;
	struct histogram latency;
};

struct worker {
	/* immutable while the thread runs */
	struct end *end;
	unsigned id;	 /* in tickets: no two workers of a process share an
			  * id */
	unsigned number; /* within the end */
	int poller;	 /* the poller run by the worker, or -1 */
	struct rpma_rt_queue *queue;
	int fds[2]; /* to sleep on, for a worker with a poller */
	pthread_t thread;
	bool is_running;

	/* private to the worker */
	struct link *links; /* all links, doubly linked */
	struct link *dirty; /* links to pump, singly linked */
	uint64_t now_ns;    /* read once per batch */
	unsigned idle;	    /* rounds without work */
	bool has_go;
	bool is_stopping;

	_Alignas(64) struct stats stats;
};

struct end {
	const char *name;
	const struct end_ops *ops;
	bool is_from_last; /* takes the last CPUs first */
	const struct options *options;
	struct rpma_rt *rt;
	struct rpma_peer *peer;
	unsigned worker_count;
	struct worker *workers;
	/* by number in tickets; NULL = free. Stored by main, cleared by the
	 * worker that deletes the link. */
	_Atomic(struct link *) links[TICKET_LINKS];
	_Atomic unsigned open;	      /* links other than NULL */
	_Atomic unsigned established; /* client: connections */
	_Atomic uint64_t memory;      /* bytes in links */
	_Atomic bool is_failed;
	/* private to the report */
	struct hist_counts *reported;
	uint64_t reported_messages;
	uint64_t reported_delivered;
	uint64_t reported_ns;
};

/*
 * Makes an end. first_id: the id of the first worker in tickets; first_poller:
 * of worker 0 in manual mode. Returns false after a message on stderr.
 */
bool end_init(struct end *end, const char *name, const struct end_ops *ops,
	      const struct options *options, struct rpma_rt *rt,
	      struct rpma_peer *peer, unsigned first_id);
bool end_start(struct end *end);
/* Sends a command to every worker. */
void end_tell(struct end *end, enum command command);
/* Waits for the workers, which have a command to stop. */
void end_join(struct end *end);
/*
 * Checks the queues after the runtime stopped: each item left in a queue is one
 * too many.
 */
void end_sweep(struct end *end);
void end_fini(struct end *end);
/*
 * Returns a configuration: queues of the depth, and some more receives; the
 * caller adds the queue.
 */
struct rpma_rt_conn_cfg end_conn_cfg(const struct end *end);

/* Prints the first failure of an end on stderr, and marks the end as failed. */
__attribute__((format(printf, 2, 3))) void end_fail(struct end *end,
						    const char *format, ...);

uint64_t now_ns(void);

static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* relaxed: one writer; readers need no order */
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

static inline uint64_t counted(const _Atomic uint64_t *counter)
{
	/* relaxed: as in count() */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif /* ECHO_END_H */
