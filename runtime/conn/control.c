/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * control.c -- a connection's life on the control thread. States and the order
 * of death: doc/protocols/connection.md. Requests of the application: calls.c.
 */

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/runtime.h"
#include "conn/conn.h"
#include "conn/fill.h"
#include "conn/hold.h"
#include "conn/listener.h"
#include "conn/reason.h"
#include "conn/resolve.h"
#include "pool/pool.h"

/* --------------------------------------------- events of its queue pair --- */

/*
 * Asynchronous events of the queue pair, and CM events that are not about the
 * connection. The event thread leaves a bit, and the control thread does the
 * work. doc/EVENTS.md has every event.
 */

/* Handles an asynchronous event, on the event thread. */
static void control_qp_event(struct rt_async_object *self,
			     enum ibv_event_type type)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, ctl.async, self);

	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		rt_conn_tell_control(conn, RT_CTL_FATAL);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		rt_conn_tell_poller(conn, RT_POLL_LAST_WQE);
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
		/* relaxed: the bit publishes the event */
		atomic_fetch_or_explicit(&conn->ctl.heard, UINT32_C(1) << type,
					 memory_order_relaxed);
		rt_conn_tell_control(conn, RT_CTL_HEARD);
		break;
	/* the runtime does not wait for such an event: doc/EVENTS.md */
	default:
		break;
	}
}

/* Begins the asynchronous events of a queue pair that exists now;
 * rt_async_disown() ends the events. Control thread. */
static void rt_hear_begin(struct rpma_rt_conn *conn)
{
	conn->ctl.async = (struct rt_async_object){.object = conn->qp,
						   .event = control_qp_event};
	rt_async_own(&conn->ctl.async);
}

static void control_say_ignored(struct rpma_rt_conn *conn, const char *what)
{
	char name[RPMA_RT_NAME_MAX + 1];

	rt_name_copy(conn, name);
	RT_LOG_INFO("\"%s\" (queue pair 0x%x) goes on: %s", name, conn->qp_num,
		    what);
}

/* Handles RT_CTL_HEARD: asynchronous events of the queue pair that end nothing.
 * Control thread. */
static void rt_hear_control(struct rpma_rt_conn *conn)
{
	/* relaxed: the bit published the events */
	uint32_t heard = atomic_exchange_explicit(&conn->ctl.heard, 0,
						  memory_order_relaxed);

	/* a message has come before the peer's last message of the handshake,
	 * which may be lost: the peer would not repeat that message */
	if (heard & UINT32_C(1) << IBV_EVENT_COMM_EST && conn->passive &&
	    conn->ctl.state == RT_CONN_CONNECTING)
		rdma_notify(conn->setup->id, IBV_EVENT_COMM_EST);
	if (heard & UINT32_C(1) << IBV_EVENT_PATH_MIG)
		control_say_ignored(conn,
				    "its path has moved to the other one");
	if (heard & UINT32_C(1) << IBV_EVENT_PATH_MIG_ERR)
		control_say_ignored(conn,
				    "its path cannot move to the other one");
}

/* Returns whether a CM event is about a connection. Other events are about
 * multicast groups, or are only news: an address has moved to another port of a
 * bond. */
static bool control_is_of_connections(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	/* comes only without a queue pair */
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return false;
	/* unknown events of a newer librdmacm are not about a connection */
	default:
		return type <= RDMA_CM_EVENT_TIMEWAIT_EXIT;
	}
}

/* Returns whether a CM event of the type is about the connection; logs any
 * other event. Control thread. */
static bool rt_hear_concerns(struct rpma_rt_conn *conn, uint32_t type)
{
	if (control_is_of_connections((enum rdma_cm_event_type)type))
		return true;
	control_say_ignored(conn,
			    rdma_event_str((enum rdma_cm_event_type)type));
	return false;
}

/* -------------------------------------------------------- the way there --- */

static void control_die(struct rpma_rt_conn *conn, struct rt_reason why);

