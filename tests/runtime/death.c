/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * death.c -- every cause of death by name, brought about on the loopback
 * device: each work request outstanding completes once, in order, synthesized
 * ones last; then CLOSED, once, with the reason; and strangers live on.
 */

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "loop.h"
#include "small_cq.h"
#include "stage.h"

#define DEPTH	16
#define SENDS	10
#define RECVS	7
#define ARRIVED 5    /* of the receives */
#define FIRST	1000 /* context of the first receive */
#define ROOM \
	(2 * DEPTH + 2) /* of an end, so that each end has a separate
				 * CQ */
#define ANY	(-1)
#define SPREAD	6 /* connections over several CQs */
#define REST_MS 20

struct scene {
	const struct loop *loop;
	struct stage stage;
	struct world_pair victim;
	struct world_pair other;
	/* CLOSED of other connections, taken while waiting */
	struct rpma_rt_completion early[4];
	int early_count;
};

/* results of an end */
struct outcome {
	int flushed;
	int failed;
	int synthesized;
	int reason;
};

/* the queue pair with outstanding work, while the queue pair exists; and the
 * CQs of posts */
static _Atomic(const void *) loaded;
static _Atomic bool held; /* the destroy of the queue pair */
static _Atomic bool waits;
static const struct ibv_cq *cqs[4 * SPREAD];
static int cqs_count;

static void wait_while_held(void)
{
	/* release, acquire: pair with their opposites in nothing_comes() */
	atomic_store_explicit(&waits, true, memory_order_release);
	while (atomic_load_explicit(&held, memory_order_acquire))
		sched_yield();
}

static void watch_posts(enum rpma_loopback_point point, const void *object,
			void *arg)
{
	loop_note_post(point, object, arg);
	/* acquire: pairs with the release in leave_outstanding() */
	if (atomic_load_explicit(&loaded, memory_order_acquire) != object)
		return;
	if (point == RPMA_LOOPBACK_DESTROY)
		wait_while_held();
	/* release: pairs with the acquire in judge() */
	if (point == RPMA_LOOPBACK_DESTROY_DONE)
		atomic_store_explicit(&loaded, NULL, memory_order_release);
}

static void count_cq(const struct ibv_cq *cq)
{
	int i;

	for (i = 0; i < cqs_count && cqs[i] != cq; i++)
		;
	cqs[i] = cq;
	cqs_count += i == cqs_count;
}

/* --- the scene */

static void open_with(struct scene *s, enum rpma_rt_mode mode, uint32_t cq_size)
{
	struct stage_cfg cfg = {
		.pollers = 1, .mode = mode, .cq_size = cq_size, .depth = DEPTH};

	s->loop->fault_clear();
	/* the device gives up early on a silent peer */
	CHECK(s->loop->fault("knob:retry_us=200") == 0);
	small_cq_limit((int)cq_size);
	stage_open(&s->stage, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL)
		return;
	stage_connect(&s->stage, &s->victim);
	stage_connect(&s->stage, &s->other);
	s->loop->set_hook(watch_posts, NULL);
}

static void open_scene(struct scene *s)
{
	open_with(s, RPMA_RT_MODE_EVENT, ROOM);
}

static void close_scene(struct scene *s)
{
	s->loop->set_hook(NULL, NULL);
	s->loop->fault_clear();
	stage_close(&s->stage);
}

/* Strangers are as well as before. */
static void others_live(struct scene *s)
{
	uint64_t i;

	for (i = 0; i < 20; i++)
		stage_ping(&s->stage, &s->other, i);
}

/* The queue pair of the victim's active end. */
static struct ibv_qp *victim_qp(struct scene *s)
{
	stage_ping(&s->stage, &s->victim, 1);
	return loop_posted();
}

/* Posts sends without a receive, and receives without a message. */
static void leave_outstanding(struct scene *s)
{
	struct stage *stage = &s->stage;
	uint64_t i;

	for (i = 0; i < SENDS; i++)
		MUST(rpma_rt_send(s->victim.active, stage->mr, 0, 64,
				  RPMA_F_COMPLETION_ALWAYS, i));
	/* release: to watch_posts() */
	atomic_store_explicit(&loaded, (const void *)loop_posted(),
			      memory_order_release);
	for (i = 0; i < RECVS; i++)
		MUST(rpma_rt_recv(s->victim.active, stage->mr, 64, 64,
				  FIRST + i));
}

