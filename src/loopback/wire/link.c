/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * link.c -- the rings of a link: requests and answers are put, taken, covered;
 * queue pairs wait for room, bells are rung for sleepers. Any thread, under
 * link.in and link.out. doc/protocols/wire.md has the words with their writers,
 * and why an answer never waits.
 */

#include "wire/link.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "fault/fault.h"
#include "wire/nic.h"
#include "wire/parts.h"
#include "wire/report.h"
#include "wire/ring.h"
#include "wire/socket.h"
#include "wire/watch.h"

/* a round takes so much of each ring */
#define BOUND_RECORDS 32
#define BOUND_BYTES   (32 * 1024)
/* after so many rounds a full ring is taken */
#define ROUNDS (LB_SEGMENT_RING / LB_RECORD_UNIT / BOUND_RECORDS + 1)

_Atomic uint32_t lb_link_ups;
_Atomic uint32_t lb_link_owed;

/* --- awake or ringing */

/* Notes whether `sleep` is even. */
static void set_awake(struct lb_link *link, bool is_awake)
{
	_Atomic uint64_t *word = &link->nic->awake[link->index / 64];
	const uint64_t bit = 1ull << link->index % 64;

	/* relaxed, both: a hint; a missed link is looked at later */
	if (is_awake)
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

/* --- wrong records */

/* under in */
static void wrong(struct lb_link *link, const char *what)
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
		wrong(link, what);
	lb_lock_put(&link->in);
}

/* --- bells */

/*
 * Rings the peer. Either lock is held, so that the socket stays open. Returns
 * true if the bell was heard, or is not needed.
 */
static bool ring(struct lb_link *link)
{
	int err = lb_socket_bell(link->socket.fd);

	lb_parts_at(link, LB_POINT_BELL);
	/* a full socket has an awake reader; a dead socket has no reader */
	return !err || err == EAGAIN || err == EPIPE || err == ECONNRESET;
}

/* Notes an owed bell, which the link thread repeats; under out. */
static void ring_later(struct lb_link *link)
{
	link->is_unheard = true;
	lb_fd_ring(link->nic->wake.fd, 1);
}

/* A tail was published; under out. */
static void ring_sleeper(struct lb_link *link)
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
	if (!ring(link))
		ring_later(link);
}

/* A head was published; under in. */
static void ring_wanting(struct lb_link *link)
{
	uint32_t want;

	lb_parts_fence();
	/* relaxed [WIRE-4]: behind the fence */
	want = atomic_load_explicit(&link->theirs->want, memory_order_relaxed);
	if (lb_likely(!(want & 1) || want == link->rung_want))
		return;
	link->rung_want = want;
	link->in_stats.bells_rung++;
	if (ring(link))
		return;
	lb_lock_get(&link->out);
	ring_later(link);
	lb_lock_put(&link->out);
}

/* --- faults */

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

/* Returns true if taking the next record of a ring is delayed; under in. */
static bool stalls(struct lb_link *link, bool is_answer)
{
	uint32_t delay_us;

	if (link->is_forced)
		return false;
	if (link->was_stalled[is_answer]) {
		link->was_stalled[is_answer] = false;
		return false;
	}
	if (lb_likely(lb_fault_link(LB_LINK_STALL, &delay_us) == LB_LINK_PASS))
		return false;
	lb_log(1, "fault: the link to process %u stalls for %u us",
	       link->number, delay_us);
	link->was_stalled[is_answer] = true;
	link->stalled_until = lb_clock_real_now() + delay_us * 1000ull;
	lb_fd_ring(link->nic->wake.fd, 1); /* the link thread keeps the time */
	return true;
}

/* under in */
static bool is_stalled(const struct lb_link *link)
{
	return !lb_likely(!link->stalled_until) && !link->is_forced &&
	       lb_clock_real_now() < link->stalled_until;
}

uint64_t lb_link_resume(struct lb_link *link, uint64_t now)
{
	uint64_t until;

	lb_lock_get(&link->in);
	until = link->stalled_until;
	if (until && now >= until) {
		link->stalled_until = 0;
		/* like a bell: a bell for later records was heard already */
		lb_fd_ring(link->nic->wake.fd, 1);
	}
	lb_lock_put(&link->in);
	return until ? until : UINT64_MAX;
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

static void set_want(struct lb_link *link, uint32_t want)
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
		set_want(link, link->want + 1);
	if (link->owes_look)
		return;
	link->owes_look = true;
	/* relaxed: counts calls owed under the locks of links */
	atomic_fetch_add_explicit(&lb_link_owed, 1, memory_order_relaxed);
}

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
	ring_sleeper(link);
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
	wrong(link, what);
	return LB_PUT_DEAD;
}

