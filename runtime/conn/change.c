/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * change.c -- changes of a connection by the application: the user pointer, the
 * own queue, additional routes, closed routes. The calling thread reserves
 * under the runtime's lock; the poller takes the result over while the caller
 * waits without the lock. doc/protocols/connection.md, "Changes"; route.md.
 */

#include "conn/conn.h"

#include <pthread.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/wait.h"
#include "conn/futures.h"
#include "conn/hold.h"
#include "conn/route.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "queue/lane.h"
#include "queue/queue.h"

/* a change of where completions go, in two steps; belongs to the caller, who
 * waits for each step */
struct rt_redirect {
	struct rpma_rt_conn *conn;
	/* a route that is closed, and the route that gets the owed
	 * completions */
	struct rpma_rt_route *route;
	struct rpma_rt_route *to;
	/* or, by side, a route that only says where the own route has to
	 * lead */
	struct rpma_rt_route *own_to[2];
	/* queue and lane of the closed route, or of both own routes, before the
	 * first step; NULL: the route led to a function */
	struct rpma_rt_queue *from;
	struct rt_lane *from_lane;
	/* set by the caller between the two steps, when no post can name the
	 * route any more. is_known: ledger and line were looked at; is_out: a
	 * work request is outstanding; last_retired: until so many entries have
	 * retired */
	bool is_known;
	bool is_out;
	uint32_t last_retired;
};

struct change {
	struct rpma_rt_conn *conn;
	void *user;		     /* the new user pointer */
	struct rpma_rt_route *route; /* the new route */
	/* routes that only say where the own routes have to lead */
	struct rpma_rt_route *to[2];
	struct rt_spill *spill[2];
	struct rt_redirect redirect;
	struct rt_call call;
};

/* -------------------------------------------------------- on the poller --- */

/* Returns whether the connection has begun to die: then its routes are
 * final. */
static bool change_is_dying(const struct rpma_rt_conn *conn)
{
	return conn->poll.state != RT_PS_HEALTHY;
}

/* Leads the receives of the SRQ to the route with that number from here on. */
static void rt_bind_redirect_poller(struct rpma_rt_conn *conn, uint32_t route)
{
	if (conn->poll.bind == RT_BIND_DONE)
		rt_qp_table_set(conn->cq->qps, conn->qp_num, route);
	conn->poll.srq_route = route;
}

/* Adds a route, whose lane has got its spill. */
static void rt_bind_add_route_poller(struct rpma_rt_conn *conn,
				     struct rpma_rt_route *route)
{
	struct rt_route_opened *opened = rt_route_opened(route);
	struct rt_route_entry entry = {
		.user = rt_item_user(conn),
		.side = &conn->side[route->side],
		.qp_key = conn->poll.bind != RT_BIND_NONE
				  ? rt_qp_key(conn->qp_num)
				  : RT_QP_KEY_NONE,
	};

	if (opened->callback.fn != NULL) {
		entry.leads_to = RT_TO_CALLBACK;
		entry.callback = &opened->callback;
	} else {
		entry.leads_to = RT_TO_LANE;
		entry.lane = rt_route_lane(route);
	}
	conn->cq->routes[route->number] = entry;
	if (rt_conn_srq(conn) != NULL && route->side == RPMA_RT_RECV_SIDE)
		rt_bind_redirect_poller(conn, route->number);
	rt_owing_list_poller(conn, route);
}

/* Stores the new user pointer in the routes' entries. */
static void rt_bind_set_user_poller(struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *route;

	for (route = conn->poll.routes; route != NULL;
	     route = rt_route_next(route))
		conn->cq->routes[route->number].user = rt_item_user(conn);
	rt_futures_set_user_poller(conn);
}

/*
 * A change of where a living connection's completions go: the own queue is
 * replaced, or a route is closed and another route gets the owed completions. A
 * change has two steps.
 *
 * After the first step all completions go to the new place. ROUTE_CLOSED is the
 * last item in the former place. A refused first step changes nothing. ERRORS:
 * RPMA_RT_E_CLOSED (the connection is dying), RPMA_RT_E_BUSY (a closed route:
 * the consumer of the new place is behind)
 *
 * Posters read a route's lane during the change: the lane is a single word, and
 * posters that waited for the former lane are answered after the change.
 */

/* ------------------------------------------------------- what is posted --- */

/* Shows posters the new lane. waiter: the route's waiter from here on; NULL: no
 * waiter. */
