/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * create.c -- creation of a connection: everything that a connection needs is
 * reserved under the runtime's lock before the queue pair exists, and given
 * back when the connection is DONE.
 */

#include "conn/conn.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cfg.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/wr.h"
#include "conn/cfg.h"
#include "conn/fill.h"
#include "conn/futures.h"
#include "conn/hold.h"
#include "conn/listener.h"
#include "conn/resolve.h"
#include "conn/rings.h"
#include "conn/route.h"
#include "conn/slots.h"
#include "future/future.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "pool/pool.h"
#include "queue/queue.h"
#include "srq/srq.h"

/* min_rnr_timer where the caller leaves the default: 0.64 ms; rdma_cm's default
 * is 655 ms */
#define DEFAULT_MIN_RNR_TIMER 12

/* -------------------------------------------------- the runtime's lists --- */

/*
 * The lists of connections: connections that are not DONE, and DONE connections
 * as long as the program holds them. The directory's lock is held while a dump
 * copies, so no poller takes the lock: a connection whose last holder was a
 * function of the program is left on a stack, for the next thread that lists a
 * connection or deletes the runtime. doc/protocols/directory.md.
 */

/* REQUIRES of both functions: the directory's lock */
static void create_link_conn(struct rpma_rt_conn **list,
			     struct rpma_rt_conn *conn)
{
	conn->prev = NULL;
	conn->next = *list;
	if (*list != NULL)
		(*list)->prev = conn;
	*list = conn;
}

static void create_unlink_conn(struct rpma_rt_conn **list,
			       struct rpma_rt_conn *conn)
{
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		*list = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
}

/* Lists a connection. REQUIRES: the runtime's lock, as rt_listed_end() does */
static void rt_listed_add(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	pthread_mutex_lock(&rt->directory);
	create_link_conn(&rt->conns, conn);
	pthread_mutex_unlock(&rt->directory);
}

/* Moves a DONE connection to the list `ended`: a dump does not follow the
 * pointers of the connection any more. */
static void rt_listed_end(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	pthread_mutex_lock(&rt->directory);
	create_unlink_conn(&rt->conns, conn);
	create_link_conn(&rt->ended, conn);
	pthread_mutex_unlock(&rt->directory);
}

static void create_listed_leave(struct rpma_rt_conn *conn)
{
	/* relaxed: the compare-and-swap decides */
	struct rpma_rt_conn *first =
		atomic_load_explicit(&conn->rt->left, memory_order_relaxed);

	do {
		conn->poll.left_next = first;
		/* release: pairs with the acquire in rt_listed_take_left() */
	} while (!atomic_compare_exchange_weak_explicit(
		&conn->rt->left, &first, conn, memory_order_release,
		memory_order_relaxed));
}

/* Takes a connection off the list, whose last holder has put the connection.
 * Returns true if the caller has to free the connection; false, on a poller: a
 * later call of rt_listed_take_left() returns the connection. */
static bool rt_listed_remove(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	/* also if futures have to be given back, under the runtime's lock,
	 * which the caller may have */
	if (rt_self_is_poller() ||
	    conn->side[RPMA_RT_SEND_SIDE].futures != NULL) {
		create_listed_leave(conn);
		return false;
	}
	pthread_mutex_lock(&rt->directory);
	create_unlink_conn(&rt->ended, conn);
	pthread_mutex_unlock(&rt->directory);
	return true;
}

/* Returns connections that have to be freed, linked by left_next; NULL: no
 * connection. Not on a poller. */
static struct rpma_rt_conn *rt_listed_take_left(struct rpma_rt *rt)
{
	struct rpma_rt_conn *first;
	struct rpma_rt_conn *conn;

	/* relaxed: a hint; the exchange below orders */
	if (atomic_load_explicit(&rt->left, memory_order_relaxed) == NULL)
		return NULL;
	/* acquire: pairs with the release in create_listed_leave(): the writes
	 * of the last holders */
	first = atomic_exchange_explicit(&rt->left, NULL, memory_order_acquire);
	pthread_mutex_lock(&rt->directory);
	for (conn = first; conn != NULL; conn = conn->poll.left_next)
		create_unlink_conn(&rt->ended, conn);
	pthread_mutex_unlock(&rt->directory);
	return first;
}

/* ----------------------------------------------------------- the record --- */

