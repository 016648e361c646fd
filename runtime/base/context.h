/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * context.h -- questions about a runtime, asked by every folder: whether the
 * runtime was made in this process, whether the caller may wait, whether the
 * runtime stops; and the count that a stop waits for.
 */

#ifndef RT_BASE_CONTEXT_H
#define RT_BASE_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "rpma_rt.h"
#include "base/log.h"

struct rt_owned;

/* Forks between the first process and this process; counted up in the child. */
extern _Atomic unsigned rt_context_forks __attribute__((visibility("hidden")));

/* Returns the generation of this process, for a new runtime. */
static inline unsigned rt_context_generation(void)
{
	/* relaxed: changes only in a child, before any other code runs there */
	return atomic_load_explicit(&rt_context_forks, memory_order_relaxed);
}

/* 0, RPMA_RT_E_FORKED. Inline, by the first member of struct rpma_rt: each call
 * asks. */
static inline int rt_context_check(const struct rpma_rt *rt)
{
	const unsigned *fork_generation = (const void *)rt;

	return rt_context_generation() == *fork_generation ? 0
							   : RPMA_RT_E_FORKED;
}

/*
 * Checks that the runtime was made in this process, else logs. Returns 0 or
 * RPMA_RT_E_FORKED.
 */
#define RT_REFUSE_FORKED(rt) rt_context_check_here(RT_LOG_HERE, rt)
/* Checks that the call may wait, which no call may in a function run by a
 * poller or the event thread, else logs. Returns 0 or RPMA_RT_E_THREAD. */
#define RT_REFUSE_THREAD() rt_context_check_thread(RT_LOG_HERE)
/* Makes both checks, for waiting calls. */
#define RT_REFUSE_WAIT(rt) rt_context_check_wait(RT_LOG_HERE, rt)

__attribute__((cold)) int
rt_context_refuse_forked(const struct rt_log_place *place);
int rt_context_check_thread(const struct rt_log_place *place);

static inline int rt_context_check_here(const struct rt_log_place *place,
					const struct rpma_rt *rt)
{
	return __builtin_expect(rt_context_check(rt) != 0, false)
		       ? rt_context_refuse_forked(place)
		       : 0;
}

static inline int rt_context_check_wait(const struct rt_log_place *place,
					const struct rpma_rt *rt)
{
	int ret = rt_context_check_here(place, rt);

	return ret ? ret : rt_context_check_thread(place);
}

int rt_context_pollers(const struct rpma_rt *rt);
bool rt_context_is_stopped(const struct rpma_rt *rt);
/* Returns true if clocks are read for statistics. */
bool rt_context_is_timed(const struct rpma_rt *rt);
/* Returns the pollers of the runtime, for a wait that each may have to end
 * (wait.h); NULL: the pollers have threads. */
struct rt_owned *rt_context_owned(const struct rpma_rt *rt);
/* The runtime's pollers, which lend themselves to waiting consumers; NULL: the
 * pollers of this mode do not. */
struct rt_owned *rt_context_lending(const struct rpma_rt *rt);
/* Returns how long a poller spins before sleeping. */
uint64_t rt_context_spin_ns(const struct rpma_rt *rt);
/* Returns the pollers that shards run, or are going to run. */
uint64_t rt_context_sharded(const struct rpma_rt *rt);
/* Drops the references in an item that will never be taken. */
void rt_context_drop_item(struct rpma_rt *rt,
			  const struct rpma_rt_completion *item);

/*
 * Keeps the runtime from ending, as a connection does: a stop waits for
 * rt_context_unref(). ERRORS: RPMA_RT_E_CLOSED (the stop has begun)
 */
int rt_context_ref(struct rpma_rt *rt);
/* Drops a reference; the last lets a stop go on. */
void rt_context_unref(struct rpma_rt *rt);
/* Waits until a stop that has begun is over. */
void rt_context_wait_stopped(struct rpma_rt *rt);

struct cds_list_head;
/* Adds a handle to a list of the runtime, for the dump. Takes the lock of the
 * directory: not on a poller. */
void rt_context_list(struct rpma_rt *rt, struct cds_list_head *list,
		     struct cds_list_head *link);
void rt_context_unlist(struct rpma_rt *rt, struct cds_list_head *link);

/* In the child of a fork: objects of another generation are refused. */
static inline void rt_context_forked(void)
{
	/* relaxed: the child has a single thread */
	atomic_fetch_add_explicit(&rt_context_forks, 1, memory_order_relaxed);
}

#endif /* RT_BASE_CONTEXT_H */
