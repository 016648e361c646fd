/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * create.c -- creation of a connection: all that it needs is reserved under the
 * runtime's lock before its queue pair exists, and given back when it is DONE.
 */

#include "conn/create.h"

#include <stdlib.h>
#include <stddef.h>
#include <string.h>

#include "base/cfg.h"
#include "base/device.h"
#include "base/runtime.h"
#include "conn/cfg.h"
#include "conn/drain.h"
#include "conn/listener_poller.h"
#include "conn/messages.h"
#include "conn/name.h"
#include "conn/peer.h"
#include "conn/resolve.h"
#include "conn/route.h"
#include "conn/slots.h"
#include "poller/cq_pool.h"
#include "poller/place.h"
#include "poller/poller.h"
#include "poller/qp_table.h"
#include "queue/queue.h"
#include "srq/srq.h"

/* min_rnr_timer where the caller leaves it: 0.64 ms; rdma_cm's is 655 ms */
#define DEFAULT_MIN_RNR_TIMER 12

/* ----------------------------------------------------------- the record --- */

static void cq_failed(struct rt_cq_user *user);

/* The configuration of the queue pair: the caller's, without a CQ yet, with a
 * slot for the marker in each queue and one for a keep-alive. */
static int copy_cfg(struct rpma_rt_conn *conn, const struct rt_conn_cfg *cfg,
		    uint32_t *sq, uint32_t *rq)
{
	uint32_t sends;
	uint32_t recvs;
	uint8_t rnr;
	int ret;

	ret = rt_conn_cfg_verbs(cfg, conn->device->cm->channel, &conn->cfg);
	if (ret)
		return ret;
	rpma_conn_cfg_get_sq_size(conn->cfg, &sends);
	rpma_conn_cfg_get_rq_size(conn->cfg, &recvs);
	*sq = sends;
	*rq = rt_conn_cfg_srq_pollers(cfg) != 0 ? 0 : recvs;
	if (cfg->keepalive_ms > 0)
		conn->poll.keepalive.period_ns =
			(uint64_t)cfg->keepalive_ms * UINT64_C(1000000);
	rpma_conn_cfg_set_sq_size(
		conn->cfg, sends + 1 + (conn->poll.keepalive.period_ns > 0));
	rpma_conn_cfg_set_rq_size(conn->cfg, recvs + 1);
	rpma_conn_cfg_get_max_inline_data(conn->cfg, &conn->max_inline);
	rpma_conn_cfg_get_max_send_sge(conn->cfg, &conn->max_sge);
	rpma_conn_cfg_get_min_rnr_timer(conn->cfg, &rnr);
	if (rnr == RPMA_MIN_RNR_TIMER_UNSET)
		rpma_conn_cfg_set_min_rnr_timer(conn->cfg,
						DEFAULT_MIN_RNR_TIMER);
	return 0;
}

/* Does the device support these sizes? Before anything is made with them. */
static int check_device(const struct rpma_rt_conn *conn, uint32_t sq,
			uint32_t rq)
{
	static const char name[] = "rpma_rt_conn_cfg";
	uint32_t alive = conn->poll.keepalive.period_ns > 0;
	struct ibv_context *ibv_ctx;
	struct ibv_device_attr attr;
	int ret;

	ret = rpma_peer_get_ibv_context(conn->peer, &ibv_ctx);
	if (ret)
		return ret;
	if (ibv_query_device(ibv_ctx, &attr))
		return RPMA_E_PROVIDER;
	/* each with the marker's, and a keep-alive's */
	if (sq + 1 + alive > (uint32_t)attr.max_qp_wr)
		return rt_cfg_refuse(name, "sq_size", sq, 1,
				     (int64_t)attr.max_qp_wr - 1 - alive);
	if (rq + 1 > (uint32_t)attr.max_qp_wr)
		return rt_cfg_refuse(name, "rq_size", rq, 1,
				     (int64_t)attr.max_qp_wr - 1);
	if (conn->max_sge > (uint32_t)attr.max_sge)
		return rt_cfg_refuse(name, "max_sge", conn->max_sge, 1,
				     attr.max_sge);
	return sq + rq + 2 + alive > (uint32_t)attr.max_cqe ? RPMA_E_NOMEM : 0;
}

static int init_sides(struct rpma_rt_conn *conn, uint32_t sq, uint32_t rq,
		      bool single)
{
	struct rt_gate *gate;
	int ret = 0;
	int i;

	for (i = 0; i < 2; i++) {
		conn->side[i].which = (uint8_t)i;
		conn->side[i].ops = &rt_drain_side_ops;
		gate = &conn->gate[i];
		gate->side = &conn->side[i];
		gate->single = single;
		/* relaxed: nobody else knows it yet */
		atomic_store_explicit(&gate->owed, RT_OWED_UNKNOWN,
				      memory_order_relaxed);
		pthread_mutex_init(&gate->lock, NULL);
		if (ret == 0)
			ret = rt_ledger_init(&gate->ledger, i ? rq : sq);
	}
	return ret;
}

