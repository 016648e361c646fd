/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.c -- the handshake of two identifiers: REQ, REP, RTU to connect,
 * REJ to refuse, DREQ and DREP to part. A message changes the state of the
 * one identifier it is for, and makes its events. Everything is under the lock.
 */

#include "cm/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/reach.h"
#include "cm/timer.h"
#include "cm/wire.h"
#include "wire/link.h"

static void timeout(struct lb_cm_id *id);

/* ---- ends of a connection ----------------------------------------------- */

/* Ends the connection; the caller reports it to the application. */
static void go_idle(struct lb_cm_id *id)
{
	lb_cm_timer_stop(id);
	lb_cm_reach_stop(id);
	id->link = LB_CM_LINK_IDLE;
	id->peer = 0;
}

static void go_timewait(struct lb_cm_id *id)
{
	id->link = LB_CM_LINK_TIMEWAIT;
	lb_cm_timer_start(id, LB_CM_TIMER_TIMEWAIT, timeout);
}

/* DISCONNECTED comes once, whatever follows. */
static void tell_disconnected(struct lb_cm_id *id, int status)
{
	if (id->state != LB_CM_CONNECT)
		return;
	id->state = LB_CM_DISCONNECT;
	lb_cm_event_new(id, RDMA_CM_EVENT_DISCONNECTED, status, NULL, 0);
}

static void tell_unreachable(struct lb_cm_id *id)
{
	lb_cm_wire_reject(id, LB_CM_REJ_TIMEOUT);
	go_idle(id);
	lb_cm_event_new(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
}

static void dreq_unanswered(struct lb_cm_id *id)
{
	tell_disconnected(id, -ETIMEDOUT);
	go_timewait(id);
}

static void timeout(struct lb_cm_id *id)
{
	switch (id->timer) {
	case LB_CM_TIMER_ANSWER:
		tell_unreachable(id);
		break;
	case LB_CM_TIMER_DREQ:
		dreq_unanswered(id);
		break;
	default:
		go_idle(id);
		lb_cm_event_new(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL, 0);
		break;
	}
}

/* ---- messages arrive ----------------------------------------------------- */

static void receive_mra(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	if (id->link == LB_CM_LINK_REQ_SENT)
		id->peer = msg->from;
}

/*
 * Receives the answer to a datagram request: everything is known, and no
 * connection is kept.
 */
static void receive_ud_rep(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	struct lb_cm_event *event;

	if (id->link != LB_CM_LINK_REQ_SENT)
		return;
	go_idle(id);
	event = lb_cm_event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0, msg->priv,
				LB_CM_UD_REP_PRIV);
	if (event)
		lb_cm_event_set_ud(event, &msg->params.gid, msg->params.qp_num);
}

static int ud_status(int reason)
{
	switch (reason) {
	case LB_CM_REJ_TIMEOUT:
		return -ETIMEDOUT;
	case LB_CM_REJ_NO_LISTENER:
		return LB_CM_UD_NO_LISTENER;
	default:
		return LB_CM_UD_REJECTED;
	}
}

/* Logs that another living process has no listener at the port. */
static void log_nobody(const struct lb_cm_id *id, const struct lb_cm_msg *rej)
{
	if (rej->reason == LB_CM_REJ_NO_LISTENER && rej->via &&
	    lb_link_state(rej->via) == LB_LINK_UP)
		lb_cm_addr_log_nobody(&id->dst);
}

/*
 * Receives the refusal of a datagram request: a server never hears that its
 * client has gone.
 */
static void receive_ud_rej(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	if (id->link != LB_CM_LINK_REQ_SENT)
		return;
	log_nobody(id, msg);
	go_idle(id);
	lb_cm_event_new(id, RDMA_CM_EVENT_UNREACHABLE, ud_status(msg->reason),
			msg->priv, LB_CM_UD_REP_PRIV);
}

