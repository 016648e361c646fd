/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Waiting for completions of a connection whose CQ and RCQ share one channel.
 * While somebody waits, neither CQ can be claimed.
 */

#include "conn.h"
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
		return RPMA_E_SHARED_CHANNEL;
	return conn->channel ? 0 : RPMA_E_NOT_SHARED_CHNL;
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

static struct rpma_cq *find_cq(const struct rpma_conn *conn,
			       const struct ibv_cq *ibv_cq)
{
	if (conn->cq->cq == ibv_cq)
		return conn->cq;
	if (conn->rcq && conn->rcq->cq == ibv_cq)
		return conn->rcq;
	return NULL;
}

static int wait(struct rpma_conn *conn, struct rpma_cq **cq_ptr, bool *is_rcq)
{
	struct ibv_cq *ibv_cq;
	struct rpma_cq *cq;
	int ret;

	ret = rpma__cq_get_event(conn->channel, &ibv_cq);
	if (ret)
		return ret;

	cq = find_cq(conn, ibv_cq);
	/* whoever's it is: unacknowledged, its CQ could never be destroyed */
	ibv_ack_cq_events(ibv_cq, 1);
	if (cq == NULL) {
		RPMA_LOG_ERROR("an event of a CQ that is not the connection's");
		return RPMA_E_UNKNOWN;
	}
	/* before arming, which may fail: the completions are there anyway */
	*cq_ptr = cq;
	if (is_rcq)
		*is_rcq = cq == conn->rcq;
	return rpma__cq_arm(ibv_cq, false);
}

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd)
{
	int ret;

	if (fd == NULL || !rpma__conn_is_valid(conn))
		return rpma__conn_refusal(conn);
	ret = check_channel(conn);
	if (ret)
		return ret;

	*fd = conn->channel->fd;
	return 0;
}

int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq,
		   bool *is_rcq)
{
	int ret;

	(void)flags;
	if (cq == NULL || !rpma__conn_is_valid(conn))
		return rpma__conn_refusal(conn);
	if (conn->channel == NULL)
		return check_channel(conn);
	if (!enter(conn))
		return RPMA_E_SHARED_CHANNEL;

	ret = wait(conn, cq, is_rcq);
	leave(conn);
	return ret;
}
