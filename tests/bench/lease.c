/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_lease [--seconds S] [--cpus A,B]
 *
 * Nanoseconds that a lease costs from stream to stream: the completion of a
 * message becomes a lease, which is given back, and the slot is taken to be
 * posted again, with those of its batch. What the device, the ledger and the
 * queue cost besides is in bench_round.
 */

#include <stdlib.h>

#include "bench.h"
#include "base/runtime.h"
#include "pool/pool.h"
#include "poller/poller.h"

#define SLOTS	   1024
#define SLOT_SIZE  4096
#define CLOCK_EACH 1024

static struct rpma_rt rt;
static struct rpma_rt_pool pool;

/* As life.c makes it, of memory that no device knows. */
static void init_pool(void)
{
	pool.rt = &rt;
	pool.count = SLOTS;
	pool.receives = SLOTS;
	pool.slot_size = SLOT_SIZE;
	pool.stride = SLOT_SIZE;
	pool.leases = calloc(SLOTS, sizeof(*pool.leases));
	pool.next = calloc(SLOTS, sizeof(*pool.next));
	pool.memory = malloc((size_t)SLOTS * SLOT_SIZE);
	if (pool.leases == NULL || pool.next == NULL || pool.memory == NULL)
		bench_fail("no memory");
	rt_pool_list_init(&pool.head, pool.next, 0, SLOTS);
	/* relaxed: nobody else knows it */
	atomic_store_explicit(&rt_pool_table[0], &pool, memory_order_relaxed);
}

/* A batch of messages is handled. */
static void run_batch(void)
{
	struct rpma_rt_completion item = {
		.kind = RPMA_RT_COMPLETION,
		.opcode = IBV_WC_RECV,
		.flags = RPMA_RT_C_LEASE,
		.byte_len = 64,
	};
	uint64_t cookies[RT_BATCH];
	struct rpma_rt_lease lease;
	int i;

	if (rt_pool_take(&pool, cookies, RT_BATCH) != RT_BATCH)
		bench_fail("a slot is lost");
	for (i = 0; i < RT_BATCH; i++) {
		item.context = cookies[i];
		if (!rpma_rt_completion_lease(&item, &lease) ||
		    rpma_rt_lease_release(&lease))
			bench_fail("a lease is refused");
	}
}

int main(int argc, char **argv)
{
	struct bench_args args = bench_parse(argc, argv);
	uint64_t batches = 0;
	double begin;
	double end;

	bench_pin(args.cpus[0]);
	init_pool();
	begin = bench_now();
	end = begin + args.seconds;
	do {
		run_batch();
	} while (++batches % CLOCK_EACH != 0 || bench_now() < end);
	bench_report("lease",
		     (bench_now() - begin) * 1e9 / (double)(batches * RT_BATCH),
		     "ns");
	return 0;
}
