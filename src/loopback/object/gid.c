/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * gid.c -- the addresses of the devices, and which device an address is of.
 * The tables are filled once; any thread.
 */

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "object/device.h"
#include "object/limits.h"

/* sa as the GID of a RoCE v2 port, false if it is not an IP address */
static bool gid_from(const struct sockaddr *sa, union ibv_gid *gid)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

	memset(gid, 0, sizeof(*gid));
	if (sa->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &in->sin_addr, 4);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(gid->raw, &in6->sin6_addr, 16);
		return true;
	}
	return false;
}

static bool gid_is_loopback4(const union ibv_gid *gid)
{
	static const uint8_t prefix[13] = {[10] = 0xff, 0xff, 127};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static bool gid_equal(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a->raw, b->raw, sizeof(a->raw));
}

static int gid_index(const struct lb_device *dev, const union ibv_gid *gid)
{
	int i;

	for (i = 0; i < dev->ngids; i++) {
		if (gid_equal(&dev->gids[i], gid))
			return i;
	}
	return -1;
}

static void gid_add(struct lb_device *dev, const union ibv_gid *gid)
{
	if (dev->ngids < LB_MAX_GIDS && gid_index(dev, gid) < 0)
		dev->gids[dev->ngids++] = *gid;
}

/* Is gid an address of this machine now? Tells fn every one of them. */
static bool machine_has(const union ibv_gid *gid, struct lb_device *collect)
{
	struct ifaddrs *list, *i;
	union ibv_gid have;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || !gid_from(i->ifa_addr, &have))
			continue;
		if (collect && !gid_is_loopback4(&have))
			gid_add(collect, &have);
		if (gid && gid_equal(gid, &have))
			found = true;
	}
	freeifaddrs(list);
	return found;
}

struct lb_device *lb_gid_device(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	if (lb_device_count == 0 || gid_equal(gid, &none))
		return NULL;
	if (gid_is_loopback4(gid))
		return lb_device_at(gid->raw[14] % lb_device_count);
	if (gid_index(&lb_device_all[0], gid) >= 0 || machine_has(gid, NULL))
		return lb_device_at(0);
	return NULL;
}

struct lb_device *lb_gid_device_of_addr(const struct sockaddr *addr)
{
	union ibv_gid gid;

	return gid_from(addr, &gid) ? lb_gid_device(&gid) : NULL;
}

int lb_gid_index_of_addr(const struct lb_device *dev,
			 const struct sockaddr *addr)
{
	union ibv_gid gid;
	int index = gid_from(addr, &gid) ? gid_index(dev, &gid) : -1;

	return index < 0 ? 0 : index;
}

/* Of every device the loopback address, of the first also the machine's. */
static void fill(struct lb_device *dev)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 127, 0}};

	gid.raw[14] = (uint8_t)dev->index;
	gid.raw[15] = 1;
	gid_add(dev, &gid);
	if (!dev->index)
		machine_has(NULL, dev);
}

void lb_gid_start(void)
{
	int n;

	for (n = 0; n < lb_device_count; n++)
		fill(&lb_device_all[n]);
}