/* Puts the held acknowledgement; under in. */
static void put_held(struct lb_link *link)
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
	put_held(link);
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
	put_held(link);
	*held = *record;
	link->is_held = true;
}

/* --- taking; under in */

/* The rest of the bound of a round. */
struct bound {
	uint32_t records;
	uint32_t bytes;
};

static bool is_spent(const struct bound *bound)
{
	return !bound->records || !bound->bytes;
}

/*
 * Takes the record at *head, which ends at tail at the latest. Returns false if
 * the record is wrong.
 */
static bool take(struct lb_link *link, const uint8_t *ring_bytes,
		 uint64_t *head, uint64_t tail, bool is_answer,
		 struct bound *bound, struct lb_run *run)
{
	struct lb_span payload[3];
	struct lb_record record;
	const char *what;
	uint32_t size;

	lb_ring_header(ring_bytes, *head, &record);
	what = lb_record_wrong(&record, is_answer);
	size = lb_record_size(&record);
	if (!what && size > tail - *head)
		what = "length";
	if (what) {
		wrong(link, what);
		return false;
	}
	lb_ring_payload(ring_bytes, *head, &record, payload);
	link->in_stats.taken++;
	link->in_stats.taken_bytes += record.length;
	link->in_stats.requests_taken += !is_answer;
	if (is_answer)
		link->nic->ops->answer(link, &record, payload, run);
	else
		link->nic->ops->request(link, &record, payload, run);
	*head += size;
	bound->records--;
	bound->bytes -=
		record.length < bound->bytes ? record.length : bound->bytes;
	return !link->wrong; /* an answer may have found no room */
}

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
static void tell(struct lb_link *link, struct lb_run *run)
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
		tell(link, run);
	return end;
}

/*
 * Covers requests up to `behind`: the requests were executed, and their answers
 * taken. Returns NULL, or the fault.
 */
static const char *cover(struct lb_link *link, struct lb_run *run)
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
		set_want(link, link->want + 1);
	lb_lock_put(&link->out);
	if (is_wanted)
		tell(link, run);
	return NULL;
wrong:
	lb_lock_put(&link->out);
	return "req_head";
}

/*
 * Reads the head of the peer in the ring of requests, then the tail of answers:
 * together with the answers up to the tail, the requests before the head are
 * covered. The tail is checked here, the head at its use.
 */
static bool look(struct lb_link *link)
{
	uint64_t behind, tail;

	/* acquire [WIRE-5]: ans_tail has the answers to requests before the
	 * head */
	behind = atomic_load_explicit(&link->theirs->req_head,
				      memory_order_acquire);
	/* acquire [WIRE-1]: pairs with the release in lb_link_answer() */
	tail = atomic_load_explicit(&link->theirs->ans_tail,
				    memory_order_acquire);
	if (!lb_ring_is_tail(tail, link->ans_tail_seen, link->ans_head)) {
		wrong(link, "ans_tail");
		return false;
	}
	link->is_behind = behind != link->behind;
	link->behind = behind;
	link->ans_tail_seen = tail;
	return true;
}

/* Takes the records seen; returns false if a record was wrong. */
static bool take_seen(struct lb_link *link, struct bound *bound,
		      struct lb_run *run)
{
	const uint64_t before = link->ans_head;

	while (link->ans_head != link->ans_tail_seen && !is_spent(bound) &&
	       !stalls(link, true)) {
		if (!take(link, link->theirs->answers, &link->ans_head,
			  link->ans_tail_seen, true, bound, run))
			return false;
	}
	if (link->ans_head == before)
		return true;
	/* release [WIRE-2]: pairs with room_for_answer() */
	atomic_store_explicit(&link->mine->ans_head, link->ans_head,
			      memory_order_release);
	lb_parts_at(link, LB_POINT_ANS_HEAD);
	return true;
}

/* Takes answers seen and left by an earlier round, then present answers. */
static bool take_answers(struct lb_link *link, struct bound *bound,
			 struct lb_run *run)
{
	bool is_fresh = false;
	const char *what;

	for (;;) {
		if (!take_seen(link, bound, run))
			return false;
		if (link->ans_head != link->ans_tail_seen)
			return true;
		what = link->is_behind ? cover(link, run) : NULL;
		link->is_behind = false;
		if (what) {
			wrong(link, what);
			return false;
		}
		if (is_fresh)
			return true;
		is_fresh = true;
		if (!look(link))
			return false;
	}
}

