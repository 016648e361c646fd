/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Listening, the copy of a configuration, queues and their last item, and how
 * CM events are read. */

#include <errno.h>
#include <string.h>

#include "rt_fake.h"
#include "srq/srq.h"

static int listen_at(struct fake *f, struct rpma_rt_queue *queue,
		     struct rpma_rt_listener **listener)
{
	f->rt_cfg.queue = queue;
	f->rt_cfg.backlog = 3;
	return rpma_rt_listen(f->rt, "::1", "4711", &f->rt_cfg, listener);
}

static uint32_t handles_of(struct fake *f)
{
	/* relaxed: a single thread */
	return atomic_load_explicit(&f->rt->handles, memory_order_relaxed);
}

/*
 * Asserts that the listener ends: LISTENER_CLOSED is the only item of the
 * queue.
 */
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

/* No listener is made with rt_cfg, and the log has the words. */
static void expect_refused(struct fake *f, const char *words)
{
	struct rpma_rt_listener *listener = NULL;

	assert_int_equal(
		rpma_rt_listen(f->rt, "::1", "4711", &f->rt_cfg, &listener),
		RPMA_E_INVAL);
	assert_true(fake_said(words));
	assert_null(listener);
	assert_null(f->rt->listeners);
}

FAKE_TEST(listen__queues_INVAL)
{
	struct rpma_rt_queue *queues[1] = {NULL};

	f->rt_cfg.queues = queues; /* and queue */
	f->rt_cfg.queue_count = 1;
	expect_refused(f, "queue and queues: give one of them");
	f->rt_cfg.queue = NULL;
	expect_refused(f, "rpma_rt_conn_cfg.queues[0] is NULL");
	f->rt_cfg.queue_count = 2;
	expect_refused(f, "rpma_rt_conn_cfg.queue_count is 2");
	f->rt_cfg.queues = NULL;
	expect_refused(f, "rpma_rt_conn_cfg.queues is missing");
}

/* Limits that no client could have. */
FAKE_TEST(listen__beyond_the_device_INVAL)
{
	f->rt_cfg.sq_size = 1000000;
	f->rt_cfg.keepalive_ms = 1; /* which takes a place */
	expect_refused(f, "rpma_rt_conn_cfg.sq_size is 1000000, it may be "
			  "1..32766");
	f->rt_cfg.keepalive_ms = 0;
	f->rt_cfg.sq_size = FAKE_SQ;
	f->rt_cfg.max_inline = 1 << 30;
	expect_refused(f, "rpma_rt_conn_cfg.max_inline is 1073741824, it may "
			  "be 8..256");
	f->rt_cfg.max_inline = 8;
	/* only the device knows why */
	fake_fail("ibv_create_qp", 1, EINVAL);
	fake_fail("ibv_create_qp", 1, EINVAL);
	expect_refused(f, "the device refuses a queue pair with "
			  "rpma_rt_conn_cfg.sq_size");
	assert_true(fake_failed());
	assert_string_equal(fake_trace(), ""); /* never on the network */
}

FAKE_TEST(listen__device_fails_while_asked)
{
	struct rpma_rt_listener *listener = NULL;

	fake_fail("ibv_query_device", 1, ENOMEM);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_PROVIDER);
	fake_fail("peer_get_ibv_pd", 1, RPMA_E_FORKED);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_FORKED);
	fake_fail("ibv_create_cq", 1, ENOMEM);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_PROVIDER);
	fake_fail("ibv_create_qp", 1, ENOMEM);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_NOMEM);
	fake_fail("ibv_create_qp", 1, EIO);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_PROVIDER);
	assert_true(fake_said("Input/output error"));
	assert_true(fake_failed());
	assert_null(listener);
}

FAKE_TEST(listen__atomics_beyond_the_device_INVAL)
{
	struct rpma_rt_listener *listener = NULL;
	struct rpma_conn_cfg *more;

	ok(rpma_conn_cfg_new(&more));
	f->rt_cfg.more = more;
	ok(rpma_conn_cfg_set_responder_resources(more, 17));
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_INVAL);
	assert_true(fake_said("rpma_rt_conn_cfg.more.responder_resources is "
			      "17, it may be 0..16"));
	ok(rpma_conn_cfg_set_responder_resources(more, 16));
	ok(rpma_conn_cfg_set_initiator_depth(more, 9));
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_INVAL);
	assert_true(fake_said("rpma_rt_conn_cfg.more.initiator_depth is 9, it "
			      "may be 0..8"));
	ok(rpma_conn_cfg_set_initiator_depth(more, 8));
	ok(listen_at(f, f->queue, &listener));
	unlisten(f, f->queue, &listener);
	f->rt_cfg.more = NULL;
	ok(rpma_conn_cfg_delete(&more));
}

