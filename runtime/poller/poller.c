/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poller.c -- the loop: poll, route, flush, inbox, sleep. On the
 * success path it touches its own memory, lanes, and one retired count per
 * side; no lock, no allocation, no system call, no clock.
 * doc/protocols/wr_id.md, channel.md, ledger.md, lane.md.
 */

#define _GNU_SOURCE
#include "poller/poller.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "adopt.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/wait.h"

#define ROUNDS_PER_TICK	 1024 /* while it is never idle */
#define ROUNDS_PER_CLOCK 64

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* -------------------------------------------------------------- routing --- */

static inline struct rpma_rt_completion
item_of(const struct rt_route_entry *entry, const struct ibv_wc *wc)
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
	return item;
}

/* Apart: where the item's address is taken it is put together in memory, from
 * narrow stores, which costs deliver() 5 ns a completion. */
__attribute__((noinline)) static void
deliver_call(struct rt_poller *poller, const struct rt_route_entry *entry,
	     const struct ibv_wc *wc)
{
	struct rpma_rt_completion item = item_of(entry, wc);

	rt_callback_add(poller, entry->callback, &item);
}

static void deliver(struct rt_poller *poller,
		    const struct rt_route_entry *entry, const struct ibv_wc *wc)
{
	struct rpma_rt_completion item;

	if (unlikely(entry->is_callback)) {
		deliver_call(poller, entry, wc);
		return;
	}
	item = item_of(entry, wc);
	rt_lane_fill_slot(rt_lane_slot_poller(entry->lane), &item);
	rt_deliver_touch_lane(poller, entry->lane);
	poller->written++;
}

static bool is_route_of(const struct rt_route_entry *entry,
			const struct ibv_wc *wc)
{
	return entry->qp_key == rt_qp_key(wc->qp_num);
}

/* What is not a route's that is bound: a reserved number's, late, stale. */
__attribute__((noinline)) static bool
route_otherwise(struct rt_poller *poller, struct rt_cq *cq,
		const struct rt_route_entry *entry, const struct ibv_wc *wc)
{
	uint32_t number = rt_wr_id_route(wc->wr_id);

	if (number < RT_ROUTE_FIRST && poller->reserved[number].ops != NULL) {
		poller->reserved[number].ops->completion(poller, cq, wc);
		return true;
	}
	/* what binds it was sent before its WR was posted: it may be in the
	 * inbox still */
	rt_inbox_run_owner(&poller->inbox, poller);
	if (is_route_of(entry, wc))
		return false;
	RT_STAT_ADD(poller, stale, 1);
	return true;
}

static void route(struct rt_poller *poller, struct rt_cq *cq,
		  const struct ibv_wc *wc)
{
	struct rt_route_entry *entry = &cq->routes[rt_wr_id_route(wc->wr_id)];
	struct rt_side *side;

	if (unlikely(!is_route_of(entry, wc)) &&
	    route_otherwise(poller, cq, entry, wc))
		return;
	side = entry->side;
	if (unlikely(wc->status != IBV_WC_SUCCESS || !side->healthy)) {
		side->ops->failed(side, wc);
		return;
	}
	side->count++;
	rt_deliver_touch_side(poller, side);
	if (!(wc->wr_id & RT_ON_ERROR_ONLY))
		deliver(poller, entry, wc);
}

/* -------------------------------------------------------------- polling --- */

void rt_poller_fail_cq(struct rt_poller *poller, struct rt_cq *cq)
{
	cq->dead = true;
	rt_schedule_ready_all(poller, &cq->draining);
	rt_schedule_ready_all(poller, &cq->sweeping);
	rt_cq_pool_fail_mt(cq);
}

void rt_poller_await_sweep(struct rt_poller *poller, struct rt_cq *cq,
			   struct rt_task *task)
{
	task->until_taken = cq->taken + cq->cqe;
	if (cq->dead)
		rt_schedule_ready(poller, task);
	else
		rt_schedule_wait(task, &cq->sweeping);
}

/* It was polled: of those that wait for that some may have waited enough. */
__attribute__((noinline)) static void end_waits(struct rt_poller *poller,
						struct rt_cq *cq, bool is_empty)
{
	struct rt_task *task;

