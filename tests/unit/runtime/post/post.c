/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Posting: refused posts and their effects, chains of which the device takes a
 * part, and the work request of each operation.
 */

#include <errno.h>

#include "rt_fake.h"
#include "poller/post.h"
#include "srq/srq.h"

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define TOO_BIG	 (UINT64_C(1) << RPMA_RT_CONTEXT_BITS)

static struct rpma_rt_wr a_send(uint64_t context)
{
	return (struct rpma_rt_wr){
		.op = RPMA_RT_OP_SEND, .flags = ALWAYS, .context = context};
}

static void fill(struct rpma_rt_wr *wrs, int count)
{
	int i;

	for (i = 0; i < count; i++)
		wrs[i] = a_send((uint64_t)i);
}

static void fill_recvs(struct rpma_rt_recv_wr *wrs, int count)
{
	int i;

	for (i = 0; i < count; i++)
		wrs[i] = (struct rpma_rt_recv_wr){.context = (uint64_t)i};
}

/* Asserts that refused posts keep no place of either side. */
static void expect_all_places(struct rpma_rt_conn *conn)
{
	struct rpma_rt_recv_wr recvs[FAKE_RQ + 1];
	struct rpma_rt_wr wrs[FAKE_SQ + 1];

	fill(wrs, FAKE_SQ + 1);
	fill_recvs(recvs, FAKE_RQ + 1);
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	assert_int_equal(fake_qp(conn)->rq_count, 0);
	assert_int_equal(rpma_rt_post_send(conn, wrs, FAKE_SQ + 1), FAKE_SQ);
	assert_int_equal(rpma_rt_post_recv(conn, recvs, FAKE_RQ + 1), FAKE_RQ);
}

/* ---------------------------------------------------- the usual call --- */

static struct rpma_rt_wr a_plain(uint64_t context)
{
	return (struct rpma_rt_wr){.op = RPMA_RT_OP_SEND,
				   .flags = ALWAYS,
				   .context = context,
				   .local = fake_local,
				   .local_offset = 24,
				   .len = 40};
}

static void fill_plain(struct rpma_rt_wr *wrs, int count)
{
	int i;

	for (i = 0; i < count; i++)
		wrs[i] = a_plain((uint64_t)i);
}

static void expect_piece(const struct ibv_sge *sge)
{
	assert_int_equal(sge->addr, FAKE_ADDR + 24);
	assert_int_equal(sge->length, 40);
	assert_int_equal(sge->lkey, FAKE_LKEY);
}

FAKE_TEST(plain__as_the_verb_wants_it)
{
	static const struct {
		enum rpma_rt_op op;
		enum ibv_wr_opcode opcode;
	} ops[] = {{RPMA_RT_OP_SEND, IBV_WR_SEND},
		   {RPMA_RT_OP_WRITE, IBV_WR_RDMA_WRITE},
		   {RPMA_RT_OP_READ, IBV_WR_RDMA_READ}};
	struct rpma_rt_conn *conn = fake_established(f);
	const struct ibv_send_wr *sent = &fake_qp(conn)->last_send;
	const struct ibv_recv_wr *received = &fake_qp(conn)->last_recv;
	struct rpma_rt_recv_wr recv = {
		.dst = fake_local, .offset = 24, .len = 40, .context = 6};
	struct rpma_rt_wr wr = a_plain(5);
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		wr.op = ops[i].op;
		wr.remote = ops[i].op == RPMA_RT_OP_SEND ? NULL : fake_remote;
		wr.remote_offset = 16;
		assert_int_equal(rpma_rt_post_send(conn, &wr, 1), 1);
		assert_int_equal(sent->opcode, ops[i].opcode);
		assert_int_equal(sent->send_flags, IBV_SEND_SIGNALED);
		assert_int_equal(sent->num_sge, 1);
		expect_piece(&fake_qp(conn)->last_sge);
		if (wr.remote == NULL)
			continue;
		assert_int_equal(sent->wr.rdma.remote_addr, FAKE_ADDR + 16);
		assert_int_equal(sent->wr.rdma.rkey, FAKE_RKEY);
	}
	fake_qp(conn)->last_sge = (struct ibv_sge){0};
	assert_int_equal(rpma_rt_post_recv(conn, &recv, 1), 1);
	assert_int_equal(received->num_sge, 1);
	expect_piece(&fake_qp(conn)->last_sge);
	fake_bury(f, &conn);
}

