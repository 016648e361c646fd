/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Waiting for completions of a connection whose CQ and RCQ share one channel.
 * While a thread waits, neither CQ can be claimed.
 */

#include "conn.h"

#include "cancel.h"
#include "cq.h"
#include "err.h"
#include "log.h"

static bool is_taken(const struct rpma_conn *conn)
{
	return rpma__claim_is_held(&conn->claim) ||
	       rpma__cq_is_taken(conn->cq) ||
	       (conn->rcq && rpma__cq_is_taken(conn->rcq));
}

/* May the caller read the channel of this connection? */
static int check_channel(const struct rpma_conn *conn)
{
	if (is_taken(conn))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the CQ or the events are on a channel that "
				   "others share, or claimed: wait there");
	if (conn->channel)
		return 0;
	return RPMA_REFUSE(
		RPMA_E_NOT_SHARED_CHNL,
		"the connection has no shared completion channel: "
		"rpma_cq_wait() and rpma_cq_get_fd() are for its CQs");
}

static bool enter(struct rpma_conn *conn)
{
	if (rpma__claim_is_held(&conn->claim) ||
	    !rpma__claim_enter(&conn->cq->claim))
		return false;
	if (conn->rcq == NULL || rpma__claim_enter(&conn->rcq->claim))
		return true;
	rpma__claim_leave(&conn->cq->claim);
	return false;
}

static void leave(struct rpma_conn *conn)
{
	if (conn->rcq)
		rpma__claim_leave(&conn->rcq->claim);
	rpma__claim_leave(&conn->cq->claim);
}

/* The thread was cancelled while it waited. */
static void cancelled(void *arg)
{
	leave(arg);
}

static struct rpma_cq *find_cq(const struct rpma_conn *conn,
			       const struct ibv_cq *ibv_cq)
{
	if (conn->cq->cq == ibv_cq)
		return conn->cq;
	if (conn->rcq && conn->rcq->cq == ibv_cq)
		return conn->rcq;
	return NULL;
}

/* One event, still to be acknowledged; E_UNKNOWN: of none of its CQs. */
static int take_event(struct rpma_conn *conn, struct rpma_cq **cq_ptr)
{
	struct ibv_cq *ibv_cq;
	struct rpma_cq *cq;
	int ret;

	ret = rpma__cq_get_event(conn->channel, &ibv_cq, cancelled, conn);
	if (ret)
		return ret;
	cq = find_cq(conn, ibv_cq);
	if (cq == NULL) {
		/* unacknowledged, its CQ could never be destroyed */
		ibv_ack_cq_events(ibv_cq, 1);
		RPMA_LOG_ERROR("ibv_get_cq_event() gave an event of a CQ that "
			       "is not the connection's");
		return RPMA_E_UNKNOWN;
	}
	*cq_ptr = cq;
	return 0;
}

static int acknowledge_and_arm(struct rpma_cq *cq)
{
	ibv_ack_cq_events(cq->cq, 1);
	return rpma__cq_arm(cq->cq, false);
}

static int leave_to_caller(struct rpma_cq *cq)
{
	rpma__cq_event_given(cq);
	return 0;
}

/* then: what becomes of the event */
static int wait(struct rpma_conn *conn, struct rpma_cq **cq_ptr, bool *is_rcq,
		int (*then)(struct rpma_cq *cq))
{
	struct rpma_cq *cq;
	int ret;

	if (cq_ptr == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", cq_ptr,
					conn);
	if (conn->channel == NULL)
		return check_channel(conn);
	if (!enter(conn))
		return RPMA_REFUSE(RPMA_E_SHARED_CHANNEL,
				   "the CQ or the events are on a channel that "
				   "others share, or claimed: wait there");

	ret = take_event(conn, &cq);
	if (ret == 0) {
		RPMA_NOT_CANCELLED;

		/* before arming, which may fail: the completions are there */
		*cq_ptr = cq;
		if (is_rcq)
			*is_rcq = cq == conn->rcq;
		ret = then(cq);
	}
	leave(conn);
	return ret;
}

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd)
{
	int ret;

	if (fd == NULL || !rpma__conn_is_valid(conn))
		return RPMA_REFUSE_NULL(rpma__conn_refusal(conn), "", fd, conn);
	ret = check_channel(conn);
	if (ret)
		return ret;

	*fd = conn->channel->fd;
	return 0;
}

int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq,
		   bool *is_rcq)
{
	(void)flags;
	return wait(conn, cq, is_rcq, acknowledge_and_arm);
}

int rpma_conn_wait_event(struct rpma_conn *conn, struct rpma_cq **cq,
			 bool *is_rcq)
{
	return wait(conn, cq, is_rcq, leave_to_caller);
}
