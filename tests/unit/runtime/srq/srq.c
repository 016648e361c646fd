/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shared receive queues on a made-up device: the connection of a completion,
 * exactly one completion for each receive, routes, room in CQs, and when an SRQ
 * may be deleted. refill.c has the posts.
 */

#include <string.h>

#include "base/clock.h"
#include "scene.h"
#include "poller/post.h"
#include "poller/side.h"
#include "poller/qp_table.h"
#include "poller/route.h"

#define END_ITEMS 64 /* given back at once when an SRQ ends */

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
SRQ_TEST(last_wqe__waited_for)
{
	struct rpma_rt_conn *conn = fake_established(s->f);

	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s->f);
	scene_sq_marker(conn);
	fake_finish_down(s->f);
	assert_int_equal(conn->poll.state, RT_PS_DRAINING);
	assert_int_equal(conn->ctl.qp_state, RT_QP_ALIVE);
	assert_int_equal(fake_take(s->f, s->f->queue), 0);
	fake_last_wqe(conn);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(last_wqe_missing(s->f), 0);
	ok(rpma_rt_conn_unref(&conn));
}

/* Before the program's close, as when the queue pair fails by itself. */
SRQ_TEST(last_wqe__came_before_not_waited_for)
{
	struct rpma_rt_conn *conn = fake_established(s->f);

	fake_last_wqe(conn);
	fake_finish_down(s->f);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s->f);
	scene_sq_marker(conn);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	assert_int_equal(last_wqe_missing(s->f), 0);
	ok(rpma_rt_conn_unref(&conn));
}

/* A device without the event: each connection is counted, and the second waits
 * for less time. */
SRQ_TEST(last_wqe__missing_counted_then_hardly_waited_for)
{
	struct rpma_rt_conn *conn;
	int i;

	for (i = 0; i < 2; i++) {
		conn = fake_established(s->f);
		ok(rpma_rt_conn_close(conn));
		fake_finish_down(s->f);
		scene_sq_marker(conn);
		fake_finish_down(s->f);
		assert_int_equal(fake_take(s->f, s->f->queue), 0);
		assert_true(i == 0 ||
			    conn->poll.deadline_ns < rt_now_ns() + 20000000);
		fake_drain_time_over(s->f, conn);
		fake_finish_down(s->f);
		assert_int_equal(fake_take(s->f, s->f->queue), 1);
		assert_int_equal(last_wqe_missing(s->f), i + 1);
		ok(rpma_rt_conn_unref(&conn));
	}
}

/* ------------------------------------------------------- exactly once --- */

static uint64_t stale(const struct fake *f)
{
	struct rpma_rt_poller_stats stats;

	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	return stats.stale;
}

