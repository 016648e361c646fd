/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * life.c -- the life of a shared receive queue: made and ended by the calling
 * thread, its limit armed by the control thread. doc/protocols/srq.md.
 */

#include "srq/srq.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cfg.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/wr.h"
#include "base/wait.h"
#include "cm/cm.h"
#include "pool/pool.h"
#include "future/future.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "queue/queue.h"

/* ---------------------------------------------------------------- limit --- */

/* Arms the limit, on the control thread. With a device that has no limit,
 * `armed` stays set for ever, and the poller watches all the same. */
static void srq_arm_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, arm_msg, msg);
	struct ibv_srq_attr attr = {.srq_limit = srq->cfg.limit};

	(void)owner;
	/* acq_rel: pairs with the exchange in srq_post_arm_if_due(), post.c:
	 * from here on the message may be sent again */
	atomic_exchange_explicit(&srq->arm_sent, false, memory_order_acq_rel);
	ibv_modify_srq(srq->ibv_srq, &attr, IBV_SRQ_LIMIT);
}

/* Fails the SRQ, on the control thread: the SRQ takes no new users, the
 * connections close, and the queue gets SRQ_FAILED. */
static void srq_fail_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, fail_msg, msg);
	struct rpma_rt *rt = owner;

	pthread_mutex_lock(&rt->lock);
	/* relaxed: under the lock, which is also held by threads that make a
	 * connection */
	atomic_store_explicit(&srq->failed, true, memory_order_relaxed);
	rt_cq_pool_fail_srq(srq->poller, srq->number);
	pthread_mutex_unlock(&rt->lock);
	RT_LOG_ERROR("the device reports an error of an SRQ of poller %d: its "
		     "connections are closed. Delete it and make another",
		     srq->poller->index);
	rt_inbox_push_mt(&srq->poller->inbox, &srq->told_msg);
}

void rt_srq_fail_mt(struct rpma_rt_srq *srq)
{
	/* relaxed: only the first caller sends; the inbox orders the rest */
	if (!atomic_exchange_explicit(&srq->fail_sent, true,
				      memory_order_relaxed))
		rt_inbox_push_mt(&srq->device->control.inbox, &srq->fail_msg);
}

/* Handles an asynchronous event, on the event thread. */
static void srq_async_event(struct rt_async_object *self,
			    enum ibv_event_type type)
{
	struct rpma_rt_srq *srq = RT_FROM(struct rpma_rt_srq, async, self);

	if (type == IBV_EVENT_SRQ_ERR)
		rt_srq_fail_mt(srq);
	if (type == IBV_EVENT_SRQ_LIMIT_REACHED)
		rt_srq_look_mt(srq);
}

/* --------------------------------------------------------------- making --- */

static void srq_free(struct rpma_rt_srq *srq)
{
	pthread_cond_destroy(&srq->left);
	rt_line_free(&srq->turn);
	rt_waiter_delete(srq->waiter);
	free(srq->slots);
	free(srq->returned);
	free(srq);
}

/* Returns the places of the line. Receives of a pool stand in no line. */
static uint32_t srq_places_of(const struct rpma_rt_srq_cfg *cfg)
{
	return cfg->pool != NULL ? 0
				 : rt_line_places(cfg->srq_size, cfg->waiting);
}

static int srq_alloc(const struct rpma_rt_srq_cfg *cfg,
		     struct rpma_rt_srq **srq_ptr)
{
	const struct rt_line_size line = {
		.places = srq_places_of(cfg),
		.stride = sizeof(struct rt_line_recv) +
			  rt_line_behind(cfg->max_sge, 0),
	};
	struct rpma_rt_srq *srq;
	uint32_t entries = 1;
	uint32_t i;

	srq = aligned_alloc(RT_CACHE_LINE, sizeof(*srq));
	if (srq == NULL)
		return RPMA_E_NOMEM;
	memset(srq, 0, sizeof(*srq));
	rt_wait_cond_init(&srq->left);
	srq->cfg = *cfg;
	while (entries < cfg->srq_size)
		entries *= 2;
	srq->mask = entries - 1;
	srq->slots = calloc(cfg->srq_size, sizeof(*srq->slots));
	srq->returned = calloc(entries, sizeof(*srq->returned));
	if (srq->slots == NULL || srq->returned == NULL ||
	    rt_line_new(&srq->turn, &line)) {
		srq_free(srq);
		return RPMA_E_NOMEM;
	}
	for (i = 0; i < cfg->srq_size; i++)
		srq->returned[i] = i;
	srq->count = cfg->srq_size;
	/* relaxed, both: no other thread knows the SRQ yet */
	atomic_store_explicit(&srq->retired, cfg->srq_size,
			      memory_order_relaxed);
	atomic_store_explicit(&srq->retired_ms, rt_now_ms(),
			      memory_order_relaxed);
	srq->arm_msg.fn = srq_arm_message;
	srq->fail_msg.fn = srq_fail_message;
	*srq_ptr = srq;
	return 0;
}

