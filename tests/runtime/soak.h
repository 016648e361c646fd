/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak.h -- the parts of soak.c: work requests under stress, each ticked off.
 *
 * A run is a series of epochs. An epoch has one or two runtimes ("sites"),
 * random settings, a kind of trouble, and pairs of connections that are made,
 * work and die of a random cause until the share of work requests of the epoch
 * is posted. An "end" is a connection with its records; the end is judged when
 * the last item of the end has been taken from the last queue.
 */

#ifndef SOAK_H
#define SOAK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "loop.h"
#include "world.h"

#define SOAK_SITES  2
#define SOAK_QUEUES 4		      /* of a site */
#define SOAK_DESTS  (SOAK_QUEUES + 2) /* and a function of each side */
#define SOAK_ENDS   256
#define SOAK_PAIRS  12 /* alive at a time */
#define SOAK_ROUTES 4  /* of a side; the first is the connection's own */
#define SOAK_SLOTS  64 /* buffers of a side */
#define SOAK_BLOCK  32
#define SOAK_BATCH  8
#define SOAK_WORDS  64 /* always valid memory of an end */

enum soak_trouble {
	SOAK_NONE,
	SOAK_WRS,    /* work requests fail, wait, are late */
	SOAK_EVENTS, /* completion events dropped, doubled, late, invented */
	SOAK_CM,     /* the same for connection events and messages */
	SOAK_CALLS,  /* verbs fail */
	SOAK_CQS,    /* CQs die, and go on all the same */
	SOAK_SLOW,   /* destroy and modify sleep; numbers are used again */
	SOAK_DEVICE, /* the device is pulled at the end */
	SOAK_TROUBLES
};

/* the way an end ends */
enum soak_cause {
	SOAK_CLOSE,	 /* closes itself */
	SOAK_CLOSE_PEER, /* closes the other end */
	SOAK_CLOSE_BOTH,
	SOAK_BAD_WRITE,	  /* writes where nothing is */
	SOAK_FATAL,	  /* QP_FATAL; loopback only, else as SOAK_CLOSE */
	SOAK_BREAK_CQ,	  /* a CQ dies, and the end closes */
	SOAK_CLOSE_EARLY, /* before ESTABLISHED */
	SOAK_REJECT,	  /* the passive end rejects */
	SOAK_NOBODY,	  /* no listener there */
	SOAK_CAUSES
};

/* the state of a work request: soak_rec.state */
enum soak_state { SOAK_IDLE, SOAK_OUT, SOAK_DONE, SOAK_REFUSED };

struct soak_rec {
	_Atomic uint8_t state; /* enum soak_state */
	uint8_t route;
	uint8_t slot;  /* SOAK_SLOTS: no slot */
	uint8_t op;    /* enum rpma_rt_op */
	bool on_error; /* a success is silent */
};

struct soak_route {
	struct rpma_rt_route *handle; /* NULL: the connection's own queue */
	int queue;
};

/* items of a side of an end, as seen by the consumer of a queue */
struct soak_seen {
	uint32_t next; /* the least sequence number that may still come */
	bool error;
	bool made_up;
};

/* destination of items: a queue, or a function called by the poller */
struct soak_queue {
	struct soak_epoch *epoch;
	struct rpma_rt_queue *queue; /* NULL: a function */
	int site;
	int index; /* below SOAK_DESTS */
	bool slow;
	bool shared; /* two workers take turns */
	pthread_mutex_t turn;
	pthread_t threads[2];
	_Atomic uint64_t pushed;
	uint64_t messages; /* private to the consumer */
	uint64_t random;
};

