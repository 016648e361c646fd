/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_mesh [--seconds S] [--cpus A,B,...] shard|ring THREADS
 *
 * Millions of messages of 32 bytes per second, from each of THREADS threads to
 * each other thread, in batches of 8: by shards, with all the work of a turn
 * and a function for each message; or through a bare ring of the same size for
 * each direction, as in bench_shard.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "rpma_rt.h"
#include "base/order.h"

#define LANE	256 /* messages not yet taken; a ring has twice as many */
#define SLOTS	(2 * LANE)
#define LOOK	256 /* turns between two looks at the clock */
#define BATCH	8
#define THREADS 32 /* at most */

struct ring {
	/* the producer's own, apart from tail, which the consumer polls */
	_Alignas(RT_APART) uint32_t next, head_seen;
	_Alignas(RT_APART) _Atomic uint32_t tail;
	_Alignas(RT_APART) _Atomic uint32_t head;
	_Alignas(RT_APART) struct rpma_rt_shard_message slots[SLOTS];
};

struct worker {
	_Alignas(RT_APART) uint32_t number;
	struct rpma_rt_shard *shard;
	uint64_t sent[THREADS]; /* to each */
	uint64_t seen[THREADS]; /* the number of the last message of each */
	double seconds;
};

static struct bench_args args;
static uint32_t count; /* of threads */
static struct worker workers[THREADS];
static struct ring *rings; /* from each thread to each */
static _Atomic uint32_t ready;
static void (*turn)(struct worker *w);

static void fill(struct rpma_rt_shard_message *message, uint64_t number)
{
	message->context = number;
	message->words[0] = number;
	message->words[1] = 0;
	message->code = 1;
}

/* The messages of each thread come in order, each once. */
static inline void got(struct worker *w, uint32_t from, uint64_t number)
{
	if (__builtin_expect(number != ++w->seen[from], 0))
		bench_fail("messages were lost or doubled");
}

/* ------------------------------------------------------------ shards --- */

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	if (message->kind == RPMA_RT_SHARD_WRITABLE)
		return; /* the sender goes on by itself */
	got(arg, message->from, message->words[0]);
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void shard_send(struct worker *w, uint32_t to)
{
	struct rpma_rt_shard_message message = {0};
	uint32_t i;

	for (i = 0; i < BATCH; i++) {
		fill(&message, w->sent[to] + 1);
		if (rpma_rt_shard_post(w->shard, to, &message))
			break;
		w->sent[to]++;
	}
}

static void shard_turn(struct worker *w)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (i != w->number)
			shard_send(w, i);
	}
	if (rpma_rt_shard_run(w->shard, 0) < 0)
		bench_fail("no run");
}

static void shard_open(void)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	static void *each[THREADS];
	struct rpma_rt_shards *shards;
	struct rpma_rt *rt;
	uint32_t i;

	rt_cfg.mode = RPMA_RT_MODE_MANUAL;
	rt_cfg.pollers = count;
	for (i = 0; i < count; i++)
		each[i] = &workers[i];
	cfg.lane_size = LANE;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	cfg.args = each;
	cfg.arg_count = count;
	if (rpma_rt_new(&rt_cfg, &rt) || rpma_rt_shards_new(rt, &cfg, &shards))
		bench_fail("no shards");
	for (i = 0; i < count; i++) {
		if (rpma_rt_shards_get(shards, i, &workers[i].shard))
			bench_fail("no shard");
	}
	turn = shard_turn;
}

/* -------------------------------------------------------------- ring --- */

static void ring_send(struct worker *w, uint32_t to)
{
	struct ring *ring = &rings[w->number * count + to];
	uint32_t i;

	for (i = 0; i < BATCH; i++) {
		if (ring->next - ring->head_seen == LANE) {
			/* acquire: the consumer has read the slots */
			ring->head_seen = atomic_load_explicit(
				&ring->head, memory_order_acquire);
			if (ring->next - ring->head_seen == LANE)
				break;
		}
		fill(&ring->slots[ring->next++ % SLOTS], ++w->sent[to]);
	}
	/* release: the messages */
	atomic_store_explicit(&ring->tail, ring->next, memory_order_release);
}

static void ring_take(struct worker *w, uint32_t from)
{
	struct ring *ring = &rings[from * count + w->number];
	/* relaxed: written by this thread */
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* acquire: the messages */
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (head == tail)
		return;
	for (; head != tail; head++)
		got(w, from, ring->slots[head % SLOTS].words[0]);
	/* release: they are read */
	atomic_store_explicit(&ring->head, head, memory_order_release);
}

static void ring_turn(struct worker *w)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (i != w->number)
			ring_send(w, i);
	}
	for (i = 0; i < count; i++) {
		if (i != w->number)
			ring_take(w, i);
	}
}

static void ring_open(void)
{
	rings = aligned_alloc(RT_APART, sizeof(*rings) * count * count);
	if (rings == NULL)
		bench_fail("no memory");
	memset(rings, 0, sizeof(*rings) * count * count);
	turn = ring_turn;
}

/* -------------------------------------------------------------- both --- */

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t turns = 0;
	double begin;

	/* acq_rel: each thread sees everything made before */
	atomic_fetch_add_explicit(&ready, 1, memory_order_acq_rel);
	/* acquire: as above */
	while (atomic_load_explicit(&ready, memory_order_acquire) < count)
		sched_yield();
	begin = bench_now();
	while (++turns % LOOK != 0 || bench_now() < begin + args.seconds)
		turn(w);
	w->seconds = bench_now() - begin;
	return NULL;
}

/* Returns how many messages a second have come to the worker, in millions. */
static double rate(const struct worker *w)
{
	uint64_t taken = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		taken += w->seen[i];
	return (double)taken / w->seconds / 1e6;
}

static double measure(void)
{
	pthread_t threads[THREADS];
	double sum = 0;
	uint32_t i;

	for (i = 1; i < count; i++)
		threads[i] =
			bench_start(args.cpus[i % (uint32_t)args.cpu_count],
				    worker_main, &workers[i]);
	bench_pin(args.cpus[0]);
	worker_main(&workers[0]);
	for (i = 0; i < count; i++) {
		if (i > 0)
			pthread_join(threads[i], NULL);
		sum += rate(&workers[i]);
	}
	return sum;
}

int main(int argc, char **argv)
{
	const char *way;
	uint32_t i;

	args = bench_parse(argc, argv);
	if (args.count != 2)
		bench_fail("usage: bench_mesh [--seconds S] [--cpus A,B,...] "
			   "shard|ring THREADS");
	way = args.words[0];
	count = (uint32_t)atoi(args.words[1]);
	if (count < 2 || count > THREADS)
		bench_fail("2 to 32 threads");
	for (i = 0; i < count; i++)
		workers[i].number = i;
	if (strcmp(way, "shard") == 0)
		shard_open();
	else if (strcmp(way, "ring") == 0)
		ring_open();
	else
		bench_fail("no such way");
	bench_report(way, measure(), "Mops/s");
	return 0;
}
