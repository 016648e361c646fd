/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The whole life of a queue, many times: three pollers, two threads that push
 * and one that ends it while the consumer sleeps on it, by close or, when the
 * pollers are gone with spills left, by finish. Every push that was accepted
 * arrives, every lane arrives in order and whole, and the consumer deletes the
 * queue as soon as it gets CLOSED, while others are still inside close.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exchange.h"
#include "queue/queue.h"
#include "rt_stub.h"
#include "stress.h"

#define BATCH	  32 /* items that a poller publishes at once */
#define POLLERS	  3
#define PUSHERS	  2
#define LANE_SIZE 64
#define BACKLOG	  1024
#define SHARE	  200 /* items each sends at most; all fit in a spill */
#define MAX_TAKE  16

struct life;

struct actor {
	struct life *life;
	struct stress_rng rng;
	int index;
	uint64_t sent;
};

struct life {
	struct rpma_rt rt;
	struct rpma_rt_queue *queue;
	struct actor pollers[POLLERS];
	struct actor pushers[PUSHERS];
	struct actor closer;
	bool by_finish;

	/* the consumer's */
	enum exchange_sleep sleep;
	int fd;
	uint64_t taken[POLLERS];
	uint64_t messages[PUSHERS];
};

/* A poller that never sleeps: it sends, retries, and goes; on a life that
 * ends by finish it leaves its spill behind. */
static void *poller_main(void *arg)
{
	struct actor *actor = arg;
	struct life *life = actor->life;
	uint32_t share = stress_below(&actor->rng, SHARE);
	struct rt_lane *lane;
	uint32_t count;

	lane = rt_queue_lane(life->queue, actor->index,
			     &life->rt.bells[actor->index]);
	STRESS_CHECK(lane != NULL);
	while (actor->sent < share ||
	       (rt_lane_is_spilling_poller(lane) && !life->by_finish)) {
		count = 1 + stress_below(&actor->rng, BATCH);
		if (count > share - actor->sent)
			count = share - (uint32_t)actor->sent;
		stub_publish(lane, actor->sent | (uint64_t)actor->index << 32,
			     count);
		actor->sent += count;
		rt_lane_retry_poller(lane);
		rt_fence_dekker();
		rt_lane_bell_poller(lane);
		stress_dawdle(&actor->rng, 60);
	}
	if (!life->by_finish)
		rt_queue_unref(life->queue);
	return NULL;
}

static void *pusher_main(void *arg)
{
	struct actor *actor = arg;
	struct life *life = actor->life;
	uint32_t share = stress_below(&actor->rng, SHARE);

	while (actor->sent < share &&
	       rpma_rt_queue_push(life->queue, &(struct rpma_rt_completion){
						       .context = actor->sent,
						       .user = actor}) == 0) {
		actor->sent++;
		stress_dawdle(&actor->rng, 60);
		/* they come back for nothing, and lose nothing */
		if (stress_below(&actor->rng, 8) == 0)
			STRESS_CHECK(rpma_rt_queue_wake(life->queue) == 0);
	}
	rt_queue_unref(life->queue);
	return NULL;
}

static void *closer_main(void *arg)
{
	struct actor *actor = arg;
	struct life *life = actor->life;

	if (life->by_finish)
		return NULL;
	stress_dawdle(&actor->rng, 8000);
	STRESS_CHECK(rpma_rt_queue_close(life->queue) == 0);
	return NULL;
}

static int take(struct life *life, struct stress_rng *rng,
		struct rpma_rt_completion *items)
{
	int max = 1 + (int)stress_below(rng, MAX_TAKE);
	struct epoll_event event;
	int ret;

	if (life->sleep == ON_FUTEX ||
	    (life->sleep == BY_TURNS && stress_below(rng, 2) == 0))
		return rpma_rt_queue_wait(life->queue, items, max, -1);
	ret = rpma_rt_queue_poll(life->queue, items, max);
	if (ret != 0)
		return ret;
	ret = rpma_rt_queue_arm(life->queue);
	if (ret == 0)
		epoll_wait(life->fd, &event, 1, -1);
	return ret < 0 ? ret : 0;
}

static void check(struct life *life, const struct rpma_rt_completion *item)
{
	const struct actor *actor;
	uint32_t poller;

	if (item->kind == RPMA_RT_MESSAGE) {
		actor = item->user;
		STRESS_CHECK(item->context == life->messages[actor->index]);
		life->messages[actor->index]++;
		return;
	}
	poller = (uint32_t)(item->context >> 32);
	STRESS_CHECK(poller < POLLERS);
	STRESS_CHECK((uint32_t)item->context == life->taken[poller]);
	life->taken[poller]++;
}

