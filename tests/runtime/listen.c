/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listen.c -- listeners: a port in use, the wildcard address, a listener
 * deleted while its requests wait, requests never taken, a withdrawn request, a
 * stop, also where the queue is over its limit; the last item in a queue of
 * several pollers, and in a queue for each poller.
 */

#include <sched.h>
#include <stdatomic.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	 8
#define REQUESTS 4
#define POLLERS	 3
#define MANY	 24
#define ROUNDS	 10
#define LANE	 64
#define LIMIT	 1
#define LAST	 3 /* listeners that end in a queue over its limit */

static void use_port_of(struct stage *s,
			const struct rpma_rt_listener *listener)
{
	uint16_t port;

	MUST(rpma_rt_listener_get_port(listener, &port));
	CHECK(port != 0);
	snprintf(s->world.port, sizeof(s->world.port), "%u", port);
}

static void listen__port_in_use_PROVIDER(struct stage *s)
{
	struct rpma_rt_listener *second = NULL;
	struct rpma_rt_listener *first;

	first = world_listen(&s->world, s->cfg, s->pq);
	CHECK(world_listen_at(s->world.rt, s->world.peer, s->world.addr,
			      s->world.port, 0, s->cfg, 0, s->pq, NULL,
			      &second) == RPMA_E_PROVIDER);
	CHECK(second == NULL);
	world_unlisten(&first, s->pq);
	/* nothing of the failed listener is left: the port is free again */
	MUST(world_listen_at(s->world.rt, s->world.peer, s->world.addr,
			     s->world.port, 0, s->cfg, 0, s->pq, NULL,
			     &second));
	world_unlisten(&second, s->pq);
}

static void listen__wildcard(struct stage *s)
{
	struct rpma_rt_listener *listener;
	struct world_pair pair;

	MUST(world_listen_at(s->world.rt, s->world.peer, "0.0.0.0", "0", 0,
			     s->cfg, 0, s->pq, NULL, &listener));
	use_port_of(s, listener);
	pair.active = stage_begin(s);
	pair.passive = world_request(s->pq);
	stage_accept(s, &pair);
	stage_ping(s, &pair, 5);
	stage_disconnect(s, &pair);
	world_unlisten(&listener, s->pq);
}

static void listen__no_such_address(struct stage *s)
{
	struct rpma_rt_listener *listener = NULL;

	/* of a block for documentation, and not the guest's */
	CHECK(world_listen_at(s->world.rt, s->world.peer, "203.0.113.77", "0",
			      0, s->cfg, 0, s->pq, NULL, &listener) != 0);
	CHECK(world_listen_at(s->world.rt, s->world.peer, s->world.addr,
			      "no-such-port", 0, s->cfg, 0, s->pq, NULL,
			      &listener) != 0);
	CHECK(listener == NULL);
}

/* Delivered requests live on; later requests are refused. */
static void delete__with_requests_in_the_queue(struct stage *s)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *late;
	struct world_pair pair;
	struct rpma_rt_conn *refused;
	struct rpma_rt_conn *refusing;

	listener = world_listen(&s->world, s->cfg, s->pq);
	pair.active = stage_begin(s);
	pair.passive = world_request(s->pq);
	refused = stage_begin(s);
	refusing = world_request(s->pq);
	world_unlisten(&listener, s->pq);
	late = stage_begin(s);
	world_closed(s->aq, &late, RPMA_RT_REASON_REJECTED);
	stage_accept(s, &pair);
	MUST(rpma_rt_conn_reject(refusing, NULL));
	world_closed(s->pq, &refusing, RPMA_RT_REASON_LOCAL);
	world_closed(s->aq, &refused, RPMA_RT_REASON_REJECTED);
	stage_ping(s, &pair, 6);
	stage_disconnect(s, &pair);
}

static void wait_for_items(const struct rpma_rt_queue *queue, uint64_t count)
{
	struct rpma_rt_queue_stats stats;
	uint64_t begin = world_now_ms();

	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		sched_yield();
		MUST(rpma_rt_queue_get_stats(queue, &stats, sizeof(stats)));
	} while (stats.backlog < count);
}

/* A destroy waits while held. */
static _Atomic bool held;
static _Atomic bool waits;

static void hold_destroy(enum rpma_loopback_point point, const void *object,
			 void *arg)
{
	(void)object;
	(void)arg;
	if (point != RPMA_LOOPBACK_DESTROY)
		return;
	/* release, acquire: pair with their opposites in the test */
	atomic_store_explicit(&waits, true, memory_order_release);
	while (atomic_load_explicit(&held, memory_order_acquire))
		sched_yield();
}

