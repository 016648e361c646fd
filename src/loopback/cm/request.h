/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * request.h -- requests to listeners. All [lock].
 */

#ifndef LB_CM_REQUEST_H
#define LB_CM_REQUEST_H

#include "cm/cm.h"

void lb_cm_request_receive(const struct lb_cm_msg *req);
/* The listener has read one: there is room again. */
void lb_cm_request_readmit(struct lb_cm_id *listener);
/* The requester of another process has gone, and knows no answer yet. */
void lb_cm_request_withdraw(const struct lb_cm_msg *rej);
void lb_cm_request_refuse_waiting(struct lb_cm_id *listener);

#endif /* LB_CM_REQUEST_H */
