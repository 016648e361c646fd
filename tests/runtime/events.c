/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.c -- every asynchronous event of verbs and every event of rdma_cm, in
 * each state of a connection, is raised on the loopback device, and the program
 * sees the outcome in doc/EVENTS.md. A listener and a shared receive queue
 * whose device fails say so in their queues.
 */

#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdatomic.h>

#include "loop.h"
#include "stage.h"

#define DEPTH	8
#define POLLERS 2
#define STATUS	(-110) /* of raised CM events */

static const struct loop *loop;
static struct rpma_rt_queue *news; /* events of the handler */

/* of the last post (for a receive of an SRQ, the SRQ), and the last CM event */
static _Atomic(struct ibv_qp *) posted;
static _Atomic(struct rdma_cm_id *) last_id;

static void watch(enum rpma_loopback_point point, const void *object, void *arg)
{
	(void)arg;
	/* relaxed, both: ordered by the item that the program takes */
	if (point == RPMA_LOOPBACK_POST_SEND ||
	    point == RPMA_LOOPBACK_POST_RECV)
		atomic_store_explicit(&posted, (void *)(uintptr_t)object,
				      memory_order_relaxed);
	if (point == RPMA_LOOPBACK_CM_EVENT)
		atomic_store_explicit(&last_id, (void *)(uintptr_t)object,
				      memory_order_relaxed);
}

static struct ibv_qp *posted_qp(void)
{
	/* relaxed: as above */
	return atomic_load_explicit(&posted, memory_order_relaxed);
}

static void expect_heard(enum ibv_event_type type)
{
	struct rpma_rt_completion item;

	do { /* the last event of a queue pair may find the queue pair given up
	      * already */
		item = world_next(news);
		CHECK(item.kind == RPMA_RT_MESSAGE);
	} while (item.context == IBV_EVENT_QP_LAST_WQE_REACHED);
	if (item.context != type) {
		fprintf(stderr, "heard %d, expected %d\n", (int)item.context,
			(int)type);
		abort();
	}
}

/* Asserts that all raised events are handled, and were not shown. */
static void expect_silence(struct stage *s)
{
	CHECK(loop->raise(IBV_EVENT_SM_CHANGE, s->world.ibv_ctx) == 0);
	expect_heard(IBV_EVENT_SM_CHANGE);
}

static void open_stage(struct stage *s)
{
	static const struct stage_cfg cfg = {.pollers = POLLERS,
					     .mode = RPMA_RT_MODE_EVENT,
					     .depth = DEPTH,
					     .async_fn = stage_heard,
					     .async_arg = &news};

	stage_open(s, &cfg);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &news));
}

static void close_stage(struct stage *s)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_poll(news, &item, 1) == 1)
		CHECK(item.context == IBV_EVENT_QP_LAST_WQE_REACHED);
	/* the handler that pushed last may still be inside */
	while (rpma_rt_queue_delete(&news) == RPMA_RT_E_BUSY)
		sched_yield();
	stage_close(s);
}

/* ----------------------------------------------- asynchronous, of verbs --- */

enum target { OF_QP, OF_CQ, OF_CONTEXT };

enum sees {
	NOTHING,     /* all goes on */
	SHOWN,	     /* likewise; async_fn is called */
	CLOSED,	     /* the connection is closed, for the reason */
	BOTH_CLOSED, /* all connections there are */
	ALL_CLOSED   /* likewise; async_fn is called */
};

static const struct verbs_row {
	enum ibv_event_type type;
	enum target target;
	enum sees sees;
	enum rpma_rt_reason reason;
} verbs_rows[] = {
	{IBV_EVENT_CQ_ERR, OF_CQ, BOTH_CLOSED, RPMA_RT_REASON_DEVICE},
	{IBV_EVENT_QP_FATAL, OF_QP, CLOSED, RPMA_RT_REASON_ERROR},
	{IBV_EVENT_QP_REQ_ERR, OF_QP, CLOSED, RPMA_RT_REASON_ERROR},
	{IBV_EVENT_QP_ACCESS_ERR, OF_QP, CLOSED, RPMA_RT_REASON_ERROR},
	{IBV_EVENT_COMM_EST, OF_QP, NOTHING, 0},
	{IBV_EVENT_SQ_DRAINED, OF_QP, NOTHING, 0},
	{IBV_EVENT_PATH_MIG, OF_QP, NOTHING, 0},
	{IBV_EVENT_PATH_MIG_ERR, OF_QP, NOTHING, 0},
	{IBV_EVENT_DEVICE_FATAL, OF_CONTEXT, ALL_CLOSED, RPMA_RT_REASON_DEVICE},
	{IBV_EVENT_PORT_ACTIVE, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_PORT_ERR, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_LID_CHANGE, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_PKEY_CHANGE, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_SM_CHANGE, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_QP_LAST_WQE_REACHED, OF_QP, NOTHING, 0},
	{IBV_EVENT_CLIENT_REREGISTER, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_GID_CHANGE, OF_CONTEXT, SHOWN, 0},
	{IBV_EVENT_WQ_FATAL, OF_CONTEXT, SHOWN, 0},
	/* SRQ_ERR, SRQ_LIMIT_REACHED: below */
};

