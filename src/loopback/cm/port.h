/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * port.h -- which identifier has which port. All [lock].
 */

#ifndef LB_CM_PORT_H
#define LB_CM_PORT_H

#include <sys/socket.h>

#include <rdma/rdma_cma.h>

#include "cm/cm.h"

/* Give id the port of id->src, or a free one. 0 or an errno. */
int lb_cm_port_bind(struct lb_cm_id *id);
/* May id listen on the port that it shares? 0 or an errno. */
int lb_cm_port_listen(struct lb_cm_id *id);
struct lb_cm_id *lb_cm_port_listener(enum rdma_port_space ps,
				     const struct sockaddr_storage *dst);

#endif /* LB_CM_PORT_H */
