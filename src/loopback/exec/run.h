/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.h -- has send queues executed.
 */

#ifndef LB_EXEC_RUN_H
#define LB_EXEC_RUN_H

#include "qp/kick.h"

struct lb_qp;

void lb_run_submit(struct lb_run *run, struct lb_qp *qp); /* sq.lock */
void lb_run_again(struct lb_qp *qp);			  /* no lock held */
void lb_run_begin(struct lb_run *run);
void lb_run_end(struct lb_run *run);

#endif /* LB_EXEC_RUN_H */
