/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.c -- futures of a connection, see futures.h. Reserved and given back
 * under the runtime's lock; the public calls run on any thread, the rest on the
 * connection's poller.
 */

#include "conn/futures.h"

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "conn/conn.h"
#include "conn/fill.h"
#include "conn/listener.h"
#include "conn/post.h"
#include "conn/route.h"
#include "future/future.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/route.h"
#include "poller/source.h"
#include "pool/pool.h"
#include "srq/srq.h"

static struct rt_route_entry *futures_entry_of(struct rpma_rt_conn *conn,
					       int side)
{
	return &conn->cq->routes[conn->side[side].futures->number];
}

static int futures_reserve_side(struct rpma_rt_conn *conn,
				enum rpma_rt_side side,
				const struct rt_conn_cfg *cfg, bool has_queue)
{
	struct rt_futures *futures;
	int ret;

	futures = rt_future_block_take(
		conn->poller,
		&rt_future_posts[side == RPMA_RT_RECV_SIDE][has_queue],
		&conn->side[side], cfg->futures);
	if (futures == NULL)
		return RPMA_E_NOMEM;
	ret = rt_numbers_take(&conn->cq->numbers, &futures->number);
	if (ret) {
		rt_future_block_return(futures);
		return ret;
	}
	conn->side[side].futures = futures;
	return 0;
}

/* Reserves the block for events, which goes with the send side's block. */
static int futures_reserve_events(struct rpma_rt_conn *conn)
{
	struct rt_side *side = &conn->side[RPMA_RT_SEND_SIDE];
	struct rt_futures *events = rt_future_block_take(
		conn->poller, &rt_source_latches, NULL, RT_FUTURE_EVENT_SLOTS);

	if (events == NULL)
		return RPMA_E_NOMEM;
	side->futures->events = events;
	return 0;
}

/* Notes that a message left the list, on the poller: a receive may be posted in
 * its place. */
static void futures_taken(void *owner)
{
	struct rpma_rt_conn *conn = owner;

	rt_deliver_touch_side(conn->poller, &conn->side[RPMA_RT_RECV_SIDE]);
}

/* Makes the source of messages, if no queue gets messages. */
static int futures_reserve_messages(struct rpma_rt_conn *conn, uint32_t count)
{
	const struct rt_source_cfg cfg = {
		.kind = &rt_source_messages,
		.poller = conn->poller,
		.futures = count,
		.messages = conn->gate[RPMA_RT_RECV_SIDE].ledger.depth,
		.taken = futures_taken,
		.owner = conn,
	};
	struct rt_conn_fed *fed = rt_conn_fed(conn);

	if (fed == NULL)
		return 0;
	fed->messages = rt_source_new(&cfg);
	return fed->messages != NULL ? 0 : RPMA_E_NOMEM;
}

int rt_futures_reserve(struct rpma_rt_conn *conn, const struct rt_conn_cfg *cfg,
		       bool has_queue)
{
	int ret = 0;
	int i;

	for (i = 0; i < 2 && ret == 0; i++) {
		if (rt_futures_has(conn, (enum rpma_rt_side)i, cfg->futures))
			ret = futures_reserve_side(conn, (enum rpma_rt_side)i,
						   cfg, has_queue);
	}
	if (ret == 0 && cfg->futures > 0)
		ret = futures_reserve_events(conn);
	if (ret == 0 && !has_queue)
		ret = futures_reserve_messages(conn, cfg->futures);
	if (ret)
		rt_futures_unreserve(conn);
	return ret;
}

static void futures_return_blocks(struct rpma_rt_conn *conn)
{
	struct rt_futures *futures;
	int i;

	for (i = 0; i < 2; i++) {
		futures = conn->side[i].futures;
		conn->side[i].futures = NULL;
		if (futures == NULL)
			continue;
		rt_future_block_return(futures->events);
		rt_future_block_return(futures);
	}
}

static void futures_return_numbers(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (conn->side[i].futures != NULL)
			rt_numbers_return(&conn->cq->numbers,
					  conn->side[i].futures->number);
	}
}

