/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * barrier.h -- a thread that executes may hold keys: one that takes keys away
 * waits for those.
 */

#ifndef LB_MEMORY_BARRIER_H
#define LB_MEMORY_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/list.h"
#include "base/process.h"

struct lb_executor {
	_Atomic uint32_t word; /* odd: the thread may hold a key */
	bool is_listed;
	/* by the handler of lost.c, in this thread: */
	_Atomic bool is_lost;	      /* an access met unmapped memory */
	uintptr_t lost_from, lost_to; /* empty pages in place of the memory */
	struct lb_list node;
};
extern _Thread_local struct lb_executor lb_barrier_executor;
/* Without membarrier() the fence is the executor's, too. */
extern bool lb_barrier_is_heavy;
void lb_barrier_start(void);
void lb_barrier_fork(enum lb_fork_step step);
void lb_barrier_join(struct lb_executor *self);
/* Forgets unmapped memory that nothing else looked at: the pages stay. */
void lb_barrier_forget_lost(struct lb_executor *self);
/* Returns when nobody holds a key that was taken away before the call. */
void lb_barrier_wait(void);

static inline void lb_barrier_fence(void)
{
#ifdef __SANITIZE_THREAD__
	_Atomic int orders_only = 0;

	/* seq_cst: stands for the fence below, unseen by the sanitizer */
	atomic_fetch_add_explicit(&orders_only, 1, memory_order_seq_cst);
#else
	/* seq_cst: pairs with the fence of the other side */
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* From here to lb_barrier_leave() this thread may look keys up. */
static inline struct lb_executor *lb_barrier_enter(void)
{
	struct lb_executor *self = &lb_barrier_executor;
	uint32_t word;

	if (!lb_likely(self->is_listed))
		lb_barrier_join(self);
	/* relaxed: only this thread writes it; the fence orders the store */
	word = atomic_load_explicit(&self->word, memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(&self->word, word + 1, memory_order_relaxed);
	if (!lb_likely(!lb_barrier_is_heavy))
		lb_barrier_fence();
	else
		/* the compiler's half; membarrier() is the processor's */
		atomic_signal_fence(memory_order_seq_cst);
	return self;
}

static inline void lb_barrier_leave(struct lb_executor *self)
{
	/* relaxed: only this thread writes it */
	uint32_t word = atomic_load_explicit(&self->word, memory_order_relaxed);

	/* relaxed: written by this thread */
	if (!lb_likely(!atomic_load_explicit(&self->is_lost,
					     memory_order_relaxed)))
		lb_barrier_forget_lost(self);
	/* release: pairs with the acquire in lb_barrier_wait() */
	atomic_store_explicit(&self->word, word + 1, memory_order_release);
}

#endif /* LB_MEMORY_BARRIER_H */
