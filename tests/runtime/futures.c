/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures.c -- futures of work requests: each future holds a single result, for
 * every operation; waits for one, for k of several; cancelled and dropped at
 * every step, when a message goes to the queue of the connection instead;
 * functions called once; delivered to any queue, by a route; all futures are
 * complete before CLOSED and by a stop. With the thread of a poller and by
 * hand.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	16
#define FUTURES 8
#define LEN	32u
#define PATIENT WORLD_PATIENCE_MS

struct scene {
	struct stage s;
	struct world_pair pair;
};

static void open_scene(struct scene *c, enum rpma_rt_mode mode)
{
	stage_open_futures(&c->s, mode, DEPTH, FUTURES);
	stage_register_all(&c->s);
	stage_connect(&c->s, &c->pair);
}

static void close_scene(struct scene *c)
{
	stage_disconnect(&c->s, &c->pair);
	stage_close(&c->s);
}

/* ------------------------------------------------------------- posting --- */

static void recv_at(struct scene *c, uint64_t context,
		    struct rpma_rt_future *future)
{
	struct rpma_rt_recv_wr wr = {
		.context = context,
		.dst = c->s.mr,
		.offset = 1024,
		.len = LEN,
	};

	if (future != NULL) {
		wr.future = future;
	}
	MUST(world_post_recv(c->pair.passive, &wr));
}

static void send_at(struct scene *c, uint64_t context,
		    struct rpma_rt_future *future)
{
	struct rpma_rt_wr wr;

	rpma_rt_prep_send(&wr, c->s.mr, 0, LEN, 0, context);
	wr.future = future;
	MUST(world_post_send(c->pair.active, &wr));
}

/* Asserts that the future is complete, with the status. */
static struct rpma_rt_completion result(const struct rpma_rt_future *future,
					uint64_t context, uint8_t status)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_completion again;

	MUST_ANSWER(1, rpma_rt_future_wait(future, &cmpl, PATIENT));
	CHECK(cmpl.kind == RPMA_RT_COMPLETION && cmpl.context == context);
	CHECK(cmpl.status == status);
	MUST_ANSWER(1, rpma_rt_future_poll(future, &again));
	CHECK(memcmp(&cmpl, &again, sizeof(cmpl)) == 0);
	return cmpl;
}

static void check_pending(const struct rpma_rt_future *future)
{
	struct rpma_rt_completion cmpl;

	MUST_ANSWER(0, rpma_rt_future_poll(future, &cmpl));
	MUST_ANSWER(0, rpma_rt_future_wait(future, &cmpl, 0));
	MUST_ANSWER(0, rpma_rt_future_wait(future, &cmpl, 2));
}

/* Sends a message; the send has a future that is dropped. */
static void ping(struct scene *c, uint64_t context)
{
	struct rpma_rt_future future;

	send_at(c, context, &future);
	result(&future, context, IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(&future));
}

/* Sends a message, with a receive. */
static void ping_through(struct scene *c)
{
	recv_at(c, 1, NULL);
	ping(c, 2);
	stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
}

/* Nothing of futures is in the queues. */
static void check_empty(struct scene *c)
{
	struct rpma_rt_completion item;

	MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 2));
	MUST_ANSWER(0, rpma_rt_queue_wait(c->s.pq, &item, 1, 2));
}

/* -------------------------------------------------------------- results --- */

