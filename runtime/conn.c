/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.c -- a connection's life as the control thread leads it, and the
 * application's calls that ask for it. States and the order of death:
 * doc/protocols/connection.md.
 */

#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "conn_cfg.h"
#include "control.h"
#include "listener.h"
#include "poller.h"
#include "queue.h"
#include "reserve.h"
#include "runtime.h"
#include "settle.h"
#include "side.h"

/* -------------------------------------------------------------- holders --- */

void rt_conn_rele(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	/* acq_rel: the last one sees what every other did */
	if (atomic_fetch_sub_explicit(&conn->target.count, 1,
				      memory_order_acq_rel) != 1)
		return;
	rt_conn_free(conn);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}

/* -------------------------------------------------------- the way there --- */

static void qp_event(struct rt_async_object *self, enum ibv_event_type type)
{
	if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	    type == IBV_EVENT_QP_ACCESS_ERR)
		rt_conn_tell_control(RT_FROM(struct rpma_rt_conn, async, self),
				     RT_CTL_FATAL);
}

/* The queue pair exists: the poller learns its number, receives may be posted,
 * the application is told. */
static int qp_is_made(struct rpma_rt_conn *conn)
{
	int ret;

	ret = rpma_conn_req_claim(conn->req, conn);
	if (ret == 0)
		ret = rpma_conn_req_get_qp(conn->req, &conn->qp);
	if (ret)
		return ret;
	conn->qp_num = conn->qp->qp_num;
	conn->qp_alive = true;
	conn->async =
		(struct rt_async_object){.object = conn->qp, .event = qp_event};
	rt_async_own(&conn->async);
	rt_conn_tell_poller(conn, RT_POLL_BIND);
	rt_side_open(&conn->side[RPMA_RT_RECV_SIDE]);
	/* release: pairs with the acquire of who wants qp_num */
	atomic_store_explicit(&conn->ready, true, memory_order_release);
	rt_conn_tell_poller(conn, RT_POLL_READY);
	return 0;
}

/* The reason that a CM event gives for closing. */
static enum rpma_rt_reason reason_of(const struct rpma_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return RPMA_RT_REASON_DEVICE;
	case RDMA_CM_EVENT_REJECTED:
		return RPMA_RT_REASON_REJECTED;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return RPMA_RT_REASON_UNREACHABLE;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return RPMA_RT_REASON_DISCONNECTED;
	default:
		return RPMA_RT_REASON_FAILED;
	}
}

static void resolve_further(struct rpma_rt_conn *conn,
			    const struct rpma_cm_event *event)
{
	int ret;

	ret = rpma_conn_req_advance(conn->req, event);
	if (ret == RPMA_E_AGAIN)
		return;
	if (ret == 0) {
		rt_conn_set_state(conn, RT_CONN_READY);
		ret = qp_is_made(conn);
	}
	if (ret)
		rt_conn_die_control(conn, reason_of(event),
				    (uint32_t)event->status);
}

static void begin(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, birth_msg, msg);

	(void)owner;
	if (conn->state == RT_CONN_RESOLVING &&
	    (conn->addr[0] == '\0' ||
	     rpma_conn_req_new_async(conn->peer, conn->addr, conn->port,
				     conn->cfg, &conn->target, &conn->req)))
		rt_conn_die_control(conn, RPMA_RT_REASON_UNREACHABLE, 0);
	rt_conn_rele(conn);
}

static void keep_private_data(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event)
{
	if (event->private_data_len == 0 || conn->pdata_in_len != 0)
		return;
	memcpy(conn->pdata_in, event->private_data, event->private_data_len);
	conn->pdata_in_len = event->private_data_len;
	/* release: pairs with the acquire in get_private_data() */
	atomic_store_explicit(&conn->pdata_valid, true, memory_order_release);
}

void rt_conn_request_control(struct rpma_rt_listener *listener,
			     const struct rpma_cm_event *event)
{
	struct rt_birth birth = {
		.rt = listener->rt,
		.peer = listener->peer,
		.cfg = listener->cfg,
		.poller = listener->poller,
		.queue = listener->queue,
		.user = listener->user,
		.passive = true,
	};
	struct rpma_rt_conn *conn;

	if (listener->closed || rt_conn_birth(&birth, &conn)) {
		rdma_reject(event->id, NULL, 0);
		if (rdma_destroy_id(event->id))
			rt_cm_keep_control(listener->rt, &listener->target);
		return;
	}
	keep_private_data(conn, event);
	conn->cm_id = event->id;
	/* relaxed: the event holds it meanwhile */
	atomic_fetch_add_explicit(&listener->target.count, 1,
				  memory_order_relaxed);
	conn->listener = listener;
	if (rpma_conn_req_new_from_event(conn->peer, event, conn->cfg,
					 &conn->target, &conn->req) ||
	    qp_is_made(conn)) {
		/* the application never hears of it: its handle is ours */
		conn->silent = true;
		rt_conn_die_control(conn, RPMA_RT_REASON_FAILED, 0);
		rt_conn_rele(conn);
	}
}

