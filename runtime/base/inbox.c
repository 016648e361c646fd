/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inbox.c -- messages to a thread, and the queue of nodes below the messages;
 * see inbox.h.
 *
 * liburcu orders the hand-over of a node by itself, in code that
 * ThreadSanitizer does not see. The release and the acquire of the node in this
 * file are for the sanitizer: the store replaces a store of liburcu, the load
 * is additional [INBOX-1].
 */

#include "base/inbox.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>

/* ----------------------------------------------------------------- mpsc --- */

/* Returns the word of a node that both sides access. */
static _Atomic(struct cds_wfcq_node *) *next_of(struct cds_wfcq_node *node)
{
	return (_Atomic(struct cds_wfcq_node *) *)&node->next;
}

void rt_mpsc_push_mt(struct rt_mpsc *mpsc, struct cds_wfcq_node *node)
{
	/* release [INBOX-1]: publishes the node's content to the acquire in
	 * rt_mpsc_pop_owner(). The stored value is the value that
	 * cds_wfcq_node_init() would store */
	atomic_store_explicit(next_of(node), NULL, memory_order_release);
	cds_wfcq_enqueue(&mpsc->head, &mpsc->tail, node);
}

struct cds_wfcq_node *rt_mpsc_pop_owner(struct rt_mpsc *mpsc)
{
	struct cds_wfcq_node *node;

	node = __cds_wfcq_dequeue_nonblocking(&mpsc->head, &mpsc->tail);
	/* a half linked node counts as no node: the pusher rings after the
	 * link */
	if (node == NULL || node == CDS_WFCQ_WOULDBLOCK)
		return NULL;
	/* acquire [INBOX-1]: pairs with the release in rt_mpsc_push_mt() */
	(void)atomic_load_explicit(next_of(node), memory_order_acquire);
	return node;
}

bool rt_mpsc_is_empty_mt(struct rt_mpsc *mpsc)
{
	return cds_wfcq_empty(&mpsc->head, &mpsc->tail);
}

/* ---------------------------------------------------------------- inbox --- */

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

	/* the thread whose push is not linked yet rings when the link is
	 * made */
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