/* Now and then a silent send is signaled. */
FAKE_TEST(plain__silent_SIGNALED_AT_TIMES)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[FAKE_SQ];
	int signaled = 0;
	int i;

	fill_plain(wrs, FAKE_SQ);
	for (i = 0; i < FAKE_SQ; i++)
		wrs[i].flags = ON_ERROR;
	assert_int_equal(rpma_rt_post_send(conn, wrs, FAKE_SQ), FAKE_SQ);
	for (i = 0; i < FAKE_SQ; i++)
		signaled += fake_qp(conn)->signaled[i];
	assert_in_range(signaled, 1, 3);
	fake_bury(f, &conn);
}

/* As many as there is room for, as a chain holds, or one more. */
FAKE_TEST(plain__many_in_one_call)
{
	static const int counts[] = {2, RT_POST_CHUNK, RT_POST_CHUNK + 1,
				     FAKE_SQ + 1};
	struct rpma_rt_recv_wr recvs[FAKE_SQ + RT_POST_CHUNK];
	struct rpma_rt_wr wrs[FAKE_SQ + RT_POST_CHUNK];
	struct rpma_rt_conn *conn;
	uint32_t count;
	size_t i;
	int j;

	for (j = 0; j < FAKE_SQ + RT_POST_CHUNK; j++) {
		wrs[j] = a_plain((uint64_t)j);
		recvs[j] = (struct rpma_rt_recv_wr){
			.dst = fake_local, .len = 8, .context = (uint64_t)j};
	}
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		conn = fake_established(f);
		count = (uint32_t)(counts[i] < FAKE_SQ ? counts[i] : FAKE_SQ);
		assert_int_equal(rpma_rt_post_send(conn, wrs, counts[i]),
				 count);
		assert_int_equal(fake_qp(conn)->sq_count, count);
		count = (uint32_t)(counts[i] < FAKE_RQ ? counts[i] : FAKE_RQ);
		assert_int_equal(rpma_rt_post_recv(conn, recvs, counts[i]),
				 count);
		assert_int_equal(fake_qp(conn)->rq_count, count);
		for (j = 0; j < (int)count; j++)
			assert_int_equal(
				rt_wr_id_cookie(fake_rq_id(conn, (uint32_t)j)),
				j);
		fake_bury(f, &conn);
	}
}

/* The device refuses the third of four: two are posted, two complete as not
 * posted. */
FAKE_TEST(plain__refused_by_the_device_NOT_POSTED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[4];
	int i;

	fill_plain(wrs, 4);
	fake_fail("post_send", 3, ENOMEM);
	assert_int_equal(rpma_rt_post_send(conn, wrs, 4), 4);
	assert_int_equal(fake_qp(conn)->sq_count, 2);
	assert_int_equal(rpma_rt_post_send(conn, wrs, 4), RPMA_RT_E_CLOSED);
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_sent(conn, 1, IBV_WC_WR_FLUSH_ERR);
	fake_finish_down(f);
	fake_bury(f, &conn);
	assert_int_equal(f->got, 5);
	for (i = 0; i < 4; i++) {
		assert_int_equal(f->items[i].context, i);
		assert_int_equal(f->items[i].flags & RPMA_RT_C_NOT_POSTED,
				 i < 2 ? 0 : RPMA_RT_C_NOT_POSTED);
	}
}

/* Whatever is refused is logged once: the call, or the work request's index. */
static void expect_said(int ret, int error, const char *words)
{
	assert_int_equal(ret, error);
	assert_int_equal(fake_logged(), 1);
	assert_true(fake_said(words));
}

/* Faults known only to librpma, in a single post and among others. */
FAKE_TEST(post_send__refused_by_librpma_LOGGED_WITH_INDEX)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[RT_POST_CHUNK + 2];

	fill(wrs, RT_POST_CHUNK + 2);
	wrs[0].op = RPMA_RT_OP_FETCH_ADD;
	wrs[0].local = fake_local;
	wrs[0].remote = fake_remote;
	wrs[RT_POST_CHUNK] = wrs[0];
	fake_logged();
	fake_fail("wr_fetch_add", 1, RPMA_E_INVAL);
	expect_said(rpma_rt_post_send(conn, wrs, 1), RPMA_E_INVAL,
		    "request 0 ");
	fake_fail("wr_fetch_add", 2, RPMA_E_NOSUPP);
	expect_said(rpma_rt_post_send(conn, wrs, RT_POST_CHUNK + 2),
		    RPMA_E_NOSUPP, "request 32 ");
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	expect_all_places(conn);
	fake_bury(f, &conn);
}

static void expect_not_yet(int ret)
{
	assert_int_equal(ret, RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NOT_YET);
}

