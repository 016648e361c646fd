/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * async.c -- asynchronous events: a list of the context under context.lock,
 * and an eventfd that counts them. An object's events are withdrawn when it
 * is destroyed, except those already given out, which must be acknowledged;
 * it has a list of them, so that this takes no search.
 */

#include "object/async.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/fd.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/log.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/object.h"
#include "rpma_loopback.h"

static _Atomic uint64_t count;

uint64_t lb_async_count(void)
{
	/* relaxed: a counter */
	return atomic_load_explicit(&count, memory_order_relaxed);
}

enum lb_async_target lb_async_target(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return LB_ASYNC_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return LB_ASYNC_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return LB_ASYNC_SRQ;
	default:
		return LB_ASYNC_CONTEXT;
	}
}

void lb_async_init(struct lb_asyncs *asyncs)
{
	lb_list_init(&asyncs->queued);
}

/* --- making them; any lock but context.lock may be held */

void lb_async_add(struct lb_context *ctx, struct lb_asyncs *of,
		  enum ibv_event_type type, void *element)
{
	struct lb_async *async = calloc(1, sizeof(*async));

	if (!async) {
		lb_log(0, "no memory: asynchronous event %d is lost", type);
		return;
	}
	async->of = of;
	async->event.event_type = type;
	if (of)
		async->event.element.qp = element; /* a union of pointers */
	else
		async->event.element.port_num = 1;
	lb_list_init(&async->of_object);
	/* relaxed: a counter */
	atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	pthread_mutex_lock(&ctx->lock);
	lb_list_push(&ctx->asyncs, &async->node);
	if (of)
		lb_list_push(&of->queued, &async->of_object);
	pthread_mutex_unlock(&ctx->lock);
	lb_fd_ring(ctx->vctx.context.async_fd, 1);
}

static void async_delete(struct lb_async *async)
{
	lb_list_del(&async->node);
	lb_list_del(&async->of_object);
	free(async);
}

void lb_async_forget(struct lb_context *ctx, struct lb_asyncs *asyncs)
{
	const struct lb_list *queued = &asyncs->queued;
	uint32_t n = 0;

	pthread_mutex_lock(&ctx->lock);
	for (; !lb_list_is_empty(queued); n++)
		async_delete(
			lb_entry(queued->next, struct lb_async, of_object));
	pthread_mutex_unlock(&ctx->lock);
	lb_fd_unring(ctx->vctx.context.async_fd, n);
}

/* --- giving them out */

static bool next_event(struct lb_context *ctx, struct ibv_async_event *event)
{
	struct lb_async *async;
	bool found;

	pthread_mutex_lock(&ctx->lock);
	found = !lb_list_is_empty(&ctx->asyncs);
	if (found) {
		async = lb_entry(ctx->asyncs.next, struct lb_async, node);
		*event = async->event;
		if (async->of)
			async->of->reported++;
		async_delete(async);
	}
	pthread_mutex_unlock(&ctx->lock);
	return found;
}

void lb_async_fini(struct lb_context *ctx)
{
	while (!lb_list_is_empty(&ctx->asyncs))
		async_delete(lb_entry(ctx->asyncs.next, struct lb_async, node));
}

LB_EXPORT int ibv_get_async_event(struct ibv_context *context,
				  struct ibv_async_event *event)
{
	struct lb_context *ctx = lb_device_context_of(context);
	int err = lb_fault_errno("ibv_get_async_event");

	if (err || !lb_object_check(context, LB_CONTEXT)) {
		errno = err ? err : EINVAL;
		return -1;
	}
	lb_hook(RPMA_LOOPBACK_GET_EVENT, context);
	do {
		if (lb_fd_wait(context->async_fd))
			return -1;
		/* none: its object was destroyed after we were let through */
	} while (!next_event(ctx, event));
	lb_hook(RPMA_LOOPBACK_GET_EVENT_DONE, context);
	return 0;
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *done)
{
	pthread_mutex_lock(mutex);
	++*done;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

LB_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_qp *qp = event->element.qp;
	struct ibv_cq *cq = event->element.cq;
	struct ibv_srq *srq = event->element.srq;

	lb_hook(RPMA_LOOPBACK_ACK, NULL);
	switch (lb_async_target(event->event_type)) {
	case LB_ASYNC_QP:
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case LB_ASYNC_CQ:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case LB_ASYNC_SRQ:
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case LB_ASYNC_CONTEXT:
		break;
	}
	lb_hook(RPMA_LOOPBACK_ACK_DONE, NULL); /* the object may be gone */
}
