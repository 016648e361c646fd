/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener_poller.c -- the parts of a listener, a part for each poller. The end
 * of a listener runs on its pollers, each in its own lane; the last of these
 * pollers reports to the control thread.
 */

#include "conn/listener.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/runtime.h"
#include "conn/conn.h"
#include "future/future.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "poller/source.h"
#include "queue/lane.h"
#include "queue/queue.h"
#include "srq/srq.h"

static void listener_try_end(struct rt_listener_poller *part);

static void listener_place_message(struct rt_msg *msg, void *owner)
{
	struct rt_listener_poller *part =
		RT_FROM(struct rt_listener_poller, place_msg, msg);

	(void)owner;
	rt_lane_take_spill_poller(part->lane, part->spill);
	part->spill = NULL;
}

static void listener_end_message(struct rt_msg *msg, void *owner)
{
	struct rt_listener_poller *part =
		RT_FROM(struct rt_listener_poller, end_msg, msg);

	(void)owner;
	part->is_ending = true;
	listener_try_end(part);
}

/* --------------------------------------------------------------- making --- */

/* Returns whether the poller may get a request. */
static bool listener_is_candidate(const struct rt_conn_cfg *cfg,
				  uint32_t poller)
{
	uint64_t with_srq = rt_conn_cfg_srq_pollers(cfg);

	if (cfg->poller >= 0 && cfg->poller != (int)poller)
		return false;
	return with_srq == 0 || (with_srq >> poller & 1);
}

static int listener_part_init(struct rt_listener_poller *part,
			      struct rpma_rt_listener *listener, uint32_t index)
{
	struct rt_poller *poller = &listener->rt->pollers[index];
	const struct rt_conn_cfg *cfg = &listener->cfg;
	struct rpma_rt_queue *queue = rt_conn_cfg_queue(cfg, index);

	/* with a single queue for several pollers, a poller that gets no
	 * request writes nothing to the queue. A queue of a single poller has
	 * its LISTENER_CLOSED, too, if the poller gets no request */
	if (cfg->queues[0] == NULL && !listener_is_candidate(cfg, index))
		return 0;
	part->is_used = true;
	part->listener = listener;
	part->poller = poller;
	part->end_msg.fn = listener_end_message;
	part->place_msg.fn = listener_place_message;
	if (queue == NULL)
		return 0;
	part->lane = rt_queue_lane(queue, (int)index, &poller->bell);
	if (part->lane == NULL)
		return RPMA_E_NOMEM;
	part->queue = queue;
	rt_queue_ref(queue);
	return 0;
}

/* Returns how many lanes of the listener lead to the queue. */
static uint32_t listener_count_lanes(const struct rpma_rt_listener *listener,
				     const struct rpma_rt_queue *queue)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < listener->rt->cfg.pollers; i++)
		count += listener->parts[i].queue == queue;
	return count;
}

/* Returns whether the part is the first part that leads to its queue. */
static bool listener_is_first(const struct rpma_rt_listener *listener,
			      uint32_t index)
{
	uint32_t i;

	for (i = 0; i < index; i++) {
		if (listener->parts[i].queue == listener->parts[index].queue)
			return false;
	}
	return true;
}

/* Makes the joints in advance, because nothing is allocated in an end. */
static int listener_make_joints(struct rpma_rt_listener *listener)
{
	struct rt_listener_poller *parts = listener->parts;
	struct rt_joint *joint;
	uint32_t lanes;
	uint32_t i;
	uint32_t k;

	for (i = 0; i < listener->rt->cfg.pollers; i++) {
		if (parts[i].queue == NULL || !listener_is_first(listener, i))
			continue;
		lanes = listener_count_lanes(listener, parts[i].queue);
		if (lanes == 1)
			continue;
		joint = calloc(1, sizeof(*joint));
		if (joint == NULL)
			return RPMA_E_NOMEM;
		/* relaxed: no other thread knows the joint */
		atomic_store_explicit(&joint->lanes, lanes,
				      memory_order_relaxed);
		for (k = i; k < listener->rt->cfg.pollers; k++) {
			if (parts[k].queue == parts[i].queue)
				parts[k].joint = joint;
		}
	}
	return 0;
}