static void *target_of(const struct stage *s, enum target target)
{
	switch (target) {
	case OF_QP:
		return posted_qp();
	case OF_CQ:
		return posted_qp()->send_cq;
	default:
		return s->world.ibv_ctx;
	}
}

static void expect_all_closed(struct stage *s, struct world_pair *pair,
			      int reason)
{
	world_closed(s->aq, &pair->active, reason);
	world_closed(s->pq, &pair->passive, reason);
}

static void verbs__each_event(const struct verbs_row *row)
{
	struct world_pair pair;
	struct stage s;

	open_stage(&s);
	stage_connect(&s, &pair);
	stage_ping(&s, &pair, 1); /* the last post is the active end's */
	CHECK(loop->raise(row->type, target_of(&s, row->target)) == 0);
	if (row->sees == SHOWN || row->sees == ALL_CLOSED)
		expect_heard(row->type);
	expect_silence(&s);
	switch (row->sees) {
	case CLOSED:
		world_closed(s.aq, &pair.active, (int)row->reason);
		world_closed(s.pq, &pair.passive, WORLD_ANY_REASON);
		break;
	case BOTH_CLOSED:
	case ALL_CLOSED:
		expect_all_closed(&s, &pair, (int)row->reason);
		break;
	default:
		stage_ping(&s, &pair, 2);
		stage_disconnect(&s, &pair);
	}
	close_stage(&s);
}

/* ------------------------------------------------------------ of an SRQ --- */

struct shared {
	struct stage stage;
	struct rpma_rt_queue *queue; /* the SRQ's */
	struct rpma_rt_srq *srq;
	struct rpma_rt_conn_cfg cfg;
	struct rpma_rt_listener *listener;
	struct world_pair pair;
	struct ibv_srq *ibv_srq;
};

/* Opens a listener whose connections use the SRQ, and a connection; a receive
 * is outstanding. */
static void open_shared(struct shared *t)
{
	struct rpma_rt_srq_cfg srq = RPMA_RT_SRQ_CFG_INIT;
	struct stage *s = &t->stage;

	open_stage(s);
	MUST(rpma_rt_queue_new(s->world.rt, NULL, &t->queue));
	srq.peer = s->world.peer;
	srq.queue = t->queue;
	srq.user = t;
	srq.srq_size = DEPTH;
	MUST(rpma_rt_srq_new(s->world.rt, &srq, &t->srq));
	t->cfg = *s->cfg;
	t->cfg.srqs = &t->srq;
	t->cfg.srq_count = 1;
	t->listener = world_listen(&s->world, &t->cfg, s->pq);
	t->pair.active = stage_begin(s);
	t->pair.passive = world_request(s->pq);
	stage_accept(s, &t->pair);
	MUST(rpma_rt_srq_recv(t->srq, s->mr, 64, 64, 1));
	t->ibv_srq = (struct ibv_srq *)(void *)posted_qp(); /* posted to */
}

static void close_shared(struct shared *t, bool is_out)
{
	struct rpma_rt_completion item;

	if (is_out) /* the receive comes back */
		CHECK(world_next(t->queue).context == 1);
	item = world_event(t->queue, RPMA_RT_EVENT_SRQ_CLOSED);
	CHECK(item.user == t);
	MUST(rpma_rt_queue_delete(&t->queue));
	close_stage(&t->stage);
}

