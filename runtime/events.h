/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.h -- the event thread: one in the process, counted, shared by all
 * runtimes. It reads CM channels and the async events of every ibv_context in
 * use, copies, acknowledges, and only then forwards to a control thread.
 */

#ifndef RT_EVENTS_H
#define RT_EVENTS_H

#include <infiniband/verbs.h>

#include "rpma_rt.h"
#include "inbox.h"

/* something readable; ready() runs on the event thread, may not block */
struct rt_source {
	int fd;
	void (*ready)(struct rt_source *source);
};

/* Starts the thread if it is the first. ERRORS: RPMA_E_PROVIDER, _NOMEM */
int rt_events_get(void);
/* Stops it after the last; not from the event thread. */
void rt_events_put(void);

/* ERRORS: RPMA_E_PROVIDER */
int rt_events_add(struct rt_source *source);
/* When it returns, ready() does not run and will not. */
void rt_events_remove(struct rt_source *source);

/* In the child of a fork: there is no thread. */
void rt_events_forked(void);

/* Event thread: it is not waited for any more; still to be removed. */
void rt_events_mute(struct rt_source *source);

/* what happened to a device's object, as forwarded */
struct rt_async_msg {
	struct rt_msg msg;
	struct ibv_context *ibv_ctx;
	enum ibv_event_type type;
	const void *ibv_cq; /* CQ_ERR: for comparison only */
	uint32_t qp_num;    /* events of a QP */
};

/*
 * Has the async events of ibv_ctx copied to fn(msg, control's owner) by way of
 * inbox; the receiver frees the message. Counted per (context, inbox).
 * ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER
 */
int rt_async_subscribe(struct ibv_context *ibv_ctx, struct rt_inbox *inbox,
		       void (*fn)(struct rt_msg *msg, void *owner));
/* All subscriptions of that inbox end; none is forwarded after it returns. */
void rt_async_unsubscribe(struct rt_inbox *inbox);

#endif /* RT_EVENTS_H */
