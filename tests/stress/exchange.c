/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See exchange.h. */

#include "exchange.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/inbox.h"
#include "queue/queue.h"
#include "rt_stub.h"
#include "stress.h"

#define MAX_TAKE   48
#define HESITATION 1500	      /* turns; about as long as a wake-up takes */
#define LAST	   UINT64_MAX /* context of the last item */

struct exchange {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct exchange_cfg cfg;

	/* the poller's */
	struct rt_bell *bell;
	struct rt_inbox inbox;
	struct rt_lane *lane;
	uint64_t sent;
	uint64_t spilled;
	uint64_t sleeps;
	uint32_t credits;
	bool stopping;

	/* the consumer's */
	int fd; /* an epoll set with the queue in it */
	uint64_t taken;
	uint64_t batches;
	struct stress_rng rng;
};

struct payment {
	struct rt_msg msg;
	uint32_t credits; /* 0: no more is wanted */
};

/* --------------------------------------------------------- the poller --- */

static void cash(struct rt_msg *msg, void *arg)
{
	struct payment *payment = caa_container_of(msg, struct payment, msg);
	struct exchange *exchange = arg;

	exchange->credits += payment->credits;
	if (payment->credits == 0)
		exchange->stopping = true;
	free(payment);
}

static void poller_sleep(struct exchange *exchange)
{
	struct pollfd pollfd = {.fd = rt_bell_fd(exchange->bell),
				.events = POLLIN};
	bool spills = rt_lane_arm_spill_poller(exchange->lane);

	rt_bell_prepare(exchange->bell);
	if (rt_inbox_is_empty(&exchange->inbox) &&
	    !(spills && rt_lane_has_room_poller(exchange->lane))) {
		exchange->sleeps++;
		poll(&pollfd, 1, -1);
	}
	rt_bell_cancel(exchange->bell);
}

static uint32_t send_some(struct exchange *exchange, struct stress_rng *rng)
{
	uint32_t count = exchange->credits;
	uint32_t before = rt_lane_spill_count_poller(exchange->lane);

	if (count == 0)
		return 0;
	count = 1 + stress_below(rng, count < 40 ? count : 40);
	if (count > exchange->credits)
		count = exchange->credits;
	stub_publish(exchange->lane, exchange->sent, count);
	exchange->sent += count;
	exchange->credits -= count;
	exchange->spilled +=
		rt_lane_spill_count_poller(exchange->lane) - before;
	return count;
}

static void send_last(struct exchange *exchange)
{
	struct rpma_rt_completion last = stub_item(LAST);

	last.user = (void *)(uintptr_t)exchange->sent;
	rt_lane_write_poller(exchange->lane, &last);
	rt_lane_publish_poller(exchange->lane);
}

static void *poller_main(void *arg)
{
	struct exchange *exchange = arg;
	struct stress_rng rng = stress_rng(exchange->cfg.seed, 1);
	bool last_sent = false;
	uint32_t done;

	while (!last_sent || rt_lane_is_spilling_poller(exchange->lane)) {
		done = 0;
		if (!exchange->stopping) {
			done = send_some(exchange, &rng);
		} else if (!last_sent) {
			send_last(exchange);
			last_sent = true;
			done = 1;
		}
		done += rt_lane_retry_poller(exchange->lane);
		if (done > 0) {
			rt_fence_dekker();
			rt_lane_bell_poller(exchange->lane);
		}
		done += (uint32_t)rt_inbox_run_owner(&exchange->inbox,
						     exchange);
		if (done == 0)
			poller_sleep(exchange);
	}
	rt_queue_unref(exchange->queue);
	return NULL;
}

/* ------------------------------------------------------- the consumer --- */

static void pay(struct exchange *exchange, uint32_t credits)
{
	struct payment *payment = malloc(sizeof(*payment));

	STRESS_CHECK(payment != NULL);
	payment->msg.fn = cash;
	payment->credits = credits;
	rt_inbox_push_mt(&exchange->inbox, &payment->msg);
}

/* Sleeps in epoll only when the queue said that there was nothing. */
static int take(struct exchange *exchange, struct rpma_rt_completion *items)
{
	int max = 1 + (int)stress_below(&exchange->rng, MAX_TAKE);
	struct epoll_event event;
	int ret;

	if (exchange->cfg.sleep == ON_FUTEX ||
	    (exchange->cfg.sleep == BY_TURNS &&
	     stress_below(&exchange->rng, 2) == 0))
		return rpma_rt_queue_wait(exchange->queue, items, max, -1);
	ret = rpma_rt_queue_poll(exchange->queue, items, max);
	if (ret != 0)
		return ret;
	ret = rpma_rt_queue_arm(exchange->queue);
	if (ret == 0)
		epoll_wait(exchange->fd, &event, 1, -1);
	return ret < 0 ? ret : 0;
}

