/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * timer.h -- waits that end by themselves.
 */

#ifndef LB_CM_TIMER_H
#define LB_CM_TIMER_H

#include "cm/cm.h"

/* [lock] Have fn called, under the lock, when the wait is over. */
void lb_cm_timer_start(struct lb_cm_id *id, enum lb_cm_timer kind,
		       void (*fn)(struct lb_cm_id *id));
void lb_cm_timer_stop(struct lb_cm_id *id); /* [lock] */
/* [lock] In a child: no job is posted. */
void lb_cm_timer_forked(void);

#endif /* LB_CM_TIMER_H */