/* Every operation of the device. */
static void post__every_operation_one_result(struct scene *c)
{
	struct rpma_rt_future future;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_wr wr[9];
	int i;

	rpma_rt_prep_write(&wr[0], c->s.remote, 0, c->s.mr, 64, LEN, 0, 1);
	rpma_rt_prep_read(&wr[1], c->s.mr, 64, c->s.remote, 0, LEN, 0, 2);
	rpma_rt_prep_flush(&wr[2], c->s.remote, 0, LEN,
			   RPMA_FLUSH_TYPE_VISIBILITY, 0, 3);
	rpma_rt_prep_send(&wr[3], c->s.mr, 0, LEN, 0, 4);
	rpma_rt_prep_send_with_imm(&wr[4], c->s.mr, 0, LEN, 77, 0, 5);
	rpma_rt_prep_write_with_imm(&wr[5], c->s.remote, 0, c->s.mr, 64, LEN,
				    78, 0, 6);
	rpma_rt_prep_compare_swap(&wr[6], c->s.mr, 128, c->s.remote, 256, 0, 1,
				  0, 7);
	rpma_rt_prep_fetch_add(&wr[7], c->s.mr, 128, c->s.remote, 256, 1, 0, 8);
	rpma_rt_prep_write(&wr[8], NULL, 0, NULL, 0, 0, RPMA_F_FENCE, 9);
	for (i = 0; i < 3; i++)
		recv_at(c, 100u + (uint64_t)i, NULL);
	for (i = 0; i < 9; i++) {
		wr[i].future = &future;
		MUST(world_post_send(c->pair.active, &wr[i]));
		cmpl = result(&future, (uint64_t)i + 1, IBV_WC_SUCCESS);
		CHECK(rpma_rt_completion_is_ok(&cmpl));
		MUST(rpma_rt_future_drop(&future));
		CHECK(future.opaque[0] == 0);
	}
	for (i = 0; i < 3; i++)
		stage_completion(c->s.pq, 100u + (uint64_t)i, IBV_WC_SUCCESS);
	check_empty(c);
}

static void recv__message_in_the_future(struct scene *c)
{
	struct rpma_rt_future future;
	struct rpma_rt_completion cmpl;

	recv_at(c, 5, &future);
	check_pending(&future);
	ping(c, 6);
	cmpl = result(&future, 5, IBV_WC_SUCCESS);
	CHECK(rpma_rt_completion_is_received(&cmpl) && cmpl.byte_len == LEN);
	MUST(rpma_rt_future_drop(&future));
	check_empty(c);
}

/* A future for a write; another write and a send follow in the link. */
static void link__one_future(struct scene *c)
{
	const uint32_t part = RPMA_RT_F_LINKED | RPMA_RT_F_PART;
	struct rpma_rt_future future;
	struct rpma_rt_wr wr[3];

	recv_at(c, 1, NULL);
	rpma_rt_prep_write(&wr[0], c->s.remote, 0, c->s.mr, 64, LEN, part, 0);
	rpma_rt_prep_write(&wr[1], c->s.remote, 64, c->s.mr, 0, LEN, part, 0);
	rpma_rt_prep_send(&wr[2], c->s.mr, 0, LEN, 0, 9);
	wr[2].future = &future;
	MUST_ANSWER(3, rpma_rt_post_send(c->pair.active, wr, 3));
	result(&future, 9, IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(&future));
	stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
	check_empty(c);
}

/* ------------------------------------------------------------- waiting --- */

