/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Listening, the copy of a configuration, its queues and their last item, and
 * how CM events are read. */

#include "rt_fake.h"

static int listen_at(struct fake *f, struct rpma_rt_queue *queue,
		     struct rpma_rt_listener **listener)
{
	f->rt_cfg.queue = queue;
	f->rt_cfg.backlog = 3;
	return rpma_rt_listen(f->rt, "a", "4711", &f->rt_cfg, listener);
}

static uint32_t handles_of(struct fake *f)
{
	/* relaxed: one thread */
	return atomic_load_explicit(&f->rt->handles, memory_order_relaxed);
}

/* It ends: LISTENER_CLOSED is the only item of its queue. */
static void expect_listener_closed(struct fake *f, struct rpma_rt_queue *queue,
				   const struct rpma_rt_listener *listener,
				   enum rpma_rt_reason reason)
{
	assert_int_equal(fake_take(f, queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_EVENT);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_LISTENER_CLOSED);
	assert_ptr_equal(rpma_rt_completion_listener(&f->items[0]), listener);
	assert_ptr_equal(f->items[0].user, f);
	assert_int_equal(f->items[0].status, reason);
}

static void unlisten(struct fake *f, struct rpma_rt_queue *queue,
		     struct rpma_rt_listener **listener)
{
	const struct rpma_rt_listener *former = *listener;

	ok(rpma_rt_listener_delete(listener));
	assert_null(*listener);
	fake_finish_down(f);
	expect_listener_closed(f, queue, former, RPMA_RT_REASON_LOCAL);
}

static void listen__invalid_INVAL(void **state)
{
	struct rpma_rt_queue *queues[1] = {NULL};
	struct rpma_rt_listener *listener = NULL;
	struct fake *f = *state;
	uint16_t port;

#define LISTEN(rt, addr, port, cfg, out) \
	assert_int_equal(rpma_rt_listen(rt, addr, port, cfg, out), RPMA_E_INVAL)
	LISTEN(NULL, "a", "1", &f->rt_cfg, &listener);
	LISTEN(f->rt, NULL, "1", &f->rt_cfg, &listener);
	LISTEN(f->rt, "a", NULL, &f->rt_cfg, &listener);
	LISTEN(f->rt, "a", "1", NULL, &listener);
	LISTEN(f->rt, "a", "1", &f->rt_cfg, NULL);
	f->rt_cfg.backlog = INT32_MAX + UINT32_C(1);
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	assert_true(fake_said("rpma_rt_conn_cfg.backlog is 2147483648"));
	f->rt_cfg.backlog = 0;
	f->rt_cfg.peer = NULL;
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	f->rt_cfg.peer = &fake_peer;
	f->rt_cfg.queues = queues; /* and queue */
	f->rt_cfg.queue_count = 1;
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	assert_true(fake_said("queue and queues: give one of them"));
	f->rt_cfg.queue = NULL;
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	assert_true(fake_said("rpma_rt_conn_cfg.queues[0] is NULL"));
	f->rt_cfg.queue_count = 2;
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	assert_true(fake_said("rpma_rt_conn_cfg.queue_count is 2"));
	f->rt_cfg.queues = NULL;
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	assert_true(fake_said("rpma_rt_conn_cfg.queues is missing"));
	f->rt_cfg.queue_count = 0;
	LISTEN(f->rt, "a", "1", &f->rt_cfg, &listener);
	assert_true(fake_said("rpma_rt_conn_cfg.queue is missing"));
#undef LISTEN
	assert_null(listener);
	assert_int_equal(rpma_rt_listener_get_port(NULL, &port), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_listener_delete(NULL), RPMA_E_INVAL);
	ok(rpma_rt_listener_delete(&listener));
}

static void listen__each_failure_nothing_left(void **state)
{
	struct rpma_rt_listener *listener = NULL;
	struct fake *f = *state;
	int memory;
	int nth;

	/* the lane that a listener makes stays with its queue */
	ok(listen_at(f, f->queue, &listener));
	unlisten(f, f->queue, &listener);
	memory = fake_memory();
	for (nth = 1; nth <= 4; nth++) {
		fake_fail("malloc", nth, 1);
		assert_int_equal(listen_at(f, f->queue, &listener),
				 RPMA_E_NOMEM);
		assert_true(fake_failed());
		assert_int_equal(fake_memory(), memory);
	}
	fake_fail("ep_listen", 1, RPMA_E_PROVIDER); /* the port is in use */
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_PROVIDER);
	assert_null(listener);
	assert_null(f->rt->listeners);
	assert_int_equal(fake_memory(), memory);
	/* and the queue is free again, as the teardown sees */
}

