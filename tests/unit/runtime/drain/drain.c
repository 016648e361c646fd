/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The death of a connection, step by step on one thread: kept, finished,
 * inferred, swallowed and synthesized completions; the order in which its
 * objects go; stale completions; the last item.
 */

#include <errno.h>
#include <string.h>

#include "rt_fake.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR

static uint64_t stale(const struct fake *f)
{
	struct rpma_rt_poller_stats stats;

	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	return stats.stale;
}

static void post_sends(struct rpma_rt_conn *conn, int count, int flags)
{
	int i;

	for (i = 0; i < count; i++)
		ok(fake_send(conn, (uint64_t)i, flags));
}

static void post_recvs(struct rpma_rt_conn *conn, int count)
{
	int i;

	for (i = 0; i < count; i++)
		ok(fake_recv(conn, (uint64_t)(100 + i)));
}

/* Asserts that the i-th item is the completion with context and status. */
static void expect(const struct fake *f, int i, uint64_t context,
		   enum ibv_wc_status status)
{
	assert_true(i < f->got);
	assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[i].context, context);
	assert_int_equal(f->items[i].status, status);
}

static void expect_synthesized(const struct fake *f, int i, uint64_t context,
			       enum ibv_wc_opcode opcode)
{
	expect(f, i, context, IBV_WC_GENERAL_ERR);
	assert_int_equal(f->items[i].flags, RPMA_RT_C_SYNTHESIZED);
	assert_int_equal(f->items[i].opcode, opcode);
}

static void expect_closed(const struct fake *f, int i, enum rpma_rt_reason why)
{
	assert_int_equal(i, f->got - 1); /* the last item */
	assert_int_equal(f->items[i].kind, RPMA_RT_EVENT);
	assert_int_equal(f->items[i].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[i].status, why);
	assert_ptr_equal(f->items[i].user, f);
}

/* ------------------------------------------------------- the happy path --- */

FAKE_TEST(round__success_delivered_with_all_fields)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_recvs(conn, 1);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	assert_int_equal(fake_round(f), 1);
	assert_int_equal(fake_take(f, f->queue), 1);
	expect(f, 0, 100, IBV_WC_SUCCESS);
	assert_int_equal(f->items[0].opcode, IBV_WC_RECV);
	assert_int_equal(f->items[0].byte_len, 100);
	assert_int_equal(f->items[0].imm, 1234);
	assert_int_equal(f->items[0].flags, RPMA_RT_C_WITH_IMM);
	assert_int_equal(f->items[0].qp_num, conn->qp_num);
	assert_ptr_equal(f->items[0].user, f);
	fake_bury(f, &conn);
}

FAKE_TEST(round__on_error_only_success_swallowed)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_sends(conn, FAKE_SQ, ON_ERROR);
	/* half a ledger of silent sends; one send is signaled all the same */
	assert_false(fake_qp(conn)->signaled[0]);
	assert_true(fake_qp(conn)->signaled[FAKE_SQ / 2 - 1]);
	assert_int_equal(fake_send(conn, 9, ON_ERROR), RPMA_E_AGAIN);
	fake_sent(conn, FAKE_SQ / 2 - 1, IBV_WC_SUCCESS);
	assert_int_equal(fake_round(f), 1);
	/* only the credits are back */
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	post_sends(conn, FAKE_SQ / 2, ON_ERROR);
	fake_bury(f, &conn);
	assert_int_equal(stale(f), 0);
}

/* -------------------------------------------- from error to the markers --- */

