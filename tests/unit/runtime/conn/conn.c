/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A connection, from the side of the control thread and of the application:
 * each step that fails, each event in each state, the order of release, and the
 * changes still allowed to the application.
 */

#include <errno.h>
#include <string.h>

#include "queue/impl.h"
#include "queue/lane.h"
#include "rt_fake.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

static struct rpma_rt_conn *begun(struct fake *f)
{
	struct rpma_rt_conn *conn;

	ok(rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &conn));
	return conn;
}

/* Makes an active connection, ready to connect. */
static struct rpma_rt_conn *ready(struct fake *f)
{
	struct rpma_rt_conn *conn = begun(f);

	fake_finish_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_conn_event(conn, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_READY);
	fake_forget_trace();
	return conn;
}

/* The connection dies alone; the only item is CLOSED, with the reason. */
static void expect_death(struct fake *f, struct rpma_rt_conn **conn,
			 enum rpma_rt_reason reason, int status)
{
	fake_finish_down(f);
	if ((*conn)->poll.state == RT_PS_DRAINING && (*conn)->ctl.markers_due)
		fake_markers(*conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_EVENT);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, reason);
	assert_int_equal(f->items[0].imm, (uint32_t)status);
	assert_int_equal(f->items[0].context, (uintptr_t)*conn);
	ok(rpma_rt_conn_unref(conn));
}

/* --------------------------------------------------------------- making --- */

FAKE_TEST(new__closed_before_it_begins_LOCAL)
{
	struct rpma_rt_conn *conn = begun(f);
	uint32_t qp_num;

	assert_int_equal(rpma_rt_conn_get_qp_num(conn, &qp_num), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_connect(conn, NULL), RPMA_E_INVAL);
	ok(rpma_rt_conn_close(conn));
	ok(rpma_rt_conn_close(conn));
	expect_death(f, &conn, RPMA_RT_REASON_LOCAL, 0);
}

/* ----------------------------------------------------------- connecting --- */

/* The flush of the refused queue pair is seen before the refusal. */
FAKE_TEST(connect__refused_flush_first_still_REJECTED)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(fake_recv(conn, 1));
	ok(rpma_rt_conn_connect(conn, NULL));
	fake_finish_down(f);
	fake_received(conn, 0, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(f);
	assert_int_equal(conn->ctl.reason, RPMA_RT_REASON_ERROR);
	assert_int_equal(fake_take(f, f->queue), 1);
	fake_conn_event(conn, RDMA_CM_EVENT_REJECTED, 28);
	expect_death(f, &conn, RPMA_RT_REASON_REJECTED, 28);
}

/* After ESTABLISHED the first cause remains the reason. */
FAKE_TEST(death__a_later_cause_changes_nothing)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_recv(conn, 1));
	fake_received(conn, 0, IBV_WC_LOC_LEN_ERR);
	fake_finish_down(f);
	fake_take(f, f->queue);
	fake_conn_event(conn, RDMA_CM_EVENT_DISCONNECTED, 0);
	ok(rpma_rt_conn_close(conn));
	expect_death(f, &conn, RPMA_RT_REASON_ERROR, 0);
}

FAKE_TEST(connect__verb_fails_FAILED)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(fake_recv(conn, 1));
	fake_fail("req_connect", 1, RPMA_E_PROVIDER);
	ok(rpma_rt_conn_connect(conn, NULL));
	fake_control(f);
	/* the queue pair is gone too: no thread posts there any more */
	assert_int_equal(fake_recv(conn, 2), RPMA_RT_E_CLOSED);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].flags, RPMA_RT_C_SYNTHESIZED);
	assert_int_equal(f->items[1].status, RPMA_RT_REASON_FAILED);
	assert_int_equal(f->items[1].imm, (uint32_t)-EIO);
	assert_null(strstr(fake_trace(), "qp_to_err"));
	ok(rpma_rt_conn_unref(&conn));
}

