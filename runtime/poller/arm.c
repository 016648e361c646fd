/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * arm.c -- a poller before it sleeps: arms all CQs, polls all again, and sleeps
 * only if nothing came. Runs on the poller. doc/protocols/channel.md.
 */

#include "poller/arm.h"

#include <limits.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "poller/round.h"

static bool any_spill_has_room(struct rt_poller *poller)
{
	struct rt_lane *lane;

	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next) {
		if (rt_lane_has_room_poller(lane))
			return true;
	}
	return false;
}

/* By hand, the deadline and the back-stop make the fd readable. */
static void set_timer(struct rt_poller *poller)
{
	uint64_t backstop_ns =
		(uint64_t)poller->rt->cfg.backstop_ms * UINT64_C(1000000);
	uint64_t at = rt_schedule_next_ns(poller);
	struct itimerspec when = {0};

	if (backstop_ns != 0 && rt_now_ns() + backstop_ns < at)
		at = rt_now_ns() + backstop_ns;
	if (at != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(at / 1000000000);
		/* one more: zero would be never */
		when.it_value.tv_nsec = (long)(at % 1000000000) + (at == 0);
	}
	timerfd_settime(poller->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

bool rt_arm_poller(struct rt_poller *poller)
{
	struct rt_lane *lane;
	int i;

	for (i = 0; i < poller->cqs_count; i++) {
		if (!poller->cqs[i]->dead &&
		    !rt_cq_is_held_up(poller->cqs[i]) &&
		    ibv_req_notify_cq(poller->cqs[i]->ibv_cq, 0))
			rt_cqs_fail_poller(poller, poller->cqs[i]);
	}
	/* every CQ again, after every arm: what came before its arm raised no
	 * event */
	rt_cqs_wake_all_poller(poller);
	if (rt_round_run(poller, INT_MAX) > 0)
		return false;
	/* its thread would sleep on what it delivered and was not rung for */
	if (rt_left_out_is_due_poller(&poller->left_out, poller->runner))
		return false;
	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next)
		rt_lane_arm_spill_poller(lane);
	rt_bell_prepare(&poller->bell);
	/* acquire: pairs with the release in rt_poller_stop() */
	if (!rt_inbox_is_empty(&poller->inbox) || any_spill_has_room(poller) ||
	    atomic_load_explicit(&poller->stopping, memory_order_acquire)) {
		rt_bell_cancel(&poller->bell);
		return false;
	}
	poller->armed = true;
	rt_poller_set_tick_asleep(poller);
	if (!poller->threaded)
		set_timer(poller);
	RT_STAT_ADD(poller, sleeps, 1);
	return true;
}
