/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loop.c -- a poller's thread: rounds, spinning, sleeping; its start and end;
 * calls that it answers. A round is in round.c.
 */

#define _GNU_SOURCE
#include "poller/poller.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/thread.h"
#include "base/wait.h"
#include "poller/arm.h"
#include "poller/cq_pool.h"
#include "poller/lend.h"
#include "poller/round.h"

#define ROUNDS_PER_CLOCK 64
#define NAP_NS		 INT64_C(10000000)

/* ------------------------------------------------------------- sleeping --- */

static int sleep_on_fd(const struct rt_poller *poller)
{
	uint32_t ms = poller->rt->cfg.backstop_ms;
	struct epoll_event event;

	return rt_fds_wait(
		poller->epfd, &poller->bell, &event, 1,
		rt_schedule_sleep_ms(poller, ms != 0 ? (int)ms : -1));
}

/* Sleeps where no descriptor is left: CQs are polled from time to time, until
 * the control thread has closed what is on them. */
static int nap(struct rt_poller *poller)
{
	rt_bell_sleep_armed(&poller->bell, NAP_NS);
	return 0;
}

static void sleep_until_something(struct rt_poller *poller)
{
	bool is_timed = poller->rt->cfg.timing != 0;
	uint64_t asleep_ns = is_timed ? rt_now_ns() : 0;
	int n = poller->has_lost_fds ? nap(poller) : sleep_on_fd(poller);

	if (n < 0)
		rt_channel_lose_fds(poller, errno);
	if (is_timed)
		RT_STAT_ADD(poller, sleeping_ns, rt_now_ns() - asleep_ns);
	poller->timed_out = rt_channel_wake(poller) == 0 && n == 0;
}

/* Counts the time that the poller spun since it became idle. */
static void time_spinning(struct rt_poller *poller)
{
	if (poller->spinning_since_ns == 0)
		return;
	RT_STAT_ADD(poller, spinning_ns,
		    rt_now_ns() - poller->spinning_since_ns);
	poller->spinning_since_ns = 0;
}

static void end_idling(struct rt_poller *poller)
{
	time_spinning(poller);
	poller->idle_since_ns = 0;
	poller->idle_rounds = 0;
}

/* Has the poller been idle for its spinning budget, or do threads that compute
 * want the CPU? Gives the CPU up to threads that want the CPU for a moment. */
static bool is_sleepy(struct rt_poller *poller)
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
	/* the time of other threads is no spinning */
	poller->idle_since_ns += now - before;
	rt_poller_set_tick(poller, now);
	if (share != RT_SHARE_ALONE && rt_lend_poller(poller, now)) {
		end_idling(poller);
		return false;
	}
	return share == RT_SHARE_BUSY ||
	       now - poller->idle_since_ns >= (uint64_t)cfg->spin_us * 1000;
}

static void *poller_main(void *arg)
{
	struct rt_poller *poller = arg;

	rt_self_set_poller(poller);
	(void)rt_self_tid(); /* from now on it is known */
	for (;;) {
		if (rt_round_run(poller, INT_MAX) > 0) {
			end_idling(poller);
			continue;
		}
		/* acquire: pairs with the release in rt_poller_stop() */
		if (atomic_load_explicit(&poller->stopping,
					 memory_order_acquire))
			break;
		if (!is_sleepy(poller)) {
			rt_cpu_relax();
		} else if (rt_arm_poller(poller)) {
			time_spinning(poller);
			sleep_until_something(poller);
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
	/* until another thread enters: see rt_poller_enter_own() */
	poller->runner = rt_self_number();
	/* the thread that left rings out may sleep on its queues by now */
	if (!rt_left_out_is_empty(&poller->left_out) &&
	    poller->left_out.by != poller->runner)
		rt_left_out_ring_poller(&poller->left_out);
	return 0;
}

void rt_poller_leave(struct rt_poller *poller)
{
	rt_self_set_poller(NULL);
	rt_owner_leave(&poller->owned);
}

/* A round by a thread that waits for something, and is inside already. */
static void run_owned(struct rt_owned *owned)
{
	struct rt_poller *poller =
		(struct rt_poller *)((char *)owned -
				     offsetof(struct rt_poller, owned));
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

static int init_owned(struct rt_poller *poller)
{
	bool is_last = poller->index + 1 == (int)poller->rt->cfg.pollers;

	rt_owner_init(&poller->owned, poller->index, &poller->inbox, run_owned);
	poller->owned.next = is_last ? NULL : &poller[1].owned;
	if (!poller->threaded)
		return rt_owner_start();
	poller->owned.lending = &poller->lending;
	rt_lend_init(&poller->lending, rt_lend_serve, rt_lend_arm);
	/* its thread is inside from here on, but for the time that it lends
	 * the poller */
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

/* A program that sleeps on epfd has no timeout of ours: adds a timer to it. */
static int add_timer(struct rt_poller *poller)
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
	ret = init_owned(poller);
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
	ret = add_timer(poller);
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
	/* else the number may be another descriptor of the program */
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
	/* release: pairs with the acquires in poller_main() and in arm */
	atomic_store_explicit(&poller->stopping, true, memory_order_release);
	rt_bell_ring(&poller->bell);
	if (poller->threaded)
		pthread_join(poller->thread, NULL);
}

void rt_poller_close(struct rt_poller *poller)
{
	while (!poller->threaded && !rt_owner_close(&poller->owned))
		rt_wait_nap(); /* a thread is inside, for a round */
	rt_poller_set_tick(poller, rt_now_ns()); /* it may have slept */
	/* what came with the last connection's end: it gives handles back */
	rt_inbox_run_owner(&poller->inbox, poller);
}
