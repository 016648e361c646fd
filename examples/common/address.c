/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * address.c: asks the kernel for addresses, and librpma for their devices.
 */

#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <librpma.h>

#define MAX_ADDRESSES 64

/*
 * Converts an address to text; returns false for an address not fit to listen
 * on.
 */
static bool to_text(const struct sockaddr *addr, char *text)
{
	if (!addr)
		return false;
	if (addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)addr;
		return inet_ntop(AF_INET, &in->sin_addr, text, ADDRESS_MAX);
	}
	if (addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)addr;
		return !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) &&
		       inet_ntop(AF_INET6, &in6->sin6_addr, text, ADDRESS_MAX);
	}
	return false;
}

static struct ibv_context *device_of(const char *text)
{
	struct ibv_context *device = NULL;

	if (rpma_utils_get_ibv_context(text, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &device))
		return NULL;
	return device;
}

static int add(const struct ifaddrs *ifaddrs, bool is_loopback,
	       struct address *list, int count, int max)
{
	for (const struct ifaddrs *i = ifaddrs; i && count < max;
	     i = i->ifa_next) {
		struct address *address = &list[count];

		if (!(i->ifa_flags & IFF_UP) ||
		    !!(i->ifa_flags & IFF_LOOPBACK) != is_loopback ||
		    !to_text(i->ifa_addr, address->text))
			continue;
		snprintf(address->interface, sizeof(address->interface), "%s",
			 i->ifa_name);
		address->device = device_of(address->text);
		count++;
	}
	return count;
}

int address_list(struct address *list, int max)
{
	enum rpma_log_level level = RPMA_LOG_DISABLED;
	struct ifaddrs *ifaddrs;

	if (getifaddrs(&ifaddrs))
		return -1;
	/* an address without a device is no error here, and is not logged */
	rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	int count = add(ifaddrs, false, list, 0, max);
	count = add(ifaddrs, true, list, count, max);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, level);
	freeifaddrs(ifaddrs);
	return count;
}

bool address_first(struct address *address)
{
	struct address list[MAX_ADDRESSES];
	int count = address_list(list, MAX_ADDRESSES);

	for (int i = 0; i < count; i++) {
		if (list[i].device) {
			*address = list[i];
			return true;
		}
	}
	return false;
}
