/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel.c -- completion channels. The fd is an eventfd that counts: one
 * unit per event, so that poll, epoll (edges too), O_NONBLOCK and several
 * readers work as with a kernel device. Which CQs the events are of is a list
 * under channel.lock, made longer before the unit is added.
 */

#include "cq/channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cancel.h"
#include "base/fd.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/service.h"
#include "base/zalloc.h"
#include "cq/cq.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/object.h"
#include "rpma_loopback.h"

static _Atomic uint64_t events;

uint64_t lb_channel_event_count(void)
{
	/* relaxed: a counter */
	return atomic_load_explicit(&events, memory_order_relaxed);
}

/* --- events */

void lb_channel_deliver(struct lb_cq *cq, uint32_t n)
{
	struct lb_channel *ch = cq->channel;

	pthread_mutex_lock(&ch->lock);
	cq->pending += n;
	if (lb_list_is_empty(&cq->node))
		lb_list_push(&ch->events, &cq->node);
	pthread_mutex_unlock(&ch->lock);
	/* relaxed: a counter */
	atomic_fetch_add_explicit(&events, n, memory_order_relaxed);
	lb_fd_ring(ch->ibv.fd, n);
}

/* A late event: its CQ may have gone meanwhile, or be another one. */
static void deliver_late(void *arg)
{
	struct lb_cq *cq = arg;

	pthread_mutex_lock(&lb.big);
	if (!lb_object_find(cq, LB_CQ) || !cq->channel) {
		pthread_mutex_unlock(&lb.big);
		return;
	}
	lb_lock_get(&cq->push);
	cq->delivering++; /* keeps ibv_destroy_cq() waiting */
	lb_lock_put(&cq->push);
	pthread_mutex_unlock(&lb.big);
	lb_channel_deliver(cq, 1);
	lb_lock_get(&cq->push);
	cq->delivering--;
	lb_lock_put(&cq->push);
}

void lb_channel_deliver_event(struct lb_cq *cq)
{
	uint32_t delay_us = 0;

	switch (lb_fault_event("cq", &delay_us)) {
	case LB_EVENT_PASS:
		lb_channel_deliver(cq, 1);
		break;
	case LB_EVENT_DOUBLE:
		lb_channel_deliver(cq, 2);
		break;
	case LB_EVENT_LATE:
		if (lb_service_post(deliver_late, cq, delay_us * 1000ull))
			lb_channel_deliver(cq, 1);
		break;
	case LB_EVENT_DROP:
		break;
	}
}

void lb_channel_forget(struct lb_cq *cq)
{
	struct lb_channel *ch = cq->channel;
	uint32_t n;

	pthread_mutex_lock(&ch->lock);
	n = cq->pending;
	cq->pending = 0;
	lb_list_del(&cq->node);
	pthread_mutex_unlock(&ch->lock);
	lb_fd_unring(ch->ibv.fd, n);
}

static struct lb_cq *next_event(struct lb_channel *ch)
{
	struct lb_cq *cq = NULL;

	pthread_mutex_lock(&ch->lock);
	if (!lb_list_is_empty(&ch->events)) {
		cq = lb_entry(ch->events.next, struct lb_cq, node);
		lb_list_del(&cq->node);
		if (--cq->pending)
			lb_list_push(&ch->events, &cq->node);
		cq->reported++;
		cq->reader = pthread_self();
	}
	pthread_mutex_unlock(&ch->lock);
	return cq;
}

LB_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
			       struct ibv_cq **cq, void **cq_context)
{
	struct lb_channel *ch = (struct lb_channel *)channel;
	struct lb_cq *found;
	int err = lb_fault_errno("ibv_get_cq_event");

	if (!err && ch->magic == LB_INHERITED)
		err = lb_object_refuse(&ch->obj);
	if (err || ch->magic != LB_CHANNEL) {
		errno = err ? err : EINVAL;
		return -1;
	}
	lb_hook(RPMA_LOOPBACK_GET_EVENT, channel);
	do {
		if (lb_fd_wait(channel->fd))
			return -1;
		/* none: its CQ was destroyed after we were let through */
		found = next_event(ch);
	} while (!found);
	*cq = &found->ibv;
	*cq_context = found->ibv.cq_context;
	lb_hook(RPMA_LOOPBACK_GET_EVENT_DONE, &found->ibv);
	return 0;
}

LB_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	lb_hook(RPMA_LOOPBACK_ACK, cq);
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
	lb_hook(RPMA_LOOPBACK_ACK_DONE, NULL); /* cq may be gone by now */
}

/* --- the objects */

static int attach(struct lb_channel *ch, struct ibv_context *context)
{
	struct lb_obj *ctx = lb_object_find(context, LB_CONTEXT);
	int err;

	if (!ctx)
		return EINVAL;
	err = lb_object_add(&ch->obj, &ch->ibv, LB_CHANNEL, ctx->dev, NULL);
	if (!err)
		ctx->refs++;
	return err;
}

LB_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	LB_NOT_CANCELLED;
	struct lb_channel *ch = NULL;
	int err = lb_fault_errno("ibv_create_comp_channel");

	if (!err && !(ch = lb_zalloc(sizeof(*ch))))
		err = ENOMEM;
	if (!err) {
		ch->magic = LB_CHANNEL;
		lb_list_init(&ch->events);
		pthread_mutex_init(&ch->lock, NULL);
		ch->ibv.context = context;
		ch->ibv.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		err = ch->ibv.fd < 0 ? errno : 0;
	}
	if (!err) {
		pthread_mutex_lock(&lb.big);
		err = attach(ch, context);
		pthread_mutex_unlock(&lb.big);
		if (err)
			close(ch->ibv.fd);
	}
	if (!err)
		return &ch->ibv;
	free(ch);
	lb_error_of("ibv_create_comp_channel", err);
	return NULL;
}

LB_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	LB_NOT_CANCELLED;
	struct lb_channel *ch = (struct lb_channel *)channel;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, channel);
	err = lb_object_retire("ibv_destroy_comp_channel", channel, LB_CHANNEL,
			       &obj);
	if (err)
		return err;
	lb_device_context_of(channel->context)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, channel);
	ch->magic = 0;
	close(channel->fd);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
	return 0;
}

/* --- fork */

static void inherit(struct lb_obj *obj)
{
	struct lb_channel *ch = obj->handle;

	ch->magic = LB_INHERITED;
	pthread_mutex_init(&ch->lock, NULL);
	lb_list_init(&ch->events);
}

void lb_channel_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_CHILD)
		lb_object_inherit(LB_CHANNEL, inherit);
}