/* The connection is dying: while its queue pair is being destroyed, where the
 * device can delay the destroy, and when CLOSED, with the pointer of the
 * listener, is in the queue. Another pointer is refused with
 * RPMA_RT_E_CLOSED. */
static void set_user__CLOSED_is_to_come_OR_THERE(struct stage *s)
{
	const struct loop *loop = loop_get();
	struct rpma_rt_completion item;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *passive;
	struct rpma_rt_conn *active;
	void *user;
	int client;

	MUST(world_listen_at(s->world.rt, s->world.peer, s->world.addr, "0", 0,
			     s->cfg, 0, s->pq, s, &listener));
	use_port_of(s, listener);
	active = stage_begin(s);
	passive = world_request(s->pq);
	/* relaxed: no other thread is there yet */
	atomic_store_explicit(&held, loop != NULL, memory_order_relaxed);
	if (loop != NULL)
		loop->set_hook(hold_destroy, NULL);
	MUST(rpma_rt_conn_close(passive));
	/* acquire, release: pair with their opposites in the hook */
	while (loop != NULL &&
	       !atomic_load_explicit(&waits, memory_order_acquire))
		sched_yield();
	if (loop != NULL)
		MUST_ANSWER(RPMA_RT_E_CLOSED,
			    rpma_rt_conn_set_user(passive, &client));
	atomic_store_explicit(&held, false, memory_order_release);
	if (loop != NULL)
		loop->set_hook(NULL, NULL);
	wait_for_items(s->pq, 1);
	MUST_ANSWER(RPMA_RT_E_CLOSED, rpma_rt_conn_set_user(passive, &client));
	MUST(rpma_rt_conn_get_user(passive, &user));
	CHECK(user == s);
	item = world_closed(s->pq, &passive, WORLD_ANY_REASON);
	CHECK(item.user == s);
	world_closed(s->aq, &active, RPMA_RT_REASON_REJECTED);
	world_unlisten(&listener, s->pq);
}

/* Requests in a queue never emptied before the stop: each request has its
 * handle, and CLOSED later. */
static void stop__requests_never_taken(const struct stage_cfg *cfg)
{
	struct rpma_rt_conn *passive[REQUESTS];
	struct rpma_rt_conn *active[REQUESTS];
	struct rpma_rt_completion item;
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *untouched;
	struct stage s;
	int closed = 0;
	int ended = 0;
	int i;

	stage_open(&s, cfg);
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &untouched));
	listener = world_listen(&s.world, s.cfg, untouched);
	for (i = 0; i < REQUESTS; i++)
		active[i] = stage_begin(&s);
	/* looked at, so that all have come; not answered */
	for (i = 0; i < REQUESTS; i++)
		passive[i] = world_request(untouched);
	MUST(rpma_rt_stop(s.world.rt));
	for (i = 0; i < REQUESTS + 1; i++) {
		MUST_ANSWER(1, rpma_rt_queue_poll(untouched, &item, 1));
		if (item.opcode == RPMA_RT_EVENT_LISTENER_CLOSED) {
			CHECK(rpma_rt_completion_listener(&item) == listener);
			CHECK(item.status == RPMA_RT_REASON_STOPPED);
			ended++;
			continue;
		}
		CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&passive[i - ended]));
	}
	CHECK(ended == 1);
	while (rpma_rt_queue_poll(s.aq, &item, 1) > 0)
		closed += item.opcode == RPMA_RT_EVENT_CLOSED;
	CHECK(closed == REQUESTS);
	for (i = 0; i < REQUESTS; i++)
		MUST(rpma_rt_conn_unref(&active[i]));
	/* after the stop: only the handle is left */
	MUST(rpma_rt_listener_delete(&listener));
	CHECK(rpma_rt_queue_poll(untouched, &item, 1) == RPMA_RT_E_CLOSED);
	MUST(rpma_rt_queue_delete(&untouched));
	stage_close(&s);
}

/*
 * Takes completions until posts to the queue are refused, because the queue is
 * never emptied.
 */
static int fill(const struct stage *s, const struct world_pair *pair,
		const struct rpma_rt_route *route)
{
	const struct rpma_rt_wr wr = {.op = RPMA_RT_OP_WRITE,
				      .flags = RPMA_F_COMPLETION_ALWAYS,
				      .route = route,
				      .local = s->mr,
				      .remote = s->remote,
				      .remote_offset = STAGE_SIZE / 2,
				      .len = 8};
	int posted = 0;
	int ret;

	for (;;) {
		ret = world_post_send(pair->active, &wr);
		if (ret == 0) {
			posted++;
			continue;
		}
		CHECK(ret == RPMA_E_AGAIN);
		if (rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG)
			return posted;
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
		CHECK(world_next(s->aq).kind == RPMA_RT_WRITABLE);
	}
}