static void *consumer_main(void *arg)
{
	struct actor *actor = arg;
	struct life *life = actor->life;
	struct rpma_rt_completion items[MAX_TAKE];
	int got;
	int i;

	for (;;) {
		got = take(life, &actor->rng, items);
		if (got == RPMA_RT_E_CLOSED)
			break;
		if (got == 0)
			continue;
		STRESS_CHECK(got > 0);
		for (i = 0; i < got; i++)
			check(life, &items[i]);
		stress_dawdle(&actor->rng, 120);
	}
	/* after finish the pollers' holds are still on it */
	if (!life->by_finish)
		STRESS_CHECK(rpma_rt_queue_delete(&life->queue) == 0);
	return NULL;
}

static void open_epoll(struct life *life)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd;

	if (life->sleep == ON_FUTEX)
		return;
	STRESS_CHECK(rpma_rt_queue_get_fd(life->queue, &fd) == 0);
	STRESS_CHECK(epoll_ctl(life->fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void start(pthread_t *thread, void *(*fn)(void *), struct actor *actor,
		  struct life *life, int index, uint64_t seed)
{
	actor->life = life;
	actor->index = index;
	actor->sent = 0;
	actor->rng = stress_rng(seed, (uint64_t)(uintptr_t)actor);
	STRESS_CHECK(pthread_create(thread, NULL, fn, actor) == 0);
}

static void join_all(const pthread_t *threads, int count)
{
	int i;

	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* The pollers' holds for connections and spills that finish cuts short. */
static void put_all(struct life *life)
{
	while (rpma_rt_queue_delete(&life->queue) == RPMA_RT_E_BUSY)
		rt_queue_unref(life->queue);
}

static void live_once(struct life *life, struct stress_rng *rng)
{
	pthread_t pollers[POLLERS];
	pthread_t pushers[PUSHERS];
	pthread_t consumer;
	pthread_t closer;
	struct actor taker;
	int i;

	for (i = 0; i < POLLERS + PUSHERS; i++)
		rt_queue_ref(life->queue);
	open_epoll(life);
	start(&consumer, consumer_main, &taker, life, 0, rng->state);
	for (i = 0; i < POLLERS; i++)
		start(&pollers[i], poller_main, &life->pollers[i], life, i,
		      rng->state + (uint64_t)i);
	for (i = 0; i < PUSHERS; i++)
		start(&pushers[i], pusher_main, &life->pushers[i], life, i,
		      rng->state + 8 + (uint64_t)i);
	start(&closer, closer_main, &life->closer, life, 0, rng->state + 16);
	join_all(pollers, POLLERS);
	pthread_join(closer, NULL);
	if (life->by_finish)
		rt_queue_finish(life->queue);
	join_all(pushers, PUSHERS);
	pthread_join(consumer, NULL);
	if (life->by_finish)
		put_all(life);
}

static void run_life(struct life *life, struct stress_rng *rng)
{
	int i;

	life->queue = stub_queue_new(&life->rt, LANE_SIZE, BACKLOG);
	STRESS_CHECK(life->queue != NULL);
	life->sleep = (enum exchange_sleep)stress_below(rng, BY_TURNS + 1);
	life->by_finish = stress_below(rng, 3) == 0;
	for (i = 0; i < POLLERS; i++)
		life->taken[i] = 0;
	for (i = 0; i < PUSHERS; i++)
		life->messages[i] = 0;

	live_once(life, rng);

	for (i = 0; i < POLLERS; i++)
		STRESS_CHECK(life->taken[i] == life->pollers[i].sent);
	for (i = 0; i < PUSHERS; i++)
		STRESS_CHECK(life->messages[i] == life->pushers[i].sent);
}

int main(int argc, char **argv)
{
	struct stress stress = stress_begin(argc, argv);
	struct stress_rng rng = stress_rng(stress.seed, 0);
	double end = stress_now() + stress.seconds;
	static struct life life;
	uint64_t lives = 0;
	uint64_t items = 0;
	int i;

	stub_rt_init(&life.rt, POLLERS);
	life.fd = epoll_create1(EPOLL_CLOEXEC);
	STRESS_CHECK(life.fd >= 0);
	do {
		run_life(&life, &rng);
		lives++;
		for (i = 0; i < POLLERS; i++)
			items += life.taken[i];
		for (i = 0; i < PUSHERS; i++)
			items += life.messages[i];
	} while (stress_now() < end);
	printf("%llu queues, %llu items\n", (unsigned long long)lives,
	       (unsigned long long)items);
	close(life.fd);
	stub_rt_fini(&life.rt);
	return 0;
}
