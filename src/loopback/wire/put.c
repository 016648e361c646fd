/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * put.c -- requests and answers go into the rings of this process, under
 * link.out; queue pairs that found no room are called when requests are
 * covered. Any thread. doc/protocols/wire.md says why an answer never waits.
 */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "fault/fault.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/parts.h"
#include "wire/ring.h"
#include "wire/socket.h"

_Atomic uint32_t lb_link_owed;

/* --- link --- */

/* --- wrong records and words */

/* under in */
void lb_link_spoil(struct lb_link *link, const char *what)
{
	if (link->wrong)
		return;
	link->wrong = what;
	lb_log(0,
	       "process %u: its %s is wrong: the link to it is dropped, it is "
	       "silent from now on",
	       link->number, what);
	lb_fd_ring(link->nic->wake.fd, 1);
}

void lb_link_break(struct lb_link *link, const char *what)
{
	lb_lock_get(&link->in);
	if (link->theirs)
		lb_link_spoil(link, what);
	lb_lock_put(&link->in);
}

/* --- bells */

/*
 * Rings the peer. Either lock is held, so that the socket stays open. Returns
 * true if the bell was heard, or is not needed.
 */
bool lb_link_ring(struct lb_link *link)
{
	int err = lb_socket_bell(link->socket.fd);

	lb_parts_at(link, LB_POINT_BELL);
	/* a full socket has an awake reader; a dead socket has no reader */
	return !err || err == EAGAIN || err == EPIPE || err == ECONNRESET;
}

/* Notes an owed bell, which the link thread repeats; under out. */
void lb_link_ring_later(struct lb_link *link)
{
	link->is_unheard = true;
	lb_fd_ring(link->nic->wake.fd, 1);
}

/* A tail was published; under out. */
void lb_link_ring_sleeper(struct lb_link *link)
{
	uint32_t sleep;

	lb_parts_fence();
	/* relaxed [WIRE-3]: behind the fence */
	sleep = atomic_load_explicit(&link->theirs->sleep,
				     memory_order_relaxed);
	if (lb_likely(!(sleep & 1) || sleep == link->rung))
		return;
	link->rung = sleep;
	link->out_stats.bells_rung++;
	if (!lb_link_ring(link))
		lb_link_ring_later(link);
}

/* Returns the action of fault rules for a put; under out. */
static enum lb_link_action put_fault(struct lb_link *link, uint32_t actions)
{
	uint32_t none;
	enum lb_link_action action = lb_fault_link(actions, &none);

	if (lb_likely(action != LB_LINK_BREAK))
		return action;
	lb_log(1, "fault: the link to process %u breaks", link->number);
	link->is_cut = true;
	lb_fd_ring(link->nic->wake.fd, 1);
	return action;
}

/* --- putting; under out */

static void put(struct lb_link *link, uint8_t *ring_bytes, uint64_t at,
		const struct lb_record *record, const struct lb_span *src,
		uint64_t from)
{
	lb_ring_put(ring_bytes, at, record, src, from);
	link->out_stats.sent++;
	link->out_stats.sent_bytes += record->length;
	lb_parts_at(link, LB_POINT_RECORD);
}

void lb_link_set_want(struct lb_link *link, uint32_t want)
{
	link->want = want;
	/* relaxed [WIRE-4]: a fence comes before the look at the head */
	atomic_store_explicit(&link->mine->want, want, memory_order_relaxed);
	lb_parts_at(link, LB_POINT_WANT);
}

static void wait_for_room(struct lb_link *link, struct lb_waiter *waiter)
{
	lb_list_del(&waiter->node);
	lb_list_push(&link->waiting, &waiter->node);
	if (!(link->want & 1))
		lb_link_set_want(link, link->want + 1);
	if (link->owes_look)
		return;
	link->owes_look = true;
	/* relaxed: counts calls owed under the locks of links */
	atomic_fetch_add_explicit(&lb_link_owed, 1, memory_order_relaxed);
}

/*
 * Returns true if the process of the peer may have members of the group; under
 * out.
 */
static bool has_members(const struct lb_link *link, const uint8_t gid[16])
{
	/* acquire [WIRE-7]: the table of the peer has each member seen here */
	return atomic_load_explicit(&link->theirs->groups,
				    memory_order_acquire) &
	       lb_record_group(gid);
}

/* --- putting requests */

/*
 * Returns true if an unanswered request is lost: it finds no room, or no link
 * yet, and an earlier request has waited too long. If not, the link thread
 * looks later.
 */
static bool is_lost(struct lb_link *link, const struct lb_record *record)
{
	uint64_t now;

	if (lb_record_largest_answer(record))
		return false;
	now = lb_clock_real_now();
	if (!link->stuck_since)
		link->stuck_since = now;
	if (now - link->stuck_since >= link->nic->patience) {
		link->out_stats.lost++;
		return true;
	}
	if (!link->loses_at) {
		link->loses_at = link->stuck_since + link->nic->patience;
		lb_fd_ring(link->nic->wake.fd, 1);
	}
	return false;
}

