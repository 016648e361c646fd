/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * change.c -- what an application may still change of a connection: its
 * user pointer, its own queue, routes more. The calling thread reserves under
 * the runtime's lock, the poller takes it over while the caller waits without
 * it. doc/protocols/connection.md, "Changes".
 */

#include "conn/change.h"

#include <pthread.h>

#include "base/context.h"
#include "base/runtime.h"
#include "base/wait.h"
#include "conn/bind.h"
#include "conn/conn.h"
#include "conn/route.h"
#include "poller/poller.h"
#include "queue/queue.h"

struct change {
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route; /* to come */
	struct rpma_rt_route *to[2]; /* only where the own ones shall lead */
	struct rt_spill *spill[2];
	struct rt_call call;
};

/* Something that waits for the poller is asked of a connection. */
static int check_wait(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? RPMA_E_INVAL : rt_context_check_wait(conn->rt);
}

static int is_changeable(const struct rpma_rt_conn *conn)
{
	/* relaxed: both are the calling thread's own doing, or it is a race
	 * of the application's */
	return !(atomic_load_explicit(&conn->reached, memory_order_relaxed) &
		 (RT_REACHED_DECISION | RT_REACHED_POST));
}

/* Has it begun to die? Then its routes are final. */
static bool is_dying_on_poller(const struct rpma_rt_conn *conn)
{
	return conn->poll.state != RT_PS_HEALTHY;
}

static bool is_busy(const struct rpma_rt_conn *conn)
{
	return conn->change == RT_CHANGE_BUSY ||
	       conn->change == RT_CHANGE_BUSY_DONE;
}

/*
 * Locks the runtime for a change of a connection: one at a time, and none of
 * one that is DONE. Until end_change() the connection is not DONE, so its
 * control thread and its poller go on; the lock may be let go of meanwhile.
 */
static int begin_change(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;
	struct rt_wait wait = {0};

	pthread_mutex_lock(&rt->lock);
	while (is_busy(conn))
		rt_wait_step(&wait, &rt->changed, &rt->lock);
	if (conn->change == RT_CHANGE_CLOSED) {
		pthread_mutex_unlock(&rt->lock);
		return RPMA_RT_E_CLOSED;
	}
	conn->change = RT_CHANGE_BUSY;
	return 0;
}

/* REQUIRES: the runtime's lock, which it unlocks */
static void end_change(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	if (conn->change == RT_CHANGE_BUSY_DONE)
		rt_conn_tell_control(conn, RT_CTL_DONE);
	conn->change = RT_CHANGE_NONE;
	pthread_cond_broadcast(&rt->changed);
	pthread_mutex_unlock(&rt->lock);
}

bool rt_change_close_control(struct rpma_rt_conn *conn)
{
	bool busy;

	pthread_mutex_lock(&conn->rt->lock);
	busy = is_busy(conn);
	conn->change = busy ? RT_CHANGE_BUSY_DONE : RT_CHANGE_CLOSED;
	pthread_mutex_unlock(&conn->rt->lock);
	return !busy;
}

/* The poller's answer. It is asked under the runtime's lock, in the order of
 * reservations, and awaited without it. */
static int ask_poller(struct change *change, int (*fn)(void *arg))
{
	struct rpma_rt_conn *conn = change->conn;
	int ret;

	rt_poller_call_send(conn->poller, &change->call, fn, change);
	pthread_mutex_unlock(&conn->rt->lock);
	ret = rt_poller_call_wait(conn->poller, &change->call);
	pthread_mutex_lock(&conn->rt->lock);
	return ret;
}

static int set_user_on_poller(void *arg)
{
	struct change *change = arg;

	if (!is_dying_on_poller(change->conn))
		rt_bind_set_user_poller(change->conn);
	return 0;
}

