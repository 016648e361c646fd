/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * port.h -- which identifier has which port. All [lock].
 */

#ifndef LB_CM_PORT_H
#define LB_CM_PORT_H

#include <stdbool.h>
#include <sys/socket.h>

#include <rdma/rdma_cma.h>

#include "cm/cm.h"
#include "wire/port.h"

/* Before the first port, without the lock: the process gets its number. */
void lb_cm_port_start(void);
/* In a child, with the lock. */
void lb_cm_port_forked(void);
/* Give id the port of id->src, or a free one. 0 or an errno. */
int lb_cm_port_bind(struct lb_cm_id *id);
/* Checks that id may listen on its shared port. Returns 0 or an errno. */
int lb_cm_port_listen(struct lb_cm_id *id);
/* It is nobody's port any more, if id was the last; harmless without one. */
void lb_cm_port_leave(struct lb_cm_id *id);

/* Returns true if the port of an address belongs to this process. */
bool lb_cm_port_is_ours(enum rdma_port_space ps,
			const struct sockaddr_storage *addr);
/* Under which the process that listens at a port is found; NULL ends them. */
struct lb_cm_port_names {
	char port[LB_PORT_NAME];
	char block[LB_PORT_NAME];
	const char *each[3];
};
void lb_cm_port_names(struct lb_cm_port_names *names, enum rdma_port_space ps,
		      const struct sockaddr_storage *addr);
struct lb_cm_id *lb_cm_port_listener(enum rdma_port_space ps,
				     const struct sockaddr_storage *dst);

#endif /* LB_CM_PORT_H */