static void wait_some__any_and_all(struct scene *c)
{
	struct rpma_rt_future futures[3];
	int i;

	for (i = 0; i < 3; i++)
		recv_at(c, (uint64_t)i, &futures[i]);
	MUST_ANSWER(0, rpma_rt_future_wait_some(futures, 3, 1, 2));
	ping(c, 10);
	MUST_ANSWER(1, rpma_rt_future_wait_some(futures, 3, 1, PATIENT));
	MUST_ANSWER(0, rpma_rt_future_wait_some(futures, 3, 3, 2));
	ping(c, 11);
	ping(c, 12);
	MUST_ANSWER(3, rpma_rt_future_wait_some(futures, 3, 3, PATIENT));
	for (i = 0; i < 3; i++) {
		result(&futures[i], (uint64_t)i, IBV_WC_SUCCESS);
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	check_empty(c);
}

/* More futures than a thread looks at while spinning, each named twice: each
 * future is counted as often as named. */
static void wait_some__many_and_some_twice(struct scene *c)
{
	struct rpma_rt_future futures[2 * FUTURES];
	int i;

	for (i = 0; i < FUTURES; i++) {
		recv_at(c, (uint64_t)i, &futures[2 * i]);
		futures[2 * i + 1] = futures[2 * i];
	}
	MUST_ANSWER(0, rpma_rt_future_wait_some(futures, 2 * FUTURES, 1, 2));
	for (i = 0; i < FUTURES; i++) {
		ping(c, 10);
		MUST_ANSWER(2 * (i + 1),
			    rpma_rt_future_wait_some(futures, 2 * FUTURES,
						     2 * i + 1, PATIENT));
		if (i + 1 < FUTURES)
			MUST_ANSWER(0, rpma_rt_future_wait_some(futures,
								2 * FUTURES,
								2 * i + 3, 1));
	}
	for (i = 0; i < FUTURES; i++) {
		result(&futures[2 * i], (uint64_t)i, IBV_WC_SUCCESS);
		MUST(rpma_rt_future_drop(&futures[2 * i]));
	}
	check_empty(c);
}

/* The thread sleeps while the messages come, one after the other. */
static void *ping_main(void *arg)
{
	struct scene *c = arg;
	int i;

	for (i = 0; i < FUTURES; i++)
		ping(c, 60);
	return NULL;
}

static void wait_some__all_of_many_asleep(struct scene *c)
{
	struct rpma_rt_future futures[2 * FUTURES];
	pthread_t thread;
	int i;

	for (i = 0; i < FUTURES; i++) {
		recv_at(c, (uint64_t)i, &futures[i]);
		futures[FUTURES + i] = futures[i];
	}
	CHECK(pthread_create(&thread, NULL, ping_main, c) == 0);
	MUST_ANSWER(2 * FUTURES,
		    rpma_rt_future_wait_some(futures, 2 * FUTURES, 2 * FUTURES,
					     PATIENT));
	CHECK(pthread_join(thread, NULL) == 0);
	for (i = 0; i < FUTURES; i++) {
		result(&futures[i], (uint64_t)i, IBV_WC_SUCCESS);
		MUST(rpma_rt_future_drop(&futures[i]));
	}
	check_empty(c);
}

struct sleeper {
	pthread_t thread;
	struct rpma_rt_future future;
	struct rpma_rt_completion cmpl;
	int ret;
};

static void *sleep_main(void *arg)
{
	struct sleeper *sleeper = arg;

	sleeper->ret =
		rpma_rt_future_wait(&sleeper->future, &sleeper->cmpl, PATIENT);
	return NULL;
}

/* Several threads sleep, each on a separate future. */
static void wait__elsewhere(struct scene *c)
{
	struct sleeper sleepers[4];
	int i;

	for (i = 0; i < 4; i++) {
		recv_at(c, (uint64_t)i, &sleepers[i].future);
		CHECK(pthread_create(&sleepers[i].thread, NULL, sleep_main,
				     &sleepers[i]) == 0);
	}
	for (i = 0; i < 4; i++) {
		ping(c, 50);
		CHECK(pthread_join(sleepers[i].thread, NULL) == 0);
		CHECK(sleepers[i].ret == 1 &&
		      sleepers[i].cmpl.context == (uint64_t)i);
		MUST(rpma_rt_future_drop(&sleepers[i].future));
	}
	check_empty(c);
}

/* -------------------------------------------------- cancel, drop, then --- */

static void cancel__message_to_the_queue(struct scene *c)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;
	int i;

	recv_at(c, 1, &future);
	for (i = 0; i < 2; i++) {
		MUST(rpma_rt_future_cancel(&future, &cancelled));
		CHECK(cancelled == RPMA_RT_CANCELLED_DETACHED);
	}
	check_pending(&future);
	ping(c, 2);
	cmpl = result(&future, 1, IBV_WC_GENERAL_ERR);
	CHECK(cmpl.flags == RPMA_RT_C_DETACHED && cmpl.byte_len == 0);
	cmpl = stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
	CHECK(cmpl.byte_len == LEN);
	MUST(rpma_rt_future_drop(&future));
	check_empty(c);
}

