/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shared receive queues on a made-up device: the connection of a completion,
 * exactly one completion for each receive, credit, backlog, refill before
 * functions, the limit, room in CQs, and when an SRQ may be deleted.
 */

#include <string.h>

#include "base/clock.h"
#include "rt_fake.h"
#include "poller/post.h"
#include "poller/side.h"
#include "poller/qp_table.h"
#include "srq/srq.h"
#include "poller/route.h"

#define SIZE	  8
#define END_ITEMS 64 /* given back at once when an SRQ ends */

/* a runtime with an SRQ for every connection */
struct scene {
	struct fake *f;
	struct rpma_rt_queue *queue; /* the SRQ's */
	struct rpma_rt_srq *srq;
	struct rpma_rt_srq_cfg cfg;
};

static void scene_open(struct scene *s, struct fake *f)
{
	memset(s, 0, sizeof(*s));
	s->f = f;
	ok(rpma_rt_queue_new(s->f->rt, NULL, &s->queue));
	s->cfg = (struct rpma_rt_srq_cfg)RPMA_RT_SRQ_CFG_INIT;
	s->cfg.peer = &fake_peer;
	s->cfg.queue = s->queue;
	s->cfg.user = s;
	s->cfg.srq_size = SIZE;
	s->cfg.waiting = RPMA_RT_NO_WAITING;
}

static void scene_srq(struct scene *s)
{
	ok(rpma_rt_srq_new(s->f->rt, &s->cfg, &s->srq));
	s->f->rt_cfg.srqs = &s->srq;
	s->f->rt_cfg.srq_count = 1;
}

/* Deletes the SRQ; its queue gets outstanding receives, then SRQ_CLOSED. */
static void scene_delete(struct scene *s, int out)
{
	struct fake *f = s->f;
	int i;

	f->rt_cfg.srq_count = 0;
	ok(rpma_rt_srq_delete(&s->srq));
	assert_null(s->srq);
	assert_int_equal(fake_take(f, s->queue), out + 1);
	for (i = 0; i < out; i++) {
		assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
		assert_int_equal(f->items[i].status, IBV_WC_GENERAL_ERR);
		assert_int_equal(f->items[i].flags, RPMA_RT_C_SYNTHESIZED);
		assert_ptr_equal(f->items[i].user, s);
	}
	assert_int_equal(f->items[out].kind, RPMA_RT_EVENT);
	assert_int_equal(f->items[out].opcode, RPMA_RT_EVENT_SRQ_CLOSED);
}

static void scene_close(struct scene *s)
{
	ok(rpma_rt_queue_delete(&s->queue));
}

static int post(const struct scene *s, uint64_t context)
{
	return rpma_rt_srq_recv(s->srq, NULL, 0, 0, context);
}

static void post_many(const struct scene *s, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ok(post(s, 100 + i));
}

/* Completes receives, by the order of posting, at the connection, and
 * everything that follows. */
static void complete(struct scene *s, const struct rpma_rt_conn *conn,
		     uint32_t from, uint32_t count)
{
	uint32_t i;

	for (i = from; i < from + count; i++)
		fake_srq_wc(conn, s->srq, i, IBV_WC_SUCCESS);
	fake_round(s->f);
}

/* Drops the items of the connections. */
static void drop_taken(const struct scene *s)
{
	fake_take(s->f, s->f->queue);
}

/* Asserts the i-th item taken. */
static void expect(const struct fake *f, int i, uint64_t context,
		   enum ibv_wc_status status)
{
	assert_true(i < f->got);
	assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[i].context, context);
	assert_int_equal(f->items[i].status, status);
}

static uint64_t stale(const struct fake *f)
{
	struct rpma_rt_poller_stats stats;

	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	return stats.stale;
}

static void sq_marker(struct rpma_rt_conn *conn)
{
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
}

/*
 * Buries a connection whose last items go to the queue; only the marker of
 * sends is due.
 */
static void bury_in(struct fake *f, struct rpma_rt_conn **conn,
		    struct rpma_rt_queue *queue)
{
	ok(rpma_rt_conn_close(*conn));
	fake_finish_down(f);
	assert_int_equal(fake_qp(*conn)->rq_count, 0);
	assert_int_equal((*conn)->ctl.markers_due,
			 1u << RPMA_RT_SEND_SIDE | RT_MARK_LAST_WQE);
	sq_marker(*conn);
	fake_last_wqe(*conn);
	fake_finish_down(f);
	assert_true(fake_take(f, queue) > 0);
	assert_int_equal(f->items[f->got - 1].opcode, RPMA_RT_EVENT_CLOSED);
	ok(rpma_rt_conn_unref(conn));
}

static void bury(struct fake *f, struct rpma_rt_conn **conn)
{
	bury_in(f, conn, f->queue);
}

static uint64_t last_wqe_missing(const struct fake *f)
{
	struct rpma_rt_poller_stats stats;

	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	return stats.last_wqe_missing;
}

/*
 * The queue pair is not destroyed while the device may take receives for the
 * queue pair.
 */
FAKE_TEST(last_wqe__waited_for)
{
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	conn = fake_established(s.f);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s.f);
	sq_marker(conn);
	fake_finish_down(s.f);
	assert_int_equal(conn->poll.state, RT_PS_DRAINING);
	assert_int_equal(conn->ctl.qp_state, RT_QP_ALIVE);
	assert_int_equal(fake_take(s.f, s.f->queue), 0);
	fake_last_wqe(conn);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 1);
	assert_int_equal(s.f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(last_wqe_missing(s.f), 0);
	ok(rpma_rt_conn_unref(&conn));
	scene_delete(&s, 0);
	scene_close(&s);
}

/* Before the program's close, as when the queue pair fails by itself. */
FAKE_TEST(last_wqe__came_before_not_waited_for)
{
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	conn = fake_established(s.f);
	fake_last_wqe(conn);
	fake_finish_down(s.f);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s.f);
	sq_marker(conn);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 1);
	assert_int_equal(last_wqe_missing(s.f), 0);
	ok(rpma_rt_conn_unref(&conn));
	scene_delete(&s, 0);
	scene_close(&s);
}

