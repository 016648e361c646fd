/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * flush.h -- queue pairs go to error.
 */

#ifndef LB_QP_FLUSH_H
#define LB_QP_FLUSH_H

struct lb_device;
struct lb_qp;
struct lb_run;

void lb_qp_fail(struct lb_run *run, struct lb_qp *qp); /* to ERR; sq.lock */
/* to SQE, not of RC: only its sends end; sq.lock */
void lb_qp_fail_sends(struct lb_run *run, struct lb_qp *qp);
void lb_flush_responder(struct lb_run *run, struct lb_qp *qp); /* rq.pop */
void lb_flush_sends(struct lb_run *run, struct lb_qp *qp);     /* sq.lock */
void lb_flush_receives(struct lb_run *run,
		       struct lb_qp *qp); /* rq.pop, rq.post */
/* All locks of the QP held. */
void lb_qp_set_error(struct lb_run *run, struct lb_qp *qp);
/* A QP of dev to ERR as if its device had gone; lb.big held. */
void lb_qp_break(struct lb_run *run, struct lb_qp *qp,
		 const struct lb_device *dev);

#endif /* LB_QP_FLUSH_H */
