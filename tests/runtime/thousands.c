/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thousands.c -- thousands of connections on two pollers, half of the
 * connections made and closed again and again while the other half exchanges
 * messages: each work request has one completion, in order, and each connection
 * one CLOSED. The allocations of the libraries are counted (thousands_heap.c):
 * the memory of an end is bounded, no connection maps memory, and when all
 * connections have gone, their memory has gone.
 *
 * usage: runtime_thousands CONNECTIONS LIVES
 *
 * Two workers have a queue, a listener and half of the connections each; both
 * ends of a connection have the same worker. One end sends a number, the other
 * sends the number back. Every second connection lives LIVES times, a few
 * messages each.
 */

#include <pthread.h>

#include "thousands.h"
#include "thousands_heap.h"

/*
 * The memory of an established end, as malloc() counts: the runtime, except for
 * what the program configured (the ledgers, the slots of the line, and the
 * items kept when the end dies); its place in lanes, spills and the tables of
 * CQs; and the private data of the other side. A KiB; two cache lines a side
 * more, so that the words that posters change and the words of the thread that
 * holds the right to post stand apart; and a step of malloc(), which aligns the
 * record. And the memory of librpma.
 */
#define END_BYTES     (1024 + 4 * 64 + 16)
#define LIBRPMA_BYTES 208
/* of a request, as librdmacm pads, with the word of malloc(); half of the ends
 * have a request */
#define SENT_BYTES ((56 + 8) / 2)
#define LEFT_BYTES (64 << 10) /* without connections, by malloc() too */

/* ------------------------------------------------------------- counting --- */

/* Checks the memory of an end, from the allocations of count ends. */
static void check_end(const struct heap_count *before, uint32_t count,
		      const char *when)
{
	struct heap_count now = heap_now();
	int64_t bytes[HEAP_ROOMS];
	int64_t runtime;
	int i;

	for (i = 0; i < HEAP_ROOMS; i++)
		bytes[i] = (now.bytes[i] - before->bytes[i]) / count;
	runtime = bytes[HEAP_OTHER] - SENT_BYTES;
	printf("%s, an end: %ld bytes of the runtime and %ld of librpma, "
	       "beside %d of private data, %ld of rings, %ld of spills, %ld of "
	       "CQs' tables; %ld calls of mmap() for %u ends\n",
	       when, (long)runtime, (long)bytes[HEAP_LIBRPMA], SENT_BYTES,
	       (long)bytes[HEAP_LEDGER], (long)bytes[HEAP_SPILL],
	       (long)bytes[HEAP_TABLE], (long)(now.maps - before->maps), count);
	CHECK(runtime <= END_BYTES);
	CHECK(bytes[HEAP_LIBRPMA] <= LIBRPMA_BYTES);
	CHECK(now.maps == before->maps);
}

/* Checks the rest: the last connections, and their CQs, go by and by. A poller
 * keeps a CQ, a lane its spill. */
static void check_left(const struct heap_count *before)
{
	uint64_t begin = world_now_ms();
	struct heap_count now;
	int64_t left;

	do {
		now = heap_now();
		left = now.bytes[HEAP_OTHER] - before->bytes[HEAP_OTHER] +
		       now.bytes[HEAP_LIBRPMA] - before->bytes[HEAP_LIBRPMA];
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
	} while (left > LEFT_BYTES || now.bytes[HEAP_LEDGER] != 0 ||
		 now.blocks[HEAP_TABLE] > POLLERS);
	printf("when all have gone: %ld bytes, %ld tables of CQs, %ld of "
	       "spills\n",
	       (long)left, (long)now.blocks[HEAP_TABLE],
	       (long)now.bytes[HEAP_SPILL]);
}

/* ----------------------------------------------------------------- main --- */

static void open_soak(struct soak *soak, uint32_t count, uint32_t lives)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	size_t size = (size_t)count * 2 * DEPTH * SIZE;
	uint32_t i;

	soak->count = count;
	soak->lives = lives;
	soak->pairs = calloc(count, sizeof(*soak->pairs));
	soak->memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	CHECK(soak->pairs != NULL && soak->memory != NULL);
	for (i = 0; i < 2 * count; i++) {
		soak->pairs[i / 2].end[i % 2].pair = &soak->pairs[i / 2];
		soak->pairs[i / 2].end[i % 2].index = i;
		soak->pairs[i / 2].index = i / 2;
		soak->pairs[i / 2].lives = i / 2 / WORKERS % 2 ? lives : 1;
	}
	world_open(&soak->world);
	cfg.pollers = POLLERS;
	MUST(rpma_rt_new(&cfg, &soak->world.rt));
	soak->cfg = world_cfg(DEPTH, DEPTH);
	MUST(rpma_mr_reg(soak->world.peer, soak->memory, size,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &soak->mr));
	CHECK(pthread_barrier_init(&soak->barrier, NULL, WORKERS + 1) == 0);
}

static void open_worker(struct soak *soak, uint32_t i)
{
	struct worker *w = &soak->workers[i];
	struct world *world = &soak->world;
	uint16_t port;

	*w = (struct worker){.soak = soak, .first = i};
	MUST(rpma_rt_queue_new(world->rt, NULL, &w->queue));
	MUST(world_listen_at(world->rt, world->peer, world->addr, "0",
			     2 * WINDOW, soak->cfg, RPMA_RT_POLLER_ANY,
			     w->queue, NULL, &w->listener));
	MUST(rpma_rt_listener_get_port(w->listener, &port));
	snprintf(w->port, sizeof(w->port), "%u", port);
}

static void close_soak(struct soak *soak)
{
	uint32_t i;

	for (i = 0; i < WORKERS; i++)
		world_unlisten(&soak->workers[i].listener,
			       soak->workers[i].queue);
	MUST(rpma_mr_dereg(&soak->mr));
	MUST(rpma_rt_stop(soak->world.rt));
	for (i = 0; i < WORKERS; i++)
		MUST(rpma_rt_queue_delete(&soak->workers[i].queue));
	world_close(&soak->world);
	pthread_barrier_destroy(&soak->barrier);
	free(soak->cfg);
	free(soak->memory);
	free(soak->pairs);
}

static void between(struct soak *soak, struct heap_count *count)
{
	pthread_barrier_wait(&soak->barrier);
	*count = heap_now();
}

int main(int argc, char **argv)
{
	static struct soak soak;
	struct heap_count empty, warm, full;
	uint64_t messages = 0;
	uint32_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(argc == 3);
	open_soak(&soak, (uint32_t)atoi(argv[1]) / WORKERS * WORKERS,
		  (uint32_t)atoi(argv[2]));
	CHECK(soak.count >= 2 * WARM * WORKERS);
	for (i = 0; i < WORKERS; i++)
		open_worker(&soak, i);
	empty = heap_now();
	for (i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&soak.workers[i].thread, NULL,
				      worker_main, &soak.workers[i]));
	between(&soak, &warm);
	pthread_barrier_wait(&soak.barrier);
	between(&soak, &full);
	check_end(&warm, 2 * (soak.count - WARM * WORKERS), "established");
	pthread_barrier_wait(&soak.barrier);
	for (i = 0; i < WORKERS; i++) {
		CHECK(!pthread_join(soak.workers[i].thread, NULL));
		messages += soak.workers[i].messages;
	}
	check_left(&empty);
	close_soak(&soak);
	printf("ok: %u connections, %lu messages there and back\n", soak.count,
	       (unsigned long)messages);
	return 0;
}