FAKE_TEST(error__kept_until_handover_then_in_order)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_sends(conn, 4, ALWAYS);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_sent(conn, 1, IBV_WC_REM_ACCESS_ERR);
	fake_sent(conn, 2, IBV_WC_WR_FLUSH_ERR);
	fake_round(f);
	/* completions before the error were delivered, the rest waits for the
	 * ledger */
	assert_int_equal(fake_take(f, f->queue), 1);
	expect(f, 0, 0, IBV_WC_SUCCESS);
	assert_int_equal(conn->poll.kept_count, 2);
	/* the poller's word is enough to refuse */
	assert_int_equal(fake_send(conn, 9, ALWAYS), RPMA_RT_E_CLOSED);
	assert_int_equal(fake_recv(conn, 9), RPMA_RT_E_CLOSED);
	fake_control(f);
	assert_string_equal(fake_trace(), "qp_to_err disconnect");
	fake_sent(conn, 3, IBV_WC_WR_FLUSH_ERR);
	fake_round(f);
	assert_int_equal(conn->poll.state, RT_PS_DRAINING);
	assert_int_equal(fake_take(f, f->queue), 3);
	expect(f, 0, 1, IBV_WC_REM_ACCESS_ERR);
	expect(f, 1, 2, IBV_WC_WR_FLUSH_ERR);
	expect(f, 2, 3, IBV_WC_WR_FLUSH_ERR);
	/* the opcode is the ledger's, vendor_err the device's, no more */
	assert_int_equal(f->items[0].opcode, IBV_WC_SEND);
	assert_int_equal(f->items[0].imm, 77);
	assert_int_equal(f->items[0].byte_len, 0);
	assert_int_equal(f->items[0].flags, 0);
	fake_bury(f, &conn);
	expect_closed(f, 0, RPMA_RT_REASON_ERROR);
}

FAKE_TEST(error__markers_posted_around_the_flush)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(rpma_rt_conn_close(conn));
	fake_control(f);
	assert_int_equal(fake_rq_id(conn, 0),
			 rt_wr_id_internal(RT_RQ_MARKER, conn->slot));
	assert_int_equal(fake_sq_id(conn, 0),
			 rt_wr_id_internal(RT_SQ_MARKER, conn->slot));
	assert_true(fake_qp(conn)->signaled[0]);
	assert_int_equal(conn->ctl.markers_due, 3);
	fake_bury(f, &conn);
}

/* After the close, and before the flush is seen: successes are kept too. */
FAKE_TEST(kept__success_behind_an_error_of_the_other_side)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_sends(conn, 1, ALWAYS);
	post_recvs(conn, 2);
	fake_sent(conn, 0, IBV_WC_RETRY_EXC_ERR);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	expect(f, 0, 0, IBV_WC_RETRY_EXC_ERR);
	expect(f, 1, 100, IBV_WC_SUCCESS);
	assert_int_equal(f->items[1].opcode, IBV_WC_RECV);
	assert_int_equal(f->items[1].byte_len, 100);
	assert_int_equal(f->items[1].flags, RPMA_RT_C_WITH_IMM);
	fake_bury(f, &conn);
	expect_synthesized(f, 0, 101, IBV_WC_RECV);
}

FAKE_TEST(kept__more_than_was_posted_stale)
{
	struct rpma_rt_conn *conn = fake_established(f);
	int i;

	post_sends(conn, 1, ALWAYS);
	for (i = 0; i < FAKE_SQ + FAKE_RQ + 3; i++)
		fake_sent(conn, 0, IBV_WC_WR_FLUSH_ERR);
	fake_round(f);
	assert_int_equal(conn->poll.kept_count, FAKE_SQ + FAKE_RQ);
	assert_int_equal(stale(f), 3);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1); /* exactly one item */
	assert_int_equal(stale(f), FAKE_SQ + FAKE_RQ + 2);
	fake_bury(f, &conn);
}

FAKE_TEST(finish__on_error_only_inferred_before_own_after)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_send(conn, 0, ON_ERROR));
	ok(fake_send(conn, 1, ALWAYS));
	ok(fake_send(conn, 2, ON_ERROR));
	ok(fake_send(conn, 3, ON_ERROR));
	fake_sent(conn, 1, IBV_WC_RETRY_EXC_ERR);
	fake_sent(conn, 2, IBV_WC_WR_FLUSH_ERR);
	fake_sent(conn, 3, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 3); /* 0 had succeeded */
	expect(f, 0, 1, IBV_WC_RETRY_EXC_ERR);
	expect(f, 1, 2, IBV_WC_WR_FLUSH_ERR);
	expect(f, 2, 3, IBV_WC_WR_FLUSH_ERR);
	fake_bury(f, &conn);
	assert_int_equal(f->got, 1);
}

