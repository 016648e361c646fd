/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq_pool.c -- the CQs of a poller: finds a CQ with room, makes CQs, and
 * removes CQs that failed or have no users. The runtime's lock guards the
 * lists; calls that may block (cq.c) are made without the lock.
 * doc/protocols/channel.md.
 */

#include "poller/cq_pool.h"

#include <stddef.h>

#include "base/runtime.h"
#include "base/wait.h"
#include "poller/poller.h"

static struct rpma_rt *cq_pool_runtime_of(const struct rt_channel *channel)
{
	return channel->poller->rt;
}

/* Returns the inbox of the thread that handles failures. */
static struct rt_inbox *cq_pool_control_of(const struct rt_channel *channel)
{
	return &channel->dev->control.inbox;
}

/* -------------------------------------------------------------- leaving --- */

static bool cq_pool_has_users(const struct rt_cq *cq)
{
	return cq->users.next != &cq->users;
}

/* Returns whether this unused CQ may stay: a single unused CQ on each channel
 * may. */
static bool cq_pool_may_be_spare(const struct rt_cq *cq)
{
	const struct rt_channel *channel = cq->channel;

	return !cq->failed && !channel->failed &&
	       (channel->spare == NULL || channel->spare == cq);
}

/* Makes a CQ that lost a user, or failed, the spare CQ, or lets the CQ leave,
 * if the CQ is unused. REQUIRES: the runtime's lock */
static void cq_pool_retire_unused(struct rt_cq *cq)
{
	struct rt_channel *channel = cq->channel;

	if (cq_pool_has_users(cq) || cq->leaving)
		return;
	if (cq_pool_may_be_spare(cq)) {
		channel->spare = cq;
		return;
	}
	if (channel->spare == cq)
		channel->spare = NULL;
	cq->leaving = true;
	/* here, so that no message of the event thread comes after GONE */
	rt_async_disown(&cq->async);
	rt_inbox_push_mt(&channel->poller->inbox, &cq->leave_msg);
}

static void cq_pool_unlist(struct rt_cq *cq)
{
	struct rt_cq **link = &cq->channel->cqs;
	struct rpma_rt *rt = cq_pool_runtime_of(cq->channel);

	pthread_mutex_lock(&rt->lock);
	pthread_mutex_lock(&rt->directory);
	while (*link != cq)
		link = &(*link)->next;
	*link = cq->next;
	pthread_mutex_unlock(&rt->directory);
	pthread_mutex_unlock(&rt->lock);
}

/* Destroys a CQ, on the destroyer: the last message that names the CQ. */
static void cq_pool_destroy_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq = caa_container_of(msg, struct rt_cq, gone_msg);

	(void)owner;
	/* the device has a queue pair on the CQ that the device would not
	 * destroy: the stop tries again */
	if (rt_cq_destroy(cq) == RPMA_E_AGAIN)
		return;
	cq_pool_unlist(cq);
	rt_cq_free(cq);
}

/* Sends the CQ to the destroyer, on the control thread, after a FAIL of the CQ:
 * nothing else on this thread names the CQ. */
static void cq_pool_gone_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq = caa_container_of(msg, struct rt_cq, gone_msg);

	(void)owner;
	msg->fn = cq_pool_destroy_message;
	rt_inbox_push_mt(&cq->channel->dev->destroyer.inbox, msg);
}

/* ------------------------------------------------------------- failures --- */

/* Reports the failure to all users. REQUIRES: the runtime's lock */
static void cq_pool_tell_users(const struct rt_cq *cq)
{
	struct rt_cq_user *user;

	cds_list_for_each_entry(user, &cq->users, in_cq) user->failed(user);
}

/* Sets the flag under the directory's lock. REQUIRES: the runtime's lock */
static void cq_pool_set_failed(bool *failed, struct rpma_rt *rt)
{
	pthread_mutex_lock(&rt->directory);
	*failed = true;
	pthread_mutex_unlock(&rt->directory);
}

/* Fails a CQ, on the control thread. */
static void cq_pool_fail_message(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq = caa_container_of(msg, struct rt_cq, fail_msg);
	struct rpma_rt *rt = cq_pool_runtime_of(cq->channel);

	(void)owner;
	pthread_mutex_lock(&rt->lock);
	cq_pool_set_failed(&cq->failed, rt);
	cq_pool_tell_users(cq);
	cq_pool_retire_unused(cq);
	pthread_mutex_unlock(&rt->lock);
}