int rt_conn_qp_is_made_control(struct rpma_rt_conn *conn)
{
	int ret;

	ret = rpma_conn_req_claim(conn->setup->req, conn);
	conn->setup->is_claimed = ret == 0;
	if (ret == 0)
		ret = rpma_conn_req_get_qp(conn->setup->req, &conn->qp);
	if (ret == 0)
		ret = rt_peer_keep_addr_control(conn);
	if (ret)
		return ret;
	conn->qp_num = conn->qp->qp_num;
	conn->ctl.qp_state = RT_QP_ALIVE;
	rt_hear_begin(conn);
	rt_conn_tell_poller(conn, RT_POLL_BIND);
	rt_turn_open(&conn->gate[RPMA_RT_RECV_SIDE].turn);
	/* release: pairs with the acquires in the getters of qp_num and
	 * peer_addr */
	atomic_fetch_or_explicit(&conn->reached, RT_REACHED_READY,
				 memory_order_release);
	if (conn->poll.brought.part != NULL)
		rt_listener_poller_expect(conn->poll.brought.part);
	rt_conn_tell_poller(conn, RT_POLL_READY);
	/* the answer comes soon: the program connects, accepts or rejects */
	conn->device->control.expects = true;
	return 0;
}

/* Begins to resolve setup->addr. If that fails at once, tries the next address
 * of the name; without another address the connection dies. */
static void control_reach(struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;
	struct rt_reason why;
	int ret;

	do {
		ret = rpma_conn_req_new_async(setup->peer, setup->addr,
					      setup->port, setup->cfg,
					      &conn->target, &setup->req);
		if (ret == 0)
			return;
		why = rt_reason_of_step(RT_STEP_BEGIN, rt_failure_errno(ret));
	} while (rt_resolve_next_control(conn, &why));
	control_die(conn, why);
}

/* Returns why resolving, or making the queue pair, failed; the call has just
 * returned `ret`. */
static struct rt_reason control_unresolved(const struct rpma_cm_event *event,
					   int ret)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rt_reason_of_step(RT_STEP_ROUTE, rt_failure_errno(ret));
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return rt_reason_of_step(RT_STEP_QP, rt_failure_errno(ret));
	default:
		return rt_reason_of_event(event);
	}
}

static void control_resolve_further(struct rpma_rt_conn *conn,
				    const struct rpma_cm_event *event)
{
	struct rt_reason why;
	int ret;

	ret = rpma_conn_req_advance(conn->setup->req, event);
	if (ret == RPMA_E_AGAIN)
		return;
	if (ret == 0) {
		rt_conn_set_state(conn, RT_CONN_READY);
		ret = rt_conn_qp_is_made_control(conn);
	}
	if (ret == 0)
		return;
	why = control_unresolved(event, ret);
	if (conn->ctl.state == RT_CONN_RESOLVING &&
	    rt_resolve_next_control(conn, &why))
		control_reach(conn);
	else
		control_die(conn, why);
}

static void control_name_is_over(struct rpma_rt_conn *conn,
				 enum rpma_rt_reason reason, int err)
{
	if (conn->setup->addr[0] == '\0')
		rt_conn_die_control(conn, reason, (uint32_t)-err);
	else
		control_reach(conn);
}

void rt_conn_begin_control(struct rt_msg *msg, void *owner)
{
	struct rt_conn_setup *setup =
		RT_FROM(struct rt_conn_setup, begin_msg, msg);
	struct rpma_rt_conn *conn = setup->conn;

	(void)owner;
	if (conn->ctl.state == RT_CONN_RESOLVING) {
		if (setup->resolve != NULL)
			rt_resolve_begin_control(conn, control_name_is_over);
		else
			control_reach(conn);
	}
	rt_conn_unref(conn);
}

