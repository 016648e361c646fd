/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.c -- the life of a link, from contact to death, and the properties of a
 * link for other files. put.c and drain.c have the rings, mail.c the
 * messages.
 */

#include "wire/link.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "wire/nic.h"
#include "wire/parts.h"
#include "wire/report.h"
#include "wire/socket.h"
#include "wire/watch.h"

_Atomic uint32_t lb_link_ups;

/* --- groups */

/* under out */
static void publish_groups(struct lb_link *link, uint64_t groups)
{
	/* release [WIRE-7]: pairs with the acquire in has_members() */
	atomic_store_explicit(&link->mine->groups, groups,
			      memory_order_release);
}

void lb_link_set_groups(struct lb_link *link, uint64_t groups)
{
	lb_lock_get(&link->out);
	if (link->mine)
		publish_groups(link, groups);
	lb_lock_put(&link->out);
}

/* --- the life of a link */

static void set_state(struct lb_link *link, enum lb_link_state state)
{
	/* release: pairs with the acquire in lb_parts_state() */
	atomic_store_explicit(&link->state, state, memory_order_release);
}

/*
 * Resets a dead link without references. No lock: other threads look only at
 * the state and, under the locks, at the segments, which a dead link does not
 * have.
 */
void lb_link_reset(struct lb_link *link, unsigned number)
{
	link->number = number;
	link->cookie = 0;
	link->pid = 0;
	link->is_reported = false;
	/* relaxed: the state, below, publishes it */
	atomic_store_explicit(&link->is_named, false, memory_order_relaxed);
	link->wrong = NULL;
	link->next_try = link->backoff = 0;
	link->stuck_since = link->loses_at = 0;
	memset(&link->awake, 0, sizeof(link->awake));
	memset(&link->in_stats, 0, sizeof(link->in_stats));
	memset(&link->out_stats, 0, sizeof(link->out_stats));
	set_state(link, LB_LINK_CONTACT);
}

void lb_link_rise(struct lb_link *link, const struct lb_contact *contact,
		  struct lb_run *run)
{
	lb_lock_get(&link->in);
	lb_lock_get(&link->out);
	link->cookie = contact->cookie;
	link->pid = contact->pid;
	link->mine = contact->mine;
	link->theirs = contact->theirs;
	link->socket.fd = contact->socket.fd;
	link->pidfd.fd = contact->pidfd;
	link->req_head = link->req_tail_seen = 0;
	link->ans_head = link->ans_tail_seen = 0;
	link->behind = 0;
	link->is_behind = false;
	link->is_held = false;
	link->sleep = link->want = 0;
	link->rung = link->rung_want = 0;
	link->req_tail = link->req_shown = link->covered = 0;
	link->ans_tail = link->ans_head_seen = 0;
	link->owed = 0;
	link->stuck_since = 0;
	link->is_unheard = false;
	link->is_cut = link->was_denied = false;
	link->stalled_until = 0;
	link->was_stalled[0] = link->was_stalled[1] = false;
	pthread_mutex_lock(&link->nic->lock);
	publish_groups(link, link->nic->groups);
	pthread_mutex_unlock(&link->nic->lock);
	set_state(link, LB_LINK_UP);
	lb_link_set_awake(link, true);
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
	lb_link_tell(link, run);
}

/* Ends a link. Both locks held: no thread is, or will be, in the segments. */
static void bury(struct lb_link *link, struct lb_list *letters)
{
	set_state(link, LB_LINK_DEAD);
	lb_link_set_awake(link, false);
	lb_segment_unmap(link->mine);
	lb_segment_unmap(link->theirs);
	link->mine = NULL;
	link->theirs = NULL;
	lb_watch_close(link->nic, &link->socket);
	lb_watch_close(link->nic, &link->pidfd);
	if (link->owes_look)
		/* relaxed: as where the count goes up */
		atomic_fetch_sub_explicit(&lb_link_owed, 1,
					  memory_order_relaxed);
	link->owes_look = false;
	lb_list_init(letters);
	while (!lb_list_is_empty(&link->letters)) {
		struct lb_list *node = link->letters.next;

		lb_list_del(node);
		lb_list_push(letters, node);
	}
	link->nletters = 0;
}

