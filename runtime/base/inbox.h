/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Messages from any thread to one: liburcu's wait-free queue, wrapped here so
 * that its hand-over is spelled out for ThreadSanitizer in one file [INBOX-1],
 * and so that nobody blocks in it. rt_mpsc is the bare queue; rt_inbox adds
 * the bell of its owner and messages that are functions.
 *
 * A pusher stopped half way hides its message and those behind it; it rings
 * after it is through, so "nothing to take" always means "or a ring comes".
 */

#ifndef RT_BASE_INBOX_H
#define RT_BASE_INBOX_H

#include <stdbool.h>

#include <urcu/wfcqueue.h>

#include "base/bell.h"
#include "base/from.h"
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
/* True: rt_mpsc_pop_owner() would find none. False: something is there, and
 * can be taken now or very soon. */
bool rt_mpsc_is_empty_owner(struct rt_mpsc *mpsc);

/* Likewise from any thread: a hint. */
bool rt_mpsc_is_empty_mt(struct rt_mpsc *mpsc);

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
/* Nobody pushes any more; what is left is not run and not freed. */
void rt_inbox_fini(struct rt_inbox *inbox);
/* Any thread: wait-free, then rings. The message is the owner's from here. */
void rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
/*
 * Owner: runs what is there now, oldest first; returns how many. A function
 * may free its message, push others (run by the next call) or push itself
 * again.
 */
int rt_inbox_run_owner(struct rt_inbox *inbox, void *owner);
/* Owner: the same, up to max of them; the others are run later. */
int rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner, int max);
/* Owner: true when rt_inbox_run_owner() would run none, and a ring comes for
 * the next; false: do not sleep. */
bool rt_inbox_is_empty(struct rt_inbox *inbox);

#endif /* RT_BASE_INBOX_H */