static void control_connect_now(struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;
	struct rpma_conn_private_data pdata = {setup->pdata_out,
					       setup->pdata_out_len};
	struct rt_gate *rq = &conn->gate[RPMA_RT_RECV_SIDE];
	int err = 0;
	int ret;

	if (conn->ctl.state != RT_CONN_READY)
		return;
	rt_conn_set_state(conn, RT_CONN_CONNECTING);
	/* a failure is logged, and destroys the queue pair: no thread may be
	 * posting then */
	rpma_log_hold();
	rt_gate_pause(rq);
	ret = rpma_conn_req_connect(&setup->req, pdata.len ? &pdata : NULL,
				    &conn->conn);
	if (ret) {
		err = rt_failure_errno(ret);
		conn->ctl.qp_state = RT_QP_DESTROYED;
		rt_async_disown(&conn->ctl.async);
	}
	if (ret)
		rt_turn_close(&rq->turn);
	if (rt_gate_resume(rq))
		rt_look_send(conn);
	rpma_log_release();
	if (ret)
		control_die(conn,
			    rt_reason_of_step(conn->passive ? RT_STEP_ACCEPT
							    : RT_STEP_CONNECT,
					      err));
}

static void control_established(struct rpma_rt_conn *conn,
				const struct rpma_cm_event *event)
{
	if (conn->ctl.state != RT_CONN_CONNECTING)
		return;
	rt_conn_set_state(conn, RT_CONN_ESTABLISHED);
	conn->ctl.handshake = RT_HANDSHAKE_ESTABLISHED;
	if (!conn->passive)
		rt_conn_keep_private_data(conn, event);
	rt_conn_end_handshake(conn);
	rt_turn_open(&conn->gate[RPMA_RT_SEND_SIDE].turn);
	rt_conn_tell_poller(conn, RT_POLL_ESTABLISHED);
}

/* Replaces the reason ERROR by a refusal. librdmacm flushes a refused queue
 * pair before handing the event out, so the flush may be seen first: the
 * refusal is the reason all the same. */
static void control_refine_reason(struct rpma_rt_conn *conn,
				  const struct rpma_cm_event *event)
{
	struct rt_reason why;

	if (conn->ctl.handshake == RT_HANDSHAKE_ESTABLISHED ||
	    conn->ctl.reason != RPMA_RT_REASON_ERROR)
		return;
	why = rt_reason_of_event(event);
	if (why.reason != RPMA_RT_REASON_REJECTED &&
	    why.reason != RPMA_RT_REASON_UNREACHABLE &&
	    why.reason != RPMA_RT_REASON_DEVICE)
		return;
	conn->ctl.reason = (uint8_t)why.reason;
	rt_conn_set_state(conn, conn->ctl.state);
	conn->ctl.cm_status = why.detail;
	if (event->type == RDMA_CM_EVENT_REJECTED)
		rt_conn_keep_private_data(conn, event);
}

/* Notes that the peer has left; the connection dies in a later message.
 * Thousands of peers may leave at once, and ending their connections takes
 * longer than reading the events: connections that begin do not wait for these
 * ends. */
static void control_leave(struct rpma_rt_conn *conn,
			  const struct rpma_cm_event *event)
{
	struct rt_reason why;

	if (conn->ctl.has_left)
		return;
	why = rt_reason_of_event(event);
	conn->ctl.has_left = true;
	conn->ctl.reason = (uint8_t)why.reason;
	conn->ctl.cm_status = why.detail;
	rt_conn_tell_control(conn, RT_CTL_LEFT);
}

/* Ends the wait of a dying connection for the end of its handshake. A peer that
 * has taken the answer is disconnected now. */
static void control_end_handshake(struct rpma_rt_conn *conn,
				  const struct rpma_cm_event *event)
{
	if (conn->ctl.state != RT_CONN_DRAINING ||
	    !(conn->ctl.markers_due & RT_MARK_HANDSHAKE))
		return;
	if (event->type == RDMA_CM_EVENT_ESTABLISHED)
		rpma_conn_disconnect(conn->conn);
	rt_conn_tell_poller(conn, RT_POLL_HANDSHAKE);
}

