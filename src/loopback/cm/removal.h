/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * removal.h -- a device is removed from under its identifiers.
 */

#ifndef LB_CM_REMOVAL_H
#define LB_CM_REMOVAL_H

#include "cm/cm.h"

struct lb_device;

void lb_cm_removal(struct lb_device *device);

#endif /* LB_CM_REMOVAL_H */
