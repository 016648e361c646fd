/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * context.h -- questions about a runtime that every folder asks: was it made in
 * this process, may the caller wait, does it stop; and the count that a
 * stop waits for.
 */

#ifndef RT_BASE_CONTEXT_H
#define RT_BASE_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "rpma_rt.h"
#include "base/log.h"

struct rt_owned;

/* Forks between the first process and this one; counted up in the child. */
extern _Atomic unsigned rt_context_forks __attribute__((visibility("hidden")));

/* The generation of this process, for a runtime that is made now. */
static inline unsigned rt_context_generation(void)
{
	/* relaxed: it changes in a child only, before anything runs there */
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

/* These are logged. 0, or RPMA_RT_E_FORKED. */
#define RT_REFUSE_FORKED(rt) rt_context_check_here(RT_LOG_HERE, rt)
/* 0, or RPMA_RT_E_THREAD: in a function that a poller or the event thread runs
 * no call may wait. */
#define RT_REFUSE_THREAD() rt_context_check_thread(RT_LOG_HERE)
/* Both, for calls that wait. */
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
/* Are clocks read for statistics? */
bool rt_context_is_timed(const struct rpma_rt *rt);
/* The runtime's pollers, for a wait that each may have to end (wait.h); NULL:
 * they have threads. */
struct rt_owned *rt_context_owned(const struct rpma_rt *rt);
/* The runtime's pollers, which lend themselves to waiting consumers; NULL: the
 * pollers of this mode do not. */
struct rt_owned *rt_context_lending(const struct rpma_rt *rt);
/* How long a poller spins before it sleeps. */
uint64_t rt_context_spin_ns(const struct rpma_rt *rt);
/* Are there sets of shards of the runtime? */
bool rt_context_has_shards(const struct rpma_rt *rt);
/* Drops the references in an item that no consumer will take. */
void rt_context_drop_item(struct rpma_rt *rt,
			  const struct rpma_rt_completion *item);

/*
 * Keeps the runtime from ending, as a connection does: a stop waits for
 * rt_context_unref(). ERRORS: RPMA_RT_E_CLOSED (it has begun to stop)
 */
int rt_context_ref(struct rpma_rt *rt);
/* The last one lets a stop go on. */
void rt_context_unref(struct rpma_rt *rt);
/* Until a stop that has begun is over. */
void rt_context_wait_stopped(struct rpma_rt *rt);

struct cds_list_head;
/* One of the runtime's lists of handles, for the dump. Takes the directory's
 * lock: not on a poller. */
void rt_context_list(struct rpma_rt *rt, struct cds_list_head *list,
		     struct cds_list_head *link);
void rt_context_unlist(struct rpma_rt *rt, struct cds_list_head *link);

/* In the child of a fork: objects of another generation are refused. */
void rt_context_forked(void);

#endif /* RT_BASE_CONTEXT_H */
