/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poller.c -- the loop: poll, route, publish, ring, inbox, sleep. On the
 * success path it touches its own memory, lanes, and one retired count per
 * side; no lock, no allocation, no system call, no clock.
 * doc/protocols/wr_id.md, channel.md, ledger.md, lane.md.
 */

#define _GNU_SOURCE
#include "poller.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "cpu.h"
#include "runtime.h"
#include "settle.h"

#define IDLE_ROUNDS_PER_CLOCK 64

#define unlikely(x) __builtin_expect(!!(x), 0)

static _Thread_local struct rt_poller *self;

struct rt_poller *rt_poller_self(void)
{
	return self;
}

/* ------------------------------------------------------------- delivery --- */

static void touch_lane(struct rt_poller *poller, struct rt_lane *lane)
{
	if (rt_lane_touch_owner(lane)) {
		lane->touched_next = poller->touched_lanes;
		poller->touched_lanes = lane;
	}
}

void rt_poller_write_owner(struct rt_poller *poller, struct rt_lane *lane,
			   const struct rpma_rt_completion *item)
{
	*rt_lane_slot_owner(lane) = *item;
	touch_lane(poller, lane);
	poller->written++;
}

/* A post that was refused may succeed again. */
static void write_writable(struct rt_poller *poller, struct rt_side *side)
{
	struct rpma_rt_conn *conn = side->conn;
	struct rpma_rt_completion item = {
		.context = (uintptr_t)conn,
		/* relaxed: the application orders its own pointer */
		.user = atomic_load_explicit(&conn->user, memory_order_relaxed),
		.qp_num = conn->qp_num,
		.kind = RPMA_RT_WRITABLE,
		.opcode = side->which,
	};

	rt_poller_write_owner(poller, conn->lane, &item);
}

/*
 * Who takes a want away owns it: exactly one WRITABLE. While the connection's
 * own queue is over its limit it waits for that to ease, or WRITABLEs that
 * nobody takes would fill the spill.
 */
static void answer_want(struct rt_poller *poller, struct rt_side *side,
			uint32_t wants)
{
	/* relaxed: ordered by the batch's fence, which pairs with the one
	 * between the poster's store and its second look */
	if ((atomic_load_explicit(&side->want, memory_order_relaxed) & wants) ==
	    0)
		return;
	if (!side->healthy || rt_lane_is_backlogged(side->conn->lane))
		return; /* not healthy: CLOSED answers */
	/* acq_rel: of two takers one gets it */
	if (atomic_fetch_and_explicit(&side->want, ~wants,
				      memory_order_acq_rel) &
	    wants)
		write_writable(poller, side);
}

/* After a backlog cleared: any connection may have waited for it. */
static void answer_all_wants(struct rt_poller *poller)
{
	struct rpma_rt_conn *conn;
	uint32_t slot;
	int i;

	for (slot = 1; slot < RT_MAX_SLOTS && slot <= poller->slots_used;
	     slot++) {
		conn = poller->slots[slot];
		for (i = 0; conn != NULL && i < 2; i++)
			answer_want(poller, &conn->side[i],
				    RT_WANT_CREDIT | RT_WANT_BACKLOG);
	}
}

static void list_spilling(struct rt_poller *poller, struct rt_lane *lane)
{
	if (lane->spill_listed || !rt_lane_is_spilling_owner(lane))
		return;
	lane->spill_listed = true;
	lane->spill_next = poller->spilling;
	poller->spilling = lane;
}

/* Into rings, unseen, and spills: backlog flags are raised before the credits
 * go back. */
static void fill_lanes(struct rt_poller *poller, struct rt_lane *lanes)
{
	struct rt_lane *lane;
	uint32_t before;

	for (lane = lanes; lane != NULL; lane = lane->touched_next) {
		before = rt_lane_spill_count_owner(lane);
		rt_lane_flush_owner(lane);
		RT_STAT_ADD(poller, batches, 1);
		if (unlikely(rt_lane_is_spilling_owner(lane))) {
			RT_STAT_ADD(poller, spilled,
				    rt_lane_spill_count_owner(lane) - before);
			list_spilling(poller, lane);
		}
	}
}