FAKE_TEST(connect__twice_or_after_reject_INVAL)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(rpma_rt_conn_connect(conn, NULL));
	assert_int_equal(rpma_rt_conn_connect(conn, NULL), RPMA_E_INVAL);
	fake_bury(f, &conn);
	conn = fake_request(f);
	ok(rpma_rt_conn_reject(conn, NULL));
	assert_int_equal(rpma_rt_conn_connect(conn, NULL), RPMA_E_INVAL);
	fake_bury(f, &conn);
}

FAKE_TEST(connect__after_close_CLOSED)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(rpma_rt_conn_close(conn));
	assert_int_equal(rpma_rt_conn_connect(conn, NULL), RPMA_RT_E_CLOSED);
	fake_bury(f, &conn);
}

/* Asked for at once: the close comes first, whatever the order of bits. */
FAKE_TEST(connect__and_close_together_never_connects)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(rpma_rt_conn_connect(conn, NULL));
	ok(rpma_rt_conn_close(conn));
	fake_bury(f, &conn);
	assert_null(strstr(fake_trace(), "req_connect"));
}

/* ------------------------------------------------------- the destroyer --- */

/*
 * Runs everything but the destroyer, until the connection waits for the
 * destroyer.
 */
static void run_without_destroyer(struct fake *f)
{
	int done;

	do {
		done = rt_thread_run_messages(&f->device->control);
		done += fake_round(f);
	} while (done > 0 || !rt_thread_is_idle(&f->device->control));
}

static void close_and_drain(struct fake *f, struct rpma_rt_conn *conn)
{
	ok(rpma_rt_conn_close(conn));
	run_without_destroyer(f);
	fake_markers(conn);
	run_without_destroyer(f);
}

/* Reading an event might move the queue pair: the id leaves the channel first,
 * and the control thread destroys nothing. */
FAKE_TEST(destroy__handshake_under_way_id_silenced)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(rpma_rt_conn_connect(conn, NULL));
	close_and_drain(f, conn);
	assert_non_null(strstr(fake_trace(), "rdma_migrate_id"));
	assert_null(strstr(fake_trace(), "destroy_qp"));
	fake_control(f);
	assert_non_null(strstr(fake_trace(), "destroy_qp"));
	fake_bury(f, &conn);
}

FAKE_TEST(destroy__established_id_left_alone)
{
	struct rpma_rt_conn *conn = fake_established(f);

	close_and_drain(f, conn);
	assert_null(strstr(fake_trace(), "destroy_qp"));
	fake_bury(f, &conn);
	assert_non_null(strstr(fake_trace(), "destroy_qp"));
	assert_null(strstr(fake_trace(), "rdma_migrate_id"));
}

/* The id stays on the channel, so the channel's reader destroys the QP. */
FAKE_TEST(destroy__id_not_silenced_by_the_control_thread)
{
	struct rpma_rt_conn *conn = ready(f);

	ok(rpma_rt_conn_connect(conn, NULL));
	fake_fail("rdma_migrate_id", 1, 1);
	close_and_drain(f, conn);
	assert_non_null(strstr(fake_trace(), "destroy_qp"));
	fake_bury(f, &conn);
}

/* ------------------------------------------------------ the passive end --- */

FAKE_TEST(reject__private_data_goes_with_the_request)
{
	char word[] = "busy";
	struct rpma_conn_private_data pdata = {word, sizeof(word)};
	struct rpma_rt_conn *conn = fake_request(f);

	fake_forget_trace();
	ok(rpma_rt_conn_reject(conn, &pdata));
	fake_bury(f, &conn);
	assert_string_equal(fake_trace(), "req_qp_to_err rdma_migrate_id "
					  "req_destroy_qp req_release "
					  "req_reject");
}

FAKE_TEST(request__peer_gives_up_before_the_answer)
{
	struct rpma_rt_conn *conn = fake_request(f);

	fake_conn_event(conn, RDMA_CM_EVENT_REJECTED, 1);
	expect_death(f, &conn, RPMA_RT_REASON_REJECTED, 1);
}

/* ---------------------------------------------------- allowed changes --- */

