/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * links.c -- the links of a NIC: a list that only grows, which those who drain
 * walk without a lock, and by number the link that is not dead. Any thread.
 */

#include "wire/links.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/zalloc.h"
#include "wire/parts.h"

/* A dead one without references; nic->lock held. */
static struct lb_link *reuse(struct lb_nic *nic)
{
	unsigned n = lb_links_count(nic), i;

	for (i = 0; i < n; i++) {
		struct lb_link *link = lb_links_at(nic, i);

		/* acquire: pairs with the release in lb_link_put() */
		if (!atomic_load_explicit(&link->refs, memory_order_acquire) &&
		    lb_parts_state(link) == LB_LINK_DEAD)
			return link;
	}
	return NULL;
}

/* nic->lock held */
static struct lb_link *add(struct lb_nic *nic)
{
	unsigned n = lb_links_count(nic);
	struct lb_link *link;

	link = n < LB_PARTS_LINKS ? lb_zalloc(sizeof(*link)) : NULL;
	if (!link)
		return NULL;
	lb_lock_init(&link->in);
	lb_lock_init(&link->out);
	lb_list_init(&link->waiting);
	lb_list_init(&link->told);
	lb_list_init(&link->letters);
	link->socket.fd = -1;
	link->pidfd.fd = -1;
	link->contact.socket.fd = -1;
	link->contact.pidfd = -1;
	link->nic = nic;
	link->index = n;
	/* relaxed: the count publishes it; nobody else sees it yet */
	atomic_store_explicit(&nic->links[n], link, memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(&link->state, LB_LINK_DEAD, memory_order_relaxed);
	/* release: pairs with the acquire in lb_links_count() */
	atomic_store_explicit(&nic->nlinks, n + 1, memory_order_release);
	return link;
}

/*
 * Prints, once, why the process makes no further link: queue pairs and
 * identifiers of the program refer to links to processes that have ended.
 * nic->lock held.
 */
static void say_full(struct lb_nic *nic)
{
	static bool is_said;

	if (is_said)
		return;
	is_said = true;
	if (lb_links_count(nic) < LB_PARTS_LINKS)
		lb_log(0, "no memory for a link to another process");
	else
		lb_log(0,
		       "no link to a further process: the program has queue "
		       "pairs or identifiers of %d processes, most of which "
		       "have ended. Destroy them",
		       LB_PARTS_LINKS);
}

/* nic->lock held */
static struct lb_link *renew(struct lb_nic *nic, unsigned number)
{
	struct lb_link *link = reuse(nic);

	if (!link)
		link = add(nic);
	if (!link) {
		say_full(nic);
		return NULL;
	}
	lb_link_reset(link, number);
	nic->current[number] = lb_link_get(link);
	return link;
}

/* nic->lock held */
static void forget(struct lb_nic *nic, unsigned number)
{
	struct lb_link *link = nic->current[number];

	nic->current[number] = NULL;
	if (link)
		lb_link_put(link);
}

struct lb_link *lb_links_find(struct lb_nic *nic, unsigned number,
			      bool is_named)
{
	struct lb_link *link;

	pthread_mutex_lock(&nic->lock);
	link = nic->current[number];
	if (link && lb_parts_state(link) == LB_LINK_DEAD &&
	    lb_clock_real_now() >= nic->nobody_until[number]) {
		forget(nic, number);
		link = NULL;
	}
	if (!link)
		link = renew(nic, number);
	if (link)
		lb_link_get(link);
	if (link && is_named)
		/* relaxed: decides only about a line of the log */
		atomic_store_explicit(&link->is_named, true,
				      memory_order_relaxed);
	pthread_mutex_unlock(&nic->lock);
	return link;
}

void lb_links_leave(struct lb_nic *nic, struct lb_link *link, uint64_t until)
{
	pthread_mutex_lock(&nic->lock);
	nic->nobody_until[link->number] = until;
	if (!until && nic->current[link->number] == link)
		forget(nic, link->number);
	pthread_cond_broadcast(&nic->met);
	pthread_mutex_unlock(&nic->lock);
}

void lb_links_came_up(struct lb_nic *nic)
{
	pthread_mutex_lock(&nic->lock);
	pthread_cond_broadcast(&nic->met);
	pthread_mutex_unlock(&nic->lock);
}

void lb_links_forget_nobody(struct lb_nic *nic, unsigned number)
{
	pthread_mutex_lock(&nic->lock);
	nic->nobody_until[number] = 0;
	pthread_mutex_unlock(&nic->lock);
}
