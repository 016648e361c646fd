/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * races.c -- many threads at once. The assertions hold in every order; the
 * sanitizers find the rest.
 */

#include "fixture.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#define CLIENTS 4
#define ROUNDS	50
#define SERVERS 2

struct storm {
	struct rdma_event_channel *lch;
	struct rdma_cm_id *listener;
	uint16_t port;
	atomic_int established; /* seen by clients */
	atomic_int left;	/* requests to serve */
};

/* An event that is not acknowledged before its identifier is destroyed. */
static enum rdma_cm_event_type take_any(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	assert_int_equal(rdma_get_cm_event(ch, &event), 0);
	type = event->event;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return type;
}

/* Connect, confirm, part; each with a channel of its own. */
static void *client_thread(void *arg)
{
	struct storm *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_event_channel *ch = new_channel();
		struct rdma_cm_id *id = new_client(ch, s->port);
		struct ibv_cq *cq = add_qp(id);

		assert_int_equal(rdma_connect(id, NULL), 0);
		take_event(ch, RDMA_CM_EVENT_ESTABLISHED);
		/* relaxed: read after the threads are joined */
		atomic_fetch_add_explicit(&s->established, 1,
					  memory_order_relaxed);
		assert_int_equal(rdma_disconnect(id), 0);
		take_event(ch, RDMA_CM_EVENT_DISCONNECTED);
		drop_qp(id, cq);
		assert_int_equal(rdma_destroy_id(id), 0);
		rdma_destroy_event_channel(ch);
	}
	return NULL;
}

