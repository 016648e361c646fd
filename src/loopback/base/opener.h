/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * opener.h -- RPMA_LOOPBACK_CREDENTIALS: the kernel takes what is written to a
 * descriptor of a device only from the credentials that opened the descriptor.
 * On Soft-RoCE that concerns each send that is posted, and rdma_cm.
 */

#ifndef LB_BASE_OPENER_H
#define LB_BASE_OPENER_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* credentials that opened a context or made an event channel */
struct lb_opener {
	uid_t uids[3]; /* real, effective, saved */
	gid_t gids[3];
};

extern _Atomic bool lb_opener_counts; /* set before the first device is open */

/* Writes down the caller's credentials. */
void lb_opener_note(struct lb_opener *opener);
/* Returns true if the caller's credentials are others. */
bool lb_opener_differs(const struct lb_opener *opener);

/* Returns true if the device does as the kernel. */
static inline bool lb_opener_is_asked(void)
{
	/* relaxed: an option, orders nothing */
	return __builtin_expect(
		atomic_load_explicit(&lb_opener_counts, memory_order_relaxed),
		false);
}

/* Returns 0, or EACCES: the device does as the kernel, and the credentials have
 * changed. */
static inline int lb_opener_check(const struct lb_opener *opener)
{
	return lb_opener_is_asked() && lb_opener_differs(opener) ? EACCES : 0;
}

#endif /* LB_BASE_OPENER_H */