static void cq_event(struct rt_async_object *self, enum ibv_event_type type)
{
	if (type == IBV_EVENT_CQ_ERR)
		rt_cq_fail_mt(caa_container_of(self, struct rt_cq, async));
}

/* Fails a channel, on the control thread. */
static void cq_pool_fail_channel_message(struct rt_msg *msg, void *owner)
{
	struct rt_channel *channel =
		caa_container_of(msg, struct rt_channel, fail_msg);
	struct rpma_rt *rt = cq_pool_runtime_of(channel);

	(void)owner;
	pthread_mutex_lock(&rt->lock);
	cq_pool_set_failed(&channel->failed, rt);
	if (channel->spare != NULL)
		cq_pool_retire_unused(channel->spare);
	pthread_mutex_unlock(&rt->lock);
}

/* Handles DEVICE_FATAL, on the control thread. */
static void cq_pool_fatal_message(struct rt_msg *msg, void *owner)
{
	struct rt_channel *channel =
		caa_container_of(msg, struct rt_channel, fatal_msg);
	struct rpma_rt *rt = cq_pool_runtime_of(channel);
	const struct rt_cq *cq;

	(void)owner;
	/* acquire: pairs with the exchange in cq_pool_device_fatal(); the
	 * message may be sent again from here on */
	atomic_exchange_explicit(&channel->fatal_sent, false,
				 memory_order_acquire);
	pthread_mutex_lock(&rt->lock);
	for (cq = channel->cqs; cq != NULL; cq = cq->next)
		cq_pool_tell_users(cq);
	pthread_mutex_unlock(&rt->lock);
}