static void receive_rep(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	struct lb_cm_event *event;

	if (id->link != LB_CM_LINK_REQ_SENT) {
		if (id->peer != msg->from)
			lb_cm_wire_refuse(msg, LB_CM_REJ_COMM_ID);
		return;
	}
	lb_cm_timer_stop(id);
	id->link = LB_CM_LINK_REP_RCVD;
	id->peer = msg->from;
	id->theirs = msg->params;
	id->responder_resources = msg->params.initiator_depth;
	id->initiator_depth = msg->params.responder_resources;
	id->rnr_retry_count = msg->params.rnr_retry_count;
	event = lb_cm_event_new(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0,
				msg->priv, LB_CM_REP_PRIV);
	if (event)
		lb_cm_event_set_params(event, &msg->params);
}

int lb_cm_link_established(struct lb_cm_id *id)
{
	if (id->link == LB_CM_LINK_ESTABLISHED)
		return EISCONN;
	if (id->link != LB_CM_LINK_REP_SENT)
		return EINVAL;
	lb_cm_timer_stop(id);
	id->link = LB_CM_LINK_ESTABLISHED;
	lb_cm_event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	return 0;
}

static void tell_rejected(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	lb_cm_event_new(id, RDMA_CM_EVENT_REJECTED, msg->reason, msg->priv,
			LB_CM_REJ_PRIV);
}

static void receive_rej(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	switch (id->link) {
	case LB_CM_LINK_REQ_SENT:
		log_nobody(id, msg);
		/* fall through */
	case LB_CM_LINK_REQ_RCVD:
	case LB_CM_LINK_REP_SENT:
	case LB_CM_LINK_REP_RCVD:
		go_idle(id);
		tell_rejected(id, msg);
		break;
	case LB_CM_LINK_ESTABLISHED: /* the peer left before the RTU came */
		go_timewait(id);
		tell_rejected(id, msg);
		break;
	default:
		break;
	}
}

static void receive_dreq(struct lb_cm_id *id)
{
	switch (id->link) {
	case LB_CM_LINK_REP_SENT: /* RTU was lost */
	case LB_CM_LINK_ESTABLISHED:
	case LB_CM_LINK_DREQ_SENT: /* both at once */
		lb_cm_timer_stop(id);
		id->link = LB_CM_LINK_DREQ_RCVD;
		tell_disconnected(id, 0);
		break;
	case LB_CM_LINK_TIMEWAIT: /* DREP was lost */
		lb_cm_wire_send(id, LB_CM_MSG_DREP);
		break;
	default:
		break;
	}
}

static void receive_drep(struct lb_cm_id *id)
{
	if (id->link != LB_CM_LINK_DREQ_SENT &&
	    id->link != LB_CM_LINK_DREQ_RCVD)
		return;
	tell_disconnected(id, 0);
	go_timewait(id);
}

void lb_cm_link_receive(struct lb_cm_id *id, const struct lb_cm_msg *msg)
{
	if (lb_cm_id_is_ud(id) && msg->type == LB_CM_MSG_REP) {
		receive_ud_rep(id, msg);
		return;
	}
	if (lb_cm_id_is_ud(id) && msg->type == LB_CM_MSG_REJ) {
		receive_ud_rej(id, msg);
		return;
	}
	switch (msg->type) {
	case LB_CM_MSG_MRA:
		receive_mra(id, msg);
		break;
	case LB_CM_MSG_REP:
		receive_rep(id, msg);
		break;
	case LB_CM_MSG_RTU:
		lb_cm_link_established(id);
		break;
	case LB_CM_MSG_REJ:
		receive_rej(id, msg);
		break;
	case LB_CM_MSG_DREQ:
		receive_dreq(id);
		break;
	default:
		receive_drep(id);
		break;
	}
}

/* ---- what the application asks for -------------------------------------- */

/* Nobody is there to refuse it. */
static void refuse_unsent(struct lb_cm_id *id)
{
	const struct lb_cm_msg rej = {.type = LB_CM_MSG_REJ,
				      .reason = LB_CM_REJ_NO_LISTENER};

	lb_cm_link_receive(id, &rej);
}

static void reached(struct lb_cm_id *id, struct lb_cm_msg *req)
{
	if (!id->via || lb_link_state(id->via) == LB_LINK_DEAD)
		refuse_unsent(id);
	else if (!lb_cm_wire_post(id, req))
		tell_unreachable(id);
}

