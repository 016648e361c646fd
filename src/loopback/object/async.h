/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * async.h -- asynchronous events.
 */

#ifndef LB_OBJECT_ASYNC_H
#define LB_OBJECT_ASYNC_H

#include <pthread.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/list.h"

struct lb_context;

/* Asynchronous events of a QP, CQ or SRQ. Under context.lock. */
struct lb_asyncs {
	struct lb_list queued;
	uint32_t reported; /* given out by ibv_get_async_event() */
};

/* An asynchronous event on its way to ibv_get_async_event(). */
struct lb_async {
	struct lb_list node;	  /* of the context */
	struct lb_list of_object; /* of its QP, CQ or SRQ */
	struct lb_asyncs *of;	  /* of that; NULL: it is the context's */
	struct ibv_async_event event;
};

enum lb_async_target {
	LB_ASYNC_CONTEXT,
	LB_ASYNC_QP,
	LB_ASYNC_CQ,
	LB_ASYNC_SRQ,
};
enum lb_async_target lb_async_target(enum ibv_event_type type);
/*
 * An event of element, whose events of is; of ctx if that is NULL. The caller
 * keeps the element from being destroyed, a QP by a lock of it. Any lock but
 * context.lock may be held.
 */
void lb_async_add(struct lb_context *ctx, struct lb_asyncs *of,
		  enum ibv_event_type type, void *element);
void lb_async_init(struct lb_asyncs *asyncs);
/* Withdraw the events that are queued. */
void lb_async_forget(struct lb_context *ctx, struct lb_asyncs *asyncs);
void lb_async_fini(struct lb_context *ctx);
uint64_t lb_async_count(void);

#endif /* LB_OBJECT_ASYNC_H */
