/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * meet.c -- processes that use multicast groups find each other: each holds a
 * name, then looks which numbers have one, and makes links to those. Of two
 * that do so at the same time one finds the other's name. Any thread of a
 * program.
 */

#include "wire/meet.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "wire/links.h"
#include "wire/nic.h"
#include "wire/parts.h"
#include "wire/socket.h"

#define NAME 48

/* With the user: those of another would only be refused. */
static void name_of(char name[NAME], unsigned number)
{
	snprintf(name, NAME, "rpma-loopback.%u.groups.%u", number,
		 (unsigned)geteuid());
}

/* If it cannot be held, others are still found. */
static void hold_name(struct lb_nic *nic)
{
	char name[NAME];
	int fd;

	name_of(name, nic->number);
	pthread_mutex_lock(&nic->lock);
	if (nic->groups_fd < 0) {
		fd = lb_socket_hold(name);
		nic->groups_fd = fd < 0 ? -1 : fd;
	}
	pthread_mutex_unlock(&nic->lock);
}

/* A link to each number that has the name: how many. */
static unsigned find(struct lb_nic *nic,
		     struct lb_link *found[LB_PARTS_NUMBERS])
{
	int probe = lb_socket_probe();
	char name[NAME];
	unsigned n = 0, number;

	for (number = 1; number <= LB_PARTS_NUMBERS && probe >= 0; number++) {
		name_of(name, number);
		if (number == nic->number || !lb_socket_is_held(probe, name))
			continue;
		found[n] = lb_nic_link_found(nic, number);
		n += found[n] != NULL;
	}
	lb_socket_close(&probe);
	return n;
}

/* nic->lock held */
static bool is_in_contact(struct lb_link *const *found, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		if (lb_parts_state(found[i]) == LB_LINK_CONTACT)
			return true;
	}
	return false;
}

/* Until each is up or dead, or somebody takes too long. */
static void wait_for(struct lb_nic *nic, struct lb_link *const *found,
		     unsigned n)
{
	LB_NOT_CANCELLED;
	uint64_t end = lb_clock_real_now() + nic->patience;
	struct timespec ts = {.tv_sec = (time_t)(end / 1000000000u),
			      .tv_nsec = (long)(end % 1000000000u)};
	int err = 0;

	pthread_mutex_lock(&nic->lock);
	while (!err && is_in_contact(found, n))
		err = pthread_cond_timedwait(&nic->met, &nic->lock, &ts);
	pthread_mutex_unlock(&nic->lock);
}

static void meet(struct lb_nic *nic)
{
	struct lb_link *found[LB_PARTS_NUMBERS];
	unsigned n, i;

	if (lb_nic_serve(nic))
		return;
	hold_name(nic);
	n = find(nic, found);
	wait_for(nic, found, n);
	for (i = 0; i < n; i++)
		lb_link_put(found[i]);
}

void lb_meet_all(void)
{
	struct lb_nic *nic = lb_nic_self();

	/* acquire: pairs with the release below */
	if (!nic || atomic_load_explicit(&nic->has_met, memory_order_acquire))
		return;
	meet(nic);
	/* release: the links that it found come before */
	atomic_store_explicit(&nic->has_met, true, memory_order_release);
}
