/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mpsc.h -- a queue of nodes from any thread to one: liburcu's wait-free queue,
 * wrapped so that one file annotates the hand-over for ThreadSanitizer
 * [INBOX-1], and so that no call blocks.
 *
 * A pusher stopped half way hides its node and those behind it; the pusher
 * rings after its push, so "nothing to take" always means "or a ring comes".
 */

#ifndef RT_BASE_MPSC_H
#define RT_BASE_MPSC_H

#include <stdbool.h>
#include <stddef.h>

#include <urcu/system.h>
#include <urcu/wfcqueue.h>

#include "base/order.h"

struct rt_mpsc {
	/* the owner's */
	struct __cds_wfcq_head head;
	/* padded, not aligned: may be embedded in what malloc() made */
	char apart[RT_CACHE_LINE - sizeof(struct __cds_wfcq_head)];
	/* the pushers' */
	struct cds_wfcq_tail tail;
	char apart_too[RT_CACHE_LINE - sizeof(struct cds_wfcq_tail)];
};

void rt_mpsc_init(struct rt_mpsc *mpsc);
/* Any thread; wait-free. The node is the owner's from here. */
void rt_mpsc_push_mt(struct rt_mpsc *mpsc, struct cds_wfcq_node *node);
/* The oldest node, or NULL when none can be taken now. */
struct cds_wfcq_node *rt_mpsc_pop_owner(struct rt_mpsc *mpsc);
/* True: rt_mpsc_pop_owner() would find none. False: a node is there, and can be
 * taken now or very soon. Inline, with liburcu's inline calls: each round
 * asks. */
static inline bool rt_mpsc_is_empty_owner(const struct rt_mpsc *mpsc)
{
	/* the pusher of a half linked node rings at its end */
	return CMM_LOAD_SHARED(mpsc->head.node.next) == NULL;
}

/* Likewise from any thread: a hint. */
bool rt_mpsc_is_empty_mt(struct rt_mpsc *mpsc);

#endif /* RT_BASE_MPSC_H */
