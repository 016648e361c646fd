/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * adopt.c -- taking CQs of librpma's connections in, polling them raw, giving
 * them back. doc/protocols/adoption.md.
 */

#include "adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/context.h"
#include "base/runtime.h"
#include "poller/place.h"
#include "poller/poller.h"
#include "poller/reserve.h"
#include "queue/queue.h"

/* ----------------------------------------------------------- the poller --- */

static void deliver_raw(struct rt_poller *poller,
			const struct rpma_rt_adopted *adopted,
			const struct ibv_wc *wc)
{
	bool success = wc->status == IBV_WC_SUCCESS;
	struct rpma_rt_completion item = {
		.context = wc->wr_id,
		.user = adopted->user,
		.qp_num = wc->qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = (uint8_t)wc->status,
		.opcode = RPMA_RT_OPCODE_UNKNOWN,
		.imm = wc->vendor_err,
	};

	if (success) {
		item.byte_len = wc->byte_len;
		item.imm = wc->imm_data;
		item.opcode = (uint8_t)wc->opcode;
		item.flags = (uint8_t)wc->wc_flags &
			     (RPMA_RT_F_WITH_IMM | RPMA_RT_F_WITH_INV);
	}
	rt_deliver_write(poller, adopted->lane, &item);
}

static int poll_raw(struct rt_poller *poller,
		    const struct rpma_rt_adopted *adopted, struct rt_raw_cq *cq,
		    int max)
{
	int n;
	int i;

	/* there are no credits: what its consumer does not take stays there */
	if (cq->dead || rt_lane_is_backlogged(adopted->lane))
		return 0;
	n = ibv_poll_cq(cq->ibv_cq, max < RT_BATCH ? max : RT_BATCH,
			poller->wcs);
	RT_STAT_ADD(poller, polls, 1);
	if (n <= 0) {
		cq->dead = n < 0;
		RT_STAT_ADD(poller, empty_polls, 1);
		return 0;
	}
	for (i = 0; i < n; i++)
		deliver_raw(poller, adopted, &poller->wcs[i]);
	RT_STAT_ADD(poller, completions, n);
	return n;
}

/* Its CQs, by turns first; how many completions. */
static int poll_one(struct rt_poller *poller, struct rpma_rt_adopted *adopted,
		    int budget)
{
	int done = 0;
	int i;

	for (i = 0; i < adopted->cqs_count && done < budget; i++)
		done += poll_raw(poller, adopted,
				 &adopted->cqs[i ^ adopted->first],
				 budget - done);
	adopted->first = adopted->cqs_count - 1 - adopted->first;
	return done;
}

/* The next round begins behind this one. */
static void begin_after(struct rt_poller *poller,
			struct rpma_rt_adopted *adopted)
{
	struct rpma_rt_adopted *last = adopted;

	if (adopted->poller_next == NULL)
		return;
	while (last->poller_next != NULL)
		last = last->poller_next;
	last->poller_next = poller->adopted;
	poller->adopted = adopted->poller_next;
	adopted->poller_next = NULL;
}

int rt_adopt_poll(struct rt_poller *poller, int budget)
{
	struct rpma_rt_adopted *adopted;
	int done = 0;

	for (adopted = poller->adopted; adopted != NULL;
	     adopted = adopted->poller_next) {
		done += poll_one(poller, adopted, budget - done);
		if (done < budget)
			continue;
		begin_after(poller, adopted);
		break;
	}
	return done;
}

static void arm(struct rpma_rt_adopted *adopted)
{
	struct rt_raw_cq *cq;
	int i;

	for (i = 0; i < adopted->cqs_count; i++) {
		cq = &adopted->cqs[i];
		if (!cq->dead && ibv_req_notify_cq(cq->ibv_cq, 0))
			cq->dead = true;
	}
}

