/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stats.h -- what this process sent and received, on stderr when it ends.
 */

#ifndef LB_VERBS_STATS_H
#define LB_VERBS_STATS_H

/*
 * Prints from now on, when exit() is called or main() returns. The value is the
 * value of RPMA_LOOPBACK_STATS: a path is the path of the launcher's board, and
 * the launcher prints for a process that ends in another way.
 */
void lb_stats_start(const char *value);

/* In a child, which says nothing unless it did something itself. */
void lb_stats_forked(void);

#endif /* LB_VERBS_STATS_H */