/* Asserts that neither a listener nor a connection gets the SRQ. */
static void expect_nobody_new(struct shared *t)
{
	struct stage *s = &t->stage;
	struct rpma_rt_conn *conn = NULL;

	MUST_ANSWER(RPMA_E_PROVIDER,
		    world_conn_new(s->world.rt, s->world.peer, s->world.addr,
				   s->world.port, &t->cfg, RPMA_RT_POLLER_ANY,
				   s->aq, NULL, &conn));
	conn = stage_begin(s);
	world_closed(s->aq, &conn, RPMA_RT_REASON_REJECTED);
}

static void srq__error_ITS_USERS_CLOSE(void)
{
	struct rpma_rt_recv_wr wr = {.context = 2, .len = 64};
	struct rpma_rt_completion item;
	struct shared t;

	open_shared(&t);
	CHECK(loop->raise(IBV_EVENT_SRQ_ERR, t.ibv_srq) == 0);
	CHECK(loop->raise(IBV_EVENT_SRQ_ERR, t.ibv_srq) == 0); /* no effect */
	item = world_event(t.queue, RPMA_RT_EVENT_SRQ_FAILED);
	CHECK(rpma_rt_completion_srq(&item) == t.srq);
	CHECK(item.user == &t);
	CHECK(item.status == RPMA_RT_REASON_DEVICE);
	world_closed(t.stage.pq, &t.pair.passive, RPMA_RT_REASON_DEVICE);
	world_closed(t.stage.aq, &t.pair.active, WORLD_ANY_REASON);
	expect_silence(&t.stage);
	wr.dst = t.stage.mr;
	MUST_ANSWER(RPMA_RT_E_CLOSED, rpma_rt_srq_post_recv(t.srq, &wr, 1));
	expect_nobody_new(&t);
	world_unlisten(&t.listener, t.stage.pq);
	MUST(rpma_rt_srq_delete(&t.srq));
	close_shared(&t, true);
}

/*
 * Nothing is reported: fewer receives are outstanding than the limit, which is
 * no error.
 */
static void srq__limit_GOES_ON(void)
{
	struct shared t;

	open_shared(&t);
	CHECK(loop->raise(IBV_EVENT_SRQ_LIMIT_REACHED, t.ibv_srq) == 0);
	expect_silence(&t.stage);
	MUST(rpma_rt_send(t.pair.active, t.stage.mr, 0, 64,
			  RPMA_F_COMPLETION_ON_ERROR, 3));
	stage_completion(t.stage.pq, 1, IBV_WC_SUCCESS);
	stage_disconnect(&t.stage, &t.pair);
	world_unlisten(&t.listener, t.stage.pq);
	MUST(rpma_rt_srq_delete(&t.srq));
	close_shared(&t, false);
}

/* The device fails: the SRQ, its connections, and the listener. */
static void srq__device_fatal_FAILED(void)
{
	struct rpma_rt_completion item;
	struct shared t;
	int events = 0;

	open_shared(&t);
	CHECK(loop->raise(IBV_EVENT_DEVICE_FATAL, t.stage.world.ibv_ctx) == 0);
	expect_heard(IBV_EVENT_DEVICE_FATAL);
	world_event(t.queue, RPMA_RT_EVENT_SRQ_FAILED);
	world_closed(t.stage.aq, &t.pair.active, RPMA_RT_REASON_DEVICE);
	while (events < 2) { /* in either order */
		item = world_next(t.stage.pq);
		CHECK(item.opcode == RPMA_RT_EVENT_CLOSED ||
		      item.opcode == RPMA_RT_EVENT_LISTENER_CLOSED);
		CHECK(item.status == RPMA_RT_REASON_DEVICE);
		events++;
	}
	MUST(rpma_rt_conn_unref(&t.pair.passive));
	MUST(rpma_rt_listener_delete(&t.listener));
	MUST(rpma_rt_srq_delete(&t.srq));
	close_shared(&t, true);
}

/* -------------------------------------------------------- of a listener --- */

