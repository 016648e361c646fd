/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * handshake.c -- a server accepts, and closes or drains the connection before
 * the client has taken the answer, at any moment of the handshake, and, where
 * the device can hold a call, while the client moves its queue pair. The reason
 * at the client says that the peer left or refused, without an errno. Server
 * and client have a runtime each, so a control thread each.
 *
 * usage: runtime_handshake [times [seed]]
 */

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	   4
#define SIZE	   8
#define SHORT_MS   20 /* for which a server waits for the end of a handshake */
#define SPIN_LIMIT 200000 /* looks at a word: some hundred microseconds */

struct scene {
	struct stage server;
	struct world client;
	struct rpma_rt_queue *queue; /* the client's */
	struct rpma_rt_listener *listener;
};

/* teardown_ms: the server's, 0: the default */
static void open_scene(struct scene *s, uint32_t teardown_ms)
{
	const struct stage_cfg cfg = {.pollers = 1,
				      .mode = RPMA_RT_MODE_EVENT,
				      .depth = DEPTH,
				      .teardown_ms = teardown_ms};

	stage_open(&s->server, &cfg);
	s->client = s->server.world;
	world_start(&s->client, 1, RPMA_RT_MODE_EVENT);
	MUST(rpma_rt_queue_new(s->client.rt, NULL, &s->queue));
	s->listener =
		world_listen(&s->server.world, s->server.cfg, s->server.pq);
	memcpy(s->client.port, s->server.world.port, sizeof(s->client.port));
}

static void close_scene(struct scene *s)
{
	world_unlisten(&s->listener, s->server.pq);
	MUST(rpma_rt_stop(s->client.rt));
	MUST(rpma_rt_queue_delete(&s->queue));
	MUST(rpma_rt_delete(&s->client.rt));
	stage_close(&s->server);
}

/* Begins a client with a receive, and its request. */
static void begin(struct scene *s, struct world_pair *pair)
{
	pair->active = world_ready(&s->client, s->server.cfg, 0, s->queue);
	MUST(rpma_rt_recv(pair->active, s->server.mr, 0, SIZE, 1));
	MUST(rpma_rt_conn_connect(pair->active, NULL));
	pair->passive = world_request(s->server.pq);
}

static void leave(struct rpma_rt_conn *conn, bool by_drain)
{
	if (by_drain)
		MUST(rpma_rt_conn_drain(conn, 0));
	else
		MUST(rpma_rt_conn_close(conn));
}

/* The server's items up to CLOSED. */
static void server_is_closed(struct scene *s, struct world_pair *pair)
{
	struct rpma_rt_completion item = world_next(s->server.pq);

	if (rpma_rt_completion_event(&item) == RPMA_RT_EVENT_ESTABLISHED)
		item = world_next(s->server.pq);
	CHECK(rpma_rt_completion_event(&item) == RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&pair->passive));
}

/* Takes the items of the client up to CLOSED, which is returned. */
static struct rpma_rt_completion client_closed(struct scene *s,
					       struct world_pair *pair)
{
	struct rpma_rt_completion item = world_next(s->queue);

	if (rpma_rt_completion_event(&item) == RPMA_RT_EVENT_ESTABLISHED)
		item = world_next(s->queue);
	CHECK(item.kind == RPMA_RT_COMPLETION && item.context == 1);
	return world_closed(s->queue, &pair->active, WORLD_ANY_REASON);
}

/* ------------------------------------------------------ at any moment --- */

static void look_away(uint32_t looks)
{
	static _Atomic uint32_t word;

	/* relaxed: orders nothing, takes a time */
	while (looks-- > 0)
		atomic_fetch_add_explicit(&word, 1, memory_order_relaxed);
}

static void close__at_any_moment(struct scene *s, int times, uint32_t seed)
{
	unsigned reasons[RPMA_RT_REASON_STOPPED + 1] = {0};
	struct rpma_rt_completion item;
	enum rpma_rt_detail detail;
	struct world_pair pair;
	int i, value;

	for (i = 0; i < times; i++) {
		begin(s, &pair);
		MUST(rpma_rt_conn_accept(pair.passive, NULL));
		look_away(world_roll(&seed, SPIN_LIMIT));
		leave(pair.passive, i % 2);
		item = client_closed(s, &pair);
		detail = rpma_rt_completion_detail(&item, &value);
		reasons[item.status]++;
		if ((item.status == RPMA_RT_REASON_DISCONNECTED &&
		     detail == RPMA_RT_DETAIL_NONE) ||
		    (item.status == RPMA_RT_REASON_REJECTED &&
		     detail == RPMA_RT_DETAIL_REJECT)) {
			server_is_closed(s, &pair);
			continue;
		}
		fprintf(stderr, "reason %s, detail %d, value %d\n",
			rpma_rt_reason_2str(item.status), (int)detail, value);
		abort();
	}
	printf("%u disconnected, %u rejected\n",
	       reasons[RPMA_RT_REASON_DISCONNECTED],
	       reasons[RPMA_RT_REASON_REJECTED]);
}