FAKE_TEST(set_queue__moves_and_gives_back)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *other;
	uint32_t numbers;

	ok(rpma_rt_queue_new(f->rt, NULL, &other));
	numbers = conn->cq->numbers.next - conn->cq->numbers.returned_count;
	ok(rpma_rt_conn_set_queue(conn, other));
	assert_int_equal(conn->cq->numbers.next -
				 conn->cq->numbers.returned_count,
			 numbers);
	ok(rpma_rt_conn_accept(conn, NULL));
	fake_finish_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_DISCONNECTED, 0);
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(fake_take(f, other), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&other));
}

/*
 * The poller has moved the connection and answered; the caller goes on slowly.
 */
FAKE_TEST(set_queue__dies_meanwhile)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue *other;

	ok(rpma_rt_queue_new(f->rt, NULL, &other));
	fake_when_answered(fake_die, f);
	ok(rpma_rt_conn_set_queue(conn, other));
	fake_finish_down(f);
	/* CLOSED and nothing else, in the new queue; neither queue has users */
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(fake_take(f, other), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->queue->users, 0);
	assert_int_equal(f->queue->leaving, 0);
	assert_int_equal(other->users, 0);
	assert_int_equal(other->leaving, 0);
	ok(rpma_rt_conn_unref(&conn));
	ok(rpma_rt_queue_delete(&other));
}

/* ------------------------------------------- closed behind accept --- */

/* Accepts a request and closes the connection, before the peer's word. The
 * completions are through. */
static struct rpma_rt_conn *closed_behind_accept(struct fake *f)
{
	struct rpma_rt_conn *conn = fake_request(f);

	ok(rpma_rt_conn_accept(conn, NULL));
	fake_finish_down(f);
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_null(strstr(fake_trace(), "destroy_qp"));
	fake_forget_trace();
	return conn;
}

/* The peer is disconnected when the peer has taken the answer: before, the CM
 * could only refuse, and the peer's CM may drop the refusal. */
FAKE_TEST(close__behind_accept_TOLD_WHEN_THE_ANSWER_IS_TAKEN)
{
	struct rpma_rt_conn *conn = closed_behind_accept(f);
	const char *told;

	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_finish_down(f);
	told = strstr(fake_trace(), "disconnect");
	assert_non_null(told);
	assert_non_null(strstr(told, "destroy_qp"));
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* The peer leaves, or refuses the answer. */
FAKE_TEST(close__behind_accept_ENDS_WITH_THE_HANDSHAKE)
{
	struct rpma_rt_conn *conn = closed_behind_accept(f);

	fake_conn_event(conn, RDMA_CM_EVENT_REJECTED, 28);
	fake_finish_down(f);
	assert_null(strstr(fake_trace(), "disconnect"));
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* No word of the peer comes: the time of every death is over. */
FAKE_TEST(close__behind_accept_NO_LONGER_THAN_A_DEATH)
{
	struct rpma_rt_conn *conn = closed_behind_accept(f);

	fake_drain_time_over(f, conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_LOCAL);
	ok(rpma_rt_conn_unref(&conn));
}

/* Runs the end of the connection, except for DONE. */
static void die_to_the_end(void *arg)
{
	struct fake *f = arg;

	fake_die(f);
	fake_finish_down(f);
	assert_non_null(f->rt->conns);
	assert_int_equal(f->rt->in_use, 1);
}

/* The calling thread has reserved things, and is not through. */
FAKE_TEST(change__keeps_it_from_being_done)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_route *route;

	fake_when_answered(die_to_the_end, f);
	ok(rpma_rt_conn_set_user(conn, f));
	fake_finish_down(f);
	assert_null(f->rt->conns);
	assert_int_equal(f->rt->in_use, 0);
	assert_int_equal(rpma_rt_conn_set_user(conn, f), RPMA_RT_E_CLOSED);
	assert_int_equal(
		rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, f->queue, &route),
		RPMA_RT_E_CLOSED);
	assert_int_equal(fake_take(f, f->queue), 1);
	ok(rpma_rt_conn_unref(&conn));
}