/* After the credits: who takes a completion may post in its place at once. */
static void publish_lanes(struct rt_lane *lanes)
{
	struct rt_lane *lane;

	for (lane = lanes; lane != NULL; lane = lane->touched_next)
		rt_lane_publish_owner(lane);
}

static void publish_retired(struct rt_side *sides)
{
	struct rt_side *side;

	for (side = sides; side != NULL; side = side->touched_next) {
		side->touched = false;
		/* release [LEDGER-1]: pairs with the acquire in post.c; what
		 * was delivered, and the backlog flag, come with the credit */
		atomic_store_explicit(&side->retired, side->count,
				      memory_order_release);
	}
}

static void ring_lanes(struct rt_poller *poller, struct rt_lane *lanes)
{
	struct rt_lane *lane;
	struct rt_lane *next;

	for (lane = lanes; lane != NULL; lane = next) {
		next = lane->touched_next;
		if (rt_lane_bell_owner(lane))
			RT_STAT_ADD(poller, doorbells, 1);
	}
}

static void flush_once(struct rt_poller *poller)
{
	struct rt_lane *lanes = poller->touched_lanes;
	struct rt_side *sides = poller->touched_sides;
	struct rt_side *side;

	poller->touched_lanes = NULL;
	poller->touched_sides = NULL;
	RT_STAT_ADD(poller, delivered, poller->written);
	poller->written = 0;
	fill_lanes(poller, lanes);
	publish_retired(sides);
	publish_lanes(lanes);
	/* the batch's only fence: before it what we published, after it what
	 * sleepers and refused posters wrote [LANE-3] [LEDGER-2] */
	rt_fence_dekker();
	ring_lanes(poller, lanes);
	/* after the lanes' list was walked: this begins a new one */
	for (side = sides; side != NULL; side = side->touched_next)
		answer_want(poller, side, RT_WANT_CREDIT);
}

void rt_poller_flush_owner(struct rt_poller *poller)
{
	while (poller->touched_lanes != NULL || poller->touched_sides != NULL)
		flush_once(poller);
}

/* Moves spills into rings that have room again; how many items. */
static int retry_spills(struct rt_poller *poller)
{
	struct rt_lane **link = &poller->spilling;
	struct rt_lane *lane;
	bool eased = false;
	uint32_t moved;
	int total = 0;

	while ((lane = *link) != NULL) {
		moved = rt_lane_retry_owner(lane);
		total += (int)moved;
		eased |= rt_lane_take_eased_owner(lane);
		if (!rt_lane_is_spilling_owner(lane)) {
			*link = lane->spill_next;
			lane->spill_listed = false;
		} else {
			link = &lane->spill_next;
		}
		if (moved > 0) {
			/* pairs with the consumer's before it sleeps
			 * [LANE-3]; nothing of the lane is used after */
			rt_fence_dekker();
			rt_lane_bell_owner(lane);
		}
	}
	if (eased) {
		/* pairs with the fence of a poster that found the backlog
		 * [LEDGER-2] */
		rt_fence_dekker();
		answer_all_wants(poller);
	}
	return total;
}

/* -------------------------------------------------------------- routing --- */

/* A marker, or a completion of nothing that is open. */
static void route_internal(struct rt_poller *poller, const struct rt_cq *cq,
			   const struct ibv_wc *wc)
{
	uint64_t cookie = rt_wr_id_cookie(wc->wr_id);
	uint32_t kind = (uint32_t)(cookie >> RT_KIND_SHIFT);
	uint32_t slot = (uint32_t)(cookie & RT_SLOT_MASK);
	struct rpma_rt_conn *conn;

	if (wc->wr_id != rt_wr_id_internal(kind, slot) || slot == 0 ||
	    slot >= RT_MAX_SLOTS)
		goto stale;
	conn = poller->slots[slot];
	if (conn == NULL || conn->cq != cq || !conn->bound ||
	    conn->qp_num != wc->qp_num)
		goto stale;
	if (kind == RT_SQ_MARKER)
		rt_conn_marker_owner(conn, RPMA_RT_SEND_SIDE);
	else if (kind == RT_RQ_MARKER)
		rt_conn_marker_owner(conn, RPMA_RT_RECV_SIDE);
	else
		goto stale;
	return;
stale:
	RT_STAT_ADD(poller, stale, 1);
}