static void change_show_posters(struct rpma_rt_route *route,
				const struct rpma_rt_route *to,
				struct rt_waiter *waiter)
{
	rt_waiter_delete(route->waiter);
	route->waiter = waiter;
	/* release: pairs with the acquire in rt_route_lane(): the lane may have
	 * been made for this change. Stored before any credit of a completion
	 * in the new lane is given back [LANE-5] */
	atomic_store_explicit(&route->lane, rt_route_lane(to),
			      memory_order_release);
}

/* Answers posters that wait for the former lane: they look again, at another
 * lane. */
static void change_answer_waiters(struct rt_side *side, bool was_behind)
{
	/* was_behind: an answer was put off, because the own lane was over its
	 * limit. A poster that leaves its want later sends a message */
	if (was_behind || rt_side_wants(side, RT_WANT_BACKLOG))
		rt_answer_eased_poller(side);
}

/* ---------------------------------------------------- what is delivered --- */

static struct rt_route_entry *change_entry_of(const struct rpma_rt_route *route)
{
	return &route->conn->cq->routes[route->number];
}

/* Returns the root of the closed routes that lead to an open route. */
static struct rt_led **change_followers_of(struct rpma_rt_route *route)
{
	return route->is_own ? &route->conn->side[route->side].followers
			     : &rt_route_opened(route)->followers;
}

/* Leads a closed route, and all routes that lead to the closed route, where
 * `to` leads. */
static void change_lead_on(struct rpma_rt_route *route,
			   struct rpma_rt_route *to)
{
	struct rt_led *led = &rt_route_opened(route)->led;
	struct rt_route_entry *entry = change_entry_of(route);

	*led = (struct rt_led){.size = 1};
	led = rt_route_led_join(rt_route_opened(route)->followers, led);
	led = rt_route_led_join(led, *change_followers_of(to));
	led->to = change_entry_of(to);
	*change_followers_of(to) = led;
	rt_route_opened(route)->followers = NULL;
	entry->led = &rt_route_opened(route)->led;
	entry->leads_to = RT_TO_ROUTE;
}

/* Returns whether an open route of the connection, own routes included, leads
 * to the lane. */
static bool change_leads_there(const struct rpma_rt_conn *conn,
			       const struct rt_lane *lane)
{
	return lane == rt_conn_lane(conn) || rt_owing_has_lane(conn, lane);
}

/* Writes ROUTE_CLOSED, the connection's last item in the lane, unless another
 * route leads there. */
static void change_write_closed(struct rpma_rt_conn *conn, struct rt_lane *lane)
{
	struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_ROUTE_CLOSED);

	if (!change_leads_there(conn, lane))
		rt_deliver_write(conn->poller, lane, &item);
}

/* ------------------------------------------------------------ own queue --- */

/* Returns whether nothing was posted and the connection was not connected: the
 * consumer of the former queue then does not know of this connection. */
static bool change_is_early(const struct rpma_rt_conn *conn)
{
	/* relaxed: a completion comes after its post, and after the connect */
	return !(atomic_load_explicit(&conn->reached, memory_order_relaxed) &
		 (RT_REACHED_DECISION | RT_REACHED_POST));
}

/* Does the first step, for the own routes. */
static int rt_redirect_own_poller(struct rt_redirect *redirect)
{
	struct rpma_rt_conn *conn = redirect->conn;
	bool was_behind;
	int i;

	if (change_is_dying(conn))
		return RPMA_RT_E_CLOSED;
	redirect->from = conn->own[0].queue;
	redirect->from_lane = rt_conn_lane(conn);
	was_behind = rt_lane_is_backlogged(rt_conn_lane(conn));
	for (i = 0; i < 2; i++) {
		/* done here and not by the caller, because the connection may
		 * die before the caller goes on */
		change_show_posters(&conn->own[i], redirect->own_to[i],
				    redirect->own_to[i]->waiter);
		redirect->own_to[i]->waiter = NULL;
		conn->own[i].queue = redirect->own_to[i]->queue;
		change_entry_of(&conn->own[i])->lane =
			rt_route_lane(redirect->own_to[i]);
		/* the reader of ROUTE_CLOSED may delete the queue */
		rt_queue_announce_unref(redirect->from);
	}
	for (i = 0; i < 2; i++)
		change_answer_waiters(&conn->side[i], was_behind);
	if (!change_is_early(conn))
		change_write_closed(conn, redirect->from_lane);
	rt_deliver_flush(conn->poller);
	return 0;
}

