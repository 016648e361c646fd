/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * load.c: see load.h. Closed loop: a connection has so many requests without an
 * answer, and the next starts when an answer comes. Open loop: requests are due
 * at times that do not depend on the answers, and the latency counts from the
 * time when a request was due, also if there was no room to send the request
 * then: a server that stops for a second is charged for all requests of that
 * second.
 */

#include "load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/clock.h"

#define BATCH	 32
#define FIRST_MS 10 /* pauses before connecting again */
#define MOST_MS	 1000
#define RECEIVES 33	 /* of a connection: for windows of up to 32 requests */
#define SPIN_US	 1000000 /* a sleep would be measured as latency */

struct request {
	struct kv_op op;
	struct request *next;
	uint32_t key;
	uint32_t version;  /* of a write */
	uint32_t acked;	   /* of a read: acknowledged at the start */
	uint64_t since_ns; /* when the request was due */
	uint64_t piece;	   /* of the arena, or ARENA_FULL */
	char small[KV_SMALL_MAX];
};

pthread_barrier_t load_barrier;
atomic_bool load_is_interrupted;

/* Adds to a counter of one writer; relaxed: figures for a report. */
static void count(atomic_ullong *counter)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* ------------------------------------------------------------- requests --- */

/* Chooses a size between the limits, small sizes as often as large ones: the
 * logarithm is uniform. */
static size_t choose_size(struct load *load)
{
	double low = (double)load->settings->size_min;
	double high = (double)load->settings->size_max;
	double share =
		(double)(keys_random(&load->keys) >> 11) / (double)(1ull << 53);

	return (size_t)(low * pow((high + 1) / low, share));
}

/* Chooses a key by the distribution, of the shard of the connection, or of any
 * other shard, as often as the settings say. */
static uint32_t choose_key(struct load *load, const struct kv_client *client)
{
	uint64_t foreign = load->settings->foreign;
	bool is_foreign = keys_random(&load->keys) % 100 < foreign;
	char name[KEY_LEN];
	uint32_t key, owner;
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		key = keys_choose(&load->keys);
		if (foreign == FOREIGN_ANY || client->shards < 2)
			break;
		keys_name(&load->keys, key, name);
		owner = kv_shard_of(kv_hash(name, KEY_LEN), client->shards);
		if ((owner != client->shard) == is_foreign)
			break;
	}
	return key;
}

/* Chooses what the request does; returns false if there is no memory now. */
static bool choose(struct load *load, const struct kv_client *client,
		   struct request *request)
{
	uint64_t of_100 = keys_random(&load->keys) % 100;
	const struct settings *settings = load->settings;
	struct kv_op *op = &request->op;
	struct key *key;

	request->key =
		load->is_filling ? load->filled : choose_key(load, client);
	key = &load->keys.keys[request->key];
	if (load->is_filling)
		op->kind = KV_PUT;
	else if (of_100 < settings->get || key->is_busy)
		op->kind = KV_GET;
	else
		op->kind = of_100 < settings->get + settings->delete ? KV_DELETE
								     : KV_PUT;
	op->len = op->kind == KV_PUT ? choose_size(load) : settings->size_max;
	op->bytes = op->kind == KV_PUT ? request->small : NULL;
	request->piece = ARENA_FULL;
	request->acked = key->acked;
	if (op->len <= KV_SMALL_MAX || op->kind == KV_DELETE)
		return true;
	request->piece = arena_take(&load->arena, op->len);
	op->bytes = load->arena.memory + request->piece;
	return request->piece != ARENA_FULL;
}

static void request_free(struct load *load, struct request *request)
{
	if (request->piece != ARENA_FULL)
		arena_give(&load->arena, request->piece);
	request->next = load->free;
	load->free = request;
}