static void cancel__too_late_DONE(struct scene *c)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_future future;

	recv_at(c, 1, &future);
	ping(c, 2);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&future, 1, 1, PATIENT));
	MUST(rpma_rt_future_cancel(&future, &cancelled));
	CHECK(cancelled == RPMA_RT_CANCELLED_DONE);
	result(&future, 1, IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(&future));
	check_empty(c);
}

static void drop__message_to_the_queue(struct scene *c)
{
	struct rpma_rt_future future;

	recv_at(c, 1, &future); /* before the message came */
	MUST(rpma_rt_future_drop(&future));
	ping(c, 2);
	stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
	recv_at(c, 3, &future); /* when the message has arrived, and is not
				 * taken */
	ping(c, 4);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&future, 1, 1, PATIENT));
	MUST(rpma_rt_future_drop(&future));
	stage_completion(c->s.pq, 3, IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(&future)); /* no message: no effect */
	check_empty(c);
}

static _Atomic int calls;
static struct rpma_rt_completion called_with;

static void on_result(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct rpma_rt_future *future = arg;
	struct rpma_rt_completion again;

	called_with = *cmpl;
	if (future != NULL) {
		CHECK(rpma_rt_future_wait(future, &again, 0) ==
		      RPMA_RT_E_THREAD);
		MUST_ANSWER(1, rpma_rt_future_poll(future, &again));
		CHECK(again.context == cmpl->context);
	}
	/* release: the arguments of the call */
	atomic_fetch_add_explicit(&calls, 1, memory_order_release);
}

static void wait_for_call(struct scene *c, int count)
{
	struct rpma_rt_completion item;

	/* acquire: pairs with on_result() */
	while (atomic_load_explicit(&calls, memory_order_acquire) < count)
		MUST_ANSWER(0, rpma_rt_queue_wait(c->s.aq, &item, 1, 1));
}

static void then__function_once(struct scene *c)
{
	struct rpma_rt_future future;

	/* relaxed: no function is due */
	atomic_store_explicit(&calls, 0, memory_order_relaxed);
	recv_at(c, 1, &future);
	MUST(rpma_rt_future_then(&future, on_result, &future));
	CHECK(rpma_rt_future_then(&future, on_result, NULL) == RPMA_E_INVAL);
	ping(c, 2);
	wait_for_call(c, 1);
	CHECK(called_with.context == 1 && called_with.byte_len == LEN);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	recv_at(c, 3, &future); /* complete before */
	ping(c, 4);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&future, 1, 1, PATIENT));
	MUST(rpma_rt_future_then(&future, on_result, NULL));
	wait_for_call(c, 2);
	CHECK(called_with.context == 3);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	recv_at(c, 5, &future); /* never */
	MUST(rpma_rt_future_then(&future, on_result, &future));
	MUST(rpma_rt_future_drop(&future));
	ping(c, 6);
	stage_completion(c->s.pq, 5, IBV_WC_SUCCESS);
	check_empty(c);
	/* relaxed: likewise */
	CHECK(atomic_load_explicit(&calls, memory_order_relaxed) == 2);
}

static void then__queue(struct scene *c)
{
	struct rpma_rt_future future;

	recv_at(c, 1, &future);
	MUST(rpma_rt_future_deliver(&future, NULL));
	ping(c, 2);
	stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
	CHECK(result(&future, 1, IBV_WC_GENERAL_ERR).flags ==
	      RPMA_RT_C_DETACHED);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	recv_at(c, 3, &future); /* complete before */
	ping(c, 4);
	MUST_ANSWER(1, rpma_rt_future_wait_some(&future, 1, 1, PATIENT));
	MUST(rpma_rt_future_deliver(&future, NULL));
	stage_completion(c->s.pq, 3, IBV_WC_SUCCESS);
	result(&future, 3, IBV_WC_GENERAL_ERR);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	check_empty(c);
}

/* Opens a route of the side to a third queue. */
static struct rpma_rt_route *open_route(struct scene *c, enum rpma_rt_side side,
					struct rpma_rt_queue **queue)
{
	struct rpma_rt_route *route;

