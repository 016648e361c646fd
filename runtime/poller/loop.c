/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loop.c -- the thread of a poller: rounds, spinning, sleeping; start and end;
 * calls that the poller runs for other threads. A round is in round.c.
 */

#define _GNU_SOURCE
#include "poller/poller.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/thread.h"
#include "base/wait.h"
#include "poller/cq_pool.h"
#include "poller/round.h"

/* ---------------------------------------------------------------- place --- */

/* Chooses the poller of a new object. Under the lock of the runtime. */

bool rt_place_is_valid(const struct rpma_rt *rt, int poller)
{
	return poller >= RPMA_RT_POLLER_LEAST && poller < (int)rt->cfg.pollers;
}

static bool place_is_among(uint64_t among, int poller)
{
	return among == 0 || (among >> poller & 1);
}

/* Returns the least loaded poller, the first of several: so pollers fill in
 * order. */
static int place_least_loaded(const struct rpma_rt *rt, uint64_t among)
{
	int least = -1;
	int i;

	for (i = 0; i < (int)rt->cfg.pollers; i++) {
		if (place_is_among(among, i) &&
		    (least < 0 ||
		     rt->pollers[i].conns < rt->pollers[least].conns))
			least = i;
	}
	return least;
}

static int place_next_in_turn(struct rpma_rt *rt, uint64_t among)
{
	int poller;

	do
		poller = (int)(rt->next_poller++ % rt->cfg.pollers);
	while (!place_is_among(among, poller));
	return poller;
}

struct rt_poller *rt_place_choose(struct rpma_rt *rt, int poller,
				  uint64_t among)
{
	if (poller == RPMA_RT_POLLER_LEAST)
		poller = place_least_loaded(rt, among);
	else if (poller == RPMA_RT_POLLER_ANY)
		poller = place_next_in_turn(rt, among);
	return &rt->pollers[poller];
}

/* ------------------------------------------------------------------ arm --- */

/*
 * The steps of a poller before a sleep: arms all CQs, polls all CQs again, and
 * sleeps only if nothing came. Runs on the poller. doc/protocols/channel.md.
 */

static bool arm_any_spill_has_room(struct rt_poller *poller)
{
	struct rt_lane *lane;

	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next) {
		if (rt_lane_has_room_poller(lane))
			return true;
	}
	return false;
}

/* Sets the timer of a poller run by hand: deadline and back-stop make the fd
 * readable. */
