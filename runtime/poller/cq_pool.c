/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq_pool.c -- completion channels and shared CQs of a poller: made when a
 * connection needs room, destroyed when the poller does not run any more.
 */

#include "poller/cq_pool.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/device.h"
#include "base/runtime.h"
#include "conn/conn.h"
#include "poller/poller.h"
#include "poller/qp_table.h"

/* ------------------------------------------------------------- failures --- */

/* Control thread. */
static void fail_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq = RT_FROM(struct rt_cq, fail_msg, msg);
	struct rpma_rt *rt = owner;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	pthread_mutex_lock(&rt->directory);
	cq->failed = true;
	pthread_mutex_unlock(&rt->directory);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->cq == cq)
			rt_conn_tell_control(conn, RT_CTL_DEVICE);
	}
	pthread_mutex_unlock(&rt->lock);
}

void rt_cq_pool_fail_mt(struct rt_cq *cq)
{
	/* relaxed: only who comes first matters; the inbox orders the rest */
	if (!atomic_exchange_explicit(&cq->fail_sent, true,
				      memory_order_relaxed))
		rt_inbox_push_mt(&cq->channel->dev->control.inbox,
				 &cq->fail_msg);
}

static void cq_event(struct rt_async_object *self, enum ibv_event_type type)
{
	if (type == IBV_EVENT_CQ_ERR)
		rt_cq_pool_fail_mt(RT_FROM(struct rt_cq, async, self));
}

/* Control thread. */
static void fatal_message(struct rt_msg *msg, void *owner)
{
	struct rt_channel *channel = RT_FROM(struct rt_channel, fatal_msg, msg);
	struct rpma_rt *rt = owner;
	struct rpma_rt_conn *conn;

	/* acquire: pairs with the exchange in device_fatal(); it may be sent
	 * again from here on */
	atomic_exchange_explicit(&channel->fatal_sent, false,
				 memory_order_acquire);
	pthread_mutex_lock(&rt->lock);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->cq->channel == channel)
			rt_conn_tell_control(conn, RT_CTL_DEVICE);
	}
	pthread_mutex_unlock(&rt->lock);
}

static void device_fatal(struct rt_async_device *self)
{
	struct rt_channel *channel = RT_FROM(struct rt_channel, device, self);

	/* acq_rel: pairs with fatal_message(): the message is free again */
	if (!atomic_exchange_explicit(&channel->fatal_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&channel->dev->control.inbox,
				 &channel->fatal_msg);
}

/* ----------------------------------------------------- channels and CQs --- */

/* which a connection begins with */
#define CONN_ROUTES 2

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return RPMA_E_PROVIDER;
	return 0;
}

/* REQUIRES: the runtime's lock */
static int channel_new(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		       struct rt_channel **channel_ptr)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct rt_channel *channel;
	int ret;

	channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return RPMA_E_NOMEM;
	channel->poller = poller;
	channel->ibv_ctx = ibv_ctx;
	channel->dev = rt_device_find(poller->rt, ibv_ctx);
	ret = rpma_channel_new(ibv_ctx, &channel->channel);
	if (ret)
		goto err_free;
	rpma_channel_get_fd(channel->channel, &channel->fd);
	rpma_channel_get_ibv_channel(channel->channel, &channel->ibv_channel);
	ret = set_nonblocking(channel->fd);
	if (ret)
		goto err_channel_delete;
	event.data.fd = channel->fd;
	ret = RPMA_E_PROVIDER;
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, channel->fd, &event))
		goto err_channel_delete;
	channel->fatal_msg.fn = fatal_message;
	channel->device = (struct rt_async_device){
		.ibv_ctx = ibv_ctx, .rt = poller->rt, .fatal = device_fatal};
	ret = rt_async_watch(&channel->device);
	if (ret)
		goto err_channel_delete; /* closing the fd ends its polling */
	pthread_mutex_lock(&poller->rt->directory);
	channel->next = poller->channels;
	poller->channels = channel;
	pthread_mutex_unlock(&poller->rt->directory);
	*channel_ptr = channel;
	return 0;
err_channel_delete:
	rpma_channel_delete(&channel->channel);
err_free:
	free(channel);
	return ret;
}

static void cq_free(struct rt_cq *cq)
{
	rt_numbers_fini(&cq->numbers);
	rt_qp_table_delete(cq->qps);
	free(cq->routes);
	free(cq);
}

/* The vector that spreads pollers over the device's. */
static int comp_vector(const struct rt_poller *poller,
		       const struct ibv_context *ibv_ctx)
{
	int vectors = ibv_ctx->num_comp_vectors;

	return vectors > 1 ? poller->index % vectors : 0;
}

/* How many entries: as configured, at least what is needed, at most what the
 * device has. */
static int cq_entries(const struct rt_channel *channel, uint32_t room, int *cqe)
{
	struct ibv_device_attr attr;
	uint32_t entries = channel->poller->rt->cfg.cq_size;

	if (ibv_query_device(channel->ibv_ctx, &attr))
		return RPMA_E_PROVIDER;
	if (entries < room)
		entries = room;
	if (entries > (uint32_t)attr.max_cqe)
		entries = (uint32_t)attr.max_cqe;
	if (entries < room)
		return RPMA_E_NOMEM;
	*cqe = (int)entries;
	return 0;
}