/* Reservations made later may rely on the larger spill. */
FAKE_TEST(change__refused_its_spill_stays)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *other;
	struct rpma_rt_route *route;
	const struct rt_lane *lane;

	cfg.backlog_limit = 1;
	ok(rpma_rt_queue_new(f->rt, &cfg, &other));
	ok(rpma_rt_conn_close(conn));
	fake_finish_down(f);
	assert_int_equal(
		rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE, other, &route),
		RPMA_RT_E_CLOSED);
	lane = rt_queue_lane(other, 0, &f->poller->bell);
	assert_true(lane->announced > 1);
	assert_int_equal(lane->spill->entries, lane->announced);
	fake_bury(f, &conn);
	ok(rpma_rt_queue_delete(&other));
}

/* Events that a connection never gets, or newer than this library. */
FAKE_TEST(cm_event__says_nothing_GOES_ON)
{
	static const int types[] = {
		RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_MULTICAST_ERROR,
		RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
		RDMA_CM_EVENT_TIMEWAIT_EXIT + 4};
	struct rpma_rt_conn *request = fake_request(f);
	struct rpma_rt_conn *conn = fake_established(f);
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		fake_conn_event(request, types[i], -1);
		fake_conn_event(conn, types[i], -1);
	}
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0); /* again */
	fake_finish_down(f);
	assert_non_null(strstr(fake_news(), "goes on"));
	assert_int_equal(fake_take(f, f->queue), 0);
	assert_int_equal(request->ctl.state, RT_CONN_READY);
	assert_int_equal(conn->ctl.state, RT_CONN_ESTABLISHED);
	fake_bury(f, &request);
	fake_bury(f, &conn);
}

/* A message arrived before the end of the handshake: the CM is told, while
 * waiting for the end. */
FAKE_TEST(comm_est__told_while_connecting)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rdma_cm_id id;
	struct rt_async_object *async = &conn->ctl.async;

	conn->setup->id = &id; /* the event's, which the fake has not */
	async->event(async, IBV_EVENT_COMM_EST);
	fake_finish_down(f);
	assert_null(strstr(fake_trace(), "rdma_notify"));
	ok(rpma_rt_conn_accept(conn, NULL));
	fake_control(f);
	async->event(async, IBV_EVENT_COMM_EST);
	async->event(async, IBV_EVENT_SQ_DRAINED);
	fake_finish_down(f);
	assert_non_null(strstr(fake_trace(), "rdma_notify"));
	fake_forget_trace();
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	async->event(async, IBV_EVENT_COMM_EST);
	async->event(async, IBV_EVENT_PATH_MIG);
	fake_finish_down(f);
	assert_null(strstr(fake_trace(), "rdma_notify"));
	assert_non_null(strstr(fake_news(), "its path has moved"));
	async->event(async, IBV_EVENT_PATH_MIG_ERR);
	fake_finish_down(f);
	assert_non_null(strstr(fake_news(), "its path cannot move"));
	fake_bury(f, &conn);
}

/*
 * The connection dies while the poller is asked, before the poller has the
 * message.
 */
FAKE_TEST(user__dies_meanwhile_CLOSED)
{
	struct rpma_rt_conn *conn = fake_request(f);
	int here;

	ok(rpma_rt_conn_close(conn));
	fake_control(f); /* HANDOVER is in the poller's inbox */
	assert_int_equal(rpma_rt_conn_set_user(conn, &here), RPMA_RT_E_CLOSED);
	fake_bury(f, &conn);
	assert_ptr_equal(f->items[0].user, f);
}

/* A REQUEST that was never taken carries a handle, which only the drop gives
 * back. */
FAKE_TEST(drop_item__a_request_put)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_completion item = {
		.context = (uintptr_t)conn,
		.kind = RPMA_RT_EVENT,
		.opcode = RPMA_RT_EVENT_CLOSED,
	};

	ok(rpma_rt_conn_ref(conn));
	rt_conn_drop_item(&item);
	item.opcode = RPMA_RT_EVENT_REQUEST;
	rt_conn_drop_item(&item);
	fake_bury(f, &conn);
}