/* A server that only listens: its events, and the end of its listener. */
static void listener__device_events_HEARD_THEN_CLOSED(bool is_removed)
{
	struct rpma_rt_conn_cfg cfg;
	struct rpma_rt_queue *queues[POLLERS];
	struct rpma_rt_listener *listener;
	struct rpma_rt_completion item;
	struct stage s;
	int i;

	open_stage(&s);
	cfg = *s.cfg;
	for (i = 0; i < POLLERS; i++)
		MUST(rpma_rt_queue_new(s.world.rt, NULL, &queues[i]));
	cfg.peer = s.world.peer;
	cfg.queues = queues;
	cfg.queue_count = POLLERS;
	MUST(rpma_rt_listen(s.world.rt, s.world.addr, "0", &cfg, &listener));
	CHECK(loop->raise(IBV_EVENT_PORT_ERR, s.world.ibv_ctx) == 0);
	expect_heard(IBV_EVENT_PORT_ERR);
	if (is_removed)
		CHECK(loop->remove_device(0) == 0);
	else
		CHECK(loop->raise(IBV_EVENT_DEVICE_FATAL, s.world.ibv_ctx) ==
		      0);
	expect_heard(IBV_EVENT_DEVICE_FATAL);
	for (i = 0; i < POLLERS; i++) {
		item = world_event(queues[i], RPMA_RT_EVENT_LISTENER_CLOSED);
		CHECK(rpma_rt_completion_listener(&item) == listener);
		CHECK(item.status == RPMA_RT_REASON_DEVICE);
		CHECK(rpma_rt_queue_poll(queues[i], &item, 1) == 0);
	}
	MUST(rpma_rt_listener_delete(&listener));
	if (is_removed)
		CHECK(loop->restore_device(0) == 0);
	/* a device that is back takes another listener */
	MUST(rpma_rt_listen(s.world.rt, s.world.addr, "0", &cfg, &listener));
	MUST(rpma_rt_listener_delete(&listener));
	for (i = 0; i < POLLERS; i++) {
		world_event(queues[i], RPMA_RT_EVENT_LISTENER_CLOSED);
		MUST(rpma_rt_queue_delete(&queues[i]));
	}
	close_stage(&s);
}

/* ----------------------------------------------------------- of rdma_cm --- */

enum state { RESOLVING, READY, CONNECTING, ESTABLISHED, STATES };

#define GOES_ON (-1)

/* the effect on an active connection in each state; CONNECT_REQUEST belongs to
 * a listener; ESTABLISHED, ADDR_RESOLVED and ROUTE_RESOLVED lead to the
 * states */
static const struct cm_row {
	enum rdma_cm_event_type type;
	int reason[STATES];
} cm_rows[] = {
#define ALL(type, reason)                              \
	{                                              \
		type,                                  \
		{                                      \
			reason, reason, reason, reason \
		}                                      \
	}
	/* on the way to READY; afterwards without effect */
	{RDMA_CM_EVENT_ADDR_ERROR,
	 {RPMA_RT_REASON_UNREACHABLE, RPMA_RT_REASON_UNREACHABLE, GOES_ON,
	  GOES_ON}},
	{RDMA_CM_EVENT_ROUTE_ERROR,
	 {RPMA_RT_REASON_UNREACHABLE, RPMA_RT_REASON_UNREACHABLE, GOES_ON,
	  GOES_ON}},
	ALL(RDMA_CM_EVENT_CONNECT_ERROR, RPMA_RT_REASON_FAILED),
	ALL(RDMA_CM_EVENT_UNREACHABLE, RPMA_RT_REASON_UNREACHABLE),
	ALL(RDMA_CM_EVENT_REJECTED, RPMA_RT_REASON_REJECTED),
	ALL(RDMA_CM_EVENT_DISCONNECTED, RPMA_RT_REASON_DISCONNECTED),
	ALL(RDMA_CM_EVENT_DEVICE_REMOVAL, RPMA_RT_REASON_DEVICE),
	ALL(RDMA_CM_EVENT_MULTICAST_JOIN, GOES_ON),
	ALL(RDMA_CM_EVENT_MULTICAST_ERROR, GOES_ON),
	ALL(RDMA_CM_EVENT_ADDR_CHANGE, GOES_ON),
	ALL(RDMA_CM_EVENT_TIMEWAIT_EXIT, RPMA_RT_REASON_DISCONNECTED),
#undef ALL
};

/* Makes an active connection in the state: events that would lead on from
 * RESOLVING are dropped. The id had the last CM event before its request
 * left. */
static struct rdma_cm_id *begin_in(struct stage *s, enum state state,
				   struct world_pair *pair,
				   struct rpma_rt_listener **listener)
{
	struct rdma_cm_id *id;