static void listen__closed_queue_or_stopping_CLOSED(void **state)
{
	struct rpma_rt_listener *listener = NULL;
	struct rpma_rt_queue *closed;
	struct fake *f = *state;

	ok(rpma_rt_queue_new(f->rt, NULL, &closed));
	ok(rpma_rt_queue_close(closed));
	assert_int_equal(listen_at(f, closed, &listener), RPMA_RT_E_CLOSED);
	ok(rpma_rt_queue_delete(&closed));
	f->rt->stopping = true;
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_RT_E_CLOSED);
	f->rt->stopping = false;
	assert_null(listener);
	assert_string_equal(fake_trace(), "");
}

static void listener__holds_its_queue_until_deleted(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	uint16_t port;

	ok(listen_at(f, f->queue, &listener));
	ok(rpma_rt_listener_get_port(listener, &port));
	assert_int_equal(port, 4711);
	assert_int_equal(rpma_rt_listener_get_port(listener, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_queue_delete(&f->queue), RPMA_RT_E_BUSY);
	unlisten(f, f->queue, &listener);
	assert_string_equal(fake_trace(), "ep_listen ep_shutdown");
}

/* The control thread knows that the listener goes; it is on the network yet. */
static void listener__request_while_it_is_deleted_refused(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	uint32_t acked = fake_cm_acked();

	ok(listen_at(f, f->queue, &listener));
	fake_forget_trace();
	listener->closed = true;
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	assert_int_equal(fake_cm_acked(), acked + 1);
	unlisten(f, f->queue, &listener);
	assert_string_equal(fake_trace(),
			    "rdma_reject rdma_destroy_id ep_shutdown");
}

static void cm_ready__requests_become_connections(void **state)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conns[2];
	struct fake *f = *state;
	int i;

	ok(listen_at(f, f->queue, &listener));
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	/* of a listener, without meaning */
	fake_cm_event(f->rt, RDMA_CM_EVENT_TIMEWAIT_EXIT, listener);
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	ok(rpma_rt_listener_delete(&listener)); /* those two live on */
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 3);
	assert_int_equal(f->items[2].opcode, RPMA_RT_EVENT_LISTENER_CLOSED);
	for (i = 0; i < 2; i++) {
		assert_int_equal(f->items[i].opcode, RPMA_RT_EVENT_REQUEST);
		assert_ptr_equal(f->items[i].user, f);
		conns[i] =
			(struct rpma_rt_conn *)(uintptr_t)f->items[i].context;
	}
	fake_bury(f, &conns[0]);
	fake_bury(f, &conns[1]);
}

/* An event for a connection that has died already is only dropped. */
static void cm_ready__late_event_of_a_dead_connection(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn = fake_established(f);

	fake_cm_event(f->rt, RDMA_CM_EVENT_TIMEWAIT_EXIT, &conn->target);
	fake_cm_ready(f);
	ok(rpma_rt_conn_close(conn));
	fake_bury(f, &conn);
}

/* The peer gives up before its request was read. */
static void cm_ready__event_right_behind_its_request(void **state)
{
	struct rpma_rt_listener *listener;
	struct rdma_cm_id ids[2] = {0};
	struct rpma_rt_conn *conns[2];
	struct fake *f = *state;
	int i;

	ok(listen_at(f, f->queue, &listener));
	for (i = 0; i < 2; i++)
		fake_cm_event_of(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener,
				 &ids[i]);
	fake_cm_event_of(f->rt, RDMA_CM_EVENT_DEVICE_REMOVAL, listener,
			 &ids[1]);
	fake_cm_ready(f);
	fake_control(f);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	for (i = 0; i < 2; i++)
		conns[i] =
			(struct rpma_rt_conn *)(uintptr_t)f->items[i].context;
	assert_int_equal(conns[0]->ctl.state, RT_CONN_READY);
	assert_int_equal(conns[1]->ctl.state, RT_CONN_DRAINING);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_DEVICE);
	assert_int_equal(f->items[0].context, (uintptr_t)conns[1]);
	ok(rpma_rt_conn_unref(&conns[1]));
	unlisten(f, f->queue, &listener);
	fake_bury(f, &conns[0]);
}

