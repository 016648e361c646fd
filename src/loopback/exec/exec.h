/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exec.h -- executes send queues: the requester; and of that what remote.c,
 * the requester of a peer in another process, has in common with it. sq.lock
 * held.
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

/* The head of the queue is begun: its counts, and what rules say of it. */
void lb_exec_reset(struct lb_qp *qp);
int lb_exec_begin(struct lb_work *w);
/*
 * Fill w->local, but of a request that reads; 0 or the status of one that must
 * not be sent.
 */
int lb_exec_check(struct lb_work *w);
/* The peer had no receive: try again later, or give up. */
int lb_exec_rnr(struct lb_work *w, uint32_t timer);
/* The peer did not answer: wait for as long as its answer could take. */
int lb_exec_silence(struct lb_work *w);
/* Is there a try left after a wait in silence? A timeout of 0 is for ever. */
bool lb_exec_may_retry(struct lb_qp *qp);
/* The head is at its end, with a status, which is 0 if it has success. */
void lb_exec_finish(struct lb_work *w, int status);

#endif /* LB_EXEC_EXEC_H */