/* Posts count times on a side; returns how many posts succeeded: the connection
 * may break meanwhile, and after the first refusal no post succeeds. */
static int post_while_open(struct scene *s, bool is_send, int count)
{
	struct stage *stage = &s->stage;
	int taken = 0;
	int ret;
	int i;

	for (i = 0; i < count; i++) {
		ret = is_send ? rpma_rt_send(s->victim.active, stage->mr, 0, 64,
					     RPMA_F_COMPLETION_ALWAYS,
					     (uint64_t)i)
			      : rpma_rt_recv(s->victim.active, stage->mr, 64,
					     64, FIRST + (uint64_t)i);
		CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
		CHECK(ret == RPMA_RT_E_CLOSED || taken == i);
		taken += ret == 0;
	}
	return taken;
}

static void judge(struct outcome *outcome,
		  const struct rpma_rt_completion *item)
{
	CHECK(item->kind == RPMA_RT_COMPLETION);
	CHECK(item->status != IBV_WC_SUCCESS);
	CHECK((item->opcode == IBV_WC_RECV) == (item->context >= FIRST));
	if (item->flags & RPMA_RT_C_SYNTHESIZED) {
		CHECK(item->status == IBV_WC_GENERAL_ERR);
		/* the device may no longer touch the buffer. acquire: pairs
		 * with the release in watch_posts() */
		CHECK(atomic_load_explicit(&loaded, memory_order_acquire) ==
		      NULL);
		outcome->synthesized++;
		return;
	}
	CHECK(outcome->synthesized == 0); /* they come last */
	if (item->status == IBV_WC_WR_FLUSH_ERR)
		outcome->flushed++;
	else
		outcome->failed++;
}

static bool take_early(struct scene *s, const struct rpma_rt_conn *conn,
		       struct rpma_rt_completion *item)
{
	int i;

	for (i = 0; i < s->early_count; i++) {
		if (s->early[i].context != (uintptr_t)conn)
			continue;
		*item = s->early[i];
		s->early[i] = s->early[--s->early_count];
		return true;
	}
	return false;
}

/*
 * Returns the next item of the connection. Other connections may only have
 * CLOSED.
 */
static struct rpma_rt_completion next_of(struct scene *s,
					 struct rpma_rt_queue *queue,
					 const struct rpma_rt_conn *conn)
{
	struct rpma_rt_completion item;

	if (take_early(s, conn, &item))
		return item;
	for (;;) {
		item = world_next(queue);
		if (item.kind != RPMA_RT_EVENT ||
		    item.context == (uintptr_t)conn)
			return item;
		CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
		CHECK(s->early_count < 4);
		s->early[s->early_count++] = item;
	}
}

/*
 * Takes each completion once, each side in order, then CLOSED with the reason.
 */
static struct outcome collect(struct scene *s, struct rpma_rt_queue *queue,
			      struct rpma_rt_conn **conn, int sends, int recvs,
			      int reason)
{
	struct outcome outcome = {0};
	struct rpma_rt_completion item;
	uint64_t send = 0;
	uint64_t recv = 0;

	while ((item = next_of(s, queue, *conn)).kind != RPMA_RT_EVENT) {
		judge(&outcome, &item);
		if (item.context >= FIRST)
			CHECK(item.context == FIRST + recv++);
		else
			CHECK(item.context == send++);
	}
	CHECK(send == (uint64_t)sends && recv == (uint64_t)recvs);
	CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
	CHECK(item.context == (uintptr_t)*conn);
	outcome.reason = item.status;
	if (reason != ANY && outcome.reason != reason) {
		fprintf(stderr, "closed for reason %d, expected %d\n",
			outcome.reason, reason);
		abort();
	}
	MUST(rpma_rt_conn_unref(conn));
	return outcome;
}

/* Collects both ends; the passive end had nothing outstanding. */
static struct outcome collect_both(struct scene *s, int reason)
{
	struct outcome outcome = collect(s, s->stage.aq, &s->victim.active,
					 SENDS, RECVS, reason);

