/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* waiter.c -- the list of what waits for a lane; see waiter.h. */

#include "queue/waiter.h"

#include <stdlib.h>

struct rt_waiter *rt_waiter_new(void (*eased)(void *arg), void *arg)
{
	struct rt_waiter *waiter = calloc(1, sizeof(*waiter));

	if (waiter == NULL)
		return NULL;
	CDS_INIT_LIST_HEAD(&waiter->link);
	waiter->eased = eased;
	waiter->arg = arg;
	return waiter;
}

void rt_waiter_delete(struct rt_waiter *waiter)
{
	if (waiter == NULL)
		return;
	cds_list_del(&waiter->link);
	free(waiter);
}

void rt_waiter_add(struct cds_list_head *waiters, struct rt_waiter *waiter)
{
	if (cds_list_empty(&waiter->link))
		cds_list_add_tail(&waiter->link, waiters);
}

bool rt_waiter_answer(struct cds_list_head *waiters)
{
	struct rt_waiter *waiter;

	if (cds_list_empty(waiters))
		return false;
	waiter = cds_list_first_entry(waiters, struct rt_waiter, link);
	cds_list_del_init(&waiter->link);
	waiter->eased(waiter->arg);
	return true;
}
