/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * world.c -- the common ground of the runtime's tests.
 */

#include "world.h"

#include <string.h>
#include <time.h>

_Noreturn void world_die(const char *file, int line, const char *what, int ret)
{
	fprintf(stderr, "%s:%d: %s", file, line, what);
	if (ret)
		fprintf(stderr, " = %d (%s)", ret, rpma_rt_err_2str(ret));
	fprintf(stderr, "\n");
	abort();
}

struct rpma_mr_remote *world_remote_of(const struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote;
	size_t size;
	char *descriptor;

	MUST(rpma_mr_get_descriptor_size(mr, &size));
	descriptor = malloc(size);
	CHECK(descriptor);
	MUST(rpma_mr_get_descriptor(mr, descriptor));
	MUST(rpma_mr_remote_from_descriptor(descriptor, size, &remote));
	free(descriptor);
	return remote;
}

static struct world_core *core_at(const struct world_core *cores, size_t size,
				  uint32_t index)
{
	return (struct world_core *)((uintptr_t)cores + index * size);
}

struct rpma_rt_shards *world_shards(struct world *w,
				    const struct rpma_rt_shards_cfg *cfg,
				    struct world_core *cores, uint32_t count,
				    size_t size)
{
	struct rpma_rt_shards_cfg with = *cfg;
	void **args = calloc(count, sizeof(*args));
	struct rpma_rt_shards *shards;
	struct world_core *core;
	uint32_t i;

	CHECK(args);
	for (i = 0; i < count; i++)
		args[i] = core_at(cores, size, i);
	with.args = args;
	with.arg_count = count;
	MUST(rpma_rt_shards_new(w->rt, &with, &shards));
	for (i = 0; i < count; i++) {
		core = core_at(cores, size, i);
		core->index = i;
		MUST(rpma_rt_shards_get(shards, i, &core->shard));
	}
	free(args);
	return shards;
}

void world_cores_start(struct world_core *cores, uint32_t count, size_t size,
		       void *(*main)(void *))
{
	struct world_core *core;
	uint32_t i;

	for (i = 0; i < count; i++) {
		core = core_at(cores, size, i);
		CHECK(pthread_create(&core->thread, NULL, main, core) == 0);
	}
}

void world_cores_join(const struct world_core *cores, uint32_t count,
		      size_t size)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		CHECK(pthread_join(core_at(cores, size, i)->thread, NULL) == 0);
}

uint64_t world_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint32_t world_roll(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

void world_open(struct world *w)
{
	const char *addr = getenv("RPMA_TEST_ADDR");

	memset(w, 0, sizeof(*w));
	w->addr = addr ? addr : "127.0.0.1";
	if (rpma_utils_get_ibv_context(w->addr, RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &w->ibv_ctx) ||
	    w->ibv_ctx == NULL) {
		printf("SKIP: no RDMA device at %s\n", w->addr);
		exit(77);
	}
	MUST(rpma_peer_new(w->ibv_ctx, &w->peer));
}

void world_start(struct world *w, int pollers, enum rpma_rt_mode mode)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.pollers = pollers;
	cfg.mode = mode;
	cfg.backstop_ms = 0;
	MUST(rpma_rt_new(&cfg, &w->rt));
}

void world_close(struct world *w)
{
	MUST(rpma_rt_delete(&w->rt));
	MUST(rpma_peer_delete(&w->peer));
}

int world_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr)
{
	int ret = rpma_rt_post_send(conn, wr, 1);

	CHECK(ret < 0 || ret == 1);
	return ret < 0 ? ret : 0;
}

int world_post_recv(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr)
{
	int ret = rpma_rt_post_recv(conn, wr, 1);

	CHECK(ret < 0 || ret == 1);
	return ret < 0 ? ret : 0;
}

struct rpma_rt_completion world_next(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(1, rpma_rt_queue_wait(queue, &item, 1, WORLD_PATIENCE_MS));
	return item;
}

struct rpma_rt_completion world_next_but_writable(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	do {
		item = world_next(queue);
	} while (item.kind == RPMA_RT_WRITABLE);
	return item;
}

struct rpma_rt_completion world_event(struct rpma_rt_queue *queue,
				      enum rpma_rt_event event)
{
	struct rpma_rt_completion item = world_next(queue);

	if (item.kind != RPMA_RT_EVENT || item.opcode != event) {
		fprintf(stderr,
			"expected event %d, got kind %d opcode %d status %d\n",
			event, item.kind, item.opcode, item.status);
		abort();
	}
	return item;
}

struct rpma_rt_conn_cfg *world_cfg(uint32_t sq, uint32_t rq)
{
	struct rpma_rt_conn_cfg *cfg = malloc(sizeof(*cfg));