/* Publishes the records put so far; under out. */
static void publish(struct lb_link *link)
{
	link->req_shown = link->req_tail;
	/* release [WIRE-1]: pairs with the acquire in take_requests() */
	atomic_store_explicit(&link->mine->req_tail, link->req_tail,
			      memory_order_release);
	lb_parts_at(link, LB_POINT_REQ_TAIL);
	lb_link_ring_sleeper(link);
}

/* Staged requests, if there are some; under out. */
static void show(struct lb_link *link)
{
	uint32_t n = (uint32_t)(link->req_tail - link->req_shown);

	if (!n)
		return;
	lb_ring_copy(link->mine->requests, link->req_shown, link->staged, n);
	publish(link);
}

/*
 * Puts a request. A lock waits until all earlier stores are done, and a store
 * to the ring until the line has come from the processor of the peer. So small
 * requests are staged, and go into the ring together; under out.
 */
static void put_request(struct lb_link *link, const struct lb_record *record,
			uint32_t size, const struct lb_span *src, uint64_t from)
{
	if (link->req_tail - link->req_shown + size > LB_PARTS_STAGED)
		show(link);
	if (size <= LB_PARTS_STAGED) {
		put(link, link->staged, link->req_tail - link->req_shown,
		    record, src, from);
		link->req_tail += size;
		return;
	}
	put(link, link->mine->requests, link->req_tail, record, src, from);
	link->req_tail += size;
	publish(link);
}

static struct lb_taken *taken_at(struct lb_link *link, uint64_t at)
{
	return &link->taken[at % LB_SEGMENT_RING / LB_RECORD_UNIT];
}

static enum lb_put_result request(struct lb_link *link,
				  const struct lb_record *record,
				  const struct lb_span *src, uint64_t from,
				  struct lb_waiter *waiter)
{
	uint32_t size = lb_record_size(record);
	uint32_t answer = lb_record_largest_answer(record);
	enum lb_link_action fault;

	if (record->type == LB_RECORD_MULTICAST &&
	    !has_members(link, record->dgid))
		return LB_PUT_NOBODY;
	fault = put_fault(link, LB_LINK_BREAK | LB_LINK_DENY);
	if (!lb_likely(!link->is_cut)) {
		lb_list_del(&waiter->node);
		lb_list_push(&link->waiting, &waiter->node);
		return LB_PUT_NOT_YET; /* told when the link is dead */
	}
	link->was_denied |= fault == LB_LINK_DENY;
	if (fault == LB_LINK_DENY ||
	    link->req_tail + size - link->covered > LB_SEGMENT_RING ||
	    link->owed + answer > LB_SEGMENT_RING) {
		if (is_lost(link, record))
			return LB_PUT_LOST;
		wait_for_room(link, waiter);
		return LB_PUT_NO_ROOM;
	}
	link->out_stats.requests_sent++;
	*taken_at(link, link->req_tail) =
		(struct lb_taken){(uint16_t)(size / LB_RECORD_UNIT),
				  (uint16_t)(answer / LB_RECORD_UNIT)};
	link->owed += answer;
	put_request(link, record, size, src, from);
	return LB_PUT_OK;
}

enum lb_put_result lb_link_request(struct lb_link *link,
				   const struct lb_record *record,
				   const struct lb_span *src, uint64_t from,
				   struct lb_waiter *waiter)
{
	enum lb_put_result ret;

	lb_lock_get(&link->out);
	if (lb_likely(link->mine)) {
		ret = request(link, record, src, from, waiter);
	} else if (lb_parts_state(link) == LB_LINK_DEAD) {
		ret = LB_PUT_DEAD;
	} else if (is_lost(link, record)) {
		ret = LB_PUT_LOST;
	} else {
		lb_list_del(&waiter->node);
		lb_list_push(&link->waiting, &waiter->node);
		ret = LB_PUT_NOT_YET;
	}
	lb_lock_put(&link->out);
	return ret;
}

void lb_link_show(struct lb_link *link)
{
	lb_lock_get(&link->out);
	if (link->mine)
		show(link);
	lb_lock_put(&link->out);
}

void lb_link_leave(struct lb_link *link, struct lb_waiter *waiter)
{
	lb_lock_get(&link->out);
	lb_list_del(&waiter->node);
	lb_lock_put(&link->out);
}

/* --- putting answers */

/* Checks the room for an answer, which exists unless the peer cheats. Returns
 * NULL, or the fault. */
static const char *room_for_answer(struct lb_link *link, uint32_t size)
{
	uint64_t head;

	if (lb_likely(link->ans_tail + size - link->ans_head_seen <=
		      LB_SEGMENT_RING))
		return NULL;
	/* acquire [WIRE-2] [WIRE-5]: bytes before the head may be
	 * overwritten */
	head = atomic_load_explicit(&link->theirs->ans_head,
				    memory_order_acquire);
	if (!lb_ring_is_head(head, link->ans_head_seen, link->ans_tail))
		return "ans_head";
	link->ans_head_seen = head;
	if (link->ans_tail + size - head > LB_SEGMENT_RING)
		return "ans_head, which leaves no room for an answer,";
	return NULL;
}