/* REQUIRES: the runtime's lock */
static int cq_new(struct rt_channel *channel, uint32_t room,
		  struct rt_cq **cq_ptr)
{
	struct rt_cq *cq;
	int cqe;
	int ret;

	ret = cq_entries(channel, room, &cqe);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return RPMA_E_NOMEM;
	cq->channel = channel;
	ret = rt_numbers_init(&cq->numbers);
	if (ret == 0)
		ret = rt_route_table_new(&cq->routes);
	if (ret)
		goto err_free;
	ret = rpma_cq_new(channel->ibv_ctx, cqe, channel->channel,
			  comp_vector(channel->poller, channel->ibv_ctx), cq,
			  &cq->cq);
	if (ret)
		goto err_free;
	rpma_cq_claim(cq->cq, channel->poller);
	rpma_cq_get_ibv_cq(cq->cq, &cq->ibv_cq);
	/* what was asked for, not what the device rounded it up to: some
	 * providers do not keep their word */
	cq->cqe = (uint32_t)cqe;
	cq->room = (uint32_t)cqe;
	pthread_mutex_lock(&channel->poller->rt->directory);
	cq->next = channel->cqs;
	channel->cqs = cq;
	pthread_mutex_unlock(&channel->poller->rt->directory);
	cq->fail_msg.fn = fail_message;
	cq->async = (struct rt_async_object){.object = cq->ibv_cq,
					     .event = cq_event};
	rt_async_own(&cq->async);
	cq->add_msg.fn = rt_poller_add_cq;
	rt_inbox_push_mt(&channel->poller->inbox, &cq->add_msg);
	*cq_ptr = cq;
	return 0;
err_free:
	cq_free(cq);
	return ret;
}

static void change_room(struct rt_cq *cq, uint32_t by)
{
	pthread_mutex_t *directory = &cq->channel->poller->rt->directory;

	pthread_mutex_lock(directory);
	cq->room += by;
	pthread_mutex_unlock(directory);
}

/* What the first connection with that SRQ takes besides its own room: any of
 * the SRQ's receives may complete there. */
static uint32_t srq_room(const struct rt_cq *cq, const struct rpma_rt_srq *srq)
{
	if (srq == NULL || (cq != NULL && cq->srq_users[srq->number] > 0))
		return 0;
	return srq->cfg.size;
}

static bool has_room(const struct rt_cq *cq, uint32_t room,
		     const struct rpma_rt_srq *srq)
{
	return !cq->failed && cq->room >= room + srq_room(cq, srq) &&
	       rt_numbers_left(&cq->numbers) >= CONN_ROUTES;
}

int rt_cq_pool_reserve(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		       uint32_t room, struct rpma_rt_srq *srq,
		       struct rt_cq **cq_ptr)
{
	struct rt_channel *channel;
	struct rt_cq *cq;
	int ret = 0;

	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		if (channel->ibv_ctx == ibv_ctx && !channel->failed)
			break;
	}
	if (channel == NULL)
		ret = channel_new(poller, ibv_ctx, &channel);
	if (ret)
		return ret;
	for (cq = channel->cqs; cq != NULL; cq = cq->next) {
		if (has_room(cq, room, srq))
			break;
	}
	if (cq == NULL)
		ret = cq_new(channel, room + srq_room(NULL, srq), &cq);
	if (ret)
		return ret;
	change_room(cq, -(room + srq_room(cq, srq)));
	if (srq != NULL)
		cq->srq_users[srq->number]++;
	*cq_ptr = cq;
	return 0;
}

void rt_cq_pool_unreserve(struct rt_cq *cq, uint32_t room,
			  const struct rpma_rt_srq *srq)
{
	if (srq != NULL)
		cq->srq_users[srq->number]--;
	change_room(cq, room + srq_room(cq, srq));
}

void rt_cq_pool_unwatch(struct rt_poller *poller)
{
	struct rt_channel *channel;
	struct rt_cq *cq;

	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		rt_async_unwatch(&channel->device);
		for (cq = channel->cqs; cq != NULL; cq = cq->next)
			rt_async_disown(&cq->async);
	}
}

int rt_cq_pool_fini(struct rt_poller *poller)
{
	struct rt_channel *channels;
	struct rt_channel *channel;
	struct rt_cq *cq;
	int first = 0;
	int ret;

	poller->cqs_count = 0;
	poller->reading = NULL;

	/* off the directory at once: what it lists lives */
	pthread_mutex_lock(&poller->rt->directory);
	channels = poller->channels;
	poller->channels = NULL;
	pthread_mutex_unlock(&poller->rt->directory);
	while ((channel = channels) != NULL) {
		channels = channel->next;
		while ((cq = channel->cqs) != NULL) {
			channel->cqs = cq->next;
			if (rt_cq_unacked(cq) > 0)
				ibv_ack_cq_events(cq->ibv_cq,
						  rt_cq_unacked(cq));
			rpma_cq_release(cq->cq, poller);
			ret = rpma_cq_delete(&cq->cq);
			first = first ? first : ret;
			cq_free(cq);
		}
		ret = rpma_channel_delete(&channel->channel);
		first = first ? first : ret;
		free(channel);
	}
	return first;
}
