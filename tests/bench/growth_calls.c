/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * growth_calls.c -- the calls that bench_growth counts, each with what comes
 * before and after it. Calls that only read a word or print a name are left
 * out: see growth_loop.c.
 */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "growth.h"

/* what one call leaves for the next step */
static struct {
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	struct rpma_rt_pool *pool;
	struct rpma_rt_srq *srq;
	struct rpma_rt_listener *listener;
	struct rpma_rt_lease lease;
	struct rpma_rt_future future;
	struct world_pair pair;
	struct rpma_rt_timer timer;
	struct rpma_conn *bare[2];
	int fd;
} t;

#define CALL(function, body)                   \
	static void function(struct growth *g) \
	{                                      \
		(void)g;                       \
		body;                          \
	}

static void run(struct growth *g)
{
	CHECK(rpma_rt_poller_run(g->s.world.rt, 0, 32) >= 0);
}

/* --------------------------------------------------------------- queues --- */

static struct rpma_rt_completion items[8];

CALL(queue_new, MUST(rpma_rt_queue_new(g->s.world.rt, NULL, &t.queue)))
CALL(queue_delete, MUST(rpma_rt_queue_delete(&t.queue)))
CALL(queue_close, MUST(rpma_rt_queue_close(t.queue)))
CALL(queue_push,
     MUST(rpma_rt_queue_push(t.queue, &(struct rpma_rt_completion){0})))
CALL(queue_wake, MUST(rpma_rt_queue_wake(t.queue)))
CALL(queue_poll, CHECK(rpma_rt_queue_poll(t.queue, items, 8) >= 0))
CALL(queue_wait, CHECK(rpma_rt_queue_wait(t.queue, items, 8, 0) >= 0))
CALL(queue_arm, CHECK(rpma_rt_queue_arm(t.queue) >= 0))
CALL(queue_get_fd, MUST(rpma_rt_queue_get_fd(t.queue, &t.fd)))
CALL(poll_routed, CHECK(rpma_rt_queue_poll(g->routed, items, 8) >= 0))
CALL(poll_crowd, CHECK(rpma_rt_queue_poll(g->crowd.queue, items, 8) >= 0))

static void queue_get_stats(struct growth *g)
{
	struct rpma_rt_queue_stats stats;

	(void)g;
	MUST(rpma_rt_queue_get_stats(t.queue, &stats, sizeof(stats)));
}

static void queue_with_an_item(struct growth *g)
{
	queue_new(g);
	queue_push(g);
}

static void queue_with_a_wake(struct growth *g)
{
	queue_new(g);
	queue_get_fd(g);
	queue_wake(g);
}

static void queue_emptied(struct growth *g)
{
	queue_poll(g);
	queue_delete(g);
}

/* ---------------------------------------------------------- connections --- */

static void conn_new(struct growth *g)
{
	struct world *w = &g->s.world;

	MUST(world_conn_new(w->rt, w->peer, w->addr, w->port, g->s.cfg, 0,
			    g->s.aq, NULL, &t.pair.active));
}

static void wait_ready(struct growth *g)
{
	world_event(g->s.aq, RPMA_RT_EVENT_READY);
}

static void conn_ready(struct growth *g)
{
	snprintf(g->s.world.port, sizeof(g->s.world.port), "%u", g->port);
	conn_new(g);
	wait_ready(g);
}

CALL(connect_active, MUST(rpma_rt_conn_connect(t.pair.active, NULL)))
CALL(connect_passive, MUST(rpma_rt_conn_accept(t.pair.passive, NULL)))
CALL(reject, MUST(rpma_rt_conn_reject(t.pair.passive, NULL)))
CALL(conn_close, MUST(rpma_rt_conn_close(t.pair.active)))
CALL(conn_drain, MUST(rpma_rt_conn_drain(t.pair.active, 1000)))

static void request(struct growth *g)
{
	t.pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				 g->s.pq, RPMA_RT_EVENT_REQUEST)
				 .context;
}

static void conn_requested(struct growth *g)
{
	conn_ready(g);
	connect_active(g);
	request(g);
}