	collect(s, s->stage.pq, &s->victim.passive, 0, 0, ANY);
	return outcome;
}

static void part_from_others(struct scene *s)
{
	s->loop->fault_clear();
	others_live(s);
	stage_disconnect(&s->stage, &s->other);
	close_scene(s);
}

/* --- a work request fails, with every status there is */

static void error_completion__status(struct scene *s, const char *name)
{
	struct outcome outcome;
	struct ibv_qp *qp;
	char rule[128];

	open_scene(s);
	qp = victim_qp(s);
	snprintf(rule, sizeof(rule), "wr:qp=%u,nth=1,status=%s", qp->qp_num,
		 name);
	CHECK(s->loop->fault(rule) == 0);
	MUST(rpma_rt_recv(s->victim.active, s->stage.mr, 64, 64, FIRST));
	MUST(rpma_rt_send(s->victim.active, s->stage.mr, 0, 64,
			  RPMA_F_COMPLETION_ALWAYS, 0));
	/* which of the two ends is seen first is open */
	outcome = collect(s, s->stage.aq, &s->victim.active, 1, 1, ANY);
	CHECK(outcome.failed + outcome.flushed == 2);
	CHECK(outcome.reason == RPMA_RT_REASON_ERROR ||
	      outcome.reason == RPMA_RT_REASON_DISCONNECTED);
	collect(s, s->stage.pq, &s->victim.passive, 0, 0, ANY);
	part_from_others(s);
}

static void error_completion(struct scene *s)
{
	static const char *const statuses[] = {
		"loc_len_err",	  "loc_qp_op_err",   "loc_prot_err",
		"wr_flush_err",	  "mw_bind_err",     "bad_resp_err",
		"loc_access_err", "rem_inv_req_err", "rem_access_err",
		"rem_op_err",	  "retry_exc_err",   "rnr_retry_exc_err",
		"rem_abort_err",  "fatal_err",	     "resp_timeout_err",
		"general_err"};
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		error_completion__status(s, statuses[i]);
}

/* --- the peer is gone, and does not say so */

static void peer_gone__traffic_goes_on(struct scene *s)
{
	struct outcome outcome;
	int sends;
	int recvs;

	open_scene(s);
	CHECK(s->loop->fault("event:of=cm.msg_dreq,action=drop") == 0);
	MUST(rpma_rt_conn_close(s->victim.passive));
	collect(s, s->stage.pq, &s->victim.passive, 0, 0, RPMA_RT_REASON_LOCAL);
	recvs = post_while_open(s, false, RECVS);
	sends = post_while_open(s, true, SENDS);
	/* the first is not answered, the others are flushed */
	CHECK(recvs == RECVS && sends > 0);
	outcome = collect(s, s->stage.aq, &s->victim.active, sends, recvs, ANY);
	CHECK(outcome.failed == 1);
	CHECK(outcome.flushed == sends + recvs - 1);
	part_from_others(s);
}

/* --- CQs */

static void cq_err__overrun(struct scene *s, const char *knob)
{
	struct ibv_qp *qp;

	open_scene(s);
	CHECK(s->loop->fault(knob) == 0);
	qp = victim_qp(s);
	leave_outstanding(s);
	CHECK(s->loop->break_cq(qp->send_cq) == 0);
	collect_both(s, RPMA_RT_REASON_DEVICE);
	/* the CQ takes no new connection: a newcomer gets another CQ */
	stage_connect(&s->stage, &s->victim);
	stage_ping(&s->stage, &s->victim, 5);
	stage_disconnect(&s->stage, &s->victim);
	part_from_others(s);
}

static void cq_err(struct scene *s)
{
	cq_err__overrun(s, "knob:after_cq_err=0");
	cq_err__overrun(s, "knob:after_cq_err=1");
}

/* A connection begins and ends: its poller was awake, and the control thread
 * has read earlier messages of the poller. */