static void cq_pool_device_fatal(struct rt_async_device *self)
{
	struct rt_channel *channel =
		caa_container_of(self, struct rt_channel, device);

	/* acq_rel: pairs with the exchange in cq_pool_fatal_message(): finding
	 * false means that the message is free again */
	if (!atomic_exchange_explicit(&channel->fatal_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(cq_pool_control_of(channel),
				 &channel->fatal_msg);
}

/* --------------------------------------------------------------- making --- */

/* Makes a channel whose device is watched; the channel is not listed yet. No
 * lock. */
static int cq_pool_make_channel(struct rt_poller *poller,
				struct ibv_context *ibv_ctx,
				struct rt_channel **channel_ptr)
{
	struct rt_channel *channel;
	int ret;

	ret = rt_cq_channel_new(poller, ibv_ctx, &channel);
	if (ret)
		return ret;
	channel->fatal_msg.fn = cq_pool_fatal_message;
	channel->fail_msg.fn = cq_pool_fail_channel_message;
	channel->device =
		(struct rt_async_device){.ibv_ctx = ibv_ctx,
					 .rt = poller->rt,
					 .fatal = cq_pool_device_fatal};
	ret = rt_async_watch(&channel->device);
	if (ret) {
		rt_cq_channel_delete(channel);
		return ret;
	}
	*channel_ptr = channel;
	return 0;
}

/* Lists the channel. REQUIRES: the runtime's lock */
static void cq_pool_list_channel(struct rt_channel *channel)
{
	struct rt_poller *poller = channel->poller;

	pthread_mutex_lock(&poller->rt->directory);
	channel->next = poller->channels;
	poller->channels = channel;
	pthread_mutex_unlock(&poller->rt->directory);
}

/* Lists the CQ and sends it to the poller. REQUIRES: the runtime's lock */
static void cq_pool_list_cq(struct rt_cq *cq)
{
	struct rt_channel *channel = cq->channel;
	struct rpma_rt *rt = cq_pool_runtime_of(channel);

	pthread_mutex_lock(&rt->directory);
	cq->next = channel->cqs;
	channel->cqs = cq;
	pthread_mutex_unlock(&rt->directory);
	cq->fail_msg.fn = cq_pool_fail_message;
	cq->gone_msg.fn = cq_pool_gone_message;
	cq->leave_msg.fn = rt_channel_leave_message;
	cq->async = (struct rt_async_object){.object = cq->ibv_cq,
					     .event = cq_event};
	rt_async_own(&cq->async);
	cq->add_msg.fn = rt_cqs_add_message;
	rt_inbox_push_mt(&channel->poller->inbox, &cq->add_msg);
}

static struct rt_channel *
cq_pool_find_channel(const struct rt_poller *poller,
		     const struct ibv_context *ibv_ctx)
{
	struct rt_channel *channel = poller->channels;

	while (channel != NULL &&
	       (channel->ibv_ctx != ibv_ctx || channel->failed))
		channel = channel->next;
	return channel;
}

static bool cq_pool_is_making(const struct rt_poller *poller,
			      const struct ibv_context *ibv_ctx)
{
	const struct rt_cq_making *making = poller->making;

	while (making != NULL && making->ibv_ctx != ibv_ctx)
		making = making->next;
	return making != NULL;
}

static void cq_pool_end_making(struct rt_poller *poller,
			       struct rt_cq_making *making)
{
	struct rt_cq_making **link = &poller->making;

	while (*link != making)
		link = &(*link)->next;
	*link = making->next;
	pthread_cond_broadcast(&poller->made);
}

/* Returns how many entries the next CQ should have: twice the size of the
 * largest CQ, so that a poller of very many connections has few CQs to poll. 0:
 * there is no CQ yet. REQUIRES: the runtime's lock */
static uint32_t cq_pool_next_size(const struct rt_channel *channel)
{
	const struct rt_cq *cq = channel != NULL ? channel->cqs : NULL;
	uint32_t largest = 0;

	for (; cq != NULL; cq = cq->next) {
		if (cq->cqe > largest)
			largest = cq->cqe;
	}
	return largest <= INT32_MAX / 2 ? largest * 2 : INT32_MAX;
}

/* Makes a CQ with that room, and lists the CQ. REQUIRES: the runtime's lock,
 * which is released while the device works */
static int cq_pool_make(struct rt_poller *poller, struct ibv_context *ibv_ctx,
			uint32_t room, struct rt_cq **cq_ptr)
{
	struct rt_cq_making making = {ibv_ctx, poller->making};
	struct rt_channel *channel = cq_pool_find_channel(poller, ibv_ctx);
	uint32_t wanted = cq_pool_next_size(channel);
	bool is_new = channel == NULL;
	struct rt_cq *cq;
	int ret = 0;

	poller->making = &making;
	pthread_mutex_unlock(&poller->rt->lock);
	if (is_new)
		ret = cq_pool_make_channel(poller, ibv_ctx, &channel);
	if (ret == 0)
		ret = rt_cq_new(channel, room, wanted, &cq);
	pthread_mutex_lock(&poller->rt->lock);
	cq_pool_end_making(poller, &making);
	if (is_new && channel != NULL)
		cq_pool_list_channel(channel);
	if (ret)
		return ret;
	cq_pool_list_cq(cq);
	*cq_ptr = cq;
	return 0;
}

/* ----------------------------------------------------------------- room --- */

/* REQUIRES of the following functions: the runtime's lock */
static void cq_pool_change_room(struct rt_cq *cq, uint32_t by)
{
	pthread_mutex_t *directory =
		&cq_pool_runtime_of(cq->channel)->directory;

	pthread_mutex_lock(directory);
	cq->room += by;
	pthread_mutex_unlock(directory);
}

/* Returns the room that `user` takes in a CQ: the user's own room and, for the
 * first user with an SRQ, the room of the SRQ, because any receive of the SRQ
 * may complete there. */
static uint32_t cq_pool_room_of(const struct rt_cq_user *user,
				const struct rt_cq *cq)
{
	bool first =
		user->srq != 0 && (cq == NULL || cq->srq_users[user->srq] == 0);

	return user->room + (first ? user->srq_room : 0);
}

static bool cq_pool_has_room(const struct rt_cq *cq,
			     const struct rt_cq_user *user)
{
	return !cq->failed && !cq->leaving &&
	       cq->room >= cq_pool_room_of(user, cq) &&
	       rt_numbers_left(&cq->numbers) >= RT_CQ_CONN_ROUTES;
}

/* Finds a CQ with room; prefers a CQ in use to the spare CQ, which then may
 * go. */
static struct rt_cq *cq_pool_find_cq(const struct rt_poller *poller,
				     const struct ibv_context *ibv_ctx,
				     const struct rt_cq_user *user)
{
	const struct rt_channel *channel =
		cq_pool_find_channel(poller, ibv_ctx);
	struct rt_cq *cq;

	if (channel == NULL)
		return NULL;
	for (cq = channel->cqs; cq != NULL; cq = cq->next) {
		if (cq != channel->spare && cq_pool_has_room(cq, user))
			return cq;
	}
	cq = channel->spare;
	return cq != NULL && cq_pool_has_room(cq, user) ? cq : NULL;
}

static void cq_pool_take_room(struct rt_cq *cq, struct rt_cq_user *user)
{
	if (cq->channel->spare == cq)
		cq->channel->spare = NULL;
	cds_list_add_tail(&user->in_cq, &cq->users);
	cq_pool_change_room(cq, -cq_pool_room_of(user, cq));
	if (user->srq != 0)
		cq->srq_users[user->srq]++;
}

int rt_cq_pool_reserve(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		       struct rt_cq_user *user, struct rt_cq **cq_ptr)
{
	struct rt_wait wait = {0};
	struct rt_cq *cq;
	int ret;

	while ((cq = cq_pool_find_cq(poller, ibv_ctx, user)) == NULL &&
	       cq_pool_is_making(poller, ibv_ctx))
		rt_wait_step(&wait, &poller->made, &poller->rt->lock);
	if (cq == NULL) {
		ret = cq_pool_make(poller, ibv_ctx, cq_pool_room_of(user, NULL),
				   &cq);
		if (ret)
			return ret;
	}
	cq_pool_take_room(cq, user);
	*cq_ptr = cq;
	return 0;
}

void rt_cq_pool_unreserve(struct rt_cq *cq, struct rt_cq_user *user)
{
	if (user->srq != 0)
		cq->srq_users[user->srq]--;
	cq_pool_change_room(cq, cq_pool_room_of(user, cq));
	cds_list_del(&user->in_cq);
	cq_pool_retire_unused(cq);
}

static void cq_pool_tell_users_of(const struct rt_cq *cq, uint32_t srq)
{
	struct rt_cq_user *user;

	if (cq->srq_users[srq] == 0)
		return;
	cds_list_for_each_entry(user, &cq->users, in_cq)
	{
		if (user->srq == srq)
			user->failed(user);
	}
}

void rt_cq_pool_fail_srq(const struct rt_poller *poller, uint32_t srq)
{
	const struct rt_channel *channel;
	const struct rt_cq *cq;

	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		for (cq = channel->cqs; cq != NULL; cq = cq->next)
			cq_pool_tell_users_of(cq, srq);
	}
}

/* -------------------------------------------------------------- the end --- */

void rt_cq_pool_unwatch(struct rt_poller *poller)
{
	struct rt_channel *channel;
	struct rt_cq *cq;

	/* no more channels are made; CQs may still go */
	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		rt_async_unwatch(&channel->device);
		pthread_mutex_lock(&poller->rt->lock);
		for (cq = channel->cqs; cq != NULL; cq = cq->next)
			rt_async_disown(&cq->async);
		pthread_mutex_unlock(&poller->rt->lock);
	}
}