/* under in */
static enum lb_put_result answer(struct lb_link *link,
				 const struct lb_record *record,
				 const struct lb_span *src, uint64_t from)
{
	uint32_t size = lb_record_size(record);
	const char *what;

	if (link->wrong)
		return LB_PUT_DEAD;
	lb_lock_get(&link->out);
	put_fault(link, LB_LINK_BREAK);
	if (!lb_likely(!link->is_cut)) {
		lb_lock_put(&link->out);
		return LB_PUT_DEAD;
	}
	what = room_for_answer(link, size);
	if (lb_likely(!what)) {
		put(link, link->mine->answers, link->ans_tail, record, src,
		    from);
		link->ans_tail += size;
		/* release [WIRE-1]: pairs with the acquire in look() */
		atomic_store_explicit(&link->mine->ans_tail, link->ans_tail,
				      memory_order_release);
		lb_parts_at(link, LB_POINT_ANS_TAIL);
	}
	lb_lock_put(&link->out);
	if (lb_likely(!what))
		return LB_PUT_OK;
	lb_link_spoil(link, what);
	return LB_PUT_DEAD;
}

/* Puts the held acknowledgement; under in. */
void lb_link_put_held(struct lb_link *link)
{
	if (!link->is_held)
		return;
	link->is_held = false;
	answer(link, &link->held, NULL, 0);
}

enum lb_put_result lb_link_answer(struct lb_link *link,
				  const struct lb_record *record,
				  const struct lb_span *src, uint64_t from)
{
	lb_link_put_held(link);
	return answer(link, record, src, from);
}

void lb_link_acknowledge(struct lb_link *link, const struct lb_record *record)
{
	struct lb_record *held = &link->held;

	if (link->is_held && held->from == record->from &&
	    held->to == record->to && held->life == record->life) {
		held->psn = record->psn;
		return;
	}
	lb_link_put_held(link);
	*held = *record;
	link->is_held = true;
}

/* --- waiters, and the covering of requests */

/* Move the waiters to another list: each is called once; under out. */
static void take_waiting(struct lb_link *link)
{
	while (!lb_list_is_empty(&link->waiting)) {
		struct lb_list *node = link->waiting.next;

		lb_list_del(node);
		lb_list_push(&link->told, node);
	}
}

/* The next who is to be told, or NULL. */
static struct lb_waiter *next_told(struct lb_link *link)
{
	struct lb_waiter *waiter = NULL;

	lb_lock_get(&link->out);
	if (!lb_list_is_empty(&link->told)) {
		waiter = lb_entry(link->told.next, struct lb_waiter, node);
		lb_list_del(&waiter->node);
	}
	lb_lock_put(&link->out);
	return waiter;
}

/*
 * Tells waiters. Waiters may leave meanwhile, and a fork may come: told is
 * under out, and part of the link. Two telling threads share the list.
 */
void lb_link_tell(struct lb_link *link, struct lb_run *run)
{
	struct lb_waiter *waiter;

	lb_lock_get(&link->out);
	take_waiting(link);
	lb_lock_put(&link->out);
	while ((waiter = next_told(link)))
		link->nic->ops->room(link, waiter, run);
}

uint64_t lb_link_lose(struct lb_link *link, uint64_t now, struct lb_run *run)
{
	uint64_t end;
	bool is_over = false;

	lb_lock_get(&link->out);
	if (link->loses_at && now >= link->loses_at) {
		end = link->stuck_since + link->nic->patience;
		is_over = link->stuck_since && now >= end;
		/* later: there was room, then none again */
		link->loses_at = link->stuck_since && !is_over ? end : 0;
	}
	end = link->loses_at ? link->loses_at : UINT64_MAX;
	lb_lock_put(&link->out);
	if (is_over)
		lb_link_tell(link, run);
	return end;
}

/*
 * Covers requests up to `behind`: the requests were executed, and their answers
 * taken. Returns NULL, or the fault.
 */
const char *lb_link_cover(struct lb_link *link, struct lb_run *run)
{
	const struct lb_taken *taken;
	bool is_wanted = false;

	lb_lock_get(&link->out);
	if (!lb_ring_is_head(link->behind, link->covered, link->req_shown))
		goto wrong;
	while (link->covered != link->behind) {
		taken = taken_at(link, link->covered);
		link->covered += (uint64_t)taken->size * LB_RECORD_UNIT;
		link->owed -= (uint64_t)taken->answer * LB_RECORD_UNIT;
		if (link->covered > link->behind)
			goto wrong; /* ends inside a record */
	}
	link->stuck_since = 0;
	is_wanted = link->want & 1;
	if (is_wanted)
		lb_link_set_want(link, link->want + 1);
	lb_lock_put(&link->out);
	if (is_wanted)
		lb_link_tell(link, run);
	return NULL;
wrong:
	lb_lock_put(&link->out);
	return "req_head";
}

/*
 * Asks for another bell: a bell for the present value may have come too early,
 * for a head covered before some had to wait. [WIRE-4]
 */
void lb_link_renew_want(struct lb_link *link)
{
	lb_lock_get(&link->out);
	if (link->want & 1)
		lb_link_set_want(link, link->want + 2);
	lb_lock_put(&link->out);
}
