/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* round.h -- a round of a poller. */

#ifndef RT_POLLER_ROUND_H
#define RT_POLLER_ROUND_H

struct rt_poller;

/* One round; items handled. */
int rt_round_run(struct rt_poller *poller, int budget);

#endif /* RT_POLLER_ROUND_H */