/* The id lives on, and so does what its events name, until none is read. */
static void delete__id_stays_record_stays(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	struct rpma_rt_conn *conn;
	struct rt_cm_target *of_conn;
	struct rt_cm_target *of_listener;
	uint32_t handles = handles_of(f);

	ok(listen_at(f, f->queue, &listener));
	of_listener = &listener->target;
	conn = fake_established(f);
	of_conn = &conn->target;
	fake_fail("ep_shutdown", 1, RPMA_E_PROVIDER);
	unlisten(f, f->queue, &listener);
	fake_fail("conn_delete", 1, RPMA_E_PROVIDER);
	fake_bury(f, &conn);
	assert_int_equal(handles_of(f), handles + 2);
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, of_listener);
	fake_cm_event(f->rt, RDMA_CM_EVENT_DISCONNECTED, of_listener);
	fake_cm_event(f->rt, RDMA_CM_EVENT_DISCONNECTED, of_conn);
	fake_cm_ready(f);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(handles_of(f), handles + 2);
	rt_cm_end_control(f->device->cm);
	assert_int_equal(handles_of(f), handles);
}

/* It comes back: there is no endless loop. The event is there after a rest. */
/* ----------------------------------------------------------- its queues --- */

static struct rpma_rt_conn *request_of(const struct rpma_rt_completion *item)
{
	assert_int_equal(item->opcode, RPMA_RT_EVENT_REQUEST);
	return (struct rpma_rt_conn *)(uintptr_t)item->context;
}

/* Also where its queue is deleted right after, and where it is never taken. */
static void closed__queue_deleted_BUSY_until_it_came(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	struct rpma_rt_queue *queue;

	ok(rpma_rt_queue_new(f->rt, NULL, &queue));
	ok(listen_at(f, queue, &listener));
	ok(rpma_rt_listener_delete(&listener));
	assert_int_equal(rpma_rt_queue_delete(&queue), RPMA_RT_E_BUSY);
	fake_finish_down(f);
	ok(rpma_rt_queue_delete(&queue));
	f->rt_cfg.queue = f->queue;
}

static void queues__one_of_each_poller(void **state)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *queues[1];
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	queues[0] = f->queue;
	f->rt_cfg.queue = NULL;
	f->rt_cfg.queues = queues;
	f->rt_cfg.queue_count = 1;
	ok(rpma_rt_listen(f->rt, "a", "4711", &f->rt_cfg, &listener));
	queues[0] = NULL; /* borrowed for the call */
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	conn = request_of(&f->items[0]);
	fake_bury(f, &conn);
	unlisten(f, f->queue, &listener);
	/* no listener, so one queue */
	queues[0] = f->queue;
	assert_int_equal(rpma_rt_conn_new(f->rt, "a", "1", &f->rt_cfg, &conn),
			 RPMA_E_INVAL);
	assert_true(fake_said("rpma_rt_conn_cfg.queues is for listeners"));
}

static void fill(struct fake *f, bool on)
{
	struct rt_lane *lane =
		rt_queue_lane(f->queue, f->poller->index, &f->poller->bell);

	/* relaxed: the test's own; as the poller does */
	atomic_store_explicit(&lane->backlogged, on, memory_order_relaxed);
}

static void request__queue_over_its_limit_REFUSED_AND_COUNTED(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	int i;

	ok(listen_at(f, f->queue, &listener));
	fake_forget_trace();
	fill(f, true);
	for (i = 0; i < 3; i++)
		fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	fake_finish_down(f);
	assert_string_equal(fake_trace(), "rdma_reject rdma_destroy_id "
					  "rdma_reject rdma_destroy_id "
					  "rdma_reject rdma_destroy_id");
	/* relaxed: statistic, orders nothing */
	assert_int_equal(atomic_load_explicit(&f->rt->requests_refused,
					      memory_order_relaxed),
			 3);
	/* the first and the second, the third not */
	assert_true(fake_said("port 4711 has refused 2 requests"));
	assert_false(fake_said("port 4711 has refused 3 requests"));
	fill(f, false);
	unlisten(f, f->queue, &listener);
}

