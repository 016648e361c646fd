/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * publish.h -- tells the application what was found out about its identifier.
 */

#ifndef LB_CM_PUBLISH_H
#define LB_CM_PUBLISH_H

#include "cm/cm.h"

/* Tell the application what has been found out about its identifier. */
void lb_cm_publish_addr(struct lb_cm_id *id);
void lb_cm_publish_route(struct lb_cm_id *id);

#endif /* LB_CM_PUBLISH_H */
