/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wire.h -- messages from one identifier to another. All [lock].
 */

#ifndef LB_CM_WIRE_H
#define LB_CM_WIRE_H

#include <stdbool.h>

#include "cm/cm.h"

/* Where messages arrive. */
void lb_cm_wire_attach(void (*fn)(const struct lb_cm_msg *msg));
/* All of these: false: it is lost, and nothing will come back. */
bool lb_cm_wire_transmit(const struct lb_cm_msg *msg);
/* To the peer of id. */
bool lb_cm_wire_post(struct lb_cm_id *id, struct lb_cm_msg *msg);
bool lb_cm_wire_send(struct lb_cm_id *id, enum lb_cm_msg_type type);
/* To the peer, if there is one. */
void lb_cm_wire_reject(struct lb_cm_id *id, int reason);
/* A message is for nobody, or for nobody in that state. */
void lb_cm_wire_refuse(const struct lb_cm_msg *msg, int reason);

#endif /* LB_CM_WIRE_H */