/* There is no place for it while the queue is over its limit. */
static void closed__queue_over_its_limit_WAITS(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	const struct rpma_rt_listener *former;
	struct rt_lane *lane;

	ok(listen_at(f, f->queue, &listener));
	former = listener;
	fill(f, true);
	ok(rpma_rt_listener_delete(&listener));
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(rpma_rt_queue_delete(&f->queue), RPMA_RT_E_BUSY);
	fill(f, false);
	lane = rt_queue_lane(f->queue, f->poller->index, &f->poller->bell);
	rt_waiter_answer_poller(&lane->waiters);
	fake_finish_down(f);
	expect_listener_closed(f, f->queue, former, RPMA_RT_REASON_LOCAL);
}

static void device__removed_DEVICE(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;

	ok(listen_at(f, f->queue, &listener));
	fake_forget_trace();
	fake_cm_event(f->rt, RDMA_CM_EVENT_DEVICE_REMOVAL, listener);
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	fake_finish_down(f);
	expect_listener_closed(f, f->queue, listener, RPMA_RT_REASON_DEVICE);
	assert_string_equal(fake_trace(),
			    "rdma_reject rdma_destroy_id ep_shutdown");
	/* only the handle is left */
	ok(rpma_rt_listener_delete(&listener));
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 0);
}

/* Deleted first: the removal finds that somebody ends it already. */
static void device__removed_while_it_is_deleted_ONCE(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	struct rt_cm_target *target;

	ok(listen_at(f, f->queue, &listener));
	target = &listener->target;
	fake_cm_event(f->rt, RDMA_CM_EVENT_DEVICE_REMOVAL, target);
	ok(rpma_rt_listener_delete(&listener));
	fake_cm_ready(f);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
}

static void cm_ready__reading_fails_once_nothing_lost(void **state)
{
	struct rpma_rt_listener *listener;
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	ok(listen_at(f, f->queue, &listener));
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_fail("cm_channel_get_event", 1, RPMA_E_PROVIDER);
	fake_cm_ready(f);
	assert_true(fake_failed());
	assert_int_equal(f->device->cm->source.failures, 1);
	fake_cm_ready(f);
	assert_int_equal(f->device->cm->source.failures, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	conn = (struct rpma_rt_conn *)(uintptr_t)f->items[0].context;
	fake_bury(f, &conn);
	unlisten(f, f->queue, &listener);
}

static void cm_ready__channel_broken_given_up(void **state)
{
	struct fake *f = *state;
	int i;

	for (i = 0; i < 50; i++) {
		assert_int_equal(f->device->cm->source.failures, i);
		fake_fail("cm_channel_get_event", 1, RPMA_E_PROVIDER);
		fake_cm_ready(f);
		assert_true(fake_failed());
	}
	/* it rests no more */
	assert_null(f->device->cm->source.resting_next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(listen__invalid_INVAL),
		fake_test(listen__each_failure_nothing_left),
		fake_test(listen__closed_queue_or_stopping_CLOSED),
		fake_test(listener__holds_its_queue_until_deleted),
		fake_test(listener__request_while_it_is_deleted_refused),
		fake_test(cm_ready__requests_become_connections),
		fake_test(cm_ready__late_event_of_a_dead_connection),
		fake_test(cm_ready__event_right_behind_its_request),
		fake_test(delete__id_stays_record_stays),
		fake_test(closed__queue_deleted_BUSY_until_it_came),
		fake_test(closed__queue_over_its_limit_WAITS),
		fake_test(queues__one_of_each_poller),
		fake_test(request__queue_over_its_limit_REFUSED_AND_COUNTED),
		fake_test(device__removed_DEVICE),
		fake_test(device__removed_while_it_is_deleted_ONCE),
		fake_test(cm_ready__reading_fails_once_nothing_lost),
		fake_test(cm_ready__channel_broken_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