/* --------------------------------------------------------- other routes --- */

/* Hands the wants of a function over to the connection's queue: a post that was
 * refused inside the function is answered in the queue, because the function is
 * not called any more. */
static void change_hand_wants_over(struct rt_route_opened *route)
{
	struct rpma_rt_conn *conn = route->route.conn;
	int i;

	for (i = 0; i < 2; i++) {
		if (!(route->wants & RT_WANTS(i)))
			continue;
		/* relaxed: only this thread posts inside functions */
		atomic_fetch_or_explicit(&conn->side[i].want, RT_WANT_CREDIT,
					 memory_order_relaxed);
		rt_deliver_touch_side(conn->poller, &conn->side[i]);
	}
	route->wants = 0;
}

static void change_end_function(struct rt_route_opened *route)
{
	struct rpma_rt_conn *conn = route->route.conn;
	struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_ROUTE_CLOSED);

	change_hand_wants_over(route);
	rt_deliver_call(conn->poller, &route->callback, &item);
}

static void change_end_lane(struct rt_redirect *redirect)
{
	struct rpma_rt_route *route = redirect->route;
	struct rt_side *side = &route->conn->side[route->side];

	change_answer_waiters(side, false);
	/* the reader of ROUTE_CLOSED may delete the queue */
	rt_queue_announce_unref(redirect->from);
	change_write_closed(route->conn, redirect->from_lane);
}

/* Does the first step, for a route that is closed. */
static int rt_redirect_route_poller(struct rt_redirect *redirect)
{
	struct rpma_rt_route *route = redirect->route;
	struct rpma_rt_conn *conn = redirect->conn;
	const struct rt_route_entry *to = change_entry_of(redirect->to);

	/* due functions are called while the route is open */
	rt_deliver_flush(conn->poller);
	if (change_is_dying(conn))
		return RPMA_RT_E_CLOSED;
	/* the room of `to` is for the posts of `to`, which are refused then */
	if (to->leads_to == RT_TO_LANE && rt_lane_is_backlogged(to->lane))
		return RPMA_RT_E_BUSY;
	redirect->from = route->queue;
	redirect->from_lane = rt_route_lane(route);
	route->queue = NULL;
	rt_owing_unhash_poller(rt_route_opened(route));
	/* relaxed: a poster that misses the store is waited for [ROUTE-1] */
	atomic_store_explicit(&route->open_side, RT_ROUTE_CLOSED,
			      memory_order_relaxed);
	change_show_posters(route, redirect->to, NULL);
	change_lead_on(route, redirect->to);
	if (conn->poll.srq_route == route->number)
		rt_bind_redirect_poller(conn, redirect->to->number);
	if (redirect->from_lane == NULL)
		change_end_function(rt_route_opened(route));
	else
		change_end_lane(redirect);
	rt_deliver_flush(conn->poller);
	return 0;
}

/* ------------------------------------------------------ the second step --- */

/* Finishes a closed route: no post names the route any more. */
static void change_finish_route(struct rt_redirect *redirect)
{
	struct rpma_rt_route *route = redirect->route;

	/* a dying connection gives all its numbers back at its end */
	if (change_is_dying(route->conn) || !redirect->is_known)
		return;
	if (redirect->is_out)
		rt_owing_until_poller(route, redirect->last_retired);
	else
		rt_owing_bury_poller(route);
}

/* Does the second step: no thread is inside a post that saw the former
 * routes. */
static void rt_redirect_finish_poller(struct rt_redirect *redirect)
{
	if (redirect->route != NULL)
		change_finish_route(redirect);
}

/* ------------------------------------------------- one change at a time --- */

/* Checks that the caller may wait for the poller of the connection. Returns 0,
 * or the error. */
static int change_check_at(const struct rt_log_place *place,
			   const struct rpma_rt_conn *conn, const char *name)
{
	const void *const pointers[] = {conn};
	int ret = rt_refuse_null(place, name, pointers, sizeof(pointers));

	return ret ? ret : rt_context_check_wait(place, conn->rt);
}
#define check_wait(conn) change_check_at(RT_LOG_HERE, conn, "conn")

/* Checks that `side` is one of the two sides. */
static int change_check_side(const struct rt_log_place *place,
			     enum rpma_rt_side side)
{
	if (side == RPMA_RT_SEND_SIDE || side == RPMA_RT_RECV_SIDE)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL,
			 "side is %d: give RPMA_RT_SEND_SIDE (0) or "
			 "RPMA_RT_RECV_SIDE (1)",
			 (int)side);
}

