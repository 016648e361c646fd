/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * change.c -- what an application may still change of a connection: its
 * user pointer, its own queue, routes more. The calling thread reserves under
 * the runtime's lock, the poller takes it over while the caller waits.
 */

#include "conn/conn.h"

#include <pthread.h>

#include "base/context.h"
#include "base/runtime.h"
#include "conn/bind.h"
#include "conn/route.h"
#include "poller/poller.h"
#include "queue/queue.h"

/* Something that waits for the poller is asked of a connection. */
static int check_wait(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? RPMA_E_INVAL : rt_context_check_wait(conn->rt);
}

struct change {
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route; /* to come */
	struct rpma_rt_route *to[2]; /* only where the own ones shall lead */
	struct rt_spill *spill[2];
};

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

/* Locks the runtime. While it is held a connection that is not DONE keeps the
 * pollers going; they never take it, so it may be held while one answers. */
static int lock_living(struct rpma_rt_conn *conn)
{
	pthread_mutex_lock(&conn->rt->lock);
	if (!conn->is_done)
		return 0;
	pthread_mutex_unlock(&conn->rt->lock);
	return RPMA_RT_E_CLOSED;
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
	ret = lock_living(conn);
	if (ret)
		return ret;
	/* relaxed: published by the inbox */
	atomic_store_explicit(&conn->user, user, memory_order_relaxed);
	rt_call_sync(conn->rt, &conn->poller->inbox, set_user_on_poller,
		     &change);
	pthread_mutex_unlock(&conn->rt->lock);
	return 0;
}

static int set_queue_on_poller(void *arg)
{
	struct change *change = arg;

	if (is_dying_on_poller(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_bind_set_queue_poller(change->conn, change->to[0], change->spill);
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
	ret = lock_living(conn);
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
	ret = rt_call_sync(conn->rt, &conn->poller->inbox, set_queue_on_poller,
			   &change);
	if (ret)
		goto undo;
	while (i-- > 0)
		rt_route_swap(conn->own[i], from, from_lane, change.to[i]);
	goto unlock;
undo:
	while (i-- > 0)
		rt_route_undo(conn, change.to[i], change.spill[i]);
unlock:
	pthread_mutex_unlock(&conn->rt->lock);
	return ret;
}

static int add_route_on_poller(void *arg)
{
	struct change *change = arg;

	if (is_dying_on_poller(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_bind_add_route_poller(change->conn, change->route, change->spill[0]);
	return 0;
}

/* A route to the queue, or, where that is NULL, to the function. */
static int open_route(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		      struct rpma_rt_queue *queue, rpma_rt_callback *fn,
		      void *arg, struct rpma_rt_route **route_ptr)
{
	struct change change = {.conn = conn};
	uint32_t entries = conn->gate[side].ledger.depth + RT_ROUTE_EVENTS;
	int ret;

	ret = lock_living(conn);
	if (ret)
		return ret;
	ret = rt_route_new(conn, side, queue, entries, &change.route,
			   &change.spill[0]);
	if (ret)
		goto unlock;
	change.route->callback.fn = fn;
	change.route->callback.arg = arg;
	ret = rt_call_sync(conn->rt, &conn->poller->inbox, add_route_on_poller,
			   &change);
	if (ret)
		rt_route_undo(conn, change.route, change.spill[0]);
	else
		*route_ptr = change.route;
unlock:
	pthread_mutex_unlock(&conn->rt->lock);
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
				enum rpma_rt_side side, rpma_rt_callback *fn,
				void *arg, struct rpma_rt_route **route_ptr)
{
	int ret = check_wait(conn);

	if (ret)
		return ret;
	if (fn == NULL || route_ptr == NULL || (int)side < 0 || side > 1)
		return RPMA_E_INVAL;
	return open_route(conn, side, NULL, fn, arg, route_ptr);
}
