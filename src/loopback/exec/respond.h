/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * respond.h -- the peer's half of a request; its rq.pop held.
 */

#ifndef LB_EXEC_RESPOND_H
#define LB_EXEC_RESPOND_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "exec/work.h"

/* What the peer makes of it. */
int lb_respond(struct lb_work *w);
/*
 * The two halves of that, if it is known that the peer answers: the request is
 * begun, LB_EXEC_OK or LB_EXEC_RNR; and as much is done as the budget allows.
 */
int lb_respond_begin(struct lb_work *w);
int lb_respond_some(struct lb_work *w);
/*
 * Checks a READ: returns 0 or the status; remote is the memory to read, until
 * lb_mr_done() of w->window.
 */
int lb_respond_reads(struct lb_work *w, struct lb_span remote[2]);
/* Returns true if the request takes a receive. */
bool lb_respond_takes(const struct lb_wqe *wqe);
/*
 * Take the receive of a request: false if there is no receive; and end the
 * receive, with success or not.
 */
bool lb_respond_take(struct lb_work *w);
int lb_respond_complete(struct lb_work *w);
void lb_respond_fail(struct lb_work *w, enum ibv_wc_status status);

#endif /* LB_EXEC_RESPOND_H */