static bool change_is_busy(const struct rpma_rt_conn *conn)
{
	return conn->change == RT_CHANGE_BUSY ||
	       conn->change == RT_CHANGE_BUSY_DONE;
}

/*
 * Locks the runtime for a change of a connection: a single change at a time,
 * and no change of a DONE connection. Until change_end() the connection does
 * not become DONE, so control thread and poller go on; the lock may be released
 * meanwhile.
 */
static int change_begin(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;
	struct rt_wait wait = {0};

	pthread_mutex_lock(&rt->lock);
	while (change_is_busy(conn))
		rt_wait_step(&wait, &rt->changed, &rt->lock);
	if (conn->change == RT_CHANGE_CLOSED) {
		pthread_mutex_unlock(&rt->lock);
		return RPMA_RT_E_CLOSED;
	}
	conn->change = RT_CHANGE_BUSY;
	return 0;
}

/* Ends a change. REQUIRES: the runtime's lock, which change_end() unlocks */
static void change_end(struct rpma_rt_conn *conn)
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
	busy = change_is_busy(conn);
	conn->change = busy ? RT_CHANGE_BUSY_DONE : RT_CHANGE_CLOSED;
	pthread_mutex_unlock(&conn->rt->lock);
	return !busy;
}

/* Asks the poller, and returns its answer. Sent under the runtime's lock, in
 * the order of the reservations, and awaited without the lock. */
static int change_ask_poller(struct change *change, int (*fn)(void *arg))
{
	struct rpma_rt_conn *conn = change->conn;
	int ret;

	rt_poller_call_send(conn->poller, &change->call, fn, change);
	pthread_mutex_unlock(&conn->rt->lock);
	ret = rt_poller_call_wait(conn->poller, &change->call);
	pthread_mutex_lock(&conn->rt->lock);
	return ret;
}

static int change_set_user_on_poller(void *arg)
{
	struct change *change = arg;

	/* stored here, so that the connection's earlier items have the former
	 * pointer and its later items the new pointer: CLOSED may be written
	 * already */
	if (change_is_dying(change->conn))
		return RPMA_RT_E_CLOSED;
	/* relaxed: the application orders its pointer */
	atomic_store_explicit(&change->conn->user, change->user,
			      memory_order_relaxed);
	rt_bind_set_user_poller(change->conn);
	return 0;
}