static void create_cq_failed(struct rt_cq_user *user);

/* Makes the configuration of the queue pair: the caller's, still without a CQ,
 * with a slot for the marker in each queue and a slot for a keep-alive. */
static int create_copy_cfg(struct rpma_rt_conn *conn,
			   const struct rt_conn_cfg *cfg,
			   const struct rt_limits *limits)
{
	uint8_t rnr;
	struct rpma_conn_cfg *copy;
	int ret;

	ret = rt_conn_cfg_verbs(cfg, conn->device->cm->channel, &copy);
	if (ret)
		return ret;
	conn->setup->cfg = copy;
	rpma_conn_cfg_set_sq_size(copy, limits->max_send_wr);
	rpma_conn_cfg_set_rq_size(copy, limits->max_recv_wr);
	conn->max_inline = limits->max_inline;
	conn->max_sge = (uint16_t)limits->max_sge;
	rpma_conn_cfg_get_min_rnr_timer(copy, &rnr);
	if (rnr == RPMA_MIN_RNR_TIMER_UNSET)
		rpma_conn_cfg_set_min_rnr_timer(copy, DEFAULT_MIN_RNR_TIMER);
	return rt_keepalive_new(conn, cfg->keepalive_ms);
}

static void create_init_sides(struct rpma_rt_conn *conn)
{
	int i;

	conn->verb_is_plain = rt_verb_is_plain(conn->device->ibv_ctx);
	for (i = 0; i < 2; i++) {
		conn->side[i].which = (uint8_t)i;
		conn->side[i].turn_at = (int32_t)((char *)&conn->gate[i].turn -
						  (char *)&conn->side[i]);
		conn->side[i].ops = &rt_drain_side_ops;
		/* relaxed: no other thread knows the connection yet */
		atomic_store_explicit(&conn->side[i].owed, RT_OWED_UNKNOWN,
				      memory_order_relaxed);
	}
}

void rt_conn_end_handshake(struct rpma_rt_conn *conn)
{
	if (conn->setup == NULL)
		return;
	rpma_conn_cfg_delete(&conn->setup->cfg);
	rt_resolve_free(conn->setup->resolve);
	free(conn->setup->addr);
	free(conn->setup->port);
	free(conn->setup);
	conn->setup = NULL;
	if (conn->pdata_in_len > 0)
		return;
	free(conn->pdata_in); /* no private data will come */
	conn->pdata_in = NULL;
}

void rt_conn_free(struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route;
	struct rpma_rt_route *next;

	while ((route = conn->poll.routes) != NULL) {
		conn->poll.routes = rt_route_next(route);
		rt_route_free(route);
	}
	/* relaxed: no other thread has the connection */
	route = atomic_load_explicit(&conn->poll.buried, memory_order_relaxed);
	for (; route != NULL; route = next) {
		next = rt_route_next(route);
		rt_route_free(route);
	}
	rt_rings_free(conn);
	rt_peer_fini(conn);
	if (conn->is_named)
		free(conn->name.given);
	rt_conn_end_handshake(conn);
	free(conn->pdata_in);
	free(conn->poll.keepalive);
	rt_futures_free(conn);
	rt_fill_free(conn);
	free(conn);
}

void rt_conn_unref(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	/* acq_rel: pairs with the other holders' decrements: the last holder
	 * sees what the others did */
	if (atomic_fetch_sub_explicit(&conn->target.count, 1,
				      memory_order_acq_rel) != 1)
		return;
	rt_source_drop_mt(rt_fill_messages(conn));
	if (rt_listed_remove(conn))
		rt_conn_free(conn);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}

void rt_conn_free_left(struct rpma_rt *rt)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn *next;

	for (conn = rt_listed_take_left(rt); conn != NULL; conn = next) {
		next = conn->poll.left_next;
		rt_conn_free(conn);
	}
}

/* Copies an address or a port; a name's copy has room for a numeric address. */
static char *create_copy_text(const char *text, size_t least)
{
	size_t len = strlen(text) + 1;
	char *copy = malloc(len > least ? len : least);

	if (copy != NULL)
		memcpy(copy, text, len);
	return copy;
}

