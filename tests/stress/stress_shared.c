/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The whole life of a shared queue, many times: two pollers that sleep only
 * when their spill has no room, a thread that pushes, and workers that wait on
 * the futex, with and without a time, or poll, arm and sleep on the eventfd, or
 * both in turn. Every item is taken once; no worker sees the items of a lane
 * out of order; every worker gets the end; and no worker sleeps while there are
 * items: once all work is done and some workers still sleep, a single item is
 * sent at a time and has to be taken before the next.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exchange.h"
#include "queue/queue.h"
#include "rt_stub.h"
#include "stress.h"

#define BATCH	  32 /* items that a poller publishes at once */
#define POLLERS	  2
#define WORKERS	  4
#define LANE_SIZE 64
#define BACKLOG	  1024
#define SHARE	  400 /* items each sends at most; all fit in a spill */
#define SINGLES	  8
#define MAX_TAKE  8

struct life;

struct actor {
	struct life *life;
	struct stress_rng rng;
	int index;
	uint64_t sent;
	enum exchange_sleep sleep;
	uint64_t last[POLLERS + 1]; /* the last taken of each source, + 1 */
};

struct life {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct actor pollers[POLLERS];
	struct actor pusher;
	struct actor workers[WORKERS];
	bool with_fd;
	_Atomic uint32_t taken;
	_Atomic uint8_t seen[POLLERS + 1][SHARE + SINGLES];
};

static void *poller_main(void *arg)
{
	struct actor *actor = arg;
	struct life *life = actor->life;
	struct rt_bell *bell = &life->rt.bells[actor->index];
	uint32_t share = stress_below(&actor->rng, SHARE);
	struct epoll_event event = {.events = EPOLLIN};
	struct rt_lane *lane;
	uint32_t count;
	int epfd;

	epfd = epoll_create1(EPOLL_CLOEXEC);
	STRESS_CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, rt_bell_fd(bell), &event) ==
		     0);
	lane = rt_queue_lane(life->queue, actor->index, bell);
	STRESS_CHECK(lane != NULL);
	while (actor->sent < share || rt_lane_is_spilling_poller(lane)) {
		count = 1 + stress_below(&actor->rng, BATCH);
		if (count > share - actor->sent)
			count = share - (uint32_t)actor->sent;
		stub_publish(lane, actor->sent | (uint64_t)actor->index << 32,
			     count);
		actor->sent += count;
		rt_lane_retry_poller(lane);
		rt_fence_dekker();
		rt_lane_bell_poller(lane);
		stress_dawdle(&actor->rng, 100);
		if (actor->sent < share || !rt_lane_arm_spill_poller(lane))
			continue;
		rt_bell_prepare(bell);
		if (!rt_lane_has_room_poller(lane))
			epoll_wait(epfd, &event, 1, -1);
		rt_bell_cancel(bell);
	}
	close(epfd);
	rt_queue_unref(life->queue);
	return NULL;
}

static void *pusher_main(void *arg)
{
	struct actor *actor = arg;
	uint32_t share = stress_below(&actor->rng, SHARE);

	while (actor->sent < share) {
		STRESS_CHECK(rpma_rt_queue_push(
				     actor->life->queue,
				     &(struct rpma_rt_completion){
					     .context = actor->sent |
							(uint64_t)POLLERS
								<< 32}) == 0);
		actor->sent++;
		stress_dawdle(&actor->rng, 100);
		/* they come back for nothing, and lose nothing */
		if (stress_below(&actor->rng, 8) == 0)
			STRESS_CHECK(rpma_rt_queue_wake(actor->life->queue) ==
				     0);
	}
	return NULL;
}

static int take(struct actor *actor, int epfd, struct rpma_rt_completion *items)
{
	struct rpma_rt_queue *queue = actor->life->queue;
	int max = 1 + (int)stress_below(&actor->rng, MAX_TAKE);
	struct epoll_event event;
	int ret;

	if (actor->sleep == ON_FUTEX ||
	    (actor->sleep == BY_TURNS && stress_below(&actor->rng, 2) == 0))
		return rpma_rt_queue_wait(
			queue, items, max,
			stress_below(&actor->rng, 4) == 0
				? (int)stress_below(&actor->rng, 2)
				: -1);
	ret = rpma_rt_queue_poll(queue, items, max);
	if (ret != 0)
		return ret;
	ret = rpma_rt_queue_arm(queue);
	if (ret == 0)
		epoll_wait(epfd, &event, 1, -1);
	return ret < 0 ? ret : 0;
}

static void check(struct actor *actor, const struct rpma_rt_completion *item)
{
	struct life *life = actor->life;
	uint32_t source = (uint32_t)(item->context >> 32);
	uint32_t number = (uint32_t)item->context;

	STRESS_CHECK(source <= POLLERS && number < SHARE + SINGLES);
	STRESS_CHECK(number >= actor->last[source]);
	actor->last[source] = number + 1;
	/* relaxed: read after joining the threads */
	STRESS_CHECK(atomic_fetch_add_explicit(&life->seen[source][number], 1,
					       memory_order_relaxed) == 0);
	/* release: to the waiting thread */
	atomic_fetch_add_explicit(&life->taken, 1, memory_order_release);
}

