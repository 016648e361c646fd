/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * self.h -- what the calling thread is to the runtime: a poller, or inside one
 * of its rounds; the event thread; or any other.
 */

#ifndef RT_BASE_SELF_H
#define RT_BASE_SELF_H

#include <stdbool.h>
#include <stdint.h>

struct rt_poller;

/* The poller whose thread, or round, the caller is in; NULL: none. */
struct rt_poller *rt_self_poller(void);
void rt_self_set_poller(struct rt_poller *poller);
bool rt_self_is_poller(void);

/* The calling thread's number in this process: not 0, never used again. */
uint64_t rt_self_number(void);

bool rt_self_is_events(void);
void rt_self_set_events(void);

/* In the child of a fork: its one thread is neither, even if it was. */
void rt_self_forked(void);

#endif /* RT_BASE_SELF_H */
