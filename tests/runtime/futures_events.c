/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures_events.c -- futures of events: READY, ESTABLISHED and CLOSED before
 * and after the event, events that never come, together with futures of work
 * requests, cancelled, dropped, with a function, across a stop. With the thread
 * of a poller and by hand.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "stage.h"

#define DEPTH	16
#define FUTURES 8
#define SLOTS	16 /* of events */
#define LEN	32u
#define PATIENT WORLD_PATIENCE_MS

struct scene {
	struct stage s;
	struct world_pair pair;
};

static void open_scene(struct scene *c, enum rpma_rt_mode mode)
{
	stage_open_futures(&c->s, mode, DEPTH, FUTURES);
	c->s.cfg->futures = FUTURES;
}

static struct rpma_rt_future future_of(struct rpma_rt_conn *conn,
				       enum rpma_rt_event event)
{
	struct rpma_rt_future future;

	MUST(rpma_rt_conn_future(conn, event, &future));
	return future;
}

/* Asserts that the future is complete with the event of the connection. */
static void has_event(const struct rpma_rt_future *future,
		      const struct rpma_rt_conn *conn, enum rpma_rt_event event,
		      uint8_t status)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	CHECK(rpma_rt_completion_event(&cmpl) == event);
	CHECK(rpma_rt_completion_conn(&cmpl) == conn && cmpl.status == status);
}

static void check_pending(const struct rpma_rt_future *future)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(0, rpma_rt_future_wait(future, &cmpl, 2));
}

static void recv_at(struct scene *c, uint64_t context,
		    struct rpma_rt_future *future)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, c->s.mr, 1024, LEN, context);
	wr.future = future;
	MUST(world_post_recv(c->pair.passive, &wr));
}

static void ping(struct scene *c)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, c->s.mr, 0, LEN, 0, 1);
	wr.future = &future;
	MUST(world_post_send(c->pair.active, &wr));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	MUST(rpma_rt_future_drop(&future));
}

static void drop_all(struct rpma_rt_future *futures, int count)
{
	int i;

	for (i = 0; i < count; i++)
		MUST(rpma_rt_future_drop(&futures[i]));
}

/* ---------------------------------------------------------- delivery --- */

/* The connection has ended, and the queue of the route is gone: the result
 * stays. */
static void deliver__route_of_the_past(struct scene *c)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;

	stage_connect(&c->s, &c->pair);
	MUST(rpma_rt_queue_new(c->s.world.rt, NULL, &queue));
	MUST(rpma_rt_route_open(c->pair.passive, RPMA_RT_RECV_SIDE, queue,
				&route));
	recv_at(c, 1, &future);
	MUST(rpma_rt_conn_close(c->pair.active));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_future_deliver(&future, route));
	MUST_ANSWER(1, rpma_rt_future_wait(&future, &cmpl, PATIENT));
	MUST(rpma_rt_future_drop(&future));
	world_unref(&c->pair);
}

struct deliverer {
	struct rpma_rt_future future;
	struct rpma_rt_route *route;
	atomic_bool is_over;
};

static void *deliver_on(void *arg)
{
	struct deliverer *d = arg;
	int ret;

	/* relaxed: the thread is joined */
	while (!atomic_load_explicit(&d->is_over, memory_order_relaxed)) {
		ret = rpma_rt_future_deliver(&d->future, d->route);
		/* the future is led elsewhere already; the route is checked
		 * first */
		CHECK(ret == RPMA_E_INVAL || ret == RPMA_RT_E_CLOSED);
	}
	return NULL;
}

/* Another thread closes the route and deletes its queue. */
static void deliver__against_a_close(struct scene *c)
{
	struct rpma_rt_queue *queue;
	struct deliverer d;
	pthread_t thread;
	int i;

	stage_connect(&c->s, &c->pair);
	recv_at(c, 1, &d.future);
	MUST(rpma_rt_future_deliver(&d.future, NULL));
	for (i = 0; i < 20; i++) {
		atomic_init(&d.is_over, false);
		MUST(rpma_rt_queue_new(c->s.world.rt, NULL, &queue));
		MUST(rpma_rt_route_open(c->pair.passive, RPMA_RT_RECV_SIDE,
					queue, &d.route));
		CHECK(!pthread_create(&thread, NULL, deliver_on, &d));
		MUST(rpma_rt_route_close(d.route, NULL));
		world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
		MUST(rpma_rt_queue_delete(&queue));
		/* relaxed: likewise */
		atomic_store_explicit(&d.is_over, true, memory_order_relaxed);
		pthread_join(thread, NULL);
	}
	MUST(rpma_rt_future_drop(&d.future));
	stage_disconnect(&c->s, &c->pair);
}