/* A device without the event: each connection is counted, and the second waits
 * for less time. */
FAKE_TEST(last_wqe__missing_counted_then_hardly_waited_for)
{
	struct rpma_rt_conn *conn;
	struct scene s;
	int i;

	scene_open(&s, f);
	scene_srq(&s);
	for (i = 0; i < 2; i++) {
		conn = fake_established(s.f);
		ok(rpma_rt_conn_close(conn));
		fake_finish_down(s.f);
		sq_marker(conn);
		fake_finish_down(s.f);
		assert_int_equal(fake_take(s.f, s.f->queue), 0);
		assert_true(i == 0 ||
			    conn->poll.deadline_ns < rt_now_ns() + 20000000);
		fake_drain_time_over(s.f, conn);
		fake_finish_down(s.f);
		assert_int_equal(fake_take(s.f, s.f->queue), 1);
		assert_int_equal(last_wqe_missing(s.f), i + 1);
		ok(rpma_rt_conn_unref(&conn));
	}
	scene_delete(&s, 0);
	scene_close(&s);
}

/* ------------------------------------------------------- the happy path --- */

FAKE_TEST(round__to_the_queue_of_who_took_it)
{
	struct rpma_rt_conn *conns[3];
	struct scene s;
	int i;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, SIZE);
	for (i = 0; i < 3; i++)
		conns[i] = fake_established(s.f);
	/* in another order than they were posted */
	fake_srq_wc(conns[2], s.srq, 1, IBV_WC_SUCCESS);
	fake_srq_wc(conns[0], s.srq, 0, IBV_WC_SUCCESS);
	fake_srq_wc(conns[2], s.srq, 5, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 3);
	expect(s.f, 0, 101, IBV_WC_SUCCESS);
	expect(s.f, 1, 100, IBV_WC_SUCCESS);
	expect(s.f, 2, 105, IBV_WC_SUCCESS);
	assert_int_equal(s.f->items[0].qp_num, conns[2]->qp_num);
	assert_int_equal(s.f->items[1].qp_num, conns[0]->qp_num);
	assert_ptr_equal(s.f->items[0].user, s.f);
	assert_int_equal(s.f->items[0].opcode, IBV_WC_RECV);
	assert_int_equal(s.f->items[0].byte_len, 100);
	assert_int_equal(s.f->items[0].imm, 1234);
	/* the connection has no receives alone */
	assert_int_equal(fake_recv(conns[0], 1), RPMA_E_INVAL);
	for (i = 0; i < 3; i++)
		bury(s.f, &conns[i]);
	assert_int_equal(stale(s.f), 0);
	scene_delete(&s, SIZE - 3);
	scene_close(&s);
}

FAKE_TEST(post__credit_then_one_WRITABLE)
{
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	conn = fake_established(s.f);
	post_many(&s, SIZE);
	assert_int_equal(post(&s, 1), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
	assert_int_equal(post(&s, 1), RPMA_E_AGAIN);
	fake_srq_wc(conn, s.srq, 3, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.queue), 1);
	assert_int_equal(s.f->items[0].kind, RPMA_RT_WRITABLE);
	assert_int_equal(s.f->items[0].opcode, RPMA_RT_WRITABLE_SRQ);
	assert_int_equal(s.f->items[0].context, (uintptr_t)s.srq);
	assert_ptr_equal(s.f->items[0].user, &s);
	ok(post(&s, 1));
	/* the same slot, another generation */
	assert_int_not_equal(s.srq->srq->posted[SIZE], s.srq->srq->posted[3]);
	assert_int_equal(post(&s, 1), RPMA_E_AGAIN);
	bury(s.f, &conn);
	scene_delete(&s, SIZE);
	scene_close(&s);
}

FAKE_TEST(post__bad_input_keeps_no_place)
{
	struct rpma_rt_recv_wr wrs[4] = {
		{.context = 1}, {.context = 2}, {.context = 3}, {.context = 4}};
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	assert_int_equal(rpma_rt_srq_post_recv(NULL, wrs, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, NULL, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, -1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, NULL, 0), 0);
	assert_int_equal(post(&s, RT_COOKIE_MASK + 1), RPMA_E_INVAL);
	wrs[2].route = (const struct rpma_rt_route *)&s;
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 4), RPMA_E_INVAL);
	wrs[2].route = NULL;
	wrs[3].len = 1;
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 4), RPMA_E_INVAL);
	wrs[3].len = 0;
	/* no slot was used up */
	post_many(&s, SIZE);
	assert_int_equal(post(&s, 1), RPMA_E_AGAIN);
	scene_delete(&s, SIZE);
	scene_close(&s);
}

/* Receives taken by the device stay outstanding; the rest comes back, and
 * others may be posted. */
FAKE_TEST(post__refused_by_the_device_NOT_POSTED)
{
	struct rpma_rt_recv_wr wrs[4] = {
		{.context = 1}, {.context = 2}, {.context = 3}, {.context = 4}};
	struct scene s;
	int i;

	scene_open(&s, f);
	scene_srq(&s);
	fake_fail("srq_post", 3, 12);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 4), 4);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NONE);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.queue), 2);
	for (i = 0; i < 2; i++) {
		expect(s.f, i, (uint64_t)i + 3, IBV_WC_GENERAL_ERR);
		assert_int_equal(s.f->items[i].flags, RPMA_RT_C_NOT_POSTED);
	}
	/* no place was used up */
	post_many(&s, SIZE - 2);
	assert_int_equal(post(&s, 5), RPMA_E_AGAIN);
	scene_delete(&s, SIZE);
	scene_close(&s);
}

/* ------------------------------------------------------- exactly once --- */

