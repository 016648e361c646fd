/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Waiting for completions of a connection whose CQ and RCQ share a channel.
 * While a thread waits, neither CQ can be claimed.
 */

#include "conn.h"

#include "cancel.h"
#include "cq.h"
#include "err.h"
#include "log.h"

static bool conn_wait_is_taken(const struct rpma_conn *conn)
{
	return rpma__claim_is_held(&conn->claim) ||
	       rpma__cq_is_taken(conn->cq) ||
	       (conn->rcq && rpma__cq_is_taken(conn->rcq));
}

/* Returns 0 if the caller may read the channel of the connection. */
static int conn_wait_check_channel(const struct rpma_conn *conn)
{
	if (conn_wait_is_taken(conn))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the connection or a CQ is claimed, or a CQ "
				   "is on a channel object: release the claim "
				   "first, or wait on the channel object");
	if (conn->channel)
		return 0;
	return RPMA_REFUSE(
		RPMA_E_NOT_SHARED_CHNL,
		"the connection has no shared completion channel: "
		"use rpma_cq_wait() and rpma_cq_get_fd() with each CQ");
}

static bool conn_wait_enter(struct rpma_conn *conn)
{
	if (rpma__claim_is_held(&conn->claim) ||
	    !rpma__claim_enter(&conn->cq->claim))
		return false;
	if (conn->rcq == NULL || rpma__claim_enter(&conn->rcq->claim))
		return true;
	rpma__claim_leave(&conn->cq->claim);
	return false;
}

static void conn_wait_leave(struct rpma_conn *conn)
{
	if (conn->rcq)
		rpma__claim_leave(&conn->rcq->claim);
	rpma__claim_leave(&conn->cq->claim);
}

/* Runs when the thread was cancelled while waiting. */
static void conn_wait_cancelled(void *arg)
{
	conn_wait_leave(arg);
}

static struct rpma_cq *conn_wait_find_cq(const struct rpma_conn *conn,
					 const struct ibv_cq *ibv_cq)
{
	if (conn->cq->cq == ibv_cq)
		return conn->cq;
	if (conn->rcq && conn->rcq->cq == ibv_cq)
		return conn->rcq;
	return NULL;
}

/*
 * Takes an event, still to be acknowledged; E_UNKNOWN: the event belongs to no
 * CQ of the connection.
 */
static int conn_wait_take_event(struct rpma_conn *conn, struct rpma_cq **cq_ptr)
{
	struct ibv_cq *ibv_cq;
	struct rpma_cq *cq;
	int ret;

	ret = rpma__cq_get_event(conn->channel, &ibv_cq, conn_wait_cancelled,
				 conn);
	if (ret)
		return ret;
	cq = conn_wait_find_cq(conn, ibv_cq);
	if (cq == NULL) {
		/* if the event stays unacknowledged, its CQ can never be
		 * destroyed */
		ibv_ack_cq_events(ibv_cq, 1);
		RPMA_LOG_ERROR("ibv_get_cq_event() returned an event of a "
			       "CQ of another connection");
		return RPMA_E_UNKNOWN;
	}
	*cq_ptr = cq;
	return 0;
}

static int conn_wait_ack_and_arm(struct rpma_cq *cq)
{
	ibv_ack_cq_events(cq->cq, 1);
	return rpma__cq_arm(cq->cq, false);
}

static int conn_wait_leave_to_caller(struct rpma_cq *cq)
{
	rpma__cq_event_given(cq);
	return 0;
}

/* Waits for an event; then() acknowledges or counts the event. */
static int conn_wait_event(struct rpma_conn *conn, struct rpma_cq **cq_ptr,
			   bool *is_rcq, int (*then)(struct rpma_cq *cq))
{
	struct rpma_cq *cq;
	int ret;

	if (cq_ptr == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", cq_ptr,
					conn);
	if (conn->channel == NULL)
		return conn_wait_check_channel(conn);
	if (!conn_wait_enter(conn))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the connection or a CQ is claimed, or a CQ "
				   "is on a channel object: release the claim "
				   "first, or wait on the channel object");

	ret = conn_wait_take_event(conn, &cq);
	if (ret == 0) {
		RPMA_NOT_CANCELLED;

		/* before arming, which may fail: completions are ready in any
		 * case */
		*cq_ptr = cq;
		if (is_rcq)
			*is_rcq = cq == conn->rcq;
		ret = then(cq);
	}
	conn_wait_leave(conn);
	return ret;
}

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd)
{
	int ret;

	if (fd == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", fd, conn);
	ret = conn_wait_check_channel(conn);
	if (ret)
		return ret;

	*fd = conn->channel->fd;
	return 0;
}

int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq,
		   bool *is_rcq)
{
	(void)flags;
	return conn_wait_event(conn, cq, is_rcq, conn_wait_ack_and_arm);
}

int rpma_conn_wait_event(struct rpma_conn *conn, struct rpma_cq **cq,
			 bool *is_rcq)
{
	return conn_wait_event(conn, cq, is_rcq, conn_wait_leave_to_caller);
}
