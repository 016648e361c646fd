/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* lend.c -- see lend.h. Labels in brackets: doc/protocols/lend.md. */

#include "poller/lend.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/runtime.h"
#include "base/self.h"
#include "poller/arm.h"
#include "poller/cq_pool.h"
#include "poller/round.h"

/* the thread looks whether a consumer still runs rounds */
#define LOOK_MS 1
/* in a row: other threads do not want the CPU any more */
#define ALONE_LOOKS 4
/* without a function, a future or an SRQ */
#define OTHERS_NS UINT64_C(100000000)

/* Is there nothing that only the poller's thread does? */
static bool is_plain(const struct rt_poller *poller)
{
	return rt_round_has_single(poller) &&
	       cds_list_empty(&poller->cqs[0]->sweeping) && poller->left == 0 &&
	       poller->spilling == NULL && poller->leaving == NULL &&
	       !rt_deliver_is_due(poller) &&
	       !rt_schedule_has_ready(&poller->schedule);
}

/* ---------------------------------------------------- a consumer inside --- */

static struct rt_poller *poller_of(struct rt_owned *owned)
{
	return (struct rt_poller *)((char *)owned -
				    offsetof(struct rt_poller, owned));
}

/* Did an operation succeed, of a route to a lane or to a function of the
 * runtime for any thread? */
static inline bool is_usual(const struct rt_route_entry *entry,
			    const struct ibv_wc *wc)
{
	return rt_round_is_of(entry, wc) && wc->status == IBV_WC_SUCCESS &&
	       (!entry->is_callback || entry->is_sink) &&
	       rt_side_is_healthy(entry->side);
}

/* Returns how many of the completions were delivered: up to the first that is
 * not usual. */
static int deliver_usual(struct rt_poller *poller, struct rt_cq *cq, int n)
{
	const struct rt_route_entry *entry;
	const struct ibv_wc *wc;
	int i;

	for (i = 0; i < n; i++) {
		wc = &poller->wcs[i];
		entry = &cq->routes[rt_wr_id_route(wc->wr_id)];
		if (!is_usual(entry, wc))
			break;
		rt_side_retire(entry->side);
		rt_deliver_touch_side(poller, entry->side);
		if (wc->wr_id & RT_ON_ERROR_ONLY)
			continue;
		if (entry->is_sink)
			entry->sink(rt_wr_id_cookie(wc->wr_id));
		else
			rt_round_to_lane(poller, entry, wc);
	}
	return i;
}

static bool deliver(struct rt_poller *poller, struct rt_cq *cq, int n)
{
	int done;

	rt_order_polled(cq->ibv_cq);
	rt_poller_set_tick(poller, rt_now_ns());
	done = deliver_usual(poller, cq, n);
	cq->taken += (uint64_t)done;
	RT_STAT_ADD(poller, full_polls, done > 0);
	RT_STAT_ADD(poller, completions, done);
	if (done > 0)
		rt_deliver_publish(poller);
	poller->left_at = done;
	poller->left = n - done;
	return is_plain(poller);
}

static bool serve(struct rt_poller *poller)
{
	struct rt_cq *cq;
	int n;

	if (!is_plain(poller))
		return false;
	cq = poller->cqs[0];
	n = ibv_poll_cq(cq->ibv_cq, RT_BATCH, poller->wcs);
	if (n > 0)
		return deliver(poller, cq, n);
	/* the thread will find the error again */
	if (n < 0)
		return false;
	RT_STAT_ADD(poller, empty_polls, 1);
	return true;
}

static bool ring_unless(bool is_done, struct rt_poller *poller)
{
	if (!is_done)
		rt_bell_ring(&poller->bell);
	return is_done;
}

bool rt_lend_serve(struct rt_owned *owned)
{
	struct rt_poller *poller = poller_of(owned);

	rt_owner_count_turn(owned);
	return ring_unless(serve(poller), poller);
}

static bool arm(struct rt_poller *poller)
{
	/* some devices make a system call */
	RT_NOT_CANCELLED;

	return is_plain(poller) &&
	       ibv_req_notify_cq(poller->cqs[0]->ibv_cq, 0) == 0;
}

bool rt_lend_arm(struct rt_owned *owned)
{
	struct rt_poller *poller = poller_of(owned);

	return ring_unless(arm(poller) && serve(poller), poller);
}

/* ------------------------------------------------- the poller's thread --- */

/* Have functions, futures or SRQs had completions a short time ago? Consumers
 * do not run these. */
static bool has_others(struct rt_poller *poller, uint64_t now_ns)
{
	if (poller->has_others) {
		poller->has_others = false;
		poller->others_ns = now_ns;
	}
	return now_ns - poller->others_ns < OTHERS_NS;
}

static bool may_lend(struct rt_poller *poller, uint64_t now_ns)
{
	return rt_lend_is_asked(&poller->lending) &&
	       poller->rt->cfg.timing == 0 && !poller->has_lost_fds &&
	       !has_others(poller, now_ns) && is_plain(poller) &&
	       !rt_lend_has_sleeper(&poller->lending);
}

static uint32_t turns_of(const struct rt_poller *poller)
{
	/* relaxed: compared with an older value, orders nothing */
	return atomic_load_explicit(&poller->owned.turns, memory_order_relaxed);
}

/* Sleeps while consumers run rounds and other threads want the CPU. Returns the
 * errno of descriptors that the program closed, or 0. */
static int sleep_lent(struct rt_poller *poller)
{
	struct epoll_event event;
	int alone = 0;
	uint64_t now;
	uint32_t turns;
	int err;
	int n;

	do {
		turns = turns_of(poller);
		n = rt_fds_wait(poller->epfd, &poller->bell, &event, 1,
				rt_schedule_sleep_ms(poller, LOOK_MS));
		err = errno;
		now = rt_now_ns();
		alone = rt_share_ask(&now) == RT_SHARE_ALONE ? alone + 1 : 0;
	} while (n == 0 && turns_of(poller) != turns && alone < ALONE_LOOKS);
	return n < 0 ? err : 0;
}

bool rt_lend_poller(struct rt_poller *poller, uint64_t now_ns)
{
	int lost = 0;

	if (!may_lend(poller, now_ns))
		return false;
	RT_STAT_ADD(poller, sleeps, 1);
	rt_lend_end_ask(&poller->lending);
	rt_lend_set_lent(&poller->lending, true);
	rt_owner_leave(&poller->owned);
	/* its fence [LEND-1]: lent before the looks that follow */
	rt_bell_prepare(&poller->bell);
	/* acquire: pairs with the release in rt_poller_stop() */
	if (!rt_lend_has_sleeper(&poller->lending) &&
	    rt_inbox_is_empty(&poller->inbox) &&
	    !atomic_load_explicit(&poller->stopping, memory_order_acquire))
		lost = sleep_lent(poller);
	(void)rt_owner_enter(&poller->owned);
	rt_lend_set_lent(&poller->lending, false);
	if (lost)
		rt_channel_lose_fds(poller, lost);
	poller->armed = true;
	rt_channel_wake(poller);
	rt_round_take_over(poller);
	return true;
}