FAKE_TEST(listen__each_failure_nothing_left)
{
	struct rpma_rt_listener *listener = NULL;
	int memory;
	int nth = 0;
	int ret;

	/* a lane stays with its queue */
	assert_non_null(
		rt_queue_lane(f->queue, f->poller->index, &f->poller->bell));
	memory = fake_memory();
	fake_fail("ep_listen", 1, RPMA_E_PROVIDER); /* the port is in use */
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_PROVIDER);
	assert_null(listener);
	assert_null(f->rt->listeners);
	assert_int_equal(fake_memory(), memory);
	/* the last allocation is the place for the last item, after
	 * ep_listen */
	do {
		fake_forget_trace();
		fake_fail("malloc", ++nth, 1);
		ret = listen_at(f, f->queue, &listener);
		fake_finish_down(f);
		if (ret == 0)
			break;
		assert_int_equal(ret, RPMA_E_NOMEM);
		assert_true(fake_failed());
		assert_null(f->rt->listeners);
		assert_int_equal(fake_take(f, f->queue), 0);
		assert_int_equal(fake_memory(), memory);
	} while (strcmp(fake_trace(), "ep_listen ep_shutdown") != 0);
	assert_int_equal(ret, RPMA_E_NOMEM);
	/* and the queue is free again, as the teardown sees */
}

/*
 * The control thread knows that the listener goes; the listener is still on the
 * network.
 */