SRQ_TEST(error__delivered_at_once_and_the_connection_dies)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn *other;

	scene_post_many(s, SIZE);
	conn = fake_established(s->f);
	other = fake_established(s->f);
	fake_srq_wc(conn, s->srq, 0, IBV_WC_LOC_LEN_ERR);
	fake_srq_wc(conn, s->srq, 1, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 2);
	scene_expect(s->f, 0, 100, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(s->f->items[0].opcode, IBV_WC_RECV);
	assert_int_equal(s->f->items[0].imm, 77);
	assert_int_equal(s->f->items[0].byte_len, 0);
	scene_expect(s->f, 1, 101, IBV_WC_SUCCESS);
	fake_control(s->f);
	/* after the queue pair is gone, before the sweep is over */
	scene_sq_marker(conn);
	fake_last_wqe(conn);
	fake_srq_wc(conn, s->srq, 2, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 2);
	scene_expect(s->f, 0, 102, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(s->f->items[1].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(s->f->items[1].status, RPMA_RT_REASON_ERROR);
	/* the rest is there for the other */
	fake_srq_wc(other, s->srq, 3, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	scene_expect(s->f, 0, 103, IBV_WC_SUCCESS);
	assert_int_equal(stale(s->f), 0);
	ok(rpma_rt_conn_unref(&conn));
	scene_bury(s->f, &other);
	scene_delete(s, SIZE - 4);
}

SRQ_TEST(stale__back_in_the_srqs_queue_marked_once)
{
	struct rpma_rt_conn *conn;
	uint64_t id;

	scene_post_many(s, 2);
	conn = fake_established(s->f);
	id = s->srq->srq->posted[0];
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num + 999);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 0);
	assert_int_equal(fake_take(s->f, s->queue), 1);
	scene_expect(s->f, 0, 100, IBV_WC_GENERAL_ERR);
	assert_int_equal(s->f->items[0].flags, RPMA_RT_C_SYNTHESIZED);
	assert_int_equal(stale(s->f), 1);
	/* the device repeats itself; an old generation; a slot too high; a
	 * number without SRQ */
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	ok(scene_post(s, 200));
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	fake_wc(conn->cq, rt_wr_id(s->srq->number, rt_srq_cookie(SIZE, 1)),
		IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	fake_wc(conn->cq, rt_wr_id(s->srq->number + 1, rt_srq_cookie(1, 1)),
		IBV_WC_SUCCESS, IBV_WC_RECV, conn->qp_num);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 0);
	assert_int_equal(fake_take(s->f, s->queue), 0);
	assert_int_equal(stale(s->f), 5);
	scene_bury(s->f, &conn);
	scene_delete(s, 2);
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
	scene_sq_marker(old);
	fake_last_wqe(old);
	fake_round(s->f);
	fake_control(s->f);
	fake_qp_num = old->qp_num;
	rt_conn_request_control(&s->f->listener, &event);
	assert_int_equal(s->f->rt->conns->qp_num, old->qp_num);
	return s->f->rt->conns;
}

/* A new queue pair gets the number of a queue pair not yet swept. */
SRQ_TEST(number_reused__waits_for_the_sweep)
{
	struct rpma_rt_conn *old;
	struct rpma_rt_conn *waiter;

	scene_post_many(s, 2);
	old = fake_established(s->f);
	waiter = use_number_again(s, old);
	/* of the old queue pair, in the CQ before the end */
	fake_srq_wc(old, s->srq, 0, IBV_WC_WR_FLUSH_ERR);
	assert_true(rt_inbox_run_owner(&s->f->poller->inbox, s->f->poller) > 0);
	assert_int_equal(waiter->poll.bind, RT_BIND_LATE_READY);
	assert_int_equal(fake_take(s->f, s->f->queue), 0);
	fake_finish_down(s->f);
	assert_int_equal(waiter->poll.bind, RT_BIND_DONE);
	assert_int_equal(fake_take(s->f, s->f->queue), 3);
	scene_expect(s->f, 0, 100, IBV_WC_WR_FLUSH_ERR);
	assert_ptr_equal((void *)(uintptr_t)s->f->items[1].context, waiter);
	assert_int_equal(s->f->items[1].opcode, RPMA_RT_EVENT_REQUEST);
	assert_ptr_equal((void *)(uintptr_t)s->f->items[2].context, old);
	/* and now of the waiter */
	fake_srq_wc(waiter, s->srq, 1, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	ok(rpma_rt_conn_unref(&old));
	scene_bury(s->f, &waiter);
}

/* A connection dies while waiting for its number: REQUEST, then CLOSED. */
SRQ_TEST(number_reused__closed_while_it_waits)
{
	struct rpma_rt_conn *old = fake_established(s->f);
	struct rpma_rt_conn *waiter = use_number_again(s, old);

	rt_conn_die_control(waiter, RPMA_RT_REASON_STOPPED, 0);
	fake_finish_down(s->f);
	scene_sq_marker(waiter);
	fake_last_wqe(waiter);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 3);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_REQUEST);
	assert_int_equal(s->f->items[2].opcode, RPMA_RT_EVENT_CLOSED);
	assert_null(rt_slots_of(s->f->poller)->late);
	assert_int_equal(old->cq->qps->count, 0);
	ok(rpma_rt_conn_unref(&old));
	ok(rpma_rt_conn_unref(&waiter));
}

/* -------------------------------------------------- where they may lead --- */