static void established(struct growth *g)
{
	world_event(g->s.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(g->s.pq, RPMA_RT_EVENT_ESTABLISHED);
}

static void conn_established(struct growth *g)
{
	conn_requested(g);
	connect_passive(g);
	established(g);
}

static void closed_active(struct growth *g)
{
	world_event(g->s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&t.pair.active));
}

static void closed(struct growth *g)
{
	closed_active(g);
	world_event(g->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&t.pair.passive));
}

static void drop_ready(struct growth *g)
{
	conn_close(g);
	closed_active(g);
}

static void drop_new(struct growth *g)
{
	wait_ready(g);
	drop_ready(g);
}

static void drop_requested(struct growth *g)
{
	request(g);
	connect_passive(g);
	established(g);
	conn_close(g);
	closed(g);
}

static void drop_connected(struct growth *g)
{
	established(g);
	conn_close(g);
	closed(g);
}

static void closing(struct growth *g)
{
	conn_established(g);
	conn_close(g);
	world_event(g->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(g->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&t.pair.passive));
}

CALL(conn_unref, MUST(rpma_rt_conn_unref(&t.pair.active)))
CALL(set_name, MUST(rpma_rt_conn_set_name(t.pair.active, "a name")))
CALL(set_user, MUST(rpma_rt_conn_set_user(t.pair.active, g)))
CALL(to_routed, MUST(rpma_rt_conn_set_queue(g->pair.active, g->routed)))

static void to_aq(struct growth *g)
{
	MUST(rpma_rt_conn_set_queue(g->pair.active, g->s.aq));
	while (rpma_rt_queue_poll(g->routed, items, 8) > 0)
		;
}

static void to_routed_first(struct growth *g)
{
	to_routed(g);
	while (rpma_rt_queue_poll(g->s.aq, items, 8) > 0)
		;
}

/* ----------------------------------------------------- posts and rounds --- */

static void post_send(struct growth *g)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, g->s.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, 1);
	MUST(world_post_send(g->pair.active, &wr));
}

static void post_recv(struct growth *g)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, g->s.mr, 8, 8, 2);
	MUST(world_post_recv(g->pair.passive, &wr));
}

static void recv_and_send(struct growth *g)
{
	post_recv(g);
	post_send(g);
}

static void take_both(struct growth *g)
{
	stage_completion(g->s.aq, 1, IBV_WC_SUCCESS);
	stage_completion(g->s.pq, 2, IBV_WC_SUCCESS);
}

static void send_and_take(struct growth *g)
{
	post_send(g);
	take_both(g);
}

CALL(poller_arm, CHECK(rpma_rt_poller_arm(g->s.world.rt, 0) >= 0))
CALL(poller_get_fd, MUST(rpma_rt_poller_get_fd(g->s.world.rt, 0, &t.fd)))
CALL(poller_attach, MUST(rpma_rt_poller_attach(g->s.world.rt, 0)))
CALL(poller_release, MUST(rpma_rt_poller_release(g->s.world.rt, 0)))

static void poller_get_stats(struct growth *g)
{
	struct rpma_rt_poller_stats stats;

	MUST(rpma_rt_poller_get_stats(g->s.world.rt, 0, &stats, sizeof(stats)));
}

/* --------------------------------------------------------------- routes --- */

CALL(route_open, MUST(rpma_rt_route_open(g->pair.active, RPMA_RT_SEND_SIDE,
					 g->routed, &t.route)))
CALL(route_close, MUST(rpma_rt_route_close(t.route, NULL)))

static void ignore(const struct rpma_rt_completion *item, void *arg)
{
	(void)item;
	(void)arg;
}

CALL(route_open_callback,
     MUST(rpma_rt_route_open_callback(g->pair.active, RPMA_RT_SEND_SIDE, ignore,
				      NULL, &t.route)))

/* The last one of its lane: ROUTE_CLOSED comes. */
static void route_open_elsewhere(struct growth *g)
{
	queue_new(g);
	MUST(rpma_rt_route_open(g->pair.active, RPMA_RT_SEND_SIDE, t.queue,
				&t.route));
}

/* ------------------------------------------------------ pools, receives --- */

