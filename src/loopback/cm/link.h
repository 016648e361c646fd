/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.h -- the handshake. All [lock].
 */

#ifndef LB_CM_LINK_H
#define LB_CM_LINK_H

#include <stdint.h>

#include "cm/cm.h"

void lb_cm_link_connect(struct lb_cm_id *id, struct lb_cm_msg *req);
int lb_cm_link_reply(struct lb_cm_id *id, struct lb_cm_msg *rep);
int lb_cm_link_ready(struct lb_cm_id *id);
int lb_cm_link_reject(struct lb_cm_id *id, int reason, const void *data,
		      uint8_t len);
int lb_cm_link_established(struct lb_cm_id *id); /* seen by other means */
void lb_cm_link_disconnect(struct lb_cm_id *id);
/* End it from any state, as the destruction of its identifier does. */
void lb_cm_link_break(struct lb_cm_id *id);
/* A message for id, which is there, from its peer; no request. */
void lb_cm_link_receive(struct lb_cm_id *id, const struct lb_cm_msg *msg);

#endif /* LB_CM_LINK_H */