void rt_futures_unreserve(struct rpma_rt_conn *conn)
{
	rt_source_undo(rt_fill_messages(conn));
	if (rt_conn_fed(conn) != NULL)
		conn->from.fed->messages = NULL;
	futures_return_numbers(conn);
	futures_return_blocks(conn);
}

void rt_futures_end(struct rpma_rt_conn *conn)
{
	futures_return_numbers(conn);
}

void rt_futures_free(struct rpma_rt_conn *conn)
{
	if (conn->side[0].futures == NULL && conn->side[1].futures == NULL)
		return;
	pthread_mutex_lock(&conn->rt->lock);
	futures_return_blocks(conn);
	rt_future_block_return(rt_fill_messages(conn));
	pthread_mutex_unlock(&conn->rt->lock);
}

/* Returns the block for events; NULL: the connection has no futures. */
static struct rt_futures *futures_events_of(const struct rpma_rt_conn *conn)
{
	const struct rt_futures *futures =
		conn->side[RPMA_RT_SEND_SIDE].futures;

	return futures != NULL ? futures->events : NULL;
}

/* -------------------------------------------------------- the poller --- */

void rt_futures_open_poller(struct rpma_rt_conn *conn)
{
	struct rt_futures *futures;
	int i;

	for (i = 0; i < 2; i++) {
		futures = conn->side[i].futures;
		if (futures == NULL)
			continue;
		futures->own = &conn->cq->routes[conn->own[i].number];
		*futures_entry_of(conn, i) = (struct rt_route_entry){
			.leads_to = RT_TO_FUTURES,
			.futures = futures,
			.user = rt_item_user(conn),
			.side = &conn->side[i],
		};
	}
}

void rt_futures_bind_poller(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (conn->side[i].futures != NULL)
			futures_entry_of(conn, i)->qp_key =
				rt_qp_key(conn->qp_num);
	}
}

void rt_futures_set_user_poller(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (conn->side[i].futures != NULL)
			futures_entry_of(conn, i)->user = rt_item_user(conn);
	}
}

void rt_futures_end_poller(struct rpma_rt_conn *conn)
{
	struct rt_futures *futures;
	int i;

	for (i = 0; i < 2; i++) {
		futures = conn->side[i].futures;
		if (futures == NULL)
			continue;
		rt_future_run_poller(futures);
		futures->own = NULL;
		*futures_entry_of(conn, i) = (struct rt_route_entry){0};
	}
}

/* ----------------------------------------------------------- events --- */

/* Completes the futures that watch an event: the event has come, or comes no
 * more. */
static void futures_set_event(struct rpma_rt_conn *conn,
			      enum rpma_rt_event event,
			      const struct rpma_rt_completion *item)
{
	struct rt_futures *events = futures_events_of(conn);

	rt_source_set_end_poller(events, event - RT_FUTURE_EVENT_FIRST, item);
	rt_deliver_asked(conn->poller, events, event - RT_FUTURE_EVENT_FIRST);
}

void rt_futures_event_poller(struct rpma_rt_conn *conn,
			     enum rpma_rt_event event)
{
	const struct rpma_rt_completion item = rt_item_event(conn, event);

	if (futures_events_of(conn) != NULL)
		futures_set_event(conn, event, &item);
}

/* Ends the events up to `last` that have not come and come no more. */
static void futures_end_events(struct rpma_rt_conn *conn,
			       enum rpma_rt_event last)
{
	const struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_CLOSED);
	struct rt_futures *events = futures_events_of(conn);
	int event;

	if (events == NULL)
		return;
	rt_future_run_poller(events);
	for (event = RT_FUTURE_EVENT_FIRST; event <= (int)last; event++) {
		if (!events->awaited[event - RT_FUTURE_EVENT_FIRST].is_over)
			futures_set_event(conn, (enum rpma_rt_event)event,
					  &item);
	}
}