/* Frees the joints, of which no token was or will be written. */
static void listener_free_joints(struct rpma_rt_listener *listener)
{
	uint32_t i;

	for (i = 0; i < listener->rt->cfg.pollers; i++) {
		if (listener->parts[i].queue != NULL &&
		    listener_is_first(listener, i))
			free(listener->parts[i].joint);
	}
}

int rt_listener_poller_new_all(struct rpma_rt_listener *listener)
{
	uint32_t count = listener->rt->cfg.pollers;
	uint32_t i;
	int ret = 0;

	listener->parts = calloc(count, sizeof(*listener->parts));
	if (listener->parts == NULL)
		return RPMA_E_NOMEM;
	for (i = 0; i < count && ret == 0; i++)
		ret = listener_part_init(&listener->parts[i], listener, i);
	if (ret == 0)
		ret = listener_make_joints(listener);
	if (ret)
		rt_listener_poller_undo_all(listener);
	return ret;
}

void rt_listener_poller_undo_all(struct rpma_rt_listener *listener)
{
	struct rt_listener_poller *part;
	uint32_t i;

	listener_free_joints(listener);
	for (i = 0; i < listener->rt->cfg.pollers; i++) {
		part = &listener->parts[i];
		if (part->queue != NULL)
			rt_queue_unref(part->queue);
	}
	rt_listener_poller_free_all(listener);
}

/* ------------------------------------------- the place of the last item --- */

static int listener_reserve(struct rt_listener_poller *part)
{
	int ret;

	/* items of ended connections may fill the spill: see
	 * rt_reserve_lane() */
	if (rt_lane_is_backlogged(part->lane))
		return RPMA_RT_E_BUSY;
	ret = rt_reserve_spill(part->lane, 1, &part->spill);
	if (ret)
		return ret;
	part->is_reserved = true;
	if (part->spill != NULL)
		rt_inbox_push_mt(&part->poller->inbox, &part->place_msg);
	return 0;
}

int rt_listener_poller_reserve_all(struct rpma_rt_listener *listener)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < listener->rt->cfg.pollers && ret == 0; i++) {
		if (listener->parts[i].queue != NULL)
			ret = listener_reserve(&listener->parts[i]);
	}
	return ret;
}

static void listener_unreserve_all(struct rpma_rt_listener *listener)
{
	uint32_t i;

	pthread_mutex_lock(&listener->rt->lock);
	for (i = 0; i < listener->rt->cfg.pollers; i++) {
		if (listener->parts[i].is_reserved)
			listener->parts[i].lane->reserved--;
	}
	pthread_mutex_unlock(&listener->rt->lock);
}

/* ------------------------------------------------------------- requests --- */

static bool listener_is_srq_alive(const struct rpma_rt_srq *srq)
{
	return srq == NULL || !rt_srq_has_failed(srq);
}

/* most requests that wait for a future, as many as in a queue */
#define WAITING_MAX RPMA_RT_DEFAULT_BACKLOG_LIMIT

static bool listener_may_list(const struct rpma_rt_listener *listener)
{
	return rt_source_count(listener->requests->source) < WAITING_MAX;
}

