/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * number.h -- the numbers of queue pairs.
 */

#ifndef LB_QP_NUMBER_H
#define LB_QP_NUMBER_H

#include <stdint.h>

#include "base/process.h"

struct lb_qp;

/* Given and taken under lb.big. */
/* The number of the process, which is drawn now at the latest. lb.big. */
unsigned lb_qp_number_own(void);
uint32_t lb_qp_number_new(struct lb_qp *qp);
void lb_qp_number_drop(uint32_t qpn);
/* The slot that number qpn is of, NULL if this process has no such QP. */
struct lb_qp *lb_qp_at(uint32_t qpn);
/* The process that number qpn is of, 0 if it is this one or none. */
unsigned lb_qp_number_process(uint32_t qpn);
/* A child has none of its parent's. */
void lb_qp_number_fork(enum lb_fork_step step);

#endif /* LB_QP_NUMBER_H */