void rt_futures_closing_poller(struct rpma_rt_conn *conn)
{
	const struct rpma_rt_completion item =
		rt_item_event(conn, RPMA_RT_EVENT_CLOSED);

	if (rt_fill_messages(conn) != NULL)
		rt_source_end_poller(rt_fill_messages(conn), &item);
	futures_end_events(conn, RPMA_RT_EVENT_ESTABLISHED);
}

void rt_futures_closed_poller(struct rpma_rt_conn *conn)
{
	futures_end_events(conn, RPMA_RT_EVENT_CLOSED);
}

/* Takes a slot for an event, while there is a block for events. Any thread. */
static int futures_take_event(struct rpma_rt_conn *conn,
			      enum rpma_rt_event event,
			      struct rt_future **slot_ptr)
{
	struct rt_future *slot = NULL;
	bool is_over;

	/* the connection becomes DONE under this lock; two threads do not take
	 * the same slot */
	pthread_mutex_lock(&conn->rt->ask_lock);
	is_over = conn->is_done && rt_conn_has_queue(conn, RPMA_RT_SEND_SIDE);
	if (!is_over)
		slot = rt_source_take(futures_events_of(conn),
				      event - RT_FUTURE_EVENT_FIRST, conn);
	pthread_mutex_unlock(&conn->rt->ask_lock);
	if (is_over)
		return RPMA_RT_E_CLOSED;
	if (slot == NULL)
		return RPMA_RT_E_BUSY;
	*slot_ptr = slot;
	return 0;
}

int rpma_rt_conn_future(struct rpma_rt_conn *conn, enum rpma_rt_event event,
			struct rpma_rt_future *future)
{
	RT_NOT_CANCELLED;
	struct rt_future *slot;
	int ret = RT_REFUSE_NULL(conn, future);

	if (ret == 0)
		ret = rt_context_check_here(RT_LOG_HERE, conn->rt);
	if (ret)
		return ret;
	if (event < RT_FUTURE_EVENT_FIRST || event > RPMA_RT_EVENT_CLOSED)
		return RT_REFUSE(RPMA_E_INVAL,
				 "event is %d: give RPMA_RT_EVENT_READY, "
				 "_ESTABLISHED or _CLOSED",
				 (int)event);
	if (futures_events_of(conn) == NULL)
		return RT_REFUSE(RPMA_E_INVAL,
				 "\"%s\" was made without futures: set "
				 "rpma_rt_conn_cfg.futures",
				 rt_name_of(conn));
	ret = futures_take_event(conn, event, &slot);
	if (ret == RPMA_RT_E_BUSY)
		return RT_REFUSE(ret,
				 "%d futures of events of \"%s\" are held: "
				 "drop some",
				 RT_FUTURE_EVENT_SLOTS, rt_name_of(conn));
	if (ret)
		return RT_REFUSED(ret, "no future is made");
	rt_future_name(future, slot, rt_future_here());
	rt_future_ask_mt(slot, RT_FUTURE_WATCH);
	return 0;
}

/* --------------------------------------------------------- delivery --- */

const struct rt_route_entry *rt_futures_lead_poller(struct rt_side *side,
						    const void *route)
{
	const struct rpma_rt_conn *conn = rt_conn_of_side(side);
	const struct rpma_rt_route *at = route;

	if (rt_route_is_closed(at))
		return rt_route_led_to(&rt_route_opened(at)->led);
	return &conn->cq->routes[at->number];
}

/* Checks a route. A result for a route that is closed meanwhile is led on; a
 * result for a connection that has ended stays in the slot. */
static int futures_check_consumer(const struct rt_log_place *place,
				  struct rpma_rt_route *route)
{
	if (rt_gate_is_closed(&route->conn->gate[route->side]))
		return 0;
	if (rt_route_is_closed(route))
		return rt_refuse(place, RPMA_RT_E_CLOSED,
				 "the future is not delivered: its route is "
				 "closed");
	if (rt_post_is_behind(route))
		return rt_refuse(place, RPMA_RT_E_BUSY,
				 "the future is not delivered: the consumer "
				 "of its route is behind");
	return 0;
}

