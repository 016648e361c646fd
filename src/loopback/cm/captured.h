/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * captured.h -- what a message of the connection manager would be on a wire.
 */

#ifndef LB_CM_CAPTURED_H
#define LB_CM_CAPTURED_H

#include "cm/cm.h"

/*
 * The message as a datagram in the file; nothing if neither of its ends can be
 * found any more. [lock]
 */
void lb_cm_captured(const struct lb_cm_msg *msg);

#endif /* LB_CM_CAPTURED_H */
