/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * load.h: a thread of the load generator: a runtime in manual mode, and
 * connections with requests. The keys of a thread belong to the thread alone,
 * which therefore can judge every value.
 */

#ifndef EXAMPLES_KV_LOAD_H
#define EXAMPLES_KV_LOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "../common/histogram.h"
#include "client.h"
#include "keys.h"

#define FOREIGN_ANY 101

struct settings {
	const char *address, *port;
	uint64_t threads;
	uint64_t connections; /* of all threads */
	uint64_t depth;	      /* closed loop: requests of a connection */
	uint64_t rate;	      /* open loop: requests in a second of all
			       * threads; 0: closed loop */
	uint64_t seconds;
	uint64_t operations;  /* of all threads; 0: by time */
	uint64_t keys;	      /* of all threads */
	uint64_t get, delete; /* of 100 requests; the rest are PUT */
	uint64_t size_min, size_max;
	uint64_t deadline_ms; /* 0: none */
	uint64_t patience_s;  /* without any answer */
	uint64_t seed;
	uint64_t foreign;    /* of 100 keys, keys of another shard than the
			      * shard of the connection; FOREIGN_ANY: as keys
			      * fall */
	const char *keys_by; /* zipf or uniform */
};

/* Counters of a thread; one writer, main reads. */
struct counts {
	atomic_ullong started, wrong, late, expired, full, lost, broken,
		connects;
};

enum load_kind { LOAD_READS, LOAD_WRITES, LOAD_KINDS };

struct load {
	const struct settings *settings;
	struct rpma_peer *peer;
	uint32_t number;
	pthread_t thread;
	struct rpma_rt *rt;
	struct rpma_rt_queue *queue;
	struct rpma_rt_pool *pool;
	struct arena arena;
	struct kv_client *clients;
	uint32_t client_count;
	uint32_t client_next; /* open loop: the clients in turn */
	struct request *requests, *free;
	struct keys keys;
	uint32_t filled; /* keys that were written at the start */
	uint64_t now_ns, tick_ns, begin_ns, end_ns;
	uint64_t due_ns; /* open loop: the intended start of the next one */
	uint64_t left;	 /* requests to start */
	uint32_t running;
	bool is_filling, is_starved;
	struct histogram latency[LOAD_KINDS];
	struct counts counts;
	const char *failed; /* NULL: all is well */
};

/* Fills the keys, waits for the other threads at the barrier, and runs. */
void *load_run(void *load);
extern pthread_barrier_t load_barrier;
extern atomic_bool load_is_interrupted;

#endif /* EXAMPLES_KV_LOAD_H */