static void visit(struct scene *s)
{
	struct stage *stage = &s->stage;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(stage->world.rt, stage->world.peer,
			    stage->world.addr, stage->world.port, stage->cfg, 0,
			    stage->aq, NULL, &conn));
	MUST(rpma_rt_conn_close(conn));
	do
		item = world_next(stage->aq);
	while (item.opcode == RPMA_RT_EVENT_READY);
	CHECK(item.kind == RPMA_RT_EVENT &&
	      item.opcode == RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
}

/* Waits until the failing verb was called, and every thread knows. */
static void wait_for_fault(struct scene *s)
{
	uint64_t begin = world_now_ms();
	bool failed;

	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		failed = s->loop->fault_count() > 0;
		visit(s);
	} while (!failed);
}

static void collect_all(struct scene *s)
{
	collect_both(s, ANY);
	collect(s, s->stage.aq, &s->other.active, 0, 0, ANY);
	collect(s, s->stage.pq, &s->other.passive, 0, 0, ANY);
}

static void welcome_newcomers(struct scene *s)
{
	int i;

	for (i = 0; i < 3; i++) {
		stage_connect(&s->stage, &s->victim);
		stage_ping(&s->stage, &s->victim, 5);
		stage_disconnect(&s->stage, &s->victim);
	}
	close_scene(s);
}

/* A verb of the CQs fails once, on a random CQ, so all the connections may be
 * counted in, except newcomers. */
static void verb_of_cq__fails(struct scene *s, const char *rule)
{
	open_scene(s);
	leave_outstanding(s);
	CHECK(s->loop->fault(rule) == 0);
	/* a close wakes the poller, which then polls, arms, and so on */
	MUST(rpma_rt_conn_close(s->victim.active));
	MUST(rpma_rt_conn_close(s->other.active));
	collect_all(s);
	wait_for_fault(s);
	welcome_newcomers(s);
}

/* Each CQ fails once, and the victim is not closed. */
static void poll_fails__all_die(struct scene *s)
{
	open_scene(s);
	leave_outstanding(s);
	CHECK(s->loop->fault("call:verb=ibv_poll_cq,count=99") == 0);
	/* wakes the poller */
	MUST(rpma_rt_conn_close(s->other.active));
	collect_all(s);
	s->loop->fault_clear();
	welcome_newcomers(s);
}

static void poll_fails(struct scene *s)
{
	poll_fails__all_die(s);
	verb_of_cq__fails(s, "call:verb=ibv_poll_cq,nth=1");
	verb_of_cq__fails(s, "call:verb=ibv_poll_cq,nth=4");
}

static void arm_fails(struct scene *s)
{
	verb_of_cq__fails(s, "call:verb=ibv_req_notify_cq,nth=1");
	verb_of_cq__fails(s, "call:verb=ibv_req_notify_cq,nth=4");
}

/* The channel is useless: its connections die, and newcomers get a new channel,
 * which wakes their poller. */
static void get_event_fails(struct scene *s)
{
	verb_of_cq__fails(s, "call:verb=ibv_get_cq_event,nth=1,errno=EIO");
}

/* Interruptions are no failures. */
static void get_event_interrupted__nobody_dies(struct scene *s)
{
	enum { INTERRUPTIONS = 9 };

	open_scene(s);
	CHECK(s->loop->fault(
		      "call:verb=ibv_get_cq_event,count=9,errno=EINTR;"
		      "call:verb=ibv_get_cq_event,prob=3,errno=EAGAIN") == 0);
	/* a poller that is never idle reads no events */
	while (s->loop->fault_count() < INTERRUPTIONS)
		others_live(s);
	s->loop->fault_clear();
	stage_disconnect(&s->stage, &s->victim);
	part_from_others(s);
}

/* A full CQ gets no connection: connections go over several CQs. */
static void cq_full__another(struct scene *s)
{
	struct world_pair pairs[SPREAD];
	int i;

	open_with(s, RPMA_RT_MODE_EVENT, 3 * ROOM);
	stage_disconnect(&s->stage, &s->victim);
	cqs_count = 0;
	for (i = 0; i < SPREAD; i++) {
		stage_connect(&s->stage, &pairs[i]);
		s->victim = pairs[i];
		count_cq(victim_qp(s)->send_cq);
		leave_outstanding(s);
	}
	/* three ends on each CQ, so that even all at once cause no overrun */
	CHECK(cqs_count >= 2 * SPREAD / 3);
	for (i = 0; i < SPREAD; i++) {
		s->victim = pairs[i];
		MUST(rpma_rt_conn_close(s->victim.active));
		CHECK(collect_both(s, RPMA_RT_REASON_LOCAL).flushed ==
		      SENDS + RECVS);
	}
	part_from_others(s);
}