int rpma_rt_conn_set_user(struct rpma_rt_conn *conn, void *user)
{
	struct change change = {.conn = conn};
	int ret = check_wait(conn);

	if (ret)
		return ret;
	/* relaxed: the calling thread's own doing */
	if (atomic_load_explicit(&conn->reached, memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return RPMA_E_INVAL;
	ret = begin_change(conn);
	if (ret)
		return ret;
	/* relaxed: published by the inbox */
	atomic_store_explicit(&conn->user, user, memory_order_relaxed);
	ask_poller(&change, set_user_on_poller);
	end_change(conn);
	return 0;
}

/* What a change has reserved is its lanes', whether or not it comes about:
 * others may rely on the larger spill already. */
static void take_spills_on_poller(struct change *change)
{
	struct rpma_rt_route *const routes[] = {
		change->route ? change->route : change->to[0], change->to[1]};
	int i;

	for (i = 0; i < 2; i++) {
		if (change->spill[i] != NULL)
			rt_lane_take_spill_poller(routes[i]->lane,
						  change->spill[i]);
		change->spill[i] = NULL;
	}
}

static int set_queue_on_poller(void *arg)
{
	struct change *change = arg;

	take_spills_on_poller(change);
	if (is_dying_on_poller(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_bind_set_queue_poller(change->conn, change->to[0]);
	/* what was staged for the former queue: it may be deleted after this */
	rt_deliver_flush(change->conn->poller);
	return 0;
}

int rpma_rt_conn_set_queue(struct rpma_rt_conn *conn,
			   struct rpma_rt_queue *queue)
{
	struct change change = {.conn = conn};
	struct rpma_rt_queue *from;
	struct rt_lane *from_lane;
	int ret = check_wait(conn);
	int i;

	if (ret)
		return ret;
	if (queue == NULL || !rt_queue_is_of(queue, conn->rt) ||
	    !is_changeable(conn))
		return RPMA_E_INVAL;
	ret = begin_change(conn);
	if (ret)
		return ret;
	from = conn->own[RPMA_RT_SEND_SIDE]->queue;
	from_lane = conn->own[RPMA_RT_SEND_SIDE]->lane;
	for (i = 0; i < 2; i++) {
		ret = rt_route_new(conn, (enum rpma_rt_side)i, queue,
				   conn->own[i]->reserved, &change.to[i],
				   &change.spill[i]);
		if (ret)
			goto undo;
	}
	ret = ask_poller(&change, set_queue_on_poller);
	if (ret)
		goto undo;
	while (i-- > 0)
		rt_route_swap(conn->own[i], from, from_lane, change.to[i]);
	goto end;
undo:
	while (i-- > 0)
		rt_route_undo(conn, change.to[i], change.spill[i]);
end:
	end_change(conn);
	return ret;
}

static int add_route_on_poller(void *arg)
{
	struct change *change = arg;

	take_spills_on_poller(change);
	if (is_dying_on_poller(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_bind_add_route_poller(change->conn, change->route);
	return 0;
}

/* A route to the queue, or, where that is NULL, to the function. */
static int open_route(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		      struct rpma_rt_queue *queue, rpma_rt_route_fn *fn,
		      void *arg, struct rpma_rt_route **route_ptr)
{
	struct change change = {.conn = conn};
	uint32_t entries = conn->gate[side].ledger.depth + RT_ROUTE_EVENTS;
	int ret;

	ret = begin_change(conn);
	if (ret)
		return ret;
	ret = rt_route_new(conn, side, queue, entries, &change.route,
			   &change.spill[0]);
	if (ret)
		goto end;
	change.route->callback.fn = fn;
	change.route->callback.arg = arg;
	ret = ask_poller(&change, add_route_on_poller);
	if (ret)
		rt_route_undo(conn, change.route, change.spill[0]);
	else
		*route_ptr = change.route;
end:
	end_change(conn);
	return ret;
}

int rpma_rt_route_open(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       struct rpma_rt_queue *queue,
		       struct rpma_rt_route **route_ptr)
{
	int ret = check_wait(conn);

	if (ret)
		return ret;
	if (queue == NULL || route_ptr == NULL || (int)side < 0 || side > 1 ||
	    !rt_queue_is_of(queue, conn->rt))
		return RPMA_E_INVAL;
	return open_route(conn, side, queue, NULL, NULL, route_ptr);
}

int rpma_rt_route_open_callback(struct rpma_rt_conn *conn,
				enum rpma_rt_side side, rpma_rt_route_fn *fn,
				void *arg, struct rpma_rt_route **route_ptr)
{
	int ret = check_wait(conn);

	if (ret)
		return ret;
	if (fn == NULL || route_ptr == NULL || (int)side < 0 || side > 1)
		return RPMA_E_INVAL;
	return open_route(conn, side, NULL, fn, arg, route_ptr);
}