uint64_t rt_listener_poller_open(const struct rpma_rt_listener *listener)
{
	const struct rt_conn_cfg *cfg = &listener->cfg;
	struct rpma_rt_queue *queue;
	const struct rt_lane *lane;
	struct rt_poller *poller;
	uint64_t open = 0;
	uint32_t i;

	for (i = 0; i < listener->rt->cfg.pollers; i++) {
		if (!listener_is_candidate(cfg, i) ||
		    !listener_is_srq_alive(cfg->srqs[i]))
			continue;
		queue = rt_conn_cfg_queue(cfg, i);
		if (queue == NULL && listener_may_list(listener))
			open |= UINT64_C(1) << i;
		if (queue == NULL || rt_queue_is_closed(queue))
			continue;
		poller = &listener->rt->pollers[i];
		lane = rt_queue_lane(queue, (int)i, &poller->bell);
		if (lane != NULL && !rt_lane_is_backlogged(lane))
			open |= UINT64_C(1) << i;
	}
	return open;
}

static void listener_offered_message(struct rt_msg *msg, void *owner)
{
	struct rt_conn_setup *setup =
		RT_FROM(struct rt_conn_setup, begin_msg, msg);

	rt_source_add_poller(setup->requests->source, &setup->request);
	rt_deliver_asked(owner, setup->requests, 0);
}

void rt_listener_poller_offer(struct rt_listener_poller *part,
			      struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;

	/* the handle, which the program does not have yet, keeps the connection
	 * and the setup */
	setup->request.item = rt_item_event(conn, RPMA_RT_EVENT_REQUEST);
	setup->requests = part->listener->requests;
	setup->begin_msg.fn = listener_offered_message;
	rt_inbox_push_mt(&setup->requests->poller->inbox, &setup->begin_msg);
}

/* Returns why a request is refused, and what to do. */
static const char *listener_reason_2str(int error,
					char words[static RT_FAILURE_WORDS])
{
	if (error > 0)
		return rt_failure_2str(RT_STEP_QP, error, words);
	switch (error) {
	case RPMA_RT_E_BUSY:
		return "each of its queues is over its backlog_limit (take "
		       "from it faster) or closed, or its SRQ has failed, or "
		       "too many wait for rpma_rt_next_future()";
	case RPMA_E_NOMEM:
		return "there is no memory, or no room in a completion queue";
	default:
		return rpma_rt_err_2str(error);
	}
}

void rt_listener_poller_count_refused(struct rpma_rt_listener *listener,
				      int error)
{
	char words[RT_FAILURE_WORDS];
	/* relaxed, both: statistics, which order nothing */
	uint32_t refused = 1 + atomic_fetch_add_explicit(&listener->refused, 1,
							 memory_order_relaxed);
	bool is_new =
		error != atomic_exchange_explicit(&listener->refused_for, error,
						  memory_order_relaxed);

	/* relaxed, both: statistics, which order nothing */
	atomic_store_explicit(&listener->refused_ms, rt_now_ms(),
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&listener->rt->requests_refused, 1,
				  memory_order_relaxed);
	/* logs the 1st, 2nd, 4th ... refusal, and each refusal with another
	 * cause */
	if (!is_new && (refused & (refused - 1)) != 0)
		return;
	RT_LOG_ERROR("the listener at port %u has refused %" PRIu32
		     " requests, the last because %s",
		     listener->port, refused,
		     listener_reason_2str(error, words));
}

void rt_listener_poller_requested(struct rt_listener_poller *part)
{
	/* relaxed: only the poller counts down, and looks at the count when
	 * end_msg has come, after which no thread counts up */
	atomic_fetch_sub_explicit(&part->due, 1, memory_order_relaxed);
	listener_try_end(part);
}

/* ------------------------------------------------------------------ end --- */

/* Ends the listener on the control thread: every poller has written its last
 * item and has rung. */
static void listener_ended_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_listener *listener =
		RT_FROM(struct rpma_rt_listener, ended_msg, msg);
	struct rpma_rt *rt = listener->rt;
	uint32_t i;

	(void)owner;
	if (listener->is_silent)
		listener_free_joints(listener);
	listener_unreserve_all(listener);
	for (i = 0; i < rt->cfg.pollers; i++) {
		if (listener->parts[i].queue != NULL)
			rt_queue_unref_announced(listener->parts[i].queue);
	}
	listener->target.ops->unref(&listener->target);
	rt_context_unref(rt);
}

