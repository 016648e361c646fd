/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mpsc.c -- see mpsc.h. liburcu's code is not compiled with ThreadSanitizer, so
 * the hand-over of a node is annotated here and nowhere else [INBOX-1].
 */

#include "base/mpsc.h"

#include <stddef.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define hand_over(node) __tsan_release(node)
#define take_over(node) __tsan_acquire(node)
#else
#define hand_over(node) ((void)(node))
#define take_over(node) ((void)(node))
#endif

void rt_mpsc_init(struct rt_mpsc *mpsc)
{
	__cds_wfcq_init(&mpsc->head, &mpsc->tail);
}

void rt_mpsc_push_mt(struct rt_mpsc *mpsc, struct cds_wfcq_node *node)
{
	cds_wfcq_node_init(node);
	hand_over(node);
	cds_wfcq_enqueue(&mpsc->head, &mpsc->tail, node);
}

struct cds_wfcq_node *rt_mpsc_pop_owner(struct rt_mpsc *mpsc)
{
	struct cds_wfcq_node *node;

	node = __cds_wfcq_dequeue_nonblocking(&mpsc->head, &mpsc->tail);
	/* half linked counts as none: its pusher rings when it is through */
	if (node == NULL || node == CDS_WFCQ_WOULDBLOCK)
		return NULL;
	take_over(node);
	return node;
}

bool rt_mpsc_is_empty_mt(struct rt_mpsc *mpsc)
{
	return cds_wfcq_empty(&mpsc->head, &mpsc->tail);
}
