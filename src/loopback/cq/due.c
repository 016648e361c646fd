/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * due.c -- the events that a thread has made and not yet handed over: their
 * completion channels have them once the thread holds no lock.
 */

#include "cq/due.h"

#include "base/hook.h"
#include "base/lock.h"
#include "cq/channel.h"
#include "cq/cq.h"
#include "rpma_loopback.h"

void lb_due_add(struct lb_due *due, struct lb_cq *cq)
{
	if (cq->due++)
		return; /* the thread that made it 1 delivers this one too */
	cq->due_next = NULL;
	if (due->first)
		due->last->due_next = cq;
	else
		due->first = cq;
	due->last = cq;
}

/* Let the CQ's channel have its events. */
static void pay(struct lb_cq *cq)
{
	uint32_t n;

	lb_lock_get(&cq->push);
	n = cq->due;
	cq->due = 0;
	cq->delivering++; /* keeps ibv_destroy_cq() waiting */
	lb_lock_put(&cq->push);
	lb_hook(RPMA_LOOPBACK_DELIVER, &cq->ibv);
	while (n--)
		lb_channel_deliver_event(cq);
	lb_hook(RPMA_LOOPBACK_DELIVER_DONE, &cq->ibv);
	lb_lock_get(&cq->push);
	cq->delivering--;
	lb_lock_put(&cq->push);
}

void lb_due_pay(struct lb_due *due)
{
	struct lb_cq *cq;

	while ((cq = due->first)) {
		due->first = cq->due_next;
		pay(cq);
	}
}