void rt_conn_early_event_control(struct rpma_rt *rt,
				 const struct rpma_cm_event *event)
{
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->cm_id == event->id && event->id != NULL)
			break;
	}
	pthread_mutex_unlock(&rt->lock);
	/* it is unlisted by this thread only */
	if (conn != NULL)
		rt_conn_cm_event_control(conn, event);
}

static void connect_now(struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata = {conn->pdata_out,
					       conn->pdata_out_len};
	struct rt_side *rq = &conn->side[RPMA_RT_RECV_SIDE];
	int ret;

	if (conn->state != RT_CONN_READY)
		return;
	rt_conn_set_state(conn, RT_CONN_CONNECTING);
	/* a failure destroys the queue pair: nobody may be posting to it */
	rt_side_pause(rq);
	ret = rpma_conn_req_connect(
		&conn->req, conn->pdata_out_len ? &pdata : NULL, &conn->conn);
	if (ret) {
		conn->qp_alive = false;
		rt_async_disown(&conn->async);
	}
	rt_side_resume(rq, ret != 0);
	if (ret)
		rt_conn_die_control(conn, RPMA_RT_REASON_FAILED, 0);
}

static void established(struct rpma_rt_conn *conn,
			const struct rpma_cm_event *event)
{
	if (conn->state != RT_CONN_CONNECTING)
		return;
	rt_conn_set_state(conn, RT_CONN_ESTABLISHED);
	conn->was_established = true;
	if (!conn->passive)
		keep_private_data(conn, event);
	rt_side_open(&conn->side[RPMA_RT_SEND_SIDE]);
	rt_conn_tell_poller(conn, RT_POLL_ESTABLISHED);
}

/* librdmacm flushes a refused queue pair before it hands the event out, so the
 * flush may be heard of first: the refusal is the reason all the same. */
static void refine_reason(struct rpma_rt_conn *conn,
			  const struct rpma_cm_event *event)
{
	enum rpma_rt_reason reason = reason_of(event);

	if (conn->was_established || conn->reason != RPMA_RT_REASON_ERROR)
		return;
	if (reason != RPMA_RT_REASON_REJECTED &&
	    reason != RPMA_RT_REASON_UNREACHABLE &&
	    reason != RPMA_RT_REASON_DEVICE)
		return;
	conn->reason = reason;
	rt_conn_set_state(conn, conn->state);
	conn->cm_status = (uint32_t)event->status;
	if (event->type == RDMA_CM_EVENT_REJECTED)
		keep_private_data(conn, event);
}

void rt_conn_cm_event_control(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event)
{
	enum rpma_conn_event conn_event = RPMA_CONN_UNDEFINED;
	int ret = 0;

	if (conn->state >= RT_CONN_DRAINING) {
		refine_reason(conn, event);
		return;
	}
	if (conn->state == RT_CONN_RESOLVING) {
		resolve_further(conn, event);
		return;
	}
	/* without a connection: the peer gave up before we answered */
	if (conn->conn != NULL)
		ret = rpma_conn_handle_event(conn->conn, event, &conn_event);
	if (ret == 0 && conn_event == RPMA_CONN_ESTABLISHED) {
		established(conn, event);
		return;
	}
	if (ret == RPMA_E_UNKNOWN)
		return; /* an event that means nothing to a connection */
	if (event->type == RDMA_CM_EVENT_REJECTED)
		keep_private_data(conn, event);
	rt_conn_die_control(conn, reason_of(event), (uint32_t)event->status);
}

/* --------------------------------------------------- the order of death --- */

static void post_rq_marker(struct rpma_rt_conn *conn)
{
	struct ibv_recv_wr wr = {
		.wr_id = rt_wr_id_internal(RT_RQ_MARKER, conn->slot)};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(conn->qp, &wr, &bad) == 0)
		conn->markers_due |= 1u << RPMA_RT_RECV_SIDE;
}

static void post_sq_marker(struct rpma_rt_conn *conn)
{
	struct ibv_send_wr wr = {
		.wr_id = rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(conn->qp, &wr, &bad) == 0)
		conn->markers_due |= 1u << RPMA_RT_SEND_SIDE;
}