CALL(pool_take, MUST(rpma_rt_pool_take(g->pool, &t.lease)))
CALL(give_back, MUST(rpma_rt_lease_release(&t.lease)))
CALL(pool_delete, MUST(rpma_rt_pool_delete(&t.pool)))

static void pool_new(struct growth *g)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.peer = g->s.world.peer;
	cfg.count = 8;
	cfg.slot_size = 64;
	MUST(rpma_rt_pool_new(g->s.world.rt, &cfg, &t.pool));
}

static void srq_new(struct growth *g)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.peer = g->s.world.peer;
	cfg.queue = g->s.pq;
	cfg.poller = 0;
	cfg.srq_size = 4;
	MUST(rpma_rt_srq_new(g->s.world.rt, &cfg, &t.srq));
}

CALL(srq_delete, MUST(rpma_rt_srq_delete(&t.srq)))

static void srq_post_recv(struct growth *g)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, g->s.mr, 8, 8, 2);
	MUST_ANSWER(1, rpma_rt_srq_post_recv(t.srq, &wr, 1));
}

static void srq_closed(struct growth *g)
{
	struct rpma_rt_completion item;

	do
		item = world_next(g->s.pq);
	while (item.opcode != RPMA_RT_EVENT_SRQ_CLOSED);
}

static void srq_end(struct growth *g)
{
	srq_delete(g);
	srq_closed(g);
}

/* ------------------------------------------------------------ listeners --- */

static void listen_new(struct growth *g)
{
	struct world *w = &g->s.world;

	MUST(world_listen_at(w->rt, w->peer, w->addr, "0", 8, g->s.cfg, 0,
			     g->s.pq, NULL, &t.listener));
}

CALL(listener_delete, MUST(rpma_rt_listener_delete(&t.listener)))
CALL(listener_drain, MUST(rpma_rt_listener_drain(t.listener, 1000)))

static void listener_closed(struct growth *g)
{
	world_event(g->s.pq, RPMA_RT_EVENT_LISTENER_CLOSED);
}

static void unlisten(struct growth *g)
{
	listener_delete(g);
	listener_closed(g);
}

/* -------------------------------------------------------------- futures --- */

static void post_future(struct growth *g)
{
	struct rpma_rt_wr wr;

	growth_renew(g);
	rpma_rt_prep_send(&wr, g->s.mr, 0, 8, 0, 1);
	wr.future = &t.future;
	MUST(world_post_send(g->fed.active, &wr));
}

static void post_future_alone(struct growth *g)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, g->s.mr, 0, 8, 0, 1);
	wr.future = &t.future;
	MUST(world_post_send(g->fed.active, &wr));
}

static void future_poll(struct growth *g)
{
	(void)g;
	CHECK(rpma_rt_future_poll(&t.future, items) >= 0);
}

static void future_wait(struct growth *g)
{
	(void)g;
	MUST_ANSWER(1, rpma_rt_future_wait(&t.future, items, -1));
}

static void future_done(struct growth *g)
{
	post_future(g);
	future_wait(g);
}

static void future_drop(struct growth *g)
{
	CHECK(rpma_rt_future_drop(&t.future) >= 0);
	run(g);
	growth_renew(g);
}

static void future_end(struct growth *g)
{
	future_wait(g);
	future_drop(g);
}

CALL(future_drop_alone, CHECK(rpma_rt_future_drop(&t.future) >= 0))
CALL(future_take, CHECK(rpma_rt_futures_take(&t.future, 1, items) == 1))
CALL(future_then, MUST(rpma_rt_future_then(&t.future, ignore, NULL)))
CALL(future_deliver, MUST(rpma_rt_future_deliver(&t.future, g->chain)))

static void future_cancel(struct growth *g)
{
	enum rpma_rt_cancelled cancelled;

	(void)g;
	MUST(rpma_rt_future_cancel(&t.future, &cancelled));
}

/* A future that is asked for, and asked to go. */
static void next_future(struct growth *g)
{
	MUST(rpma_rt_next_future(
		&(struct rpma_rt_source){.conn = g->fed.passive}, &t.future));
}