void rt_conn_free(struct rpma_rt_conn *conn)
{
	struct rpma_rt_route *route;
	int i;

	while ((route = conn->poll.routes) != NULL) {
		conn->poll.routes = route->next;
		rt_route_free(route);
	}
	while ((route = conn->poll.buried) != NULL) {
		conn->poll.buried = route->next;
		rt_route_free(route);
	}
	for (i = 0; i < 2; i++) {
		rt_ledger_fini(&conn->gate[i].ledger);
		pthread_mutex_destroy(&conn->gate[i].lock);
	}
	rt_peer_fini(conn);
	rpma_conn_cfg_delete(&conn->cfg);
	free(conn->poll.kept);
	free(conn->addr);
	free(conn->port);
	free(conn);
}

/* A copy of addr, with room for the numbers if it is a name. */
static char *copy_text(const char *text, size_t least)
{
	size_t len = strlen(text) + 1;
	char *copy = malloc(len > least ? len : least);

	if (copy != NULL)
		memcpy(copy, text, len);
	return copy;
}

static int copy_where(struct rpma_rt_conn *conn,
		      const struct rt_conn_spec *spec)
{
	if (spec->passive)
		return 0;
	conn->begin_msg.fn = spec->begin;
	conn->addr = copy_text(spec->addr, RT_ADDR_SIZE);
	conn->port = copy_text(spec->port, RT_PORT_SIZE);
	return conn->addr && conn->port ? 0 : RPMA_E_NOMEM;
}

static int record_new(const struct rt_conn_spec *spec, uint32_t *sq,
		      uint32_t *rq, struct rpma_rt_conn **conn_ptr)
{
	struct rpma_rt_conn *conn;
	int ret;

	conn = aligned_alloc(RT_CACHE_LINE, sizeof(*conn));
	if (conn == NULL)
		return RPMA_E_NOMEM;
	memset(conn, 0, sizeof(*conn));
	conn->target.ops = spec->cm_ops;
	/* relaxed: published by the inbox. The application's and ours */
	atomic_store_explicit(&conn->target.count, 2, memory_order_relaxed);
	atomic_store_explicit(&conn->held, 1, memory_order_relaxed);
	conn->rt = spec->rt;
	conn->device = spec->device;
	conn->peer = spec->cfg->peer;
	conn->passive = spec->passive;
	/* relaxed: published by the inbox */
	atomic_store_explicit(&conn->user, spec->cfg->user,
			      memory_order_relaxed);
	rt_name_init(conn);
	rt_keepalive_init(conn);
	conn->cq_user.failed = cq_failed;
	conn->ctl_msg.fn = spec->control;
	conn->poll_msg.fn = rt_messages_poll;
	rt_conn_set_state(conn,
			  spec->passive ? RT_CONN_READY : RT_CONN_RESOLVING);
	*sq = 0;
	*rq = 0;
	ret = copy_where(conn, spec);
	if (ret == 0)
		ret = copy_cfg(conn, spec->cfg, sq, rq);
	if (ret == 0)
		ret = check_device(conn, *sq, *rq);
	if (ret) { /* and nothing of that size is made */
		*sq = 0;
		*rq = 0;
	}
	if (init_sides(conn, *sq, *rq, spec->cfg->single_poster) && ret == 0)
		ret = RPMA_E_NOMEM;
	conn->poll.kept_max = *sq + *rq;
	conn->poll.kept =
		calloc(conn->poll.kept_max + 1, sizeof(*conn->poll.kept));
	if (ret == 0 && conn->poll.kept == NULL)
		ret = RPMA_E_NOMEM;
	if (ret) {
		rt_conn_free(conn);
		return ret;
	}
	*conn_ptr = conn;
	return 0;
}

/* ------------------------------------------------------------ reserving --- */

/* Reserves a place in the CQ's table of queue pairs; makes a larger table if
 * there is none left. */
static int reserve_qp(struct rpma_rt_conn *conn)
{
	struct rt_cq *cq = conn->cq;

	if (conn->srq == NULL)
		return 0;
	if (cq->qps_reserved == cq->qps_announced) {
		conn->qps = rt_qp_table_new(2 * cq->qps_announced + 1);
		if (conn->qps == NULL)
			return RPMA_E_NOMEM;
		cq->qps_announced = rt_qp_table_room(conn->qps);
	}
	cq->qps_reserved++;
	return 0;
}