static void arm_set_timer(struct rt_poller *poller)
{
	uint64_t backstop_ns =
		(uint64_t)poller->rt->cfg.backstop_ms * UINT64_C(1000000);
	uint64_t at = rt_schedule_next_ns(poller);
	struct itimerspec when = {0};

	if (backstop_ns != 0 && rt_now_ns() + backstop_ns < at)
		at = rt_now_ns() + backstop_ns;
	if (at != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(at / 1000000000);
		/* + 1: zero would mean "never" */
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
	/* polls every CQ again, after every CQ was armed: a completion that
	 * came before its CQ was armed raised no event */
	rt_cqs_wake_all_poller(poller);
	if (rt_round_run(poller, INT_MAX) > 0)
		return false;
	/* the thread would sleep although the thread was not rung for delivered
	 * items */
	if (rt_left_out_is_due_poller(&poller->left_out, poller->runner))
		return false;
	for (lane = poller->spilling; lane != NULL; lane = lane->spill_next)
		rt_lane_arm_spill_poller(lane);
	rt_bell_prepare(&poller->bell);
	/* acquire: pairs with the release in rt_poller_stop() */
	if (!rt_inbox_is_empty(&poller->inbox) ||
	    arm_any_spill_has_room(poller) ||
	    atomic_load_explicit(&poller->stopping, memory_order_acquire)) {
		rt_bell_cancel(&poller->bell);
		return false;
	}
	poller->armed = true;
	rt_poller_set_tick_asleep(poller);
	if (!poller->threaded)
		arm_set_timer(poller);
	RT_STAT_ADD(poller, sleeps, 1);
	return true;
}

/* ----------------------------------------------------------------- lend --- */

/*
 * A poller of adaptive mode whose thread sleeps while a consumer runs the
 * rounds. Labels in brackets: doc/protocols/lend.md.
 */

/* the thread looks this often whether a consumer still runs rounds */
#define LOOK_MS 1
/* after so many such looks in a row other threads do not want the CPU any
 * more */
#define ALONE_LOOKS 4
/* a poller is lent after this time without a function, a future or an SRQ */
#define OTHERS_NS UINT64_C(100000000)

/* Returns whether there is nothing that only the poller's thread does. */
static bool lend_is_plain(const struct rt_poller *poller)
{
	return rt_round_has_single(poller) &&
	       cds_list_empty(&poller->cqs[0]->sweeping) && poller->left == 0 &&
	       poller->spilling == NULL && poller->leaving == NULL &&
	       !rt_deliver_is_due(poller) &&
	       !rt_schedule_has_ready(&poller->schedule);
}

/* ---------------------------------------------------- a consumer inside --- */

/* Returns whether the completion is a success of a route to a lane, or to a
 * function of the runtime that any thread may call. */
static inline bool lend_is_usual(const struct rt_route_entry *entry,
				 const struct ibv_wc *wc)
{
	return rt_round_is_of(entry, wc) && wc->status == IBV_WC_SUCCESS &&
	       (entry->leads_to == RT_TO_LANE ||
		entry->leads_to == RT_TO_SINK) &&
	       rt_side_is_healthy(entry->side);
}

/* Delivers completions up to the first completion that is not usual. Returns
 * the number of delivered completions. */
static int lend_deliver_usual(struct rt_poller *poller, struct rt_cq *cq, int n)
{
	const struct rt_route_entry *entry;
	const struct ibv_wc *wc;
	int i;

	for (i = 0; i < n; i++) {
		wc = &poller->wcs[i];
		entry = &cq->routes[rt_wr_id_route(wc->wr_id)];
		if (!lend_is_usual(entry, wc))
			break;
		rt_side_retire(entry->side, rt_side_marks(entry->side));
		rt_deliver_touch_side(poller, entry->side);
		if (wc->wr_id & RT_ON_ERROR_ONLY)
			continue;
		if (entry->leads_to == RT_TO_SINK)
			entry->sink(rt_wr_id_cookie(wc->wr_id));
		else
			rt_round_to_lane(poller, entry, wc);
	}
	return i;
}

static bool lend_deliver(struct rt_poller *poller, struct rt_cq *cq, int n)
{
	int done;

	rt_order_polled(cq->ibv_cq);
	rt_poller_set_tick(poller, rt_now_ns());
	done = lend_deliver_usual(poller, cq, n);
	cq->taken += (uint64_t)done;
	RT_STAT_ADD(poller, full_polls, done > 0);
	RT_STAT_ADD(poller, completions, done);
	if (done > 0)
		rt_deliver_publish(poller);
	poller->left_at = done;
	poller->left = n - done;
	return lend_is_plain(poller);
}

static bool lend_serve(struct rt_poller *poller)
{
	struct rt_cq *cq;
	int n;

	if (!lend_is_plain(poller))
		return false;
	cq = poller->cqs[0];
	n = ibv_poll_cq(cq->ibv_cq, RT_BATCH, poller->wcs);
	if (n > 0)
		return lend_deliver(poller, cq, n);
	/* the thread will find the error again */
	if (n < 0)
		return false;
	RT_STAT_ADD(poller, empty_polls, 1);
	return true;
}

static bool lend_ring_unless(bool is_done, struct rt_poller *poller)
{
	if (!is_done)
		rt_bell_ring(&poller->bell);
	return is_done;
}

/* Runs a round, on a consumer inside: delivers everything that leads to lanes,
 * and leaves the rest to the poller's thread. Returns false if that thread is
 * needed, and rings the thread then. */
static bool rt_lend_serve(struct rt_owned *owned)
{
	struct rt_poller *poller = RT_FROM(struct rt_poller, owned, owned);

	rt_owner_count_turn(owned);
	return lend_ring_unless(lend_serve(poller), poller);
}

static bool lend_arm(struct rt_poller *poller)
{
	/* some devices make a system call */
	RT_NOT_CANCELLED;

	return lend_is_plain(poller) &&
	       ibv_req_notify_cq(poller->cqs[0]->ibv_cq, 0) == 0;
}

/* Runs a round as rt_lend_serve() does, after arming the CQ: a later completion
 * wakes the thread. */
static bool rt_lend_arm(struct rt_owned *owned)
{
	struct rt_poller *poller = RT_FROM(struct rt_poller, owned, owned);

	return lend_ring_unless(lend_arm(poller) && lend_serve(poller), poller);
}

/* ------------------------------------------------- the poller's thread --- */

/* Returns whether functions, futures or SRQs had completions a short time ago:
 * consumers do not run these. */
static bool lend_has_others(struct rt_poller *poller, uint64_t now_ns)
{
	if (poller->has_others) {
		poller->has_others = false;
		poller->others_ns = now_ns;
	}
	return now_ns - poller->others_ns < OTHERS_NS;
}

static bool lend_may_lend(struct rt_poller *poller, uint64_t now_ns)
{
	return rt_lend_is_asked(&poller->lending) &&
	       poller->rt->cfg.timing == 0 && !poller->has_lost_fds &&
	       !lend_has_others(poller, now_ns) && lend_is_plain(poller) &&
	       !rt_lend_has_sleeper(&poller->lending);
}

static uint32_t lend_turns_of(const struct rt_poller *poller)
{
	/* relaxed: compared with an older value, orders nothing */
	return atomic_load_explicit(&poller->owned.turns, memory_order_relaxed);
}

/* Sleeps while consumers run rounds and other threads want the CPU. Returns the
 * errno of descriptors that the program closed, or 0. */
static int lend_sleep_lent(struct rt_poller *poller)
{
	struct epoll_event event;
	int alone = 0;
	uint64_t now;
	uint32_t turns;
	int err;
	int n;

	do {
		turns = lend_turns_of(poller);
		n = rt_fds_wait(poller->epfd, &poller->bell, &event, 1,
				rt_schedule_sleep_ms(poller, LOOK_MS));
		err = errno;
		now = rt_now_ns();
		alone = rt_share_ask(&now) == RT_SHARE_ALONE ? alone + 1 : 0;
	} while (n == 0 && lend_turns_of(poller) != turns &&
		 alone < ALONE_LOOKS);
	return n < 0 ? err : 0;
}

/* Lends the poller to consumers and sleeps, as long as a consumer runs rounds.
 * Called on the poller's thread, which found nothing to do and shares its CPU.
 * Returns false if no consumer would run the rounds. */
static bool rt_lend_poller(struct rt_poller *poller, uint64_t now_ns)
{
	int lost = 0;

	if (!lend_may_lend(poller, now_ns))
		return false;
	RT_STAT_ADD(poller, sleeps, 1);
	rt_lend_end_ask(&poller->lending);
	rt_lend_set_lent(&poller->lending, true);
	rt_owner_leave(&poller->owned);
	/* the fence of rt_bell_prepare() [LEND-1]: lent before the looks that
	 * follow */
	rt_bell_prepare(&poller->bell);
	/* acquire: pairs with the release in rt_poller_stop() */
	if (!rt_lend_has_sleeper(&poller->lending) &&
	    rt_inbox_is_empty(&poller->inbox) &&
	    !atomic_load_explicit(&poller->stopping, memory_order_acquire))
		lost = lend_sleep_lent(poller);
	(void)rt_owner_enter(&poller->owned);
	rt_lend_set_lent(&poller->lending, false);
	if (lost)
		rt_channel_lose_fds(poller, lost);
	poller->armed = true;
	rt_channel_wake(poller);
	rt_round_take_over(poller);
	return true;
}

/* --------------------------------------------------------------- poller --- */

#define ROUNDS_PER_CLOCK 64
#define NAP_NS		 INT64_C(10000000)

/* ------------------------------------------------------------- sleeping --- */

static int loop_sleep_on_fd(const struct rt_poller *poller)
{
	uint32_t ms = poller->rt->cfg.backstop_ms;
	struct epoll_event event;

	return rt_fds_wait(
		poller->epfd, &poller->bell, &event, 1,
		rt_schedule_sleep_ms(poller, ms != 0 ? (int)ms : -1));
}

/* Sleeps when no descriptor is left: CQs are polled from time to time, until
 * the control thread has closed the connections. */
static int loop_nap(struct rt_poller *poller)
{
	rt_bell_sleep_armed(&poller->bell, NAP_NS);
	return 0;
}

static void loop_sleep_until_something(struct rt_poller *poller)
{
	bool is_timed = poller->rt->cfg.timing != 0;
	uint64_t asleep_ns = is_timed ? rt_now_ns() : 0;
	int n = poller->has_lost_fds ? loop_nap(poller)
				     : loop_sleep_on_fd(poller);

	if (n < 0)
		rt_channel_lose_fds(poller, errno);
	if (is_timed)
		RT_STAT_ADD(poller, sleeping_ns, rt_now_ns() - asleep_ns);
	poller->timed_out = false;
	if (rt_channel_wake(poller) == 0 && n == 0)
		rt_poller_time_out(poller);
}

/* Counts the time that the poller spun since it became idle. */
static void loop_time_spinning(struct rt_poller *poller)
{
	if (poller->spinning_since_ns == 0)
		return;
	RT_STAT_ADD(poller, spinning_ns,
		    rt_now_ns() - poller->spinning_since_ns);
	poller->spinning_since_ns = 0;
}

static void loop_end_idling(struct rt_poller *poller)
{
	loop_time_spinning(poller);
	poller->idle_since_ns = 0;
	poller->idle_rounds = 0;
}

/* Returns whether the poller has been idle for the spinning budget, or threads
 * that compute want the CPU. Yields the CPU to threads that want the CPU for a
 * moment. */
static bool loop_is_sleepy(struct rt_poller *poller)
{
	const struct rpma_rt_cfg *cfg = &poller->rt->cfg;
	enum rt_share share;
	uint64_t before;
	uint64_t now;

	if (cfg->timing != 0 && poller->spinning_since_ns == 0)
		poller->spinning_since_ns = rt_now_ns();
	if (cfg->mode == RPMA_RT_MODE_BUSY)
		return false;
	if (cfg->mode == RPMA_RT_MODE_EVENT || cfg->spin_us == 0)
		return true;
	if (poller->idle_rounds++ % ROUNDS_PER_CLOCK != 0)
		return false;
	now = rt_now_ns();
	if (poller->idle_since_ns == 0)
		poller->idle_since_ns = now;
	before = now;
	share = rt_share_yield(&now);
	/* the time of other threads does not count as spinning */
	poller->idle_since_ns += now - before;
	rt_poller_set_tick(poller, now);
	if (share != RT_SHARE_ALONE && rt_lend_poller(poller, now)) {
		loop_end_idling(poller);
		return false;
	}
	return share == RT_SHARE_BUSY ||
	       now - poller->idle_since_ns >= (uint64_t)cfg->spin_us * 1000;
}

static void *poller_main(void *arg)
{
	struct rt_poller *poller = arg;

	rt_self_set_poller(poller);
	(void)rt_self_tid(); /* makes the tid known from here on */
	for (;;) {
		if (rt_round_run(poller, INT_MAX) > 0) {
			loop_end_idling(poller);
			continue;
		}
		/* acquire: pairs with the release in rt_poller_stop() */
		if (atomic_load_explicit(&poller->stopping,
					 memory_order_acquire))
			break;
		if (!loop_is_sleepy(poller)) {
			rt_cpu_relax();
		} else if (rt_arm_poller(poller)) {
			loop_time_spinning(poller);
			loop_sleep_until_something(poller);
		}
	}
	return NULL;
}

/* ----------------------------------------------------------- life cycle --- */

int rt_poller_enter(struct rt_poller *poller)
{
	int ret = rt_owner_enter(&poller->owned);

	if (ret)
		return ret;
	rt_self_set_poller(poller);
	/* valid until another thread enters: see rt_poller_enter_own() */
	poller->runner = rt_self_number();
	/* the thread that left rings out may sleep on its queues by now */
	if (!rt_left_out_is_empty(&poller->left_out) &&
	    poller->left_out.by != poller->runner)
		rt_left_out_ring_poller(&poller->left_out);
	return 0;
}

/* Runs a round for a thread that waits for something and is inside already. */
static void loop_run_owned(struct rt_owned *owned)
{
	struct rt_poller *poller = RT_FROM(struct rt_poller, owned, owned);
	uint64_t runner = poller->runner;

	rt_self_set_poller(poller);
	(void)rt_self_tid(); /* as in poller_main() */
	rt_poller_set_tick_ms(poller, rt_now_ms());
	poller->runner = 0;
	/* armed: a thread may be about to sleep on the fd without another look
	 * at what this round delivered */
	if (rt_round_run(poller, RT_BATCH) > 0 && poller->armed)
		rt_bell_ring(&poller->bell);
	if (poller->armed)
		rt_poller_set_tick_asleep(poller);
	poller->runner = runner;
	rt_self_set_poller(NULL);
}

static int loop_init_owned(struct rt_poller *poller)
{
	bool is_last = poller->index + 1 == (int)poller->rt->cfg.pollers;

	rt_owner_init(&poller->owned, poller->index, &poller->inbox,
		      loop_run_owned);
	poller->owned.next = is_last ? NULL : &poller[1].owned;
	if (!poller->threaded)
		return rt_owner_start();
	poller->owned.lending = &poller->lending;
	rt_lend_init(&poller->lending, rt_lend_serve, rt_lend_arm);
	/* the poller's thread is inside from here on, but for the time in which
	 * the poller is lent */
	return rt_owner_enter(&poller->owned);
}

void rt_poller_call_send(struct rt_poller *poller, struct rt_call *call,
			 int (*fn)(void *arg), void *arg)
{
	rt_call_send(call, &poller->inbox, fn, arg);
}

int rt_poller_call_wait(struct rt_poller *poller, struct rt_call *call)
{
	return rt_call_wait(call, poller->threaded ? NULL : &poller->owned);
}

int rt_poller_call(struct rt_poller *poller, int (*fn)(void *arg), void *arg)
{
	struct rt_call call;

	rt_poller_call_send(poller, &call, fn, arg);
	return rt_poller_call_wait(poller, &call);
}

/* Adds a timer to epfd: a program that sleeps on epfd has no timeout of the
 * runtime. */
static int loop_add_timer(struct rt_poller *poller)
{
	struct epoll_event event = {.events = EPOLLIN};

	poller->timer = -1;
	if (poller->threaded)
		return 0;
	event.data.fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (event.data.fd < 0)
		return rt_refuse_system("timerfd_create");
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, event.data.fd, &event)) {
		rt_refuse_system("epoll_ctl");
		close(event.data.fd);
		return RPMA_E_PROVIDER;
	}
	poller->timer = event.data.fd;
	return 0;
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
	rt_poller_set_tick(poller, rt_now_ns());
	rt_schedule_init(poller);
	rt_left_out_init(&poller->left_out);
	rt_future_init_poller(poller);
	poller->threaded = rt->cfg.mode != RPMA_RT_MODE_MANUAL;
	ret = loop_init_owned(poller);
	if (ret)
		return ret;
	poller->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (poller->epfd < 0)
		return rt_refuse_system("epoll_create1");
	ret = rt_bell_init(&poller->bell);
	if (ret)
		goto err_close_epfd;
	event.data.fd = rt_bell_fd(&poller->bell);
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, event.data.fd, &event))
		ret = rt_refuse_system("epoll_ctl");
	if (ret)
		goto err_fini_bell;
	ret = loop_add_timer(poller);
	if (ret)
		goto err_fini_bell;
	ret = rt_inbox_init(&poller->inbox, &poller->bell);
	if (ret)
		goto err_close_timer;
	rt_wait_cond_init(&poller->made);
	return 0;