int rpma_rt_conn_set_user(struct rpma_rt_conn *conn, void *user)
{
	RT_NOT_CANCELLED;
	static const char what[] = "the user pointer is as before";
	struct change change = {.conn = conn, .user = user};
	int ret = check_wait(conn);

	if (ret)
		return ret;
	/* relaxed: the calling thread set the bit */
	if (atomic_load_explicit(&conn->reached, memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return RT_REFUSE(RPMA_E_INVAL,
				 "\"%s\" was connected or rejected: set its "
				 "user pointer before that",
				 rt_name_of(conn));
	ret = change_begin(conn);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = change_ask_poller(&change, change_set_user_on_poller);
	change_end(conn);
	return RT_REFUSED(ret, what);
}

/* Gives reserved spills to the lanes, even if the change fails: other
 * reservations may rely on the larger spill already. */
static void change_take_spills_on_poller(struct change *change)
{
	struct rpma_rt_route *const routes[] = {
		change->route ? change->route : change->to[0], change->to[1]};
	int i;

	for (i = 0; i < 2; i++) {
		if (change->spill[i] != NULL)
			rt_lane_take_spill_poller(rt_route_lane(routes[i]),
						  change->spill[i]);
		change->spill[i] = NULL;
	}
}

/* -------------------------------------------------- where it all goes --- */

/* Passes the gate, after the first step of a redirection: no thread that began
 * before is inside any more, and a thread that has not published yet looks at
 * the routes again. Ledger and line then hold everything that a closed route
 * owes: no further work request comes. */
static void change_pass_gate(struct rt_redirect *redirect, int side)
{
	struct rpma_rt_conn *conn = redirect->conn;
	const struct rpma_rt_route *route = redirect->route;
	struct rt_gate *gate = &conn->gate[side];

	rt_gate_pause(gate);
	/* before ledger and line are looked at: a post with the former routes
	 * is published by now, or never */
	rt_turn_move_routes(&gate->turn);
	/* the ledger of a closed gate may be handed over */
	if (route != NULL && !rt_gate_is_closed(gate)) {
		redirect->is_out = rt_hold_find_last(
			conn, (enum rpma_rt_side)side, route->number,
			&redirect->last_retired);
		redirect->is_known = true;
	}
	if (rt_gate_resume(gate))
		rt_look_send(conn);
}

static int change_finish_on_poller(void *arg)
{
	struct rt_redirect *redirect = arg;

	rt_redirect_finish_poller(redirect);
	return 0;
}

/* Finishes a redirection. REQUIRES: the runtime's lock, which is released
 * meanwhile */
static void change_finish_redirect(struct rt_redirect *redirect)
{
	struct rpma_rt_conn *conn = redirect->conn;
	const struct rpma_rt_route *route = redirect->route;
	int i;

	pthread_mutex_unlock(&conn->rt->lock);
	for (i = 0; i < 2; i++) {
		if (route == NULL || route->side == (enum rpma_rt_side)i)
			change_pass_gate(redirect, i);
	}
	rt_poller_call(conn->poller, change_finish_on_poller, redirect);
	pthread_mutex_lock(&conn->rt->lock);
}

static int change_set_queue_on_poller(void *arg)
{
	struct change *change = arg;

	change_take_spills_on_poller(change);
	return rt_redirect_own_poller(&change->redirect);
}

/* Moves the own routes to the queue. REQUIRES: change_begin() */
static int change_move_own(struct rpma_rt_conn *conn,
			   struct rpma_rt_queue *queue)
{
	struct change change = {.conn = conn, .redirect.conn = conn};
	struct rt_redirect *redirect = &change.redirect;
	int ret;
	int i;

	for (i = 0; i < 2; i++) {
		ret = rt_route_new(conn, (enum rpma_rt_side)i, queue,
				   conn->own[i].reserved, &change.to[i],
				   &change.spill[i]);
		if (ret)
			goto undo;
		redirect->own_to[i] = change.to[i];
	}
	ret = change_ask_poller(&change, change_set_queue_on_poller);
	if (ret)
		goto undo;
	change_finish_redirect(redirect);
	while (i-- > 0)
		rt_route_swap(&conn->own[i], redirect->from,
			      redirect->from_lane, change.to[i]);
	return 0;
undo:
	while (i-- > 0)
		rt_route_undo(conn, change.to[i], change.spill[i]);
	return ret;
}

int rpma_rt_conn_set_queue(struct rpma_rt_conn *conn,
			   struct rpma_rt_queue *queue)
{
	RT_NOT_CANCELLED;
	static const char what[] = "the connection's queue is as before";
	int ret = check_wait(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(queue);
	if (ret == 0)
		ret = rt_queue_check_of(queue, conn->rt, "queue");
	if (ret == 0 && !rt_conn_has_queue(conn, RPMA_RT_SEND_SIDE))
		ret = RT_REFUSE(RPMA_E_INVAL,
				"\"%s\" was made without a queue: open a route "
				"to this one",
				rt_name_of(conn));
	if (ret)
		return ret;
	ret = change_begin(conn);
	if (ret)
		return RT_REFUSED(ret, what);
	/* the queue changes only inside a change */
	if (conn->own[RPMA_RT_SEND_SIDE].queue != queue)
		ret = change_move_own(conn, queue);
	change_end(conn);
	return RT_REFUSED(ret, what);
}

static int change_close_route_on_poller(void *arg)
{
	struct change *change = arg;

	return rt_redirect_route_poller(&change->redirect);
}

/* Closes a route. REQUIRES: change_begin() */
static int change_close_route(struct rpma_rt_route *route,
			      struct rpma_rt_route *to)
{
	struct rpma_rt_conn *conn = route->conn;
	struct change change = {
		.conn = conn,
		.redirect = {.conn = conn, .route = route, .to = to}};
	struct rt_redirect *redirect = &change.redirect;
	int ret;

	/* both change only inside a change */
	if (rt_route_is_closed(route) || rt_route_is_closed(to))
		return RPMA_RT_E_CLOSED;
	ret = rt_numbers_let_poller(&conn->cq->numbers);
	if (ret == 0)
		ret = change_ask_poller(&change, change_close_route_on_poller);
	if (ret)
		return ret;
	change_finish_redirect(redirect);
	rt_route_end(route, redirect->from, redirect->from_lane, to);
	return 0;
}

int rpma_rt_route_close(struct rpma_rt_route *route, struct rpma_rt_route *to)
{
	RT_NOT_CANCELLED;
	static const char what[] = "the route is not closed";
	struct rpma_rt_conn *conn = route == NULL ? NULL : route->conn;
	int ret = change_check_at(RT_LOG_HERE, conn, "route");

	if (ret)
		return ret;
	if (to == route ||
	    (to != NULL && (to->conn != conn || to->side != route->side)))
		return RT_REFUSE(RPMA_E_INVAL,
				 "to is %s: give another route of the same "
				 "connection and side, or NULL",
				 to == route	    ? "the route itself"
				 : to->conn != conn ? "of another connection"
						    : "of the other side");
	if (to == NULL &&
	    !rt_conn_has_queue(conn, (enum rpma_rt_side)route->side))
		return RT_REFUSE(RPMA_E_INVAL,
				 "\"%s\" was made without a queue: give "
				 "another open route in to",
				 rt_name_of(conn));
	ret = change_begin(conn);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = change_close_route(route,
				 to != NULL ? to : &conn->own[route->side]);
	change_end(conn);
	return RT_REFUSED(ret, what);
}

/* -------------------------------------------------------- more routes --- */

static int change_add_route_on_poller(void *arg)
{
	struct change *change = arg;

	change_take_spills_on_poller(change);
	if (change_is_dying(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_bind_add_route_poller(change->conn, change->route);
	return 0;
}

/* Opens a route to the queue or, if queue is NULL, to the function. */
static int change_open_route(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			     struct rpma_rt_queue *queue, rpma_rt_route_fn *fn,
			     void *arg, struct rpma_rt_route **route_ptr)
{
	static const char what[] = "no route is opened";
	struct change change = {.conn = conn};
	uint32_t entries = rt_hold_items(conn, side) + RT_ROUTE_EVENTS;
	int ret;

	ret = change_begin(conn);
	if (ret)
		return RT_REFUSED(ret, what);
	/* a future may be led to the route after its credit came back */
	entries += rt_futures_count(conn, side);
	ret = rt_route_new(conn, side, queue, entries, &change.route,
			   &change.spill[0]);
	if (ret)
		goto end;
	rt_route_opened(change.route)->callback =
		(struct rt_callback){.fn = fn, .arg = arg};
	ret = change_ask_poller(&change, change_add_route_on_poller);
	if (ret)
		rt_route_undo(conn, change.route, change.spill[0]);
	else
		*route_ptr = change.route;
end:
	change_end(conn);
	return RT_REFUSED(ret, what);
}

/* Refuses a receive route with a pool: messages of a pool come to the
 * connection's own queue. */
static int change_check_pool(const struct rt_log_place *place,
			     const struct rpma_rt_conn *conn,
			     enum rpma_rt_side side)
{
	if (rt_conn_fed(conn) == NULL || side != RPMA_RT_RECV_SIDE)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL,
			 "conn takes receives from a pool: its messages come "
			 "to its own queue, see rpma_rt_conn_set_queue()");
}

int rpma_rt_route_open(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       struct rpma_rt_queue *queue,
		       struct rpma_rt_route **route_ptr)
{
	RT_NOT_CANCELLED;
	int ret = check_wait(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(queue, route_ptr);
	if (ret == 0)
		ret = change_check_side(RT_LOG_HERE, side);
	if (ret == 0)
		ret = change_check_pool(RT_LOG_HERE, conn, side);
	if (ret == 0)
		ret = rt_queue_check_of(queue, conn->rt, "queue");
	if (ret)
		return ret;
	return change_open_route(conn, side, queue, NULL, NULL, route_ptr);
}

int rpma_rt_route_open_callback(struct rpma_rt_conn *conn,
				enum rpma_rt_side side, rpma_rt_route_fn *fn,
				void *arg, struct rpma_rt_route **route_ptr)
{
	RT_NOT_CANCELLED;
	int ret = check_wait(conn);

	if (ret == 0)
		ret = RT_REFUSE_NULL(fn, route_ptr);
	if (ret == 0)
		ret = change_check_side(RT_LOG_HERE, side);
	if (ret == 0)
		ret = change_check_pool(RT_LOG_HERE, conn, side);
	if (ret)
		return ret;
	return change_open_route(conn, side, NULL, fn, arg, route_ptr);
}