/* Signaled by the runtime, a success while conn dies: swallowed there too. */
FAKE_TEST(finish__on_error_only_success_swallowed)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_sends(conn, FAKE_SQ / 2, ON_ERROR);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_sent(conn, FAKE_SQ / 2 - 1, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(stale(f), 0);
	fake_bury(f, &conn);
	expect_closed(f, 0, RPMA_RT_REASON_LOCAL);
}

FAKE_TEST(marker__infers_unsignaled_of_its_side_only)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_send(conn, 0, ON_ERROR));
	post_recvs(conn, 1);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	expect_synthesized(f, 0, 100, IBV_WC_RECV);
	expect_closed(f, 1, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* ------------------------------------------------- no markers, no sweep --- */

FAKE_TEST(drained__a_marker_missing_deadline)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_send(conn, 0, ON_ERROR));
	post_sends(conn, 1, ALWAYS);
	post_recvs(conn, 2);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_wc(conn->cq, rt_wr_id_internal(RT_RQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
	fake_finish_down(f);
	assert_int_equal(conn->poll.state, RT_PS_DRAINING); /* still waits */
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(conn->ctl.qp_state, RT_QP_ALIVE);
	fake_drain_time_over(f, conn);
	fake_finish_down(f);
	/* unknown order: sends in order, then receives */
	assert_int_equal(fake_take(f, f->queue), 5);
	expect_synthesized(f, 0, 0, IBV_WC_SEND);
	expect_synthesized(f, 1, 0, IBV_WC_SEND);
	expect_synthesized(f, 2, 100, IBV_WC_RECV);
	expect_synthesized(f, 3, 101, IBV_WC_RECV);
	expect_closed(f, 4, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

FAKE_TEST(drained__a_marker_refused_not_waited_for)
{
	struct rpma_rt_conn *conn = fake_established(f);

	fake_fail("post_recv", 1, ENOMEM);
	fake_fail("post_send", 1, ENOMEM);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	expect_closed(f, 0, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* ------------------------------------------------------- order of death --- */

FAKE_TEST(death__objects_in_order_CLOSED_last)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_recvs(conn, 1);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_received(conn, 0, IBV_WC_WR_FLUSH_ERR);
	fake_markers(conn);
	fake_forget_trace();
	fake_round(f);
	assert_string_equal(fake_trace(), ""); /* the poller destroys nothing */
	fake_control(f);
	assert_string_equal(fake_trace(), "destroy_qp");
	fake_round(f); /* GONE */
	fake_round(f); /* an empty poll */
	assert_int_equal(conn->poll.state, RT_PS_SWEPT);
	assert_int_equal(fake_take(f, f->queue), 1); /* not CLOSED yet */
	fake_control(f);
	assert_string_equal(fake_trace(),
			    "destroy_qp conn_release conn_delete");
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	expect_closed(f, 0, RPMA_RT_REASON_LOCAL);
	assert_null(rt_slots_of(f->poller)->conns[conn->slot]);
	assert_int_equal(f->rt->in_use, 1); /* until the control thread knows */
	fake_control(f);
	assert_int_equal(f->rt->in_use, 0);
	ok(rpma_rt_conn_unref(&conn));
}

FAKE_TEST(sweep__what_comes_after_the_queue_pair_is_finished)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint64_t wr_id;
	uint32_t qp_num = conn->qp_num;

	post_sends(conn, 2, ALWAYS);
	wr_id = fake_sq_id(conn, 0);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_drain_time_over(f, conn);
	fake_round(f);
	fake_control(f); /* the queue pair is gone */
	/* the completion was in the CQ all the time */
	fake_wc(conn->cq, wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, qp_num);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 3);
	expect(f, 0, 0, IBV_WC_SUCCESS);
	expect_synthesized(f, 1, 1, IBV_WC_SEND);
	expect_closed(f, 2, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* A CQ kept full by others never polls empty: as many polls as the CQ has
 * entries suffice, counted from the end of the queue pair. */
FAKE_TEST(sweep__cq_never_empty_as_many_as_it_holds)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint32_t cqe = conn->cq->cqe;
	uint32_t i;

	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_drain_time_over(f, conn);
	fake_round(f);
	fake_control(f);
	/* the batch in which GONE arrives: only later completions count */
	for (i = 0; i < 2 * cqe; i++)
		fake_wc(conn->cq, rt_wr_id(RT_ROUTE_FIRST + 99, 0),
			IBV_WC_SUCCESS, IBV_WC_SEND, 1);
	fake_round(f);
	assert_int_equal(conn->poll.state, RT_PS_SWEEPING);
	assert_int_equal(conn->poll.dying.until_taken, conn->cq->taken + cqe);
	for (i = RT_BATCH; i < cqe; i += RT_BATCH) {
		fake_round(f);
		assert_int_equal(conn->poll.state, RT_PS_SWEEPING);
	}
	fake_round(f);
	assert_int_equal(conn->poll.state, RT_PS_SWEPT);
	fake_bury(f, &conn);
}

FAKE_TEST(swept__completion_after_it_stale)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint64_t wr_id;
	uint32_t qp_num = conn->qp_num;
	struct rt_cq *cq = conn->cq;

	post_sends(conn, 1, ALWAYS);
	wr_id = fake_sq_id(conn, 0);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_drain_time_over(f, conn);
	while (conn->poll.state != RT_PS_SWEPT) {
		fake_control(f);
		fake_round(f);
	}
	assert_int_equal(fake_take(f, f->queue), 1);
	expect_synthesized(f, 0, 0, IBV_WC_SEND);
	fake_wc(cq, wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, qp_num);
	fake_round(f);
	assert_int_equal(stale(f), 1);
	fake_finish_down(f);
	/* and after the route is closed */
	fake_wc(cq, wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, qp_num);
	fake_round(f);
	assert_int_equal(stale(f), 2);
	assert_int_equal(fake_take(f, f->queue), 1);
	expect_closed(f, 0, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

FAKE_TEST(death__other_queues_ROUTE_CLOSED_once)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_queue *other;
	struct rpma_rt_route *routes[3];

	ok(rpma_rt_queue_new(f->rt, NULL, &other));
	ok(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, other, &routes[0]));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, other, &routes[1]));
	ok(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE, f->queue, &routes[2]));
	assert_int_equal(rpma_rt_queue_delete(&other), RPMA_RT_E_BUSY);
	fake_bury(f, &conn);
	assert_int_equal(f->got, 1); /* CLOSED, and no ROUTE_CLOSED with
				      * CLOSED */
	assert_int_equal(fake_take(f, other), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_queue_delete(&other));
}

