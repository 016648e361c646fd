/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * removal.h -- the removal of a device.
 */

#ifndef LB_VERBS_REMOVAL_H
#define LB_VERBS_REMOVAL_H

struct lb_device;

/* fn is called, in the thread that removes it, when a device is removed. */
void lb_removal_listen(void (*fn)(struct lb_device *dev));

#endif /* LB_VERBS_REMOVAL_H */