FAKE_TEST(error__delivered_at_once_and_the_connection_dies)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn *other;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, SIZE);
	conn = fake_established(s.f);
	other = fake_established(s.f);
	fake_srq_wc(conn, s.srq, 0, IBV_WC_LOC_LEN_ERR);
	fake_srq_wc(conn, s.srq, 1, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 2);
	expect(s.f, 0, 100, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(s.f->items[0].opcode, IBV_WC_RECV);
	assert_int_equal(s.f->items[0].imm, 77);
	assert_int_equal(s.f->items[0].byte_len, 0);
	expect(s.f, 1, 101, IBV_WC_SUCCESS);
	fake_control(s.f);
	/* after the queue pair is gone, before the sweep is over */
	sq_marker(conn);
	fake_last_wqe(conn);
	fake_srq_wc(conn, s.srq, 2, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 2);
	expect(s.f, 0, 102, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(s.f->items[1].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(s.f->items[1].status, RPMA_RT_REASON_ERROR);
	/* the rest is there for the other */
	fake_srq_wc(other, s.srq, 3, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 1);
	expect(s.f, 0, 103, IBV_WC_SUCCESS);
	assert_int_equal(stale(s.f), 0);
	ok(rpma_rt_conn_unref(&conn));
	bury(s.f, &other);
	scene_delete(&s, SIZE - 4);
	scene_close(&s);
}

FAKE_TEST(stale__back_in_the_srqs_queue_marked_once)
{
	struct rpma_rt_conn *conn;
	struct scene s;
	uint64_t id;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 2);
	conn = fake_established(s.f);
	id = s.srq->srq->posted[0];
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num + 999);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 0);
	assert_int_equal(fake_take(s.f, s.queue), 1);
	expect(s.f, 0, 100, IBV_WC_GENERAL_ERR);
	assert_int_equal(s.f->items[0].flags, RPMA_RT_C_SYNTHESIZED);
	assert_int_equal(stale(s.f), 1);
	/* the device repeats itself; an old generation; a slot too high; a
	 * number without SRQ */
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	ok(post(&s, 200));
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	fake_wc(conn->cq, rt_wr_id(s.srq->number, rt_srq_cookie(SIZE, 1)),
		IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	fake_wc(conn->cq, rt_wr_id(s.srq->number + 1, rt_srq_cookie(1, 1)),
		IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 0);
	assert_int_equal(fake_take(s.f, s.queue), 0);
	assert_int_equal(stale(s.f), 5);
	bury(s.f, &conn);
	scene_delete(&s, 2);
	scene_close(&s);
}

/* Destroys the connection, leaving GONE in the inbox of the poller, and returns
 * the connection of a request, whose queue pair gets the same number. */
static struct rpma_rt_conn *use_number_again(struct scene *s,
					     struct rpma_rt_conn *old)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST,
				      .id = &s->f->id};

	ok(rpma_rt_conn_close(old));
	fake_finish_down(s->f);
	sq_marker(old);
	fake_last_wqe(old);
	fake_round(s->f);
	fake_control(s->f);
	fake_qp_num = old->qp_num;
	rt_conn_request_control(&s->f->listener, &event);
	assert_int_equal(s->f->rt->conns->qp_num, old->qp_num);
	return s->f->rt->conns;
}

/* A new queue pair gets the number of a queue pair not yet swept. */
FAKE_TEST(number_reused__waits_for_the_sweep)
{
	struct rpma_rt_conn *old;
	struct rpma_rt_conn *waiter;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 2);
	old = fake_established(s.f);
	waiter = use_number_again(&s, old);
	/* of the old queue pair, in the CQ before the end */
	fake_srq_wc(old, s.srq, 0, IBV_WC_WR_FLUSH_ERR);
	assert_true(rt_inbox_run_owner(&s.f->poller->inbox, s.f->poller) > 0);
	assert_int_equal(waiter->poll.bind, RT_BIND_LATE_READY);
	assert_int_equal(fake_take(s.f, s.f->queue), 0);
	fake_finish_down(s.f);
	assert_int_equal(waiter->poll.bind, RT_BIND_DONE);
	assert_int_equal(fake_take(s.f, s.f->queue), 3);
	expect(s.f, 0, 100, IBV_WC_WR_FLUSH_ERR);
	assert_ptr_equal((void *)(uintptr_t)s.f->items[1].context, waiter);
	assert_int_equal(s.f->items[1].opcode, RPMA_RT_EVENT_REQUEST);
	assert_ptr_equal((void *)(uintptr_t)s.f->items[2].context, old);
	/* and now of the waiter */
	fake_srq_wc(waiter, s.srq, 1, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 1);
	ok(rpma_rt_conn_unref(&old));
	bury(s.f, &waiter);
	scene_delete(&s, 0);
	scene_close(&s);
}

/* A connection dies while waiting for its number: REQUEST, then CLOSED. */
FAKE_TEST(number_reused__closed_while_it_waits)
{
	struct rpma_rt_conn *old;
	struct rpma_rt_conn *waiter;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	old = fake_established(s.f);
	waiter = use_number_again(&s, old);
	rt_conn_die_control(waiter, RPMA_RT_REASON_STOPPED, 0);
	fake_finish_down(s.f);
	sq_marker(waiter);
	fake_last_wqe(waiter);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 3);
	assert_int_equal(s.f->items[0].opcode, RPMA_RT_EVENT_REQUEST);
	assert_int_equal(s.f->items[2].opcode, RPMA_RT_EVENT_CLOSED);
	assert_null(rt_slots_of(s.f->poller)->late);
	assert_int_equal(old->cq->qps->count, 0);
	ok(rpma_rt_conn_unref(&old));
	ok(rpma_rt_conn_unref(&waiter));
	scene_delete(&s, 0);
	scene_close(&s);
}

/* -------------------------------------------------- where they may lead --- */

static int heard;
static uint64_t heard_context;
static int heard_at; /* refills so far, at the first */
static int refills;

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)arg;
	if (cmpl->kind != RPMA_RT_COMPLETION)
		return;
	heard++;
	heard_context = cmpl->context;
	heard_at = refills;
}

