/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_shard [--seconds S] [--cpus A,B] shard|ring
 *
 * Millions of messages of 32 bytes per second, from one thread to another: by
 * shards, with all the work of a turn and a function for each message; or
 * through a bare ring of the same size, with a producer and a consumer, where
 * the index of the other side is read only when the private copy is used up.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "rpma_rt.h"
#include "base/order.h"

#define LANE  256 /* messages not yet taken; the ring has twice as many */
#define SLOTS (2 * LANE)
#define BATCH 32
#define LOOK  1024 /* batches between two looks at the clock */

struct run {
	struct bench_args args;
	_Alignas(RT_APART) uint64_t taken; /* the consumer's */
	uint64_t sum;
	_Alignas(RT_APART) uint64_t sent;	   /* the producer's */
	uint32_t next, head_seen;		   /* likewise, of the ring */
	_Alignas(RT_APART) _Atomic uint64_t total; /* sent in all; 0: not yet */
	_Alignas(RT_APART) _Atomic bool ready;
	double seconds;

	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *ends[2];

	/* the ring */
	_Alignas(RT_APART) _Atomic uint32_t tail;
	_Alignas(RT_APART) _Atomic uint32_t head;
	_Alignas(RT_APART) struct rpma_rt_shard_message slots[SLOTS];
};

static struct run run;

static void fill(struct rpma_rt_shard_message *message, uint64_t number)
{
	message->context = number;
	message->words[0] = number;
	message->words[1] = 0;
	message->code = 1;
}

/* ------------------------------------------------------------ shards --- */

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	(void)shard;
	(void)arg;
	if (message->kind == RPMA_RT_SHARD_WRITABLE)
		return; /* for the producer, which goes on without a call */
	run.taken++;
	run.sum += message->words[0];
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	(void)shard;
	(void)item;
	(void)arg;
}

static void shard_send(void)
{
	struct rpma_rt_shard_message message = {0};
	int i;

	for (i = 0; i < BATCH; i++) {
		fill(&message, run.sent + 1);
		if (rpma_rt_shard_post(run.ends[0], 1, &message))
			break;
		run.sent++;
	}
	if (rpma_rt_shard_run(run.ends[0], 0) < 0)
		bench_fail("no run");
}

static void shard_take(void)
{
	if (rpma_rt_shard_run(run.ends[1], 0) < 0)
		bench_fail("no run");
}

static void shard_open(void)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt;

	rt_cfg.mode = RPMA_RT_MODE_MANUAL;
	rt_cfg.pollers = 2;
	cfg.lane_size = LANE;
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	if (rpma_rt_new(&rt_cfg, &rt) ||
	    rpma_rt_shards_new(rt, &cfg, &run.shards) ||
	    rpma_rt_shards_get(run.shards, 0, &run.ends[0]) ||
	    rpma_rt_shards_get(run.shards, 1, &run.ends[1]))
		bench_fail("no shards");
}

/* -------------------------------------------------------------- ring --- */

static void ring_send(void)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		if (run.next - run.head_seen == LANE) {
			/* acquire: the consumer has read the slots */
			run.head_seen = atomic_load_explicit(
				&run.head, memory_order_acquire);
			if (run.next - run.head_seen == LANE)
				break;
		}
		fill(&run.slots[run.next % SLOTS], run.sent + 1);
		run.next++;
		run.sent++;
	}
	/* release: the messages */
	atomic_store_explicit(&run.tail, run.next, memory_order_release);
}

static void ring_take(void)
{
	/* relaxed: written by this thread */
	uint32_t head = atomic_load_explicit(&run.head, memory_order_relaxed);
	/* acquire: the messages */
	uint32_t tail = atomic_load_explicit(&run.tail, memory_order_acquire);

	if (head == tail)
		return;
	for (; head != tail; head++) {
		run.taken++;
		run.sum += run.slots[head % SLOTS].words[0];
	}
	/* release: they are read */
	atomic_store_explicit(&run.head, head, memory_order_release);
}

/* -------------------------------------------------------------- both --- */

static void (*take)(void);
static void (*send_some)(void);

static void *producer(void *arg)
{
	double begin, end;
	uint64_t batches = 0;

	(void)arg;
	bench_pin(run.args.cpus[0]);
	/* acquire: the consumer runs */
	while (!atomic_load_explicit(&run.ready, memory_order_acquire))
		rt_cpu_relax();
	begin = bench_now();
	end = begin + run.args.seconds;
	while (++batches % LOOK != 0 || bench_now() < end)
		send_some();
	run.seconds = bench_now() - begin;
	/* the last posts are handed over */
	if (run.shards != NULL && rpma_rt_shard_run(run.ends[0], 0) < 0)
		bench_fail("no run");
	/* release: to the consumer, which ends */
	atomic_store_explicit(&run.total, run.sent, memory_order_release);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	const char *way;

	run.args = bench_parse(argc, argv);
	if (run.args.count != 1)
		bench_fail("usage: bench_shard [--seconds S] [--cpus A,B] "
			   "shard|ring");
	way = run.args.words[0];
	if (strcmp(way, "shard") == 0) {
		shard_open();
		take = shard_take;
		send_some = shard_send;
	} else if (strcmp(way, "ring") == 0) {
		take = ring_take;
		send_some = ring_send;
	} else {
		bench_fail("no such way");
	}
	if (pthread_create(&thread, NULL, producer, NULL))
		bench_fail("no thread");
	bench_pin(run.args.cpus[1]);
	/* release: to the producer, which begins */
	atomic_store_explicit(&run.ready, true, memory_order_release);
	/* acquire: the end of the producer's run */
	while (atomic_load_explicit(&run.total, memory_order_acquire) == 0 ||
	       run.taken < run.sent)
		take();
	pthread_join(thread, NULL);
	if (run.sum != run.sent * (run.sent + 1) / 2)
		bench_fail("messages were lost or doubled");
	bench_report(way, (double)run.taken / run.seconds / 1e6, "Mops/s");
	return 0;
}
