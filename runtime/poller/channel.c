/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel.c -- the completion channels of a poller: events are read after a
 * sleep and acknowledged in batches; CQs that leave are let go. Runs on the
 * poller. doc/protocols/channel.md.
 */

#include "poller/cq_pool.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/runtime.h"
#include "poller/poller.h"

#define LET_GO_BATCH 64 /* most CQs that a round lets go */

static bool channel_has_expired(struct rt_poller *poller)
{
	uint64_t times;

	return read(poller->timer, &times, sizeof(times)) == sizeof(times);
}

static void channel_ack(struct rt_poller *poller, struct rt_cq *cq)
{
	if (rt_cq_unacked(cq) == 0)
		return;
	ibv_ack_cq_events(cq->ibv_cq, rt_cq_unacked(cq));
	rt_cq_set_unacked(cq, 0);
	RT_STAT_ADD(poller, acks, 1);
}

void rt_channel_lose_fds(struct rt_poller *poller, int err)
{
	if (poller->threaded && !poller->has_lost_fds) {
		poller->has_lost_fds = true;
		rt_bell_lose_fd(&poller->bell);
	}
	rt_fds_lost_mt(poller->rt, err);
}

/* Gives a channel up, which wakes the poller no more: the channel's connections
 * die, and new connections get another channel. */
static void channel_fail(struct rt_poller *poller, struct rt_channel *channel)
{
	int i;

	channel->dead = true;
	epoll_ctl(poller->epfd, EPOLL_CTL_DEL, channel->fd, NULL);
	if (channel->is_adopted) /* its CQs are still polled in each round */
		return;
	/* before the CQs: the channel is out of use when a connection has
	 * died */
	rt_cq_fail_channel_poller(channel);
	for (i = 0; i < poller->cqs_count; i++) {
		if (poller->cqs[i]->channel == channel)
			rt_cqs_fail_poller(poller, poller->cqs[i]);
	}
}

/* Finds a CQ of an adopted channel, whose list no thread changes while the
 * poller has the channel. Not inlined: the poller must not read the list of
 * another channel, not even speculatively. */
__attribute__((noinline)) static struct rt_cq *
channel_adopted_cq_of(const struct rt_channel *channel,
		      const struct ibv_cq *ibv_cq)
{
	struct rt_cq *cq;

	for (cq = channel->cqs; cq != NULL; cq = cq->next) {
		if (cq->ibv_cq == ibv_cq)
			break;
	}
	return cq;
}

/* Returns the CQ that an event names, or NULL if the CQ is no longer the
 * poller's. The context of an adopted CQ belongs to the CQ's owner. */
static struct rt_cq *channel_cq_of(const struct rt_channel *channel,
				   const struct ibv_cq *ibv_cq,
				   const struct rpma_cq *rpma_cq)
{
	struct rt_cq *cq = NULL;
	void *context;

	if (channel->is_adopted)
		cq = channel_adopted_cq_of(channel, ibv_cq);
	else if (rpma_cq_get_context(rpma_cq, &context) == 0)
		cq = context;
	/* a CQ that was let go may be freed once this event is acknowledged */
	return cq != NULL && cq->let_go ? NULL : cq;
}

/* Reads events until there are no more; returns the number of events. */
static int channel_read(struct rt_poller *poller, struct rt_channel *channel)
{
	struct ibv_cq *ibv_cq;
	struct rt_cq *cq;
	void *rpma_cq;
	int count = 0;

	for (;;) {
		if (ibv_get_cq_event(channel->ibv_channel, &ibv_cq, &rpma_cq)) {
			if (errno == EINTR)
				continue;
			if (errno == EBADF && !channel->is_adopted)
				rt_channel_lose_fds(poller, EBADF);
			if (errno != EAGAIN)
				channel_fail(poller, channel);
			break;
		}
		count++;
		cq = channel_cq_of(channel, ibv_cq, rpma_cq);
		if (cq == NULL) {
			ibv_ack_cq_events(ibv_cq, 1);
			continue;
		}
		rt_cq_set_unacked(cq, rt_cq_unacked(cq) + 1);
		if (rt_cq_unacked(cq) >= RT_ACK_BATCH)
			channel_ack(poller, cq);
	}
	RT_STAT_ADD(poller, events, count);
	return count;
}

/* ------------------------------------------------------- letting CQs go --- */

void rt_channel_leave_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq = caa_container_of(msg, struct rt_cq, leave_msg);
	struct rt_poller *poller = owner;

	cq->leaving_next = poller->leaving;
	poller->leaving = cq;
}

static void channel_let_go(struct rt_poller *poller, struct rt_cq *cq)
{
	rt_cqs_take_out_poller(poller, cq);
	channel_ack(poller, cq);
	cq->let_go = true;
	rt_cq_gone_poller(cq);
}

static void channel_leave_list(struct rt_poller *poller,
			       struct rt_channel *channel)
{
	struct rt_channel **link = &poller->reading;

	while (*link != channel)
		link = &(*link)->poller_next;
	*link = channel->poller_next;
	channel->known = false;
}

void rt_channel_give_back_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	rt_cqs_take_out_poller(poller, cq);
	channel_ack(poller, cq);
	if (cq->channel->known)
		channel_leave_list(poller, cq->channel);
	if (!cq->dead)
		ibv_req_notify_cq(cq->ibv_cq, 0);
}

int rt_channel_let_go(struct rt_poller *poller)
{
	struct rt_cq *cq;
	int count = 0;

	while ((cq = poller->leaving) != NULL && count < LET_GO_BATCH) {
		poller->leaving = cq->leaving_next;
		channel_let_go(poller, cq);
		count++;
	}
	return count;
}

/* --------------------------------------------------------------- waking --- */

int rt_channel_wake(struct rt_poller *poller)
{
	RT_NOT_CANCELLED;
	struct rt_channel *channel;
	bool expired = false;
	int count = 0;

	if (poller->armed) {
		rt_bell_cancel(&poller->bell);
		poller->armed = false;
		rt_poller_set_tick(poller, rt_now_ns());
		expired = !poller->threaded && channel_has_expired(poller);
	}
	for (channel = poller->reading; channel != NULL;
	     channel = channel->poller_next) {
		if (!channel->dead)
			count += channel_read(poller, channel);
	}
	if (expired && count == 0)
		poller->timed_out = true;
	return count;
}