/* Starts a request; returns false if there is no room on the connection. */
static bool start(struct load *load, struct kv_client *client,
		  uint64_t since_ns)
{
	struct request *request = load->free;
	struct kv_op *op = &request->op;
	char name[KEY_LEN];
	struct key *key;
	bool is_write;

	if (request == NULL || client->calls.open == client->calls.window)
		return false;
	load->free = request->next;
	request->since_ns = since_ns;
	if (!choose(load, client, request)) {
		request_free(load, request);
		return false;
	}
	key = &load->keys.keys[request->key];
	is_write = op->kind != KV_GET;
	request->version = key->sent + 1;
	keys_name(&load->keys, request->key, name);
	op->key = name;
	op->key_len = sizeof(name);
	op->deadline_ns =
		load->settings->deadline_ms
			? load->now_ns + load->settings->deadline_ms * CLOCK_MS
			: CALLS_NONE;
	if (op->kind == KV_PUT)
		keys_fill(&load->keys, request->key, request->version,
			  op->bytes, op->len);
	if (kv_client_start(client, op)) {
		request_free(load, request);
		return false;
	}
	if (is_write) {
		key->sent = request->version;
		key->is_busy = true;
	}
	if (op->kind == KV_DELETE)
		key->deleted = request->version;
	if (op->deadline_ns < load->tick_ns)
		load->tick_ns = op->deadline_ns;
	load->filled += load->is_filling;
	load->left--;
	load->running++;
	count(&load->counts.started);
	return true;
}

static void judge(struct load *load, const struct request *request,
		  const void *value, size_t len)
{
	const char *fault = keys_judge(&load->keys, request->key,
				       request->acked, value, len);

	if (fault == NULL)
		return;
	if (atomic_load_explicit(&load->counts.wrong, memory_order_relaxed) <
	    10)
		fprintf(stderr, "client: thread %u, key %u: %s\n", load->number,
			request->key, fault);
	count(&load->counts.wrong);
}

static void done(struct kv_client *client, struct kv_op *op,
		 const struct kv_answer *answer, const void *value)
{
	struct request *request = (struct request *)(void *)op;
	enum kv_status status = (enum kv_status)answer->frame.status;
	struct load *load = client->user;
	struct key *key = &load->keys.keys[request->key];
	bool is_write = op->kind != KV_GET;

	if (is_write)
		key->is_busy = false;
	if (status == KV_OK || status == KV_NONE) {
		if (is_write)
			key->acked = request->version;
		else
			judge(load, request, status == KV_OK ? value : NULL,
			      answer->value_len);
		if (!load->is_filling)
			hist_add(&load->latency[is_write],
				 load->now_ns - request->since_ns);
	} else if (status == KV_LOST) {
		count(&load->counts.lost);
	} else if (status == KV_EXPIRED) {
		count(&load->counts.expired);
	} else if (status == KV_FULL) {
		count(&load->counts.full);
	} else { /* with settings that the server allows */
		count(&load->counts.wrong);
	}
	load->running--;
	request_free(load, request);
}

static void late(struct kv_client *client, struct kv_op *op)
{
	struct load *load = client->user;

	(void)op;
	count(&load->counts.late);
}

/* ----------------------------------------------------------- the loops --- */

static void top_up(struct load *load, struct kv_client *client)
{
	while (load->left > 0 && client->calls.open < load->settings->depth)
		if (!start(load, client, load->now_ns)) {
			/* a connection without requests gets no item */
			load->is_starved |= client->calls.open == 0;
			return;
		}
}

static void top_up_all(struct load *load)
{
	uint32_t i;

	load->is_starved = false;
	for (i = 0; i < load->client_count; i++)
		top_up(load, &load->clients[i]);
}

/* Starts the requests that are due, each on the next client with room. */
static void start_due(struct load *load)
{
	uint64_t gap_ns =
		CLOCK_SECOND * load->settings->threads / load->settings->rate;
	uint32_t tried = 0;

	while (load->left > 0 && load->due_ns <= load->now_ns &&
	       tried < load->client_count) {
		struct kv_client *client = &load->clients[load->client_next];

		load->client_next =
			(load->client_next + 1) % load->client_count;
		tried++;
		if (!start(load, client, load->due_ns))
			continue;
		tried = 0;
		/* by chance, between 0 and 2 gaps */
		load->due_ns += keys_random(&load->keys) % (2 * gap_ns + 1);
		if (load->due_ns >= load->end_ns)
			load->left = 0;
	}
}

