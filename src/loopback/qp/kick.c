/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kick.c -- the queue pairs whose send queues a thread has to look after, once
 * it holds no lock. They are two, or more of a message to many; the rest is
 * done by the service thread.
 */

#include "qp/kick.h"

#include "base/log.h"
#include "qp/qp.h"

void lb_kick_add(struct lb_run *run, struct lb_qp *qp)
{
	if (!run->kick || run->kick == qp)
		run->kick = qp;
	else if (!run->kick2 || run->kick2 == qp)
		run->kick2 = qp;
	else if (run->later(qp, 0))
		lb_log(0, "no memory: a send queue is not flushed");
}

struct lb_qp *lb_kick_next(struct lb_run *run)
{
	struct lb_qp *qp = run->kick;

	run->kick = run->kick2;
	run->kick2 = NULL;
	return qp;
}
