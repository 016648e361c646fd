/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.h -- the owner thread of a poller, and the thread inside the poller.
 *
 * Manual mode: only the owner runs a poller with an owner. Any thread serves a
 * poller without an owner, a round at a time: threads take turns.
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
#include "base/lang.h"
#include "base/order.h"

/* ----------------------------------------------------------------- lend --- */

/*
 * A poller of adaptive mode, lent by its sleeping thread to the consumers of
 * its queues: a waiting consumer runs rounds of the poller.
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

/* Adds a bell. Any thread. The bell outlives its place in the list. */
void rt_lend_add_bell(struct rt_lending *lending, struct rt_lend_bell *place,
		      const struct rt_bell *bell);
void rt_lend_remove_bell(struct rt_lending *lending,
			 struct rt_lend_bell *place);
/* Returns true if any bell says that a consumer sleeps. Thread of the poller,
 * lent after a fence, or as a first look. */
bool rt_lend_has_sleeper(struct rt_lending *lending);

/* Sets `lent`. Thread of the poller, before leaving the poller; clears `lent`
 * after entering again. */
static inline void rt_lend_set_lent(struct rt_lending *lending, bool is_lent)
{
	/* relaxed: ordered by the following fence [LEND-1]; a consumer that
	 * sees an old value finds the poller entered */
	atomic_store_explicit(&lending->lent, is_lent, memory_order_relaxed);
}