static void deliver(struct rt_poller *poller, struct rt_route_entry *entry,
		    const struct ibv_wc *wc)
{
	struct rpma_rt_completion item;

	item.context = rt_wr_id_cookie(wc->wr_id);
	item.user = entry->user;
	item.byte_len = wc->byte_len;
	item.imm = wc->imm_data;
	item.qp_num = wc->qp_num;
	item.kind = RPMA_RT_COMPLETION;
	item.status = IBV_WC_SUCCESS;
	item.opcode = (uint8_t)wc->opcode;
	item.flags = (uint8_t)wc->wc_flags &
		     (RPMA_RT_F_WITH_IMM | RPMA_RT_F_WITH_INV);
	rt_lane_fill_slot(rt_lane_slot_owner(entry->lane), &item);
	touch_lane(poller, entry->lane);
	poller->written++;
}

/* The entry of a completion, NULL if it has none. */
static struct rt_route_entry *
find_route(struct rt_poller *poller, struct rt_cq *cq, const struct ibv_wc *wc)
{
	struct rt_route_entry *entry = &cq->routes[rt_wr_id_route(wc->wr_id)];

	if (entry->qp_key == rt_qp_key(wc->qp_num))
		return entry;
	/* what binds it was sent before its WR was posted: it may be in the
	 * inbox still */
	rt_inbox_run_owner(&poller->inbox, poller);
	if (entry->qp_key == rt_qp_key(wc->qp_num))
		return entry;
	return NULL;
}

static void route(struct rt_poller *poller, struct rt_cq *cq,
		  const struct ibv_wc *wc)
{
	struct rt_route_entry *entry;
	struct rt_side *side;

	entry = find_route(poller, cq, wc);
	if (unlikely(entry == NULL)) {
		route_internal(poller, cq, wc);
		return;
	}
	side = entry->side;
	if (unlikely(wc->status != IBV_WC_SUCCESS || !side->healthy)) {
		rt_conn_unhappy_owner(side, wc);
		return;
	}
	side->count++;
	rt_poller_touch_side_owner(poller, side);
	if (!(wc->wr_id & RT_ON_ERROR_ONLY))
		deliver(poller, entry, wc);
}

/* -------------------------------------------------------------- polling --- */

static void tell_cq_failed(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq = (struct rt_cq *)((char *)msg -
					    offsetof(struct rt_cq, fail_msg));
	struct rpma_rt *rt = owner;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	cq->failed = true;
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->cq == cq)
			rt_conn_die_control(conn, RPMA_RT_REASON_DEVICE, 0);
	}
	pthread_mutex_unlock(&rt->lock);
}

void rt_poller_fail_cq_owner(struct rt_poller *poller, struct rt_cq *cq)
{
	if (cq->dead)
		return;
	cq->dead = true;
	cq->fail_msg.fn = tell_cq_failed;
	rt_inbox_push_mt(&poller->rt->control.inbox, &cq->fail_msg);
}

static int poll_cq(struct rt_poller *poller, struct rt_cq *cq, int max)
{
	int n = ibv_poll_cq(cq->ibv_cq, max, poller->wcs);
	int i;

	RT_STAT_ADD(poller, polls, 1);
	if (n <= 0) {
		if (unlikely(n < 0))
			rt_poller_fail_cq_owner(poller, cq);
		cq->empties++;
		RT_STAT_ADD(poller, empty_polls, 1);
		return 0;
	}
	/* before they are routed: that may run the inbox, and a GONE in it
	 * counts from here what the CQ still holds */
	cq->taken += (uint64_t)n;
	for (i = 0; i < n; i++)
		route(poller, cq, &poller->wcs[i]);
	RT_STAT_ADD(poller, completions, n);
	return n;
}