static void unreserve_qp(struct rpma_rt_conn *conn)
{
	if (conn->srq == NULL)
		return;
	conn->cq->qps_reserved--;
	if (conn->qps != NULL) { /* not handed over */
		conn->cq->qps_announced = conn->cq->qps_reserved;
		rt_qp_table_delete(conn->qps);
		conn->qps = NULL;
	}
}

static bool is_open(const struct rt_conn_spec *spec)
{
	/* of a listener's: see choose_poller() */
	return !spec->rt->stopping && (spec->listener != NULL ||
				       !rt_queue_is_closed(spec->cfg->queue));
}

/* Room in a CQ of its poller. The lock may have been released meanwhile.
 * REQUIRES: the runtime's lock */
static int reserve_room(struct rpma_rt_conn *conn, struct ibv_context *ibv_ctx,
			uint32_t sq, uint32_t rq)
{
	struct rt_cq_user *user = &conn->cq_user;

	user->room = sq + rq + (conn->srq != NULL ? 1 : 2) + /* markers */
		     (conn->poll.keepalive.period_ns > 0);
	if (conn->srq != NULL) {
		user->srq = conn->srq->number;
		user->srq_room = conn->srq->cfg.srq_size;
	}
	return rt_cq_pool_reserve(conn->poller, ibv_ctx, user, &conn->cq);
}

/* REQUIRES: the runtime's lock */
static int reserve(struct rpma_rt_conn *conn, const struct rt_conn_spec *spec,
		   struct ibv_context *ibv_ctx, uint32_t sq, uint32_t rq)
{
	struct rt_poller *poller = conn->poller;
	struct rpma_rt_queue *queue =
		rt_conn_cfg_queue(spec->cfg, (uint32_t)poller->index);
	int ret;

	ret = rt_slots_take(poller, &conn->slot);
	if (ret)
		return ret;
	ret = reserve_room(conn, ibv_ctx, sq, rq);
	if (ret)
		goto err_return_slot;
	ret = is_open(spec) ? reserve_qp(conn) : RPMA_RT_E_CLOSED;
	if (ret)
		goto err_unreserve;
	ret = rt_route_new(
		conn, RPMA_RT_SEND_SIDE, queue, sq + rq + RT_CONN_EVENTS,
		&conn->own[RPMA_RT_SEND_SIDE], &conn->spill[RPMA_RT_SEND_SIDE]);
	if (ret)
		goto err_unreserve_qp;
	ret = rt_route_new(conn, RPMA_RT_RECV_SIDE, queue, 0,
			   &conn->own[RPMA_RT_RECV_SIDE],
			   &conn->spill[RPMA_RT_RECV_SIDE]);
	if (ret)
		goto err_undo_route;
	return 0;
err_undo_route:
	rt_route_undo(conn, conn->own[RPMA_RT_SEND_SIDE],
		      conn->spill[RPMA_RT_SEND_SIDE]);
err_unreserve_qp:
	unreserve_qp(conn);
err_unreserve:
	rt_cq_pool_unreserve(conn->cq, &conn->cq_user);
err_return_slot:
	rt_slots_return(poller, conn->slot);
	return ret;
}

static void list_conn(struct rpma_rt *rt, struct rpma_rt_conn *conn)
{
	pthread_mutex_lock(&rt->directory);
	conn->next = rt->conns;
	if (rt->conns != NULL)
		rt->conns->prev = conn;
	rt->conns = conn;
	pthread_mutex_unlock(&rt->directory);
	/* relaxed: a count, read under no order */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
}

static void unlist_conn(struct rpma_rt *rt, struct rpma_rt_conn *conn)
{
	pthread_mutex_lock(&rt->directory);
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		rt->conns = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	pthread_mutex_unlock(&rt->directory);
}

/* A request goes to no poller whose queue is closed or over its limit.
 * REQUIRES: the runtime's lock */
static int choose_poller(const struct rt_conn_spec *spec,
			 struct rpma_rt_conn *conn)
{
	uint64_t among = rt_conn_cfg_srq_pollers(spec->cfg);

	if (spec->listener != NULL) {
		among = rt_listener_poller_open(spec->listener);
		if (among == 0)
			return RPMA_RT_E_BUSY;
	}
	conn->poller = rt_place_choose(spec->rt, spec->cfg->poller, among);
	if (spec->listener != NULL)
		conn->listener = spec->listener->number;
	if (spec->listener != NULL && spec->listener->parts != NULL)
		conn->part = &spec->listener->parts[conn->poller->index];
	return 0;
}