FAKE_TEST(route_open__takes_the_receives_over)
{
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct scene s;

	heard = 0;
	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 3);
	conn = fake_established(s.f);
	ok(rpma_rt_queue_new(s.f->rt, NULL, &queue));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, queue, &route));
	fake_srq_wc(conn, s.srq, 0, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, queue), 1);
	expect(s.f, 0, 100, IBV_WC_SUCCESS);
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, hear, NULL,
				       &route));
	fake_srq_wc(conn, s.srq, 1, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, queue), 0);
	assert_int_equal(heard, 1);
	assert_int_equal(heard_context, 101);
	bury(s.f, &conn);
	ok(rpma_rt_queue_delete(&queue));
	scene_delete(&s, 1);
	scene_close(&s);
}

FAKE_TEST(set_queue__the_receives_go_along)
{
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct scene s;
	int nth;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 1);
	conn = fake_request(s.f);
	ok(rpma_rt_queue_new(s.f->rt, NULL, &queue));
	for (nth = 1; nth <= 4; nth++) {
		fake_fail("malloc", nth, 1);
		assert_int_equal(rpma_rt_conn_set_queue(conn, queue),
				 RPMA_E_NOMEM);
	}
	assert_true(fake_failed());
	ok(rpma_rt_conn_set_queue(conn, queue));
	fake_srq_wc(conn, s.srq, 0, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, queue), 1);
	expect(s.f, 0, 100, IBV_WC_SUCCESS);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s.f);
	sq_marker(conn);
	fake_last_wqe(conn);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, queue), 1);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&queue));
	scene_delete(&s, 0);
	scene_close(&s);
}

static void expect_route_closed(struct scene *s, struct rpma_rt_queue *queue)
{
	assert_int_equal(fake_take(s->f, queue), 1);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
}

/* On a living connection: a route used by receives ends, then the queue of the
 * connection changes. */
FAKE_TEST(route_close__the_receives_go_along)
{
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *next;
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct rt_lane *lane;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 3);
	conn = fake_established(s.f);
	ok(rpma_rt_queue_new(s.f->rt, NULL, &queue));
	ok(rpma_rt_queue_new(s.f->rt, NULL, &next));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, queue, &route));
	lane = rt_queue_lane(queue, 0, &s.f->poller->bell);
	fake_srq_wc(conn, s.srq, 0, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, queue), 1);
	ok(rpma_rt_route_close(route, NULL));
	expect_route_closed(&s, queue);
	assert_int_equal(lane->reserved, 0);
	assert_int_equal(lane->number_users[s.srq->number], 0);
	ok(rpma_rt_queue_delete(&queue));
	fake_srq_wc(conn, s.srq, 1, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 1);
	expect(s.f, 0, 101, IBV_WC_SUCCESS);
	ok(rpma_rt_conn_set_queue(conn, next));
	expect_route_closed(&s, s.f->queue);
	fake_srq_wc(conn, s.srq, 2, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, next), 1);
	expect(s.f, 0, 102, IBV_WC_SUCCESS);
	bury_in(s.f, &conn, next);
	ok(rpma_rt_queue_delete(&next));
	scene_delete(&s, 0);
	scene_close(&s);
}

/* -------------------------------------------------------------- backlog --- */

/*
 * A consumer far behind stops posts; after catching up there is a single
 * WRITABLE.
 */
FAKE_TEST(backlog__holds_the_srq_until_it_clears)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *slow;
	struct rpma_rt_conn *conn;
	struct scene s;
	uint32_t next = 0;
	uint32_t round;
	int left = 0;

	scene_open(&s, f);
	scene_srq(&s);
	cfg.lane_size = 64;
	cfg.backlog_limit = 2 * SIZE;
	ok(rpma_rt_queue_new(s.f->rt, &cfg, &slow));
	conn = fake_request(s.f);
	ok(rpma_rt_conn_set_queue(conn, slow));
	/* no consumer: ring, then spill to its limit, then outstanding
	 * receives */
	for (round = 0; round < 100 && left == 0; round++) {
		while ((left = post(&s, next)) == 0) {
			fake_srq_wc(conn, s.srq, next, IBV_WC_SUCCESS);
			next++;
		}
		if (rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT)
			left = 0;
		fake_round(s.f);
	}
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_BACKLOG);
	assert_in_range(next, 64 + 2 * SIZE, 64 + 4 * SIZE);
	assert_true(s.srq->held == 1);
	/* earlier CREDIT refusals were answered */
	fake_take(s.f, s.queue);
	assert_int_equal(fake_take(s.f, slow), 64);
	fake_round(s.f);
	assert_int_equal(s.srq->held, 0);
	assert_int_equal(fake_take(s.f, s.queue), 1);
	assert_int_equal(s.f->items[0].kind, RPMA_RT_WRITABLE);
	ok(post(&s, next));
	assert_int_equal(fake_take(s.f, slow), (int)next - 64);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s.f);
	sq_marker(conn);
	fake_last_wqe(conn);
	fake_finish_down(s.f);
	fake_take(s.f, slow);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&slow));
	scene_delete(&s, 1);
	scene_close(&s);
}

/* A lane filled by an earlier SRQ with the same number holds up nothing. */
FAKE_TEST(backlog__not_of_a_lane_that_it_never_filled)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *slow;
	struct rpma_rt_conn *shares;
	struct rpma_rt_conn *conn;
	struct scene s;
	uint32_t number;
	uint32_t i;

	scene_open(&s, f);
	scene_srq(&s);
	cfg.lane_size = 64;
	cfg.backlog_limit = 1;
	ok(rpma_rt_queue_new(s.f->rt, &cfg, &slow));
	shares = fake_request(s.f);
	ok(rpma_rt_conn_set_queue(shares, slow));
	ok(post(&s, 1));
	complete(&s, shares, 0, 1);
	assert_int_equal(fake_take(s.f, slow), 1);
	bury_in(s.f, &shares, slow);
	number = s.srq->number;
	scene_delete(&s, 0);
	scene_srq(&s);
	assert_int_equal(s.srq->number, number);
	shares = fake_established(s.f);
	s.f->rt_cfg.srq_count = 0;
	conn = fake_request(s.f);
	ok(rpma_rt_conn_set_queue(conn, slow));
	s.f->rt_cfg.srqs = &s.srq;
	s.f->rt_cfg.srq_count = 1;
	/* other receives bring the lane over its limit, in a batch with a
	 * receive of this SRQ */
	for (i = 0; !rt_lane_is_backlogged(rt_conn_lane(conn)); i++) {
		ok(fake_recv(conn, i));
		fake_received(conn, i, IBV_WC_SUCCESS);
		ok(post(&s, i));
		complete(&s, shares, i, 1);
		drop_taken(&s);
	}
	assert_int_equal(s.srq->held, 0);
	ok(post(&s, 1));
	fake_take(s.f, slow);
	fake_round(s.f);
	fake_take(s.f, slow);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s.f);
	fake_markers(conn);
	fake_finish_down(s.f);
	fake_take(s.f, slow);
	ok(rpma_rt_conn_unref(&conn));
	bury(s.f, &shares);
	ok(rpma_rt_queue_delete(&slow));
	scene_delete(&s, 1);
	scene_close(&s);
}

