/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lend.h -- a poller of adaptive mode, lent by its sleeping thread to the
 * consumers of its queues: a waiting consumer runs the poller's rounds.
 * doc/protocols/lend.md.
 */

#ifndef RT_BASE_LEND_H
#define RT_BASE_LEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <urcu/list.h>

#include "base/bell.h"

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

#endif /* RT_BASE_LEND_H */
