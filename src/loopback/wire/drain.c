/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.c -- the rings of the peer are drained, under link.in: records go to
 * the layer above, heads and `sleep` are published, a waiting peer is rung. Any
 * thread. doc/protocols/wire.md has the words with their writers.
 */

#include <stdatomic.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "fault/fault.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/parts.h"
#include "wire/ring.h"

/* a round takes so much of each ring */
#define BOUND_RECORDS 32
#define BOUND_BYTES   (32 * 1024)
/* after so many rounds a full ring is taken */
#define ROUNDS (LB_SEGMENT_RING / LB_RECORD_UNIT / BOUND_RECORDS + 1)

/* --- link --- */

/* Notes whether `sleep` is even. */
void lb_link_set_awake(struct lb_link *link, bool is_awake)
{
	_Atomic uint64_t *word = &link->nic->awake[link->index / 64];
	const uint64_t bit = 1ull << link->index % 64;

	/* relaxed, both: a hint; a missed link is looked at later */
	if (is_awake)
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

/* --- bells */

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
	if (lb_link_ring(link))
		return;
	lb_lock_get(&link->out);
	lb_link_ring_later(link);
	lb_lock_put(&link->out);
}

/* --- stalls by fault rules */

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
		lb_link_spoil(link, what);
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
		lb_link_spoil(link, "ans_tail");
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
		what = link->is_behind ? lb_link_cover(link, run) : NULL;
		link->is_behind = false;
		if (what) {
			lb_link_spoil(link, what);
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
		lb_link_spoil(link, "req_tail");
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
	lb_link_put_held(link);
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
		lb_link_ring_sleeper(link);
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
bool lb_link_drain_all(struct lb_link *link, struct lb_run *run)
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
	lb_link_drain_all(link, run);
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
		lb_link_set_want(link, link->want + 1);
	lb_lock_put(&link->out);
	if (!owes)
		return;
	/* relaxed: as where the count goes up */
	atomic_fetch_sub_explicit(&lb_link_owed, 1, memory_order_relaxed);
	lb_lock_get(&link->in);
	lb_parts_fence(); /* [WIRE-4]: want, then the heads */
	lb_link_drain_all(link, run);
	lb_lock_put(&link->in);
	if (was_denied) /* perhaps no record is on the way that makes room */
		lb_link_tell(link, run);
}

/* --- sleeping */

static void set_sleep(struct lb_link *link)
{
	link->sleep++;
	lb_link_set_awake(link, !(link->sleep & 1));
	/* relaxed [WIRE-3]: odd: a fence follows; even: only a promise */
	atomic_store_explicit(&link->mine->sleep, link->sleep,
			      memory_order_relaxed);
	lb_parts_at(link, LB_POINT_SLEEP);
}

bool lb_link_arm(struct lb_link *link, struct lb_run *run)
{
	bool did = false;

	lb_lock_get(&link->in);
	if (link->theirs) {
		if (!(link->sleep & 1))
			set_sleep(link);
		lb_link_renew_want(link);
		lb_parts_fence(); /* [WIRE-3]: sleep, then the tails */
		did = lb_link_drain_all(link, run);
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
