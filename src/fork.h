/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects of a device in a child process. Queues, regions and ids belong to the
 * process that made the object: a child would use or destroy the objects of its
 * parent. So every object remembers the process that made the object; in
 * another process calls fail with E_FORKED, and delete frees the memory only.
 */

#ifndef RPMA_FORK_H
#define RPMA_FORK_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "librpma.h"

/* The number of forks between the first process and the calling process. */
extern atomic_uint rpma__forks __attribute__((visibility("hidden")));

/* Returns the value for a new object to keep. */
static inline unsigned rpma__forks_now(void)
{
	/* relaxed: the number changes in a child before any other code runs
	 * there */
	return atomic_load_explicit(&rpma__forks, memory_order_relaxed);
}

__attribute__((cold)) void rpma__log_not_here(void);

/*
 * Returns true if the object was made in this process, else logs the reason.
 * The compiler is told to expect true, as in claim.h: each taken jump costs
 * time on the data path.
 */
static inline bool rpma__is_here(unsigned forks)
{
	if (__builtin_expect(forks == rpma__forks_now(), true))
		return true;
	/* a call without a result: the caller keeps no value in a register over
	 * the call */
	rpma__log_not_here();
	return false;
}

/*
 * Returns the error of a call that has refused its arguments. forks: of the
 * object among the arguments, or NULL without an object. A fork is reported
 * before other reasons.
 */
static inline int rpma__fork_refusal(const unsigned *forks)
{
	return forks && *forks != rpma__forks_now() ? RPMA_E_FORKED
						    : RPMA_E_INVAL;
}

#endif /* RPMA_FORK_H */