/* --------------------------------------------------------------- refill --- */

static int refill_room;
static int refill_posts; /* so many at most */
static int refill_ret;

static void refill(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	int i;

	assert_non_null(arg);
	assert_in_range(room, 1, srq->cfg.srq_size);
	refills++;
	refill_room = room;
	refill_ret = 0;
	for (i = 0; i < refill_posts && refill_ret == 0; i++)
		refill_ret = rpma_rt_srq_recv(srq, NULL, 0, 0, 300);
}

static void scene_refill(struct scene *s, uint32_t limit, int posts)
{
	refills = 0;
	refill_posts = posts;
	s->cfg.limit = limit;
	s->cfg.refill = refill;
	s->cfg.refill_arg = s;
	scene_srq(s);
	fake_round(s->f);
	/* once at the beginning */
	assert_int_equal(refills, 1);
	assert_int_equal(refill_room, SIZE);
}

FAKE_TEST(refill__below_the_limit_before_functions)
{
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct scene s;

	heard = 0;
	scene_open(&s, f);
	scene_refill(&s, SIZE / 2, SIZE + 1);
	assert_int_equal(refill_ret, RPMA_E_AGAIN);
	conn = fake_established(s.f);
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, hear, NULL,
				       &route));
	fake_srq_wc(conn, s.srq, 0, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(refills, 1); /* enough is out */
	fake_srq_wc(conn, s.srq, 1, IBV_WC_SUCCESS);
	fake_srq_wc(conn, s.srq, 2, IBV_WC_SUCCESS);
	fake_srq_wc(conn, s.srq, 3, IBV_WC_SUCCESS);
	fake_srq_wc(conn, s.srq, 4, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, 5);
	assert_int_equal(heard, 5);
	assert_int_equal(heard_at, 2);
	/* no WRITABLE for refusals inside */
	assert_int_equal(fake_take(s.f, s.queue), 0);
	bury(s.f, &conn);
	scene_delete(&s, SIZE);
	scene_close(&s);
}

/* Asserts: the queue's only item is SRQ_LIMIT. */
static void expect_limit(const struct scene *s)
{
	assert_int_equal(fake_take(s->f, s->queue), 1);
	assert_int_equal(s->f->items[0].kind, RPMA_RT_EVENT);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_SRQ_LIMIT);
	assert_int_equal(s->f->items[0].context, (uintptr_t)s->srq);
}

FAKE_TEST(limit__told_once_and_again_when_as_many_were_posted)
{
	struct rpma_rt_conn *conn;
	struct scene s;
	uint32_t i;

	scene_open(&s, f);
	s.cfg.limit = 4;
	scene_srq(&s);
	conn = fake_established(s.f);
	post_many(&s, 3);
	complete(&s, conn, 0, 1);
	assert_int_equal(fake_take(s.f, s.queue), 0); /* too few */
	post_many(&s, 3);			      /* 5 */
	complete(&s, conn, 1, 1);
	assert_int_equal(fake_take(s.f, s.queue), 0);
	complete(&s, conn, 2, 1);
	expect_limit(&s);
	complete(&s, conn, 3, 1);
	assert_int_equal(fake_take(s.f, s.queue), 0); /* told already */
	post_many(&s, 2);			      /* 4 */
	complete(&s, conn, 4, 4);
	expect_limit(&s);
	/* never as many outstanding, but posted since the limit came */
	for (i = 8; i < 12; i++) {
		assert_int_equal(fake_take(s.f, s.queue), 0);
		post_many(&s, 1);
		complete(&s, conn, i, 1);
	}
	expect_limit(&s);
	/* the word of the device is not needed */
	assert_int_equal(s.srq->srq->limit, 0);
	fake_srq_limit(s.srq);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.queue), 0);
	drop_taken(&s);
	bury(s.f, &conn);
	scene_delete(&s, 0);
	scene_close(&s);
}

/* Work of the poller while a post is inside the device. */
static struct {
	struct scene *s;
	struct rpma_rt_conn *conn;
	uint32_t from;
	uint32_t count;
	uint32_t posts; /* to wait for */
} meanwhile;

static void poll_meanwhile(void)
{
	if (meanwhile.posts-- != 1)
		return;
	fake_srq_posted = NULL;
	complete(meanwhile.s, meanwhile.conn, meanwhile.from, meanwhile.count);
}

/* From the nth call of the device on: so many receives complete, and the poller
 * runs a round, before the post goes on. */
static void at_post(struct scene *s, struct rpma_rt_conn *conn, uint32_t nth,
		    uint32_t from, uint32_t count)
{
	meanwhile.s = s;
	meanwhile.conn = conn;
	meanwhile.from = from;
	meanwhile.count = count;
	meanwhile.posts = nth;
	fake_srq_posted = poll_meanwhile;
}

FAKE_TEST(limit__all_taken_before_the_post_returns)
{
	struct rpma_rt_recv_wr wrs[4] = {0};
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	s.cfg.limit = 4;
	scene_srq(&s);
	conn = fake_established(s.f);
	at_post(&s, conn, 1, 0, 4);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 4), 4);
	fake_finish_down(s.f);
	expect_limit(&s);
	drop_taken(&s);
	bury(s.f, &conn);
	scene_delete(&s, 0);
	scene_close(&s);
}