static void free_one(struct growth *g)
{
	MUST(rpma_rt_future_drop(&g->futures[0]));
	run(g);
}

static void refill_one(struct growth *g)
{
	CHECK(rpma_rt_future_drop(&t.future) >= 0);
	run(g);
	MUST(rpma_rt_next_future(
		&(struct rpma_rt_source){.conn = g->fed.passive},
		&g->futures[0]));
}

static void conn_future(struct growth *g)
{
	MUST(rpma_rt_conn_future(g->fed.passive, RPMA_RT_EVENT_CLOSED,
				 &t.future));
}

static void drop_and_run(struct growth *g)
{
	CHECK(rpma_rt_future_drop(&t.future) >= 0);
	run(g);
}

static void wait_some(struct growth *g, int wanted)
{
	int count = (int)(g->counts.futures + GROWTH_SPARE);

	CHECK(rpma_rt_future_wait_some(g->futures, count, wanted,
				       WORLD_PATIENCE_MS) >= wanted);
}

static void send_chain(struct growth *g, uint32_t messages)
{
	growth_renew(g);
	g->to_send = messages;
	growth_send(g);
}

CALL(send_1, send_chain(g, 1))
CALL(send_33, send_chain(g, 33))
CALL(wait_1, wait_some(g, 1))
CALL(wait_33, wait_some(g, 33))

/* --------------------------------------------------------------- shards --- */

static const struct rpma_rt_shard_message message = {.context = 1};

CALL(shard_run, CHECK(rpma_rt_shard_run(g->shard, 0) >= 0))
CALL(shard_post, MUST(rpma_rt_shard_post(g->shard, 0, &message)))
CALL(shard_request, MUST(rpma_rt_shard_request(g->shard, 0, &message)))
CALL(timer_cancel, MUST_ANSWER(1, rpma_rt_timer_cancel(g->shard, g->timers)))

static void timer_start(struct growth *g)
{
	MUST(rpma_rt_timer_start(g->shard, g->timers, 1800000000));
}

static void timer_move(struct growth *g)
{
	MUST(rpma_rt_timer_start(g->shard, g->timers, 7200000000));
}

static void shards_deal(struct growth *g)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;

	MUST(rpma_rt_shards_deal(g->shards, &cfg));
}

/* ----------------------------------------------------------------- dump --- */

static void dump(struct growth *g)
{
	t.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CHECK(t.fd >= 0);
	MUST(rpma_rt_dump(g->s.world.rt, t.fd, RPMA_RT_DUMP_JSON));
	close(t.fd);
}

