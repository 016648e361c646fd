/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.c -- the process's event thread. Sources are added from any thread
 * and removed on the event thread itself, between two batches of events, so
 * that ready() never runs on a removed one.
 */

#define _GNU_SOURCE
#include "events.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "control.h"
#include "park.h"

#define BATCH 16

/* who wants the async events of a context */
struct subscriber {
	struct rt_inbox *inbox;
	void (*fn)(struct rt_msg *msg, void *owner);
	struct subscriber *next;
};

/* the async events of one context; the event thread's */
struct async {
	struct rt_source source;
	struct ibv_context *ibv_ctx;
	struct subscriber *subscribers;
	struct async *next;
};

static struct {
	pthread_mutex_t lock; /* of count: start and stop */
	unsigned count;
	pthread_t thread;
	int epfd;
	struct rt_bell bell;
	struct rt_inbox inbox;
	_Atomic bool stopping;
	struct async *asyncs; /* the event thread's */
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ----------------------------------------------------------- the thread --- */

static void wait_for_events(void)
{
	struct epoll_event batch[BATCH];
	struct rt_source *source;
	int n = 0;
	int i;

	rt_bell_prepare(&events.bell);
	/* acquire: pairs with the release in rt_events_put() */
	if (rt_inbox_is_empty(&events.inbox) &&
	    !atomic_load_explicit(&events.stopping, memory_order_acquire))
		n = epoll_wait(events.epfd, batch, BATCH, -1);
	rt_bell_cancel(&events.bell);
	for (i = 0; i < n; i++) {
		source = batch[i].data.ptr;
		if (source != NULL) /* NULL: the bell */
			source->ready(source);
	}
}

static void *events_main(void *arg)
{
	(void)arg;
	for (;;) {
		wait_for_events();
		rt_inbox_run_owner(&events.inbox, NULL);
		/* acquire: pairs with the release in rt_events_put() */
		if (atomic_load_explicit(&events.stopping,
					 memory_order_acquire) &&
		    rt_inbox_is_empty(&events.inbox))
			break;
	}
	return NULL;
}

static int start(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ret = RPMA_E_PROVIDER;

	/* relaxed: the thread's creation orders it */
	atomic_store_explicit(&events.stopping, false, memory_order_relaxed);
	events.asyncs = NULL;
	events.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (events.epfd < 0)
		return RPMA_E_PROVIDER;
	ret = rt_bell_init(&events.bell);
	if (ret)
		goto err_close_epfd;
	ret = rt_inbox_init(&events.inbox, &events.bell);
	if (ret)
		goto err_fini_bell;
	ret = RPMA_E_PROVIDER;
	if (epoll_ctl(events.epfd, EPOLL_CTL_ADD, rt_bell_fd(&events.bell),
		      &event) ||
	    pthread_create(&events.thread, NULL, events_main, NULL))
		goto err_fini_inbox;
	return 0;
err_fini_inbox:
	rt_inbox_fini(&events.inbox);
err_fini_bell:
	rt_bell_fini(&events.bell);
err_close_epfd:
	close(events.epfd);
	return ret;
}

int rt_events_get(void)
{
	int ret = 0;

	pthread_mutex_lock(&events.lock);
	if (events.count == 0)
		ret = start();
	if (ret == 0)
		events.count++;
	pthread_mutex_unlock(&events.lock);
	return ret;
}

void rt_events_put(void)
{
	pthread_mutex_lock(&events.lock);
	if (--events.count == 0) {
		/* release: pairs with the acquires of the thread */
		atomic_store_explicit(&events.stopping, true,
				      memory_order_release);
		rt_bell_ring(&events.bell);
		pthread_join(events.thread, NULL);
		rt_inbox_fini(&events.inbox);
		rt_bell_fini(&events.bell);
		close(events.epfd);
	}
	pthread_mutex_unlock(&events.lock);
}

void rt_events_forked(void)
{
	pthread_mutex_init(&events.lock, NULL);
	events.count = 0;
}

/* -------------------------------------------------------------- sources --- */

int rt_events_add(struct rt_source *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	return epoll_ctl(events.epfd, EPOLL_CTL_ADD, source->fd, &event)
		       ? RPMA_E_PROVIDER
		       : 0;
}

void rt_events_mute(struct rt_source *source)
{
	epoll_ctl(events.epfd, EPOLL_CTL_DEL, source->fd, NULL);
}

static int remove_source(void *arg)
{
	rt_events_mute(arg);
	return 0;
}

void rt_events_remove(struct rt_source *source)
{
	rt_call(NULL, &events.inbox, remove_source, source);
}

/* --------------------------------------------------------- async events --- */

static bool is_of_cq(enum ibv_event_type type)
{
	return type == IBV_EVENT_CQ_ERR;
}

static bool is_of_qp(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

/* A message for each subscriber, linked by the order of subscribers; false:
 * no memory, and none is left. */
static bool make_messages(const struct async *async, struct rt_async_msg **msgs,
			  int count)
{
	int i;

	(void)async;
	for (i = 0; i < count; i++) {
		msgs[i] = calloc(1, sizeof(*msgs[i]));
		if (msgs[i] != NULL)
			continue;
		while (i-- > 0)
			free(msgs[i]);
		return false;
	}
	return true;
}

static int count_subscribers(const struct async *async)
{
	const struct subscriber *sub;
	int count = 0;

	for (sub = async->subscribers; sub != NULL; sub = sub->next)
		count++;
	return count;
}

static void fill(struct rt_async_msg *msg, const struct async *async,
		 const struct ibv_async_event *event)
{
	msg->ibv_ctx = async->ibv_ctx;
	msg->type = event->event_type;
	if (is_of_cq(event->event_type))
		msg->ibv_cq = event->element.cq;
	if (is_of_qp(event->event_type))
		msg->qp_num = event->element.qp->qp_num;
}

/* One event, copied, acknowledged, forwarded; false: there is none. */
static bool read_async_event(struct async *async)
{
	int count = count_subscribers(async);
	struct rt_async_msg *msgs[count > 0 ? count : 1];
	struct ibv_async_event event;
	struct subscriber *sub;
	int i;

	/* memory first: an event that was read must not be lost */
	if (!make_messages(async, msgs, count))
		return false;
	if (ibv_get_async_event(async->ibv_ctx, &event)) {
		for (i = 0; i < count; i++)
			free(msgs[i]);
		return false;
	}
	for (i = 0; i < count; i++)
		fill(msgs[i], async, &event);
	ibv_ack_async_event(&event);
	for (i = 0, sub = async->subscribers; i < count; i++, sub = sub->next) {
		msgs[i]->msg.fn = sub->fn;
		rt_inbox_push_mt(sub->inbox, &msgs[i]->msg);
	}
	return true;
}

static void async_ready(struct rt_source *source)
{
	while (read_async_event((struct async *)source))
		;
}

struct subscription {
	struct ibv_context *ibv_ctx;
	struct subscriber *subscriber;
};

static struct async *async_new(struct ibv_context *ibv_ctx)
{
	int flags = fcntl(ibv_ctx->async_fd, F_GETFL);
	struct async *async;

	if (flags < 0 || fcntl(ibv_ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		return NULL;
	async = calloc(1, sizeof(*async));
	if (async == NULL)
		return NULL;
	async->source.fd = ibv_ctx->async_fd;
	async->source.ready = async_ready;
	async->ibv_ctx = ibv_ctx;
	if (rt_events_add(&async->source)) {
		free(async);
		return NULL;
	}
	async->next = events.asyncs;
	events.asyncs = async;
	return async;
}

static int subscribe(void *arg)
{
	struct subscription *subscription = arg;
	struct async *async;
	struct subscriber *sub;

	for (async = events.asyncs; async != NULL; async = async->next) {
		if (async->ibv_ctx == subscription->ibv_ctx)
			break;
	}
	if (async == NULL)
		async = async_new(subscription->ibv_ctx);
	if (async == NULL)
		return RPMA_E_PROVIDER;
	for (sub = async->subscribers; sub != NULL; sub = sub->next) {
		if (sub->inbox == subscription->subscriber->inbox) {
			free(subscription->subscriber);
			return 0;
		}
	}
	subscription->subscriber->next = async->subscribers;
	async->subscribers = subscription->subscriber;
	return 0;
}

int rt_async_subscribe(struct ibv_context *ibv_ctx, struct rt_inbox *inbox,
		       void (*fn)(struct rt_msg *msg, void *owner))
{
	struct subscription subscription = {.ibv_ctx = ibv_ctx};
	int ret;

	subscription.subscriber = malloc(sizeof(*subscription.subscriber));
	if (subscription.subscriber == NULL)
		return RPMA_E_NOMEM;
	*subscription.subscriber =
		(struct subscriber){.inbox = inbox, .fn = fn};
	ret = rt_call(NULL, &events.inbox, subscribe, &subscription);
	if (ret)
		free(subscription.subscriber);
	return ret;
}

static void drop_subscriber(struct async *async, const struct rt_inbox *inbox)
{
	struct subscriber **link = &async->subscribers;
	struct subscriber *sub;

	while ((sub = *link) != NULL) {
		if (sub->inbox == inbox) {
			*link = sub->next;
			free(sub);
		} else {
			link = &sub->next;
		}
	}
}

static int unsubscribe(void *arg)
{
	struct async **link = &events.asyncs;
	struct async *async;

	while ((async = *link) != NULL) {
		drop_subscriber(async, arg);
		if (async->subscribers == NULL) {
			*link = async->next;
			rt_events_mute(&async->source);
			free(async);
		} else {
			link = &async->next;
		}
	}
	return 0;
}

void rt_async_unsubscribe(struct rt_inbox *inbox)
{
	rt_call(NULL, &events.inbox, unsubscribe, inbox);
}
