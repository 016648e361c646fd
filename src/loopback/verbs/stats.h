/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stats.h -- what this process sent and received, on stderr when it ends.
 */

#ifndef LB_VERBS_STATS_H
#define LB_VERBS_STATS_H

/* From now on: print when exit() is called or main() returns. */
void lb_stats_start(void);

/* In a child, which says nothing unless it did something itself. */
void lb_stats_forked(void);

#endif /* LB_VERBS_STATS_H */