static int create_make_setup(struct rpma_rt_conn *conn,
			     const struct rt_conn_spec *spec)
{
	struct rt_conn_setup *setup = calloc(1, sizeof(*setup));

	conn->setup = setup;
	if (setup == NULL)
		return RPMA_E_NOMEM;
	setup->conn = conn;
	setup->peer = spec->cfg->peer;
	/* room for the peer's private data, cut to the needed size when the
	 * data comes */
	conn->pdata_in = malloc(RT_PDATA_MAX);
	if (conn->pdata_in == NULL)
		return RPMA_E_NOMEM;
	if (spec->passive)
		return 0;
	setup->begin_msg.fn = spec->begin;
	setup->addr = create_copy_text(spec->addr, RT_ADDR_SIZE);
	setup->port = create_copy_text(spec->port, RT_PORT_SIZE);
	if (setup->addr == NULL || setup->port == NULL)
		return RPMA_E_NOMEM;
	if (rt_resolve_is_numeric(spec->addr, spec->port))
		return 0;
	setup->resolve =
		rt_resolve_new(conn, spec->addr, spec->port, spec->cfg->verbs);
	return setup->resolve != NULL ? 0 : RPMA_E_NOMEM;
}

static _Atomic uint32_t last_number;

/* Sets the connection's number in this process, and makes the name of the
 * number. Any thread, before another thread can see the connection. */
static void create_name(struct rpma_rt_conn *conn)
{
	/* relaxed: only the uniqueness of the number matters */
	conn->number = atomic_fetch_add_explicit(&last_number, 1,
						 memory_order_relaxed) +
		       1;
	snprintf(conn->name.text, sizeof(conn->name.text), "conn %" PRIu32,
		 conn->number);
}

static int create_record_new(const struct rt_conn_spec *spec, uint32_t *sq,
			     uint32_t *rq, struct rpma_rt_conn **conn_ptr)
{
	struct rt_limits limits = rt_limits_of(spec->cfg);
	struct rpma_rt_conn *conn;
	int ret;

	conn = aligned_alloc(RT_CACHE_LINE, sizeof(*conn));
	if (conn == NULL)
		return RPMA_E_NOMEM;
	memset(conn, 0, sizeof(*conn));
	conn->target.ops = spec->cm_ops;
	/* relaxed, both: published by the inbox. A count for the application, a
	 * count for the runtime */
	atomic_store_explicit(&conn->target.count, 2, memory_order_relaxed);
	atomic_store_explicit(&conn->held, 1, memory_order_relaxed);
	conn->rt = spec->rt;
	conn->device = spec->device;
	conn->passive = spec->passive;
	/* relaxed: published by the inbox */
	atomic_store_explicit(&conn->user, spec->cfg->user,
			      memory_order_relaxed);
	create_name(conn);
	conn->cq_user.failed = create_cq_failed;
	conn->ctl_msg.fn = spec->control;
	conn->poll_msg.fn = rt_messages_poll;
	conn->look_msg.fn = rt_answer_look;
	rt_conn_set_state(conn,
			  spec->passive ? RT_CONN_READY : RT_CONN_RESOLVING);
	create_init_sides(conn);
	ret = create_make_setup(conn, spec);
	if (ret == 0)
		ret = rt_fill_new(conn, spec->cfg->pool, spec->cfg->rq_base);
	if (ret == 0)
		ret = create_copy_cfg(conn, spec->cfg, &limits);
	if (ret == 0)
		ret = rt_limits_check(spec->cfg);
	if (ret == 0)
		ret = rt_rings_new(conn, (uint32_t[]){limits.sq, limits.rq},
				   spec->cfg->waiting);
	if (ret) {
		rt_conn_free(conn);
		return ret;
	}
	*sq = limits.sq;
	*rq = limits.rq;
	*conn_ptr = conn;
	return 0;
}

/* ------------------------------------------------------------ reserving --- */

/* Reserves a place in the CQ's table of queue pairs; makes a larger table if
 * the table is full. */
static int create_reserve_qp(struct rpma_rt_conn *conn)
{
	struct rt_conn_brought *brought = &conn->poll.brought;
	struct rt_cq *cq = conn->cq;

	if (rt_conn_srq(conn) == NULL)
		return 0;
	if (cq->qps_reserved == cq->qps_announced) {
		brought->qps = rt_qp_table_new(2 * cq->qps_announced + 1);
		if (brought->qps == NULL)
			return RPMA_E_NOMEM;
		cq->qps_announced = rt_qp_table_room(brought->qps);
	}
	cq->qps_reserved++;
	return 0;
}