/* Send: from ESTABLISHED on, and an early post gets a single WRITABLE, behind
 * ESTABLISHED; receive: from the request on; neither after CLOSED. */
FAKE_TEST(post__gates_AGAIN_open_CLOSED)
{
	struct rpma_rt_conn *conn = fake_request(f);

	expect_not_yet(fake_send(conn, 0, ALWAYS));
	ok(fake_recv(conn, 0));
	ok(rpma_rt_conn_accept(conn, NULL));
	fake_finish_down(f);
	expect_not_yet(fake_send(conn, 0, ALWAYS));
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_conn_event(conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_ESTABLISHED);
	assert_int_equal(f->items[1].kind, RPMA_RT_WRITABLE);
	assert_int_equal(f->items[1].opcode, RPMA_RT_SEND_SIDE);
	ok(fake_send(conn, 0, ALWAYS));
	ok(rpma_rt_conn_close(conn));
	assert_int_equal(fake_send(conn, 0, ALWAYS), RPMA_RT_E_CLOSED);
	assert_int_equal(fake_recv(conn, 0), RPMA_RT_E_CLOSED);
	fake_bury(f, &conn);
}

/* Receives of the active side, before there is a queue pair. */
FAKE_TEST(post__before_READY_AGAIN_then_one_WRITABLE)
{
	struct rpma_rt_conn *conn = NULL;

	ok(rpma_rt_conn_new(f->rt, "::1", "1", &f->rt_cfg, &conn));
	expect_not_yet(fake_recv(conn, 0));
	fake_finish_down(f);
	fake_conn_event(conn, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_conn_event(conn, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_READY);
	assert_int_equal(f->items[1].kind, RPMA_RT_WRITABLE);
	assert_int_equal(f->items[1].opcode, RPMA_RT_RECV_SIDE);
	ok(fake_recv(conn, 0));
	fake_bury(f, &conn);
}

/* At any index, also behind the first doorbell. */
FAKE_TEST(post__one_invalid_of_many_NONE_POSTED)
{
	const int bad[] = {0, 1, RT_POST_CHUNK - 1, RT_POST_CHUNK};
	struct rpma_rt_recv_wr recvs[RT_POST_CHUNK + 1];
	struct rpma_rt_wr wrs[RT_POST_CHUNK + 1];
	struct rpma_rt_conn *conn = fake_established(f);
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fill(wrs, RT_POST_CHUNK + 1);
		fill_recvs(recvs, RT_POST_CHUNK + 1);
		wrs[bad[i]].len = 1; /* of no region */
		recvs[bad[i]].len = 1;
		assert_int_equal(
			rpma_rt_post_send(conn, wrs, RT_POST_CHUNK + 1),
			RPMA_E_INVAL);
		assert_int_equal(
			rpma_rt_post_recv(conn, recvs, RT_POST_CHUNK + 1),
			RPMA_E_INVAL);
	}
	assert_string_equal(fake_trace(), "");
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NONE);
	expect_all_places(conn);
	fake_bury(f, &conn);
}

/* After a verb refused: nothing more is posted, the connection closes and says
 * why; count items come before CLOSED. */
static void expect_closing(struct fake *f, struct rpma_rt_conn *conn, int count)
{
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_NONE);
	assert_int_equal(fake_send(conn, 0, ALWAYS), RPMA_RT_E_CLOSED);
	assert_int_equal(fake_recv(conn, 0), RPMA_RT_E_CLOSED);
	fake_finish_down(f);
	fake_bury(f, &conn);
	assert_int_equal(f->got, count + 1);
	assert_int_equal(f->items[count].status, RPMA_RT_REASON_FAILED);
}

/*
 * Asserts that the i-th item is the completion with the context, posted or not.
 */
static void expect_outcome(const struct fake *f, int i, uint64_t context,
			   bool was_posted)
{
	const uint8_t flags =
		was_posted ? RPMA_RT_C_SYNTHESIZED : RPMA_RT_C_NOT_POSTED;

	assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[i].context, context);
	assert_int_equal(f->items[i].status, IBV_WC_GENERAL_ERR);
	assert_int_equal(f->items[i].flags, flags);
}

/* Work requests taken by the device have an outcome like others, refused work
 * requests are NOT_POSTED, all in order, also without a completion
 * otherwise. */
FAKE_TEST(post_send__device_takes_a_part_NOT_POSTED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[6];
	int i;

	fill(wrs, 6);
	wrs[4].flags = ON_ERROR;
	fake_fail("post_send", 4, RPMA_E_PROVIDER);
	assert_int_equal(rpma_rt_post_send(conn, wrs, 6), 6);
	assert_int_equal(fake_qp(conn)->sq_count, 3);
	expect_closing(f, conn, 6);
	for (i = 0; i < 6; i++)
		expect_outcome(f, i, (uint64_t)i, i < 3);
	assert_int_equal(f->items[3].opcode, IBV_WC_SEND);
}

