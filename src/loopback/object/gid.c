/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * gid.c -- the addresses of the devices, and the device of an address. The
 * table of the first device follows the addresses of the machine: an address
 * keeps its row while the machine has the address, and the row of a removed
 * address is empty until another address comes. A row points to an address that
 * is never freed, so reading needs no lock; rows are written under a lock. Any
 * thread.
 */

#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "object/device.h"
#include "object/limits.h"

/*
 * The largest age of the table: like the table of a kernel, the table follows
 * soon, not at once.
 */
#define MAX_AGE_NS 20000000u

/* An address with a row, now or in the past. */
struct address {
	struct address *next;
	union ibv_gid gid;
};

const union ibv_gid lb_gid_none;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static struct address *addresses;			 /* under lock */
static uint64_t read_at; /* when the machine's were read; under lock */

/*
 * Converts sa to the GID of a RoCE v2 port; returns false if sa is no IP
 * address.
 */
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

/* --- rows */

const union ibv_gid *lb_gid_at(const struct lb_device *dev, int index)
{
	const union ibv_gid *gid;

	if (index < 0 || index >= LB_MAX_GIDS)
		return &lb_gid_none;
	/* acquire: pairs with the release in set_row() */
	gid = atomic_load_explicit(&dev->gids[index], memory_order_acquire);
	return gid ? gid : &lb_gid_none;
}

static void set_row(struct lb_device *dev, int index, const union ibv_gid *gid)
{
	/* release: pairs with the acquire in lb_gid_at(); *gid is written */
	atomic_store_explicit(&dev->gids[index], gid, memory_order_release);
}

static int find_row(const struct lb_device *dev, const union ibv_gid *gid)
{
	int i;

	for (i = 0; i < LB_MAX_GIDS; i++) {
		if (gid_equal(lb_gid_at(dev, i), gid))
			return i;
	}
	return -1;
}

/* Returns the address in the form for rows; NULL: no memory. */
static const union ibv_gid *intern(const union ibv_gid *gid)
{
	struct address *a;

	for (a = addresses; a; a = a->next) {
		if (gid_equal(&a->gid, gid))
			return &a->gid;
	}
	a = malloc(sizeof(*a));
	if (!a)
		return NULL;
	a->gid = *gid;
	a->next = addresses;
	addresses = a;
	return &a->gid;
}

/*
 * Adds the address to the first empty row, unless present; left out without
 * room.
 */
static void add_row(struct lb_device *dev, const union ibv_gid *gid)
{
	int row = find_row(dev, &lb_gid_none);

	if (row >= 0 && find_row(dev, gid) < 0)
		set_row(dev, row, intern(gid));
}

/* --- the machine's addresses */

static bool list_has(const struct ifaddrs *list, const union ibv_gid *gid)
{
	union ibv_gid have;

	for (; list; list = list->ifa_next) {
		if (list->ifa_addr && gid_from(list->ifa_addr, &have) &&
		    gid_equal(gid, &have))
			return true;
	}
	return false;
}

/* Empties rows of removed addresses first, so that new addresses find rows. */
static void follow(struct lb_device *dev, const struct ifaddrs *list)
{
	const struct ifaddrs *i;
	union ibv_gid have;
	int row;

	for (row = 0; row < LB_MAX_GIDS; row++) {
		const union ibv_gid *gid = lb_gid_at(dev, row);

		if (!gid_is_loopback4(gid) && !list_has(list, gid))
			set_row(dev, row, NULL);
	}
	for (i = list; i; i = i->ifa_next) {
		if (i->ifa_addr && gid_from(i->ifa_addr, &have) &&
		    !gid_is_loopback4(&have))
			add_row(dev, &have);
	}
}

/*
 * Reads the addresses of the machine unless read just now; with a gid in any
 * case, and returns true if the gid is an address of the machine.
 */
static bool read_machine(const union ibv_gid *gid)
{
	uint64_t now = lb_clock_real_now();
	struct ifaddrs *list;
	bool found = false;

	pthread_mutex_lock(&lock);
	if ((gid || !read_at || now - read_at > MAX_AGE_NS) &&
	    !getifaddrs(&list)) {
		follow(&lb_device_all[0], list);
		found = gid && list_has(list, gid);
		freeifaddrs(list);
		read_at = now;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void lb_gid_refresh(void)
{
	if (lb_device_count)
		read_machine(NULL);
}

/* --- which device */

int lb_gid_index(const struct lb_device *dev, const union ibv_gid *gid)
{
	lb_gid_refresh();
	return gid_equal(gid, &lb_gid_none) ? -1 : find_row(dev, gid);
}

struct lb_device *lb_gid_device(const union ibv_gid *gid)
{
	if (lb_device_count == 0 || gid_equal(gid, &lb_gid_none))
		return NULL;
	if (gid_is_loopback4(gid))
		return lb_device_at(gid->raw[14] % lb_device_count);
	if (lb_gid_index(&lb_device_all[0], gid) >= 0 || read_machine(gid))
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
	int index = gid_from(addr, &gid) ? lb_gid_index(dev, &gid) : -1;

	return index < 0 ? 0 : index;
}

/* --- start and fork */

/*
 * Starts the tables: every device has the loopback address, the first also the
 * addresses of the machine.
 */
void lb_gid_start(void)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 127, [15] = 1}};
	int n;

	for (n = 0; n < lb_device_count; n++) {
		gid.raw[14] = (uint8_t)n;
		pthread_mutex_lock(&lock);
		add_row(&lb_device_all[n], &gid);
		pthread_mutex_unlock(&lock);
	}
	lb_gid_refresh();
}

/* Keeps all threads out of the table while a child gets a copy. */
void lb_gid_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}
