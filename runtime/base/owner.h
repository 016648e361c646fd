/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.h -- the thread that a poller belongs to, and the thread that is inside
 * the poller.
 *
 * Manual mode: only the owner runs a poller that has an owner. A poller without
 * an owner is served by any thread, a round at a time: threads take turns.
 * doc/protocols/manual.md. Adaptive mode: a poller may be lent to consumers.
 */

#ifndef RT_BASE_OWNER_H
#define RT_BASE_OWNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <urcu/list.h>

#include "base/bell.h"
#include "base/inbox.h"

/* ----------------------------------------------------------------- lend --- */

/*
 * A poller of adaptive mode, lent by its sleeping thread to the consumers of
 * its queues: a waiting consumer runs the poller's rounds.
 * doc/protocols/lend.md.
 */

struct rt_owned;

/* of a poller of adaptive mode, apart from the words that change with each
 * round, since a spinning consumer reads `lent` */
struct rt_lending {
	/* immutable after init. Each runs a round inside the poller; false: the
	 * thread of the poller is needed, and was rung */
	bool (*serve)(struct rt_owned *owned);
	bool (*arm)(struct rt_owned *owned); /* arms the CQs before */

	pthread_mutex_t lock;	    /* a leaf */
	struct cds_list_head bells; /* of the poller's consumers; under lock */
	/* a consumer in a wait found nothing, and would run rounds: set by the
	 * consumer, cleared by the poller's thread */
	_Atomic bool asks;
	_Atomic bool lent; /* written by the poller's thread, inside */
};

/* the bell of a queue, in the list of a poller with a lane to the queue */
struct rt_lend_bell {
	struct cds_list_head link;
	const struct rt_bell *bell;
};

void rt_lend_init(struct rt_lending *lending,
		  bool (*serve)(struct rt_owned *owned),
		  bool (*arm)(struct rt_owned *owned));
void rt_lend_fini(struct rt_lending *lending);

/* Any thread. The bell outlives its place in the list. */
void rt_lend_add_bell(struct rt_lending *lending, struct rt_lend_bell *place,
		      const struct rt_bell *bell);
void rt_lend_remove_bell(struct rt_lending *lending,
			 struct rt_lend_bell *place);
/* Poller's thread, of a poller that is lent after a fence, or as a first look:
 * does any of the bells say that a consumer sleeps? */
bool rt_lend_has_sleeper(struct rt_lending *lending);

/* Sets `lent`. Poller's thread, before leaving the poller; clears it after
 * entering again. */
static inline void rt_lend_set_lent(struct rt_lending *lending, bool is_lent)
{
	/* relaxed: the fence that follows orders it [LEND-1]; a consumer that
	 * sees an old value finds the poller entered */
	atomic_store_explicit(&lending->lent, is_lent, memory_order_relaxed);
}

static inline bool rt_lend_is_lent(const struct rt_lending *lending)
{
	/* relaxed: a hint to a thread that enters; the fence of a thread that
	 * goes to sleep orders the look [LEND-1] */
	return atomic_load_explicit(&lending->lent, memory_order_relaxed);
}

/* A consumer: asks the poller's thread to lend the poller. */
static inline void rt_lend_ask(struct rt_lending *lending)
{
	/* relaxed, both: a hint. The line changes seldom */
	if (!atomic_load_explicit(&lending->asks, memory_order_relaxed))
		atomic_store_explicit(&lending->asks, true,
				      memory_order_relaxed);
}

/* Does a consumer ask? */
static inline bool rt_lend_is_asked(const struct rt_lending *lending)
{
	/* relaxed: a hint */
	return atomic_load_explicit(&lending->asks, memory_order_relaxed);
}

static inline void rt_lend_end_ask(struct rt_lending *lending)
{
	/* relaxed: a hint */
	atomic_store_explicit(&lending->asks, false, memory_order_relaxed);
}

/* ---------------------------------------------------------------- owner --- */

#define RT_THREAD_NAME 16 /* bytes, as the kernel has it */

/* states of the word `inside` */
enum rt_inside {
	RT_INSIDE_NOBODY = 0,
	RT_INSIDE_THREAD = 1,
	RT_INSIDE_AWAITED = 2, /* a thread, and another sleeps for its turn */
	RT_INSIDE_CLOSED = 3   /* no thread enters again */
};

/* a thread that runs pollers */
struct rt_owner {
	struct cds_list_head pollers; /* under the lock of owner.c */
	pid_t tid;
	char name[RT_THREAD_NAME];
};

/* the part of a poller that names its owner; embedded in the poller */
struct rt_owned {
	/* immutable after init */
	void (*run)(struct rt_owned *owned); /* one round, of a wait */
	struct rt_inbox *inbox;
	int index;
	struct rt_owned *next; /* the runtime's next poller; NULL: the last */
	struct rt_lending *lending; /* NULL: the poller does not lend itself */