struct soak_side {
	pthread_mutex_t lock;  /* of ordered posting */
	_Atomic uint32_t next; /* sequence number */
	uint32_t messages;     /* messages that take a receive of the peer;
			        * under lock */
	uint32_t cap;	       /* work requests in a life */
	struct soak_rec *recs;
	_Atomic uint64_t slots; /* free ones */
	_Atomic bool starved;	/* a post found no free slot */
	struct soak_route routes[SOAK_ROUTES];
	_Atomic int routes_count;
	_Atomic uint32_t first_error; /* sequence number; cap: no error */
	struct soak_seen seen[SOAK_DESTS];
};

struct soak_pair {
	bool used;
	uint32_t gen;
	struct soak_end *ends[2]; /* active, passive; NULL: no end (any more) */
};

struct soak_end {
	/* under the epoch's lock */
	bool used;
	uint32_t gen;
	struct soak_pair *pair; /* NULL: without a peer */

	_Atomic uint32_t refs; /* last items to come, and callers */
	_Atomic(struct rpma_rt_conn *) conn;
	struct soak_epoch *epoch;
	int index;
	int site;
	uint32_t pair_gen;
	bool passive;
	bool ordered;	  /* posts under the side's lock: order is judged */
	bool by_writable; /* after a refusal posts only when told to */
	enum soak_cause cause;
	uint32_t when; /* completions until then */
	_Atomic uint32_t completions;
	_Atomic bool triggered;
	_Atomic bool established;
	pthread_mutex_t lock;	  /* of opening routes */
	uint32_t lasts;		  /* where a last item will come to: bits */
	struct soak_queue fns[2]; /* functions: of the poller */
	int own_queue;
	_Atomic uint32_t lasts_seen;
	_Atomic int reason; /* of CLOSED */
	struct soak_side side[2];
};

/* totals of the whole run: must not be zero */
struct soak_sum {
	_Atomic uint64_t posted;
	_Atomic uint64_t ticked;
	_Atomic uint64_t silent; /* succeeded without a word, as wanted */
	_Atomic uint64_t errors;
	_Atomic uint64_t synthesized;
	_Atomic uint64_t not_posted;
	_Atomic uint64_t refused[4]; /* by enum rpma_rt_again */
	_Atomic uint64_t writables;
	_Atomic uint64_t in_use;
	_Atomic uint64_t reasons[8]; /* by enum rpma_rt_reason */
	_Atomic uint64_t messages;
	_Atomic uint64_t called;       /* items for functions */
	_Atomic uint64_t taken_shared; /* batches of shared queues */
	_Atomic uint64_t faults;
	uint64_t spilled, stale, recovered, sleeps;
};

struct soak_site {
	struct rpma_rt *rt;
	struct rpma_rt_listener *listener;
	char port[8];
	struct soak_queue queues[SOAK_QUEUES];
};

struct soak_cfg {
	uint64_t wrs;
	uint64_t seed;
	uint32_t epochs;
	uint64_t patience_s; /* until a hang is reported */
	bool manual;	     /* a single thread does everything */
	bool two;	     /* two runtimes on one device */
	bool calm;	     /* no trouble except from the ends */
	uint32_t only;	     /* 1 + the only kind of trouble; 0: all in turn */
};

struct soak_epoch {
	const struct soak_cfg *cfg;
	struct soak_sum *sum;
	const struct loop *loop;
	uint32_t number;
	enum soak_trouble trouble;
	uint64_t seed;	 /* immutable */
	uint64_t random; /* the main thread's */
	struct rpma_peer *peer;
	struct rpma_rt_conn_cfg *conn_cfg[2]; /* shallow, deep */
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_mr_remote *nowhere; /* deregistered */
	char *memory;
	int sites_count;
	int pollers;
	struct soak_site sites[SOAK_SITES];
	uint32_t life; /* completions, about, of an end */
	bool deaf;     /* a peer may not notice that the other end left */
	uint64_t target;
	_Atomic uint64_t posted;
	_Atomic bool closing;
	_Atomic int breaks; /* CQs to break */
	_Atomic int breaks_left;
	pthread_mutex_t lock; /* of ends, pairs */
	uint64_t draws;	      /* random, of new ends */
	int alive;
	struct soak_end ends[SOAK_ENDS];
	struct soak_pair pairs[SOAK_PAIRS];
};