static int futures_check_route(const struct rt_log_place *place,
			       const struct rt_future *slot,
			       struct rpma_rt_route *route)
{
	const struct rt_future_kind *kind = slot->of->kind;

	if (kind->not_delivered != NULL)
		return rt_refuse(place, RPMA_E_INVAL, "%s",
				 kind->not_delivered);
	if (route == NULL && kind->not_to_queue != NULL)
		return rt_refuse(place, RPMA_E_INVAL, "%s", kind->not_to_queue);
	if (route == NULL)
		return 0;
	if (&route->conn->side[route->side] != slot->of->side)
		return rt_refuse(place, RPMA_E_INVAL,
				 "route is of another connection, or of the "
				 "other side: give one of the future's, or "
				 "NULL");
	return futures_check_consumer(place, route);
}

int rpma_rt_future_deliver(const struct rpma_rt_future *future,
			   struct rpma_rt_route *route)
{
	const struct rt_future_then then = {.arg = route};
	struct rt_future *slot = NULL;
	int ret = rt_future_find(RT_LOG_HERE, future, &slot);

	if (ret == 0)
		ret = futures_check_route(RT_LOG_HERE, slot, route);
	if (ret == 0)
		ret = rt_future_check_arm(RT_LOG_HERE, slot);
	if (ret == 0)
		rt_future_arm(slot, &then);
	return ret;
}

/* -------------------------------------------------------- the next item --- */

static const char *futures_why_not_of_conn(const struct rpma_rt_conn *conn)
{
	if (rt_conn_srq(conn) != NULL)
		return "receives of the connection are an SRQ's: name the SRQ";
	if (rt_conn_fed(conn) == NULL)
		return "the connection was made without a pool: post receives "
		       "that name a future";
	return "the connection was made with a queue, to which its messages "
	       "come: set rpma_rt_conn_cfg.futures and no queue";
}

/* Finds runtime and block of the object that `source` names; without a block
 * says why. Returns false if `source` does not name a single object. */
static bool futures_find_source(const struct rpma_rt_source *source,
				const struct rpma_rt **rt,
				struct rt_futures **futures, const char **why)
{
	if ((source->listener != NULL) + (source->conn != NULL) +
		    (source->srq != NULL) + (source->pool != NULL) !=
	    1)
		return false;
	if (source->listener != NULL) {
		*rt = source->listener->rt;
		*futures = source->listener->requests;
		*why = "the listener was made with a queue, to which its "
		       "requests come";
	} else if (source->conn != NULL) {
		*rt = source->conn->rt;
		*futures = rt_fill_messages(source->conn);
		*why = futures_why_not_of_conn(source->conn);
	} else if (source->pool != NULL) {
		*rt = source->pool->rt;
		*futures = source->pool->waits;
	} else {
		*rt = source->srq->rt;
		*futures = source->srq->messages;
		*why = "the SRQ was made without futures: set "
		       "rpma_rt_srq_cfg.futures, and pool";
	}
	return true;
}

int rpma_rt_next_future(const struct rpma_rt_source *source,
			struct rpma_rt_future *future)
{
	struct rt_futures *futures;
	const struct rpma_rt *rt;
	const char *why = ""; /* a pool always has futures */
	int ret = RT_REFUSE_NULL(source, future);

	if (ret)
		return ret;
	if (!futures_find_source(source, &rt, &futures, &why))
		return RT_REFUSE(RPMA_E_INVAL,
				 "source names no object, or more than one: "
				 "set listener, conn, srq or pool");
	ret = rt_context_check_here(RT_LOG_HERE, rt);
	if (ret)
		return ret;
	if (futures == NULL)
		return RT_REFUSE(RPMA_E_INVAL, "%s", why);
	ret = rt_source_next(futures, future);
	if (ret)
		return RT_REFUSE(ret,
				 "%u futures of the next item are held: drop "
				 "some, or set futures of the configuration",
				 futures->count - 1);
	return 0;
}
