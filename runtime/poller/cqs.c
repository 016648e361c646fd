/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cqs.c -- the CQs that a poller polls: taken in, awake or resting, waited for,
 * failed, taken out. Runs on the poller.
 */

#include "poller/cqs.h"

#include <stddef.h>
#include <stdlib.h>

#include "poller/cq.h"
#include "poller/poller.h"

#define CQS_LEAST 16 /* places for CQs that a poller keeps */

void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	cq->dead = true;
	if (cq->raw != NULL) /* the device reports it to the CQ's owner */
		return;
	rt_schedule_ready_all(poller, &cq->draining);
	rt_schedule_ready_all(poller, &cq->sweeping);
	rt_cq_fail_mt(cq);
}

/* ------------------------------------------------------------- resting --- */

static void put(struct rt_poller *poller, struct rt_cq *cq, int place)
{
	poller->cqs[place] = cq;
	cq->place = place;
}

/* Both change places. */
static void swap(struct rt_poller *poller, struct rt_cq *cq, int place)
{
	put(poller, poller->cqs[place], cq->place);
	put(poller, cq, place);
}

void rt_cqs_wake_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	cq->empty_polls = 0;
	if (cq->place >= 0 && !rt_cqs_is_awake_poller(poller, cq))
		swap(poller, cq, poller->cqs_awake++);
}

void rt_cqs_rest_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	swap(poller, cq, --poller->cqs_awake);
}

/* ------------------------------------------------------------- leaving --- */

void rt_cqs_take_out_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	struct rt_cq **cqs;

	if (cq->place < 0) /* there was no memory for it */
		return;
	if (rt_cqs_is_awake_poller(poller, cq))
		rt_cqs_rest_poller(poller, cq);
	swap(poller, cq, --poller->cqs_count);
	cq->place = -1;
	if (poller->cqs_max < CQS_LEAST ||
	    poller->cqs_count > poller->cqs_max / 4)
		return;
	cqs = realloc(poller->cqs,
		      (size_t)(poller->cqs_max / 2) * sizeof(struct rt_cq *));
	if (cqs == NULL)
		return;
	poller->cqs = cqs;
	poller->cqs_max /= 2;
}

void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task)
{
	rt_cqs_wake_poller(poller, cq);
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
	put(poller, cq, poller->cqs_count++);
	rt_cqs_wake_poller(poller, cq);
	if (!cq->channel->known) {
		cq->channel->known = true;
		cq->channel->poller_next = poller->reading;
		poller->reading = cq->channel;
	}
	/* made before it was known that nothing on the channel wakes us */
	if (cq->channel->dead)
		rt_cqs_fail_poller(poller, cq);
}