FAKE_TEST(listener__request_while_it_is_deleted_refused)
{
	struct rpma_rt_listener *listener;
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

/* The peer gives up before its request was read. */
FAKE_TEST(cm_ready__event_right_behind_its_request)
{
	struct rpma_rt_listener *listener;
	struct rdma_cm_id ids[2] = {0};
	struct rpma_rt_conn *conns[2];
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

/*
 * The id lives on, and so does the record named by events of the id, until all
 * events are read.
 */
FAKE_TEST(delete__id_stays_record_stays)
{
	struct rpma_rt_listener *listener;
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

/* ---------------------------------------------------- several queues --- */

static struct rpma_rt_conn *request_of(const struct rpma_rt_completion *item)
{
	assert_int_equal(item->opcode, RPMA_RT_EVENT_REQUEST);
	return (struct rpma_rt_conn *)(uintptr_t)item->context;
}

/*
 * LISTENER_CLOSED comes also where its queue is deleted right after, and where
 * the item is never taken.
 */
FAKE_TEST(closed__queue_deleted_BUSY_until_it_came)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *queue;

	ok(rpma_rt_queue_new(f->rt, NULL, &queue));
	ok(listen_at(f, queue, &listener));
	ok(rpma_rt_listener_delete(&listener));
	assert_int_equal(rpma_rt_queue_delete(&queue), RPMA_RT_E_BUSY);
	fake_finish_down(f);
	ok(rpma_rt_queue_delete(&queue));
	f->rt_cfg.queue = f->queue;
}

FAKE_TEST(queues__one_of_each_poller)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *queues[1];
	struct rpma_rt_conn *conn;

	queues[0] = f->queue;
	f->rt_cfg.queue = NULL;
	f->rt_cfg.queues = queues;
	f->rt_cfg.queue_count = 1;
	ok(rpma_rt_listen(f->rt, "::1", "4711", &f->rt_cfg, &listener));
	queues[0] = NULL; /* borrowed for the call */
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	conn = request_of(&f->items[0]);
	fake_bury(f, &conn);
	unlisten(f, f->queue, &listener);
	/* no listener, so a single queue */
	queues[0] = f->queue;
	assert_int_equal(rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &conn),
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

/* The call that makes the listener may still fail. */
FAKE_TEST(request__before_it_is_listed_REFUSED)
{
	struct rpma_rt_listener *listener;

	ok(listen_at(f, f->queue, &listener));
	fake_forget_trace();
	listener->is_listed = false;
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_cm_ready(f);
	fake_finish_down(f);
	assert_string_equal(fake_trace(), "rdma_reject rdma_destroy_id");
	assert_int_equal(fake_take(f, f->queue), 0);
	listener->is_listed = true;
	unlisten(f, f->queue, &listener);
}

/* Every failure is counted, and each cause is in the log. */
FAKE_TEST(request__no_connection_of_it_COUNTED)
{
	static const char *const calls[] = {"malloc", "req_new", "req_claim",
					    "req_get_qp"};
	const int count = sizeof(calls) / sizeof(calls[0]);
	struct rpma_rt_listener *listener;
	int i;

	ok(listen_at(f, f->queue, &listener));
	for (i = 0; i < count; i++) {
		fake_fail(calls[i], 1, i == 0 ? 1 : RPMA_E_PROVIDER);
		fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
		fake_cm_ready(f);
		fake_finish_down(f);
		assert_true(fake_failed());
		assert_null(f->rt->conns);
		/* relaxed: statistic, orders nothing */
		assert_int_equal(atomic_load_explicit(&f->rt->requests_refused,
						      memory_order_relaxed),
				 i + 1);
	}
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_true(fake_said("port 4711 has refused 4 requests, the last "
			      "because making the queue pair failed: Input/"
			      "output error"));
	unlisten(f, f->queue, &listener);
}

/* Items of past objects may have the places that are free by the count. */
FAKE_TEST(listen__queue_over_its_limit_BUSY)
{
	struct rpma_rt_listener *listener = NULL;

	fill(f, true);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_RT_E_BUSY);
	fake_finish_down(f);
	assert_null(listener);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_string_equal(fake_trace(), "ep_listen ep_shutdown");
	fill(f, false);
}

FAKE_TEST(listener__a_place_in_the_lane_UNTIL_ITS_END)
{
	struct rpma_rt_listener *listeners[2];
	struct rt_lane *lane =
		rt_queue_lane(f->queue, f->poller->index, &f->poller->bell);
	uint32_t before = lane->reserved;
	int i;

	for (i = 0; i < 2; i++) {
		ok(listen_at(f, f->queue, &listeners[i]));
		assert_int_equal(lane->reserved, before + i + 1);
	}
	fake_finish_down(f);
	assert_true(lane->spill->entries >= lane->backlog_limit + before + 2);
	while (i-- > 0) {
		unlisten(f, f->queue, &listeners[i]);
		assert_int_equal(lane->reserved, before + i);
	}
}

/* Deleted first: the removal finds the listener ending already. */
FAKE_TEST(device__removed_while_it_is_deleted_ONCE)
{
	struct rpma_rt_listener *listener;
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

FAKE_TEST(cm_ready__reading_fails_once_nothing_lost)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;

	ok(listen_at(f, f->queue, &listener));
	fake_cm_event(f->rt, RDMA_CM_EVENT_CONNECT_REQUEST, listener);
	fake_fail("cm_channel_get_event", 1, EIO);
	fake_cm_ready(f);
	assert_true(fake_failed());
	assert_true(fake_said("CM events of fake0 cannot be read for now"));
	assert_int_equal(f->device->cm->source.failures, 1);
	fake_cm_ready(f);
	assert_int_equal(f->device->cm->source.failures, 0);
	assert_string_equal(fake_news(),
			    "CM events of fake0 can be read again");
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	conn = (struct rpma_rt_conn *)(uintptr_t)f->items[0].context;
	fake_bury(f, &conn);
	unlisten(f, f->queue, &listener);
}

static void fail_reading(struct fake *f, int count, int err)
{
	int i;

	for (i = 0; i < count; i++) {
		fake_fail("cm_channel_get_event", 1, err);
		fake_cm_ready(f);
		assert_true(fake_failed());
	}
}

/* Lack of memory passes, however long; so do rare errors. */
FAKE_TEST(cm_ready__no_memory_NEVER_GIVEN_UP)
{
	fail_reading(f, 1000, ENOMEM);
	fail_reading(f, 15, EIO);
	assert_int_equal(rt_cm_error(f->device->cm), 0);
	fake_cm_ready(f);
	fail_reading(f, 15, EIO);
	assert_int_equal(rt_cm_error(f->device->cm), 0);
	fake_cm_ready(f);
}

/* The channel is broken: every user is told, and no new user comes. */
FAKE_TEST(cm_ready__given_up_ALL_ARE_TOLD)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_listener *other;
	struct rpma_rt_conn *established = fake_established(f);
	struct rpma_rt_conn *request = fake_request(f);
	struct rpma_rt_conn *conn;
	int value;

	ok(listen_at(f, f->queue, &listener));
	fail_reading(f, 16, EBADF);
	assert_int_equal(rt_cm_error(f->device->cm), EBADF);
	assert_true(fake_said("CM events of fake0 can be read no more") ||
		    fake_said("reports no requests any more"));
	/* the source rests no more */
	assert_null(f->device->control.timers.first);
	fake_finish_down(f);
	expect_listener_closed(f, f->queue, listener, RPMA_RT_REASON_FAILED);
	assert_int_equal(rpma_rt_completion_detail(&f->items[0], &value),
			 RPMA_RT_DETAIL_ERRNO);
	assert_int_equal(value, EBADF);
	fake_markers(request);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_ptr_equal(rpma_rt_completion_conn(&f->items[0]), request);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_FAILED);
	assert_int_equal(rpma_rt_completion_detail(&f->items[0], &value),
			 RPMA_RT_DETAIL_ERRNO);
	assert_int_equal(value, EBADF);
	ok(rpma_rt_conn_unref(&request));
	ok(rpma_rt_listener_delete(&listener));

	assert_int_equal(listen_at(f, f->queue, &other), RPMA_E_PROVIDER);
	assert_true(fake_said("no connections with fake0 in this runtime"));
	fake_logged();
	assert_int_equal(
		rpma_rt_conn_new(f->rt, "127.0.0.1", "1", &f->rt_cfg, &conn),
		RPMA_E_PROVIDER);
	assert_int_equal(fake_logged(), 1);
	/* the established connection goes on */
	ok(fake_send(established, 1, 0));
	fake_bury(f, &established);
	assert_int_equal(f->items[f->got - 1].status, RPMA_RT_REASON_LOCAL);
}