/* A post counted by the poller, and then refused by the device. */
FAKE_TEST(limit__told_after_a_refused_post)
{
	struct rpma_rt_recv_wr wrs[4] = {0};
	struct scene s;
	int limits = 0;
	int i;

	scene_open(&s, f);
	s.cfg.limit = 4;
	scene_srq(&s);
	fake_fail("srq_post", 3, 12);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 4), 4);
	fake_finish_down(s.f);
	assert_int_equal(fake_take(s.f, s.queue), 3);
	for (i = 0; i < 3; i++)
		limits += s.f->items[i].kind == RPMA_RT_EVENT &&
			  s.f->items[i].opcode == RPMA_RT_EVENT_SRQ_LIMIT;
	assert_int_equal(limits, 1);
	scene_delete(&s, 2);
	scene_close(&s);
}

FAKE_TEST(limit__event_calls_the_refill)
{
	struct scene s;

	scene_open(&s, f);
	scene_refill(&s, 2, 2);
	fake_finish_down(s.f);
	assert_int_equal(s.srq->srq->limit, 2);
	fake_srq_limit(s.srq);
	fake_finish_down(s.f);
	assert_int_equal(refills, 2);
	assert_int_equal(fake_take(s.f, s.queue), 0);
	scene_delete(&s, 4);
	scene_close(&s);
}

/* A post hands everything over before returning: receives posted by the refill
 * function meanwhile are taken, and posted behind. */
FAKE_TEST(refill__beside_another_poster_TAKEN)
{
	struct rpma_rt_recv_wr wrs[SIZE] = {0};
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_refill(&s, 0, 0); /* nothing to post at first */
	conn = fake_established(s.f);
	refill_posts = 3;
	at_post(&s, conn, 1, 0, SIZE);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, SIZE), SIZE);
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, SIZE);
	assert_int_equal(refill_ret, 0);
	assert_int_equal(s.srq->srq->count, SIZE + 3);
	drop_taken(&s);
	bury(s.f, &conn);
	scene_delete(&s, 3);
	scene_close(&s);
}

static void post_in_a_function(const struct rpma_rt_completion *cmpl, void *arg)
{
	if (cmpl->kind == RPMA_RT_COMPLETION)
		ok(post(arg, 200));
}

/* A function of a connection posts while another thread is inside the verb: the
 * function is not asked to try again. */
FAKE_TEST(post__in_a_function_beside_another_TAKEN)
{
	struct rpma_rt_recv_wr wrs[2] = {{.context = 1}, {.context = 2}};
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	conn = fake_established(s.f);
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE,
				       post_in_a_function, &s, &route));
	at_post(&s, conn, 1, 0, 1);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 2), 2);
	assert_int_equal(s.srq->srq->count, 3);
	assert_int_equal(fake_round(s.f), 0);
	assert_int_equal(fake_take(s.f, s.queue), 0);
	bury(s.f, &conn);
	scene_delete(&s, 2);
	scene_close(&s);
}

/*
 * The refill function in the middle of a post with several calls of the device.
 */
FAKE_TEST(refill__room_is_never_more_than_there_is)
{
	struct rpma_rt_recv_wr wrs[3 * RT_POST_CHUNK] = {0};
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	s.cfg.srq_size = 4 * RT_POST_CHUNK;
	refills = 0;
	refill_posts = 0;
	s.cfg.refill = refill;
	s.cfg.refill_arg = &s;
	scene_srq(&s);
	fake_round(s.f);
	conn = fake_established(s.f);
	at_post(&s, conn, 2, 0, RT_POST_CHUNK - 1);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 3 * RT_POST_CHUNK),
			 3 * RT_POST_CHUNK);
	/* of the first two calls, a chunk and one receive are outstanding */
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, 3 * RT_POST_CHUNK - 1);
	drop_taken(&s);
	bury(s.f, &conn);
	scene_delete(&s, 2 * RT_POST_CHUNK + 1);
	scene_close(&s);
}

FAKE_TEST(refill__called_after_a_refused_post)
{
	struct rpma_rt_recv_wr wrs[4] = {0};
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_refill(&s, 4, 4);
	conn = fake_established(s.f);
	/* enough seems to be out when the poller counts */
	at_post(&s, conn, 1, 0, 1);
	fake_fail("srq_post", 1, 12);
	assert_int_equal(rpma_rt_srq_post_recv(s.srq, wrs, 4), 4);
	assert_int_equal(refills, 1);
	fake_finish_down(s.f);
	assert_int_equal(refills, 2);
	assert_int_equal(refill_room, SIZE - 3);
	assert_int_equal(fake_take(s.f, s.queue), 4); /* NOT_POSTED */
	/* refused posts of the function do not call the function again */
	fake_fail("srq_post", 1, 12);
	complete(&s, conn, 1, 4);
	fake_finish_down(s.f);
	assert_int_equal(refills, 3);
	fake_take(s.f, s.queue);
	drop_taken(&s);
	bury(s.f, &conn);
	fake_take(s.f, s.queue);
	scene_delete(&s, 6);
	scene_close(&s);
}

/* -------------------------------------------------- the life of an SRQ --- */

FAKE_TEST(room__depth_once_in_each_cq)
{
	struct rpma_rt_conn *conns[4];
	struct rt_cq *cq;
	struct scene s;
	int i;

	scene_open(&s, f);
	scene_srq(&s);
	for (i = 0; i < 4; i++)
		conns[i] = fake_established(s.f);
	cq = conns[0]->cq;
	assert_int_equal(cq->cqe, 64);
	assert_int_equal(cq->room, 64 - SIZE - 4 * (FAKE_SQ + 1));
	assert_ptr_equal(conns[3]->cq, cq);
	assert_int_equal(cq->qps->count, 4);
	for (i = 0; i < 3; i++)
		bury(s.f, &conns[i]);
	assert_int_equal(cq->room, 64 - SIZE - (FAKE_SQ + 1));
	bury(s.f, &conns[3]);
	assert_int_equal(cq->room, 64);
	assert_int_equal(cq->qps->count, 0);
	scene_delete(&s, 0);
	scene_close(&s);
}

