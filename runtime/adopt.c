/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * adopt.c -- attaches CQs of librpma's connections to a poller, which polls
 * them with ibv_poll_cq(), and gives them back. doc/protocols/adoption.md.
 */

#include "adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "queue/queue.h"
#include "poller/cq_pool.h"

/* ----------------------------------------------------------- the poller --- */

/* Attaches the CQs, on the poller. ERRORS: RPMA_E_NOMEM; the caller detaches
 * the CQs then, as after a success */
static int adopt_attach_on_poller(void *arg)
{
	struct rpma_rt_adopted *adopted = arg;
	struct rt_poller *poller = adopted->poller;
	int ret = 0;
	int i;

	rt_lane_take_spill_poller(adopted->raw.lane, adopted->spill);
	adopted->spill = NULL;
	for (i = 0; i < adopted->cqs_count; i++) {
		rt_cqs_add_message(&adopted->cqs[i].add_msg, poller);
		if (adopted->cqs[i].place < 0)
			ret = RPMA_E_NOMEM;
	}
	return ret;
}

static int adopt_detach_on_poller(void *arg)
{
	struct rpma_rt_adopted *adopted = arg;
	int i;

	for (i = 0; i < adopted->cqs_count; i++)
		rt_channel_give_back_poller(adopted->poller, &adopted->cqs[i]);
	/* the queue may be deleted after the flush */
	rt_deliver_flush(adopted->poller);
	return 0;
}

/* -------------------------------------------------- what is to be taken --- */

/* Returns the channel of the CQ: the channel of the first CQ, or a further
 * channel. */
static struct rt_channel *adopt_channel_of(struct rpma_rt_adopted *adopted,
					   struct ibv_comp_channel *ibv_channel)
{
	struct rt_channel *channel = &adopted->channels[0];

	if (adopted->channels_count > 0 && channel->ibv_channel == ibv_channel)
		return channel;
	channel = &adopted->channels[adopted->channels_count++];
	channel->ibv_channel = ibv_channel;
	channel->fd = ibv_channel->fd;
	channel->is_adopted = true;
	return channel;
}

/* Takes over a CQ, and its channel if the channel is new. */
static int adopt_take_cq(struct rpma_rt_adopted *adopted,
			 struct rpma_cq *rpma_cq)
{
	struct rt_cq *cq = &adopted->cqs[adopted->cqs_count];
	int fd;
	int ret;

	/* RPMA_E_SHARED_CHANNEL: the CQ belongs to a channel object, or is
	 * claimed */
	ret = rpma_cq_get_fd(rpma_cq, &fd);
	if (ret == 0)
		ret = rpma_cq_claim(rpma_cq, adopted);
	if (ret == RPMA_E_AGAIN)
		return rt_refuse_later(
			RPMA_RT_E_BUSY,
			"a thread waits on the connection's CQ: it has to come "
			"back first",
			0);
	if (ret)
		return ret;
	rpma_cq_get_ibv_cq(rpma_cq, &cq->ibv_cq);
	cq->cq = rpma_cq;
	cq->raw = &adopted->raw;
	cq->place = -1;
	CDS_INIT_LIST_HEAD(&cq->sweeping);
	cq->channel = adopt_channel_of(adopted, cq->ibv_cq->channel);
	cq->next = cq->channel->cqs;
	cq->channel->cqs = cq;
	adopted->cqs_count++;
	return 0;
}

static void adopt_release_cqs(struct rpma_rt_adopted *adopted)
{
	while (adopted->cqs_count > 0)
		rpma_cq_release(adopted->cqs[--adopted->cqs_count].cq, adopted);
}

static int adopt_take_conn(struct rpma_rt_adopted *adopted,
			   const struct rpma_conn *conn)
{
	struct rpma_cq *rcq = NULL;
	struct rpma_cq *cq;
	int ret;

	ret = rpma_conn_get_cq(conn, &cq);
	if (ret == 0)
		ret = rpma_conn_get_rcq(conn, &rcq);
	if (ret == 0)
		ret = adopt_take_cq(adopted, cq);
	/* the RCQ of an SRQ does not belong to the connection */
	return ret || rcq == NULL ? ret : adopt_take_cq(adopted, rcq);
}