static void create_unreserve_qp(struct rpma_rt_conn *conn)
{
	if (rt_conn_srq(conn) != NULL)
		conn->cq->qps_reserved--;
}

/* Undoes create_reserve_qp() for a connection that is not made. */
static void create_undo_qp(struct rpma_rt_conn *conn)
{
	struct rt_conn_brought *brought = &conn->poll.brought;

	create_unreserve_qp(conn);
	if (brought->qps == NULL)
		return;
	conn->cq->qps_announced = conn->cq->qps_reserved;
	rt_qp_table_delete(brought->qps);
	brought->qps = NULL;
}

static bool create_is_open(const struct rt_conn_spec *spec)
{
	const struct rpma_rt_queue *queue = spec->cfg->queue;

	/* for the queue of a listener: see create_choose_poller() */
	return !spec->rt->stopping &&
	       (spec->listener != NULL || queue == NULL ||
		!rt_queue_is_closed(queue));
}

/* Reserves room in a CQ of the poller. The lock may have been released
 * meanwhile. REQUIRES: the runtime's lock */
static int create_reserve_room(struct rpma_rt_conn *conn,
			       struct ibv_context *ibv_ctx, uint32_t sq,
			       uint32_t rq)
{
	struct rt_cq_user *user = &conn->cq_user;

	user->room = sq + rq +
		     (rt_conn_srq(conn) != NULL ? 1 : 2) + /* markers */
		     (conn->poll.keepalive != NULL);
	if (rt_conn_srq(conn) != NULL) {
		user->srq = conn->from.srq->number;
		user->srq_room = conn->from.srq->cfg.srq_size;
	}
	return rt_cq_pool_reserve(conn->poller, ibv_ctx, user, &conn->cq);
}

/* Returns for how many items the spill of the connection's own queue needs
 * room. Futures whose work request is over, and whose result is led to the
 * queue later, count, too. */
static uint32_t create_count_items(const struct rpma_rt_conn *conn,
				   const struct rt_conn_spec *spec)
{
	uint32_t count = RT_CONN_EVENTS;
	int i;

	for (i = 0; i < 2; i++) {
		count += rt_hold_items(conn, (enum rpma_rt_side)i);
		if (rt_futures_has(conn, (enum rpma_rt_side)i,
				   spec->cfg->futures))
			count += spec->cfg->futures;
	}
	return count;
}

/* REQUIRES: the runtime's lock */
static int create_reserve(struct rpma_rt_conn *conn,
			  const struct rt_conn_spec *spec,
			  struct ibv_context *ibv_ctx, uint32_t sq, uint32_t rq)
{
	struct rt_conn_brought *brought = &conn->poll.brought;
	struct rt_poller *poller = conn->poller;
	struct rpma_rt_queue *queue =
		rt_conn_cfg_queue(spec->cfg, (uint32_t)poller->index);
	int ret;

	ret = rt_slots_take(poller, &conn->slot);
	if (ret)
		return ret;
	ret = create_reserve_room(conn, ibv_ctx, sq, rq);
	if (ret)
		goto err_return_slot;
	ret = create_is_open(spec) ? 0 : RPMA_RT_E_CLOSED;
	/* while the lock was released the SRQ may have failed, and told all its
	 * users then */
	if (ret == 0 && rt_conn_srq(conn) != NULL &&
	    rt_srq_has_failed(conn->from.srq))
		ret = RPMA_E_PROVIDER;
	if (ret == 0)
		ret = create_reserve_qp(conn);
	if (ret)
		goto err_unreserve;
	ret = rt_futures_reserve(conn, spec->cfg, queue != NULL);
	if (ret)
		goto err_undo_qp;
	ret = rt_route_init_own(conn, RPMA_RT_SEND_SIDE, queue,
				create_count_items(conn, spec),
				&brought->spill[RPMA_RT_SEND_SIDE]);
	if (ret)
		goto err_undo_futures;
	ret = rt_route_init_own(conn, RPMA_RT_RECV_SIDE, queue, 0,
				&brought->spill[RPMA_RT_RECV_SIDE]);
	if (ret)
		goto err_undo_route;
	return 0;
err_undo_route:
	rt_route_undo(conn, &conn->own[RPMA_RT_SEND_SIDE],
		      brought->spill[RPMA_RT_SEND_SIDE]);
err_undo_futures:
	rt_futures_unreserve(conn);
err_undo_qp:
	create_undo_qp(conn);
err_unreserve:
	rt_cq_pool_unreserve(conn->cq, &conn->cq_user);
err_return_slot:
	rt_slots_return(poller, conn->slot);
	return ret;
}