/* The SRQ of its poller, if any were named. REQUIRES: the runtime's lock */
static int choose_srq(const struct rt_conn_spec *spec,
		      struct rpma_rt_conn *conn)
{
	struct rpma_rt_srq *srq;

	if (rt_conn_cfg_srq_pollers(spec->cfg) == 0)
		return 0;
	srq = spec->cfg->srqs[conn->poller->index];
	if (srq == NULL || srq->peer != spec->cfg->peer)
		return RPMA_E_INVAL;
	if (srq->closing)
		return RPMA_RT_E_CLOSED;
	conn->srq = srq;
	return rpma_conn_cfg_set_srq(conn->cfg, srq->srq);
}

/* What is used while the lock is released stays: a stop waits, the SRQ is not
 * deleted. Held until the connection is DONE. REQUIRES: the runtime's lock */
static void hold(struct rpma_rt_conn *conn)
{
	conn->rt->in_use++;
	conn->poller->conns++;
	if (conn->srq != NULL)
		conn->srq->users++;
}

/* Undoes the counts above: conn is not made. REQUIRES: the runtime's lock */
static void release_hold(struct rpma_rt_conn *conn)
{
	if (conn->srq != NULL)
		conn->srq->users--;
	conn->poller->conns--;
	if (--conn->rt->in_use == 0)
		pthread_cond_broadcast(&conn->rt->quiet);
}

/* REQUIRES: the runtime's lock */
static int register_locked(const struct rt_conn_spec *spec,
			   struct rpma_rt_conn *conn, uint32_t sq, uint32_t rq)
{
	struct rpma_rt *rt = spec->rt;
	bool has_name = !spec->passive &&
			!rt_resolve_is_numeric(spec->addr, spec->port);
	struct ibv_context *ibv_ctx;
	int ret;

	if (!is_open(spec))
		return RPMA_RT_E_CLOSED;
	ret = rpma_peer_get_ibv_context(spec->cfg->peer, &ibv_ctx);
	if (ret == 0 && has_name)
		ret = rt_resolve_start(rt);
	if (ret)
		return ret;
	ret = choose_poller(spec, conn);
	if (ret == 0)
		ret = choose_srq(spec, conn);
	if (ret)
		return ret;
	hold(conn);
	ret = reserve(conn, spec, ibv_ctx, sq, rq);
	if (ret) {
		release_hold(conn);
		return ret;
	}
	rpma_conn_cfg_set_cq(conn->cfg, conn->cq->cq);
	list_conn(rt, conn);
	rt_conn_tell_poller(conn, RT_POLL_OPEN);
	if (!spec->passive) {
		/* relaxed: we hold the connection. Sent under the lock: before
		 * a stop can have seen its end */
		atomic_fetch_add_explicit(&conn->target.count, 1,
					  memory_order_relaxed);
		if (has_name)
			rt_resolve_push(conn);
		else
			rt_inbox_push_mt(&conn->device->control.inbox,
					 &conn->begin_msg);
	}
	return 0;
}

int rt_conn_create(const struct rt_conn_spec *spec,
		   struct rpma_rt_conn **conn_ptr)
{
	struct rpma_rt_conn *conn;
	uint32_t sq;
	uint32_t rq;
	int ret;

	ret = record_new(spec, &sq, &rq, &conn);
	if (ret)
		return ret;
	pthread_mutex_lock(&spec->rt->lock);
	ret = register_locked(spec, conn, sq, rq);
	pthread_mutex_unlock(&spec->rt->lock);
	if (ret) {
		rt_conn_free(conn);
		return ret;
	}
	*conn_ptr = conn;
	return 0;
}

void rt_conn_unreserve(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;
	struct rpma_rt_route *route;

	pthread_mutex_lock(&rt->lock);
	/* first: what it names may go with the puts */
	unlist_conn(rt, conn);
	for (route = conn->poll.routes; route != NULL; route = route->next) {
		rt_route_release(conn, route);
		if (route->queue != NULL)
			rt_queue_unref_announced(route->queue);
	}
	unreserve_qp(conn);
	rt_cq_pool_unreserve(conn->cq, &conn->cq_user);
	if (conn->srq != NULL)
		rt_srq_unref_announced(conn->srq);
	rt_slots_return(conn->poller, conn->slot);
	conn->poller->conns--;
	pthread_mutex_lock(&rt->ask_lock);
	conn->is_done = true;
	pthread_mutex_unlock(&rt->ask_lock);
	pthread_mutex_unlock(&rt->lock);
}

/* Under the runtime's lock. */
static void cq_failed(struct rt_cq_user *user)
{
	rt_conn_tell_control(RT_FROM(struct rpma_rt_conn, cq_user, user),
			     RT_CTL_DEVICE);
}
