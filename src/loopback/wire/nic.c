/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nic.c -- a process as seen by others: the number, held by a listening socket
 * of an abstract name, and the calls of the layer above on all links. Any
 * thread.
 */

#include "wire/nic.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/turn.h"
#include "base/zalloc.h"
#include "wire/contact.h"
#include "wire/links.h"
#include "wire/nic_thread.h"
#include "wire/parts.h"
#include "wire/port.h"
#include "wire/segment.h"
#include "wire/socket.h"

#define PATIENCE   1000000000u /* ns */
#define BUSY_LOOKS 8
#define RINGING	   4 /* every so many looks, ringing links are looked at too */

/* of this process; under lb.big until there is one */
static _Atomic(struct lb_nic *) self;
static const struct lb_nic_ops *self_ops;
static struct lb_nic_config self_config;

/* --- the number */

/*
 * Holds a number: returns a listening socket of its name, or a negative errno.
 */
static int hold(unsigned number)
{
	char name[LB_PARTS_NAME];

	lb_parts_name(name, number);
	return lb_socket_listen(name);
}

static unsigned next_of(unsigned number)
{
	return number % LB_PARTS_NUMBERS + 1;
}

/* Draws a free number, or the number after the last if all are taken. */
static void draw_number(struct lb_nic *nic)
{
	uint32_t chance;
	unsigned tries;

	lb_random_draw(&chance, sizeof(chance));
	nic->number = 1 + chance % LB_PARTS_NUMBERS;
	for (tries = 0; tries < LB_PARTS_NUMBERS; tries++) {
		nic->listener.fd = hold(nic->number);
		if (nic->listener.fd != -EADDRINUSE)
			break;
		nic->number = next_of(nic->number);
	}
	if (nic->listener.fd >= 0)
		return;
	nic->nameless = -nic->listener.fd;
	nic->listener.fd = -1;
}

/* Said when another process is wanted for the first time. nic->lock. */
static void say_nameless(struct lb_nic *nic)
{
	if (nic->nameless == EADDRINUSE)
		lb_log(0,
		       "all %d numbers of processes in this network namespace "
		       "are taken: this process reaches no other process. "
		       "Start the processes that belong together with a number "
		       "of their own, rpma-loopback --network",
		       LB_PARTS_NUMBERS);
	else if (nic->nameless)
		lb_log(0,
		       "no name for process %u (%s): it reaches no other "
		       "process",
		       nic->number, strerror(nic->nameless));
	nic->nameless = 0;
}

static void begin_life(struct lb_nic *nic)
{
	draw_number(nic);
	do {
		lb_random_draw(&nic->cookie, sizeof(nic->cookie));
	} while (!nic->cookie);
}

/* Prepares has_met; waits have an end by lb_clock_real_now(). */
static void init_met(struct lb_nic *nic)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&nic->met, &attr);
	pthread_condattr_destroy(&attr);
}

static struct lb_nic *make(const struct lb_nic_ops *ops,
			   const struct lb_nic_config *config)
{
	struct lb_nic *nic = lb_zalloc(sizeof(*nic));
	unsigned i;

	if (!nic)
		return NULL;
	nic->ops = ops;
	nic->config = *config;
	nic->patience = PATIENCE;
	nic->epoll = -1;
	nic->wake.fd = -1;
	nic->listener.fd = -1;
	nic->groups_fd = -1;
	for (i = 0; i < LB_PARTS_GUESTS; i++) {
		nic->guests[i].socket.fd = -1;
		nic->guests[i].pidfd = -1;
	}
	pthread_mutex_init(&nic->lock, NULL);
	init_met(nic);
	begin_life(nic);
	return nic;
}

struct lb_nic *lb_nic_self(void)
{
	/* acquire: pairs with the release in lb_nic_number() */
	return atomic_load_explicit(&self, memory_order_acquire);
}

void lb_nic_attach(const struct lb_nic_ops *ops,
		   const struct lb_nic_config *config)
{
	self_ops = ops;
	self_config = *config;
}

unsigned lb_nic_number(void)
{
	struct lb_nic *nic = lb_nic_self();
	uint32_t chance;

	if (nic && !nic->number)
		begin_life(nic); /* a child's */
	if (!nic && self_ops) {
		nic = make(self_ops, &self_config);
		/* release: pairs with the acquire in lb_nic_self() */
		atomic_store_explicit(&self, nic, memory_order_release);
	}
	if (nic)
		return nic->number;
	lb_random_draw(&chance, sizeof(chance));
	return 1 + chance % LB_PARTS_NUMBERS;
}

unsigned lb_nic_number_of(const struct lb_nic *nic)
{
	return nic->number;
}

/* --- links */