static struct rpma_rt_completion
listener_closed_item(struct rpma_rt_listener *listener)
{
	return (struct rpma_rt_completion){
		.context = (uintptr_t)listener,
		.user = listener->cfg.user,
		.imm = (uint32_t)-listener->err,
		.kind = RPMA_RT_EVENT,
		.status = (uint8_t)listener->reason,
		.opcode = RPMA_RT_EVENT_LISTENER_CLOSED,
	};
}

/* Ends the source, on the poller of the requests: after each offered
 * request. */
static void listener_end_requests_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_listener *listener =
		RT_FROM(struct rpma_rt_listener, ended_msg, msg);
	const struct rpma_rt_completion item = listener_closed_item(listener);

	rt_source_end_poller(listener->requests, &item);
	rt_deliver_flush(owner);
	msg->fn = listener_ended_message;
	rt_inbox_push_mt(&listener->device->control.inbox, msg);
}

/* Counts down the parts that have not written their last item. */
static void listener_leave(struct rpma_rt_listener *listener)
{
	struct rt_inbox *inbox = &listener->device->control.inbox;

	/* acq_rel: pairs with the other pollers' decrements: the last poller
	 * sees that the others have rung */
	if (atomic_fetch_sub_explicit(&listener->parts_left, 1,
				      memory_order_acq_rel) != 1)
		return;
	if (listener->requests != NULL) {
		listener->ended_msg.fn = listener_end_requests_message;
		inbox = &listener->requests->poller->inbox;
	}
	rt_inbox_push_mt(inbox, &listener->ended_msg);
}

/* Writes the last item of this lane, once no REQUEST is due. The item has a
 * reserved place, because the thread that waits for the end may be the only
 * consumer. */
static void listener_try_end(struct rt_listener_poller *part)
{
	struct rpma_rt_listener *listener = part->listener;
	struct rpma_rt_completion item;

	/* relaxed: see rt_listener_poller_requested() */
	if (!part->is_ending ||
	    atomic_load_explicit(&part->due, memory_order_relaxed) > 0)
		return;
	if (part->lane == NULL) { /* requests are futures */
		part->is_ending = false;
		listener_leave(listener);
		return;
	}
	part->is_ending = false;
	item = part->joint ? rt_joint_token(part->joint)
			   : listener_closed_item(listener);
	/* before a consumer of the item may delete the queue */
	rt_queue_announce_unref(part->queue);
	if (!listener->is_silent)
		rt_deliver_write(part->poller, part->lane, &item);
	rt_deliver_flush(part->poller);
	listener_leave(listener);
}

void rt_listener_poller_end_all(struct rpma_rt_listener *listener)
{
	struct rt_listener_poller *part;
	struct rt_poller *poller;
	uint32_t count = listener->rt->cfg.pollers;
	uint32_t left = 0;
	uint32_t i;

	/* relaxed: statistic, which orders nothing */
	atomic_store_explicit(&listener->is_over, true, memory_order_relaxed);
	listener->ended_msg.fn = listener_ended_message;
	for (i = 0; i < count; i++) {
		part = &listener->parts[i];
		left += part->is_used;
		if (part->joint == NULL || !listener_is_first(listener, i) ||
		    listener->is_silent)
			continue;
		part->joint->item = listener_closed_item(listener);
		rt_joint_announce(part->queue);
	}
	/* relaxed: the inboxes publish the count */
	atomic_store_explicit(&listener->parts_left, left,
			      memory_order_relaxed);
	for (i = 0; i < count; i++) {
		/* the listener may be freed after the last message */
		part = &listener->parts[i];
		poller = part->poller;
		if (!part->is_used)
			continue;
		left--;
		rt_inbox_push_mt(&poller->inbox, &part->end_msg);
		if (left == 0)
			return;
	}
}