/* ------------------------------------------ while the answer is taken --- */

static struct {
	_Atomic(void *) posted; /* the queue pair of the last post */
	_Atomic(void *) held;	/* the queue pair whose modify does not
				 * return */
	_Atomic bool is_inside;
} gate;

static void hook(enum rpma_loopback_point point, const void *object, void *arg)
{
	(void)arg;
	/* relaxed: read by the test's thread, which posts */
	if (point == RPMA_LOOPBACK_POST_RECV)
		atomic_store_explicit(&gate.posted, (void *)(uintptr_t)object,
				      memory_order_relaxed);
	/* acquire: pairs with the releases of the test's thread */
	if (point != RPMA_LOOPBACK_MODIFY ||
	    atomic_load_explicit(&gate.held, memory_order_acquire) != object)
		return;
	/* release: pairs with the acquire of the test's thread */
	atomic_store_explicit(&gate.is_inside, true, memory_order_release);
	/* acquire: as above */
	while (atomic_load_explicit(&gate.held, memory_order_acquire) == object)
		sched_yield();
}

/* Lets the server accept; the client is about to move its queue pair. */
static void begin_and_hold(struct scene *s, struct world_pair *pair)
{
	begin(s, pair);
	/* relaxed: no thread is held, and this thread posted; release: pairs
	 * with the acquire of the hook */
	atomic_store_explicit(&gate.is_inside, false, memory_order_relaxed);
	atomic_store_explicit(
		&gate.held,
		atomic_load_explicit(&gate.posted, memory_order_relaxed),
		memory_order_release);
	MUST(rpma_rt_conn_accept(pair->passive, NULL));
	/* acquire: pairs with the hook's release */
	while (!atomic_load_explicit(&gate.is_inside, memory_order_acquire))
		sched_yield();
}

/*
 * Lets the client go on; the connection ends with the reason, without a detail.
 */
static void let_go(struct scene *s, struct world_pair *pair,
		   enum rpma_rt_reason reason)
{
	struct rpma_rt_completion item;
	int value;

	/* release: pairs with the hook's acquire */
	atomic_store_explicit(&gate.held, NULL, memory_order_release);
	item = client_closed(s, pair);
	CHECK(item.status == reason);
	CHECK(rpma_rt_completion_detail(&item, &value) == RPMA_RT_DETAIL_NONE &&
	      value == 0);
}

static void close__answer_not_taken_DISCONNECTED(struct scene *s, bool by_drain)
{
	struct world_pair pair;

	begin_and_hold(s, &pair);
	leave(pair.passive, by_drain);
	server_is_closed(s, &pair);
	let_go(s, &pair, RPMA_RT_REASON_DISCONNECTED);
}

/*
 * The queue pair of the client cannot be moved: the peer has no part in the
 * failure.
 */
static void connect__queue_pair_fails_FAILED(struct scene *s,
					     const struct loop *loop)
{
	struct world_pair pair;

	begin_and_hold(s, &pair);
	MUST(loop->fault("call:verb=ibv_modify_qp,nth=1,errno=EIO,count=1"));
	let_go(s, &pair, RPMA_RT_REASON_FAILED);
	loop->fault_clear();
	server_is_closed(s, &pair);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 100;
	uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0)
				 : (uint32_t)world_now_ms();
	const struct loop *loop = loop_get();
	struct scene s;

	CHECK(times > 0);
	printf("seed %u\n", seed);
	if (loop) {
		/* these clients do not take the answer before the server is
		 * closed */
		open_scene(&s, SHORT_MS);
		loop->set_hook(hook, NULL);
		close__answer_not_taken_DISCONNECTED(&s, false);
		close__answer_not_taken_DISCONNECTED(&s, true);
		connect__queue_pair_fails_FAILED(&s, loop);
		loop->set_hook(NULL, NULL);
		close_scene(&s);
	}
	open_scene(&s, 0);
	close__at_any_moment(&s, times, seed);
	close_scene(&s);
	printf("ok\n");
	return 0;
}