/* A number below n. */
uint32_t soak_random(uint64_t *state, uint32_t n);
/* Prints the error and the work request, and aborts. side < 0: the end itself
 * is wrong. */
_Noreturn void soak_wrong(const struct soak_end *end, int side, uint32_t seq,
			  int queue, const char *what);
/* Says something went on. */
void soak_alive(void);

/* --- soak_end.c */

/* Makes a record for a future connection; returns NULL if all records are in
 * use. refs: one for CLOSED, and one for the caller. A pair of a later
 * generation is not joined. */
struct soak_end *soak_end_new(struct soak_epoch *epoch, int site,
			      struct soak_pair *pair, uint32_t gen,
			      bool passive);
/* Removes an end that never became a connection. */
void soak_end_undo(struct soak_end *end);
void soak_end_put(struct soak_end *end);
/*
 * soak_conn() returns the connection, as soon as any thread knows the
 * connection; else NULL.
 */
struct rpma_rt_conn *soak_conn(const struct soak_end *end);
void soak_learn(struct soak_end *end, struct rpma_rt_conn *conn);
/* Return a living end, or NULL; the caller puts the end. */
struct soak_end *soak_end_at(struct soak_epoch *epoch, int index);
struct soak_end *soak_end_any(struct soak_epoch *epoch, uint64_t *random);
/* The other end, or NULL; to be put. */
struct soak_end *soak_end_peer(struct soak_end *end);
/* Returns the end of the connection, or NULL; the caller puts the end. */
struct soak_end *soak_end_of(struct soak_epoch *epoch,
			     const struct rpma_rt_conn *conn);
void soak_end_close(struct soak_end *end);
/* Opens another route to a random queue. */
void soak_end_open_route(struct soak_end *end, int side, uint64_t *random);
/* Prints the remaining ends. */
void soak_ends_print(struct soak_epoch *epoch);

/* --- soak_post.c */

/* Returns the offset of the buffer in the region. */
size_t soak_block(const struct soak_end *end, int side, uint32_t slot);
size_t soak_words(const struct soak_end *end);
/*
 * soak_give() allows the application to read the memory, soak_take() forbids
 * reads.
 */
void soak_give(const void *p, size_t size);
void soak_take(const void *p, size_t size);
/* Posts missing work requests of a side. */
void soak_pump(struct soak_end *end, int side, uint64_t *random);
/* Begins to end the end, by its cause. */
void soak_trigger(struct soak_end *end, uint64_t *random);

/* --- soak_item.c */

/* Begins a pair, if there is a free place. */
void soak_create(struct soak_epoch *epoch, uint64_t *random);
/* An item of a queue. */
void soak_item(struct soak_queue *queue, const struct rpma_rt_completion *item);

/* --- soak_tick.c */

void soak_completion(struct soak_queue *queue,
		     const struct rpma_rt_completion *c);

/* --- soak_site.c */

void soak_make(struct soak_epoch *epoch);
void soak_unmake(struct soak_epoch *epoch);

/* --- soak_epoch.c */

/* Runs an epoch, from start to end. */
void soak_epoch_run(struct soak_epoch *epoch);

/* --- soak_trouble.c */

/* Starts and ends the trouble of the device. */
void soak_trouble_begin(struct soak_epoch *epoch);
void soak_trouble_end(struct soak_epoch *epoch);
/* Posts with post, and raises QP_FATAL during the post. Returns false if the
 * post did not come so far. */
bool soak_trouble_fatal(struct soak_end *end,
			int (*post)(struct soak_end *end, bool nowhere,
				    uint64_t *random),
			uint64_t *random);
const char *soak_trouble_name(enum soak_trouble trouble);

#endif /* SOAK_H */