static int adopt_take_srq(struct rpma_rt_adopted *adopted,
			  const struct rpma_srq *srq)
{
	struct rpma_cq *rcq = NULL;
	int ret = rpma_srq_get_rcq(srq, &rcq);

	if (ret == 0 && rcq == NULL)
		ret = rt_refuse_later(
			RPMA_E_INVAL,
			"srq has no RCQ of its own: its completions are in the "
			"CQs of its connections, adopt those",
			0);
	return ret ? ret : adopt_take_cq(adopted, rcq);
}

/* Takes the first `count` channels off the poller's set, and restores their
 * flags. */
static void adopt_leave_set(struct rpma_rt_adopted *adopted, int count)
{
	int fd;

	while (count-- > 0) {
		fd = adopted->channels[count].fd;
		epoll_ctl(adopted->poller->epfd, EPOLL_CTL_DEL, fd, NULL);
		fcntl(fd, F_SETFL, adopted->flags[count]);
	}
}

/* Makes the channels non-blocking and adds them to the poller's set. */
static int adopt_join_set(struct rpma_rt_adopted *adopted)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epfd = adopted->poller->epfd;
	int *flags;
	int fd;
	int i;

	for (i = 0; i < adopted->channels_count; i++) {
		fd = adopted->channels[i].fd;
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
	adopt_leave_set(adopted, i);
	return rt_refuse_system("fcntl() or epoll_ctl");
}

/* ------------------------------------------------------------ the calls --- */

/* Chooses a poller, reserves room in the poller's lane and sends the poller a
 * message. The message is sent under the lock, so messages arrive in the order
 * of the reservations. REQUIRES: the runtime's lock */
static int adopt_attach_locked(struct rpma_rt_adopted *adopted, int place,
			       struct rt_call *call)
{
	struct rpma_rt *rt = adopted->rt;
	int ret;

	adopted->poller = rt_place_choose(rt, place, 0);
	adopted->reserved = (uint32_t)adopted->cqs_count * RT_BATCH;
	ret = adopt_join_set(adopted);
	if (ret)
		return ret;
	ret = rt_reserve_lane(adopted->poller, adopted->queue,
			      adopted->reserved, &adopted->raw.lane,
			      &adopted->spill);
	if (ret) {
		adopt_leave_set(adopted, adopted->channels_count);
		return ret;
	}
	rt_poller_call_send(adopted->poller, call, adopt_attach_on_poller,
			    adopted);
	adopted->poller->conns++;
	adopted->next = rt->adopted;
	rt->adopted = adopted;
	/* relaxed: a count, which orders no other data */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	rt_context_list(rt, &rt->listed_adopted, &adopted->listed);
	return 0;
}

/* REQUIRES: adopted is on no list of the runtime, and its poller still runs. */
static void adopt_detach(struct rpma_rt_adopted *adopted)
{
	struct rpma_rt *rt = adopted->rt;

	rt_poller_call(adopted->poller, adopt_detach_on_poller, adopted);
	pthread_mutex_lock(&rt->lock);
	adopted->poller->conns--;
	adopted->raw.lane->reserved -= adopted->reserved;
	pthread_mutex_unlock(&rt->lock);
	/* relaxed: a thread that deletes the queue takes the directory's lock
	 * afterwards */
	atomic_store_explicit(&adopted->is_over, true, memory_order_relaxed);
	rt_queue_unref(adopted->queue);
	adopt_leave_set(adopted, adopted->channels_count);
	adopt_release_cqs(adopted);
}

static void adopt_unlist(struct rpma_rt *rt,
			 const struct rpma_rt_adopted *adopted)
{
	struct rpma_rt_adopted **link = &rt->adopted;

	pthread_mutex_lock(&rt->lock);
	while (*link != adopted)
		link = &(*link)->next;
	*link = adopted->next;
	pthread_mutex_unlock(&rt->lock);
}

/* Undoes an attach whose CQs the poller could not attach. */
static void adopt_undo_attach(struct rpma_rt_adopted *adopted)
{
	adopt_unlist(adopted->rt, adopted);
	adopt_detach(adopted);
	rt_context_unlist(adopted->rt, &adopted->listed);
	/* relaxed: no other thread has the handle */
	atomic_fetch_sub_explicit(&adopted->rt->handles, 1,
				  memory_order_relaxed);
}