/* Acknowledges the events that were read of the CQ, then destroys the CQ. */
static int cq_pool_finish_cq(struct rt_cq *cq)
{
	int ret;

	if (rt_cq_unacked(cq) > 0)
		ibv_ack_cq_events(cq->ibv_cq, rt_cq_unacked(cq));
	ret = rt_cq_destroy(cq);
	rt_cq_free(cq);
	return ret;
}

int rt_cq_pool_fini(struct rt_poller *poller)
{
	struct rt_channel *channels;
	struct rt_channel *channel;
	struct rt_cq *cq;
	int first = 0;
	int ret;

	poller->single = NULL;
	poller->awake = NULL;
	poller->cqs_count = 0;
	poller->cqs_awake = 0;
	poller->reading = NULL;
	poller->leaving = NULL;

	/* taken off the directory before anything is freed: everything listed
	 * is alive */
	pthread_mutex_lock(&poller->rt->directory);
	channels = poller->channels;
	poller->channels = NULL;
	pthread_mutex_unlock(&poller->rt->directory);
	while ((channel = channels) != NULL) {
		channels = channel->next;
		while ((cq = channel->cqs) != NULL) {
			channel->cqs = cq->next;
			ret = cq_pool_finish_cq(cq);
			first = first ? first : ret;
		}
		ret = rt_cq_channel_delete(channel);
		first = first ? first : ret;
	}
	return first;
}