	_Atomic uint32_t inside; /* enum rt_inside */
	_Atomic uint32_t turns;	 /* rounds */
	/* NULL: the poller belongs to no thread. Changed under the lock of
	 * owner.c, by the thread inside, or by the end of the owner */
	_Atomic(struct rt_owner *) owner;
	struct cds_list_head link; /* of owner->pollers */
};

/* the calling thread; its list is valid once it has owned a poller */
extern _Thread_local struct rt_owner rt_owner_self;

/* Before the first poller: the end of a thread will be noticed.
 * ERRORS: RPMA_E_NOMEM */
int rt_owner_start(void);
/* In the child of a fork: its thread owns nothing. */
void rt_owner_forked(void);

void rt_owner_init(struct rt_owned *owned, int index, struct rt_inbox *inbox,
		   void (*run)(struct rt_owned *owned));

/*
 * Enters the poller of the calling thread, or a poller without an owner. Waits
 * for the end of the round of another thread, and runs the pollers of the
 * calling thread meanwhile.
 * ERRORS: RPMA_RT_E_BUSY (the poller belongs to another thread),
 * RPMA_RT_E_CLOSED
 */
int rt_owner_enter(struct rt_owned *owned);
/* Inside: the poller belongs to the calling thread from here on.
 * ERRORS: RPMA_E_NOMEM */
int rt_owner_attach(struct rt_owned *owned);
/* Inside: the poller belongs to no thread from here on. */
void rt_owner_release(struct rt_owned *owned);
/* Leaves a poller that was entered by rt_owner_enter(), and wakes the threads
 * that wait for their turn. */
void rt_owner_leave(struct rt_owned *owned);
/* Closes the poller: no thread enters or owns the poller any more. Returns
 * false while a thread is inside: call again. */
bool rt_owner_close(struct rt_owned *owned);

/* Does it belong to another thread? Then its name and number. */
bool rt_owner_is_other(struct rt_owned *owned, char name[RT_THREAD_NAME],
		       pid_t *tid);

enum rt_owner_known { RT_OWNER_NONE, RT_OWNER_KNOWN, RT_OWNER_BUSY };

/* Whose it is; waits for no thread: busy, it changes just now. */
enum rt_owner_known rt_owner_look(struct rt_owned *owned,
				  char name[RT_THREAD_NAME], pid_t *tid);

/* Has the calling thread ever owned a poller? */
bool rt_owner_has_any(void);
/* A round of each poller of the calling thread. */
void rt_owner_run_all(void);
/* Runs a round, unless a thread is inside. Returns false if the poller belongs
 * to a thread. */
bool rt_owner_visit(struct rt_owned *owned);

/* Enters a poller whose thread lent the poller, and runs `serve` or `arm` of
 * the poller. Returns false if another thread is inside, or the poller's thread
 * is needed. */
bool rt_owner_serve(struct rt_owned *owned,
		    bool (*round)(struct rt_owned *owned));

/* ------------------------------------ inline: each round of a loop asks --- */

static inline bool rt_owner_is_self(const struct rt_owned *owned)
{
	/* relaxed: only the calling thread makes itself the owner */
	return atomic_load_explicit(&owned->owner, memory_order_relaxed) ==
	       &rt_owner_self;
}

/* Returns the state found; RT_INSIDE_NOBODY: the caller is inside now. */
static inline uint32_t rt_owner_go_in(struct rt_owned *owned, enum rt_inside as)
{
	uint32_t inside = RT_INSIDE_NOBODY;

	/* acquire [MANUAL-1]: pairs with the releases of rt_owner_leave() and
	 * rt_owner_leave_own(): all of the last round is seen. Failure,
	 * acquire: the owner, which was set before the state that is found */
	atomic_compare_exchange_strong_explicit(&owned->inside, &inside, as,
						memory_order_acquire,
						memory_order_acquire);
	return inside;
}

/* Leaves a poller of the calling thread: no thread waits for a turn there. */
static inline void rt_owner_leave_own(struct rt_owned *owned)
{
	/* release [MANUAL-1]: pairs with the acquire in rt_owner_go_in() */
	atomic_store_explicit(&owned->inside, RT_INSIDE_NOBODY,
			      memory_order_release);
}

/* Inside: threads that wait for it see that it is run. How many there were. */
static inline uint32_t rt_owner_count_turn(struct rt_owned *owned)
{
	/* relaxed, both: written inside only, nothing is read behind it */
	uint32_t turns =
		atomic_load_explicit(&owned->turns, memory_order_relaxed) + 1;

	atomic_store_explicit(&owned->turns, turns, memory_order_relaxed);
	return turns;
}

/* Enters a poller of the calling thread; false: rt_owner_enter() finds the
 * reason. */
static inline bool rt_owner_enter_own(struct rt_owned *owned)
{
	return rt_owner_is_self(owned) &&
	       rt_owner_go_in(owned, RT_INSIDE_THREAD) == RT_INSIDE_NOBODY;
}

#endif /* RT_BASE_OWNER_H */