/* --- asynchronous events */

static void qp_fatal(struct scene *s)
{
	struct outcome outcome;
	struct ibv_qp *qp;

	open_scene(s);
	qp = victim_qp(s);
	leave_outstanding(s);
	CHECK(s->loop->raise(IBV_EVENT_QP_FATAL, qp) == 0);
	outcome = collect_both(s, RPMA_RT_REASON_ERROR);
	CHECK(outcome.flushed == SENDS + RECVS);
	part_from_others(s);
}

static void device_fatal(struct scene *s)
{
	open_scene(s);
	leave_outstanding(s);
	CHECK(s->loop->raise(IBV_EVENT_DEVICE_FATAL, s->stage.world.ibv_ctx) ==
	      0);
	collect_both(s, RPMA_RT_REASON_DEVICE);
	collect(s, s->stage.aq, &s->other.active, 0, 0, RPMA_RT_REASON_DEVICE);
	collect(s, s->stage.pq, &s->other.passive, 0, 0, RPMA_RT_REASON_DEVICE);
	close_scene(s);
}

/* Drops events that no runtime has read, which the next runtime would get. */
static void forget_events(struct ibv_context *ctx)
{
	struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	while (poll(&fd, 1, 0) > 0) {
		MUST(ibv_get_async_event(ctx, &event));
		ibv_ack_async_event(&event);
	}
}

static void device_removed(struct scene *s)
{
	struct ibv_context *ctx;
	struct outcome outcome;

	open_scene(s);
	ctx = s->stage.world.ibv_ctx;
	leave_outstanding(s);
	CHECK(s->loop->remove_device(0) == 0);
	/* outstanding work requests fail too, and may be seen first */
	outcome = collect_both(s, ANY);
	CHECK(outcome.reason == RPMA_RT_REASON_DEVICE ||
	      outcome.reason == RPMA_RT_REASON_ERROR);
	collect(s, s->stage.aq, &s->other.active, 0, 0, RPMA_RT_REASON_DEVICE);
	collect(s, s->stage.pq, &s->other.passive, 0, 0, RPMA_RT_REASON_DEVICE);
	close_scene(s);
	forget_events(ctx);
	CHECK(s->loop->restore_device(0) == 0);
}

/* --- DISCONNECTED */

/* A single completion per round, and time for the control thread between any
 * two rounds: the messages of the control thread come in the middle of the
 * completions. */
static void take_by_hand(struct scene *s, struct rpma_rt_queue *queue,
			 struct rpma_rt_completion *item)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	uint64_t begin = world_now_ms();

	while (rpma_rt_queue_poll(queue, item, 1) == 0) {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		nanosleep(&ms, NULL);
		CHECK(rpma_rt_poller_run(s->stage.world.rt, 0, 1) >= 0);
	}
}

static struct rpma_rt_conn *event_by_hand(struct scene *s,
					  struct rpma_rt_queue *queue,
					  enum rpma_rt_event event)
{
	struct rpma_rt_completion item;

	take_by_hand(s, queue, &item);
	if (item.kind != RPMA_RT_EVENT || item.opcode != event) {
		fprintf(stderr,
			"expected event %d, got kind %d opcode %d status %d\n",
			event, item.kind, item.opcode, item.status);
		abort();
	}
	return (struct rpma_rt_conn *)(uintptr_t)item.context;
}