	CHECK(cfg);
	*cfg = (struct rpma_rt_conn_cfg)RPMA_RT_CONN_CFG_INIT;
	cfg->sq_size = sq;
	cfg->rq_size = rq;
	return cfg;
}

static struct rpma_rt_conn_cfg filled(const struct rpma_rt_conn_cfg *cfg,
				      struct rpma_peer *peer, int poller,
				      struct rpma_rt_queue *queue, void *user)
{
	struct rpma_rt_conn_cfg copy = RPMA_RT_CONN_CFG_INIT;

	if (cfg != NULL)
		copy = *cfg;
	copy.peer = peer;
	copy.poller = poller;
	copy.queue = queue;
	copy.user = user;
	return copy;
}

int world_conn_new(struct rpma_rt *rt, struct rpma_peer *peer, const char *addr,
		   const char *port, const struct rpma_rt_conn_cfg *cfg,
		   int poller, struct rpma_rt_queue *queue, void *user,
		   struct rpma_rt_conn **conn_ptr)
{
	const struct rpma_rt_conn_cfg copy =
		filled(cfg, peer, poller, queue, user);

	return rpma_rt_conn_new(rt, addr, port, &copy, conn_ptr);
}

int world_listen_at(struct rpma_rt *rt, struct rpma_peer *peer,
		    const char *addr, const char *port, uint32_t backlog,
		    const struct rpma_rt_conn_cfg *cfg, int poller,
		    struct rpma_rt_queue *queue, void *user,
		    struct rpma_rt_listener **listener_ptr)
{
	struct rpma_rt_conn_cfg copy = filled(cfg, peer, poller, queue, user);

	copy.backlog = backlog;
	return rpma_rt_listen(rt, addr, port, &copy, listener_ptr);
}

struct rpma_rt_listener *world_listen(struct world *w,
				      const struct rpma_rt_conn_cfg *cfg,
				      struct rpma_rt_queue *queue)
{
	struct rpma_rt_listener *listener;
	uint16_t port;

	MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 64, cfg,
			     RPMA_RT_POLLER_ANY, queue, NULL, &listener));
	MUST(rpma_rt_listener_get_port(listener, &port));
	snprintf(w->port, sizeof(w->port), "%u", port);
	return listener;
}

void world_connect(struct world *w, const struct rpma_rt_conn_cfg *cfg,
		   int poller, struct rpma_rt_queue *aq,
		   struct rpma_rt_queue *pq, struct world_pair *pair)
{
	struct rpma_rt_listener *listener = world_listen(w, cfg, pq);

	pair->active = world_ready(w, cfg, poller, aq);
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = world_request(pq);
	world_accept(pair, aq, pq);
	world_unlisten(&listener, pq);
}

struct rpma_rt_conn *world_ready(const struct world *w,
				 const struct rpma_rt_conn_cfg *cfg, int poller,
				 struct rpma_rt_queue *queue)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, cfg, poller,
			    queue, NULL, &conn));
	world_event(queue, RPMA_RT_EVENT_READY);
	return conn;
}

struct rpma_rt_conn *world_request(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item =
		world_event(queue, RPMA_RT_EVENT_REQUEST);

	return rpma_rt_completion_conn(&item);
}

void world_accept(const struct world_pair *pair, struct rpma_rt_queue *aq,
		  struct rpma_rt_queue *pq)
{
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	world_event(aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(pq, RPMA_RT_EVENT_ESTABLISHED);
}

struct rpma_rt_completion world_closed(struct rpma_rt_queue *queue,
				       struct rpma_rt_conn **conn, int reason)
{
	struct rpma_rt_completion item =
		world_event(queue, RPMA_RT_EVENT_CLOSED);

	if (reason != WORLD_ANY_REASON && item.status != reason) {
		fprintf(stderr, "closed for reason %d, expected %d\n",
			item.status, reason);
		abort();
	}
	CHECK(item.context == (uintptr_t)*conn);
	MUST(rpma_rt_conn_unref(conn));
	return item;
}

void world_until_closed(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	do
		item = world_next(queue);
	while (item.kind != RPMA_RT_EVENT);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
}

void world_unref(struct world_pair *pair)
{
	MUST(rpma_rt_conn_unref(&pair->active));
	MUST(rpma_rt_conn_unref(&pair->passive));
}

void world_unlisten(struct rpma_rt_listener **listener,
		    struct rpma_rt_queue *queue)
{
	const struct rpma_rt_listener *former = *listener;
	struct rpma_rt_completion item;

	MUST(rpma_rt_listener_delete(listener));
	item = world_event(queue, RPMA_RT_EVENT_LISTENER_CLOSED);
	CHECK(rpma_rt_completion_listener(&item) == former);
	CHECK(item.status == RPMA_RT_REASON_LOCAL);
}