/* Attaches the CQs. A count keeps the runtime from stopping meanwhile. */
static int adopt_attach(struct rpma_rt_adopted *adopted, int place)
{
	struct rpma_rt *rt = adopted->rt;
	struct rt_call call;
	int ret = rt_context_ref(rt);

	if (ret)
		return ret;
	pthread_mutex_lock(&rt->lock);
	ret = adopt_attach_locked(adopted, place, &call);
	pthread_mutex_unlock(&rt->lock);
	if (ret == 0) {
		ret = rt_poller_call_wait(adopted->poller, &call);
		if (ret)
			adopt_undo_attach(adopted);
	}
	rt_context_unref(rt);
	return ret;
}

void rt_adopt_detach_all(struct rpma_rt *rt)
{
	struct rpma_rt_adopted *adopted;

	for (;;) {
		/* no call adopts or releases any more: only this thread uses
		 * the list */
		pthread_mutex_lock(&rt->lock);
		adopted = rt->adopted;
		pthread_mutex_unlock(&rt->lock);
		if (adopted == NULL)
			return;
		adopt_unlist(rt, adopted);
		adopt_detach(adopted);
	}
}

static int adopt_cqs(struct rpma_rt *rt, const struct rpma_conn *conn,
		     const struct rpma_srq *srq, int poller,
		     struct rpma_rt_queue *queue, void *user,
		     struct rpma_rt_adopted **adopted_ptr)
{
	struct rpma_rt_adopted *adopted;
	int ret;

	ret = rt_queue_check_of(queue, rt, "queue");
	if (ret)
		return ret;
	if (!rt_place_is_valid(rt, poller))
		return rt_cfg_refuse("rpma_rt_adopt()", "poller", poller,
				     RPMA_RT_POLLER_LEAST,
				     (int64_t)rt->cfg.pollers - 1);
	adopted = calloc(1, sizeof(*adopted));
	if (adopted == NULL)
		return RPMA_E_NOMEM;
	adopted->rt = rt;
	adopted->queue = queue;
	adopted->raw.user = user;
	ret = conn != NULL ? adopt_take_conn(adopted, conn)
			   : adopt_take_srq(adopted, srq);
	if (ret)
		goto err_release;
	ret = adopt_attach(adopted, poller);
	if (ret)
		goto err_release;
	*adopted_ptr = adopted;
	return 0;
err_release:
	adopt_release_cqs(adopted);
	free(adopted);
	return ret;
}

int rpma_rt_adopt(struct rpma_rt *rt, struct rpma_conn *conn, int poller,
		  struct rpma_rt_queue *queue, void *user,
		  struct rpma_rt_adopted **adopted_ptr)
{
	RT_NOT_CANCELLED;
	int ret = RT_REFUSE_NULL(rt, conn, queue, adopted_ptr);

	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	return RT_REFUSED(
		adopt_cqs(rt, conn, NULL, poller, queue, user, adopted_ptr),
		"the connection is not adopted");
}

int rpma_rt_adopt_srq(struct rpma_rt *rt, struct rpma_srq *srq, int poller,
		      struct rpma_rt_queue *queue, void *user,
		      struct rpma_rt_adopted **adopted_ptr)
{
	RT_NOT_CANCELLED;
	int ret = RT_REFUSE_NULL(rt, srq, queue, adopted_ptr);

	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	return RT_REFUSED(
		adopt_cqs(rt, NULL, srq, poller, queue, user, adopted_ptr),
		"the SRQ is not adopted");
}

int rpma_rt_adopted_release(struct rpma_rt_adopted **adopted_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_adopted *adopted;
	struct rpma_rt *rt;
	int ret;

	ret = RT_REFUSE_NULL(adopted_ptr);
	if (ret || *adopted_ptr == NULL)
		return ret;
	adopted = *adopted_ptr;
	rt = adopted->rt;
	ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	if (rt_context_ref(rt) == 0) {
		adopt_unlist(rt, adopted);
		adopt_detach(adopted);
		rt_context_unref(rt);
	} else { /* the stop detaches the CQs */
		rt_context_wait_stopped(rt);
	}
	*adopted_ptr = NULL;
	rt_context_unlist(rt, &adopted->listed);
	free(adopted);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
	return 0;
}
