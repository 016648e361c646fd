/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * place.c -- the poller of a connection: a given poller, pollers in turn, the
 * poller with the fewest connections, several devices on a poller; two runtimes
 * with the asynchronous events of the same device; names in place of numbers,
 * and a name that the name server does not resolve for a long time.
 */

#define _GNU_SOURCE /* RTLD_NEXT */

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define EVENT {.pollers = 3, .mode = RPMA_RT_MODE_EVENT, .depth = 8}

/* ------------------------------------------------------------ placement --- */

static struct rpma_rt_conn *begin(struct stage *s, const char *addr, int poller)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, addr, s->world.port,
			    s->cfg, poller, s->aq, NULL, &conn));
	return conn;
}

static int poller_of(const struct rpma_rt_conn *conn)
{
	int poller;

	MUST(rpma_rt_conn_get_poller(conn, &poller));
	return poller;
}

static void end(struct stage *s, struct rpma_rt_conn **conn)
{
	struct rpma_rt_completion item;

	MUST(rpma_rt_conn_close(*conn));
	do
		item = world_next(s->aq);
	while (item.opcode != RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(conn));
}

static void given(struct stage *s)
{
	static const int order[] = {2, 0, 1, 0};
	struct rpma_rt_conn *conn;
	int i;

	for (i = 0; i < 4; i++) {
		conn = begin(s, s->world.addr, order[i]);
		CHECK(poller_of(conn) == order[i]);
		end(s, &conn);
	}
}

static void in_turn(struct stage *s)
{
	struct rpma_rt_conn *conns[7];
	int i;

	for (i = 0; i < 7; i++) {
		conns[i] = begin(s, s->world.addr, RPMA_RT_POLLER_ANY);
		CHECK(i == 0 ||
		      poller_of(conns[i]) == (poller_of(conns[i - 1]) + 1) % 3);
	}
	for (i = 0; i < 7; i++)
		end(s, &conns[i]);
}

/* A listener chooses a poller for each request; here in turn. */
static void requests_in_turn(struct stage *s)
{
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;
	int last = -1;
	int i;

	for (i = 0; i < 7; i++) {
		active = begin(s, s->world.addr, 1);
		world_event(s->aq, RPMA_RT_EVENT_READY);
		MUST(rpma_rt_conn_connect(active, NULL));
		passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				  s->pq, RPMA_RT_EVENT_REQUEST)
				  .context;
		CHECK(last < 0 || poller_of(passive) == (last + 1) % 3);
		last = poller_of(passive);
		MUST(rpma_rt_conn_reject(passive, NULL));
		world_event(s->pq, RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&passive));
		end(s, &active);
	}
}

static void least_loaded(struct stage *s)
{
	uint64_t until = world_now_ms() + WORLD_PATIENCE_MS;
	struct rpma_rt_conn *conns[6];
	int i;

	conns[0] = begin(s, s->world.addr, 0);
	conns[1] = begin(s, s->world.addr, 0);
	conns[2] = begin(s, s->world.addr, 2);
	for (i = 3; i < 6; i++)
		conns[i] = begin(s, s->world.addr, RPMA_RT_POLLER_LEAST);
	CHECK(poller_of(conns[3]) == 1); /* 2 0 1 */
	CHECK(poller_of(conns[4]) == 1); /* 2 1 1: the first of equals */
	CHECK(poller_of(conns[5]) == 2); /* 2 2 1 */
	for (i = 0; i < 6; i++)
		end(s, &conns[i]);
	/* a closed connection does not count, a little after its CLOSED */
	do {
		CHECK(world_now_ms() < until);
		conns[0] = begin(s, s->world.addr, RPMA_RT_POLLER_LEAST);
		i = poller_of(conns[0]);
		end(s, &conns[0]);
	} while (i != 0);
}

/* ---------------------------------------------------------------- names --- */

/* the answer of a name server to "known.invalid" */
static const char *known;
/* and the answer to "slow.invalid", posted late */
static sem_t asked;
static sem_t answer;

/*
 * Replaces the function of the C library: no machine needs a resolvable name.
 */
__attribute__((visibility("default"))) int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **info)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **);

	if (name != NULL && strcmp(name, "known.invalid") == 0) {
		CHECK((hints->ai_flags & AI_NUMERICHOST) == 0);
		name = known;
	}
	if (name != NULL && strcmp(name, "slow.invalid") == 0) {
		CHECK(sem_post(&asked) == 0);
		CHECK(sem_wait(&answer) == 0);
		return EAI_AGAIN;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(name, service, hints, info);
}

static void names(struct stage *s)
{
	struct rpma_rt_conn *conn;

	known = s->world.addr;
	conn = begin(s, "known.invalid", 0);
	world_event(s->aq, RPMA_RT_EVENT_READY);
	end(s, &conn);
}

/* Neither the caller waits for the name, nor another thread, nor the end. */
static void slow_name(struct stage *s)
{
	struct rpma_rt_conn *slow;
	struct rpma_rt_conn *conn;
	struct world_pair pair;

	CHECK(sem_init(&asked, 0, 0) == 0 && sem_init(&answer, 0, 0) == 0);
	slow = begin(s, "slow.invalid", 0);
	CHECK(sem_wait(&asked) == 0);
	conn = begin(s, s->world.addr, 0);
	CHECK(world_event(s->aq, RPMA_RT_EVENT_READY).context ==
	      (uintptr_t)conn);
	end(s, &conn);
	stage_connect(s, &pair); /* listens, connects, accepts */
	stage_ping(s, &pair, 3);
	stage_disconnect(s, &pair);
	end(s, &slow);
	CHECK(sem_post(&answer) == 0);
}