int lb_nic_serve(struct lb_nic *nic)
{
	int err = ENOTCONN;

	pthread_mutex_lock(&nic->lock);
	if (nic->listener.fd >= 0)
		err = lb_nic_thread_start(nic);
	else
		say_nameless(nic);
	pthread_mutex_unlock(&nic->lock);
	if (err && err != ENOTCONN)
		lb_log(0,
		       "no thread for links (%s): no other process is "
		       "reached",
		       strerror(err));
	return err;
}

static struct lb_link *nic_link(struct lb_nic *nic, unsigned number,
				bool is_named)
{
	struct lb_link *link;

	if (!number || number > LB_PARTS_NUMBERS || number == nic->number ||
	    lb_nic_serve(nic))
		return NULL;
	link = lb_links_find(nic, number, is_named);
	if (link && lb_parts_state(link) == LB_LINK_CONTACT)
		lb_nic_thread_wake(nic);
	return link;
}

struct lb_link *lb_nic_link(struct lb_nic *nic, unsigned number)
{
	return nic_link(nic, number, true);
}

struct lb_link *lb_nic_link_found(struct lb_nic *nic, unsigned number)
{
	return nic_link(nic, number, false);
}

/* Calls fn for each link that is up, with a reference meanwhile. */
void lb_nic_each(struct lb_nic *nic,
		 void (*fn)(struct lb_link *link, void *arg), void *arg)
{
	unsigned n = lb_links_count(nic), i;

	for (i = 0; i < n; i++) {
		struct lb_link *link = lb_links_at(nic, i);

		lb_link_get(link);
		if (lb_parts_state(link) == LB_LINK_UP)
			fn(link, arg);
		lb_link_put(link);
	}
}

struct lb_link *lb_nic_next(struct lb_nic *nic, uint32_t *at)
{
	while (*at < lb_links_count(nic)) {
		struct lb_link *link = lb_links_at(nic, (*at)++);

		lb_link_get(link);
		if (lb_parts_state(link) != LB_LINK_DEAD)
			return link;
		lb_link_put(link);
	}
	return NULL;
}

void lb_nic_set_groups(struct lb_nic *nic, uint64_t groups)
{
	unsigned n, i;

	/* a link made or coming up later reads the groups */
	pthread_mutex_lock(&nic->lock);
	nic->groups = groups;
	n = lb_links_count(nic);
	pthread_mutex_unlock(&nic->lock);
	for (i = 0; i < n; i++)
		lb_link_set_groups(lb_links_at(nic, i), groups);
}

/*
 * Counts looks of the program; returns the number before. A post, and a look
 * that finds something, copy bytes and take time: each counts as several.
 */
static uint64_t count_looks(struct lb_nic *nic, unsigned more)
{
	/* relaxed: a hint of the link thread; two threads may count as one */
	uint64_t looks =
		atomic_load_explicit(&nic->looks, memory_order_relaxed);

	/* relaxed: as above */
	atomic_store_explicit(&nic->looks, looks + more, memory_order_relaxed);
	return looks;
}

static void drain_one(struct lb_link *link, struct lb_run *run)
{
	if (lb_parts_state(link) != LB_LINK_UP || !lb_link_drain(link, run))
		return;
	lb_turn_found(&lb_turn_mine);
	count_looks(link->nic, BUSY_LOOKS);
}

void lb_nic_drain(struct lb_nic *nic, struct lb_run *run)
{
	uint64_t looks = count_looks(nic, 1);
	unsigned n = lb_links_count(nic), at = 0;
	struct lb_link *link;

	while ((link = lb_links_next_awake(nic, n, &at)))
		drain_one(link, run);
	/* ringing links, in turn: mostly sooner than the link thread */
	if (looks % RINGING || !n)
		return;
	at = (unsigned)(looks / RINGING % n);
	link = lb_links_at(nic, at);
	if (lb_links_next_awake(nic, n, &at) != link)
		drain_one(link, run);
}

void lb_nic_look(struct lb_nic *nic, struct lb_run *run)
{
	unsigned n, i;

	if (!lb_nic_owes())
		return;
	/* a call that puts as much as there comes to be room may take long */
	count_looks(nic, BUSY_LOOKS);
	n = lb_links_count(nic);
	for (i = 0; i < n; i++)
		lb_link_look(lb_links_at(nic, i), run);
}

void lb_nic_arm(struct lb_nic *nic, struct lb_run *run)
{
	unsigned n = lb_links_count(nic), at = 0;
	struct lb_link *link;

	/* relaxed: the link thread's hint */
	atomic_fetch_add_explicit(&nic->arms, 1, memory_order_relaxed);
	/* the other links have an odd `sleep`: arriving records ring */
	while ((link = lb_links_next_awake(nic, n, &at)))
		lb_link_arm(link, run);
}