/* Returns the pollers, as bits, for which cfg names an SRQ that has not
 * failed. */
static uint64_t conn_srq_pollers_alive(const struct rt_conn_cfg *cfg)
{
	uint64_t pollers = rt_conn_cfg_srq_pollers(cfg);
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL && rt_srq_has_failed(cfg->srqs[i]))
			pollers &= ~(UINT64_C(1) << i);
	}
	return pollers;
}

/* Chooses the poller. A request goes to no poller whose queue is closed or over
 * its limit. REQUIRES: the runtime's lock */
static int create_choose_poller(const struct rt_conn_spec *spec,
				struct rpma_rt_conn *conn)
{
	uint64_t among = rt_conn_cfg_srq_pollers(spec->cfg);

	if (among != 0) {
		among = conn_srq_pollers_alive(spec->cfg);
		if (among == 0)
			return RPMA_E_PROVIDER;
	}
	if (spec->listener != NULL) {
		/* the program may get no request */
		if (!spec->listener->is_listed)
			return RPMA_RT_E_CLOSED;
		among = rt_listener_poller_open(spec->listener);
		if (among == 0)
			return RPMA_RT_E_BUSY;
	}
	conn->poller = rt_place_choose(spec->rt, spec->cfg->poller, among);
	if (spec->listener != NULL)
		conn->listener = spec->listener->number;
	if (spec->listener != NULL && spec->listener->parts != NULL)
		conn->poll.brought.part =
			&spec->listener->parts[conn->poller->index];
	return 0;
}

/* Chooses the SRQ of the poller, if SRQs were named. REQUIRES: the runtime's
 * lock */
static int create_choose_srq(const struct rt_conn_spec *spec,
			     struct rpma_rt_conn *conn)
{
	struct rpma_rt_srq *srq;

	if (rt_conn_cfg_srq_pollers(spec->cfg) == 0)
		return 0;
	srq = spec->cfg->srqs[conn->poller->index];
	if (srq == NULL)
		return rt_refuse_later(
			RPMA_E_INVAL,
			"rpma_rt_conn_cfg.srqs has none of poller %ld, where "
			"the connection is",
			conn->poller->index);
	if (srq->peer != spec->cfg->peer)
		return rt_refuse_later(
			RPMA_E_INVAL,
			"rpma_rt_conn_cfg.srqs: the one of poller %ld has "
			"another peer than the connection",
			conn->poller->index);
	if (srq->closing)
		return rt_refuse_later(RPMA_RT_E_CLOSED,
				       "rpma_rt_conn_cfg.srqs: the one of "
				       "poller %ld is being deleted",
				       conn->poller->index);
	/* the SRQ of the poller that the program named */
	if (rt_srq_has_failed(srq))
		return rt_refuse_later(RPMA_E_PROVIDER,
				       "rpma_rt_conn_cfg.srqs: the one of "
				       "poller %ld has failed: delete it and "
				       "make another",
				       conn->poller->index);
	conn->from.srq = srq;
	conn->receives = RT_RECEIVES_SRQ;
	return rpma_conn_cfg_set_srq(conn->setup->cfg, srq->srq);
}

/* Holds everything that is used while the lock is released: a stop waits, and
 * the SRQ is not deleted. Held until the connection is DONE. REQUIRES: the
 * runtime's lock */
static void create_hold(struct rpma_rt_conn *conn)
{
	conn->rt->in_use++;
	conn->poller->conns++;
	if (rt_conn_srq(conn) != NULL)
		conn->from.srq->users++;
	rt_pool_ref(rt_fill_pool(conn));
	rt_fill_join(conn);
}

/* Undoes create_hold(): the connection is not made. REQUIRES: the runtime's
 * lock */
static void create_release_hold(struct rpma_rt_conn *conn)
{
	if (rt_conn_srq(conn) != NULL)
		conn->from.srq->users--;
	rt_fill_leave(conn);
	rt_pool_unref(rt_fill_pool(conn));
	conn->poller->conns--;
	if (--conn->rt->in_use == 0)
		pthread_cond_broadcast(&conn->rt->quiet);
}

