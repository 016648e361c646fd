/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exec.h -- executes send queues: the requester; and the common parts with
 * remote.c, the requester of a peer in another process. sq.lock held.
 */

#ifndef LB_EXEC_EXEC_H
#define LB_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/work.h"
#include "qp/kick.h"
#include "qp/qp.h"

/* a budget counts bytes; a request without any costs this much */
#define LB_EXEC_COST 64

enum lb_step {
	LB_DONE,  /* nothing left to execute */
	LB_AGAIN, /* call again: the budget is used up */
	LB_WAIT,  /* a timer or the peer will call again */
};
enum lb_step lb_exec_run(struct lb_run *run, struct lb_qp *qp, uint64_t budget);

/*
 * lb_exec_begin() begins the head of the queue: counts, and fault rules;
 * lb_exec_reset() forgets the head.
 */
void lb_exec_reset(struct lb_qp *qp);
int lb_exec_begin(struct lb_work *w);
/*
 * Fills w->local, except for a reading request; returns 0 or the status of a
 * request that must not be sent.
 */
int lb_exec_check(struct lb_work *w);
/* The peer had no receive: try again later, or give up. */
int lb_exec_rnr(struct lb_work *w, uint32_t timer);
/* Waits after a missing answer, as long as an answer could take. */
int lb_exec_silence(struct lb_work *w);
/*
 * Returns true if there is a try left after a wait in silence. A timeout of 0
 * is for ever.
 */
bool lb_exec_may_retry(struct lb_qp *qp);
/* Ends the head with a status; 0 is success. */
void lb_exec_finish(struct lb_work *w, int status);

#endif /* LB_EXEC_EXEC_H */
