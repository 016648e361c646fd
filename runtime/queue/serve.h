/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * serve.h -- a consumer that runs rounds of pollers that are lent. Runs on the
 * consumer's thread. doc/protocols/lend.md.
 */

#ifndef RT_QUEUE_SERVE_H
#define RT_QUEUE_SERVE_H

#include <stdbool.h>

struct rpma_rt_queue;
struct rt_queue_lane;

/* Asks the threads of all pollers with a lane to the queue to lend these. */
void rt_serve_ask(const struct rpma_rt_queue *queue);
/* Is any of these pollers lent? */
bool rt_serve_is_due(const struct rpma_rt_queue *queue);
/* Runs a round of each that is lent. Returns false if none is, or if the thread
 * of one is needed. */
bool rt_serve_run(const struct rpma_rt_queue *queue);
/* After the caller's fence, before the caller sleeps: likewise, and completions
 * that come later wake the poller's thread. */
void rt_serve_arm(const struct rpma_rt_queue *queue);

/* A lane to a queue was made, under the lock of the queue; is deleted. */
void rt_serve_add(struct rt_queue_lane *lane);
void rt_serve_remove(struct rt_queue_lane *lane);

#endif /* RT_QUEUE_SERVE_H */