/* Looks at the future of CLOSED, on the thread that runs the poller: the future
 * is not complete before this function has returned. */
static void look_for_closed(const struct rpma_rt_completion *item, void *arg)
{
	struct rpma_rt_future *closed = arg;
	struct rpma_rt_completion cmpl;

	CHECK(rpma_rt_completion_event(item) == RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(0, rpma_rt_future_poll(closed, &cmpl));
	closed->opaque[0] = 0; /* called */
}

static void then__before_closed(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);
	struct rpma_rt_future established, ready, closed, copy;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, c->s.cfg, 0, c->s.aq, NULL,
			    &conn));
	established = future_of(conn, RPMA_RT_EVENT_ESTABLISHED);
	ready = future_of(conn, RPMA_RT_EVENT_READY);
	closed = future_of(conn, RPMA_RT_EVENT_CLOSED);
	copy = closed;
	MUST(rpma_rt_future_then(&established, look_for_closed, &copy));
	MUST_ANSWER(1, rpma_rt_future_wait(&ready, &cmpl, PATIENT));
	MUST(rpma_rt_conn_close(conn));
	MUST_ANSWER(1, rpma_rt_future_wait(&closed, &cmpl, PATIENT));
	CHECK(copy.opaque[0] == 0);
	CHECK(rpma_rt_future_drop(&established) >= 0);
	MUST(rpma_rt_future_drop(&ready));
	MUST(rpma_rt_future_drop(&closed));
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, c->s.pq);
}

/* ------------------------------------------------------------ a life --- */

/* By futures from the beginning to the end; the queue gets the events, too. */
static void life__each_event(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);
	struct rpma_rt_future ready, closed, established[2];
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, c->s.cfg, 0, c->s.aq, NULL,
			    &conn));
	ready = future_of(conn, RPMA_RT_EVENT_READY);
	established[0] = future_of(conn, RPMA_RT_EVENT_ESTABLISHED);
	closed = future_of(conn, RPMA_RT_EVENT_CLOSED);
	has_event(&ready, conn, RPMA_RT_EVENT_READY, 0);
	check_pending(&established[0]);
	MUST(rpma_rt_conn_connect(conn, NULL));
	c->pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
				  c->s.pq, RPMA_RT_EVENT_REQUEST)
				  .context;
	established[1] = future_of(c->pair.passive, RPMA_RT_EVENT_ESTABLISHED);
	MUST(rpma_rt_future_drop(&ready));
	ready = future_of(c->pair.passive, RPMA_RT_EVENT_READY);
	has_event(&ready, c->pair.passive, RPMA_RT_EVENT_READY, 0);
	MUST(rpma_rt_conn_accept(c->pair.passive, NULL));
	MUST_ANSWER(2, rpma_rt_future_wait_some(established, 2, 2, PATIENT));
	has_event(&established[0], conn, RPMA_RT_EVENT_ESTABLISHED, 0);
	drop_all(established, 2);
	/* the event has come before */
	established[0] = future_of(conn, RPMA_RT_EVENT_ESTABLISHED);
	has_event(&established[0], conn, RPMA_RT_EVENT_ESTABLISHED, 0);
	check_pending(&closed);
	MUST(rpma_rt_conn_close(c->pair.passive));
	has_event(&closed, conn, RPMA_RT_EVENT_CLOSED,
		  RPMA_RT_REASON_DISCONNECTED);
	/* and stays so */
	has_event(&established[0], conn, RPMA_RT_EVENT_ESTABLISHED, 0);
	MUST(rpma_rt_future_drop(&established[0]));
	MUST(rpma_rt_future_drop(&closed));
	MUST(rpma_rt_future_drop(&ready));
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	world_event(c->s.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	MUST(rpma_rt_conn_unref(&c->pair.passive));
	world_unlisten(&listener, c->s.pq);
}

