/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * owner.h -- manual mode: which thread a poller belongs to, and who is inside
 * it. A poller is run by its owner; one that belongs to nobody is visited, a
 * round at a time, by threads that wait for it. doc/protocols/manual.md.
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

/* who is inside a poller */
enum rt_inside {
	RT_INSIDE_NOBODY = 0,
	RT_INSIDE_OWNER = 1,   /* or the thread that is about to own it */
	RT_INSIDE_VISITOR = 2, /* a thread that waits for it, for one round */
	RT_INSIDE_CLOSED = 3   /* nobody ever again */
};

/* a thread that runs pollers */
struct rt_owner {
	struct cds_list_head pollers; /* under the lock of owner.c */
	pid_t tid;
	char name[RT_THREAD_NAME];
};

/* the part of a poller that says whose it is; embedded in it */
struct rt_owned {
	/* immutable after init */
	void (*run)(struct rt_owned *owned); /* one round, on the caller */
	struct rt_inbox *inbox;
	int index;
	struct rt_owned *next; /* the runtime's next poller; NULL: the last */

	_Atomic uint32_t inside; /* enum rt_inside */
	_Atomic uint32_t turns;	 /* how often its owner went in */
	/* NULL: it belongs to nobody. Changed under the lock of owner.c, by
	 * the thread that is inside or by its owner's end */
	_Atomic(struct rt_owner *) owner;
	struct cds_list_head link; /* of owner->pollers */
};

/* Before the first poller: the end of a thread will be noticed.
 * ERRORS: RPMA_E_NOMEM */
int rt_owner_start(void);
/* In the child of a fork: its thread owns nothing. */
void rt_owner_forked(void);

void rt_owner_init(struct rt_owned *owned, int index, struct rt_inbox *inbox,
		   void (*run)(struct rt_owned *owned));

/*
 * Goes in as its owner, which the caller is from here on.
 * ERRORS: RPMA_RT_E_BUSY (another thread is inside), RPMA_E_AGAIN (a visitor
 * is, for a round), RPMA_RT_E_CLOSED, RPMA_E_NOMEM
 */
int rt_owner_enter(struct rt_owned *owned);
void rt_owner_leave(struct rt_owned *owned);
/* Inside: it belongs to nobody. */
void rt_owner_release(struct rt_owned *owned);
/* Nobody goes in any more, and it belongs to nobody; false: somebody is
 * inside, ask again. */
bool rt_owner_close(struct rt_owned *owned);

bool rt_owner_is_self(const struct rt_owned *owned);
/* Does it belong to another thread? Then its name and number. */
bool rt_owner_is_other(struct rt_owned *owned, char name[RT_THREAD_NAME],
		       pid_t *tid);

/* Has the calling thread ever owned a poller? */
bool rt_owner_has_any(void);
/* A round of each poller of the calling thread. */
void rt_owner_run_all(void);
/* A round, if it belongs to nobody; false: it belongs to somebody. */
bool rt_owner_visit(struct rt_owned *owned);

#endif /* RT_BASE_OWNER_H */
