/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq.c -- the verbs that make and destroy a poller's channels and CQs, called
 * by cq_pool.c on any thread that may block, with no lock; and the CQs that a
 * poller polls.
 */

#include "poller/cq_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "poller/round.h"

/* ------------------------------------------------------------- channels --- */

static int cq_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return rt_refuse_system("fcntl");
	return 0;
}

static int cq_query_max_cqe(struct ibv_context *ibv_ctx, uint32_t *max_cqe)
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
	ret = cq_query_max_cqe(ibv_ctx, &channel->max_cqe);
	if (ret == 0)
		ret = rpma_channel_new(ibv_ctx, &channel->channel);
	if (ret)
		goto err_free;
	rpma_channel_get_fd(channel->channel, &channel->fd);
	rpma_channel_get_ibv_channel(channel->channel, &channel->ibv_channel);
	ret = cq_set_nonblocking(channel->fd);
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

/* Returns the completion vector; spreads the pollers over the device's
 * vectors. */
static int cq_comp_vector(const struct rt_poller *poller,
			  const struct ibv_context *ibv_ctx)
{
	int vectors = ibv_ctx->num_comp_vectors;

	return vectors > 1 ? poller->index % vectors : 0;
}

static uint32_t cq_least_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t cq_most_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Computes the smallest useful number of entries: the configured number, at
 * least the needed room, at most the device's limit. */
static int cq_choose_least(const struct rt_channel *channel, uint32_t room,
			   uint32_t *least)
{
	if (room > channel->max_cqe) {
		rt_refuse_later(RPMA_E_NOMEM,
				"the sizes of the queues need %ld completions, "
				"more than a CQ of the device holds",
				(long)room);
		return RPMA_E_NOMEM;
	}
	*least = cq_least_of(cq_most_of(channel->poller->rt->cfg.cq_size, room),
			     channel->max_cqe);
	return 0;
}

/* Returns the number of entries that is tried first. There are route numbers
 * for so many connections like the first connection, and no more. */
static uint32_t cq_choose_size(const struct rt_channel *channel, uint32_t room,
			       uint32_t least, uint32_t wanted)
{
	uint64_t useful = (uint64_t)(RT_ROUTE_COUNT / RT_CQ_CONN_ROUTES) * room;

	if (wanted > useful)
		wanted = (uint32_t)useful;
	wanted = cq_least_of(wanted, channel->max_cqe);
	return cq_most_of(least, wanted);
}

/* Has the device make the CQ; tries a smaller size where the device refuses a
 * size. */
static int cq_make(struct rt_cq *cq, uint32_t least, uint32_t cqe)
{
	struct rt_channel *channel = cq->channel;
	int ret;

	while ((ret = rpma_cq_new(
			channel->ibv_ctx, (int)cqe, channel->channel,
			cq_comp_vector(channel->poller, channel->ibv_ctx), cq,
			&cq->cq)) == RPMA_E_PROVIDER &&
	       cqe > least)
		cqe = cq_most_of(cqe / 2, least);
	/* the size that was asked for, not the size after the device's
	 * rounding: some providers do not keep their word */
	cq->cqe = cqe;
	cq->room = cqe;
	return ret;
}

int rt_cq_new(struct rt_channel *channel, uint32_t room, uint32_t wanted,
	      struct rt_cq **cq_ptr)
{
	struct rt_cq *cq;
	uint32_t least;
	int ret;

	ret = cq_choose_least(channel, room, &least);
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
	ret = cq_make(cq, least, cq_choose_size(channel, room, least, wanted));
	if (ret)
		goto err_free;
	rpma_cq_claim(cq->cq, channel->poller);
	rpma_cq_get_ibv_cq(cq->cq, &cq->ibv_cq);
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

static struct rt_inbox *cq_control_of(const struct rt_channel *channel)
{
	return &channel->dev->control.inbox;
}

/* Sends a CQ that the poller has let go to be destroyed. The record may be
 * freed when the function returns. */
static void cq_gone(struct rt_cq *cq)
{
	rt_inbox_push_mt(cq_control_of(cq->channel), &cq->gone_msg);
}

void rt_cq_fail_mt(struct rt_cq *cq)
{
	/* relaxed: only the first caller sends; the inbox orders the rest */
	if (!atomic_exchange_explicit(&cq->fail_sent, true,
				      memory_order_relaxed))
		rt_inbox_push_mt(cq_control_of(cq->channel), &cq->fail_msg);
}

void rt_cq_fail_channel_poller(struct rt_channel *channel)
{
	rt_inbox_push_mt(cq_control_of(channel), &channel->fail_msg);
}

/* ------------------------------------------------------------------ cqs --- */

/*
 * The CQs that a poller polls: taken in, awake or resting, waited for, failed,
 * taken out. Runs on the poller.
 */

#define CQS_LEAST 16 /* least number of places for CQs that a poller keeps */

/* Finds rt_poller.single and rt_poller.awake. Follows each change of what they
 * depend on. */
static void cqs_find_single(struct rt_poller *poller)
{
	struct rt_cq *cq = poller->cqs_awake == 1 ? poller->cqs[0] : NULL;

	poller->awake = cq != NULL && rt_round_is_usual(cq) ? cq : NULL;
	poller->single = poller->cqs_count == 1 ? poller->awake : NULL;
	if (poller->cqs_rested > poller->cqs_count)
		poller->cqs_rested = poller->cqs_count;
}

void rt_cqs_fail_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	cq->dead = true;
	cqs_find_single(poller);
	/* the device reports the failure to the CQ's owner */
	if (cq->raw != NULL)
		return;
	rt_schedule_ready_all(poller, &cq->draining);
	rt_schedule_ready_all(poller, &cq->sweeping);
	rt_cq_fail_mt(cq);
}