	MUST(rpma_rt_queue_new(c->s.world.rt, NULL, queue));
	MUST(rpma_rt_route_open(c->pair.passive, side, *queue, &route));
	return route;
}

static void deliver__any_queue(struct scene *c)
{
	struct rpma_rt_future futures[2];
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route = open_route(c, RPMA_RT_RECV_SIDE, &queue);

	recv_at(c, 1, &futures[0]);
	recv_at(c, 2, &futures[1]);
	MUST(rpma_rt_future_deliver(&futures[0], route));
	ping(c, 3);
	stage_completion(queue, 1, IBV_WC_SUCCESS);
	CHECK(result(&futures[0], 1, IBV_WC_GENERAL_ERR).flags ==
	      RPMA_RT_C_DETACHED);
	MUST_ANSWER(1, rpma_rt_future_drop(&futures[0]));
	ping(c, 4); /* complete before */
	MUST_ANSWER(1, rpma_rt_future_wait_some(&futures[1], 1, 1, PATIENT));
	MUST(rpma_rt_future_deliver(&futures[1], route));
	stage_completion(queue, 2, IBV_WC_SUCCESS);
	result(&futures[1], 2, IBV_WC_GENERAL_ERR);
	MUST_ANSWER(1, rpma_rt_future_drop(&futures[1]));
	MUST(rpma_rt_route_close(route, NULL));
	world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
	check_empty(c);
}

/* A closed route leads its futures to the queue of the other route. */
static void deliver__closed_route_leads_on(struct scene *c)
{
	struct rpma_rt_future futures[3];
	struct rpma_rt_queue *queues[2];
	struct rpma_rt_route *routes[2];
	int i;

	for (i = 0; i < 2; i++)
		routes[i] = open_route(c, RPMA_RT_RECV_SIDE, &queues[i]);
	for (i = 0; i < 3; i++)
		recv_at(c, (uint64_t)i, &futures[i]);
	MUST(rpma_rt_future_deliver(&futures[0], routes[0]));
	MUST(rpma_rt_future_deliver(&futures[1], routes[0]));
	MUST(rpma_rt_route_close(routes[0], routes[1]));
	world_event(queues[0], RPMA_RT_EVENT_ROUTE_CLOSED);
	ping(c, 3);
	stage_completion(queues[1], 0, IBV_WC_SUCCESS);
	MUST(rpma_rt_route_close(routes[1], NULL));
	world_event(queues[1], RPMA_RT_EVENT_ROUTE_CLOSED);
	ping(c, 4);
	stage_completion(c->s.pq, 1, IBV_WC_SUCCESS);
	CHECK(rpma_rt_future_deliver(&futures[2], routes[1]) ==
	      RPMA_RT_E_CLOSED);
	ping(c, 5);
	result(&futures[2], 2, IBV_WC_SUCCESS);
	for (i = 0; i < 3; i++) {
		MUST_ANSWER(i < 2, rpma_rt_future_drop(&futures[i]));
		if (i < 2)
			MUST(rpma_rt_queue_delete(&queues[i]));
	}
	check_empty(c);
}

static void deliver__to_a_function(struct scene *c)
{
	struct rpma_rt_future future;
	struct rpma_rt_route *route;

	/* relaxed: no function is due */
	atomic_store_explicit(&calls, 0, memory_order_relaxed);
	MUST(rpma_rt_route_open_callback(c->pair.passive, RPMA_RT_RECV_SIDE,
					 on_result, NULL, &route));
	recv_at(c, 1, &future);
	MUST(rpma_rt_future_deliver(&future, route));
	ping(c, 2);
	wait_for_call(c, 1);
	CHECK(called_with.context == 1 && called_with.byte_len == LEN);
	result(&future, 1, IBV_WC_GENERAL_ERR);
	MUST_ANSWER(1, rpma_rt_future_drop(&future));
	MUST(rpma_rt_route_close(route, NULL));
	wait_for_call(c, 2);
	CHECK(rpma_rt_completion_event(&called_with) ==
	      RPMA_RT_EVENT_ROUTE_CLOSED);
	check_empty(c);
}