static void connect_by_hand(struct scene *s)
{
	struct stage *stage = &s->stage;
	struct rpma_rt_listener *listener;

	listener = world_listen(&stage->world, stage->cfg, stage->pq);
	MUST(world_conn_new(stage->world.rt, stage->world.peer,
			    stage->world.addr, stage->world.port, stage->cfg, 0,
			    stage->aq, NULL, &s->victim.active));
	event_by_hand(s, stage->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(s->victim.active, NULL));
	s->victim.passive = event_by_hand(s, stage->pq, RPMA_RT_EVENT_REQUEST);
	MUST(rpma_rt_conn_accept(s->victim.passive, NULL));
	event_by_hand(s, stage->aq, RPMA_RT_EVENT_ESTABLISHED);
	event_by_hand(s, stage->pq, RPMA_RT_EVENT_ESTABLISHED);
	MUST(rpma_rt_listener_delete(&listener));
	event_by_hand(s, stage->pq, RPMA_RT_EVENT_LISTENER_CLOSED);
}

/* Leaves messages unpolled in the CQ of the passive end, and receives without a
 * message. */
static void leave_unpolled(struct scene *s)
{
	struct stage *stage = &s->stage;
	uint64_t i;

	open_with(s, RPMA_RT_MODE_MANUAL, ROOM);
	connect_by_hand(s);
	for (i = 0; i < RECVS; i++)
		MUST(rpma_rt_recv(s->victim.passive, stage->mr, 0, 64, i));
	for (i = 0; i < ARRIVED; i++) /* waiting for a completion would poll */
		MUST(rpma_rt_send(s->victim.active, stage->mr, 64, 64,
				  RPMA_F_COMPLETION_ON_ERROR, 1));
}

/* Waits until the control thread knows, as an empty post reports; the poller
 * does not run. */
static void wait_for_gate(struct scene *s)
{
	uint64_t begin = world_now_ms();

	while (rpma_rt_recv(s->victim.passive, s->stage.mr, 0, 64,
			    UINT64_MAX) != RPMA_RT_E_CLOSED)
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
}

/* Messages that had arrived are received, the rest failed; CLOSED is last.
 * Where the device has a thread, the thread may not have come to all
 * messages. */
static void expect_arrived(struct scene *s, enum rpma_rt_reason reason)
{
	struct rpma_rt_completion item;
	uint64_t arrived = 0;
	uint64_t i;

	for (i = 0; i < RECVS; i++) {
		take_by_hand(s, s->stage.pq, &item);
		CHECK(item.kind == RPMA_RT_COMPLETION && item.context == i);
		if (item.status == IBV_WC_SUCCESS)
			CHECK(arrived++ == i);
	}
	CHECK(arrived == ARRIVED ||
	      (arrived < ARRIVED &&
	       s->loop->get_mode() == RPMA_LOOPBACK_THREAD));
	take_by_hand(s, s->stage.pq, &item);
	CHECK(item.kind == RPMA_RT_EVENT &&
	      item.opcode == RPMA_RT_EVENT_CLOSED && item.status == reason);
	do /* of failed sends */
		take_by_hand(s, s->stage.aq, &item);
	while (item.kind == RPMA_RT_COMPLETION);
	CHECK(item.kind == RPMA_RT_EVENT &&
	      item.opcode == RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&s->victim.active));
	MUST(rpma_rt_conn_unref(&s->victim.passive));
	close_scene(s);
}

/* Messages lie in the CQ, and the peer leaves. */
static void disconnected__before_last_completions(struct scene *s)
{
	leave_unpolled(s);
	MUST(rpma_rt_conn_close(s->victim.active));
	wait_for_gate(s);
	expect_arrived(s, RPMA_RT_REASON_DISCONNECTED);
}

/* Messages lie in the CQ, and no marker can be posted behind them: they are
 * found by the sweep, before anything is synthesized. */
static void swept__before_synthesized(struct scene *s)
{
	leave_unpolled(s);
	CHECK(s->loop->fault("call:verb=ibv_modify_qp;"
			     "call:verb=ibv_post_send;"
			     "call:verb=ibv_post_recv;"
			     "call:verb=rdma_disconnect") == 0);
	MUST(rpma_rt_conn_close(s->victim.passive));
	MUST(rpma_rt_conn_close(s->victim.active));
	wait_for_gate(s);
	expect_arrived(s, RPMA_RT_REASON_LOCAL);
}

