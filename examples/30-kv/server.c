/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT [NAME=VALUE...]: a key-value server. SIGTERM or SIGINT
 * drains the connections and ends the server, SIGUSR1 prints the state of the
 * runtime.
 */

#include "server.h"

#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include "../common/kv_protocol.h"
#include "../common/peer.h"
#include "../common/try.h"
#include "../common/words.h"

#define BUCKETS	 65536
#define SRQ_SIZE 512
#define SLOT	 (KV_MESSAGE + 64) /* not all in the same sets of a cache */
#define DRAIN_S	 5		   /* for clients that do not close */

static struct server server = {.threads.srq_size = SRQ_SIZE,
			       .patience_ms = 10000};
static struct workers *const threads = &server.threads;
static struct worker workers[WORKERS_MAX];
static uint64_t worker_count = 2, memory_mib = 256, clients_max = 512, manual;
static const char *file;
static const struct word words[] = {
	{"workers", &worker_count, NULL, 1, WORKERS_MAX, "threads"},
	{"manual", &manual, NULL, 0, 1, "1: without threads of the runtime"},
	{"memory", &memory_mib, NULL, 64, 1 << 20, "MiB for values"},
	{"clients", &clients_max, NULL, 1, 65536, "connections at a time"},
	{"idle", &server.idle_ms, NULL, 0, 86400000,
	 "milliseconds for a client that owes nothing, 0: without end"},
	{"patience", &server.patience_ms, NULL, 1, 86400000,
	 "milliseconds for a client that owes something"},
	{"file", NULL, &file, 0, 0, "values are read and, at the end, written"},
	{NULL, NULL, NULL, 0, 0, NULL}};

/* Makes the store, the slots and the runtime. */
static int open_server(const char *address)
{
	const int usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
			  RPMA_MR_USAGE_SEND;
	const struct kv_answer bye = {.frame = {.kind = KV_BYE}};
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	uint8_t *place;

	server.clients_max = (clients_max + worker_count - 1) / worker_count;
	cfg.pollers = (uint32_t)worker_count;
	threads->is_manual = manual;
	if (manual)
		cfg.mode = RPMA_RT_MODE_MANUAL;
	if (open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &threads->peer) ||
	    TRY(arena_open(&server.arena, threads->peer, memory_mib << 20,
			   usage)) ||
	    TRY(store_open(&server.store, &server.arena, BUCKETS)) ||
	    TRY(rpma_rt_new(&cfg, &threads->rt)))
		return 1;
	server.arena.has_one_thread = worker_count == 1;
	server.bye = arena_take(&server.arena, KV_MESSAGE);
	kv_answer_write(&bye, server.arena.memory + server.bye, &place);
	return 0;
}

/* Makes the slots: receives, requests in queues, answers of all clients. */
static int open_pool(void)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.peer = threads->peer;
	cfg.slot_size = SLOT;
	cfg.sends = (uint32_t)(WINDOW * worker_count * server.clients_max);
	cfg.count = (uint32_t)(SRQ_SIZE * worker_count) + 2 * cfg.sends;
	return TRY(rpma_rt_pool_new(threads->rt, &cfg, &threads->pool));
}

static int open_workers(void)
{
	uint64_t i;

	for (i = 0; i < worker_count; i++) {
		workers[i].server = &server;
		sem_init(&workers[i].drained, 0, 0);
		if (workers_add(threads, worker_run, &workers[i],
				&workers[i].queue))
			return 1;
	}
	return 0;
}

static int listen_at(const char *address, const char *port,
		     struct rpma_rt_listener **listener)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	uint16_t number = 0;

	/* an answer and a write or a read for each request, and KV_BYE */
	cfg.sq_size = 2 * WINDOW + 1;
	cfg.waiting = RPMA_RT_NO_WAITING;
	cfg.keepalive_ms = 2000;
	if (workers_listen(threads, address, port, &cfg, listener, &number))
		return 1;
	printf("server: %" PRIu64 " workers at %s port %u\n", worker_count,
	       address, number);
	fflush(stdout);
	return 0;
}

/* Serves until SIGTERM or SIGINT. */
static void serve(const sigset_t *signals)
{
	int signal = 0;

	while (sigwait(signals, &signal) == 0 && signal == SIGUSR1)
		rpma_rt_dump(threads->rt, 2, RPMA_RT_DUMP_HUMAN);
}

/* Takes no further client, says goodbye to all, and waits until all have
 * closed: each request that a client has sent is answered. */
static void drain(struct rpma_rt_listener **listener)
{
	const struct rpma_rt_completion goodbye = {0};
	struct timespec until;
	uint64_t i;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DRAIN_S;
	TRY(rpma_rt_listener_delete(listener));
	for (i = 0; i < worker_count; i++)
		TRY(rpma_rt_queue_push(workers[i].queue, &goodbye));
	for (i = 0; i < worker_count; i++)
		if (sem_timedwait(&workers[i].drained, &until))
			/* closed by rpma_rt_stop() */
			fprintf(stderr, "server: not all clients closed\n");
}

/* Ends the threads, and prints the sums of their counters. */
static int stop(void)
{
	static const char *const names[STATS] = {
		"clients", "refused", "broken", "stuck",  "gets",
		"puts",	   "deletes", "stored", "pulled", "pushed",
		"waited",  "full",    "expired"};
	int ret = threads->rt ? TRY(rpma_rt_stop(threads->rt)) : 0;
	uint64_t i, stat, sum;

	workers_join(threads);
	for (stat = 0; stat < STATS; stat++) {
		for (sum = i = 0; i < worker_count; i++)
			sum += ((const uint64_t *)&workers[i].stats)[stat];
		printf("%s\"%s\": %" PRIu64, stat ? ", " : "{", names[stat],
		       sum);
	}
	puts("}");
	return ret;
}

static int close_server(void)
{
	int ret = workers_close(threads);

	ret |= TRY(rpma_rt_pool_delete(&threads->pool));
	ret |= TRY(rpma_rt_delete(&threads->rt));
	store_close(&server.store);
	if (server.arena.used > KV_MESSAGE) /* all but the piece of KV_BYE */
		ret = fprintf(stderr, "a value was not freed\n");
	ret |= TRY(arena_close(&server.arena));
	ret |= TRY(rpma_peer_delete(&threads->peer));
	return ret != 0;
}

int main(int argc, char **argv)
{
	struct rpma_rt_listener *listener = NULL;
	sigset_t signals;
	int ret;

	if (!words_read(words, argc, argv))
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* of all threads */
	ret = open_server(argv[1]) ||
	      (file && store_load(&server.store, 1, file)) || open_pool() ||
	      open_workers() || listen_at(argv[1], argv[2], &listener);
	if (!ret) {
		serve(&signals);
		drain(&listener);
	}
	ret = stop() || ret;
	if (!ret && file)
		ret = store_save(&server.store, 1, file);
	return close_server() || ret;
}