static void tick(struct load *load)
{
	uint64_t again_ns;
	uint32_t i;

	load->tick_ns = load->now_ns + CLOCK_SECOND / 10;
	for (i = 0; i < load->client_count; i++) {
		again_ns = kv_client_tick(&load->clients[i], load->now_ns);
		if (again_ns < load->tick_ns)
			load->tick_ns = again_ns;
	}
	/* relaxed: a flag alone */
	if (atomic_load_explicit(&load_is_interrupted, memory_order_relaxed) ||
	    (!load->is_filling && load->now_ns >= load->end_ns &&
	     load->settings->rate == 0))
		load->left = 0;
}

static void on_item(struct load *load, const struct rpma_rt_completion *item)
{
	struct kv_client *client = item->user;
	uint64_t connects;

	if (client == NULL)
		return;
	connects = client->connects;
	kv_client_item(client, item, load->now_ns);
	if (client->connects != connects)
		count(&load->counts.connects);
	if (item->kind == RPMA_RT_EVENT)
		load->tick_ns = load->now_ns; /* perhaps to connect */
	if (load->is_filling || load->settings->rate == 0)
		top_up(load, client);
}

/* Returns how many milliseconds there is nothing to start: 0 to poll. */
static int idle_ms(const struct load *load)
{
	uint64_t until_ns = load->tick_ns;

	if (!load->is_filling && load->settings->rate > 0 && load->left > 0 &&
	    load->due_ns < until_ns)
		until_ns = load->due_ns;
	if (load->is_starved)
		return 1;
	return until_ns > load->now_ns
		       ? (int)((until_ns - load->now_ns) / CLOCK_MS)
		       : 0;
}

/* Runs until all requests are started and answered. */
static void turn_until_done(struct load *load)
{
	struct rpma_rt_completion items[BATCH];
	uint64_t heard_ns = clock_now();
	int got, i;

	while (load->left > 0 || load->running > 0) {
		load->now_ns = clock_now();
		if (load->now_ns >= load->tick_ns)
			tick(load);
		if (load->is_filling || load->settings->rate == 0) {
			if (load->is_starved)
				top_up_all(load);
		} else {
			start_due(load);
		}
		got = rpma_rt_queue_wait(load->queue, items, BATCH,
					 idle_ms(load));
		load->now_ns = clock_now();
		for (i = 0; i < got; i++) {
			on_item(load, &items[i]);
			if (items[i].kind != RPMA_RT_EVENT)
				heard_ns = load->now_ns;
		}
		if (got < 0 ||
		    load->now_ns - heard_ns >
			    load->settings->patience_s * CLOCK_SECOND) {
			load->failed = "the server does not answer: does a "
				       "server run at this address and port?";
			return;
		}
	}
}

static void fill(struct load *load)
{
	load->is_filling = load->is_starved = true;
	load->left = load->keys.count;
	turn_until_done(load);
	load->is_filling = false;
}

static void measure(struct load *load)
{
	const struct settings *settings = load->settings;

	load->begin_ns = load->due_ns = load->now_ns = clock_now();
	load->end_ns = load->begin_ns + settings->seconds * CLOCK_SECOND;
	load->left = UINT64_MAX;
	if (settings->operations > 0) {
		load->left = settings->operations / settings->threads;
		load->end_ns = UINT64_MAX;
	}
	load->is_starved = settings->rate == 0;
	turn_until_done(load);
	load->end_ns = clock_now();
}

/* ----------------------------------------------------------- the thread --- */

