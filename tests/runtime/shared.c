/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shared.c -- the completions of a connection, taken by several workers of
 * one queue: each once, and every worker gets the end. And a second consumer of
 * a queue that is not shared.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "stage.h"

#define WORKERS	 4
#define MESSAGES 2000
#define DEPTH	 32
#define TAKE	 4

struct workers {
	struct rpma_rt_queue *queue;
	_Atomic uint32_t taken;
	_Atomic uint32_t events;
	_Atomic uint8_t seen[MESSAGES];
};

static void check(struct workers *workers,
		  const struct rpma_rt_completion *item)
{
	if (item->kind == RPMA_RT_EVENT) {
		CHECK(item->opcode == RPMA_RT_EVENT_CLOSED);
		/* release: to the waiting thread */
		atomic_fetch_add_explicit(&workers->events, 1,
					  memory_order_release);
		return;
	}
	CHECK(item->kind == RPMA_RT_COMPLETION);
	CHECK(item->status == IBV_WC_SUCCESS && item->context < MESSAGES);
	/* relaxed: only the count matters */
	CHECK(atomic_fetch_add_explicit(&workers->seen[item->context], 1,
					memory_order_relaxed) == 0);
	/* release: to the waiting thread */
	atomic_fetch_add_explicit(&workers->taken, 1, memory_order_release);
}

static void *worker_main(void *arg)
{
	struct workers *workers = arg;
	struct rpma_rt_completion items[TAKE];
	int got;
	int i;

	for (;;) {
		got = rpma_rt_queue_wait(workers->queue, items, TAKE, -1);
		if (got == RPMA_RT_E_CLOSED)
			return NULL;
		CHECK(got > 0);
		for (i = 0; i < got; i++)
			check(workers, &items[i]);
	}
}

static void wait_for(const _Atomic uint32_t *count, uint32_t what)
{
	/* acquire: pairs with check() */
	while (atomic_load_explicit(count, memory_order_acquire) < what)
		sched_yield();
}

static struct rpma_rt_queue *new_shared(struct rpma_rt *rt)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;

	cfg.shared = 1;
	MUST(rpma_rt_queue_new(rt, &cfg, &queue));
	return queue;
}

static void workers__each_completion_ONCE(struct stage *s)
{
	struct rpma_rt_queue_stats stats;
	static struct workers workers;
	pthread_t threads[WORKERS];
	struct world_pair pair;
	uint64_t i;

	workers.queue = new_shared(s->world.rt);
	world_connect(&s->world, s->cfg, 0, workers.queue, s->pq, &pair);
	for (i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&threads[i], NULL, worker_main,
				     &workers) == 0);
	for (i = 0; i < MESSAGES; i++) {
		/* no more than fit, and each is waited for in turn */
		if (i >= DEPTH)
			wait_for(&workers.taken, (uint32_t)(i - DEPTH + 1));
		MUST(rpma_rt_write(pair.active, s->remote, 0, s->mr, 64, 8,
				   RPMA_F_COMPLETION_ALWAYS, i));
	}
	wait_for(&workers.taken, MESSAGES);
	MUST(rpma_rt_conn_close(pair.active));
	wait_for(&workers.events, 1);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_queue_close(workers.queue));
	for (i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	MUST(rpma_rt_queue_get_stats(workers.queue, &stats, sizeof(stats)));
	/* and those that world_connect() took */
	CHECK(stats.taken >= MESSAGES + 1 && stats.backlog == 0);
	printf("ok: %lu batches, %lu sleeps, %lu wakes, %lu times busy\n",
	       (unsigned long)stats.batches, (unsigned long)stats.sleeps,
	       (unsigned long)stats.wakes, (unsigned long)stats.busy);
	world_unref(&pair);
	MUST(rpma_rt_queue_delete(&workers.queue));
}

#ifdef NDEBUG
static void *wait_main(void *arg)
{
	struct rpma_rt_completion item;
	int ret;

	do {
		ret = rpma_rt_queue_wait(arg, &item, 1, -1);
	} while (ret == RPMA_RT_E_BUSY);
	CHECK(ret == 1);
	CHECK(item.kind == RPMA_RT_MESSAGE);
	return NULL;
}

/* With assertions it ends the program: tests/unit/runtime/workers. */
static void alone__second_consumer_BUSY(struct stage *s)
{
	struct rpma_rt_completion item;
	pthread_t thread;
	int ret;

	CHECK(pthread_create(&thread, NULL, wait_main, s->aq) == 0);
	do { /* until it is inside */
		ret = rpma_rt_queue_poll(s->aq, &item, 1);
		CHECK(ret == 0 || ret == RPMA_RT_E_BUSY);
	} while (ret != RPMA_RT_E_BUSY);
	MUST(rpma_rt_queue_push(s->aq,
				&(struct rpma_rt_completion){.context = 1}));
	pthread_join(thread, NULL);
	CHECK(rpma_rt_queue_poll(s->aq, &item, 1) == 0);
}
#endif

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	struct stage s;

	stage_open(&s, &cfg);
	workers__each_completion_ONCE(&s);
#ifdef NDEBUG
	alone__second_consumer_BUSY(&s);
#endif
	stage_close(&s);
	return 0;
}