err_close_timer:
	if (poller->timer >= 0)
		close(poller->timer);
err_fini_bell:
	rt_bell_fini(&poller->bell);
err_close_epfd:
	close(poller->epfd);
	return ret;
}

void rt_poller_fini(struct rt_poller *poller)
{
	pthread_cond_destroy(&poller->made);
	rt_inbox_fini(&poller->inbox);
	rt_left_out_fini(&poller->left_out);
	rt_lend_fini(&poller->lending);
	rt_bell_fini(&poller->bell);
	if (poller->timer >= 0)
		close(poller->timer);
	/* without this check the number may be another descriptor of the
	 * program */
	if (!poller->has_lost_fds)
		close(poller->epfd);
	free(poller->cqs);
}

int rt_poller_start(struct rt_poller *poller)
{
	char name[RT_SPAWN_NAME];

	snprintf(name, sizeof(name), "rt-poll%d", poller->index);
	return rt_spawn(&poller->thread, name, poller->cpu, poller_main,
			poller);
}

void rt_poller_stop(struct rt_poller *poller)
{
	/* release: pairs with the acquires of `stopping` in poller_main(),
	 * rt_arm_poller() and rt_lend_poller() */
	atomic_store_explicit(&poller->stopping, true, memory_order_release);
	rt_bell_ring(&poller->bell);
	if (poller->threaded)
		pthread_join(poller->thread, NULL);
}

void rt_poller_close(struct rt_poller *poller)
{
	while (!poller->threaded && !rt_owner_close(&poller->owned))
		rt_wait_nap(); /* a thread is inside, for a round */
	rt_poller_set_tick(poller, rt_now_ns()); /* the poller may have slept */
	/* messages of the last connection's end give handles back */
	rt_inbox_run_owner(&poller->inbox, poller);
}