/* Makes the slots: each connection has receives for a whole window and KV_BYE,
 * as many answers in the thread's hands, and requests, whose slots may come
 * back late. */
static int open_memory(struct load *load)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	uint64_t largest = load->settings->size_max;
	uint32_t requests = load->client_count * (RECEIVES - 1), i;

	cfg.peer = load->peer;
	cfg.slot_size = KV_MESSAGE;
	cfg.sends = 2 * requests;
	cfg.count = cfg.sends + 2 * load->client_count * RECEIVES;
	load->requests = calloc(requests, sizeof(*load->requests));
	if (load->requests == NULL)
		return RPMA_E_NOMEM;
	for (i = 0; i < requests; i++) {
		load->requests[i].piece = ARENA_FULL;
		request_free(load, &load->requests[i]);
	}
	/* pieces are powers of two */
	largest = largest <= KV_SMALL_MAX ? 0 : 2 * largest * requests;
	if (largest > 4 * KV_VALUE_MAX)
		largest = 4 * KV_VALUE_MAX;
	if (arena_open(&load->arena, load->peer, largest + 1,
		       RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST))
		return RPMA_E_PROVIDER;
	return rpma_rt_pool_new(load->rt, &cfg, &load->pool);
}

static void client_open(struct load *load, uint32_t number)
{
	const struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct kv_client *client = &load->clients[number];

	client->link = (struct reconnect){.rt = load->rt,
					  .address = load->settings->address,
					  .port = load->settings->port,
					  .cfg = cfg,
					  .first_ms = FIRST_MS,
					  .most_ms = MOST_MS,
					  .random = keys_random(&load->keys)};
	client->link.cfg.peer = load->peer;
	client->link.cfg.queue = load->queue;
	client->link.cfg.rq_size = RECEIVES;
	client->link.cfg.keepalive_ms = 1000;
	client->pool = load->pool;
	client->arena = &load->arena;
	client->done = done;
	client->late = late;
	client->user = load;
	kv_client_init(client);
}

static bool load_open(struct load *load)
{
	const struct settings *settings = load->settings;
	struct rpma_rt_queue_cfg queue_cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	bool is_zipf = settings->keys_by[0] == 'z';
	uint32_t i;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	queue_cfg.spin_us = SPIN_US;
	load->clients = calloc(load->client_count, sizeof(*load->clients));
	if (load->clients == NULL ||
	    !keys_open(&load->keys,
		       (uint32_t)(settings->keys / settings->threads),
		       settings->seed * 1024 + load->number, is_zipf) ||
	    rpma_rt_new(&cfg, &load->rt) ||
	    rpma_rt_queue_new(load->rt, &queue_cfg, &load->queue) ||
	    open_memory(load)) {
		load->failed = "no memory, or the device refuses";
		return false;
	}
	for (i = 0; i < load->client_count; i++)
		client_open(load, i);
	return true;
}

static void load_close(struct load *load)
{
	uint32_t i;

	for (i = 0; load->clients && i < load->client_count; i++) {
		reconnect_end(&load->clients[i].link);
		for (; load->clients[i].broken > 0; load->clients[i].broken--)
			count(&load->counts.broken);
	}
	if (load->rt != NULL)
		rpma_rt_stop(load->rt);
	for (i = 0; load->clients && i < load->client_count; i++)
		rpma_rt_conn_unref(&load->clients[i].link.conn);
	rpma_rt_queue_delete(&load->queue);
	if (load->pool != NULL)
		rpma_rt_pool_delete(&load->pool);
	rpma_rt_delete(&load->rt);
	arena_close(&load->arena);
	keys_close(&load->keys);
	free(load->requests);
	free(load->clients);
}

void *load_run(void *arg)
{
	struct load *load = arg;
	bool is_open = load_open(load);

	if (is_open)
		fill(load);
	pthread_barrier_wait(&load_barrier);
	if (is_open && load->failed == NULL)
		measure(load);
	load_close(load);
	return NULL;
}
