/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * respond.h -- the peer's half of a request; both locks held.
 */

#ifndef LB_EXEC_RESPOND_H
#define LB_EXEC_RESPOND_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "exec/work.h"

/* What the peer makes of it. */
int lb_respond(struct lb_work *w);
/* Of these, the receive: false if there is none; its end, one way or other. */
bool lb_respond_take(struct lb_work *w);
int lb_respond_complete(struct lb_work *w);
void lb_respond_fail(struct lb_work *w, enum ibv_wc_status status);

#endif /* LB_EXEC_RESPOND_H */