/* Makes the device's SRQ. */
static int srq_verbs_new(struct rpma_rt_srq *srq)
{
	struct rpma_srq_cfg *cfg;
	int ret;

	ret = rpma_srq_cfg_new(&cfg);
	if (ret)
		return ret;
	rpma_srq_cfg_set_rq_size(cfg, srq->cfg.srq_size);
	rpma_srq_cfg_set_max_sge(cfg, srq->cfg.max_sge);
	/* receives complete on the connections' CQs */
	rpma_srq_cfg_set_rcq_size(cfg, 0);
	ret = rpma_srq_new(srq->peer, cfg, &srq->srq);
	rpma_srq_cfg_delete(&cfg);
	if (ret)
		return ret;
	rpma_srq_get_ibv_srq(srq->srq, &srq->ibv_srq);
	rt_turn_open(&srq->turn);
	srq->verb_is_plain = rt_verb_is_plain(srq->device->ibv_ctx);
	srq->async = (struct rt_async_object){.object = srq->ibv_srq,
					      .event = srq_async_event};
	rt_async_own(&srq->async);
	return 0;
}

static int srq_verbs_delete(struct rpma_rt_srq *srq)
{
	rt_async_disown(&srq->async);
	return rpma_srq_delete(&srq->srq);
}

static int srq_take_number(struct rt_poller *poller, uint32_t *number_ptr)
{
	uint32_t number;

	for (number = RT_SRQ_FIRST; number < RT_SRQ_END; number++) {
		if (poller->numbers_taken[number])
			continue;
		poller->numbers_taken[number] = true;
		*number_ptr = number;
		return 0;
	}
	return RPMA_E_NOMEM;
}

struct beginning {
	struct rt_call call;
	struct rpma_rt_srq *srq;
	struct rt_spill *spill;
};

static int srq_begin_on_poller(void *arg)
{
	struct beginning *beginning = arg;
	struct rpma_rt_srq *srq = beginning->srq;

	if (srq->lane != NULL)
		rt_lane_take_spill_poller(srq->lane, beginning->spill);
	rt_srq_begin_poller(srq);
	return 0;
}

/* Notes that a message left the list, on the poller: a receive may be posted in
 * its place. */
static void srq_taken(void *owner)
{
	struct rpma_rt_srq *srq = owner;

	rt_deliver_touch_number(srq->poller, srq->number);
}

/* Makes the source of messages that no queue gets. REQUIRES: the runtime's
 * lock */
static int srq_make_messages(struct rpma_rt_srq *srq)
{
	const struct rt_source_cfg cfg = {
		.kind = &rt_source_messages,
		.poller = srq->poller,
		.futures = srq->cfg.futures,
		.messages = srq->cfg.srq_size,
		.taken = srq_taken,
		.owner = srq,
	};

	if (cfg.futures == 0)
		return 0;
	srq->messages = rt_source_new(&cfg);
	return srq->messages != NULL ? 0 : RPMA_E_NOMEM;
}

/* Reserves places in the SRQ's queue, and makes the source of messages that no
 * queue gets. REQUIRES: the runtime's lock */
static int srq_reserve(struct rpma_rt_srq *srq, struct rt_spill **spill_ptr)
{
	int ret = srq_make_messages(srq);

	if (ret || srq->queue == NULL)
		return ret;
	srq->reserved = rt_srq_items(srq) + RT_SRQ_EVENTS;
	ret = rt_reserve_lane(srq->poller, srq->queue, srq->reserved,
			      &srq->lane, spill_ptr);
	if (ret)
		rt_source_undo(srq->messages);
	return ret;
}

/* Takes a number and the places, lists the SRQ, and sends the SRQ to the
 * poller, in the order of the reservations in the lanes. REQUIRES: the
 * runtime's lock */
static int srq_register_locked(struct beginning *beginning)
{
	struct rpma_rt_srq *srq = beginning->srq;
	struct rpma_rt *rt = srq->rt;
	int ret;

	ret = srq_take_number(srq->poller, &srq->number);
	if (ret)
		return ret;
	ret = srq_reserve(srq, &beginning->spill);
	if (ret) {
		srq->poller->numbers_taken[srq->number] = false;
		return ret;
	}
	srq->next = rt->srqs;
	rt->srqs = srq;
	rt_pool_ref(srq->cfg.pool);
	if (srq->cfg.pool != NULL)
		rt_feed_join(&srq->feed);
	rt_pool_use(srq->cfg.pool, srq->cfg.srq_size);
	/* relaxed: a count, which orders no other data */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	rt_context_list(rt, &rt->listed_srqs, &srq->listed);
	rt_poller_call_send(srq->poller, &beginning->call, srq_begin_on_poller,
			    beginning);
	return 0;
}

