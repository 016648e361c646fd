/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reach.h -- a request finds the process of its port. All [lock].
 */

#ifndef LB_CM_REACH_H
#define LB_CM_REACH_H

#include <stdbool.h>

#include "cm/cm.h"

/*
 * Later, by the link thread: the process was found, and id->via is the way to
 * it, or NULL if there is none.
 */
typedef void lb_cm_reach_fn(struct lb_cm_id *id, struct lb_cm_msg *req);

/* Returns true if the port of a request may belong to another process. */
bool lb_cm_reach_is_far(const struct lb_cm_msg *req);
/* false: no process listens at the port. */
bool lb_cm_reach_start(struct lb_cm_id *id, const struct lb_cm_msg *req,
		       lb_cm_reach_fn *fn);
/* It is not wanted any more; harmless if none is under way. */
void lb_cm_reach_stop(struct lb_cm_id *id);

#endif /* LB_CM_REACH_H */