static struct rpma_rt_queue *new_small_queue(const struct stage *s)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;

	cfg.lane_size = LANE;
	cfg.backlog_limit = LIMIT;
	MUST(rpma_rt_queue_new(s->world.rt, &cfg, &queue));
	return queue;
}

/* Takes each completion, and then the end of the route; each listener once,
 * where the listener ended. */
static void take_ends(struct rpma_rt_queue *queue, int completions,
		      struct rpma_rt_listener *listeners[])
{
	struct rpma_rt_completion item;
	unsigned ended = 0;
	int routes = 0;
	int i;
	int k;

	for (i = 0; i < completions + LAST + 1; i++) {
		MUST_ANSWER(1, rpma_rt_queue_poll(queue, &item, 1));
		if (item.kind == RPMA_RT_COMPLETION) {
			CHECK(routes == 0);
			continue;
		}
		if (item.opcode == RPMA_RT_EVENT_ROUTE_CLOSED) {
			routes++;
			continue;
		}
		for (k = 0; k < LAST; k++) {
			if (rpma_rt_completion_listener(&item) == listeners[k])
				ended |= 1u << k;
		}
	}
	CHECK(routes == 1 && ended == (1u << LAST) - 1);
	CHECK(rpma_rt_queue_poll(queue, &item, 1) == RPMA_RT_E_CLOSED);
}

/* The stopping thread is also the consumer: no thread makes room, and a wait
 * for room would last for ever. */
static void stop__queue_over_its_limit(const struct stage_cfg *cfg)
{
	struct rpma_rt_listener *listeners[LAST];
	struct rpma_rt_listener *deleted;
	struct rpma_rt_queue *untouched;
	struct rpma_rt_route *route;
	struct world_pair pair;
	struct stage s;
	int posted;
	int i;

	stage_open(&s, cfg);
	/* from here on the poller belongs to this thread, and runs in its
	 * waits */
	if (cfg->mode == RPMA_RT_MODE_MANUAL)
		MUST(rpma_rt_poller_attach(s.world.rt, 0));
	untouched = new_small_queue(&s);
	stage_connect(&s, &pair);
	MUST(rpma_rt_route_open(pair.active, RPMA_RT_SEND_SIDE, untouched,
				&route));
	for (i = 0; i < LAST; i++)
		listeners[i] = world_listen(&s.world, s.cfg, untouched);
	posted = fill(&s, &pair, route);
	/* the deleted listener ends at once, the others with the stop */
	deleted = listeners[0];
	MUST(rpma_rt_listener_delete(&deleted));
	MUST(rpma_rt_stop(s.world.rt));
	take_ends(untouched, posted, listeners);
	MUST(rpma_rt_queue_delete(&untouched));
	for (i = 1; i < LAST; i++)
		MUST(rpma_rt_listener_delete(&listeners[i]));
	world_closed(s.aq, &pair.active, RPMA_RT_REASON_STOPPED);
	world_closed(s.pq, &pair.passive, RPMA_RT_REASON_STOPPED);
	stage_close(&s);
}

/* A queue deleted with requests inside: their handles go with them. */
static void delete__queue_with_requests_inside(const struct stage_cfg *cfg)
{
	struct rpma_rt_conn *active;
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *untouched;
	struct stage s;

	stage_open(&s, cfg);
	MUST(rpma_rt_queue_new(s.world.rt, NULL, &untouched));
	listener = world_listen(&s.world, s.cfg, untouched);
	active = stage_begin(&s);
	MUST(rpma_rt_conn_close(active));
	world_closed(s.aq, &active, RPMA_RT_REASON_LOCAL);
	MUST(rpma_rt_stop(s.world.rt));
	MUST(rpma_rt_listener_delete(&listener));
	MUST(rpma_rt_queue_delete(&untouched));
	stage_close(&s); /* otherwise the close would find a held handle */
}

/*
 * Handles a request of a connection on the poller, which is refused; or the
 * end.
 */
static void expect_at(const struct rpma_rt_completion *item, int poller,
		      int *requests)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(item);
	int index;

	if (item->opcode == RPMA_RT_EVENT_CLOSED)
		return;
	CHECK(item->opcode == RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_get_poller(conn, &index));
	CHECK(poller < 0 || index == poller);
	MUST(rpma_rt_conn_reject(conn, NULL));
	MUST(rpma_rt_conn_unref(&conn));
	++*requests;
}

/* Deletes the queue; CLOSED of the connections comes before. */
static void delete_when_free(struct rpma_rt_queue *queue)
{
	while (rpma_rt_queue_delete(&queue) == RPMA_RT_E_BUSY)
		CHECK(world_next(queue).opcode == RPMA_RT_EVENT_CLOSED);
}