void rt_conn_cm_event_control(struct rpma_rt_conn *conn,
			      const struct rpma_cm_event *event)
{
	const struct rpma_cm_event bare = rt_conn_bare_event(event);
	enum rpma_conn_event conn_event = RPMA_CONN_UNDEFINED;
	int ret = 0;

	if (!rt_hear_concerns(conn, event->type))
		return;
	if (conn->ctl.state >= RT_CONN_DRAINING) {
		control_refine_reason(conn, event);
		control_end_handshake(conn, event);
		return;
	}
	if (conn->ctl.state == RT_CONN_RESOLVING) {
		control_resolve_further(conn, event);
		return;
	}
	/* without conn->conn the peer gave up before this end answered */
	if (conn->conn != NULL)
		ret = rpma_conn_handle_event(conn->conn, &bare, &conn_event);
	if (ret == 0 && conn_event == RPMA_CONN_ESTABLISHED) {
		control_established(conn, event);
		return;
	}
	if (ret == RPMA_E_UNKNOWN)
		return; /* an event without a meaning for a connection */
	if (event->type == RDMA_CM_EVENT_REJECTED)
		rt_conn_keep_private_data(conn, event);
	conn->ctl.is_told = true;
	if (conn->ctl.state == RT_CONN_ESTABLISHED)
		control_leave(conn, event);
	else
		control_die(conn, rt_reason_of_event(event));
}

static void control_cm_event(struct rt_cm_target *target,
			     const struct rpma_cm_event *event)
{
	rt_conn_cm_event_control(RT_FROM(struct rpma_rt_conn, target, target),
				 event);
}

static void control_cm_unref(struct rt_cm_target *target)
{
	rt_conn_unref(RT_FROM(struct rpma_rt_conn, target, target));
}

const struct rt_cm_ops rt_conn_cm_ops = {.event = control_cm_event,
					 .unref = control_cm_unref};

/* -------------------------------------------------------- the destroyer --- */

/*
 * The destroyer thread of the device destroys a connection's queue pair and CM
 * id, because destroying may take as long as the device likes. The answer is a
 * bit for the control thread. From a message to its answer conn->conn and
 * conn->setup->req belong to the destroyer: a dying connection handles CM
 * events without them.
 */

/* Destroys the queue pair. On the destroyer, or on the control thread if the id
 * could not be silenced. */
static void control_destroy_qp(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, ctl.destroy_msg, msg);

	(void)owner;
	if (conn->conn != NULL)
		rpma_conn_destroy_qp(conn->conn, conn);
	else
		rpma_conn_req_destroy_qp(conn->setup->req, conn);
	rt_conn_tell_control(conn, RT_CTL_DESTROYED);
}

static int control_delete_id(struct rpma_rt_conn *conn)
{
	struct rt_conn_setup *setup = conn->setup;
	struct rpma_conn_private_data pdata;

	if (conn->conn != NULL) {
		rpma_conn_release(conn->conn, conn);
		return rpma_conn_delete(&conn->conn);
	}
	if (setup->req == NULL)
		return 0;
	if (setup->is_claimed) /* not before the request has a queue pair */
		rpma_conn_req_release(setup->req, conn);
	if (conn->ctl.handshake != RT_HANDSHAKE_REJECTED ||
	    setup->pdata_out_len == 0)
		return rpma_conn_req_delete(&setup->req);
	pdata.ptr = setup->pdata_out;
	pdata.len = setup->pdata_out_len;
	return rpma_conn_req_reject(&setup->req, &pdata);
}

/* Destroys the CM id, on the destroyer. */
static void control_destroy_id(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, ctl.destroy_msg, msg);

	(void)owner;
	conn->ctl.id_stays = control_delete_id(conn) != 0;
	rt_conn_tell_control(conn, RT_CTL_DELETED);
}

static void control_ask_destroyer(struct rpma_rt_conn *conn,
				  void (*fn)(struct rt_msg *msg, void *owner))
{
	conn->ctl.destroy_msg.fn = fn;
	rt_inbox_push_mt(&conn->device->destroyer.inbox,
			 &conn->ctl.destroy_msg);
}

static int control_silence(const struct rpma_rt_conn *conn)
{
	struct rdma_cm_id *id;
	int ret;

	ret = conn->conn != NULL
		      ? rpma_conn_get_cm_id(conn->conn, &id)
		      : rpma_conn_req_get_cm_id(conn->setup->req, &id);
	return ret ? ret : rt_cm_silence_control(conn->device->cm, id);
}