	if (is_empty) {
		rt_schedule_ready_all(poller, &cq->sweeping);
		return;
	}
	while (!cds_list_empty(&cq->sweeping)) {
		task = cds_list_first_entry(&cq->sweeping, struct rt_task,
					    link);
		if (cq->taken < task->until_taken)
			break;
		rt_schedule_ready(poller, task);
	}
}

static void time_batch(struct rt_poller *poller)
{
	if (++poller->untimed < poller->rt->cfg.timing)
		return;
	poller->untimed = 0;
	if (poller->polled_ns == 0)
		poller->polled_ns = rt_now_ns();
}

static int poll_cq(struct rt_poller *poller, struct rt_cq *cq, int max)
{
	int n = ibv_poll_cq(cq->ibv_cq, max, poller->wcs);
	int i;

	RT_STAT_ADD(poller, polls, 1);
	if (n <= 0) {
		if (unlikely(n < 0))
			rt_poller_fail_cq(poller, cq);
		if (unlikely(!cds_list_empty(&cq->sweeping)))
			end_waits(poller, cq, true);
		RT_STAT_ADD(poller, empty_polls, 1);
		return 0;
	}
	if (unlikely(poller->rt->cfg.timing != 0))
		time_batch(poller);
	/* before they are routed: that may run the inbox, and a GONE in it
	 * counts from here what the CQ still holds */
	cq->taken += (uint64_t)n;
	for (i = 0; i < n; i++)
		route(poller, cq, &poller->wcs[i]);
	if (unlikely(!cds_list_empty(&cq->sweeping)))
		end_waits(poller, cq, false);
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

/* With what it has adopted, by turns first, that a budget starves neither. */
static int poll_adopted_too(struct rt_poller *poller, int budget)
{
	int done = 0;

	poller->adopted_first = !poller->adopted_first;
	if (poller->adopted_first)
		done = rt_adopt_poll(poller, budget);
	if (done < budget)
		done += poll_all(poller, budget - done);
	if (!poller->adopted_first && done < budget)
		done += rt_adopt_poll(poller, budget - done);
	return done;
}

int rt_round_run(struct rt_poller *poller, int budget)
{
	int done = likely(poller->adopted == NULL)
			   ? poll_all(poller, budget)
			   : poll_adopted_too(poller, budget);

	if (unlikely(++poller->rounds % ROUNDS_PER_TICK == 0))
		rt_poller_set_tick(poller, rt_now_ns());
	rt_deliver_flush(poller);
	if (unlikely(poller->timed_out)) {
		poller->timed_out = false;
		if (done > 0 && rt_channel_wake(poller) == 0)
			RT_STAT_ADD(poller, lost_events_recovered, 1);
	}
	if (poller->spilling != NULL)
		done += rt_deliver_retry_spills(poller);
	if (!rt_inbox_is_empty(&poller->inbox))
		done += rt_inbox_run_some_owner(&poller->inbox, poller,
						RT_SCHEDULE_UNITS);
	if (unlikely(poller->leaving != NULL))
		done += rt_channel_let_go(poller);
	if (unlikely(!rt_schedule_is_empty(&poller->schedule)))
		done += rt_schedule_run(poller, done == 0);
	rt_deliver_flush(poller);
	return done;
}

/* ------------------------------------------------------------- sleeping --- */

/* How long it may sleep, in milliseconds; -1: until something happens. */
static int sleep_ms(const struct rt_poller *poller)
{
	const struct rpma_rt_cfg *cfg = &poller->rt->cfg;
	uint64_t deadline = rt_schedule_next_ns(poller);
	int ms = cfg->backstop_ms ? (int)cfg->backstop_ms : -1;
	uint64_t now;
	uint64_t left;

	if (deadline == UINT64_MAX)
		return ms;
	now = rt_now_ns();
	left = deadline > now ? (deadline - now) / 1000000 + 1 : 0;
	return ms < 0 || left < (uint64_t)ms ? (int)left : ms;
}

static void sleep_until_something(struct rt_poller *poller)
{
	bool is_timed = poller->rt->cfg.timing != 0;
	uint64_t asleep_ns = is_timed ? rt_now_ns() : 0;
	struct epoll_event event;
	int n;

	n = epoll_wait(poller->epfd, &event, 1, sleep_ms(poller));
	if (is_timed)
		RT_STAT_ADD(poller, sleeping_ns, rt_now_ns() - asleep_ns);
	poller->timed_out = rt_channel_wake(poller) == 0 && n == 0;
}

/* What it spun since it was last idle without a sleep. */
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

/* Has it been idle for its budget? */
static bool is_sleepy(struct rt_poller *poller)
{
	const struct rpma_rt_cfg *cfg = &poller->rt->cfg;
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
	rt_poller_set_tick(poller, now);
	if (poller->idle_since_ns == 0)
		poller->idle_since_ns = now;
	return now - poller->idle_since_ns >= (uint64_t)cfg->spin_us * 1000;
}

static void *poller_main(void *arg)
{
	struct rt_poller *poller = arg;

	rt_cpu_pin_self(poller->cpu);
	rt_self_set_poller(poller);
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
		} else if (rt_channel_arm(poller)) {
			time_spinning(poller);
			sleep_until_something(poller);
		}
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
			rt_poller_fail_cq(poller, cq);
			return;
		}
		poller->cqs = cqs;
		poller->cqs_max = poller->cqs_max * 2 + 4;
	}
	cq->place = poller->cqs_count;
	poller->cqs[poller->cqs_count++] = cq;
	if (!cq->channel->known) {
		cq->channel->known = true;
		cq->channel->poller_next = poller->reading;
		poller->reading = cq->channel;
	}
	/* made before it was known that nothing on the channel wakes us */
	if (cq->channel->dead)
		rt_poller_fail_cq(poller, cq);
}

