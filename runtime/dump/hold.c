/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hold.c -- which objects hold a queue whose delete was refused.
 */

#include "dump/snapshot.h"

#include <stdio.h>

void rt_dump_hold(struct rt_dump *dump, uint32_t queue, const char *by)
{
	struct rt_dump_hold *hold;
	uint32_t i;

	if (!dump->has_refused)
		return;
	for (i = 0; i < dump->queues_count; i++) {
		if (dump->queues[i].view.id == queue)
			break;
	}
	if (i == dump->queues_count || !dump->queues[i].view.delete_refused ||
	    dump->holds_count++ >= RT_DUMP_HOLDS)
		return;
	hold = &dump->holds[dump->holds_count - 1];
	hold->queue = queue;
	snprintf(hold->by, sizeof(hold->by), "%s", by);
}