/* No listener there: ESTABLISHED does not come, CLOSED does. */
static void life__refused(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);
	struct rpma_rt_future ready, futures[2];
	struct rpma_rt_completion cmpl;
	struct rpma_rt_conn *conn;

	world_unlisten(&listener, c->s.pq);
	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, c->s.cfg, 0, c->s.aq, NULL,
			    &conn));
	ready = future_of(conn, RPMA_RT_EVENT_READY);
	futures[0] = future_of(conn, RPMA_RT_EVENT_ESTABLISHED);
	futures[1] = future_of(conn, RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&ready, 1, 1, PATIENT));
	MUST(rpma_rt_conn_connect(conn, NULL));
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(futures, 2, 2, PATIENT));
	MUST_ANSWER(1, rpma_rt_future_wait_some(futures, 2, 1, PATIENT));
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[0], &cmpl));
	CHECK(rpma_rt_completion_event(&cmpl) == RPMA_RT_EVENT_CLOSED &&
	      cmpl.status == RPMA_RT_REASON_REJECTED);
	has_event(&futures[1], conn, RPMA_RT_EVENT_CLOSED,
		  RPMA_RT_REASON_REJECTED);
	drop_all(futures, 2);
	MUST(rpma_rt_future_drop(&ready));
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
}

/* A close by the program is no success for events that never come. */
static void life__closed_before_connect(struct scene *c)
{
	struct rpma_rt_listener *listener =
		world_listen(&c->s.world, c->s.cfg, c->s.pq);
	struct rpma_rt_future futures[2];
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(c->s.world.rt, c->s.world.peer, c->s.world.addr,
			    c->s.world.port, c->s.cfg, 0, c->s.aq, NULL,
			    &conn));
	futures[0] = future_of(conn, RPMA_RT_EVENT_ESTABLISHED);
	futures[1] = future_of(conn, RPMA_RT_EVENT_READY);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&futures[1], 1, 1, PATIENT));
	MUST(rpma_rt_conn_close(conn));
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(futures, 1, 1, PATIENT));
	has_event(&futures[0], conn, RPMA_RT_EVENT_CLOSED,
		  RPMA_RT_REASON_LOCAL);
	drop_all(futures, 2);
	world_event(c->s.aq, RPMA_RT_EVENT_READY);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, c->s.pq);
}

/* -------------------------------------------------------------- mixed --- */

/* The next message, or the end. */
static void mixed__message_or_closed(struct scene *c)
{
	struct rpma_rt_future futures[2];
	struct rpma_rt_completion cmpl;

	stage_connect(&c->s, &c->pair);
	futures[1] = future_of(c->pair.passive, RPMA_RT_EVENT_CLOSED);
	recv_at(c, 1, &futures[0]);
	ping(c);
	MUST_ANSWER(1, rpma_rt_future_wait_some(futures, 2, 1, PATIENT));
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[0], &cmpl));
	CHECK(cmpl.context == 1 && cmpl.status == IBV_WC_SUCCESS);
	check_pending(&futures[1]);
	MUST(rpma_rt_future_drop(&futures[0]));
	recv_at(c, 2, &futures[0]);
	MUST_ANSWER(0, rpma_rt_future_wait_some(futures, 2, 1, 2));
	MUST(rpma_rt_conn_close(c->pair.active));
	MUST_ANSWER(1, rpma_rt_future_wait_some(futures, 2, 1, PATIENT));
	/* complete before CLOSED */
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[0], &cmpl));
	CHECK(cmpl.context == 2 && cmpl.status != IBV_WC_SUCCESS);
	has_event(&futures[1], c->pair.passive, RPMA_RT_EVENT_CLOSED,
		  RPMA_RT_REASON_DISCONNECTED);
	drop_all(futures, 2);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
}

/*
 * Nothing is in the hands of the device: the future is complete, and free, at
 * once.
 */