void rt_adopt_arm(struct rt_poller *poller)
{
	struct rpma_rt_adopted *adopted;

	for (adopted = poller->adopted; adopted != NULL;
	     adopted = adopted->poller_next) {
		/* it is not polled now, and there are devices that answer the
		 * arming of a CQ that is not empty with an event at once */
		if (!rt_lane_is_backlogged(adopted->lane))
			arm(adopted);
	}
}

static void ack(struct rt_poller *poller, struct rt_raw_cq *cq)
{
	if (cq->unacked == 0)
		return;
	ibv_ack_cq_events(cq->ibv_cq, cq->unacked);
	cq->unacked = 0;
	RT_STAT_ADD(poller, acks, 1);
}

/* The event was of that CQ. */
static void count_event(struct rt_poller *poller,
			struct rpma_rt_adopted *adopted, struct ibv_cq *ibv_cq)
{
	struct rt_raw_cq *cq;
	int i;

	for (i = 0; i < adopted->cqs_count; i++) {
		cq = &adopted->cqs[i];
		if (cq->ibv_cq != ibv_cq)
			continue;
		if (++cq->unacked >= RT_ACK_BATCH)
			ack(poller, cq);
		return;
	}
	ibv_ack_cq_events(ibv_cq, 1);
}

static int read_channel(struct rt_poller *poller,
			struct rpma_rt_adopted *adopted,
			struct ibv_comp_channel *channel)
{
	struct ibv_cq *ibv_cq;
	void *context;
	int count = 0;

	for (;;) {
		if (ibv_get_cq_event(channel, &ibv_cq, &context)) {
			if (errno == EINTR)
				continue;
			/* another error: it would be readable for ever */
			if (errno != EAGAIN)
				epoll_ctl(poller->epfd, EPOLL_CTL_DEL,
					  channel->fd, NULL);
			return count;
		}
		count++;
		count_event(poller, adopted, ibv_cq);
	}
}

int rt_adopt_read_events(struct rt_poller *poller)
{
	struct rpma_rt_adopted *adopted;
	int count = 0;
	int i;

	for (adopted = poller->adopted; adopted != NULL;
	     adopted = adopted->poller_next) {
		for (i = 0; i < adopted->channels_count; i++)
			count += read_channel(poller, adopted,
					      adopted->channels[i]);
	}
	RT_STAT_ADD(poller, events, count);
	return count;
}

static int attach_on_poller(void *arg)
{
	struct rpma_rt_adopted *adopted = arg;
	struct rt_poller *poller = adopted->poller;

	if (adopted->spill != NULL)
		rt_spill_delete(rt_lane_swap_spill_poller(adopted->lane,
							  adopted->spill));
	adopted->spill = NULL;
	adopted->poller_next = poller->adopted;
	poller->adopted = adopted;
	return 0;
}

static int detach_on_poller(void *arg)
{
	struct rpma_rt_adopted *adopted = arg;
	struct rt_poller *poller = adopted->poller;
	struct rpma_rt_adopted **link = &poller->adopted;
	int i;

	while (*link != adopted)
		link = &(*link)->poller_next;
	*link = adopted->poller_next;
	for (i = 0; i < adopted->cqs_count; i++)
		ack(poller, &adopted->cqs[i]);
	arm(adopted);
	/* the queue may be deleted after this */
	rt_deliver_flush(poller);
	return 0;
}

/* -------------------------------------------------- what is to be taken --- */

/* A CQ, and its channel if it is a new one. */
static int take_cq(struct rpma_rt_adopted *adopted, struct rpma_cq *cq)
{
	struct rt_raw_cq *raw = &adopted->cqs[adopted->cqs_count];
	struct ibv_comp_channel *channel;
	int fd;
	int ret;

	/* RPMA_E_SHARED_CHANNEL: a channel object's, or claimed */
	ret = rpma_cq_get_fd(cq, &fd);
	if (ret == 0)
		ret = rpma_cq_claim(cq, adopted);
	if (ret)
		return ret;
	rpma_cq_get_ibv_cq(cq, &raw->ibv_cq);
	raw->cq = cq;
	adopted->cqs_count++;
	channel = raw->ibv_cq->channel;
	if (adopted->channels_count == 0 || adopted->channels[0] != channel)
		adopted->channels[adopted->channels_count++] = channel;
	return 0;
}