static void free_letters(struct lb_list *letters)
{
	while (!lb_list_is_empty(letters)) {
		struct lb_list *node = letters->next;

		lb_list_del(node);
		free(lb_entry(node, struct lb_letter, node));
	}
}

void lb_link_die(struct lb_link *link, struct lb_run *run)
{
	struct lb_list letters;

	lb_lock_get(&link->in);
	link->is_forced = true;
	if (link->theirs && !link->wrong)
		lb_link_drain_all(link,
				  run); /* both tails have their last value */
	link->is_forced = false;
	lb_lock_get(&link->out);
	lb_report_end(link);
	bury(link, &letters);
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
	free_letters(&letters);
	lb_link_tell(link, run);
}

void lb_link_lose_descriptors(struct lb_link *link)
{
	lb_lock_get(&link->out);
	link->socket.fd = -1;
	link->pidfd.fd = -1;
	lb_lock_put(&link->out);
}

/*
 * Forgets memory mapped only in the parent. Where a thread of the parent was
 * inside a lock, the lists may be in halves, and the letters are lost.
 */
void lb_link_abandon(struct lb_link *link)
{
	struct lb_list letters;

	if (!lb_lock_try(&link->out))
		lb_list_init(&link->letters);
	lb_list_init(&link->waiting);
	lb_list_init(&link->told);
	link->is_forced = false;
	link->mine = NULL;
	link->theirs = NULL;
	link->owes_look = false;
	lb_socket_close(&link->socket.fd);
	lb_socket_close(&link->pidfd.fd);
	bury(link, &letters);
	free_letters(&letters);
	lb_lock_init(&link->in);
	lb_lock_init(&link->out);
}

/* --- properties for others */

void lb_link_heard(struct lb_link *link, bool is_bell)
{
	lb_lock_get(&link->in);
	if (is_bell)
		link->in_stats.bells_heard++;
	else
		link->in_stats.messages_taken++;
	lb_lock_put(&link->in);
	if (is_bell)
		lb_link_wake(link);
}

bool lb_link_is_wrong(struct lb_link *link)
{
	bool is_wrong;

	lb_lock_get(&link->in);
	is_wrong = link->wrong;
	lb_lock_get(&link->out);
	is_wrong = is_wrong || link->is_cut;
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
	return is_wrong;
}

enum lb_link_state lb_link_state(const struct lb_link *link)
{
	return lb_parts_state(link);
}

unsigned lb_link_number(const struct lb_link *link)
{
	return link->number;
}

uint64_t lb_link_cookie(struct lb_link *link)
{
	uint64_t cookie;

	lb_lock_get(&link->out);
	cookie = link->cookie;
	lb_lock_put(&link->out);
	return cookie;
}

struct lb_link *lb_link_get(struct lb_link *link)
{
	/* relaxed: the caller has a reference already */
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	return link;
}

void lb_link_put(struct lb_link *link)
{
	/* release: pairs with the acquire in reuse() of links.c */
	atomic_fetch_sub_explicit(&link->refs, 1, memory_order_release);
}

void lb_link_stats(struct lb_link *link, struct lb_link_stats *stats)
{
	lb_lock_get(&link->in);
	lb_lock_get(&link->out);
	*stats = link->out_stats;
	stats->taken = link->in_stats.taken;
	stats->taken_bytes = link->in_stats.taken_bytes;
	stats->requests_taken = link->in_stats.requests_taken;
	stats->bells_rung += link->in_stats.bells_rung;
	stats->bells_heard = link->in_stats.bells_heard;
	stats->messages_taken = link->in_stats.messages_taken;
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
}
