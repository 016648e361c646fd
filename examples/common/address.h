/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * address.h: which of this machine's addresses leads to an RDMA device.
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
	struct ibv_context *device; /* NULL: none; librdmacm owns it */
};

/*
 * The addresses of interfaces that are up, those of loopback interfaces last;
 * link-local ones are left out. Returns how many, at most max, or -1: errno.
 */
int address_list(struct address *list, int max);
/* The first with a device. false: there is none. */
bool address_first(struct address *address);

#endif /* EXAMPLES_ADDRESS_H */