static void take_requests(struct lb_link *link, struct bound *bound,
			  struct lb_run *run)
{
	const uint64_t before = link->req_head;
	/* acquire [WIRE-1]: pairs with the release in request() */
	uint64_t tail = atomic_load_explicit(&link->theirs->req_tail,
					     memory_order_acquire);

	if (!lb_ring_is_tail(tail, link->req_tail_seen, link->req_head)) {
		wrong(link, "req_tail");
		return;
	}
	link->req_tail_seen = tail;
	while (link->req_head != tail && !is_spent(bound) &&
	       !is_stalled(link) && !stalls(link, false)) {
		if (!take(link, link->theirs->requests, &link->req_head, tail,
			  false, bound, run))
			return;
	}
	if (link->req_head == before)
		return;
	put_held(link);
	/* release [WIRE-2] [WIRE-5]: behind the tail of the answers */
	atomic_store_explicit(&link->mine->req_head, link->req_head,
			      memory_order_release);
	lb_parts_at(link, LB_POINT_REQ_HEAD);
}

/*
 * Drains a round. Returns true at the bound, when there may be more; sets *did
 * if there was a record.
 */
static bool drain(struct lb_link *link, struct lb_run *run, bool *did)
{
	struct bound back = {BOUND_RECORDS, BOUND_BYTES}, there = back;
	const uint64_t answers = link->ans_tail, requests = link->req_head;
	const uint64_t behind = link->behind;

	if (!link->theirs || link->wrong || is_stalled(link) ||
	    !lb_likely(take_answers(link, &back, run)))
		return false;
	take_requests(link, &there, run);
	if (link->ans_tail != answers) {
		lb_lock_get(&link->out);
		ring_sleeper(link);
		lb_lock_put(&link->out);
	}
	if (link->req_head != requests)
		ring_wanting(link);
	if (back.records + there.records != 2 * BOUND_RECORDS ||
	    link->behind != behind)
		*did = true;
	return (is_spent(&back) || is_spent(&there)) && !link->wrong;
}

/* Drains everything present at the beginning. */
static bool drain_all(struct lb_link *link, struct lb_run *run)
{
	bool did = false;
	unsigned i;

	for (i = 0; i < ROUNDS && drain(link, run, &did); i++)
		;
	return did;
}

bool lb_link_drain(struct lb_link *link, struct lb_run *run)
{
	bool did = false;

	if (!lb_lock_try(&link->in))
		return false;
	drain(link, run, &did);
	link->finds += did;
	lb_lock_put(&link->in);
	return did;
}

bool lb_link_take(struct lb_link *link, struct lb_run *run)
{
	bool did = false;

	if (!lb_lock_try(&link->in))
		return false;
	drain(link, run, &did);
	lb_lock_put(&link->in);
	return did;
}

void lb_link_catch_up(struct lb_link *link, struct lb_run *run)
{
	lb_lock_get(&link->in);
	link->is_forced = true;
	drain_all(link, run);
	link->is_forced = false;
	lb_lock_put(&link->in);
}

void lb_link_look(struct lb_link *link, struct lb_run *run)
{
	bool owes, was_denied;

	lb_lock_get(&link->out);
	owes = link->owes_look;
	was_denied = link->was_denied;
	link->owes_look = link->was_denied = false;
	if (was_denied && link->want & 1)
		set_want(link, link->want + 1);
	lb_lock_put(&link->out);
	if (!owes)
		return;
	/* relaxed: as where the count goes up */
	atomic_fetch_sub_explicit(&lb_link_owed, 1, memory_order_relaxed);
	lb_lock_get(&link->in);
	lb_parts_fence(); /* [WIRE-4]: want, then the heads */
	drain_all(link, run);
	lb_lock_put(&link->in);
	if (was_denied) /* perhaps no record is on the way that makes room */
		tell(link, run);
}

/* --- sleeping */

static void set_sleep(struct lb_link *link)
{
	link->sleep++;
	set_awake(link, !(link->sleep & 1));
	/* relaxed [WIRE-3]: odd: a fence follows; even: only a promise */
	atomic_store_explicit(&link->mine->sleep, link->sleep,
			      memory_order_relaxed);
	lb_parts_at(link, LB_POINT_SLEEP);
}

/*
 * Asks for another bell: a bell for the present value may have come too early,
 * for a head covered before some had to wait. [WIRE-4]
 */
static void renew_want(struct lb_link *link)
{
	lb_lock_get(&link->out);
	if (link->want & 1)
		set_want(link, link->want + 2);
	lb_lock_put(&link->out);
}