/* Has the queue pair destroyed; RT_CTL_DESTROYED answers. */
static void rt_destroy_qp_control(struct rpma_rt_conn *conn)
{
	/* during a handshake librdmacm moves the queue pair of an id while
	 * reading an event of the id, on this thread. So the id leaves the
	 * channel first; if the id cannot leave, this thread destroys the queue
	 * pair, because this thread reads no event meanwhile */
	if (conn->ctl.handshake != RT_HANDSHAKE_ESTABLISHED &&
	    control_silence(conn))
		control_destroy_qp(&conn->ctl.destroy_msg, NULL);
	else
		control_ask_destroyer(conn, control_destroy_qp);
}

/* Has the CM id and the rest destroyed; RT_CTL_DELETED answers. */
static void rt_destroy_id_control(struct rpma_rt_conn *conn)
{
	control_ask_destroyer(conn, control_destroy_id);
}

/* --------------------------------------------------- the order of death --- */

static void control_post_rq_marker(struct rpma_rt_conn *conn)
{
	struct ibv_recv_wr wr = {
		.wr_id = rt_wr_id_internal(RT_RQ_MARKER, conn->slot)};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(conn->qp, &wr, &bad) == 0)
		conn->ctl.markers_due |= 1u << RPMA_RT_RECV_SIDE;
}

/* Posts the SQ marker behind everything that was posted. opcode: an operation
 * that the queue pair can do in its state and that the peer does not notice.
 * Returns 0 or an errno. */