static int open_epoll(const struct actor *actor)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epfd;
	int fd;

	if (actor->sleep == ON_FUTEX)
		return -1;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	STRESS_CHECK(epfd >= 0);
	STRESS_CHECK(rpma_rt_queue_get_fd(actor->life->queue, &fd) == 0);
	STRESS_CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0);
	return epfd;
}

static void *worker_main(void *arg)
{
	struct actor *actor = arg;
	struct rpma_rt_completion items[MAX_TAKE];
	int epfd = open_epoll(actor);
	int got;
	int i;

	for (;;) {
		got = take(actor, epfd, items);
		if (got == RPMA_RT_E_CLOSED)
			break;
		if (got == 0)
			continue;
		STRESS_CHECK(got > 0);
		for (i = 0; i < got; i++)
			check(actor, &items[i]);
		stress_dawdle(&actor->rng, 400);
	}
	if (epfd >= 0)
		close(epfd);
	return NULL;
}

static void start(pthread_t *thread, void *(*fn)(void *), struct actor *actor,
		  struct life *life, int index, struct stress_rng *rng)
{
	enum exchange_sleep sleep = actor->sleep;

	*actor = (struct actor){
		.life = life,
		.index = index,
		.sleep = sleep,
		.rng = stress_rng(rng->state, (uint64_t)(uintptr_t)actor)};
	STRESS_CHECK(pthread_create(thread, NULL, fn, actor) == 0);
}

static void wait_until_taken(const struct life *life, uint64_t count)
{
	/* acquire: pairs with check() */
	while (atomic_load_explicit(&life->taken, memory_order_acquire) < count)
		sched_yield();
}

/* All workers are asleep, or nearly: each item wakes a worker. */
static void send_singles(struct life *life, uint64_t total)
{
	int i;

	for (i = 0; i < SINGLES; i++) {
		wait_until_taken(life, total + (uint64_t)i);
		STRESS_CHECK(rpma_rt_queue_push(
				     life->queue,
				     &(struct rpma_rt_completion){
					     .context = (SHARE + (uint64_t)i) |
							(uint64_t)POLLERS
								<< 32}) == 0);
	}
	wait_until_taken(life, total + SINGLES);
}

static uint64_t live_once(struct life *life, struct stress_rng *rng)
{
	pthread_t workers[WORKERS];
	pthread_t pollers[POLLERS];
	pthread_t pusher;
	uint64_t total = 0;
	int i;

	for (i = 0; i < WORKERS; i++) {
		life->workers[i].sleep =
			life->with_fd ? (enum exchange_sleep)stress_below(
						rng, BY_TURNS + 1)
				      : ON_FUTEX;
		start(&workers[i], worker_main, &life->workers[i], life, i,
		      rng);
	}
	for (i = 0; i < POLLERS; i++) {
		rt_queue_ref(life->queue);
		start(&pollers[i], poller_main, &life->pollers[i], life, i,
		      rng);
	}
	start(&pusher, pusher_main, &life->pusher, life, 0, rng);
	for (i = 0; i < POLLERS; i++) {
		pthread_join(pollers[i], NULL);
		total += life->pollers[i].sent;
	}
	pthread_join(pusher, NULL);
	total += life->pusher.sent;
	send_singles(life, total);
	STRESS_CHECK(rpma_rt_queue_close(life->queue) == 0);
	for (i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	STRESS_CHECK(rpma_rt_queue_delete(&life->queue) == 0);
	return total + SINGLES;
}

static struct rpma_rt_queue *new_queue(struct life *life, uint32_t spin_us)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue = NULL;

	cfg.shared = 1;
	cfg.lane_size = LANE_SIZE;
	cfg.backlog_limit = BACKLOG;
	cfg.spin_us = spin_us;
	STRESS_CHECK(rpma_rt_queue_new(&life->rt, &cfg, &queue) == 0);
	return queue;
}

static uint64_t run_life(struct life *life, struct stress_rng *rng)
{
	int source;
	int i;

	life->queue = new_queue(life, stress_below(rng, 2) * 5);
	life->with_fd = stress_below(rng, 2) == 0;
	/* relaxed: the threads do not run yet */
	atomic_store_explicit(&life->taken, 0, memory_order_relaxed);
	for (source = 0; source <= POLLERS; source++) {
		for (i = 0; i < SHARE + SINGLES; i++)
			/* relaxed: likewise */
			atomic_store_explicit(&life->seen[source][i], 0,
					      memory_order_relaxed);
	}
	return live_once(life, rng);
}

int main(int argc, char **argv)
{
	struct stress stress = stress_begin(argc, argv);
	struct stress_rng rng = stress_rng(stress.seed, 0);
	double end = stress_now() + stress.seconds;
	static struct life life;
	uint64_t lives = 0;
	uint64_t items = 0;

	stub_rt_init(&life.rt, POLLERS);
	do {
		items += run_life(&life, &rng);
		lives++;
	} while (stress_now() < end);
	printf("%llu queues, %llu items\n", (unsigned long long)lives,
	       (unsigned long long)items);
	stub_rt_fini(&life.rt);
	return 0;
}
