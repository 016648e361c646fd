/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * uc.c -- executes a message of an unreliable connection: as one of a reliable
 * connection, but nobody answers. What the peer does not take is dropped, and
 * its sender has success all the same. Run with the sender's sq.lock held.
 */

#include "exec/uc.h"

#include "base/lock.h"
#include "exec/respond.h"
#include "exec/work.h"
#include "qp/number.h"

int lb_uc_execute(struct lb_work *w)
{
	int ret;

	w->peer = lb_qp_at(w->qp->peer_qpn);
	if (!w->peer)
		return LB_EXEC_OK;
	lb_lock_get(&w->peer->rq.pop);
	ret = lb_respond(w);
	lb_lock_put(&w->peer->rq.pop);
	return ret == LB_EXEC_AGAIN ? ret : LB_EXEC_OK;
}