static void release_cqs(struct rpma_rt_adopted *adopted)
{
	while (adopted->cqs_count > 0)
		rpma_cq_release(adopted->cqs[--adopted->cqs_count].cq, adopted);
}

static int take_conn(struct rpma_rt_adopted *adopted,
		     const struct rpma_conn *conn)
{
	struct rpma_cq *rcq = NULL;
	struct rpma_cq *cq;
	int ret;

	ret = rpma_conn_get_cq(conn, &cq);
	if (ret == 0)
		ret = rpma_conn_get_rcq(conn, &rcq);
	if (ret == 0)
		ret = take_cq(adopted, cq);
	/* an SRQ's RCQ is not the connection's */
	return ret || rcq == NULL ? ret : take_cq(adopted, rcq);
}

static int take_srq(struct rpma_rt_adopted *adopted, const struct rpma_srq *srq)
{
	struct rpma_cq *rcq = NULL;
	int ret = rpma_srq_get_rcq(srq, &rcq);

	if (ret == 0 && rcq == NULL)
		ret = RPMA_E_INVAL; /* its completions are the connections' */
	return ret ? ret : take_cq(adopted, rcq);
}

/* The first so many channels leave the set, and are as they were. */
static void leave_set(struct rpma_rt_adopted *adopted, int count)
{
	int fd;

	while (count-- > 0) {
		fd = adopted->channels[count]->fd;
		epoll_ctl(adopted->poller->epfd, EPOLL_CTL_DEL, fd, NULL);
		fcntl(fd, F_SETFL, adopted->flags[count]);
	}
}

/* Non-blocking, and in the poller's set. */
static int join_set(struct rpma_rt_adopted *adopted)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epfd = adopted->poller->epfd;
	int *flags;
	int fd;
	int i;

	for (i = 0; i < adopted->channels_count; i++) {
		fd = adopted->channels[i]->fd;
		flags = &adopted->flags[i];
		*flags = fcntl(fd, F_GETFL);
		if (*flags < 0 || fcntl(fd, F_SETFL, *flags | O_NONBLOCK))
			break;
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event)) {
			fcntl(fd, F_SETFL, *flags);
			break;
		}
	}
	if (i == adopted->channels_count)
		return 0;
	leave_set(adopted, i);
	return RPMA_E_PROVIDER;
}

/* ------------------------------------------------------------ the calls --- */

/* A place on a poller, which is told of it, in the order of reservations in its
 * lanes. REQUIRES: the runtime's lock */
static int attach_locked(struct rpma_rt_adopted *adopted, int place,
			 struct rt_call *call)
{
	struct rpma_rt *rt = adopted->rt;
	int ret;

	adopted->poller = rt_place_choose(rt, place, 0);
	adopted->reserved = (uint32_t)adopted->cqs_count * RT_BATCH;
	ret = join_set(adopted);
	if (ret)
		return ret;
	ret = rt_reserve_lane(adopted->poller, adopted->queue,
			      adopted->reserved, &adopted->lane,
			      &adopted->spill);
	if (ret) {
		leave_set(adopted, adopted->channels_count);
		return ret;
	}
	rt_poller_call_send(adopted->poller, call, attach_on_poller, adopted);
	adopted->poller->conns++;
	adopted->next = rt->adopted;
	rt->adopted = adopted;
	/* relaxed: a count, read under no order */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	return 0;
}

/* The runtime does not stop meanwhile. */
static int attach(struct rpma_rt_adopted *adopted, int place)
{
	struct rpma_rt *rt = adopted->rt;
	struct rt_call call;
	int ret = rt_context_ref(rt);

	if (ret)
		return ret;
	pthread_mutex_lock(&rt->lock);
	ret = attach_locked(adopted, place, &call);
	pthread_mutex_unlock(&rt->lock);
	if (ret == 0)
		rt_poller_call_wait(adopted->poller, &call);
	rt_context_unref(rt);
	return ret;
}