static void deliver__wrong_route_INVAL(struct scene *c)
{
	struct rpma_rt_future future;
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route = open_route(c, RPMA_RT_SEND_SIDE, &queue);

	recv_at(c, 1, &future);
	CHECK(rpma_rt_future_deliver(&future, route) == RPMA_E_INVAL);
	ping(c, 2);
	result(&future, 1, IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(&future));
	send_at(c, 3, &future); /* of the active end */
	CHECK(rpma_rt_future_deliver(&future, route) == RPMA_E_INVAL);
	recv_at(c, 4, NULL);
	result(&future, 3, IBV_WC_SUCCESS);
	stage_completion(c->s.pq, 4, IBV_WC_SUCCESS);
	MUST(rpma_rt_future_drop(&future));
	MUST(rpma_rt_route_close(route, NULL));
	world_event(queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&queue));
	check_empty(c);
}

/* -------------------------------------------------------------- bounds --- */

static void post__all_are_held_AGAIN(struct scene *c)
{
	struct rpma_rt_future futures[FUTURES + 1];
	struct rpma_rt_recv_wr wr = {.dst = c->s.mr, .len = LEN};
	struct rpma_rt_completion cmpl;
	bool is_posted = false;
	bool has_come = false;
	int i;

	for (i = 0; i < FUTURES; i++)
		recv_at(c, (uint64_t)i, &futures[i]);
	wr.future = &futures[FUTURES];
	MUST_ANSWER(RPMA_E_AGAIN, world_post_recv(c->pair.passive, &wr));
	CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_FUTURES);
	CHECK(strstr(rpma_rt_again_2str(RPMA_RT_AGAIN_FUTURES), "futures"));
	/* the first slot belongs to the poller until the message has come; then
	 * the slot is free, and the refused poster is told */
	MUST(rpma_rt_future_drop(&futures[0]));
	ping(c, 50);
	while (!is_posted || !has_come) {
		cmpl = world_next(c->s.pq);
		has_come |= cmpl.kind == RPMA_RT_COMPLETION;
		/* WRITABLE may come for the credit, ahead of the slot */
		if (cmpl.kind == RPMA_RT_WRITABLE)
			is_posted = world_post_recv(c->pair.passive, &wr) == 0;
	}
	MUST(rpma_rt_future_drop(&futures[FUTURES]));
	for (i = 1; i < FUTURES; i++)
		MUST(rpma_rt_future_drop(&futures[i]));
	for (i = 1; i <= FUTURES; i++) {
		ping(c, 51);
		stage_completion(c->s.pq, (uint64_t)(i % FUTURES),
				 IBV_WC_SUCCESS);
	}
	check_empty(c);
}

/* A slot held before is used again by later posts. */
static void post__many_times(struct scene *c)
{
	struct rpma_rt_future futures[2];
	int i;

	for (i = 0; i < 20 * FUTURES; i++) {
		recv_at(c, (uint64_t)i, &futures[0]);
		ping(c, 1000);
		result(&futures[0], (uint64_t)i, IBV_WC_SUCCESS);
		futures[1] = futures[0];
		MUST(rpma_rt_future_drop(&futures[0]));
		CHECK(rpma_rt_future_drop(&futures[1]) == RPMA_E_INVAL);
	}
	check_empty(c);
}

static void post__wrong_INVAL(struct scene *c)
{
	struct rpma_rt_future future = {{0, 0}};
	struct rpma_rt_completion cmpl;
	struct rpma_rt_wr wr[2];

	rpma_rt_prep_send(&wr[0], c->s.mr, 0, LEN, 0, 1);
	wr[0].future = &future;
	wr[0].flags = RPMA_F_COMPLETION_ON_ERROR;
	CHECK(world_post_send(c->pair.active, &wr[0]) == RPMA_E_INVAL);
	wr[0].flags = 0;
	wr[1] = wr[0];
	wr[1].op = 0; /* posts nothing: the slot of the first is free again */
	CHECK(rpma_rt_post_send(c->pair.active, wr, 2) == RPMA_E_INVAL);
	CHECK(future.opaque[0] == 0);
	CHECK(rpma_rt_future_poll(&future, &cmpl) == RPMA_E_INVAL);
	CHECK(rpma_rt_future_deliver(&future, NULL) == RPMA_E_INVAL);
	CHECK(rpma_rt_future_wait_some(&future, 1, 1, 0) == RPMA_E_INVAL);
	check_empty(c);
}