/* True: that was the last. */
static bool check(struct exchange *exchange,
		  const struct rpma_rt_completion *items, int got)
{
	int i;

	for (i = 0; i < got; i++) {
		if (items[i].context == LAST) {
			STRESS_CHECK((uintptr_t)items[i].user ==
				     exchange->taken);
			STRESS_CHECK(i == got - 1);
			return true;
		}
		STRESS_CHECK(items[i].context == exchange->taken);
		exchange->taken++;
	}
	return false;
}

static void consume(struct exchange *exchange)
{
	double end = stress_now() + exchange->cfg.seconds;
	struct rpma_rt_completion items[MAX_TAKE];
	bool asked = false;
	int got;

	for (;;) {
		got = take(exchange, items);
		if (got == 0)
			continue;
		STRESS_CHECK(got > 0);
		exchange->batches++;
		if (check(exchange, items, got))
			return;
		if (exchange->cfg.dawdle > 0)
			stress_dawdle(&exchange->rng, exchange->cfg.dawdle);
		if (asked)
			continue;
		asked = stress_now() >= end;
		pay(exchange, asked ? 0 : (uint32_t)got);
		/* falls asleep now a little before, now a little after what
		 * the poller sends in return: the moment that is hard */
		stress_dawdle(&exchange->rng, HESITATION);
	}
}

static void open_epoll(struct exchange *exchange)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd;

	exchange->fd = -1;
	if (exchange->cfg.sleep == ON_FUTEX)
		return;
	exchange->fd = epoll_create1(EPOLL_CLOEXEC);
	STRESS_CHECK(exchange->fd >= 0);
	STRESS_CHECK(rpma_rt_queue_get_fd(exchange->queue, &fd) == 0);
	STRESS_CHECK(epoll_ctl(exchange->fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

void exchange_run(const struct exchange_cfg *cfg)
{
	static const char *const names[] = {"futex", "fd", "turns"};
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	struct rpma_rt_completion item;
	pthread_t poller;

	STRESS_CHECK(exchange != NULL);
	stub_rt_init(&exchange->rt, 1);
	exchange->cfg = *cfg;
	exchange->rng = stress_rng(cfg->seed, 2);
	exchange->credits = cfg->window;
	exchange->bell = &exchange->rt.bells[0];
	exchange->queue =
		stub_queue_new(&exchange->rt, cfg->lane_size, cfg->window + 1);
	STRESS_CHECK(exchange->queue != NULL);
	STRESS_CHECK(rt_inbox_init(&exchange->inbox, exchange->bell) == 0);
	rt_queue_ref(exchange->queue);
	exchange->lane = rt_queue_lane(exchange->queue, 0, exchange->bell);
	STRESS_CHECK(exchange->lane != NULL);
	open_epoll(exchange);

	STRESS_CHECK(pthread_create(&poller, NULL, poller_main, exchange) == 0);
	consume(exchange);
	STRESS_CHECK(rpma_rt_queue_close(exchange->queue) == 0);
	while (rpma_rt_queue_wait(exchange->queue, &item, 1, -1) !=
	       RPMA_RT_E_CLOSED)
		STRESS_CHECK(!"an item after the last");
	/* a consumer that got CLOSED may delete at once */
	STRESS_CHECK(rpma_rt_queue_delete(&exchange->queue) == 0);
	pthread_join(poller, NULL);

	STRESS_CHECK(exchange->sent == exchange->taken);
	printf("%s, window %u: %llu taken in %llu batches, %llu spilled, "
	       "the poller slept %llu times\n",
	       names[cfg->sleep], cfg->window,
	       (unsigned long long)exchange->taken,
	       (unsigned long long)exchange->batches,
	       (unsigned long long)exchange->spilled,
	       (unsigned long long)exchange->sleeps);
	rt_inbox_run_owner(&exchange->inbox, exchange);
	rt_inbox_fini(&exchange->inbox);
	if (exchange->fd >= 0)
		close(exchange->fd);
	stub_rt_fini(&exchange->rt);
	free(exchange);
}