/* It is on no list of the runtime any more, and its poller still runs. */
static void detach(struct rpma_rt_adopted *adopted)
{
	struct rpma_rt *rt = adopted->rt;

	rt_poller_call(adopted->poller, detach_on_poller, adopted);
	pthread_mutex_lock(&rt->lock);
	adopted->poller->conns--;
	adopted->lane->reserved -= adopted->reserved;
	pthread_mutex_unlock(&rt->lock);
	rt_queue_unref(adopted->queue);
	leave_set(adopted, adopted->channels_count);
	release_cqs(adopted);
}

static void unlist(struct rpma_rt *rt, const struct rpma_rt_adopted *adopted)
{
	struct rpma_rt_adopted **link = &rt->adopted;

	pthread_mutex_lock(&rt->lock);
	while (*link != adopted)
		link = &(*link)->next;
	*link = adopted->next;
	pthread_mutex_unlock(&rt->lock);
}

void rt_adopt_detach_all(struct rpma_rt *rt)
{
	struct rpma_rt_adopted *adopted;

	for (;;) {
		/* no call adopts or releases any more: the list is ours */
		pthread_mutex_lock(&rt->lock);
		adopted = rt->adopted;
		pthread_mutex_unlock(&rt->lock);
		if (adopted == NULL)
			return;
		unlist(rt, adopted);
		detach(adopted);
	}
}

static int adopt(struct rpma_rt *rt, const struct rpma_conn *conn,
		 const struct rpma_srq *srq, int poller,
		 struct rpma_rt_queue *queue, void *user,
		 struct rpma_rt_adopted **adopted_ptr)
{
	struct rpma_rt_adopted *adopted;
	int ret;

	if (rt == NULL || queue == NULL || adopted_ptr == NULL ||
	    !rt_queue_is_of(queue, rt) || !rt_place_is_valid(rt, poller))
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	adopted = calloc(1, sizeof(*adopted));
	if (adopted == NULL)
		return RPMA_E_NOMEM;
	adopted->rt = rt;
	adopted->queue = queue;
	adopted->user = user;
	ret = conn != NULL ? take_conn(adopted, conn) : take_srq(adopted, srq);
	if (ret)
		goto err_release;
	ret = attach(adopted, poller);
	if (ret)
		goto err_release;
	*adopted_ptr = adopted;
	return 0;
err_release:
	release_cqs(adopted);
	free(adopted);
	return ret;
}

int rpma_rt_adopt(struct rpma_rt *rt, struct rpma_conn *conn, int poller,
		  struct rpma_rt_queue *queue, void *user,
		  struct rpma_rt_adopted **adopted_ptr)
{
	return conn == NULL ? RPMA_E_INVAL
			    : adopt(rt, conn, NULL, poller, queue, user,
				    adopted_ptr);
}

int rpma_rt_adopt_srq(struct rpma_rt *rt, struct rpma_srq *srq, int poller,
		      struct rpma_rt_queue *queue, void *user,
		      struct rpma_rt_adopted **adopted_ptr)
{
	return srq == NULL
		       ? RPMA_E_INVAL
		       : adopt(rt, NULL, srq, poller, queue, user, adopted_ptr);
}

int rpma_rt_adopted_release(struct rpma_rt_adopted **adopted_ptr)
{
	struct rpma_rt_adopted *adopted;
	struct rpma_rt *rt;
	int ret;

	if (adopted_ptr == NULL)
		return RPMA_E_INVAL;
	adopted = *adopted_ptr;
	if (adopted == NULL)
		return 0;
	rt = adopted->rt;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	if (rt_context_ref(rt) == 0) {
		unlist(rt, adopted);
		detach(adopted);
		rt_context_unref(rt);
	} else { /* the stop gives it back */
		rt_context_wait_stopped(rt);
	}
	*adopted_ptr = NULL;
	free(adopted);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
	return 0;
}