/* --------------------------------------------------------------- quorum --- */

/* how the second of two replicas dies */
enum death { BY_ACCESS, BY_CLOSE, BY_FAULT, DEATHS };

/* Writes on the connection that is to fail. */
static void write_to_the_second(struct scene *c, const struct world_pair *pair,
				enum death death, struct rpma_rt_future *future)
{
	struct rpma_mr_remote *nowhere = stage_vanished(&c->s);
	struct rpma_rt_wr wr;
	char rule[64];
	uint32_t qp_num;

	rpma_rt_prep_write(&wr, death == BY_ACCESS ? nowhere : c->s.remote, 512,
			   c->s.mr, 64, LEN, 0, 2);
	wr.future = future;
	if (death == BY_FAULT) {
		MUST(rpma_rt_conn_get_qp_num(pair->active, &qp_num));
		snprintf(rule, sizeof(rule), "wr:qp=%u,nth=1,status=rem_op_err",
			 qp_num);
		MUST(loop_get()->fault(rule));
	}
	if (death == BY_CLOSE) /* without a receive: the send stays
			        * outstanding */
		wr.op = RPMA_RT_OP_SEND;
	MUST(world_post_send(pair->active, &wr));
	if (death == BY_CLOSE)
		MUST(rpma_rt_conn_close(pair->passive));
	MUST(rpma_mr_remote_delete(&nowhere));
}

/*
 * A record on two replicas: one copy is enough, and exists; both cannot exist.
 */
static void quorum(struct scene *c, enum death death)
{
	struct rpma_rt_future futures[2];
	struct rpma_rt_completion cmpl;
	struct world_pair pair;
	struct rpma_rt_wr wr;

	stage_connect(&c->s, &pair);
	rpma_rt_prep_write(&wr, c->s.remote, 256, c->s.mr, 64, LEN, 0, 1);
	wr.future = &futures[0];
	MUST(world_post_send(c->pair.active, &wr));
	write_to_the_second(c, &pair, death, &futures[1]);
	MUST_ANSWER(1, rpma_rt_future_wait_some(futures, 2, 1, PATIENT));
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(futures, 2, 2, PATIENT));
	result(&futures[0], 1, IBV_WC_SUCCESS);
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[1], &cmpl));
	CHECK(cmpl.status != IBV_WC_SUCCESS && cmpl.context == 2);
	MUST(rpma_rt_future_drop(&futures[0]));
	MUST(rpma_rt_conn_close(pair.active));
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_unref(&pair);
	MUST(rpma_rt_future_drop(&futures[1]));
	if (death == BY_FAULT)
		loop_get()->fault_clear();
}

static void wait_some__quorum_of_two_one_dies(struct scene *c)
{
	enum death death;

	for (death = 0; death < DEATHS; death++) {
		if (death != BY_FAULT || loop_get() != NULL)
			quorum(c, death);
	}
	ping_through(c);
}

/* ---------------------------------------------------------------- ends --- */

