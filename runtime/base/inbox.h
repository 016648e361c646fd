/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inbox.h -- messages from any thread to a single thread: functions that the
 * owner of the inbox runs, with the bell of the owner; and the queue of nodes
 * for the messages.
 */

#ifndef RT_BASE_INBOX_H
#define RT_BASE_INBOX_H

#include <stdbool.h>
#include <stddef.h>

#include <urcu/system.h>
#include <urcu/wfcqueue.h>

#include "base/bell.h"
#include "base/lang.h"
#include "base/order.h"

/* ----------------------------------------------------------------- mpsc --- */

/*
 * A queue of nodes from any thread to a single thread: the wait-free queue of
 * liburcu, wrapped so that a single file annotates the hand-over for
 * ThreadSanitizer [INBOX-1], and so that no call blocks.
 *
 * A pusher stopped half way hides its node and later nodes; the pusher rings
 * after its push, so "nothing to take" always means "or a ring comes".
 */

struct rt_mpsc {
	/* the owner's */
	struct __cds_wfcq_head head;
	/* padded, not aligned: may be embedded in memory of malloc() */
	char apart[RT_CACHE_LINE - sizeof(struct __cds_wfcq_head)];
	/* the pushers' */
	struct cds_wfcq_tail tail;
	char apart_too[RT_CACHE_LINE - sizeof(struct cds_wfcq_tail)];
};

static inline void rt_mpsc_init(struct rt_mpsc *mpsc)
{
	__cds_wfcq_init(&mpsc->head, &mpsc->tail);
}

/* Any thread; wait-free. The node is the owner's from here. */
void rt_mpsc_push_mt(struct rt_mpsc *mpsc, struct cds_wfcq_node *node);
/* Returns the oldest node, or NULL when no node can be taken now. */
struct cds_wfcq_node *rt_mpsc_pop_owner(struct rt_mpsc *mpsc);
/* Returns true if rt_mpsc_pop_owner() would find no node; false if there is a
 * node, to be taken now or very soon. Inline, with inline calls of liburcu:
 * each round asks. */
static inline bool rt_mpsc_is_empty_owner(const struct rt_mpsc *mpsc)
{
	/* the pusher of a half linked node rings at the end */
	return CMM_LOAD_SHARED(mpsc->head.node.next) == NULL;
}

/* Returns rt_mpsc_is_empty_owner() as a hint, from any thread. */
bool rt_mpsc_is_empty_mt(struct rt_mpsc *mpsc);

/* ---------------------------------------------------------------- inbox --- */

struct rt_msg {
	struct cds_wfcq_node node;
	void (*fn)(struct rt_msg *msg, void *owner);
};

struct rt_inbox {
	struct rt_mpsc shared;
	struct rt_mpsc taken; /* spliced off, not run yet; the owner's */
	struct rt_bell *bell; /* immutable: the owner's */
};

/* 0; the bell must outlive the inbox. */
int rt_inbox_init(struct rt_inbox *inbox, struct rt_bell *bell);
/* REQUIRES: no further pushes. Messages left are neither run nor freed. */
void rt_inbox_fini(struct rt_inbox *inbox);
/* Any thread: wait-free, then rings. The message is the owner's from here. */
void rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
/*
 * Owner: runs the present messages, oldest first; returns how many. A function
 * may free its message, push others (run by the next call) or push its message
 * again.
 */
int rt_inbox_run_owner(struct rt_inbox *inbox, void *owner);
/* Owner: the same, up to max of them; the others are run later. */
int rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner, int max);
/* Owner: returns true when rt_inbox_run_owner() would run no message, and a
 * ring comes for the next; false: do not sleep. */
static inline bool rt_inbox_is_empty(const struct rt_inbox *inbox)
{
	return rt_mpsc_is_empty_owner(&inbox->taken) &&
	       rt_mpsc_is_empty_owner(&inbox->shared);
}

#endif /* RT_BASE_INBOX_H */