/* A full queue where there was room is no AGAIN: no WRITABLE would follow. */
FAKE_TEST(post_send__device_takes_none_NOT_POSTED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wr = a_send(7);

	fake_fail("post_send", 1, RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_post_send(conn, &wr, 1), 1);
	expect_closing(f, conn, 1);
	expect_outcome(f, 0, 7, false);
}

/* Behind the work requests in the device, which end by their completions. */
FAKE_TEST(post_send__device_takes_no_more_IN_ORDER)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[2];

	fill(wrs, 2);
	assert_int_equal(rpma_rt_post_send(conn, wrs, 2), 2);
	fake_fail("post_send", 1, ENOMEM);
	ok(fake_send(conn, 2, ON_ERROR));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_sent(conn, 1, IBV_WC_WR_FLUSH_ERR);
	expect_closing(f, conn, 3);
	assert_int_equal(f->items[0].status, IBV_WC_SUCCESS);
	assert_int_equal(f->items[1].status, IBV_WC_WR_FLUSH_ERR);
	expect_outcome(f, 2, 2, false);
}

FAKE_TEST(post_recv__device_takes_a_part_NOT_POSTED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_recv_wr wrs[5];
	int i;

	fill_recvs(wrs, 5);
	fake_fail("post_recv", 5, ENOMEM);
	assert_int_equal(rpma_rt_post_recv(conn, wrs, 5), 5);
	expect_closing(f, conn, 5);
	for (i = 0; i < 5; i++)
		expect_outcome(f, i, (uint64_t)i, i < 4);
}

/* The second look finds retired work requests: no WRITABLE is owed. */
FAKE_TEST(post__retired_meanwhile_no_AGAIN)
{
	struct rpma_rt_conn *conn = fake_established(f);
	int i;

	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(conn, (uint64_t)i, ALWAYS));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	ok(fake_send(conn, 8, ALWAYS));
	assert_int_equal(fake_take(f, f->queue), 1);
	fake_bury(f, &conn);
}

FAKE_TEST(post__on_error_only_tagged)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(fake_send(conn, 3, ON_ERROR));
	ok(fake_send(conn, 4, ALWAYS));
	assert_true(fake_sq_id(conn, 0) & RT_ON_ERROR_ONLY);
	assert_false(fake_qp(conn)->signaled[0]);
	assert_false(fake_sq_id(conn, 1) & RT_ON_ERROR_ONLY);
	assert_true(fake_qp(conn)->signaled[1]);
	assert_int_equal(rt_wr_id_cookie(fake_sq_id(conn, 0)), 3);
	fake_bury(f, &conn);
}

/* Each operation: the call of librpma, and the opcode of a reported failure. */
FAKE_TEST(post_send__each_operation)
{
	static const struct {
		enum rpma_rt_op op;
		const char *call;
		enum ibv_wc_opcode opcode;
	} ops[] = {
		{RPMA_RT_OP_SEND, "wr_send", IBV_WC_SEND},
		{RPMA_RT_OP_SEND_WITH_IMM, "wr_send_with_imm", IBV_WC_SEND},
		{RPMA_RT_OP_WRITE, "wr_write", IBV_WC_RDMA_WRITE},
		{RPMA_RT_OP_WRITE_WITH_IMM, "wr_write_with_imm",
		 IBV_WC_RDMA_WRITE},
		{RPMA_RT_OP_READ, "wr_read", IBV_WC_RDMA_READ},
		{RPMA_RT_OP_FLUSH, "wr_flush", IBV_WC_RDMA_READ},
		{RPMA_RT_OP_ATOMIC_WRITE, "wr_atomic_write", IBV_WC_RDMA_WRITE},
	};
	const int count = sizeof(ops) / sizeof(ops[0]);
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wr;
	int i;

	for (i = 0; i < count; i++) {
		wr = a_send((uint64_t)i);
		wr.op = ops[i].op;
		if (i >= 5) /* flush, atomics */
			wr.remote = fake_remote;
		wr.flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
		fake_forget_trace();
		ok(fake_post_send(conn, &wr));
		assert_string_equal(fake_trace(), ops[i].call);
		fake_sent(conn, (uint32_t)i, IBV_WC_WR_FLUSH_ERR);
	}
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), count);
	for (i = 0; i < count; i++)
		assert_int_equal(f->items[i].opcode, ops[i].opcode);
	fake_bury(f, &conn);
}