static int poll_all(struct rt_poller *poller, int budget)
{
	struct rt_cq *cq;
	int done = 0;
	int max;
	int i;

	if (poller->cqs_count == 0)
		return 0;
	if (++poller->cqs_first >= poller->cqs_count)
		poller->cqs_first = 0;
	for (i = 0; i < poller->cqs_count && done < budget; i++) {
		cq = poller->cqs[(poller->cqs_first + i) % poller->cqs_count];
		max = budget - done < RT_BATCH ? budget - done : RT_BATCH;
		if (!cq->dead)
			done += poll_cq(poller, cq, max);
	}
	return done;
}

/* The connections that drain or are swept; how many made a step. */
static int tend_dying(struct rt_poller *poller)
{
	struct rpma_rt_conn **link = &poller->dying;
	struct rpma_rt_conn *conn;
	uint64_t now = rt_now_ns();
	int steps = 0;

	while ((conn = *link) != NULL) {
		if (conn->ps == RT_PS_SETTLING
			    ? rt_conn_try_drained_owner(conn, now)
			    : rt_conn_try_swept_owner(conn)) {
			*link = conn->dying_next;
			steps++;
		} else {
			link = &conn->dying_next;
		}
	}
	return steps;
}

int rt_poller_round_owner(struct rt_poller *poller, int budget)
{
	int done = poll_all(poller, budget);

	rt_poller_flush_owner(poller);
	if (unlikely(poller->timed_out)) {
		poller->timed_out = false;
		if (done > 0 && rt_poller_wake_owner(poller) == 0)
			RT_STAT_ADD(poller, lost_events_recovered, 1);
	}
	if (poller->spilling != NULL)
		done += retry_spills(poller);
	if (!rt_inbox_is_empty(&poller->inbox))
		done += rt_inbox_run_owner(&poller->inbox, poller);
	if (poller->dying != NULL)
		done += tend_dying(poller);
	rt_poller_flush_owner(poller);
	return done;
}

/* ------------------------------------------------------------- sleeping --- */

static bool any_spill_has_room(struct rt_poller *poller)
{
	struct rt_lane *lane;

	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next) {
		if (rt_lane_has_room_owner(lane))
			return true;
	}
	return false;
}

bool rt_poller_arm_owner(struct rt_poller *poller)
{
	struct rt_lane *lane;
	int i;

	/* by hand nobody watches the deadline of what drains */
	if (poller->dying != NULL && !poller->threaded)
		return false;
	for (i = 0; i < poller->cqs_count; i++) {
		if (!poller->cqs[i]->dead &&
		    ibv_req_notify_cq(poller->cqs[i]->ibv_cq, 0))
			rt_poller_fail_cq_owner(poller, poller->cqs[i]);
	}
	/* every CQ again, after every arm: what came before its arm raised no
	 * event */
	if (rt_poller_round_owner(poller, INT_MAX) > 0)
		return false;
	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next)
		rt_lane_arm_spill_owner(lane);
	rt_bell_prepare(&poller->bell);
	/* acquire: pairs with the release in rt_poller_stop() */
	if (!rt_inbox_is_empty(&poller->inbox) || any_spill_has_room(poller) ||
	    atomic_load_explicit(&poller->stopping, memory_order_acquire)) {
		rt_bell_cancel(&poller->bell);
		return false;
	}
	poller->armed = true;
	RT_STAT_ADD(poller, sleeps, 1);
	return true;
}

static void ack(struct rt_poller *poller, struct rt_cq *cq)
{
	if (cq->unacked == 0)
		return;
	ibv_ack_cq_events(cq->ibv_cq, cq->unacked);
	cq->unacked = 0;
	RT_STAT_ADD(poller, acks, 1);
}

static void fail_channel(struct rt_poller *poller, struct rt_channel *channel)
{
	int i;

	channel->dead = true;
	epoll_ctl(poller->epfd, EPOLL_CTL_DEL, channel->fd, NULL);
	for (i = 0; i < poller->cqs_count; i++) {
		if (poller->cqs[i]->channel == channel)
			rt_poller_fail_cq_owner(poller, poller->cqs[i]);
	}
}