static inline bool rt_lend_is_lent(const struct rt_lending *lending)
{
	/* relaxed: a hint to an entering thread; the fence of a thread that
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

/* Returns true if a consumer asks. */
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

#define RT_THREAD_NAME 16 /* bytes, as in the kernel */

/* states of the word `inside` */
enum rt_inside {
	RT_INSIDE_NOBODY = 0,
	RT_INSIDE_THREAD = 1,
	RT_INSIDE_AWAITED = 2, /* a thread, while another sleeps for its turn */
	RT_INSIDE_CLOSED = 3,  /* no thread enters again */
	/* only the owner enters, by `by_owner`; a stop looks whether the owner
	 * is inside */
	RT_INSIDE_OWNED = 4
};

/* a thread with pollers */
struct rt_owner {
	struct cds_list_head pollers; /* under the lock of owner.c */
	/* the only poller that the thread has attached; NULL: none, or several.
	 * The poller may be gone, or belong to another thread: see
	 * rt_owner_is_only(). The thread's */
	const struct rt_owned *only;
	pid_t tid;
	char name[RT_THREAD_NAME];
};

/* the part of a poller that names the owner; embedded in the poller */
struct rt_owned {
	/* immutable after init */
	void (*run)(struct rt_owned *owned); /* a round, for a wait */
	struct rt_inbox *inbox;
	int index;
	struct rt_owned *next; /* the runtime's next poller; NULL: the last */
	struct rt_lending *lending; /* NULL: the poller does not lend itself */

	_Atomic uint32_t inside; /* enum rt_inside */
	_Atomic bool by_owner;	 /* with OWNED: the owner is inside. Owner */
	_Atomic uint32_t turns;	 /* rounds */
	/* NULL: the poller belongs to no thread. Changed under the lock of
	 * owner.c, by the thread inside, or by the end of the owner */
	_Atomic(struct rt_owner *) owner;
	struct cds_list_head link; /* of owner->pollers */
};

/* the calling thread; the list is valid once the thread has owned a poller */
extern _Thread_local struct rt_owner rt_owner_self;

/* Before the first poller: the end of a thread will be noticed.
 * ERRORS: RPMA_E_NOMEM */
int rt_owner_start(void);
/* In the child of a fork: the thread owns nothing. */
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
/* Leaves a poller entered by rt_owner_enter(), and wakes the threads waiting
 * for their turn. */
void rt_owner_leave(struct rt_owned *owned);
/* Closes the poller: no thread enters or owns the poller any more. Returns
 * false while a thread is inside: call again. */
bool rt_owner_close(struct rt_owned *owned);

/*
 * Returns true if the poller belongs to another thread, with name and number.
 */
bool rt_owner_is_other(struct rt_owned *owned, char name[RT_THREAD_NAME],
		       pid_t *tid);

enum rt_owner_known { RT_OWNER_NONE, RT_OWNER_KNOWN, RT_OWNER_BUSY };

/*
 * Writes the name and the thread ID of the owner, if there is an owner. Does
 * not wait: returns RT_OWNER_BUSY while another thread holds the lock under
 * which owners change.
 */
enum rt_owner_known rt_owner_look(struct rt_owned *owned,
				  char name[RT_THREAD_NAME], pid_t *tid);

/* Returns true if the calling thread has ever owned a poller. */
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

/* Returns whether the calling thread has attached the poller, and no other
 * poller. */
static inline bool rt_owner_is_only(const struct rt_owned *owned)
{
	/* the second look, because `only` may name a former poller at the same
	 * address */
	return owned != NULL && rt_owner_self.only == owned &&
	       likely(rt_owner_is_self(owned));
}

/* Returns the state found; RT_INSIDE_NOBODY: the caller is inside now. */
static inline uint32_t rt_owner_go_in(struct rt_owned *owned, enum rt_inside as)
{
	uint32_t inside = RT_INSIDE_NOBODY;

	/* acquire [MANUAL-1]: pairs with the releases of rt_owner_leave() and
	 * rt_owner_leave_own(): everything of the last round is seen. Failure,
	 * acquire: the owner, set before the state found here */
	atomic_compare_exchange_strong_explicit(&owned->inside, &inside, as,
						memory_order_acquire,
						memory_order_acquire);
	return inside;
}

/* Leaves a poller of the calling thread that was entered by
 * rt_owner_go_in(). */
void rt_owner_leave_first(struct rt_owned *owned);

/* Leaves a poller that rt_owner_go_in_owned() has entered. */
static inline void rt_owner_go_out_owned(struct rt_owned *owned)
{
	/* release [MANUAL-1]: pairs with the acquire in owner_end_owned().
	 * Unseen: a stop hands the poller's memory over, and no data of the
	 * program */
	rt_store_unseen(&owned->by_owner, false, memory_order_release);
}

/* Leaves a poller of the calling thread: no thread waits for a turn there. */
static inline void rt_owner_leave_own(struct rt_owned *owned)
{
	/* relaxed: written by this thread */
	if (likely(atomic_load_explicit(&owned->by_owner,
					memory_order_relaxed)))
		rt_owner_go_out_owned(owned);
	else
		rt_owner_leave_first(owned);
}

/* Enters a poller that only the owner enters. Owner, outside. */
static inline bool rt_owner_go_in_owned(struct rt_owned *owned)
{
	/* relaxed: the fence orders the store */
	atomic_store_explicit(&owned->by_owner, true, memory_order_relaxed);
	/* pairs with the fence in owner_end_owned() [MANUAL-3]: either this
	 * look sees CLOSED, or that thread sees the owner inside */
	rt_fence_light();
	/* relaxed: no other thread was inside since the owner left */
	if (likely(atomic_load_explicit(&owned->inside, memory_order_relaxed) ==
		   RT_INSIDE_OWNED))
		return true;
	/* release: as in rt_owner_leave_own() */
	atomic_store_explicit(&owned->by_owner, false, memory_order_release);
	return false;
}

/*
 * Counts a turn, inside: waiting threads see that the poller is run. Returns
 * the count.
 */
static inline uint32_t rt_owner_count_turn(struct rt_owned *owned)
{
	/* relaxed, both: written inside only, no other read depends on the
	 * count */
	uint32_t turns =
		atomic_load_explicit(&owned->turns, memory_order_relaxed) + 1;

	atomic_store_explicit(&owned->turns, turns, memory_order_relaxed);
	return turns;
}

/* Enters a poller of the calling thread; false: rt_owner_enter() finds the
 * reason. */
static inline bool rt_owner_enter_own(struct rt_owned *owned)
{
	/* relaxed, both: written by the owner; a stop is seen behind the
	 * fence */
	if (unlikely(!rt_owner_is_self(owned) ||
		     atomic_load_explicit(&owned->by_owner,
					  memory_order_relaxed)))
		return false;
	return likely(atomic_load_explicit(&owned->inside,
					   memory_order_relaxed) ==
		      RT_INSIDE_OWNED)
		       ? rt_owner_go_in_owned(owned)
		       : rt_owner_go_in(owned, RT_INSIDE_THREAD) ==
				 RT_INSIDE_NOBODY;
}

/* Runs a round of the poller if the calling thread has attached this poller and
 * no other: without the lock of all owners. owned: NULL, or a poller that lives
 * as long as the call. Returns false if the poller is another thread's, or one
 * of several. */
static inline bool rt_owner_run_only(struct rt_owned *owned)
{
	if (!rt_owner_is_only(owned))
		return false;
	/* false: a stop has closed the poller */
	if (rt_owner_enter_own(owned)) {
		owned->run(owned);
		rt_owner_leave_own(owned);
	}
	return true;
}

#endif /* RT_BASE_OWNER_H */
