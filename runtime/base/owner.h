/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.h -- manual mode: the thread that a poller belongs to, and the thread
 * inside it. A poller is run by its owner; one that belongs to no thread is
 * visited, a round at a time, by threads that wait for it.
 * doc/protocols/manual.md.
 */

#ifndef RT_BASE_OWNER_H
#define RT_BASE_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <urcu/list.h>

#include "base/inbox.h"

#define RT_THREAD_NAME 16 /* bytes, as the kernel has it */

/* the role of the thread inside a poller */
enum rt_inside {
	RT_INSIDE_NOBODY = 0,
	RT_INSIDE_OWNER = 1,   /* or the thread that is about to own it */
	RT_INSIDE_WAITING = 2, /* for one round, in a call that waits */
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
	void (*run)(struct rt_owned *owned); /* one round, on the caller */
	struct rt_inbox *inbox;
	int index;
	struct rt_owned *next; /* the runtime's next poller; NULL: the last */

	_Atomic uint32_t inside; /* enum rt_inside */
	_Atomic uint32_t turns;	 /* entries by its owner, and rounds */
	/* NULL: it belongs to no thread. Changed under the lock of owner.c, by
	 * the thread that is inside or by its owner's end */
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
 * Goes in as its owner, which the caller is from here on.
 * ERRORS: RPMA_RT_E_BUSY (another thread is inside), RPMA_E_AGAIN (a call that
 * waits is inside, for one round), RPMA_RT_E_CLOSED, RPMA_E_NOMEM
 */
int rt_owner_enter(struct rt_owned *owned);
/* Inside: the poller belongs to no thread from here on. */
void rt_owner_release(struct rt_owned *owned);
/* Closes the poller: no thread enters or owns it any more; false: a thread is
 * inside, call again. */
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
/* Runs a round if the poller belongs to no thread; false: it belongs to one. */
bool rt_owner_visit(struct rt_owned *owned);

/* ------------------------------------ inline: each round of a loop asks --- */

static inline bool rt_owner_is_self(const struct rt_owned *owned)
{
	/* relaxed: only the calling thread makes itself the owner */
	return atomic_load_explicit(&owned->owner, memory_order_relaxed) ==
	       &rt_owner_self;
}

/* Returns the role that was inside; RT_INSIDE_NOBODY: the caller is now. */
static inline uint32_t rt_owner_go_in(struct rt_owned *owned, enum rt_inside as)
{
	uint32_t inside = RT_INSIDE_NOBODY;

	/* acquire: pairs with the release in rt_owner_leave(), so that all of
	 * the last one's round is seen; failure: nothing is looked at */
	atomic_compare_exchange_strong_explicit(&owned->inside, &inside, as,
						memory_order_acquire,
						memory_order_relaxed);
	return inside;
}

static inline void rt_owner_leave(struct rt_owned *owned)
{
	/* release: pairs with the acquire in rt_owner_go_in() */
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

/* Goes in if it is the caller's already and nobody is inside; false: what is
 * in the way is rt_owner_enter()'s to find out. The round counts the turn. */
static inline bool rt_owner_enter_own(struct rt_owned *owned)
{
	if (!rt_owner_is_self(owned) ||
	    rt_owner_go_in(owned, RT_INSIDE_OWNER) != RT_INSIDE_NOBODY)
		return false;
	/* inside it is certain: another may have taken it over in between */
	if (!rt_owner_is_self(owned)) {
		rt_owner_leave(owned);
		return false;
	}
	return true;
}

#endif /* RT_BASE_OWNER_H */