static int heard;
static uint64_t heard_context;

static void hear(const struct rpma_rt_completion *cmpl, void *arg)
{
	(void)arg;
	if (cmpl->kind != RPMA_RT_COMPLETION)
		return;
	heard++;
	heard_context = cmpl->context;
}

SRQ_TEST(route_open__takes_the_receives_over)
{
	struct rpma_rt_route *route;
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;

	heard = 0;
	scene_post_many(s, 3);
	conn = fake_established(s->f);
	ok(rpma_rt_queue_new(s->f->rt, NULL, &queue));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, queue, &route));
	fake_srq_wc(conn, s->srq, 0, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, queue), 1);
	scene_expect(s->f, 0, 100, IBV_WC_SUCCESS);
	ok(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE, hear, NULL,
				       &route));
	fake_srq_wc(conn, s->srq, 1, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, queue), 0);
	assert_int_equal(heard, 1);
	assert_int_equal(heard_context, 101);
	scene_bury(s->f, &conn);
	ok(rpma_rt_queue_delete(&queue));
	scene_delete(s, 1);
}

SRQ_TEST(set_queue__the_receives_go_along)
{
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	int nth;

	scene_post_many(s, 1);
	conn = fake_request(s->f);
	ok(rpma_rt_queue_new(s->f->rt, NULL, &queue));
	for (nth = 1; nth <= 4; nth++) {
		fake_fail("malloc", nth, 1);
		assert_int_equal(rpma_rt_conn_set_queue(conn, queue),
				 RPMA_E_NOMEM);
	}
	assert_true(fake_failed());
	ok(rpma_rt_conn_set_queue(conn, queue));
	fake_srq_wc(conn, s->srq, 0, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, queue), 1);
	scene_expect(s->f, 0, 100, IBV_WC_SUCCESS);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(s->f);
	scene_sq_marker(conn);
	fake_last_wqe(conn);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, queue), 1);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&queue));
}

static void expect_route_closed(struct scene *s, struct rpma_rt_queue *queue)
{
	assert_int_equal(fake_take(s->f, queue), 1);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
}

/* On a living connection: a route used by receives ends, then the queue of the
 * connection changes. */
SRQ_TEST(route_close__the_receives_go_along)
{
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *next;
	struct rpma_rt_route *route;
	struct rpma_rt_conn *conn;
	struct rt_lane *lane;

	scene_post_many(s, 3);
	conn = fake_established(s->f);
	ok(rpma_rt_queue_new(s->f->rt, NULL, &queue));
	ok(rpma_rt_queue_new(s->f->rt, NULL, &next));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, queue, &route));
	lane = rt_queue_lane(queue, 0, &s->f->poller->bell);
	fake_srq_wc(conn, s->srq, 0, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, queue), 1);
	ok(rpma_rt_route_close(route, NULL));
	expect_route_closed(s, queue);
	assert_int_equal(lane->reserved, 0);
	assert_int_equal(lane->number_users[s->srq->number], 0);
	ok(rpma_rt_queue_delete(&queue));
	fake_srq_wc(conn, s->srq, 1, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 1);
	scene_expect(s->f, 0, 101, IBV_WC_SUCCESS);
	ok(rpma_rt_conn_set_queue(conn, next));
	expect_route_closed(s, s->f->queue);
	fake_srq_wc(conn, s->srq, 2, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, next), 1);
	scene_expect(s->f, 0, 102, IBV_WC_SUCCESS);
	scene_bury_in(s->f, &conn, next);
	ok(rpma_rt_queue_delete(&next));
}

/* -------------------------------------------------- the life of an SRQ --- */

SRQ_TEST(room__depth_once_in_each_cq)
{
	struct rpma_rt_conn *conns[4];
	struct rt_cq *cq;
	int i;

	for (i = 0; i < 4; i++)
		conns[i] = fake_established(s->f);
	cq = conns[0]->cq;
	assert_int_equal(cq->cqe, 64);
	assert_int_equal(cq->room, 64 - SIZE - 4 * (FAKE_SQ + 1));
	assert_ptr_equal(conns[3]->cq, cq);
	assert_int_equal(cq->qps->count, 4);
	for (i = 0; i < 3; i++)
		scene_bury(s->f, &conns[i]);
	assert_int_equal(cq->room, 64 - SIZE - (FAKE_SQ + 1));
	scene_bury(s->f, &conns[3]);
	assert_int_equal(cq->room, 64);
	assert_int_equal(cq->qps->count, 0);
}