FAKE_TEST(cq_full__another_one_with_the_depth_again)
{
	struct rpma_rt_conn *conns[7];
	struct scene s;
	int i;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 2);
	for (i = 0; i < 7; i++)
		conns[i] = fake_established(s.f);
	assert_ptr_equal(conns[5]->cq, conns[0]->cq);
	assert_ptr_not_equal(conns[6]->cq, conns[0]->cq);
	assert_int_equal(conns[6]->cq->room, 128 - SIZE - (FAKE_SQ + 1));
	fake_srq_wc(conns[6], s.srq, 0, IBV_WC_SUCCESS);
	fake_srq_wc(conns[0], s.srq, 1, IBV_WC_SUCCESS);
	fake_round(s.f);
	assert_int_equal(fake_take(s.f, s.f->queue), 2);
	for (i = 0; i < 7; i++)
		bury(s.f, &conns[i]);
	scene_delete(&s, 0);
	scene_close(&s);
}

FAKE_TEST(numbers_exhausted__another_cq)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second;
	uint32_t next = first->cq->numbers.next;

	first->cq->numbers.next = RT_ROUTE_COUNT - 1; /* one number is left */
	assert_int_equal(rt_numbers_left(&first->cq->numbers), 1);
	second = fake_established(f);
	assert_ptr_not_equal(second->cq, first->cq);
	assert_ptr_equal(second->cq->channel, first->cq->channel);
	first->cq->numbers.next = next;
	fake_bury(f, &second);
	fake_bury(f, &first);
}

FAKE_TEST(delete__refused_while_used)
{
	struct rpma_rt_conn *conn;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	conn = fake_established(s.f);
	assert_int_equal(rpma_rt_srq_delete(&s.srq), RPMA_RT_E_BUSY);
	assert_non_null(s.srq);
	bury(s.f, &conn);
	fake_configure(s.f);
	pthread_mutex_lock(&s.f->rt->lock);
	rt_conn_cfg_ref(&s.f->listener.cfg); /* a listener */
	pthread_mutex_unlock(&s.f->rt->lock);
	assert_int_equal(rpma_rt_srq_delete(&s.srq), RPMA_RT_E_BUSY);
	rt_conn_cfg_unref(&s.f->listener.cfg);
	assert_int_equal(rpma_rt_srq_delete(NULL), RPMA_E_INVAL);
	scene_delete(&s, 0);
	ok(rpma_rt_srq_delete(&s.srq));
	scene_close(&s);
}

/* the poller does other things between two parts: another thread can tell */
/* Reports an error of the SRQ, twice. */
static void report_error(struct scene *s)
{
	struct rt_async_object *async = &s->srq->async;

	async->event(async, IBV_EVENT_SRQ_ERR);
	async->event(async, IBV_EVENT_SRQ_ERR);
	fake_control(s->f);
}

static void expect_failed(const struct scene *s, int i)
{
	const struct rpma_rt_completion *item = &s->f->items[i];

	assert_ptr_equal(rpma_rt_completion_srq(item), s->srq);
	assert_int_equal(item->opcode, RPMA_RT_EVENT_SRQ_FAILED);
	assert_int_equal(item->status, RPMA_RT_REASON_DEVICE);
	assert_ptr_equal(item->user, s);
}

/* Users of the SRQ close, also a future user; the queue gets a single
 * SRQ_FAILED; the SRQ takes neither receives nor connections. */
FAKE_TEST(fail__users_close_NOBODY_NEW)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn *other;
	struct scene s;

	scene_open(&s, f);
	other = fake_request(f); /* has receives without the SRQ */
	scene_srq(&s);
	fake_configure(f);
	conn = fake_request(f);
	post_many(&s, 1);
	report_error(&s);
	assert_true(fake_said("the device reports an error of an SRQ"));
	fake_finish_down(f);
	assert_int_equal(fake_take(f, s.queue), 1);
	expect_failed(&s, 0);
	assert_int_equal(other->ctl.state, RT_CONN_READY);
	fake_bury(f, &conn);
	assert_int_equal(f->items[f->got - 1].status, RPMA_RT_REASON_DEVICE);
	assert_int_equal(post(&s, 2), RPMA_RT_E_CLOSED);
	assert_int_equal(
		rpma_rt_conn_new(f->rt, "127.0.0.1", "1", &f->rt_cfg, &conn),
		RPMA_E_PROVIDER);
	assert_true(fake_said("an SRQ in rpma_rt_conn_cfg.srqs"));
	fake_bury(f, &other);
	scene_delete(&s, 1);
	scene_close(&s);
}

/*
 * Fails while room is made for the SRQ: the lock is free, and all users are
 * told.
 */
static void fail_meanwhile(void *arg)
{
	report_error(arg);
}

FAKE_TEST(fail__while_a_connection_is_made)
{
	struct rpma_rt_conn *conn = NULL;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	fake_when_made(fail_meanwhile, &s);
	assert_int_equal(
		rpma_rt_conn_new(f->rt, "127.0.0.1", "1", &f->rt_cfg, &conn),
		RPMA_E_PROVIDER);
	assert_null(conn);
	assert_int_equal(s.srq->users, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, s.queue), 1);
	expect_failed(&s, 0);
	scene_delete(&s, 0);
	scene_close(&s);
}

/* The event comes while the SRQ is deleted: the SRQ has no users left. */
FAKE_TEST(fail__behind_a_delete)
{
	struct rt_async_object *async;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	async = &s.srq->async;
	async->event(async, IBV_EVENT_SRQ_ERR); /* not handled yet */
	s.f->rt_cfg.srq_count = 0;
	ok(rpma_rt_srq_delete(&s.srq));
	assert_int_equal(fake_take(s.f, s.queue), 2);
	assert_int_equal(s.f->items[0].opcode, RPMA_RT_EVENT_SRQ_FAILED);
	assert_int_equal(s.f->items[1].opcode, RPMA_RT_EVENT_SRQ_CLOSED);
	scene_close(&s);
}

static void take_first_part(void *arg)
{
	struct scene *s = arg;

	assert_int_equal(fake_take(s->f, s->queue), END_ITEMS);
}