/* Everything outstanding comes back, each queue's marker behind it. */
static void flush_qp(struct rpma_rt_conn *conn)
{
	int ret;

	if (!conn->qp_alive)
		return;
	if (conn->srq == NULL) /* what is in that is for others */
		post_rq_marker(conn);
	ret = conn->conn ? rpma_conn_qp_to_err(conn->conn)
			 : rpma_conn_req_qp_to_err(conn->req);
	if (ret) { /* nothing flushes: destroy it, then synthesize */
		conn->markers_due = 0;
		return;
	}
	post_sq_marker(conn);
}

void rt_conn_die_control(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
			 uint32_t cm_status)
{
	if (conn->state >= RT_CONN_DRAINING)
		return;
	conn->reason = reason;
	rt_conn_set_state(conn, RT_CONN_DRAINING);
	conn->cm_status = cm_status;
	rt_side_close(&conn->side[RPMA_RT_SEND_SIDE]);
	rt_side_close(&conn->side[RPMA_RT_RECV_SIDE]);
	flush_qp(conn);
	if (reason == RPMA_RT_REASON_DEVICE)
		conn->markers_due = 0; /* they may never come */
	if (conn->conn != NULL)
		rpma_conn_disconnect(conn->conn);
	rt_conn_tell_poller(conn, RT_POLL_HANDOVER);
}

static void destroy_qp(struct rpma_rt_conn *conn)
{
	rt_conn_set_state(conn, RT_CONN_SWEEPING);
	if (conn->qp_alive) {
		/* its number and its address may be another's from here on */
		rt_async_disown(&conn->async);
		/* librdmacm moves a connecting queue pair while it reads */
		pthread_mutex_lock(&conn->rt->cm_lock);
		if (conn->conn != NULL)
			rpma_conn_destroy_qp(conn->conn);
		else
			rpma_conn_req_destroy_qp(conn->req);
		pthread_mutex_unlock(&conn->rt->cm_lock);
		conn->qp_alive = false;
	}
	rt_conn_tell_poller(conn, RT_POLL_GONE);
}

static int delete_id(struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata = {conn->pdata_out,
					       conn->pdata_out_len};

	if (conn->conn != NULL) {
		rpma_conn_release(conn->conn, conn);
		return rpma_conn_delete(&conn->conn);
	}
	if (conn->req == NULL)
		return 0;
	rpma_conn_req_release(conn->req, conn);
	return conn->rejecting && conn->pdata_out_len
		       ? rpma_conn_req_reject(&conn->req, &pdata)
		       : rpma_conn_req_delete(&conn->req);
}

static void delete_objects(struct rpma_rt_conn *conn)
{
	rt_conn_set_state(conn, RT_CONN_DELETING);
	conn->cm_id = NULL;
	if (delete_id(conn))
		rt_cm_keep_control(conn->rt, &conn->target);
	if (conn->listener != NULL)
		rt_listener_rele(conn->listener);
	/* behind the CM events of it that are in the inbox already: with its
	 * id gone there will be no others */
	rt_conn_tell_control(conn, RT_CTL_DELETED);
}

static void done(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	rt_conn_unreserve(conn);
	rt_conn_rele(conn);
	rt_runtime_conn_done(rt);
}

void rt_conn_bits_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	if (bits & RT_CTL_REJECT)
		conn->rejecting = conn->state == RT_CONN_READY;
	if (bits & (RT_CTL_REJECT | RT_CTL_CLOSE))
		rt_conn_die_control(conn, RPMA_RT_REASON_LOCAL, 0);
	if (bits & RT_CTL_CONNECT) /* not if it was closed meanwhile */
		connect_now(conn);
	if (bits & (RT_CTL_BROKEN | RT_CTL_FATAL))
		rt_conn_die_control(conn, RPMA_RT_REASON_ERROR, 0);
	if (bits & RT_CTL_DRAINED)
		destroy_qp(conn);
	if (bits & RT_CTL_SWEPT)
		delete_objects(conn);
	if (bits & RT_CTL_DELETED)
		rt_conn_tell_poller(conn, RT_POLL_LAST);
	if (bits & RT_CTL_DONE)
		done(conn);
}

/* ------------------------------------------------------------ the calls --- */

static int check(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? RPMA_E_INVAL : rt_runtime_check(conn->rt);
}

/* Likewise for what waits for the poller. */
static int check_wait(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? RPMA_E_INVAL : rt_runtime_check_wait(conn->rt);
}