static int srq_make(struct rpma_rt_srq *srq)
{
	struct beginning beginning = {.srq = srq};
	int ret = srq_verbs_new(srq);

	if (ret)
		return ret;
	pthread_mutex_lock(&srq->rt->lock);
	ret = srq_register_locked(&beginning);
	pthread_mutex_unlock(&srq->rt->lock);
	if (ret) {
		srq_verbs_delete(srq);
		return ret;
	}
	rt_poller_call_wait(srq->poller, &beginning.call);
	rt_pool_log_short(srq->cfg.pool);
	return 0;
}

/* Returns the size of an SRQ that shares its pool with an SRQ of each other
 * poller. */
static uint32_t srq_part_of_pool(const struct rpma_rt_pool *pool)
{
	uint32_t part = pool->receives / pool->rt->cfg.pollers;

	return part > 0 ? part : 1;
}

/* Replaces srq_size 0 by the default that the public header names. */
static int srq_resolve_size(struct rpma_rt_srq_cfg *cfg)
{
	if (cfg->srq_size == 0)
		cfg->srq_size = cfg->pool == NULL ? RPMA_RT_DEFAULT_SRQ_SIZE
						  : srq_part_of_pool(cfg->pool);
	if (cfg->limit <= cfg->srq_size)
		return 0;
	return rt_cfg_refuse("rpma_rt_srq_cfg", "limit", cfg->limit, 0,
			     cfg->srq_size);
}

int rpma_rt_srq_new(struct rpma_rt *rt, const struct rpma_rt_srq_cfg *cfg,
		    struct rpma_rt_srq **srq_ptr)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no SRQ is made";
	struct rpma_rt_srq_cfg checked;
	struct ibv_context *ibv_ctx;
	struct rt_device *device;
	struct rpma_rt_srq *srq;
	int ret;

	ret = RT_REFUSE_NULL(rt, cfg, srq_ptr);
	if (ret == 0)
		ret = rt_cfg_read_srq(cfg, rt->cfg.pollers, &checked);
	if (ret == 0 && checked.queue != NULL)
		ret = rt_queue_check_of(checked.queue, rt,
					"rpma_rt_srq_cfg.queue");
	if (ret == 0)
		ret = rt_pool_check_of(checked.pool, rt, checked.peer,
				       "rpma_rt_srq_cfg.pool");
	if (ret == 0)
		ret = srq_resolve_size(&checked);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	ret = rt_context_ref(rt);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = rpma_peer_get_ibv_context(checked.peer, &ibv_ctx);
	if (ret == 0)
		ret = rt_device_get(rt, ibv_ctx, &device);
	if (ret == 0)
		ret = srq_alloc(&checked, &srq);
	if (ret)
		goto release_runtime;
	srq->rt = rt;
	srq->peer = checked.peer;
	srq->device = device;
	srq->poller = &rt->pollers[checked.poller];
	srq->user = checked.user;
	srq->queue = checked.queue;
	ret = rt_srq_prepare_poller(srq);
	if (ret == 0)
		ret = srq_make(srq);
	if (ret)
		srq_free(srq);
	else
		*srq_ptr = srq;
release_runtime:
	rt_context_unref(rt);
	return RT_REFUSED(ret, what);
}

/* --------------------------------------------------------------- ending --- */

static int srq_do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int srq_end_on_poller(void *arg)
{
	return rt_srq_end_poller(arg);
}

static void srq_unlist(struct rpma_rt *rt, const struct rpma_rt_srq *srq)
{
	struct rpma_rt_srq **link = &rt->srqs;

	while (*link != srq)
		link = &(*link)->next;
	*link = srq->next;
}

/* Gives back the places in the SRQ's queue. REQUIRES: the runtime's lock */
static void srq_release_queue(struct rpma_rt_srq *srq)
{
	if (srq->queue == NULL)
		return;
	srq->lane->reserved -= srq->reserved;
	rt_queue_unref_announced(srq->queue);
}

/* Ends the SRQ; afterwards only the record is left. keeps_messages: listed
 * messages stay until the handle goes. REQUIRES: the SRQ has no users. */