void lb_cm_link_connect(struct lb_cm_id *id, struct lb_cm_msg *req)
{
	id->link = LB_CM_LINK_REQ_SENT;
	lb_cm_timer_start(id, LB_CM_TIMER_ANSWER, timeout);
	if (!lb_cm_reach_is_far(req)) {
		if (!lb_cm_wire_post(id, req))
			tell_unreachable(id);
		return;
	}
	if (!lb_cm_reach_start(id, req, reached))
		refuse_unsent(id);
}

/* Replies to a datagram request, which ends the handshake. */
static void reply_ud(struct lb_cm_id *id, struct lb_cm_msg *rep)
{
	if (!lb_cm_wire_post(id, rep))
		lb_cm_wire_reject(id, LB_CM_REJ_TIMEOUT);
	go_idle(id);
	id->quiet = false;
}

int lb_cm_link_reply(struct lb_cm_id *id, struct lb_cm_msg *rep)
{
	if (id->link != LB_CM_LINK_REQ_RCVD)
		return EINVAL;
	if (lb_cm_id_is_ud(id)) {
		reply_ud(id, rep);
		return 0;
	}
	id->link = LB_CM_LINK_REP_SENT;
	id->quiet = false;
	lb_cm_timer_start(id, LB_CM_TIMER_ANSWER, timeout);
	if (!lb_cm_wire_post(id, rep))
		tell_unreachable(id);
	return 0;
}

int lb_cm_link_ready(struct lb_cm_id *id)
{
	if (id->link != LB_CM_LINK_REP_RCVD)
		return EINVAL;
	id->link = LB_CM_LINK_ESTABLISHED;
	lb_cm_wire_send(id, LB_CM_MSG_RTU);
	return 0;
}

int lb_cm_link_reject(struct lb_cm_id *id, int reason, const void *data,
		      uint8_t len)
{
	struct lb_cm_msg rej = {.type = LB_CM_MSG_REJ, .reason = reason};
	bool linger = id->link == LB_CM_LINK_REP_SENT;

	switch (id->link) {
	case LB_CM_LINK_REQ_SENT:
	case LB_CM_LINK_REQ_RCVD:
	case LB_CM_LINK_REP_SENT:
	case LB_CM_LINK_REP_RCVD:
		break;
	default:
		return EINVAL;
	}
	if (len)
		memcpy(rej.priv, data, len);
	rej.to = id->peer;
	go_idle(id);
	if (rej.to || id->via)
		lb_cm_wire_post(id, &rej);
	if (linger)
		go_timewait(id);
	return 0;
}

void lb_cm_link_disconnect(struct lb_cm_id *id)
{
	if (id->link == LB_CM_LINK_ESTABLISHED) {
		id->link = LB_CM_LINK_DREQ_SENT;
		lb_cm_timer_start(id, LB_CM_TIMER_DREQ, timeout);
		if (!lb_cm_wire_send(id, LB_CM_MSG_DREQ))
			dreq_unanswered(id);
	} else if (id->link == LB_CM_LINK_DREQ_RCVD) {
		lb_cm_wire_send(id, LB_CM_MSG_DREP);
		go_timewait(id);
	}
}

void lb_cm_link_break(struct lb_cm_id *id)
{
	enum lb_cm_link link = id->link;

	lb_cm_timer_stop(id);
	lb_cm_reach_stop(id);
	id->link = LB_CM_LINK_NONE;
	switch (link) {
	case LB_CM_LINK_REQ_SENT:
		lb_cm_wire_reject(id, LB_CM_REJ_TIMEOUT);
		break;
	case LB_CM_LINK_REQ_RCVD:
	case LB_CM_LINK_REP_SENT:
	case LB_CM_LINK_REP_RCVD:
		lb_cm_wire_reject(id, LB_CM_REJ_CONSUMER);
		break;
	case LB_CM_LINK_ESTABLISHED:
		lb_cm_wire_send(id, LB_CM_MSG_DREQ);
		break;
	case LB_CM_LINK_DREQ_RCVD:
		lb_cm_wire_send(id, LB_CM_MSG_DREP);
		break;
	default:
		break;
	}
	id->peer = 0;
}