/* What the application asks of the control thread; nothing once all is over. */
static void ask_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	/* a connection that is not DONE keeps the control thread going, and
	 * it becomes DONE under this lock */
	pthread_mutex_lock(&conn->rt->ask_lock);
	if (!conn->is_done)
		rt_conn_tell_control(conn, bits);
	pthread_mutex_unlock(&conn->rt->ask_lock);
}

int rpma_rt_conn_new(struct rpma_rt *rt, struct rpma_peer *peer,
		     const char *addr, const char *port,
		     const struct rpma_rt_conn_cfg *cfg, int poller,
		     struct rpma_rt_queue *queue, void *user,
		     struct rpma_rt_conn **conn_ptr)
{
	struct rt_birth birth = {.rt = rt,
				 .peer = peer,
				 .cfg = cfg,
				 .poller = poller,
				 .queue = queue,
				 .user = user,
				 .addr = addr,
				 .port = port,
				 .begin = begin};
	int ret;

	if (rt == NULL || peer == NULL || addr == NULL || port == NULL ||
	    queue == NULL || !rt_queue_is_of(queue, rt) || conn_ptr == NULL ||
	    !rt_runtime_is_place(rt, poller) || !rt_conn_cfg_is_of(cfg, rt))
		return RPMA_E_INVAL;
	ret = rt_runtime_check_wait(rt);
	return ret ? ret : rt_conn_birth(&birth, conn_ptr);
}

/* connect or reject, once; keeps the private data for it */
static int decide(struct rpma_rt_conn *conn,
		  const struct rpma_conn_private_data *pdata, uint32_t bit)
{
	int ret = check(conn);

	if (ret)
		return ret;
	if (pdata != NULL && (pdata->ptr == NULL || pdata->len == 0))
		return RPMA_E_INVAL;
	/* acquire: pairs with the release in qp_is_made() */
	if (!atomic_load_explicit(&conn->ready, memory_order_acquire))
		return RPMA_E_INVAL;
	/* relaxed: a hint; the control thread knows */
	if (atomic_load_explicit(&conn->side[RPMA_RT_RECV_SIDE].gate,
				 memory_order_relaxed) == RT_GATE_CLOSED)
		return RPMA_RT_E_CLOSED;
	/* relaxed: only who comes first matters */
	if (atomic_exchange_explicit(&conn->decided, true,
				     memory_order_relaxed))
		return RPMA_E_INVAL;
	if (pdata != NULL) {
		memcpy(conn->pdata_out, pdata->ptr, pdata->len);
		conn->pdata_out_len = pdata->len;
	}
	ask_control(conn, bit);
	return 0;
}

int rpma_rt_conn_connect(struct rpma_rt_conn *conn,
			 const struct rpma_conn_private_data *pdata)
{
	return decide(conn, pdata, RT_CTL_CONNECT);
}

int rpma_rt_conn_reject(struct rpma_rt_conn *conn,
			const struct rpma_conn_private_data *pdata)
{
	int ret = check(conn);

	if (ret == 0 && !conn->passive)
		ret = RPMA_E_INVAL;
	return ret ? ret : decide(conn, pdata, RT_CTL_REJECT);
}

int rpma_rt_conn_close(struct rpma_rt_conn *conn)
{
	int ret = check(conn);
	int i;

	if (ret)
		return ret;
	for (i = 0; i < 2; i++) {
		/* relaxed: a hint; the control thread makes it firm */
		atomic_store_explicit(&conn->side[i].gate, RT_GATE_CLOSED,
				      memory_order_relaxed);
	}
	ask_control(conn, RT_CTL_CLOSE);
	return 0;
}

/* One holder of the application's more, or less. What nobody holds is used
 * after the last put: told as long as the runtime still has the record. */
static int change_held(struct rpma_rt_conn *conn, int by)
{
	/* relaxed, also below: target.count has the order */
	uint32_t held = atomic_load_explicit(&conn->held, memory_order_relaxed);

	while (held > 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &conn->held, &held, held + (uint32_t)by,
			    memory_order_relaxed, memory_order_relaxed))
			return 0;
	}
	assert(!"a connection handle used after its last put");
	return RPMA_E_INVAL;
}

int rpma_rt_conn_get(struct rpma_rt_conn *conn)
{
	int ret = check(conn);

	if (ret == 0)
		ret = change_held(conn, 1);
	if (ret)
		return ret;
	/* relaxed: the caller holds the connection */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	return 0;
}

int rpma_rt_conn_put(struct rpma_rt_conn **conn_ptr)
{
	int ret;

	if (conn_ptr == NULL)
		return RPMA_E_INVAL;
	if (*conn_ptr == NULL)
		return 0;
	ret = check(*conn_ptr);
	if (ret == 0)
		ret = change_held(*conn_ptr, -1);
	if (ret)
		return ret;
	rt_conn_rele(*conn_ptr);
	*conn_ptr = NULL;
	return 0;
}

