/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * address.h: finds the addresses of this machine that lead to an RDMA device.
 */

#ifndef EXAMPLES_ADDRESS_H
#define EXAMPLES_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include <infiniband/verbs.h>
#include <netinet/in.h>

#define ADDRESS_MAX INET6_ADDRSTRLEN

struct address {
	char text[ADDRESS_MAX];
	char interface[32];
	struct ibv_context *device; /* owned by librdmacm; NULL: no device */
};

/*
 * Lists the addresses of interfaces that are up, addresses of loopback
 * interfaces last, without link-local addresses. Returns the number, at most
 * max, or -1 with errno.
 */
int address_list(struct address *list, int max);
/*
 * Finds the first address with a device; returns false if there is no such
 * address.
 */
bool address_first(struct address *address);

#endif /* EXAMPLES_ADDRESS_H */
