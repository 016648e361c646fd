/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Addresses for rdma_cm: makes a bound or resolved CM id from names and
 * numbers. Every failure is E_PROVIDER and is logged here.
 */

#ifndef RPMA_INFO_H
#define RPMA_INFO_H 1

#include <rdma/rdma_cma.h>

enum rpma__info_side { RPMA__INFO_ACTIVE, RPMA__INFO_PASSIVE };

/* Looks an address up; port may be NULL. */
int rpma__info_get(const char *addr, const char *port,
		   enum rpma__info_side side, struct rdma_addrinfo **info_ptr);
/* Frees an address; leaves errno alone. */
void rpma__info_free(struct rdma_addrinfo *info);
/* Starts resolving; a synchronous id blocks, any other id reports an event. */
int rpma__info_resolve_addr(const struct rdma_addrinfo *info,
			    struct rdma_cm_id *id, int timeout_ms);
int rpma__info_bind_addr(const struct rdma_addrinfo *info,
			 struct rdma_cm_id *id);

#endif /* RPMA_INFO_H */