static void disconnected__twice(struct scene *s)
{
	open_scene(s);
	CHECK(s->loop->fault("event:of=cm.disconnected,action=double") == 0);
	leave_outstanding(s);
	MUST(rpma_rt_conn_close(s->victim.passive));
	/* a flush may be reported before the event */
	CHECK(collect_both(s, ANY).synthesized == 0);
	part_from_others(s);
}

static void disconnected__never(struct scene *s)
{
	open_scene(s);
	CHECK(s->loop->fault("event:of=cm.disconnected,action=drop") == 0);
	MUST(rpma_rt_conn_close(s->victim.passive));
	collect(s, s->stage.pq, &s->victim.passive, 0, 0, RPMA_RT_REASON_LOCAL);
	/* we hear nothing; when we leave ourselves all is complete */
	MUST(rpma_rt_conn_close(s->victim.active));
	collect(s, s->stage.aq, &s->victim.active, 0, 0, ANY);
	part_from_others(s);
}

/* --- a queue pair that cannot be moved to ERR: nothing flushes */

/* The destroy is about to begin, and nothing was made up yet. */
static void nothing_comes(struct scene *s)
{
	struct rpma_rt_completion item;

	/* acquire, release: pair with their opposites in wait_while_held() */
	while (!atomic_load_explicit(&waits, memory_order_acquire))
		sched_yield();
	CHECK(rpma_rt_queue_wait(s->stage.aq, &item, 1, REST_MS) == 0);
	atomic_store_explicit(&held, false, memory_order_release);
}

static void modify_fails__synthesized(struct scene *s)
{
	open_scene(s);
	leave_outstanding(s);
	CHECK(s->loop->fault("call:verb=ibv_modify_qp;"
			     "call:verb=rdma_disconnect") == 0);
	/* relaxed, both: read only after the close */
	atomic_store_explicit(&waits, false, memory_order_relaxed);
	atomic_store_explicit(&held, true, memory_order_relaxed);
	MUST(rpma_rt_conn_close(s->victim.active));
	nothing_comes(s);
	CHECK(collect_both(s, RPMA_RT_REASON_LOCAL).synthesized ==
	      SENDS + RECVS);
	part_from_others(s);
}

/* --- the markers do not come: a bound in time, and then the same */

static void markers__never(struct scene *s)
{
	open_scene(s);
	leave_outstanding(s);
	CHECK(s->loop->fault("call:verb=ibv_post_send,nth=1") == 0);
	MUST(rpma_rt_conn_close(s->victim.active));
	CHECK(collect_both(s, RPMA_RT_REASON_LOCAL).flushed == SENDS + RECVS);
	part_from_others(s);
}

/* --- the running case is printed, so that a hang or an abort names the case */

static const struct {
	const char *name;
	void (*run)(struct scene *s);
} causes[] = {
#define CAUSE(name) {#name, name}
	CAUSE(error_completion),
	CAUSE(peer_gone__traffic_goes_on),
	CAUSE(cq_err),
	CAUSE(poll_fails),
	CAUSE(arm_fails),
	CAUSE(get_event_fails),
	CAUSE(get_event_interrupted__nobody_dies),
	CAUSE(cq_full__another),
	CAUSE(qp_fatal),
	CAUSE(device_fatal),
	CAUSE(device_removed),
	CAUSE(disconnected__before_last_completions),
	CAUSE(swept__before_synthesized),
	CAUSE(disconnected__twice),
	CAUSE(disconnected__never),
	CAUSE(modify_fails__synthesized),
	CAUSE(markers__never),
#undef CAUSE
};

int main(int argc, char **argv)
{
	struct scene scene = {.loop = loop_get()};
	bool has_played = false;
	uint64_t begin;
	size_t i;

	if (scene.loop == NULL) {
		printf("SKIP: needs the loopback device\n");
		return 77;
	}
	for (i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (argc > 1 && strcmp(argv[1], causes[i].name) != 0)
			continue;
		printf("%s", causes[i].name);
		fflush(stdout);
		begin = world_now_ms();
		causes[i].run(&scene);
		printf(" %lu ms\n", (unsigned long)(world_now_ms() - begin));
		has_played = true;
	}
	CHECK(has_played); /* a name that no case has is a mistake */
	printf("ok\n");
	return 0;
}