/* Reads until there is none; how many. */
static int read_channel(struct rt_poller *poller, struct rt_channel *channel)
{
	struct ibv_cq *ibv_cq;
	struct rt_cq *cq;
	void *rpma_cq;
	void *context;
	int count = 0;

	for (;;) {
		if (ibv_get_cq_event(channel->ibv_channel, &ibv_cq, &rpma_cq)) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				fail_channel(poller, channel);
			break;
		}
		count++;
		if (rpma_cq_get_context(rpma_cq, &context)) {
			ibv_ack_cq_events(ibv_cq, 1);
			continue;
		}
		cq = context;
		if (++cq->unacked >= RT_ACK_BATCH)
			ack(poller, cq);
	}
	RT_STAT_ADD(poller, events, count);
	return count;
}

int rt_poller_wake_owner(struct rt_poller *poller)
{
	struct rt_channel *channel;
	int count = 0;

	if (poller->armed) {
		rt_bell_cancel(&poller->bell);
		poller->armed = false;
	}
	for (channel = poller->reading; channel != NULL;
	     channel = channel->poller_next) {
		if (!channel->dead)
			count += read_channel(poller, channel);
	}
	return count;
}

/* How long it may sleep, in milliseconds; -1: until something happens. */
static int sleep_ms(const struct rt_poller *poller)
{
	const struct rpma_rt_cfg *cfg = &poller->rt->cfg;
	const struct rpma_rt_conn *conn;
	uint64_t now;
	uint64_t ms;
	int min = cfg->backstop_ms ? (int)cfg->backstop_ms : -1;

	if (poller->dying == NULL)
		return min;
	now = rt_now_ns();
	for (conn = poller->dying; conn != NULL; conn = conn->dying_next) {
		ms = conn->deadline_ns > now
			     ? (conn->deadline_ns - now) / 1000000 + 1
			     : 0;
		if (min < 0 || ms < (uint64_t)min)
			min = (int)ms;
	}
	return min;
}

static void sleep_until_something(struct rt_poller *poller)
{
	struct epoll_event event;
	int n;

	n = epoll_wait(poller->epfd, &event, 1, sleep_ms(poller));
	poller->timed_out = rt_poller_wake_owner(poller) == 0 && n == 0;
}

/* Has it been idle for its budget? */
static bool is_sleepy(struct rt_poller *poller)
{
	const struct rpma_rt_cfg *cfg = &poller->rt->cfg;
	uint64_t now;

	if (cfg->mode == RPMA_RT_MODE_BUSY)
		return false;
	if (cfg->mode == RPMA_RT_MODE_EVENT || cfg->spin_us == 0)
		return true;
	if (poller->idle_rounds++ % IDLE_ROUNDS_PER_CLOCK != 0)
		return false;
	now = rt_now_ns();
	if (poller->idle_since_ns == 0)
		poller->idle_since_ns = now;
	return now - poller->idle_since_ns >= (uint64_t)cfg->spin_us * 1000;
}

static void *poller_main(void *arg)
{
	struct rt_poller *poller = arg;

	rt_cpu_pin_self(poller->cpu);
	self = poller;
	for (;;) {
		if (rt_poller_round_owner(poller, INT_MAX) > 0) {
			poller->idle_since_ns = 0;
			poller->idle_rounds = 0;
			continue;
		}
		/* acquire: pairs with the release in rt_poller_stop() */
		if (atomic_load_explicit(&poller->stopping,
					 memory_order_acquire))
			break;
		if (!is_sleepy(poller))
			rt_cpu_relax();
		else if (rt_poller_arm_owner(poller))
			sleep_until_something(poller);
	}
	return NULL;
}

/* ----------------------------------------------------------- life cycle --- */