static int srq_finish(struct rpma_rt_srq *srq, bool keeps_messages)
{
	struct rpma_rt *rt = srq->rt;
	int ret;

	rt_turn_close(&srq->turn);
	rt_turn_await(&srq->turn, RT_TURN_HELD);
	/* from here on no thread finds the SRQ to report a failure */
	pthread_mutex_lock(&rt->lock);
	srq_unlist(rt, srq);
	pthread_mutex_unlock(&rt->lock);
	rt_async_disown(&srq->async);
	/* waits for an arm message, which names the device's SRQ, and for a
	 * failure message */
	rt_call_sync(rt, &srq->device->control.inbox, srq_do_nothing, NULL);
	ret = srq_verbs_delete(srq);
	/* after a limit message and a failure message on the poller */
	while (rt_poller_call(srq->poller, srq_end_on_poller, srq))
		; /* the poller does other work between two parts */
	if (!keeps_messages)
		rt_source_drop_mt(srq->messages); /* before the pool may go */
	pthread_mutex_lock(&rt->lock);
	srq->poller->numbers_taken[srq->number] = false;
	/* relaxed: a thread that deletes the queue takes the directory's lock
	 * afterwards */
	atomic_store_explicit(&srq->is_over, true, memory_order_relaxed);
	srq_release_queue(srq);
	if (srq->cfg.pool != NULL)
		rt_feed_leave(&srq->feed);
	rt_pool_disuse(srq->cfg.pool, srq->cfg.srq_size);
	rt_pool_unref(srq->cfg.pool);
	pthread_mutex_unlock(&rt->lock);
	return ret;
}

void rt_srq_finish_all(struct rpma_rt *rt)
{
	struct rpma_rt_srq *srq;

	for (;;) {
		/* no thread makes or deletes an SRQ any more, so no other
		 * thread uses the list */
		pthread_mutex_lock(&rt->lock);
		srq = rt->srqs;
		pthread_mutex_unlock(&rt->lock);
		if (srq == NULL)
			return;
		srq_finish(srq, true);
	}
}

/* Bars further users, unless the SRQ has users; waits for users whose CLOSED
 * has been written, because such users are about to go. */
static int srq_close_to_users(struct rpma_rt_srq *srq)
{
	struct rt_wait wait = {0};
	int ret = 0;

	pthread_mutex_lock(&srq->rt->lock);
	/* relaxed: a caller that has seen CLOSED sees the earlier stores */
	while (srq->users > 0 &&
	       srq->users == atomic_load_explicit(&srq->leaving,
						  memory_order_relaxed))
		rt_wait_step(&wait, &srq->left, &srq->rt->lock);
	if (srq->users > 0)
		ret = RPMA_RT_E_BUSY;
	else
		srq->closing = true;
	pthread_mutex_unlock(&srq->rt->lock);
	return ret;
}

/* Frees the SRQ, or keeps the SRQ for the runtime's end: a thread that was
 * inside a post while the runtime stopped may have sent the look message, which
 * no thread runs before the runtime is deleted. REQUIRES: the runtime's lock */
static void srq_free_or_leave(struct rpma_rt_srq *srq)
{
	/* relaxed: no thread posts any more */
	if (!atomic_load_explicit(&srq->look_sent, memory_order_relaxed)) {
		srq_free(srq);
		return;
	}
	srq->next = srq->rt->left_srqs;
	srq->rt->left_srqs = srq;
}

void rt_srq_free_left(struct rpma_rt *rt)
{
	struct rpma_rt_srq *srq;

	while ((srq = rt->left_srqs) != NULL) {
		rt->left_srqs = srq->next;
		srq_free(srq);
	}
}

int rpma_rt_srq_delete(struct rpma_rt_srq **srq_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_srq *srq;
	struct rpma_rt *rt;
	bool is_used;
	int ret;

	ret = RT_REFUSE_NULL(srq_ptr);
	if (ret || *srq_ptr == NULL)
		return ret;
	srq = *srq_ptr;
	rt = srq->rt;
	ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	if (rt_context_ref(rt) == 0) {
		ret = srq_close_to_users(srq);
		is_used = ret != 0;
		if (!is_used)
			ret = srq_finish(srq, false);
		rt_context_unref(rt);
	} else { /* the stop ends the SRQ */
		rt_context_wait_stopped(rt);
		ret = srq_close_to_users(srq);
		is_used = ret != 0;
	}
	if (is_used) {
		/* relaxed: statistic, orders nothing */
		atomic_store_explicit(&srq->delete_refused, true,
				      memory_order_relaxed);
		return RT_REFUSE(ret,
				 "the SRQ is not deleted: a listener, or a "
				 "connection whose CLOSED has not come, "
				 "uses it");
	}
	rt_context_unlist(rt, &srq->listed);
	/* messages of an SRQ that the stop ended */
	rt_source_drop_mt(srq->messages);
	pthread_mutex_lock(&rt->lock);
	rt_future_block_return(srq->messages);
	srq_free_or_leave(srq);
	pthread_mutex_unlock(&rt->lock);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
	*srq_ptr = NULL;
	return ret;
}

/* ---------------------------------------------------------------- users --- */

void rt_srq_unref_announced(struct rpma_rt_srq *srq)
{
	srq->users--;
	/* relaxed: changed under the lock */
	atomic_fetch_sub_explicit(&srq->leaving, 1, memory_order_relaxed);
	pthread_cond_broadcast(&srq->left);
}
