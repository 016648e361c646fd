/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cqs.c -- the CQs that a poller polls: taken in, waited for, failed. Runs on
 * the poller.
 */

#include "poller/cqs.h"

#include <stddef.h>
#include <stdlib.h>

#include "poller/cq.h"
#include "poller/poller.h"

void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	cq->dead = true;
	if (cq->raw != NULL) /* the device reports it to the CQ's owner */
		return;
	rt_schedule_ready_all(poller, &cq->draining);
	rt_schedule_ready_all(poller, &cq->sweeping);
	rt_cq_fail_mt(cq);
}

void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task)
{
	task->until_taken = cq->taken + cq->cqe;
	if (cq->dead)
		rt_schedule_ready(poller, task);
	else
		rt_schedule_wait(task, &cq->sweeping);
}

void rt_cqs_add_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq =
		(struct rt_cq *)((char *)msg - offsetof(struct rt_cq, add_msg));
	struct rt_poller *poller = owner;
	struct rt_cq **cqs;

	if (poller->cqs_count == poller->cqs_max) {
		cqs = realloc(poller->cqs, (size_t)(poller->cqs_max * 2 + 4) *
						   sizeof(struct rt_cq *));
		if (cqs == NULL) {
			/* not polled, so as good as dead */
			rt_cqs_fail_poller(poller, cq);
			return;
		}
		poller->cqs = cqs;
		poller->cqs_max = poller->cqs_max * 2 + 4;
	}
	cq->place = poller->cqs_count;
	poller->cqs[poller->cqs_count++] = cq;
	if (!cq->channel->known) {
		cq->channel->known = true;
		cq->channel->poller_next = poller->reading;
		poller->reading = cq->channel;
	}
	/* made before it was known that nothing on the channel wakes us */
	if (cq->channel->dead)
		rt_cqs_fail_poller(poller, cq);
}
