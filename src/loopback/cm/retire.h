/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * retire.h -- the end of identifiers and of channels.
 */

#ifndef LB_CM_RETIRE_H
#define LB_CM_RETIRE_H

#include "cm/cm.h"

/* [lock] no message, event or timer reaches it from now on */
void lb_cm_id_retire(struct lb_cm_id *id);
void lb_cm_channel_delete(struct lb_cm_channel *ch); /* NULL is fine */

#endif /* LB_CM_RETIRE_H */
