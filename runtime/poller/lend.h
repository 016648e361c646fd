/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lend.h -- a poller of adaptive mode whose thread sleeps, and whose rounds a
 * consumer runs meanwhile. doc/protocols/lend.md.
 */

#ifndef RT_POLLER_LEND_H
#define RT_POLLER_LEND_H

#include <stdbool.h>
#include <stdint.h>

struct rt_owned;
struct rt_poller;

/* Poller's thread, which found nothing to do and shares its CPU: lends the
 * poller to its consumers and sleeps, as long as one of them runs rounds.
 * Returns false if no consumer would run them. */
bool rt_lend_poller(struct rt_poller *poller, uint64_t now_ns);

/* Inside, a consumer: a round that delivers what leads to lanes, and leaves
 * all else to the poller's thread. Returns false if the thread is needed, which
 * is rung then. */
bool rt_lend_serve(struct rt_owned *owned);
/* Likewise, and arms the CQ before: a later completion wakes the thread. */
bool rt_lend_arm(struct rt_owned *owned);

#endif /* RT_POLLER_LEND_H */