/* One connection, moved to a channel of its own before it is accepted. */
static void serve(struct rdma_cm_id *id)
{
	struct rdma_event_channel *ch = new_channel();
	struct ibv_cq *cq;

	assert_int_equal(rdma_migrate_id(id, ch), 0);
	cq = add_qp(id);
	assert_int_equal(rdma_accept(id, NULL), 0);
	take_event(ch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(ch, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(id), 0);
	take_event(ch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	drop_qp(id, cq);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

static void *server_thread(void *arg)
{
	struct storm *s = arg;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	/* relaxed: a ticket, orders nothing */
	while (atomic_fetch_sub_explicit(&s->left, 1, memory_order_relaxed) >
	       0) {
		event = next_event(s->lch, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		assert_int_equal(rdma_ack_cm_event(event), 0);
		serve(id);
	}
	return NULL;
}

/* several threads wait on one listener, each gets requests of its own */
TEST_WITH(storm__connect_and_part_ALL_SERVED, reset, reset)
{
	struct storm s = {.lch = new_channel(), .left = CLIENTS * ROUNDS};
	pthread_t threads[CLIENTS + SERVERS];

	s.listener = new_listener(s.lch, 0);
	s.port = port_of(s.listener);
	for (int i = 0; i < CLIENTS + SERVERS; i++)
		pthread_create(&threads[i], NULL,
			       i < CLIENTS ? client_thread : server_thread, &s);
	for (int i = 0; i < CLIENTS + SERVERS; i++)
		pthread_join(threads[i], NULL);
	/* relaxed: the threads are joined */
	assert_int_equal(
		atomic_load_explicit(&s.established, memory_order_relaxed),
		CLIENTS * ROUNDS);
	assert_quiet(s.lch);
	rdma_destroy_id(s.listener);
	rdma_destroy_event_channel(s.lch);
}

static void *full_client(void *arg)
{
	struct storm *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_conn_param param = {.qp_num = 1};
		struct rdma_event_channel *ch = new_channel();
		struct rdma_cm_id *id = new_client(ch, s->port);

		assert_int_equal(rdma_connect(id, &param), 0);
		take_status(ch, RDMA_CM_EVENT_REJECTED, 28);
		assert_int_equal(rdma_destroy_id(id), 0);
		rdma_destroy_event_channel(ch);
	}
	return NULL;
}

/* a backlog of one makes clients wait, it loses none */
TEST_WITH(storm__backlog_of_one_ALL_SERVED, reset, reset)
{
	struct storm s = {.lch = new_channel()};
	pthread_t threads[CLIENTS];
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	s.listener = new_listener(s.lch, 1);
	s.port = port_of(s.listener);
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&threads[i], NULL, full_client, &s);
	for (int i = 0; i < CLIENTS * ROUNDS; i++) {
		event = next_event(s.lch, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_reject(id, NULL, 0), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	rdma_destroy_id(s.listener);
	rdma_destroy_event_channel(s.lch);
}

struct end {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	pthread_barrier_t *start;
};

static void *part(void *arg)
{
	struct end *end = arg;

	pthread_barrier_wait(end->start);
	assert_int_equal(rdma_disconnect(end->id), 0);
	drop_qp(end->id, end->cq);
	assert_int_equal(rdma_destroy_id(end->id), 0);
	return NULL;
}

/* both ends disconnect and go at the same time */
TEST_WITH(part__both_at_once_SUCCESS, reset, reset)
{
	pthread_barrier_t start;
	pthread_t thread;

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < ROUNDS; i++) {
		struct end ends[2];
		struct pair p;

		pair_connect(&p);
		ends[0] = (struct end){p.client, p.ccq, &start};
		ends[1] = (struct end){p.server, p.scq, &start};
		pthread_create(&thread, NULL, part, &ends[0]);
		part(&ends[1]);
		pthread_join(thread, NULL);
		p.client = NULL;
		p.server = NULL;
		pair_teardown(&p);
	}
	pthread_barrier_destroy(&start);
}

static void *accept_thread(void *arg)
{
	struct end *end = arg;

	pthread_barrier_wait(end->start);
	/* the client may be gone */
	if (rdma_accept(end->id, NULL))
		assert_int_equal(errno, EINVAL);
	return NULL;
}

/* the client goes while it is being accepted */
TEST_WITH(accept__client_goes_CONSISTENT, reset, reset)
{
	pthread_barrier_t start;
	pthread_t thread;

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < ROUNDS; i++) {
		struct end end;
		struct pair p;

		pair_request(&p);
		drop_qp(p.client, p.ccq);
		end = (struct end){p.server, p.scq, &start};
		pthread_create(&thread, NULL, accept_thread, &end);
		pthread_barrier_wait(&start);
		assert_int_equal(rdma_destroy_id(p.client), 0);
		pthread_join(thread, NULL);
		p.client = NULL;
		pair_teardown(&p);
	}
	pthread_barrier_destroy(&start);
}

static void *read_until_disconnected(void *arg)
{
	struct rdma_event_channel *ch = arg;

	while (take_any(ch) != RDMA_CM_EVENT_DISCONNECTED)
		;
	return NULL;
}

/* an event moves away from under a thread that waits for it */
TEST_WITH(migrate__reader_waits_GETS_NEXT, reset, reset)
{
	struct rdma_event_channel *from = new_channel();
	struct rdma_event_channel *to = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_cm_id *moving = new_id(from);
	struct pair p;
	pthread_t thread;

	pair_connect(&p);
	assert_int_equal(rdma_migrate_id(p.client, from), 0);
	pthread_create(&thread, NULL, read_until_disconnected, from);
	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id = i ? new_id(from) : moving;

		assert_int_equal(
			rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
		assert_int_equal(rdma_migrate_id(id, to), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	drop_qp(p.server, p.scq);
	assert_int_equal(rdma_destroy_id(p.server), 0);
	p.server = NULL;
	pthread_join(thread, NULL);
	assert_quiet(to);
	pair_teardown(&p);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}

static void *pull_device(void *arg)
{
	pthread_barrier_wait(arg);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	return NULL;
}

/* a device is pulled while a connection is being made on it */
TEST_WITH(remove__while_connecting_ONE_END, reset, reset)
{
	pthread_barrier_t start;
	pthread_t thread;

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_conn_param param = {.qp_num = 1};
		enum rdma_cm_event_type type;
		struct pair p;

		pair_setup(&p);
		pthread_create(&thread, NULL, pull_device, &start);
		pthread_barrier_wait(&start);
		if (rdma_connect(p.client, &param))
			assert_int_equal(errno, ENXIO);
		type = take_any(p.cch);
		if (type == RDMA_CM_EVENT_REJECTED)
			type = take_any(p.cch);
		assert_int_equal(type, RDMA_CM_EVENT_DEVICE_REMOVAL);
		pthread_join(thread, NULL);
		pair_teardown(&p);
		assert_int_equal(rpma_loopback_restore_device(0), 0);
	}
	pthread_barrier_destroy(&start);
}

TEST_MAIN()