/* ------------------------------------------------- early, strange, dead --- */

/* BIND lies in the inbox when the first completion, an error, is polled. */
FAKE_TEST(error__before_BIND_is_not_stale)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rpma_rt_conn *other = fake_request(f);
	struct rpma_rt_conn *conn;

	event.id = &f->id;
	rt_conn_request_control(&f->listener, &event);
	conn = f->rt->conns;
	assert_ptr_not_equal(conn, other);
	assert_ptr_equal(conn->cq, other->cq); /* so the CQ is polled already */
	post_recvs(conn, 1);
	fake_received(conn, 0, IBV_WC_LOC_PROT_ERR);
	fake_round(f);
	assert_int_equal(stale(f), 0);
	assert_int_equal(conn->poll.state, RT_PS_BROKEN);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_REQUEST);
	expect(f, 1, 100, IBV_WC_LOC_PROT_ERR);
	fake_bury(f, &conn);
	fake_bury(f, &other);
}

FAKE_TEST(stale__counted_never_delivered)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint32_t qp_num = conn->qp_num;
	uint64_t id;

	post_sends(conn, 1, ALWAYS);
	id = fake_sq_id(conn, 0);
	/* the number of another queue pair; an unknown route; an id never
	 * posted */
	fake_wc(conn->cq, id, IBV_WC_SUCCESS, IBV_WC_SEND, qp_num + 1);
	fake_wc(conn->cq, rt_wr_id(RT_ROUTE_MASK, 0), IBV_WC_SUCCESS,
		IBV_WC_SEND, qp_num);
	fake_wc(conn->cq, 0, IBV_WC_SUCCESS, IBV_WC_SEND, 0);
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, RT_MAX_SLOTS),
		IBV_WC_SUCCESS, IBV_WC_SEND, qp_num);
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot + 1),
		IBV_WC_SUCCESS, IBV_WC_SEND, qp_num);
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		IBV_WC_SUCCESS, IBV_WC_SEND, qp_num + 1);
	fake_wc(conn->cq, rt_wr_id_internal(3, conn->slot), IBV_WC_SUCCESS,
		IBV_WC_SEND, qp_num);
	fake_round(f);
	assert_int_equal(stale(f), 7);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(conn->poll.markers_seen, 0);
	assert_int_equal(conn->poll.state, RT_PS_HEALTHY);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	fake_bury(f, &conn);
}