/* REQUIRES: the runtime's lock */
static int create_register_locked(const struct rt_conn_spec *spec,
				  struct rpma_rt_conn *conn, uint32_t sq,
				  uint32_t rq)
{
	struct rpma_rt *rt = spec->rt;
	struct ibv_context *ibv_ctx;
	int ret;

	if (!create_is_open(spec))
		return RPMA_RT_E_CLOSED;
	if (rt_cm_error(spec->device->cm) != 0)
		return RPMA_E_PROVIDER;
	ret = rpma_peer_get_ibv_context(spec->cfg->peer, &ibv_ctx);
	if (ret)
		return ret;
	ret = create_choose_poller(spec, conn);
	if (ret == 0)
		ret = create_choose_srq(spec, conn);
	if (ret)
		return ret;
	create_hold(conn);
	ret = create_reserve(conn, spec, ibv_ctx, sq, rq);
	if (ret) {
		create_release_hold(conn);
		return ret;
	}
	rpma_conn_cfg_set_cq(conn->setup->cfg, conn->cq->cq);
	rt_listed_add(conn);
	/* relaxed: a count, which orders no other data */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	rt_conn_tell_poller(conn, RT_POLL_OPEN);
	if (!spec->passive) {
		/* relaxed: the caller holds the connection. Sent under the
		 * lock, before a stop can see the connection's end */
		atomic_fetch_add_explicit(&conn->target.count, 1,
					  memory_order_relaxed);
		rt_inbox_push_mt(&conn->device->control.inbox,
				 &conn->setup->begin_msg);
	}
	return 0;
}

/* Logs a refusal that has not been logged. */
static void create_say_why(const struct rt_conn_spec *spec)
{
	const struct rt_conn_cfg *cfg = spec->cfg;

	if (rt_conn_cfg_srq_pollers(cfg) != conn_srq_pollers_alive(cfg))
		RT_LOG_ERROR("no connection: the device has reported an error "
			     "of an SRQ in rpma_rt_conn_cfg.srqs, which takes "
			     "none any more. Delete it and make another");
	rt_cm_check(spec->device->cm);
}

int rt_conn_create(const struct rt_conn_spec *spec,
		   struct rpma_rt_conn **conn_ptr)
{
	struct rpma_rt_conn *conn;
	uint32_t sq;
	uint32_t rq;
	int ret;

	ret = create_record_new(spec, &sq, &rq, &conn);
	if (ret)
		return ret;
	pthread_mutex_lock(&spec->rt->lock);
	ret = create_register_locked(spec, conn, sq, rq);
	pthread_mutex_unlock(&spec->rt->lock);
	if (ret) {
		create_say_why(spec);
		rt_conn_free(conn);
		return ret;
	}
	rt_pool_log_short(rt_fill_pool(conn));
	*conn_ptr = conn;
	return 0;
}

void rt_conn_unreserve(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;
	struct rpma_rt_route *route;

	rt_conn_free_left(rt);
	pthread_mutex_lock(&rt->lock);
	/* first, because the queues and routes that the connection names may be
	 * freed below */
	rt_listed_end(conn);
	for (route = conn->poll.routes; route != NULL;
	     route = rt_route_next(route)) {
		rt_route_release(conn, route);
		if (route->queue != NULL)
			rt_queue_unref_announced(route->queue);
	}
	rt_futures_end(conn);
	create_unreserve_qp(conn);
	rt_cq_pool_unreserve(conn->cq, &conn->cq_user);
	if (rt_conn_srq(conn) != NULL)
		rt_srq_unref_announced(conn->from.srq);
	rt_fill_leave(conn);
	rt_slots_return(conn->poller, conn->slot);
	conn->poller->conns--;
	pthread_mutex_lock(&rt->ask_lock);
	conn->is_done = true;
	pthread_mutex_unlock(&rt->ask_lock);
	pthread_mutex_unlock(&rt->lock);
}

/* Reports a failure of the CQ to the control thread. Under the runtime's
 * lock. */
static void create_cq_failed(struct rt_cq_user *user)
{
	rt_conn_tell_control(RT_FROM(struct rpma_rt_conn, cq_user, user),
			     RT_CTL_DEVICE);
}