void rt_poller_add_cq(struct rt_msg *msg, void *owner)
{
	struct rt_cq *cq =
		(struct rt_cq *)((char *)msg - offsetof(struct rt_cq, add_msg));
	struct rt_poller *poller = owner;
	struct rt_cq **cqs;

	if (poller->cqs_count == poller->cqs_max) {
		cqs = realloc(poller->cqs, (size_t)(poller->cqs_max * 2 + 4) *
						   sizeof(struct rt_cq *));
		if (cqs == NULL) {
			/* not polled, so as good as dead */
			rt_poller_fail_cq_owner(poller, cq);
			return;
		}
		poller->cqs = cqs;
		poller->cqs_max = poller->cqs_max * 2 + 4;
	}
	poller->cqs[poller->cqs_count++] = cq;
	if (!cq->channel->known) {
		cq->channel->known = true;
		cq->channel->poller_next = poller->reading;
		poller->reading = cq->channel;
	}
}

bool rt_poller_try_enter(struct rt_poller *poller, enum rt_runner as)
{
	uint32_t runner;

	do {
		runner = RT_RUNNER_NONE;
		/* acquire: pairs with the release in rt_poller_leave(), so
		 * that what the last one did is seen; failure: nothing is */
		if (atomic_compare_exchange_strong_explicit(
			    &poller->running, &runner, as, memory_order_acquire,
			    memory_order_relaxed)) {
			self = poller;
			return true;
		}
		rt_cpu_relax();
	} while (as == RT_RUNNER_OWNER && runner == RT_RUNNER_ASSIST);
	return false;
}

void rt_poller_leave(struct rt_poller *poller)
{
	self = NULL;
	/* release: pairs with the acquire in rt_poller_try_enter() */
	atomic_store_explicit(&poller->running, RT_RUNNER_NONE,
			      memory_order_release);
}

int rt_poller_init(struct rt_poller *poller, struct rpma_rt *rt, int index,
		   int cpu)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ret;

	memset(poller, 0, sizeof(*poller));
	poller->rt = rt;
	poller->index = index;
	poller->cpu = cpu;
	poller->threaded = rt->cfg.mode != RPMA_RT_MODE_MANUAL;
	poller->slots_next = 1;
	poller->slots = calloc(RT_MAX_SLOTS, sizeof(*poller->slots));
	poller->slots_returned =
		calloc(RT_MAX_SLOTS, sizeof(*poller->slots_returned));
	ret = RPMA_E_NOMEM;
	if (poller->slots == NULL || poller->slots_returned == NULL)
		goto err_free_slots;
	poller->epfd = epoll_create1(EPOLL_CLOEXEC);
	ret = RPMA_E_PROVIDER;
	if (poller->epfd < 0)
		goto err_free_slots;
	ret = rt_bell_init(&poller->bell);
	if (ret)
		goto err_close_epfd;
	event.data.fd = rt_bell_fd(&poller->bell);
	ret = RPMA_E_PROVIDER;
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, event.data.fd, &event))
		goto err_fini_bell;
	ret = rt_inbox_init(&poller->inbox, &poller->bell);
	if (ret)
		goto err_fini_bell;
	return 0;
err_fini_bell:
	rt_bell_fini(&poller->bell);
err_close_epfd:
	close(poller->epfd);
err_free_slots:
	free(poller->slots_returned);
	free(poller->slots);
	return ret;
}

void rt_poller_fini(struct rt_poller *poller)
{
	rt_inbox_fini(&poller->inbox);
	rt_bell_fini(&poller->bell);
	close(poller->epfd);
	free(poller->cqs);
	free(poller->slots_returned);
	free(poller->slots);
}

int rt_poller_start(struct rt_poller *poller)
{
	/* relaxed: the thread's creation orders it */
	atomic_store_explicit(&poller->running, RT_RUNNER_OWNER,
			      memory_order_relaxed);
	if (pthread_create(&poller->thread, NULL, poller_main, poller))
		return RPMA_E_PROVIDER;
	return 0;
}

void rt_poller_stop(struct rt_poller *poller)
{
	/* release: pairs with the acquires in poller_main() and in arm */
	atomic_store_explicit(&poller->stopping, true, memory_order_release);
	rt_bell_ring(&poller->bell);
	if (poller->rt->cfg.mode != RPMA_RT_MODE_MANUAL)
		pthread_join(poller->thread, NULL);
}