static int control_post_sq_marker(struct rpma_rt_conn *conn,
				  enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {
		.wr_id = rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err = ibv_post_send(conn->qp, &wr, &bad);

	if (err)
		return rt_failure_answer(err);
	conn->ctl.markers_due |= 1u << RPMA_RT_SEND_SIDE;
	return 0;
}

/* Makes all outstanding work requests come back, with a marker behind them in
 * each queue. */
static void control_flush_qp(struct rpma_rt_conn *conn)
{
	int ret;

	if (conn->ctl.qp_state != RT_QP_ALIVE)
		return;
	/* receives in an SRQ are for other connections */
	if (rt_conn_srq(conn) == NULL)
		control_post_rq_marker(conn);
	ret = conn->conn ? rpma_conn_qp_to_err(conn->conn, conn)
			 : rpma_conn_req_qp_to_err(conn->setup->req, conn);
	/* nothing is flushed: the queue pair is destroyed, then completions are
	 * synthesized */
	if (ret) {
		conn->ctl.markers_due = 0;
		return;
	}
	if (rt_conn_srq(conn) != NULL)
		conn->ctl.markers_due |= RT_MARK_LAST_WQE;
	/* the drain's marker is the last work request in its queue */
	if (conn->ctl.has_marker)
		conn->ctl.markers_due |= 1u << RPMA_RT_SEND_SIDE;
	else
		control_post_sq_marker(conn, IBV_WR_SEND);
}

/* Returns whether a dying connection waits for the end of its handshake: the
 * connection was accepted, and the peer's word is on its way. Before that word
 * the kernel has a refusal only, which is sent once, as the CM id is destroyed;
 * and the peer's kernel drops a refusal that is handled before the answer. Such
 * a peer would stay connected to nothing. */
static bool control_awaits_handshake(const struct rpma_rt_conn *conn)
{
	return conn->passive && conn->ctl.state == RT_CONN_CONNECTING &&
	       conn->conn != NULL && !conn->ctl.is_told &&
	       rt_cm_error(conn->device->cm) == 0;
}

static void control_die(struct rpma_rt_conn *conn, struct rt_reason why)
{
	bool awaits = control_awaits_handshake(conn);

	if (conn->ctl.state >= RT_CONN_DRAINING)
		return;
	conn->ctl.reason = (uint8_t)why.reason;
	rt_conn_set_state(conn, RT_CONN_DRAINING);
	conn->ctl.cm_status = why.detail;
	rt_conn_set_closing(conn);
	rt_gate_close(&conn->gate[RPMA_RT_SEND_SIDE]);
	rt_gate_close(&conn->gate[RPMA_RT_RECV_SIDE]);
	control_flush_qp(conn);
	if (awaits)
		conn->ctl.markers_due |= RT_MARK_HANDSHAKE;
	if (why.reason == RPMA_RT_REASON_DEVICE)
		conn->ctl.markers_due = 0; /* the markers may never come */
	if (conn->conn != NULL)
		rpma_conn_disconnect(conn->conn);
	rt_reason_log_death(conn, &why);
	rt_resolve_end_control(conn);
	rt_conn_tell_poller(conn, RT_POLL_HANDOVER);
}

void rt_conn_die_control(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
			 uint32_t cm_status)
{
	control_die(conn,
		    (struct rt_reason){.reason = reason, .detail = cm_status});
}

/* Begins a drain: no post gets in any more; the line is posted first, and the
 * poller reports when the line is empty. */
static void control_drain(struct rpma_rt_conn *conn)
{
	int i;

	if (conn->ctl.is_draining)
		return;
	if (conn->ctl.state != RT_CONN_ESTABLISHED) {
		rt_conn_die_control(conn, RPMA_RT_REASON_LOCAL, 0);
		return;
	}
	rt_conn_set_closing(conn);
	for (i = 0; i < 2; i++)
		rt_turn_drain(&conn->gate[i].turn);
	conn->ctl.is_draining = true;
	rt_conn_tell_poller(conn, RT_POLL_DRAIN);
	rt_look_send(conn);
}

/* Posts the drain's marker. The marker completes when everything that was
 * posted has completed; then the connection is closed. The marker is a write of
 * no bytes, which the peer's program does not notice. */
static void control_end_drain(struct rpma_rt_conn *conn)
{
	int err;

	/* the poller may report before the drain begins, and reports again
	 * later */
	if (conn->ctl.state != RT_CONN_ESTABLISHED || !conn->ctl.is_draining ||
	    conn->ctl.has_marker)
		return;
	rt_gate_close(&conn->gate[RPMA_RT_SEND_SIDE]);
	rt_gate_close(&conn->gate[RPMA_RT_RECV_SIDE]);
	err = control_post_sq_marker(conn, IBV_WR_RDMA_WRITE);
	if (err)
		control_die(conn, rt_reason_of_step(RT_STEP_POST, err));
	else
		conn->ctl.has_marker = true;
}

static void control_end_qp(struct rpma_rt_conn *conn)
{
	rt_conn_set_state(conn, RT_CONN_SWEEPING);
	if (conn->ctl.qp_state != RT_QP_ALIVE) {
		rt_conn_tell_poller(conn, RT_POLL_GONE);
		return;
	}
	/* from here on number and address may belong to another queue pair */
	rt_async_disown(&conn->ctl.async);
	conn->ctl.qp_state = RT_QP_DESTROYED;
	rt_destroy_qp_control(conn);
}

/* Returns whether threads have slots that are not published: such threads may
 * be inside librpma, with librpma's connection. */
static bool control_is_pinned(const struct rpma_rt_conn *conn)
{
	/* pairs with the fence in rt_post_look_again(): either that thread sees
	 * the closed side, or this look sees the slots [LINE-1] */
	rt_fence_dekker();
	return rt_freelist_used(&conn->gate[0].turn.free) > 0 ||
	       rt_freelist_used(&conn->gate[1].turn.free) > 0;
}

static void control_end_id(struct rpma_rt_conn *conn)
{
	conn->ctl.is_pinned = control_is_pinned(conn);
	if (conn->ctl.is_pinned)
		/* the thread that gives slots back sends RT_CTL_UNPINNED */
		return;
	rt_conn_set_state(conn, RT_CONN_DELETING);
	rt_destroy_id_control(conn);
}

/* Sends the last step to the poller. The id is destroyed, and this thread reads
 * and handles the id's events: so there are no further events. */
static void control_end_last(struct rpma_rt_conn *conn)
{
	if (conn->ctl.id_stays)
		rt_cm_keep_control(conn->device->cm, &conn->target);
	rt_conn_tell_poller(conn, RT_POLL_LAST);
}

static void control_done(struct rpma_rt_conn *conn)
{
	struct rpma_rt *rt = conn->rt;

	if (!rt_change_close_control(conn))
		return;
	rt_conn_unreserve(conn);
	rt_conn_unref(conn);
	rt_context_unref(rt);
}

/* Handles the loss of CM events: an established connection goes on, and does
 * not notice when the peer leaves. If descriptors were lost, completions do not
 * arrive either, and the connection dies. */
static void control_go_deaf(struct rpma_rt_conn *conn)
{
	if (conn->ctl.state < RT_CONN_ESTABLISHED || rt_fds_error(conn->rt))
		control_die(conn,
			    rt_reason_of_step(RT_STEP_EVENTS,
					      rt_cm_error(conn->device->cm)));
}

static void control_run_bits(struct rpma_rt_conn *conn, uint32_t bits)
{
	if (bits & RT_CTL_REJECT && conn->ctl.state == RT_CONN_READY)
		conn->ctl.handshake = RT_HANDSHAKE_REJECTED;
	if (bits & (RT_CTL_REJECT | RT_CTL_CLOSE))
		rt_conn_die_control(conn, RPMA_RT_REASON_LOCAL, 0);
	if (bits & RT_CTL_DEAF)
		control_go_deaf(conn);
	if (bits & RT_CTL_DEVICE)
		rt_conn_die_control(conn, RPMA_RT_REASON_DEVICE, 0);
	if (bits & RT_CTL_STOP)
		rt_conn_die_control(conn, RPMA_RT_REASON_STOPPED, 0);
	/* connects only if the connection was not closed meanwhile */
	if (bits & RT_CTL_CONNECT)
		control_connect_now(conn);
	if (bits & RT_CTL_HEARD)
		rt_hear_control(conn);
	if (bits & RT_CTL_LEFT)
		rt_conn_die_control(conn, conn->ctl.reason,
				    conn->ctl.cm_status);
	if (bits & (RT_CTL_BROKEN | RT_CTL_FATAL))
		rt_conn_die_control(conn, RPMA_RT_REASON_ERROR, 0);
	if (bits & RT_CTL_REFUSED) /* logged where the post was refused */
		rt_conn_die_control(conn, RPMA_RT_REASON_FAILED,
				    (uint32_t)-rt_reason_refusal(conn));
	if (bits & RT_CTL_EMPTY)
		rt_conn_die_control(conn, RPMA_RT_REASON_LOCAL, 0);
	if (bits & RT_CTL_DRAIN)
		control_drain(conn);
	if (bits & RT_CTL_DRAINED)
		control_end_qp(conn);
	if (bits & RT_CTL_DESTROYED)
		rt_conn_tell_poller(conn, RT_POLL_GONE);
	if (bits & RT_CTL_THROUGH)
		control_end_drain(conn);
	if (bits & RT_CTL_SWEPT ||
	    (bits & RT_CTL_UNPINNED && conn->ctl.is_pinned))
		control_end_id(conn);
	if (bits & RT_CTL_DELETED)
		control_end_last(conn);
	if (bits & RT_CTL_DONE)
		control_done(conn);
}

/* Lets the connection's pool go, as the last step: a thread that may delete the
 * pool then finds that the poller was asked to give back the unread messages.
 * NULL: does nothing. */
static void control_let_pool_go(struct rpma_rt *rt, struct rpma_rt_pool *pool)
{
	if (pool == NULL)
		return;
	pthread_mutex_lock(&rt->lock);
	rt_pool_unref_announced(pool);
	pthread_mutex_unlock(&rt->lock);
}

void rt_conn_control_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, ctl_msg, msg);
	struct rpma_rt_pool *pool = NULL;
	struct rpma_rt *rt = conn->rt;
	bool was_done = conn->is_done;
	uint32_t bits;

	(void)owner;
	/* acquire: pairs with the releases of the threads that set bits. The
	 * message is free: the next bit sends the message again */
	bits = atomic_exchange_explicit(&conn->ctl_bits, 0,
					memory_order_acquire);
	control_run_bits(conn, bits);
	if (conn->is_done && !was_done)
		pool = rt_fill_pool(conn);
	rt_conn_unref(conn);
	control_let_pool_go(rt, pool);
}
