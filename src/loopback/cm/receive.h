/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * receive.h -- a message finds its identifier. [lock]
 */

#ifndef LB_CM_RECEIVE_H
#define LB_CM_RECEIVE_H

#include "cm/cm.h"

void lb_cm_receive(const struct lb_cm_msg *msg);

#endif /* LB_CM_RECEIVE_H */