int rpma_rt_conn_get_private_data(const struct rpma_rt_conn *conn,
				  struct rpma_conn_private_data *pdata)
{
	int ret = check(conn);

	if (ret || pdata == NULL)
		return ret ? ret : RPMA_E_INVAL;
	pdata->ptr = NULL;
	pdata->len = 0;
	/* acquire: pairs with the release in keep_private_data() */
	if (atomic_load_explicit(&conn->pdata_valid, memory_order_acquire)) {
		pdata->ptr = (void *)(uintptr_t)conn->pdata_in;
		pdata->len = conn->pdata_in_len;
	}
	return 0;
}

int rpma_rt_conn_get_qp_num(const struct rpma_rt_conn *conn, uint32_t *qp_num)
{
	int ret = check(conn);

	if (ret || qp_num == NULL)
		return ret ? ret : RPMA_E_INVAL;
	/* acquire: pairs with the release in qp_is_made() */
	if (!atomic_load_explicit(&conn->ready, memory_order_acquire))
		return RPMA_E_AGAIN;
	*qp_num = conn->qp_num;
	return 0;
}

int rpma_rt_conn_get_poller(const struct rpma_rt_conn *conn, int *poller)
{
	int ret = check(conn);

	if (ret || poller == NULL)
		return ret ? ret : RPMA_E_INVAL;
	*poller = conn->poller->index;
	return 0;
}

int rpma_rt_conn_get_user(const struct rpma_rt_conn *conn, void **user)
{
	int ret = check(conn);

	if (ret || user == NULL)
		return ret ? ret : RPMA_E_INVAL;
	/* relaxed: the application orders its own pointer */
	*user = atomic_load_explicit(&conn->user, memory_order_relaxed);
	return 0;
}

/* -------------------------------- what the application may still change --- */

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
	return !atomic_load_explicit(&conn->decided, memory_order_relaxed) &&
	       !atomic_load_explicit(&conn->posted, memory_order_relaxed);
}

/* Has it begun to die? Then its routes are final. */
static bool is_dying_owner(const struct rpma_rt_conn *conn)
{
	return conn->ps != RT_PS_HEALTHY;
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

static int set_user_owner(void *arg)
{
	struct change *change = arg;

	if (!is_dying_owner(change->conn))
		rt_conn_set_user_owner(change->conn);
	return 0;
}

int rpma_rt_conn_set_user(struct rpma_rt_conn *conn, void *user)
{
	struct change change = {.conn = conn};
	int ret = check_wait(conn);

	if (ret)
		return ret;
	/* relaxed: the calling thread's own doing */
	if (atomic_load_explicit(&conn->decided, memory_order_relaxed))
		return RPMA_E_INVAL;
	ret = lock_living(conn);
	if (ret)
		return ret;
	/* relaxed: published by the inbox */
	atomic_store_explicit(&conn->user, user, memory_order_relaxed);
	rt_call(conn->rt, &conn->poller->inbox, set_user_owner, &change);
	pthread_mutex_unlock(&conn->rt->lock);
	return 0;
}

static int set_queue_owner(void *arg)
{
	struct change *change = arg;

	if (is_dying_owner(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_conn_set_queue_owner(change->conn, change->to[0], change->spill);
	/* what was staged for the former queue: it may be deleted after this */
	rt_poller_flush_owner(change->conn->poller);
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
	ret = rt_call(conn->rt, &conn->poller->inbox, set_queue_owner, &change);
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

static int add_route_owner(void *arg)
{
	struct change *change = arg;

	if (is_dying_owner(change->conn))
		return RPMA_RT_E_CLOSED;
	rt_conn_add_route_owner(change->conn, change->route, change->spill[0]);
	return 0;
}

/* A route to the queue, or, where that is NULL, to the function. */
static int open_route(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		      struct rpma_rt_queue *queue, rpma_rt_callback *fn,
		      void *arg, struct rpma_rt_route **route_ptr)
{
	struct change change = {.conn = conn};
	uint32_t entries = conn->side[side].ledger.depth + RT_ROUTE_EVENTS;
	int ret;

	ret = lock_living(conn);
	if (ret)
		return ret;
	ret = rt_route_new(conn, side, queue, entries, &change.route,
			   &change.spill[0]);
	if (ret)
		goto unlock;
	change.route->fn = fn;
	change.route->arg = arg;
	ret = rt_call(conn->rt, &conn->poller->inbox, add_route_owner, &change);
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
