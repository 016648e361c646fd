/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cqs.h -- the CQs that a poller polls. Those that are awake are polled in each
 * round; of those that rest, because many polls in a row found nothing, one is
 * polled in a round, in turn. doc/protocols/channel.md.
 */

#ifndef RT_POLLER_CQS_H
#define RT_POLLER_CQS_H

#include "poller/poller.h"

#define RT_CQS_EMPTY_POLLS 64 /* in a row: then the CQ rests */

struct rt_cq;
struct rt_msg;
struct rt_task;

static inline bool rt_cqs_is_awake_poller(const struct rt_poller *poller,
					  const struct rt_cq *cq)
{
	return cq->place < poller->cqs_awake;
}

/* The CQ is polled in each round from here on. */
void rt_cqs_wake_poller(struct rt_poller *poller, struct rt_cq *cq);
/* The CQ rests. REQUIRES: it is awake */
void rt_cqs_rest_poller(struct rt_poller *poller, struct rt_cq *cq);
/* All CQs are polled in the next round: before the poller sleeps. */
static inline void rt_cqs_wake_all_poller(struct rt_poller *poller)
{
	poller->cqs_awake = poller->cqs_count;
}
/* The poller polls the CQ no more. A CQ without a place: nothing. */
void rt_cqs_take_out_poller(struct rt_poller *poller, struct rt_cq *cq);

/* Takes a CQ in; the message is in the rt_cq. */
void rt_cqs_add_message(struct rt_msg *msg, void *owner);
/* The task becomes ready when what the CQ holds now was taken: a poll of it
 * finds nothing, or as many as it can hold are taken; or when it dies. */
void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task);
/* A CQ of the poller has failed: its connections die. */
void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq);

#endif /* RT_POLLER_CQS_H */
