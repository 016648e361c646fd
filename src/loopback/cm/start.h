/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * start.h -- the connection manager starts.
 */

#ifndef LB_CM_START_H
#define LB_CM_START_H

#include "cm/cm.h"

void lb_cm_start(void); /* once, by the first identifier */

#endif /* LB_CM_START_H */