/* Futures are complete when CLOSED is there, and may outlive the connection. */
static void close__all_complete(struct scene *c)
{
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_future futures[4];
	struct rpma_rt_completion cmpl;
	int i;

	for (i = 0; i < 4; i++)
		recv_at(c, (uint64_t)i, &futures[i]);
	MUST(rpma_rt_future_cancel(&futures[1], &cancelled));
	MUST(rpma_rt_future_drop(&futures[2]));
	MUST(rpma_rt_conn_close(c->pair.passive));
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[0], &cmpl));
	CHECK(cmpl.status != IBV_WC_SUCCESS && cmpl.context == 0);
	MUST(rpma_rt_conn_unref(&c->pair.passive));
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&c->pair.active));
	MUST_ANSWER(1, rpma_rt_future_poll(&futures[1], &cmpl));
	CHECK(cmpl.flags == RPMA_RT_C_DETACHED);
	MUST_ANSWER(RPMA_RT_E_FAILED,
		    rpma_rt_future_wait_some(futures, 1, 1, PATIENT));
	/* by hand no round runs before the stop, which runs rounds */
	MUST(rpma_rt_future_deliver(&futures[3], NULL));
	MUST(rpma_rt_stop(c->s.world.rt));
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[3], &cmpl, PATIENT));
	MUST(rpma_rt_future_drop(&futures[0]));
	MUST(rpma_rt_future_drop(&futures[1]));
	MUST(rpma_rt_future_drop(&futures[3]));
	stage_close(&c->s);
}

/*
 * A stop completes outstanding futures; the runtime stays while a future is
 * held.
 */
static void stop__delete_BUSY(struct scene *c)
{
	struct rpma_rt_future futures[2];
	struct rpma_rt_completion cmpl;
	struct rpma_rt *rt = c->s.world.rt;

	recv_at(c, 1, &futures[0]);
	recv_at(c, 2, &futures[1]);
	MUST(rpma_rt_stop(rt));
	world_event(c->s.pq, RPMA_RT_EVENT_CLOSED);
	world_event(c->s.aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&c->pair.passive));
	MUST(rpma_rt_conn_unref(&c->pair.active));
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[0], &cmpl, -1));
	CHECK(cmpl.status != IBV_WC_SUCCESS);
	MUST(rpma_rt_queue_delete(&c->s.aq));
	MUST(rpma_rt_queue_delete(&c->s.pq));
	CHECK(rpma_rt_delete(&rt) == RPMA_RT_E_BUSY);
	MUST(rpma_rt_future_drop(&futures[0]));
	CHECK(rpma_rt_delete(&rt) == RPMA_RT_E_BUSY);
	/* the poller has ended */
	MUST(rpma_rt_future_deliver(&futures[1], NULL));
	MUST_ANSWER(1, rpma_rt_future_wait(&futures[1], &cmpl, -1));
	MUST(rpma_rt_future_drop(&futures[1]));
	MUST(rpma_mr_remote_delete(&c->s.remote));
	MUST(rpma_mr_dereg(&c->s.mr));
	free(c->s.memory);
	free(c->s.cfg);
	world_close(&c->s.world);
}

static void run_all(enum rpma_rt_mode mode)
{
	static void (*const cases[])(struct scene *c) = {
		post__every_operation_one_result,
		recv__message_in_the_future,
		link__one_future,
		wait_some__any_and_all,
		wait_some__many_and_some_twice,
		cancel__message_to_the_queue,
		cancel__too_late_DONE,
		drop__message_to_the_queue,
		then__function_once,
		then__queue,
		deliver__any_queue,
		deliver__closed_route_leads_on,
		deliver__to_a_function,
		deliver__wrong_route_INVAL,
		post__all_are_held_AGAIN,
		post__many_times,
		post__wrong_INVAL,
		wait_some__quorum_of_two_one_dies,
	};
	struct scene c;
	size_t i;

	open_scene(&c, mode);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i](&c);
	if (mode != RPMA_RT_MODE_MANUAL)
		wait__elsewhere(&c);
	if (mode != RPMA_RT_MODE_MANUAL)
		wait_some__all_of_many_asleep(&c);
	close_scene(&c);
	open_scene(&c, mode);
	close__all_complete(&c);
	open_scene(&c, mode);
	stop__delete_BUSY(&c);
}

int main(void)
{
	run_all(RPMA_RT_MODE_ADAPTIVE);
	run_all(RPMA_RT_MODE_EVENT);
	run_all(RPMA_RT_MODE_MANUAL);
	return 0;
}