FAKE_TEST(getters__of_a_connection)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_conn_private_data pdata;
	uint32_t qp_num;
	int poller;

	ok(rpma_rt_conn_get_qp_num(conn, &qp_num));
	assert_int_equal(qp_num, fake_qp(conn)->ibv.qp_num);
	ok(rpma_rt_conn_get_poller(conn, &poller));
	assert_int_equal(poller, 0);
	ok(rpma_rt_conn_get_private_data(conn,
					 &pdata)); /* the peer sent none */
	assert_null(pdata.ptr);
	fake_bury(f, &conn);
}

/* The leaving of the peer is seen before the failed WR; flushed WRs do not
 * count. */
FAKE_TEST(die__a_failed_wr_outweighs_DISCONNECTED)
{
	static const struct {
		enum ibv_wc_status status;
		enum rpma_rt_reason reason;
	} cases[] = {
		{IBV_WC_RETRY_EXC_ERR, RPMA_RT_REASON_ERROR},
		{IBV_WC_WR_FLUSH_ERR, RPMA_RT_REASON_DISCONNECTED},
	};
	struct rpma_rt_conn *conn;
	size_t i;

	for (i = 0; i < 2; i++) {
		conn = fake_established(f);
		ok(fake_send(conn, 1, ALWAYS));
		fake_conn_event(conn, RDMA_CM_EVENT_DISCONNECTED, 0);
		fake_sent(conn, 0, cases[i].status);
		fake_finish_down(f);
		fake_markers(conn);
		fake_finish_down(f);
		assert_int_equal(fake_take(f, f->queue), 2);
		assert_int_equal(f->items[1].opcode, RPMA_RT_EVENT_CLOSED);
		assert_int_equal(f->items[1].status, cases[i].reason);
		ok(rpma_rt_conn_unref(&conn));
	}
}

/* Reading events of leaving peers ends before the events are handled: between
 * two connections the thread looks for other work. */
FAKE_TEST(die__peers_that_leave_one_at_a_time)
{
	struct rpma_rt_conn *conns[3];
	int dying;
	int i;
	int k;

	for (i = 0; i < 3; i++)
		conns[i] = fake_established(f);
	for (i = 0; i < 3; i++)
		fake_conn_event(conns[i], RDMA_CM_EVENT_DISCONNECTED, 0);
	for (i = 0; i <= 3; i++) {
		dying = 0;
		for (k = 0; k < 3; k++)
			dying += conns[k]->ctl.state == RT_CONN_DRAINING;
		assert_int_equal(dying, i);
		rt_thread_run_messages(&f->device->control);
	}
	fake_finish_down(f);
	for (i = 0; i < 3; i++)
		fake_markers(conns[i]);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 3);
	for (i = 0; i < 3; i++)
		ok(rpma_rt_conn_unref(&conns[i]));
}

/* Operations done by the device itself have the same opcode failed as done. */
FAKE_TEST(die__opcode_of_what_failed)
{
	static const struct {
		enum rpma_rt_op op;
		bool native;
		uint8_t opcode;
	} cases[] = {
		{RPMA_RT_OP_FLUSH, false, IBV_WC_RDMA_READ},
		{RPMA_RT_OP_FLUSH, true, 8},
		{RPMA_RT_OP_ATOMIC_WRITE, false, IBV_WC_RDMA_WRITE},
		{RPMA_RT_OP_ATOMIC_WRITE, true, 9},
	};
	struct rpma_rt_conn *conn;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rpma_rt_wr wr = {
			.op = cases[i].op,
			.flags = ALWAYS,
			/* compared with NULL only */
			.remote = fake_remote,
			.flush_type = RPMA_FLUSH_TYPE_VISIBILITY,
		};

		conn = fake_established(f);
		if (cases[i].native)
			fake_fail("native", 1, 1);
		ok(fake_post_send(conn, &wr));
		fake_sent(conn, 0, IBV_WC_REM_ACCESS_ERR);
		fake_finish_down(f);
		assert_int_equal(fake_take(f, f->queue), 1);
		assert_int_equal(f->items[0].opcode, cases[i].opcode);
		fake_bury(f, &conn);
	}
}

TEST_MAIN()