SRQ_TEST(cq_full__another_one_with_the_depth_again)
{
	struct rpma_rt_conn *conns[7];
	int i;

	scene_post_many(s, 2);
	for (i = 0; i < 7; i++)
		conns[i] = fake_established(s->f);
	assert_ptr_equal(conns[5]->cq, conns[0]->cq);
	assert_ptr_not_equal(conns[6]->cq, conns[0]->cq);
	assert_int_equal(conns[6]->cq->room, 128 - SIZE - (FAKE_SQ + 1));
	fake_srq_wc(conns[6], s->srq, 0, IBV_WC_SUCCESS);
	fake_srq_wc(conns[0], s->srq, 1, IBV_WC_SUCCESS);
	fake_round(s->f);
	assert_int_equal(fake_take(s->f, s->f->queue), 2);
	for (i = 0; i < 7; i++)
		scene_bury(s->f, &conns[i]);
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
SCENE_TEST(fail__users_close_NOBODY_NEW)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_conn *other =
		fake_request(s->f); /* has receives without the SRQ */

	scene_srq(s);
	fake_configure(s->f);
	conn = fake_request(s->f);
	scene_post_many(s, 1);
	report_error(s);
	assert_true(fake_said("the device reports an error of an SRQ"));
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->queue), 1);
	expect_failed(s, 0);
	assert_int_equal(other->ctl.state, RT_CONN_READY);
	fake_bury(s->f, &conn);
	assert_int_equal(s->f->items[s->f->got - 1].status,
			 RPMA_RT_REASON_DEVICE);
	assert_int_equal(scene_post(s, 2), RPMA_RT_E_CLOSED);
	assert_int_equal(rpma_rt_conn_new(s->f->rt, "127.0.0.1", "1",
					  &s->f->rt_cfg, &conn),
			 RPMA_E_PROVIDER);
	assert_true(fake_said("an SRQ in rpma_rt_conn_cfg.srqs"));
	fake_bury(s->f, &other);
	scene_delete(s, 1);
}

/*
 * Fails while room is made for the SRQ: the lock is free, and all users are
 * told.
 */
static void fail_meanwhile(void *arg)
{
	report_error(arg);
}

SRQ_TEST(fail__while_a_connection_is_made)
{
	struct rpma_rt_conn *conn = NULL;

	fake_when_made(fail_meanwhile, s);
	assert_int_equal(rpma_rt_conn_new(s->f->rt, "127.0.0.1", "1",
					  &s->f->rt_cfg, &conn),
			 RPMA_E_PROVIDER);
	assert_null(conn);
	assert_int_equal(s->srq->users, 0);
	fake_finish_down(s->f);
	assert_int_equal(fake_take(s->f, s->queue), 1);
	expect_failed(s, 0);
}

/* The event comes while the SRQ is deleted: the SRQ has no users left. */
SRQ_TEST(fail__behind_a_delete)
{
	struct rt_async_object *async;

	async = &s->srq->async;
	async->event(async, IBV_EVENT_SRQ_ERR); /* not handled yet */
	s->f->rt_cfg.srq_count = 0;
	ok(rpma_rt_srq_delete(&s->srq));
	assert_int_equal(fake_take(s->f, s->queue), 2);
	assert_int_equal(s->f->items[0].opcode, RPMA_RT_EVENT_SRQ_FAILED);
	assert_int_equal(s->f->items[1].opcode, RPMA_RT_EVENT_SRQ_CLOSED);
}

static void take_first_part(void *arg)
{
	struct scene *s = arg;

	assert_int_equal(fake_take(s->f, s->queue), END_ITEMS);
}