/* Takes all items, and LISTENER_CLOSED, once, after every request. */
static void take_until_closed(struct rpma_rt_queue *queue,
			      const struct rpma_rt_listener *listener,
			      int poller)
{
	struct rpma_rt_completion item = world_next(queue);
	int requests = 0;

	while (rpma_rt_completion_listener(&item) == NULL) {
		expect_at(&item, poller, &requests);
		item = world_next(queue);
	}
	CHECK(rpma_rt_completion_listener(&item) == listener);
	CHECK(item.status == RPMA_RT_REASON_LOCAL);
	while (rpma_rt_queue_poll(queue, &item, 1) == 1)
		CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
}

/* Makes requests that are never answered. */
static void request_many(struct stage *s, struct rpma_rt_listener *listener,
			 struct rpma_rt_conn *active[])
{
	int i;

	use_port_of(s, listener);
	for (i = 0; i < MANY; i++)
		active[i] = stage_begin(s);
}

static void end_many(struct stage *s, struct rpma_rt_conn *active[])
{
	int closed = 0;
	int i;

	for (i = 0; i < MANY; i++)
		MUST(rpma_rt_conn_close(active[i]));
	while (closed < MANY)
		closed += world_next(s->aq).opcode == RPMA_RT_EVENT_CLOSED;
	for (i = 0; i < MANY; i++)
		MUST(rpma_rt_conn_unref(&active[i]));
}

/* A queue with several pollers: after the items of each poller. */
static void closed__one_queue_of_several_pollers_LAST(struct stage *s)
{
	struct rpma_rt_listener *former;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *active[MANY];
	struct rpma_rt_queue *queue;

	MUST(rpma_rt_queue_new(s->world.rt, NULL, &queue));
	MUST(world_listen_at(s->world.rt, s->world.peer, s->world.addr, "0", 64,
			     s->cfg, RPMA_RT_POLLER_ANY, queue, s, &listener));
	former = listener;
	request_many(s, listener, active);
	MUST(rpma_rt_listener_delete(&listener));
	take_until_closed(queue, former, -1);
	end_many(s, active);
	delete_when_free(queue);
}

/* A queue for each poller: requests of its connections, and the end, come
 * there. */
static void closed__a_queue_for_each_poller_ONCE_IN_EACH(struct stage *s)
{
	struct rpma_rt_conn_cfg cfg = *s->cfg;
	struct rpma_rt_queue *queues[POLLERS];
	const struct rpma_rt_listener *former;
	struct rpma_rt_conn *active[MANY];
	struct rpma_rt_listener *listener;
	int i;

	for (i = 0; i < POLLERS; i++)
		MUST(rpma_rt_queue_new(s->world.rt, NULL, &queues[i]));
	cfg.peer = s->world.peer;
	cfg.poller = RPMA_RT_POLLER_ANY;
	cfg.backlog = 64;
	cfg.queues = queues;
	cfg.queue_count = POLLERS;
	MUST(rpma_rt_listen(s->world.rt, s->world.addr, "0", &cfg, &listener));
	former = listener;
	request_many(s, listener, active);
	MUST(rpma_rt_listener_delete(&listener));
	for (i = 0; i < POLLERS; i++)
		take_until_closed(queues[i], former, i);
	end_many(s, active);
	for (i = 0; i < POLLERS; i++)
		delete_when_free(queues[i]);
}

static void several_pollers(void)
{
	static const struct stage_cfg cfg = {.pollers = POLLERS,
					     .mode = RPMA_RT_MODE_ADAPTIVE,
					     .depth = DEPTH};
	struct stage s;
	int i;

	stage_open(&s, &cfg);
	for (i = 0; i < ROUNDS; i++) {
		closed__one_queue_of_several_pollers_LAST(&s);
		closed__a_queue_for_each_poller_ONCE_IN_EACH(&s);
	}
	stage_close(&s);
}

int main(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = DEPTH};
	static const struct stage_cfg by_hand = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = DEPTH};
	struct stage s;

	stage_open(&s, &cfg);
	listen__port_in_use_PROVIDER(&s);
	listen__no_such_address(&s);
	listen__wildcard(&s);
	delete__with_requests_in_the_queue(&s);
	set_user__CLOSED_is_to_come_OR_THERE(&s);
	stage_close(&s);
	stop__requests_never_taken(&cfg);
	stop__queue_over_its_limit(&cfg);
	stop__queue_over_its_limit(&by_hand);
	delete__queue_with_requests_inside(&cfg);
	several_pollers();
	printf("ok\n");
	return 0;
}
