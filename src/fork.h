/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * What a child process inherits. Queues, regions and ids are of the process
 * that made them: whoever uses them in its child reads and writes the parent's
 * queues, and who destroys them there destroys the parent's. So every object
 * that stands for something of a device remembers in which process it was made,
 * in others calls answer E_FORKED, and delete frees its memory only.
 */

#ifndef RPMA_FORK_H
#define RPMA_FORK_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "librpma.h"

/* How many forks there are between the first process and this one. */
extern atomic_uint rpma__forks __attribute__((visibility("hidden")));

/* What an object remembers when it is made. */
static inline unsigned rpma__forks_now(void)
{
	/* relaxed: it changes in a child before anything else runs there */
	return atomic_load_explicit(&rpma__forks, memory_order_relaxed);
}

void rpma__log_not_here(void);

/*
 * Was it made in this process? If not, that is logged. Expected, as what a
 * claim is in claim.h: each jump that a call of the data path takes is felt.
 */
static inline bool rpma__is_here(unsigned forks)
{
	if (__builtin_expect(forks == rpma__forks_now(), true))
		return true;
	/* a call that answers nothing: the caller keeps nothing over it */
	rpma__log_not_here();
	return false;
}

/*
 * What a call answers that has refused its arguments, the object of these forks
 * among them (NULL: there is none): the fork is the reason that says more.
 */
static inline int rpma__fork_refusal(const unsigned *forks)
{
	return forks && *forks != rpma__forks_now() ? RPMA_E_FORKED
						    : RPMA_E_INVAL;
}

#endif /* RPMA_FORK_H */
