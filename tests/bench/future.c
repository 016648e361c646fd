/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_future [--seconds S] [--cpus A,B] WAY
 *
 * Millions of completions a second into slots of futures, in batches of 32.
 * WAY: "future", from a poller's thread to one that waits for each, drops it
 * and takes a slot for the next, 1,024 in flight; "slot", the poller's part
 * alone; "stores", a release store into a line each, which that cannot do
 * without. The futures' own code, without a device or connections.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/runtime.h"
#include "future/future.h"
#include "poller/poller.h"

#define SLOTS 1024
#define BATCH 32

static struct rpma_rt rt;
static struct rt_poller poller;
static struct rt_side side;
static struct rt_futures *futures;

/* what the consumer has posted, in order: the device's */
static struct {
	uint64_t cookies[SLOTS];
	_Alignas(64) _Atomic uint64_t posted;
	_Alignas(64) _Atomic uint64_t total; /* 0: not known yet */
} cq;

static void open_all(void)
{
	poller.rt = &rt;
	poller.threaded = true;
	rt_poller_set_tick_ms(&poller, 1);
	rt_future_init_poller(&poller);
	futures = rt_future_block_take(&poller, &side, SLOTS);
	if (futures == NULL)
		bench_fail("no memory");
}

/* As a round does. */
static void complete(uint64_t cookie)
{
	const struct rpma_rt_completion item = {
		.byte_len = 64,
		.qp_num = 100,
	};
	struct rt_future *slot = rt_future_of_cookie(cookie);

	if (!rt_future_is_expected(slot, cookie) || slot->told != 0 ||
	    rt_future_is_full(&poller.futures))
		bench_fail("a slot is not as it should be");
	rt_future_fill(slot, item);
	rt_future_add_batch(&poller.futures, slot);
	rt_deliver_touch_number(&poller, RT_ROUTE_FUTURES);
}

/* ---------------------------------------------------- the poller's part --- */

static void take_all(uint64_t *cookies)
{
	struct rt_future *slot;
	int i;

	for (i = 0; i < SLOTS; i++) {
		slot = rt_future_take(futures, (uint64_t)i);
		if (slot == NULL)
			bench_fail("a slot is lost");
		cookies[i] = rt_future_cookie(slot);
	}
}

static void give_all(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		rt_future_free_holder(&futures->slots[i]);
}

static void complete_all(const uint64_t *cookies)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		complete(cookies[i]);
		if (i % BATCH == BATCH - 1)
			rt_deliver_flush(&poller);
	}
}

static void store_all(const uint64_t *cookies)
{
	int i;

	(void)cookies;
	for (i = 0; i < SLOTS; i++)
		/* release: as a slot's */
		atomic_store_explicit(&futures->slots[i].state, RT_FUTURE_DONE,
				      memory_order_release);
}

static double run_alone(double seconds, void (*fn)(const uint64_t *cookies))
{
	uint64_t cookies[SLOTS];
	double end = bench_now() + seconds;
	double took = 0;
	double begin;
	uint64_t count = 0;

	do {
		take_all(cookies);
		begin = bench_now();
		fn(cookies);
		took += bench_now() - begin;
		give_all();
		count += SLOTS;
	} while (bench_now() < end);
	return (double)count / took / 1e6;
}

/* ---------------------------------------------------- two threads --- */

static void *poller_main(void *arg)
{
	const int *cpu = arg;
	uint64_t done = 0;
	uint64_t total;
	int i;

	bench_pin(*cpu);
	for (;;) {
		/* acquire: the cookies below it */
		while (atomic_load_explicit(&cq.posted, memory_order_acquire) <
		       done + BATCH) {
			/* acquire: likewise */
			total = atomic_load_explicit(&cq.total,
						     memory_order_acquire);
			if (total != 0 && done == total)
				return NULL;
			rt_cpu_relax();
		}
		for (i = 0; i < BATCH; i++)
			complete(cq.cookies[done++ % SLOTS]);
		rt_deliver_flush(&poller);
	}
}

static void post(struct rpma_rt_future *future, uint64_t at)
{
	struct rt_future *slot = rt_future_take(futures, at);

	if (slot == NULL)
		bench_fail("a slot is lost");
	rt_future_name(future, slot);
	cq.cookies[at % SLOTS] = rt_future_cookie(slot);
	if (at % BATCH == BATCH - 1)
		/* release: pairs with the acquire in poller_main() */
		atomic_store_explicit(&cq.posted, at + 1, memory_order_release);
}

static void wait_for(struct rpma_rt_future *future, uint64_t at)
{
	struct rpma_rt_completion cmpl;

	if (rpma_rt_future_wait(future, &cmpl, -1) != 1 || cmpl.context != at ||
	    rpma_rt_future_drop(future) != 0)
		bench_fail("a result is wrong");
}

static double run_both(const struct bench_args *args)
{
	static struct rpma_rt_future held[SLOTS];
	double begin = bench_now();
	double end = begin + args->seconds;
	int cpu = args->cpus[0];
	uint64_t posted;
	uint64_t taken = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, poller_main, &cpu))
		bench_fail("no thread");
	bench_pin(args->cpus[1]);
	for (posted = 0; posted < SLOTS; posted++)
		post(&held[posted], posted);
	do {
		do {
			wait_for(&held[taken % SLOTS], taken);
			taken++;
			post(&held[posted % SLOTS], posted);
			posted++;
		} while (posted % SLOTS != 0);
	} while (bench_now() < end);
	/* release: pairs with the acquire in poller_main() */
	atomic_store_explicit(&cq.total, posted, memory_order_release);
	for (; taken < posted; taken++)
		wait_for(&held[taken % SLOTS], taken);
	end = bench_now();
	pthread_join(thread, NULL);
	return (double)taken / (end - begin) / 1e6;
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	const char *way = args.count == 1 ? args.words[0] : "";

	open_all();
	if (strcmp(way, "future") == 0) {
		bench_report(way, run_both(&args), "Mops/s");
		return 0;
	}
	bench_pin(args.cpus[0]);
	if (strcmp(way, "slot") == 0)
		bench_report(way, run_alone(args.seconds, complete_all),
			     "Mops/s");
	else if (strcmp(way, "stores") == 0)
		bench_report(way, run_alone(args.seconds, store_all), "Mops/s");
	else
		bench_fail("WAY is future, slot, stores");
	return 0;
}
