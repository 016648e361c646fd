/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * exec.h -- executes send queues: the requester.
 */

#ifndef LB_EXEC_EXEC_H
#define LB_EXEC_EXEC_H

#include <stdint.h>

#include "qp/kick.h"
#include "qp/qp.h"

enum lb_step {
	LB_DONE,  /* nothing left to execute */
	LB_AGAIN, /* call again: the budget is used up */
	LB_WAIT,  /* a timer or the peer will call again */
};
enum lb_step lb_exec_run(struct lb_run *run, struct lb_qp *qp, uint64_t budget);

#endif /* LB_EXEC_EXEC_H */