	pair->passive = NULL;
	*listener = world_listen(&s->world, s->cfg, s->pq);
	if (state == RESOLVING)
		CHECK(loop->fault("event:of=cm.route_resolved,action=drop") ==
		      0);
	/* relaxed, both: see watch() */
	atomic_store_explicit(&last_id, NULL, memory_order_relaxed);
	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, s->aq, NULL,
			    &pair->active));
	if (state != RESOLVING)
		world_event(s->aq, RPMA_RT_EVENT_READY);
	while ((id = atomic_load_explicit(&last_id, memory_order_relaxed)) ==
	       NULL)
		sched_yield();
	if (state >= CONNECTING)
		MUST(rpma_rt_conn_connect(pair->active, NULL));
	return id;
}

static void cm__each_event(struct stage *s, const struct cm_row *row,
			   enum state state)
{
	struct rpma_rt_listener *listener;
	struct rdma_cm_id *id;
	struct world_pair pair;
	int reason = row->reason[state];

	id = begin_in(s, state, &pair, &listener);
	if (state >= CONNECTING)
		pair.passive = world_request(s->pq);
	if (state == ESTABLISHED)
		stage_accept(s, &pair);
	CHECK(loop->raise_cm((int)row->type, STATUS, id) == 0);
	if (reason == GOES_ON) {
		/* an event arrives before a later event */
		expect_silence(s);
		if (state == ESTABLISHED)
			stage_ping(s, &pair, 1);
		MUST(rpma_rt_conn_close(pair.active));
		reason = RPMA_RT_REASON_LOCAL;
	}
	world_closed(s->aq, &pair.active, reason);
	if (pair.passive != NULL) {
		MUST(rpma_rt_conn_close(pair.passive));
		world_closed(s->pq, &pair.passive, WORLD_ANY_REASON);
	}
	loop->fault_clear();
	world_unlisten(&listener, s->pq);
}

static void cm__each_event_in_each_state(void)
{
	struct stage s;
	size_t i;
	int state;

	open_stage(&s);
	for (i = 0; i < sizeof(cm_rows) / sizeof(cm_rows[0]); i++) {
		for (state = 0; state < STATES; state++)
			cm__each_event(&s, &cm_rows[i], (enum state)state);
	}
	close_stage(&s);
}

/* The last word of the handshake is lost, and a message comes: the device says
 * so, the CM is told, and the connection is established. */
static void comm_est__stands_for_the_lost_word(void)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_completion item;
	struct world_pair pair;
	struct stage s;

	open_stage(&s);
	begin_in(&s, ESTABLISHED, &pair, &listener);
	pair.passive = world_request(s.pq);
	MUST(rpma_rt_recv(pair.passive, s.mr, 64, 64, 1));
	CHECK(loop->fault("event:of=cm.msg_rtu,action=drop") == 0);
	MUST(rpma_rt_conn_accept(pair.passive, NULL));
	world_event(s.aq, RPMA_RT_EVENT_ESTABLISHED);
	expect_silence(&s);
	CHECK(rpma_rt_queue_poll(s.pq, &item, 1) == 0);
	CHECK(loop->raise(IBV_EVENT_COMM_EST, posted_qp()) == 0);
	world_event(s.pq, RPMA_RT_EVENT_ESTABLISHED);
	loop->fault_clear();
	MUST(rpma_rt_conn_close(pair.active));
	world_closed(s.aq, &pair.active, RPMA_RT_REASON_LOCAL);
	CHECK(world_next(s.pq).context == 1);
	world_closed(s.pq, &pair.passive, WORLD_ANY_REASON);
	world_unlisten(&listener, s.pq);
	close_stage(&s);
}

int main(void)
{
	size_t i;

	loop = loop_get();
	if (loop == NULL) {
		printf("only the loopback device raises events at will\n");
		return 77;
	}
	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	loop->set_hook(watch, NULL);
	for (i = 0; i < sizeof(verbs_rows) / sizeof(verbs_rows[0]); i++)
		verbs__each_event(&verbs_rows[i]);
	srq__error_ITS_USERS_CLOSE();
	srq__limit_GOES_ON();
	srq__device_fatal_FAILED();
	listener__device_events_HEARD_THEN_CLOSED(false);
	listener__device_events_HEARD_THEN_CLOSED(true);
	cm__each_event_in_each_state();
	comm_est__stands_for_the_lost_word();
	loop->set_hook(NULL, NULL);
	printf("ok\n");
	return 0;
}
