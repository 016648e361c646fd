/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq.c -- the verbs that make and destroy a poller's channels and CQs;
 * cq_pool.c decides when. Any thread that may block, with no lock.
 */

#include "poller/cq.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/device.h"
#include "base/refuse.h"
#include "base/runtime.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/qp_table.h"

/* ------------------------------------------------------------- channels --- */

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return rt_refuse_system("fcntl");
	return 0;
}

static int query_max_cqe(struct ibv_context *ibv_ctx, uint32_t *max_cqe)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(ibv_ctx, &attr))
		return rt_refuse_system("ibv_query_device");
	*max_cqe = (uint32_t)attr.max_cqe;
	return 0;
}

int rt_cq_channel_new(struct rt_poller *poller, struct ibv_context *ibv_ctx,
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
	ret = query_max_cqe(ibv_ctx, &channel->max_cqe);
	if (ret == 0)
		ret = rpma_channel_new(ibv_ctx, &channel->channel);
	if (ret)
		goto err_free;
	rpma_channel_get_fd(channel->channel, &channel->fd);
	rpma_channel_get_ibv_channel(channel->channel, &channel->ibv_channel);
	ret = set_nonblocking(channel->fd);
	if (ret)
		goto err_channel_delete;
	event.data.fd = channel->fd;
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, channel->fd, &event))
		ret = rt_refuse_system("epoll_ctl");
	if (ret)
		goto err_channel_delete;
	*channel_ptr = channel;
	return 0;
err_channel_delete:
	rpma_channel_delete(&channel->channel);
err_free:
	free(channel);
	return ret;
}

int rt_cq_channel_delete(struct rt_channel *channel)
{
	/* closing the fd ends its polling */
	int ret = rpma_channel_delete(&channel->channel);

	free(channel);
	return ret;
}

/* ------------------------------------------------------------------ CQs --- */

/* The vector that spreads pollers over the device's. */
static int comp_vector(const struct rt_poller *poller,
		       const struct ibv_context *ibv_ctx)
{
	int vectors = ibv_ctx->num_comp_vectors;

	return vectors > 1 ? poller->index % vectors : 0;
}

/* How many entries: as configured, at least what is needed, at most what the
 * device has. */
static int choose_size(const struct rt_channel *channel, uint32_t room,
		       int *cqe)
{
	uint32_t entries = channel->poller->rt->cfg.cq_size;

	if (entries < room)
		entries = room;
	if (entries > channel->max_cqe)
		entries = channel->max_cqe;
	if (entries < room) {
		rt_refuse_later(RPMA_E_NOMEM,
				"the sizes of the queues need %ld completions, "
				"more than a CQ of the device holds",
				(long)room);
		return RPMA_E_NOMEM;
	}
	*cqe = (int)entries;
	return 0;
}

int rt_cq_new(struct rt_channel *channel, uint32_t room, struct rt_cq **cq_ptr)
{
	struct rt_cq *cq;
	int cqe;
	int ret;

	ret = choose_size(channel, room, &cqe);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return RPMA_E_NOMEM;
	cq->channel = channel;
	cq->place = -1;
	CDS_INIT_LIST_HEAD(&cq->users);
	CDS_INIT_LIST_HEAD(&cq->sweeping);
	CDS_INIT_LIST_HEAD(&cq->draining);
	rt_numbers_init(&cq->numbers);
	ret = rt_route_table_new(&cq->routes, &cq->by_lane);
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
	*cq_ptr = cq;
	return 0;
err_free:
	rt_cq_free(cq);
	return ret;
}

int rt_cq_destroy(struct rt_cq *cq)
{
	int ret;

	rpma_cq_release(cq->cq, cq->channel->poller);
	ret = rpma_cq_delete(&cq->cq);
	if (cq->cq != NULL)
		rpma_cq_claim(cq->cq, cq->channel->poller);
	return ret;
}

void rt_cq_free(struct rt_cq *cq)
{
	rt_numbers_fini(&cq->numbers);
	rt_qp_table_delete(cq->qps);
	free(cq->routes);
	free(cq);
}

/* ------------------------------------------------------------ failures --- */

static struct rt_inbox *control_of(const struct rt_channel *channel)
{
	return &channel->dev->control.inbox;
}

void rt_cq_gone_poller(struct rt_cq *cq)
{
	rt_inbox_push_mt(control_of(cq->channel), &cq->gone_msg);
}

void rt_cq_fail_mt(struct rt_cq *cq)
{
	/* relaxed: only the first caller matters; the inbox orders the rest */
	if (!atomic_exchange_explicit(&cq->fail_sent, true,
				      memory_order_relaxed))
		rt_inbox_push_mt(control_of(cq->channel), &cq->fail_msg);
}

void rt_cq_fail_channel_poller(struct rt_channel *channel)
{
	rt_inbox_push_mt(control_of(channel), &channel->fail_msg);
}