/* --------------------------------------------------------------- links --- */

#define LONGEST (FAKE_SQ / 2 + 1)

/* Fills in so many sends, all in a single link. */
static void fill_link(struct rpma_rt_wr *wrs, int count, uint32_t flags)
{
	int i;

	for (i = 0; i < count; i++)
		wrs[i] = (struct rpma_rt_wr){
			.op = RPMA_RT_OP_SEND,
			.flags = i + 1 < count ? RPMA_RT_F_LINKED | flags : 0,
			.context = flags & RPMA_RT_F_PART && i + 1 < count
					   ? 0
					   : 10 + (uint64_t)i};
}

FAKE_TEST(link__no_last_or_too_long_INVAL)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[LONGEST + 1];

	fill_link(wrs, LONGEST + 1, 0);
	assert_int_equal(rpma_rt_post_send(conn, wrs, LONGEST + 1),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_post_send(conn, wrs, LONGEST), RPMA_E_INVAL);
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	assert_int_equal(rpma_rt_post_send(conn, wrs + 1, LONGEST), LONGEST);
	fake_bury(f, &conn);
}

/* However little may be ahead, room for the longest link comes. */
FAKE_TEST(link__longest_behind_silent_ones_WRITABLE)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[LONGEST];
	int i;

	fill_link(wrs, LONGEST, 0);
	for (i = 0; i < FAKE_SQ; i++) {
		ok(fake_send(conn, 1, ON_ERROR));
		if (rpma_rt_post_send(conn, wrs, LONGEST) == LONGEST)
			break;
		/* refused: then a signaled send is outstanding */
		assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_CREDIT);
		assert_true(fake_qp(conn)->signaled[i]);
		return fake_bury(f, &conn);
	}
	fake_bury(f, &conn);
}

FAKE_TEST(part__what_it_may_not_have_INVAL)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_wr wrs[2];

	fill_link(wrs, 2, RPMA_RT_F_PART);
	wrs[0].flags = RPMA_RT_F_PART;
	assert_int_equal(rpma_rt_post_send(conn, wrs, 2), RPMA_E_INVAL);
	fill_link(wrs, 2, RPMA_RT_F_PART);
	wrs[0].context = 1;
	assert_int_equal(rpma_rt_post_send(conn, wrs, 2), RPMA_E_INVAL);
	fill_link(wrs, 2, RPMA_RT_F_PART);
	wrs[0].flags |= ON_ERROR;
	assert_int_equal(rpma_rt_post_send(conn, wrs, 2), RPMA_E_INVAL);
	fill_link(wrs, 2, RPMA_RT_F_PART);
	wrs[0].route = &conn->own[RPMA_RT_SEND_SIDE];
	assert_int_equal(rpma_rt_post_send(conn, wrs, 2), RPMA_E_INVAL);
	assert_int_equal(fake_qp(conn)->sq_count, 0);
	fake_bury(f, &conn);
}

FAKE_TEST(one_each__as_in_a_batch)
{
	struct rpma_rt_conn *conn = fake_established(f);

	ok(rpma_rt_read(conn, NULL, 0, NULL, 0, 0, 0, 1));
	ok(rpma_rt_write(conn, NULL, 0, NULL, 0, 0, 0, 2));
	ok(rpma_rt_send(conn, NULL, 0, 0, ALWAYS, 3));
	ok(rpma_rt_send_with_imm(conn, NULL, 0, 0, 1, ON_ERROR, 4));
	ok(rpma_rt_write_with_imm(conn, NULL, 0, NULL, 0, 0, 1, 0, 5));
	ok(rpma_rt_flush(conn, fake_remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0,
			 6));
	ok(rpma_rt_atomic_write(conn, fake_remote, 0, "1234567", 0, 7));
	ok(rpma_rt_fetch_add(conn, fake_local, 0, fake_remote, 0, 1, 0, 8));
	assert_string_equal(fake_trace(),
			    "wr_read wr_write wr_send wr_send_with_imm "
			    "wr_write_with_imm wr_flush wr_atomic_write "
			    "wr_fetch_add");
	assert_int_equal(rt_wr_id_cookie(fake_sq_id(conn, 1)), 2);
	assert_true(fake_qp(conn)->signaled[0]);
	ok(rpma_rt_recv(conn, NULL, 0, 0, 9));
	assert_int_equal(rt_wr_id_cookie(fake_rq_id(conn, 0)), 9);
	fake_bury(f, &conn);
}

TEST_MAIN()