static void drain_all(void *nic, struct lb_run *run)
{
	lb_nic_drain(nic, run);
}

void lb_nic_poll(void)
{
	struct lb_nic *nic = lb_nic_self();

	if (nic)
		nic->ops->with_run(drain_all, nic);
}

static void drain_link(void *link, struct lb_run *run)
{
	count_looks(((struct lb_link *)link)->nic, BUSY_LOOKS);
	drain_one(link, run);
}

void lb_nic_poll_link(struct lb_link *link)
{
	link->nic->ops->with_run(drain_link, link);
}

static void arm_all(void *nic, struct lb_run *run)
{
	lb_nic_arm(nic, run);
}

void lb_nic_poll_arm(void)
{
	struct lb_nic *nic = lb_nic_self();

	if (nic)
		nic->ops->with_run(arm_all, nic);
}

/* --- tests: a NIC with an end */

struct lb_nic *lb_nic_new(const struct lb_nic_ops *ops,
			  const struct lb_nic_config *config)
{
	struct lb_nic *nic = make(ops, config);

	if (nic && lb_nic_serve(nic)) {
		lb_nic_delete(nic);
		nic = NULL;
	}
	return nic;
}

void lb_nic_delete(struct lb_nic *nic)
{
	unsigned n, i;

	lb_nic_thread_stop(nic);
	n = lb_links_count(nic);
	for (i = 0; i < n; i++) {
		struct lb_link *link = lb_links_at(nic, i);

		if (lb_parts_state(link) != LB_LINK_DEAD)
			lb_contact_end(nic, link, 0);
	}
	for (i = 0; i < LB_PARTS_GUESTS; i++)
		lb_contact_drop(nic, &nic->guests[i]);
	for (i = 0; i < n; i++)
		free(lb_links_at(nic, i));
	lb_socket_close(&nic->listener.fd);
	lb_socket_close(&nic->groups_fd);
	lb_socket_close(&nic->wake.fd);
	lb_socket_close(&nic->epoll);
	pthread_mutex_destroy(&nic->lock);
	pthread_cond_destroy(&nic->met);
	free(nic);
}

/* --- fork */

/*
 * Closes all descriptors of a handshake; the memory is mapped in the parent
 * only.
 */
static void abandon_contact(struct lb_contact *contact)
{
	lb_socket_close(&contact->socket.fd);
	lb_socket_close(&contact->pidfd);
	contact->stage = LB_STAGE_NONE;
	contact->mine = NULL;
	contact->theirs = NULL;
	contact->link = NULL;
}

/*
 * In the child: no link, no number, no thread. No lock of a link is held: the
 * parent's threads, and the forking thread below a signal handler, may have
 * been inside.
 */
static void abandon(struct lb_nic *nic)
{
	unsigned n = lb_links_count(nic), i;

	for (i = 0; i < n; i++)
		lb_link_abandon(lb_links_at(nic, i));
	for (i = 0; i < n; i++)
		abandon_contact(&lb_links_at(nic, i)->contact);
	for (i = 0; i < LB_PARTS_GUESTS; i++)
		abandon_contact(&nic->guests[i]);
	for (i = 0; i <= LB_PARTS_NUMBERS; i++) {
		if (nic->current[i])
			lb_link_put(nic->current[i]);
		nic->current[i] = NULL;
		nic->is_said[i] = false;
	}
	lb_socket_close(&nic->listener.fd);
	lb_socket_close(&nic->wake.fd);
	lb_socket_close(&nic->epoll);
	lb_socket_close(&nic->groups_fd);
	init_met(nic); /* threads of the parent may wait there */
	nic->groups = 0;
	/* relaxed: a child has a single thread */
	atomic_store_explicit(&nic->has_met, false, memory_order_relaxed);
	nic->is_threaded = false;
	nic->accept_at = 0;
	nic->number = 0;
	nic->cookie = 0;
	/* relaxed, all: a child has a single thread */
	lb_turn_count_others(
		-(int)atomic_load_explicit(&lb_link_ups, memory_order_relaxed));
	atomic_store_explicit(&lb_link_ups, 0, memory_order_relaxed);
	atomic_store_explicit(&lb_link_owed, 0, memory_order_relaxed);
}

void lb_nic_fork(enum lb_fork_step step)
{
	struct lb_nic *nic = lb_nic_self();

	if (step == LB_FORK_BEFORE && nic)
		pthread_mutex_lock(&nic->lock);
	lb_segment_fork(step);
	lb_port_fork(step);
	if (step == LB_FORK_CHILD && nic)
		abandon(nic);
	if (step != LB_FORK_BEFORE && nic)
		pthread_mutex_unlock(&nic->lock);
}