FAKE_TEST(dead_cq__its_connections_die_of_DEVICE)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint64_t polls;
	struct rpma_rt_poller_stats stats;

	post_sends(conn, 1, ALWAYS);
	fake_cq(conn->cq)->poll_answer = -1;
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	expect_synthesized(f, 0, 0, IBV_WC_SEND);
	expect_closed(f, 1, RPMA_RT_REASON_DEVICE);
	assert_int_equal(f->poller->cqs_count, 0); /* the CQ went too */
	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	polls = stats.polls;
	fake_round(f); /* the CQ is no longer polled */
	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	assert_int_equal(stats.polls, polls);
	ok(rpma_rt_conn_unref(&conn));
	/* and no further connection is put on the CQ */
	conn = fake_established(f);
	assert_false(conn->cq->dead);
	fake_bury(f, &conn);
}

/* ------------------------------------------------------------- WRITABLE --- */

static int count_writable(struct fake *f)
{
	int count = 0;
	int i;

	fake_take(f, f->queue);
	for (i = 0; i < f->got; i++)
		count += f->items[i].kind == RPMA_RT_WRITABLE;
	return count;
}

FAKE_TEST(writable__each_side_its_own)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_recvs(conn, FAKE_RQ);
	assert_int_equal(fake_recv(conn, 9), RPMA_E_AGAIN);
	post_sends(conn, 1, ALWAYS);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(count_writable(f), 0);
	fake_received(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(count_writable(f), 1);
	assert_int_equal(f->items[f->got - 1].opcode, RPMA_RT_RECV_SIDE);
	fake_bury(f, &conn);
}

/* ------------------------------------------------------ asked to drain --- */

static void fake_drain_marker(struct rpma_rt_conn *conn,
			      enum ibv_wc_status status)
{
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot), status,
		IBV_WC_RDMA_WRITE, conn->qp_num);
}

/*
 * Work requests without a completion count too: nothing ends before the marker
 * came.
 */
FAKE_TEST(ask__closes_when_the_marker_came_LOCAL)
{
	struct rpma_rt_conn *conn = fake_established(f);

	post_sends(conn, 2, RPMA_F_COMPLETION_ON_ERROR);
	ok(rpma_rt_conn_drain(conn, 0));
	assert_int_equal(fake_send(conn, 9, RPMA_F_COMPLETION_ALWAYS),
			 RPMA_RT_E_CLOSED);
	fake_finish_down(f);
	/* behind them */
	assert_int_equal(fake_sq_id(conn, 2),
			 rt_wr_id_internal(RT_SQ_MARKER, conn->slot));
	assert_int_equal(conn->ctl.state, RT_CONN_ESTABLISHED);
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_drain_marker(conn, IBV_WC_SUCCESS);
	fake_finish_down(f);
	assert_int_equal(conn->ctl.reason, RPMA_RT_REASON_LOCAL);
	/* no second marker in the send queue, and no wait for such a marker */
	assert_int_equal(conn->ctl.markers_due,
			 1u << RPMA_RT_SEND_SIDE | 1u << RPMA_RT_RECV_SIDE);
	assert_int_equal(conn->poll.markers_seen, 1u << RPMA_RT_SEND_SIDE);
	fake_wc(conn->cq, rt_wr_id_internal(RT_RQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	expect_closed(f, 0, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* The marker itself fails first: the peer is gone. */
FAKE_TEST(ask__marker_fails_ERROR)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(rpma_rt_conn_drain(conn, 600000)); /* the longest */
	fake_finish_down(f);
	fake_drain_marker(conn, IBV_WC_RETRY_EXC_ERR);
	fake_finish_down(f);
	assert_int_equal(conn->ctl.reason, RPMA_RT_REASON_ERROR);
	fake_bury(f, &conn);
}

TEST_MAIN()