int rt_poller_enter(struct rt_poller *poller)
{
	int ret = rt_owner_enter(&poller->owned);

	if (ret == 0)
		rt_self_set_poller(poller);
	return ret;
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

	rt_self_set_poller(poller);
	/* armed: its owner may be about to sleep on the fd without another
	 * look at what this round delivered */
	if (rt_round_run(poller, RT_BATCH) > 0 && poller->armed)
		rt_bell_ring(&poller->bell);
	rt_self_set_poller(NULL);
}

static int init_owned(struct rt_poller *poller)
{
	bool is_last = poller->index + 1 == poller->rt->cfg.pollers;

	if (poller->threaded)
		return 0;
	rt_owner_init(&poller->owned, poller->index, &poller->inbox, run_owned);
	poller->owned.next = is_last ? NULL : &poller[1].owned;
	return rt_owner_start();
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

/* Who sleeps on epfd by itself has no timeout of ours: a timer in it. */
static int add_timer(struct rt_poller *poller)
{
	struct epoll_event event = {.events = EPOLLIN};

	poller->timer = -1;
	if (poller->threaded)
		return 0;
	event.data.fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (event.data.fd < 0)
		return RPMA_E_PROVIDER;
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, event.data.fd, &event)) {
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
	poller->threaded = rt->cfg.mode != RPMA_RT_MODE_MANUAL;
	ret = init_owned(poller);
	if (ret)
		return ret;
	poller->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (poller->epfd < 0)
		return RPMA_E_PROVIDER;
	ret = rt_bell_init(&poller->bell);
	if (ret)
		goto err_close_epfd;
	event.data.fd = rt_bell_fd(&poller->bell);
	ret = RPMA_E_PROVIDER;
	if (epoll_ctl(poller->epfd, EPOLL_CTL_ADD, event.data.fd, &event))
		goto err_fini_bell;
	ret = add_timer(poller);
	if (ret)
		goto err_fini_bell;
	ret = rt_inbox_init(&poller->inbox, &poller->bell);
	if (ret)
		goto err_close_timer;
	pthread_cond_init(&poller->made, NULL);
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
	rt_bell_fini(&poller->bell);
	if (poller->timer >= 0)
		close(poller->timer);
	close(poller->epfd);
	free(poller->cqs);
}

int rt_poller_start(struct rt_poller *poller)
{
	if (pthread_create(&poller->thread, NULL, poller_main, poller))
		return RPMA_E_PROVIDER;
	return 0;
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
		rt_wait_nap(); /* somebody is inside, for a round */
}
