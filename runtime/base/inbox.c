/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* inbox.c -- messages to one thread; see inbox.h. */

#include "base/inbox.h"

#include <limits.h>
#include <stddef.h>

int rt_inbox_init(struct rt_inbox *inbox, struct rt_bell *bell)
{
	rt_mpsc_init(&inbox->shared);
	rt_mpsc_init(&inbox->taken);
	inbox->bell = bell;
	return 0;
}

void rt_inbox_fini(struct rt_inbox *inbox)
{
	inbox->bell = NULL;
}

void rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg)
{
	rt_mpsc_push_mt(&inbox->shared, &msg->node);
	rt_bell_ring(inbox->bell);
}

int rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner, int max)
{
	struct cds_wfcq_node *node;
	struct rt_msg *msg;
	int count = 0;

	/* what cannot be spliced now is rung for later */
	__cds_wfcq_splice_nonblocking(&inbox->taken.head, &inbox->taken.tail,
				      &inbox->shared.head, &inbox->shared.tail);
	while (count < max &&
	       (node = rt_mpsc_pop_owner(&inbox->taken)) != NULL) {
		msg = caa_container_of(node, struct rt_msg, node);
		msg->fn(msg, owner);
		count++;
	}
	return count;
}

int rt_inbox_run_owner(struct rt_inbox *inbox, void *owner)
{
	return rt_inbox_run_some_owner(inbox, owner, INT_MAX);
}