/* ----------------------------------------------------- a lost device --- */

static void fatal(struct fake *f)
{
	f->device->cm->async.fatal(&f->device->cm->async);
}

static void fail_device(void *arg)
{
	struct fake *f = arg;

	fatal(f);
	fatal(f); /* no effect */
	fake_control(f);
}

/* Between the network and the list: the failure is found. */
FAKE_TEST(device__fatal_while_listening_PROVIDER)
{
	struct rpma_rt_listener *listener = NULL;

	fake_when_listening(fail_device, f);
	assert_int_equal(listen_at(f, f->queue, &listener), RPMA_E_PROVIDER);
	assert_true(fake_said("its device failed while it was made"));
	assert_null(listener);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 0);
}

/* With and without a queue: no request goes to a poller whose SRQ failed. */
FAKE_TEST(request__SRQ_failed_NOT_THIS_POLLER)
{
	struct rpma_rt_listener *listener = NULL;
	struct rpma_rt_srq *srq = calloc(1, sizeof(*srq));
	int i;

	assert_non_null(srq);
	for (i = 0; i < 2; i++) {
		f->rt_cfg.futures = 1;
		ok(listen_at(f, i == 0 ? f->queue : NULL, &listener));
		assert_int_equal(rt_listener_poller_open(listener), 1);
		listener->cfg.srqs[0] = srq;
		assert_int_equal(rt_listener_poller_open(listener), 1);
		/* relaxed, both: a single thread */
		atomic_store_explicit(&srq->failed, true, memory_order_relaxed);
		assert_int_equal(rt_listener_poller_open(listener), 0);
		atomic_store_explicit(&srq->failed, false,
				      memory_order_relaxed);
		listener->cfg.srqs[0] = NULL;
		ok(rpma_rt_listener_delete(&listener));
		fake_finish_down(f);
		fake_take(f, f->queue);
	}
	free(srq);
}

FAKE_TEST(request__many_wait_REFUSED)
{
	struct rpma_rt_listener *listener = NULL;
	struct rt_future_source *source;

	f->rt_cfg.futures = 1;
	ok(listen_at(f, NULL, &listener));
	source = listener->requests->source;
	/* relaxed, all: a single thread */
	atomic_store_explicit(&source->count, 4095, memory_order_relaxed);
	assert_int_equal(rt_listener_poller_open(listener), 1);
	atomic_store_explicit(&source->count, 4096, memory_order_relaxed);
	assert_int_equal(rt_listener_poller_open(listener), 0);
	atomic_store_explicit(&source->count, 0, memory_order_relaxed);
	ok(rpma_rt_listener_delete(&listener));
	fake_finish_down(f);
}

TEST_MAIN()