/* -------------------------------------------------------------- devices --- */

/* Sends a message; each end is on a separate device, all on the same poller. */
static void two_devices(struct stage *s)
{
	static const char *const addrs[2] = {"127.0.0.1", "127.1.0.1"};
	struct rpma_rt_listener *listener;
	struct world_pair pair;
	struct ibv_context *ctx;
	struct rpma_peer *peer;
	struct world other = s->world;
	struct rpma_mr_local *mr;
	int i;

	MUST(rpma_utils_get_ibv_context(addrs[1], RPMA_UTIL_IBV_CONTEXT_LOCAL,
					&ctx));
	if (ctx == s->world.ibv_ctx) {
		printf("one device only\n");
		return;
	}
	MUST(rpma_peer_new(ctx, &peer));
	MUST(rpma_mr_reg(peer, s->memory, STAGE_SIZE, RPMA_MR_USAGE_RECV, &mr));
	other.addr = addrs[1];
	other.peer = peer;
	stage_connect(s, &pair);
	for (i = 0; i < 20; i++) {
		struct world_pair far;

		listener = world_listen(&other, s->cfg, s->pq);
		/* both ends are the second device's */
		far.active = world_ready(&other, s->cfg, 0, s->aq);
		MUST(rpma_rt_conn_connect(far.active, NULL));
		far.passive = world_request(s->pq);
		stage_accept(s, &far);
		world_unlisten(&listener, s->pq);
		/* completions of both devices, through the same queues */
		MUST(rpma_rt_recv(far.passive, mr, 128, 64, 7));
		stage_ping(s, &pair, 1);
		MUST(rpma_rt_send(far.active, NULL, 0, 0,
				  RPMA_F_COMPLETION_ALWAYS, 8));
		stage_completion(s->pq, 7, IBV_WC_SUCCESS);
		stage_completion(s->aq, 8, IBV_WC_SUCCESS);
		stage_disconnect(s, &far);
	}
	stage_disconnect(s, &pair);
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
}

/* ------------------------------------------------------- asynchronously --- */

static void expect_heard(struct rpma_rt_queue *queue, enum ibv_event_type type)
{
	struct rpma_rt_completion item = world_next(queue);

	CHECK(item.kind == RPMA_RT_MESSAGE);
	CHECK(item.context == type);
}

struct listener_rt {
	struct rpma_rt *rt;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
};

/*
 * Makes a runtime with a handler, and a connection, so that the runtime uses
 * the device.
 */
static void hear(struct listener_rt *l, struct stage *s)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.async_fn = stage_heard;
	cfg.async_arg = &l->queue;
	MUST(rpma_rt_new(&cfg, &l->rt));
	MUST(rpma_rt_queue_new(l->rt, NULL, &l->queue));
	MUST(world_conn_new(l->rt, s->world.peer, s->world.addr, s->world.port,
			    NULL, 0, l->queue, NULL, &l->conn));
	world_event(l->queue, RPMA_RT_EVENT_READY);
}

static void hear_no_more(struct listener_rt *l)
{
	MUST(rpma_rt_conn_unref(&l->conn));
	MUST(rpma_rt_stop(l->rt));
	world_event(l->queue, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_queue_delete(&l->queue));
	MUST(rpma_rt_delete(&l->rt));
}

/* Two runtimes and a single reader: both get the event of the port, neither
 * loses a connection; an event of a queue pair goes only to its runtime. */
static void two_runtimes(struct stage *s, const struct loop *loop)
{
	struct listener_rt a = {0};
	struct listener_rt b = {0};
	struct world_pair pair;
	struct ibv_cq *foreign;
	struct ibv_context *ctx = s->world.ibv_ctx;

	stage_connect(s, &pair);
	hear(&a, s);
	hear(&b, s);
	MUST(loop->raise(IBV_EVENT_PORT_ERR, ctx));
	expect_heard(a.queue, IBV_EVENT_PORT_ERR);
	expect_heard(b.queue, IBV_EVENT_PORT_ERR);
	stage_ping(s, &pair, 5);
	/* of an object without a runtime */
	foreign = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	CHECK(foreign);
	MUST(loop->raise(IBV_EVENT_CQ_ERR, foreign));
	expect_heard(a.queue, IBV_EVENT_CQ_ERR);
	expect_heard(b.queue, IBV_EVENT_CQ_ERR);
	CHECK(ibv_destroy_cq(foreign) == 0); /* its event is acknowledged */
	hear_no_more(&a);
	MUST(loop->raise(IBV_EVENT_PORT_ACTIVE, ctx));
	expect_heard(b.queue, IBV_EVENT_PORT_ACTIVE);
	stage_ping(s, &pair, 6);
	hear_no_more(&b);
	stage_disconnect(s, &pair);
}

int main(void)
{
	static const struct stage_cfg cfg = EVENT;
	struct rpma_rt_listener *listener;
	struct stage s;

	stage_open(&s, &cfg);
	/* a listener as destination, which accepts no request */
	listener = world_listen(&s.world, s.cfg, s.pq);
	least_loaded(&s);
	given(&s);
	in_turn(&s);
	requests_in_turn(&s);
	names(&s);
	world_unlisten(&listener, s.pq);
	slow_name(&s);
	if (loop_get() != NULL) {
		two_devices(&s);
		two_runtimes(&s, loop_get());
	}
	stage_close(&s);
	printf("ok\n");
	return 0;
}
