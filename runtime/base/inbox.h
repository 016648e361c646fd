/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * inbox.h -- messages from any thread to one: functions that the owner of the
 * inbox runs, with the bell of the owner. Built on the queue of mpsc.h.
 */

#ifndef RT_BASE_INBOX_H
#define RT_BASE_INBOX_H

#include <stdbool.h>

#include "base/bell.h"
#include "base/lang.h"
#include "base/mpsc.h"

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
 * Owner: runs what is there now, oldest first; returns how many. A function
 * may free its message, push others (run by the next call) or push itself
 * again.
 */
int rt_inbox_run_owner(struct rt_inbox *inbox, void *owner);
/* Owner: the same, up to max of them; the others are run later. */
int rt_inbox_run_some_owner(struct rt_inbox *inbox, void *owner, int max);
/* Owner: true when rt_inbox_run_owner() would run none, and a ring comes for
 * the next; false: do not sleep. */
static inline bool rt_inbox_is_empty(const struct rt_inbox *inbox)
{
	return rt_mpsc_is_empty_owner(&inbox->taken) &&
	       rt_mpsc_is_empty_owner(&inbox->shared);
}

#endif /* RT_BASE_INBOX_H */
