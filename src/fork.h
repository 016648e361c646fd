/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects of a device in a child process. Queues, regions and ids belong to the
 * process that made them: a child that used or destroyed them would use or
 * destroy those of its parent. So every such object remembers the process that
 * made it; in another process calls fail with E_FORKED, and delete frees the
 * memory only.
 */

#ifndef RPMA_FORK_H
#define RPMA_FORK_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "librpma.h"

/* The number of forks between the first process and this one. */
extern atomic_uint rpma__forks __attribute__((visibility("hidden")));

/* The value that an object keeps when it is made. */
static inline unsigned rpma__forks_now(void)
{
	/* relaxed: it changes in a child before anything else runs there */
	return atomic_load_explicit(&rpma__forks, memory_order_relaxed);
}

__attribute__((cold)) void rpma__log_not_here(void);

/*
 * Was the object made in this process? If not, that is logged. The compiler is
 * to expect it, as in claim.h: each jump taken on the data path costs time.
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
 * The error of a call that has refused its arguments, the object of these forks
 * among them (NULL: there is none). A fork is reported before other reasons.
 */
static inline int rpma__fork_refusal(const unsigned *forks)
{
	return forks && *forks != rpma__forks_now() ? RPMA_E_FORKED
						    : RPMA_E_INVAL;
}

#endif /* RPMA_FORK_H */