bool lb_link_arm(struct lb_link *link, struct lb_run *run)
{
	bool did = false;

	lb_lock_get(&link->in);
	if (link->theirs) {
		if (!(link->sleep & 1))
			set_sleep(link);
		renew_want(link);
		lb_parts_fence(); /* [WIRE-3]: sleep, then the tails */
		did = drain_all(link, run);
	}
	lb_lock_put(&link->in);
	return did;
}

void lb_link_wake(struct lb_link *link)
{
	lb_lock_get(&link->in);
	link->awake.is_rung = true;
	if (link->theirs && link->sleep & 1) {
		link->awake.was_asleep = true;
		set_sleep(link);
	}
	lb_lock_put(&link->in);
}

uint64_t lb_link_finds(struct lb_link *link)
{
	uint64_t finds;

	lb_lock_get(&link->in);
	finds = link->finds;
	lb_lock_put(&link->in);
	return finds;
}

/* --- messages */

/* under out; the caller keeps the letter on failure */
static int enqueue(struct lb_link *link, struct lb_letter *letter)
{
	if (link->nletters == LB_PARTS_QUEUE)
		return ENOBUFS;
	link->nletters++;
	lb_list_push(&link->letters, &letter->node);
	return 0;
}

/* under out */
static int send_or_keep(struct lb_link *link, struct lb_letter *letter)
{
	int err;

	if (lb_parts_state(link) == LB_LINK_DEAD)
		return ENOTCONN;
	if (!link->mine || link->nletters)
		return enqueue(link, letter);
	err = lb_socket_send(link->socket.fd, letter->bytes, letter->size);
	if (err == EPIPE || err == ECONNRESET)
		return ENOTCONN;
	if (err) {
		err = enqueue(link, letter);
		lb_fd_ring(link->nic->wake.fd, 1);
		return err;
	}
	link->out_stats.messages_sent++;
	free(letter);
	return 0;
}

int lb_link_send(struct lb_link *link, const void *data, size_t size)
{
	struct lb_letter *letter = malloc(sizeof(*letter) + 1 + size);
	int err;

	if (!letter)
		return ENOMEM;
	letter->size = 1 + size;
	letter->bytes[0] = LB_SOCKET_MESSAGE;
	memcpy(letter->bytes + 1, data, size);
	lb_lock_get(&link->out);
	err = send_or_keep(link, letter);
	lb_lock_put(&link->out);
	if (err)
		free(letter);
	if (err == ENOBUFS)
		lb_link_break(link, "queue of messages, which it does not "
				    "take,");
	return err;
}

/* under out */
static bool flush(struct lb_link *link)
{
	while (!lb_list_is_empty(&link->letters)) {
		struct lb_letter *letter =
			lb_entry(link->letters.next, struct lb_letter, node);

		if (lb_socket_send(link->socket.fd, letter->bytes,
				   letter->size))
			return false; /* full, or found dead later */
		lb_list_del(&letter->node);
		link->nletters--;
		link->out_stats.messages_sent++;
		free(letter);
	}
	if (link->is_unheard && !ring(link))
		return false;
	link->is_unheard = false;
	return true;
}

bool lb_link_flush(struct lb_link *link)
{
	bool all = true;

	lb_lock_get(&link->out);
	if (link->mine)
		all = flush(link);
	lb_lock_put(&link->out);
	return all;
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
	set_awake(link, true);
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
	tell(link, run);
}

/* Ends a link. Both locks held: no thread is, or will be, in the segments. */
static void bury(struct lb_link *link, struct lb_list *letters)
{
	set_state(link, LB_LINK_DEAD);
	set_awake(link, false);
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
		drain_all(link, run); /* both tails have their last value */
	link->is_forced = false;
	lb_lock_get(&link->out);
	lb_report_end(link);
	bury(link, &letters);
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
	free_letters(&letters);
	tell(link, run);
}

void lb_link_lose_descriptors(struct lb_link *link)
{
	lb_lock_get(&link->out);
	link->socket.fd = -1;
	link->pidfd.fd = -1;
	lb_lock_put(&link->out);
}

/* In a child: forgets memory mapped only in the parent. */
void lb_link_abandon(struct lb_link *link)
{
	struct lb_list letters;

	link->mine = NULL;
	link->theirs = NULL;
	link->owes_look = false;
	lb_socket_close(&link->socket.fd);
	lb_socket_close(&link->pidfd.fd);
	bury(link, &letters);
	free_letters(&letters);
	while (!lb_list_is_empty(&link->waiting))
		lb_list_del(link->waiting.next);
	while (!lb_list_is_empty(&link->told))
		lb_list_del(link->told.next);
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
