/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * id.h -- identifiers are made, destroyed, and moved to another channel.
 */

#ifndef LB_CM_ID_H
#define LB_CM_ID_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "cm/cm.h"

/* What rdma_create_id() etc. do once arguments are checked. No lock. */
int lb_cm_id_create(struct lb_cm_channel *channel, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps,
		    enum ibv_qp_type type);
void lb_cm_id_destroy(struct lb_cm_id *id);
int lb_cm_id_migrate(struct lb_cm_id *id, struct lb_cm_channel *to);

#endif /* LB_CM_ID_H */