static void given_up__at_once(struct scene *c)
{
	struct rpma_rt_future futures[SLOTS + 1];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	int i;

	stage_connect(&c->s, &c->pair);
	for (i = 0; i < SLOTS; i++)
		futures[i] = future_of(c->pair.active, RPMA_RT_EVENT_CLOSED);
	CHECK(rpma_rt_conn_future(c->pair.active, RPMA_RT_EVENT_CLOSED,
				  &futures[SLOTS]) == RPMA_RT_E_BUSY);
	for (i = 0; i < SLOTS; i++) {
		MUST(rpma_rt_future_cancel(&futures[i], &cancelled));
		CHECK(cancelled == RPMA_RT_CANCELLED_DETACHED);
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[i], &cmpl, PATIENT));
		CHECK(cmpl.flags == RPMA_RT_C_DETACHED);
		MUST_ANSWER(RPMA_RT_E_FAILED,
			    rpma_rt_future_wait_some(&futures[i], 1, 1, 0));
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	/* dropped while pending; the poller gets the requests in this order */
	for (i = 0; i < 4 * SLOTS; i++) {
		futures[0] = future_of(c->pair.active, RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_future_drop(&futures[0]));
		futures[1] =
			future_of(c->pair.active, RPMA_RT_EVENT_ESTABLISHED);
		MUST_ANSWER(1,
			    rpma_rt_future_wait(&futures[1], &cmpl, PATIENT));
		MUST(rpma_rt_future_drop(&futures[1]));
	}
	futures[0] = future_of(c->pair.active, RPMA_RT_EVENT_CLOSED);
	stage_disconnect(&c->s, &c->pair);
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[0], &cmpl, PATIENT));
	MUST(rpma_rt_future_drop(&futures[0]));
}

static _Atomic int calls;
static struct rpma_rt_completion called_with;

static void on_event(const struct rpma_rt_completion *cmpl, void *arg)
{
	CHECK(arg == &calls);
	called_with = *cmpl;
	/* release: the item, to the test */
	atomic_fetch_add_explicit(&calls, 1, memory_order_release);
}

static int calls_so_far(void)
{
	/* acquire: pairs with the above */
	return atomic_load_explicit(&calls, memory_order_acquire);
}

static void then__function_once(struct scene *c)
{
	struct rpma_rt_future futures[2];
	struct rpma_rt_completion item;
	int before = calls_so_far();
	int i;

	stage_connect(&c->s, &c->pair);
	for (i = 0; i < 2; i++) {
		futures[i] = future_of(c->pair.passive, RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_future_then(&futures[i], on_event, &calls));
		CHECK(rpma_rt_future_deliver(&futures[i], NULL) ==
		      RPMA_E_INVAL);
	}
	MUST(rpma_rt_future_drop(&futures[0])); /* never */
	stage_disconnect(&c->s, &c->pair);
	while (calls_so_far() == before)
		MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 1));
	CHECK(rpma_rt_completion_event(&called_with) == RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(1, rpma_rt_future_drop(&futures[1]));
	CHECK(calls_so_far() == before + 1);
}

/* ---------------------------------------------------------------- ends --- */

/* A stop completes the futures, also a future that no round has seen;
 * afterwards no future can be made. */
static void stop__completes(struct scene *c)
{
	struct rpma_rt_future none, futures[3];
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;

	stage_connect(&c->s, &c->pair);
	futures[0] = future_of(c->pair.active, RPMA_RT_EVENT_CLOSED);
	futures[1] = future_of(c->pair.active, RPMA_RT_EVENT_ESTABLISHED);
	/* by hand no round runs between these calls and the stop */
	futures[2] = future_of(c->pair.passive, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_future_cancel(&futures[2], &cancelled));
	MUST(rpma_rt_stop(c->s.world.rt));
	has_event(&futures[0], c->pair.active, RPMA_RT_EVENT_CLOSED,
		  RPMA_RT_REASON_STOPPED);
	has_event(&futures[1], c->pair.active, RPMA_RT_EVENT_ESTABLISHED, 0);
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[2], &cmpl, PATIENT));
	CHECK(rpma_rt_conn_future(c->pair.active, RPMA_RT_EVENT_CLOSED,
				  &none) == RPMA_RT_E_CLOSED);
	drop_all(futures, 3);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&c->pair);
	stage_close(&c->s);
}

static void run_all(enum rpma_rt_mode mode)
{
	struct scene c;

	open_scene(&c, mode);
	life__each_event(&c);
	life__refused(&c);
	life__closed_before_connect(&c);
	mixed__message_or_closed(&c);
	deliver__route_of_the_past(&c);
	deliver__against_a_close(&c);
	then__before_closed(&c);
	given_up__at_once(&c);
	then__function_once(&c);
	stop__completes(&c);
}

int main(void)
{
	run_all(RPMA_RT_MODE_ADAPTIVE);
	run_all(RPMA_RT_MODE_EVENT);
	run_all(RPMA_RT_MODE_MANUAL);
	return 0;
}