FAKE_TEST(delete__much_is_out_in_parts)
{
	struct scene s;

	scene_open(&s, f);
	s.cfg.srq_size = 3 * END_ITEMS;
	scene_srq(&s);
	post_many(&s, 2 * END_ITEMS + 1);
	fake_when_answered(take_first_part, &s);
	scene_delete(&s, END_ITEMS + 1);
	scene_close(&s);
}

/* The end of SRQs that the program never deleted. */
FAKE_TEST(finish_all__given_back_and_posts_CLOSED)
{
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	post_many(&s, 2);
	rt_srq_finish_all(s.f->rt);
	assert_int_equal(post(&s, 1), RPMA_RT_E_CLOSED);
	assert_int_equal(fake_take(s.f, s.queue), 3);
	assert_null(s.f->rt->srqs);
	s.f->rt_cfg.srq_count = 0;
	s.f->rt->stopping = true;
	/* relaxed: no other thread */
	atomic_store_explicit(&s.f->rt->stopped, true, memory_order_relaxed);
	ok(rpma_rt_srq_delete(&s.srq));
	atomic_store_explicit(&s.f->rt->stopped, false, memory_order_relaxed);
	s.f->rt->stopping = false;
	scene_close(&s);
}

FAKE_TEST(new__max_sge_IS_PASSED_ON)
{
	const uint32_t pieces[] = {0, 1, 32}; /* 0: as before the field was
					       * added */
	struct scene s;
	size_t i;

	scene_open(&s, f);
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		s.cfg.max_sge = pieces[i];
		scene_srq(&s);
		assert_int_equal(s.srq->srq->max_sge,
				 pieces[i] ? pieces[i] : 1);
		scene_delete(&s, 0);
	}
	scene_close(&s);
}

FAKE_TEST(new__each_failure_nothing_is_left)
{
	static const char *const calls[] = {"malloc", "malloc", "malloc",
					    "malloc", "srq_new"};
	struct rpma_rt_srq *srq = NULL;
	struct scene s;
	int memory;
	int i;

	scene_open(&s, f);
	s.cfg.srq_size = 9000; /* a larger spill */
	scene_srq(&s);
	scene_delete(&s, 0); /* the lane is made */
	memory = fake_memory();
	for (i = 0; i < 5; i++) {
		fake_fail(calls[i], i < 4 ? i + 1 : 1,
			  i < 4 ? 1 : RPMA_E_PROVIDER);
		assert_int_equal(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq),
				 i < 4 ? RPMA_E_NOMEM : RPMA_E_PROVIDER);
		assert_true(fake_failed());
		assert_null(srq);
		assert_int_equal(fake_memory(), memory);
	}
	scene_close(&s);
}

FAKE_TEST(new__bad_input)
{
	struct rpma_rt_srq *srq = NULL;
	struct scene s;

	scene_open(&s, f);
#define REFUSED(call) assert_int_equal(call, RPMA_E_INVAL)
	REFUSED(rpma_rt_srq_new(NULL, &s.cfg, &srq));
	REFUSED(rpma_rt_srq_new(s.f->rt, NULL, &srq));
	REFUSED(rpma_rt_srq_new(s.f->rt, &s.cfg, NULL));
	s.cfg.poller = 1;
	REFUSED(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq));
	assert_true(fake_said("rpma_rt_srq_cfg.poller is 1, it may be 0..0"));
	s.cfg.poller = 0;
	s.cfg.limit = SIZE + 1;
	REFUSED(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq));
	assert_true(fake_said("rpma_rt_srq_cfg.limit is 9, it may be 0..8"));
	s.cfg.limit = 0;
	s.cfg.peer = NULL;
	REFUSED(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq));
	assert_true(fake_said("rpma_rt_srq_cfg.peer is missing"));
	s.cfg.peer = &fake_peer;
	s.cfg.queue = NULL;
	REFUSED(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq));
	assert_true(fake_said("rpma_rt_srq_cfg.queue is missing"));
	s.cfg.queue = s.queue;
	ok(rpma_rt_queue_close(s.queue));
	assert_int_equal(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq),
			 RPMA_RT_E_CLOSED);
	s.f->rt->stopping = true;
	assert_int_equal(rpma_rt_srq_new(s.f->rt, &s.cfg, &srq),
			 RPMA_RT_E_CLOSED);
	s.f->rt->stopping = false;
	scene_close(&s);
}

FAKE_TEST(conn__srqs_that_cannot_be_INVAL)
{
	struct rpma_rt_srq *twice[2];
	struct rpma_peer stranger = fake_peer;
	struct rpma_rt_conn *conn = NULL;
	struct scene s;

	scene_open(&s, f);
	scene_srq(&s);
	twice[0] = s.srq;
	twice[1] = s.srq;
	s.f->rt_cfg.srqs = twice;
	s.f->rt_cfg.srq_count = 2;
	REFUSED(rpma_rt_conn_new(s.f->rt, "::1", "1", &s.f->rt_cfg, &conn));
	assert_true(fake_said("srqs[1] is a second one of its poller"));
	twice[0] = NULL;
	REFUSED(rpma_rt_conn_new(s.f->rt, "::1", "1", &s.f->rt_cfg, &conn));
	assert_true(fake_said("srqs[0] is NULL"));
	s.f->rt_cfg.srqs = NULL;
	REFUSED(rpma_rt_conn_new(s.f->rt, "::1", "1", &s.f->rt_cfg, &conn));
	assert_true(fake_said("srqs is missing"));
	/* of another peer: queue pairs could not use the SRQ */
	s.f->rt_cfg.srqs = &s.srq;
	s.f->rt_cfg.srq_count = 1;
	s.f->rt_cfg.peer = &stranger;
	REFUSED(rpma_rt_conn_new(s.f->rt, "::1", "1", &s.f->rt_cfg, &conn));
	s.f->rt_cfg.peer = &fake_peer;
	assert_null(conn);
	scene_delete(&s, 0);
	scene_close(&s);
#undef REFUSED
}

TEST_MAIN()