SCENE_TEST(delete__much_is_out_in_parts)
{
	s->cfg.srq_size = 3 * END_ITEMS;
	scene_srq(s);
	scene_post_many(s, 2 * END_ITEMS + 1);
	fake_when_answered(take_first_part, s);
	scene_delete(s, END_ITEMS + 1);
}

SCENE_TEST(new__max_sge_IS_PASSED_ON)
{
	const uint32_t pieces[] = {0, 1, 32}; /* 0: as before the field was
					       * added */
	size_t i;

	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		s->cfg.max_sge = pieces[i];
		scene_srq(s);
		assert_int_equal(s->srq->srq->max_sge,
				 pieces[i] ? pieces[i] : 1);
		scene_delete(s, 0);
	}
}

SCENE_TEST(new__each_failure_nothing_is_left)
{
	static const char *const calls[] = {"malloc", "malloc", "malloc",
					    "malloc", "srq_new"};
	struct rpma_rt_srq *srq = NULL;
	int memory;
	int i;

	s->cfg.srq_size = 9000; /* a larger spill */
	scene_srq(s);
	scene_delete(s, 0); /* the lane is made */
	memory = fake_memory();
	for (i = 0; i < 5; i++) {
		fake_fail(calls[i], i < 4 ? i + 1 : 1,
			  i < 4 ? 1 : RPMA_E_PROVIDER);
		assert_int_equal(rpma_rt_srq_new(s->f->rt, &s->cfg, &srq),
				 i < 4 ? RPMA_E_NOMEM : RPMA_E_PROVIDER);
		assert_true(fake_failed());
		assert_null(srq);
		assert_int_equal(fake_memory(), memory);
	}
}

/* As many SRQs as a poller may have; the number of a deleted SRQ is free. */
SCENE_TEST(new__254_of_a_poller_then_NOMEM)
{
	struct rpma_rt_srq *srqs[254];
	struct rpma_rt_srq *more = NULL;
	int memory;
	int i;

	for (i = 0; i < 254; i++)
		ok(rpma_rt_srq_new(s->f->rt, &s->cfg, &srqs[i]));
	memory = fake_memory();
	assert_int_equal(rpma_rt_srq_new(s->f->rt, &s->cfg, &more),
			 RPMA_E_NOMEM);
	assert_null(more);
	assert_int_equal(fake_memory(), memory);
	ok(rpma_rt_srq_delete(&srqs[100]));
	ok(rpma_rt_srq_new(s->f->rt, &s->cfg, &srqs[100]));
	for (i = 0; i < 254; i++)
		ok(rpma_rt_srq_delete(&srqs[i]));
	while (fake_take(s->f, s->f->queue) > 0)
		continue;
}

/* Asserts that a connection with the configuration is refused. */
static void conn_refused(const struct scene *s)
{
	struct rpma_rt_conn *conn = NULL;

	assert_int_equal(
		rpma_rt_conn_new(s->f->rt, "::1", "1", &s->f->rt_cfg, &conn),
		RPMA_E_INVAL);
	assert_null(conn);
}

SRQ_TEST(conn__srqs_that_cannot_be_INVAL)
{
	struct rpma_rt_srq *twice[2];
	struct rpma_peer stranger = fake_peer;

	twice[0] = s->srq;
	twice[1] = s->srq;
	s->f->rt_cfg.srqs = twice;
	s->f->rt_cfg.srq_count = 2;
	conn_refused(s);
	assert_true(fake_said("srqs[1] is a second one of its poller"));
	twice[0] = NULL;
	conn_refused(s);
	assert_true(fake_said("srqs[0] is NULL"));
	s->f->rt_cfg.srqs = NULL;
	conn_refused(s);
	assert_true(fake_said("srqs is missing"));
	/* of another peer: queue pairs could not use the SRQ */
	s->f->rt_cfg.srqs = &s->srq;
	s->f->rt_cfg.srq_count = 1;
	s->f->rt_cfg.peer = &stranger;
	conn_refused(s);
	s->f->rt_cfg.peer = &fake_peer;
	scene_delete(s, 0);
}

TEST_MAIN()
