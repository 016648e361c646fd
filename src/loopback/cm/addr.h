/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * addr.h -- addresses, of IPv4 and IPv6 in one shape.
 */

#ifndef LB_CM_ADDR_H
#define LB_CM_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "cm/cm.h"

/* How long the address of a family is; 0: the family is not known. */
socklen_t lb_cm_addr_len(const struct sockaddr *sa);
/* false: the family is not known */
bool lb_cm_addr_from(struct lb_cm_addr *addr, const struct sockaddr *sa);
bool lb_cm_addr_is_same_ip(const struct lb_cm_addr *a,
			   const struct lb_cm_addr *b);
void lb_cm_addr_set_port(struct sockaddr_storage *ss, in_port_t port);
/* Both of an address whose family is known. */
void lb_cm_addr_to_gid(const struct sockaddr *sa, union ibv_gid *gid);
bool lb_cm_addr_is_multicast(const struct sockaddr *sa);
/* A request for a port that nobody listens at. */
void lb_cm_addr_log_nobody(const struct sockaddr_storage *ss);

#endif /* LB_CM_ADDR_H */
