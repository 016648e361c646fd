/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* migrate.c -- identifiers that change their channel. */

#include "fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* migrate: unread events come along, those of others stay */
TEST_WITH(migrate__queued_events_MOVE, reset, reset)
{
	struct rdma_event_channel *from = new_channel();
	struct rdma_event_channel *to = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_cm_id *a = new_id(from);
	struct rdma_cm_id *b = new_id(from);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_resolve_addr(a, NULL, SA(addr), TIMEOUT_MS), 0);
	assert_int_equal(rdma_resolve_addr(b, NULL, SA(addr), TIMEOUT_MS), 0);
	assert_int_equal(rdma_migrate_id(a, to), 0);
	assert_ptr_equal(a->channel, to);
	event = next_event(to, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, a);
	rdma_ack_cm_event(event);
	event = next_event(from, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, b);
	rdma_ack_cm_event(event);
	assert_quiet(from);
	assert_int_equal(rdma_resolve_route(a, TIMEOUT_MS), 0);
	take_event(to, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_destroy_id(a);
	rdma_destroy_id(b);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}

/* migrate: a listener takes its requests along; they belong where read */
TEST_WITH(migrate__listener_requests_MOVE, reset, reset)
{
	struct rdma_event_channel *to = new_channel();
	struct rdma_cm_event *event;
	struct pair p;

	pair_setup(&p);
	assert_int_equal(rdma_connect(p.client, NULL), 0);
	assert_int_equal(rdma_migrate_id(p.listener, to), 0);
	assert_quiet(p.lch);
	event = next_event(to, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.server = event->id;
	assert_ptr_equal(p.server->channel, to);
	rdma_ack_cm_event(event);
	p.scq = add_qp(p.server);
	assert_int_equal(rdma_accept(p.server, NULL), 0);
	take_event(p.cch, RDMA_CM_EVENT_ESTABLISHED);
	take_event(to, RDMA_CM_EVENT_ESTABLISHED);
	pair_teardown(&p);
	rdma_destroy_event_channel(to);
}

/* migrate: a synchronous identifier becomes asynchronous */
TEST_WITH(migrate__sync_to_channel_ASYNC, reset, reset)
{
	struct rdma_event_channel *lch = new_channel();
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *listener = new_listener(lch, 0);
	struct sockaddr_in addr = v4("127.0.0.1", port_of(listener));
	struct rdma_cm_id *id;
	struct ibv_cq *cq;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cq = add_qp(id);
	assert_int_equal(rdma_migrate_id(id, ch), 0);
	assert_null(id->event);
	assert_ptr_equal(id->channel, ch);
	/* returns without an answer */
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	take_status(ch, RDMA_CM_EVENT_REJECTED, 28);
	drop_qp(id, cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(lch);
}

/* migrate: an asynchronous identifier becomes synchronous */
TEST_WITH(migrate__channel_to_null_SYNC, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_cm_id *id = new_id(ch);

	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_ptr_not_equal(id->channel, ch);
	assert_fails(rdma_migrate_id(id, NULL), EINVAL);
	assert_int_equal(rdma_resolve_route(id, TIMEOUT_MS), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_quiet(ch);
	rdma_destroy_event_channel(ch);
	assert_int_equal(rdma_destroy_id(id), 0);
}

struct mover {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	sem_t entered;
	atomic_int acked;
	int was_acked; /* when the call returned; read after join */
};

static void on_call(enum rpma_loopback_point point, const void *object,
		    void *arg)
{
	struct mover *m = arg;

	if (point == RPMA_LOOPBACK_CM_CALL && object == m->id)
		sem_post(&m->entered);
}

static void *migrate_thread(void *arg)
{
	struct mover *m = arg;

	assert_int_equal(rdma_migrate_id(m->id, m->to), 0);
	/* relaxed: ordered by the acknowledgement that the call waits for */
	m->was_acked = atomic_load_explicit(&m->acked, memory_order_relaxed);
	return NULL;
}

/* migrate: returns once nobody works on an event of the old channel */
TEST_WITH(migrate__unacked_event_WAITS, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct mover m = {.id = new_id(ch), .to = new_channel()};
	struct rdma_cm_event *event;
	pthread_t thread;

	sem_init(&m.entered, 0, 0);
	assert_int_equal(rdma_resolve_addr(m.id, NULL, SA(addr), TIMEOUT_MS),
			 0);
	event = next_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	rpma_loopback_set_hook(on_call, &m);
	pthread_create(&thread, NULL, migrate_thread, &m);
	sem_wait(&m.entered);
	/* relaxed: see migrate_thread() */
	atomic_store_explicit(&m.acked, 1, memory_order_relaxed);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	pthread_join(thread, NULL);
	assert_int_equal(m.was_acked, 1);
	rpma_loopback_set_hook(NULL, NULL);
	rdma_destroy_id(m.id);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(m.to);
	sem_destroy(&m.entered);
}

/* migrate: to what is no channel */
TEST_WITH(migrate__not_a_channel_EINVAL, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_event_channel fake[32] = {{0}};
	struct rdma_cm_id *id = new_id(ch);

	assert_fails(rdma_migrate_id(id, fake), EINVAL);
	assert_ptr_equal(id->channel, ch);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* migrate: an identifier whose channel was destroyed */
TEST_WITH(migrate__orphan_ENXIO, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_event_channel *to = new_channel();
	struct rdma_cm_id *id = new_id(ch);

	rdma_destroy_event_channel(ch);
	assert_fails(rdma_migrate_id(id, to), ENXIO);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(to);
}

TEST_MAIN()