/* ------------------------------------------------------------- resting --- */

static void cqs_put(struct rt_poller *poller, struct rt_cq *cq, int place)
{
	poller->cqs[place] = cq;
	cq->place = place;
}

/* Exchanges the places of the CQ and of the CQ at `place`. */
static void cqs_swap(struct rt_poller *poller, struct rt_cq *cq, int place)
{
	cqs_put(poller, poller->cqs[place], cq->place);
	cqs_put(poller, cq, place);
}

void rt_cqs_wake_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	cq->empty_polls = 0;
	if (cq->place < 0 || rt_cqs_is_awake_poller(poller, cq))
		return;
	cqs_swap(poller, cq, poller->cqs_awake++);
	cqs_find_single(poller);
}

void rt_cqs_rest_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	cqs_swap(poller, cq, --poller->cqs_awake);
	cqs_find_single(poller);
}

void rt_cqs_wake_all_poller(struct rt_poller *poller)
{
	poller->cqs_awake = poller->cqs_count;
	cqs_find_single(poller);
}

/* ------------------------------------------------------------- leaving --- */

void rt_cqs_take_out_poller(struct rt_poller *poller, struct rt_cq *cq)
{
	struct rt_cq **cqs;

	if (cq->place < 0) /* there was no memory for a place */
		return;
	if (rt_cqs_is_awake_poller(poller, cq))
		rt_cqs_rest_poller(poller, cq);
	cqs_swap(poller, cq, --poller->cqs_count);
	cq->place = -1;
	cqs_find_single(poller);
	if (poller->cqs_max < CQS_LEAST ||
	    poller->cqs_count > poller->cqs_max / 4)
		return;
	cqs = realloc(poller->cqs,
		      (size_t)(poller->cqs_max / 2) * sizeof(struct rt_cq *));
	if (cqs == NULL)
		return;
	poller->cqs = cqs;
	poller->cqs_max /= 2;
}

void rt_cqs_await_sweep_poller(struct rt_poller *poller, struct rt_cq *cq,
			       struct rt_task *task)
{
	rt_cqs_wake_poller(poller, cq);
	task->until_taken = cq->taken + cq->cqe;
	if (cq->dead)
		rt_schedule_ready(poller, task);
	else
		rt_schedule_wait(task, &cq->sweeping);
}

void rt_cqs_add_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq =
		(struct rt_cq *)((char *)msg - offsetof(struct rt_cq, add_msg));
	struct rt_poller *poller = owner;
	struct rt_cq **cqs;

	if (poller->cqs_count == poller->cqs_max) {
		cqs = realloc(poller->cqs, (size_t)(poller->cqs_max * 2 + 4) *
						   sizeof(struct rt_cq *));
		if (cqs == NULL) {
			/* the CQ is not polled, so the CQ is as good as dead */
			rt_cqs_fail_poller(poller, cq);
			return;
		}
		poller->cqs = cqs;
		poller->cqs_max = poller->cqs_max * 2 + 4;
	}
	cqs_put(poller, cq, poller->cqs_count++);
	rt_cqs_wake_poller(poller, cq);
	if (!cq->channel->known) {
		cq->channel->known = true;
		cq->channel->poller_next = poller->reading;
		poller->reading = cq->channel;
	}
	/* the CQ was made before the poller knew that the channel wakes the
	 * poller no more */
	if (cq->channel->dead)
		rt_cqs_fail_poller(poller, cq);
}

/* -------------------------------------------------------------- channel --- */

/*
 * The completion channels of a poller: events are read after a sleep and
 * acknowledged in batches; CQs that leave are let go. Runs on the poller.
 * doc/protocols/channel.md.
 */

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
	rt_poller_disturb(poller);
}

static void channel_let_go(struct rt_poller *poller, struct rt_cq *cq)
{
	rt_cqs_take_out_poller(poller, cq);
	channel_ack(poller, cq);
	cq->let_go = true;
	cq_gone(cq);
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
		rt_poller_time_out(poller);
	return count;
}
