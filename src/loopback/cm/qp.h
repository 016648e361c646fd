/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp.h -- the QP of an identifier. 0 or -1 with errno; nothing to do without
 * a QP.
 */

#ifndef LB_CM_QP_H
#define LB_CM_QP_H

#include <stdint.h>

#include "cm/cm.h"

int lb_cm_qp_to_rtr(struct lb_cm_id *id, uint8_t responder_resources);
int lb_cm_qp_to_rts(struct lb_cm_id *id, uint8_t initiator_depth);
int lb_cm_qp_to_err(struct lb_cm_id *id);

#endif /* LB_CM_QP_H */