/* Those with a star wait, and run rounds of the thread's pollers meanwhile. */
const struct growth_call growth_calls[] = {
	{"rpma_rt_queue_new", NULL, queue_new, queue_delete},
	{"rpma_rt_queue_delete", queue_new, queue_delete, NULL},
	{"rpma_rt_queue_close", queue_new, queue_close, queue_delete},
	{"rpma_rt_queue_push", queue_new, queue_push, queue_emptied},
	{"rpma_rt_queue_wake", queue_new, queue_wake, queue_delete},
	{"rpma_rt_queue_arm", queue_with_a_wake, queue_arm, queue_delete},
	{"rpma_rt_queue_get_fd", queue_new, queue_get_fd, queue_delete},
	{"rpma_rt_queue_get_stats", queue_new, queue_get_stats, queue_delete},
	{"rpma_rt_queue_poll", queue_with_an_item, queue_poll, queue_delete},
	{"rpma_rt_queue_poll, of many routes", NULL, poll_routed, NULL},
	{"rpma_rt_queue_poll, of many connections", NULL, poll_crowd, NULL},
	{"rpma_rt_queue_wait *", queue_with_an_item, queue_wait, queue_delete},
	{"rpma_rt_conn_set_name", conn_ready, set_name, drop_ready},
	{"rpma_rt_conn_set_user *", conn_ready, set_user, drop_ready},
	{"rpma_rt_conn_new", NULL, conn_new, drop_new},
	{"rpma_rt_conn_connect", conn_ready, connect_active, drop_requested},
	{"rpma_rt_conn_accept", conn_requested, connect_passive,
	 drop_connected},
	{"rpma_rt_conn_reject", conn_requested, reject, closed},
	{"rpma_rt_conn_close", conn_established, conn_close, closed},
	{"rpma_rt_conn_drain", conn_established, conn_drain, closed},
	{"rpma_rt_conn_unref", closing, conn_unref, NULL},
	{"rpma_rt_conn_set_queue *", NULL, to_routed_first, to_aq},
	{"rpma_rt_post_recv", NULL, post_recv, send_and_take},
	{"rpma_rt_post_send", post_recv, post_send, take_both},
	{"rpma_rt_post_send, future", growth_renew, post_future_alone,
	 future_end},
	{"rpma_rt_poller_run, nothing", NULL, run, NULL},
	{"rpma_rt_poller_run, two completions", recv_and_send, run, take_both},
	{"rpma_rt_poller_arm", run, poller_arm, run},
	{"rpma_rt_poller_get_fd", NULL, poller_get_fd, NULL},
	{"rpma_rt_poller_get_stats", NULL, poller_get_stats, NULL},
	{"rpma_rt_poller_attach", poller_release, poller_attach, NULL},
	{"rpma_rt_poller_release", NULL, poller_release, poller_attach},
	{"rpma_rt_route_open *", NULL, route_open, route_close},
	{"rpma_rt_route_open_callback *", NULL, route_open_callback,
	 route_close},
	{"rpma_rt_route_close *", route_open, route_close, NULL},
	{"rpma_rt_route_close, the last of a queue *", route_open_elsewhere,
	 route_close, queue_emptied},
	{"rpma_rt_route_close, a function *", route_open_callback, route_close,
	 NULL},
	{"rpma_rt_pool_new", NULL, pool_new, pool_delete},
	{"rpma_rt_pool_delete *", pool_new, pool_delete, NULL},
	{"rpma_rt_pool_take", NULL, pool_take, give_back},
	{"rpma_rt_lease_release", pool_take, give_back, NULL},
	{"rpma_rt_srq_new *", NULL, srq_new, srq_end},
	{"rpma_rt_srq_delete *", srq_new, srq_delete, srq_closed},
	{"rpma_rt_srq_post_recv", srq_new, srq_post_recv, srq_end},
	{"rpma_rt_listen", NULL, listen_new, unlisten},
	{"rpma_rt_listener_delete", listen_new, listener_delete,
	 listener_closed},
	{"rpma_rt_listener_drain", listen_new, listener_drain, unlisten},
	{"rpma_rt_future_poll", future_done, future_poll, future_drop},
	{"rpma_rt_future_wait *", post_future, future_wait, future_drop},
	{"rpma_rt_future_drop", future_done, future_drop_alone, run},
	{"rpma_rt_futures_take", future_done, future_take, run},
	{"rpma_rt_future_then", post_future, future_then, drop_and_run},
	{"rpma_rt_future_deliver", post_future, future_deliver, drop_and_run},
	{"rpma_rt_future_cancel", post_future, future_cancel, future_end},
	{"rpma_rt_future_wait_some, 1 wake", send_1, wait_1, growth_renew},
	{"rpma_rt_future_wait_some, 33 wakes", send_33, wait_33, growth_renew},
	{"rpma_rt_next_future", free_one, next_future, refill_one},
	{"rpma_rt_conn_future", NULL, conn_future, drop_and_run},
	{"rpma_rt_shard_post", NULL, shard_post, shard_run},
	{"rpma_rt_shard_request", NULL, shard_request, shard_run},
	{"rpma_rt_shard_run, nothing", shard_run, shard_run, NULL},
	{"rpma_rt_shard_run, a message", shard_post, shard_run, NULL},
	{"rpma_rt_timer_start", NULL, timer_start, timer_cancel},
	{"rpma_rt_timer_start, moved", timer_start, timer_move, timer_cancel},
	{"rpma_rt_timer_cancel", timer_start, timer_cancel, NULL},
	{"rpma_rt_shards_deal", NULL, shards_deal, NULL},
	{"rpma_rt_dump", NULL, dump, NULL},
	{.name = NULL},
};
