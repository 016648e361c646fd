/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mpsc.c -- see mpsc.h. liburcu orders the hand-over of a node by itself, in
 * code that ThreadSanitizer does not see. The sanitizer sees the release and
 * the acquire of the node here, which cost a store that liburcu would do and a
 * load [INBOX-1].
 */

#include "base/mpsc.h"

#include <stdatomic.h>
#include <stddef.h>

/* the word of a node that both sides access */
static _Atomic(struct cds_wfcq_node *) *next_of(struct cds_wfcq_node *node)
{
	return (_Atomic(struct cds_wfcq_node *) *)&node->next;
}

void rt_mpsc_init(struct rt_mpsc *mpsc)
{
	__cds_wfcq_init(&mpsc->head, &mpsc->tail);
}

void rt_mpsc_push_mt(struct rt_mpsc *mpsc, struct cds_wfcq_node *node)
{
	/* release [INBOX-1]: the node's content. Stores what
	 * cds_wfcq_node_init() would store */
	atomic_store_explicit(next_of(node), NULL, memory_order_release);
	cds_wfcq_enqueue(&mpsc->head, &mpsc->tail, node);
}

struct cds_wfcq_node *rt_mpsc_pop_owner(struct rt_mpsc *mpsc)
{
	struct cds_wfcq_node *node;

	node = __cds_wfcq_dequeue_nonblocking(&mpsc->head, &mpsc->tail);
	/* half linked counts as none: its pusher rings when it is through */
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
