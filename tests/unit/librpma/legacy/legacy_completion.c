/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the calls from before 1.0 that take completions. */

#include "world.h"

#include <arpa/inet.h>
#include <string.h>

#include "legacy/legacy.h"

#define CTX	((void *)0x1111222233334444)
#define GARBAGE 0xa5

static int me;
static struct rpma_cq *cq;

/* What a program of 0.9 has behind its struct. */
struct guarded {
	struct rpma__completion_0_9 cmpl;
	unsigned char behind[16];
};

/* Each way to take a completion; the shorter struct is the start of the rest */
static int get_of_cq(struct rpma_completion *cmpl)
{
	return rpma_cq_get_completion(world.conn ? cq : NULL, cmpl);
}

static int get_of_conn(struct rpma_completion *cmpl)
{
	return rpma_conn_completion_get(world.conn, cmpl);
}

static int next_of_conn(struct rpma_completion *cmpl)
{
	return rpma_conn_next_completion(world.conn, cmpl);
}

static int get_0_9(struct rpma_completion *cmpl)
{
	return rpma__conn_completion_get_0_9(world.conn, (void *)cmpl);
}

static int next_0_9(struct rpma_completion *cmpl)
{
	return rpma__conn_next_completion_0_9(world.conn, (void *)cmpl);
}

static const struct way {
	const char *name;
	int (*get)(struct rpma_completion *cmpl);
	bool is_0_9;
} ways[] = {
	{"cq_get_completion", get_of_cq, false},
	{"conn_completion_get", get_of_conn, false},
	{"conn_next_completion", next_of_conn, false},
	{"conn_completion_get of 0.9", get_0_9, true},
	{"conn_next_completion of 0.9", next_0_9, true},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void begin(void)
{
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_conn_get_cq(world.conn, &cq));
}

static void deliver(const struct ibv_wc *wc)
{
	mock_wc = *wc;
	mock_wc.wr_id = (uintptr_t)CTX - 1;
	mock_poll_answer = 1;
}

static void deliver_nothing(void)
{
	memset(&mock_wc, 0, sizeof(mock_wc));
	mock_poll_answer = 0;
}

static bool is_garbage(const void *from, const void *end)
{
	const unsigned char *byte;

	for (byte = from; byte < (const unsigned char *)end; byte++)
		if (*byte != GARBAGE)
			return false;
	return true;
}

/* A call that may not write: all of cmpl is as it was. */
static int get_nothing(const struct way *way)
{
	struct rpma_completion cmpl;
	int ret;

	memset(&cmpl, GARBAGE, sizeof(cmpl));
	ret = way->get(&cmpl);
	if (!is_garbage(&cmpl, &cmpl + 1))
		fail_msg("%s wrote something", way->name);
	return ret;
}

MOCK_TEST(get__nothing_there_EACH_ANSWER)
{
	const struct {
		int answer;
		int ret;
	} answers[] = {
		{0, RPMA_E_NO_COMPLETION},
		{-1, RPMA_E_PROVIDER},
		{2, RPMA_E_UNKNOWN},
	};
	size_t i;
	size_t way;

	begin();
	for (way = 0; way < WAYS; way++) {
		for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
			mocks_reset();
			mock_poll_answer = answers[i].answer;
			assert_int_equal(get_nothing(&ways[way]),
					 answers[i].ret);
			expect_trace("poll(1)");
		}
	}
	deliver_nothing();
	world_end();
}

MOCK_TEST(get__arguments_INVAL)
{
	struct rpma_conn *conn;
	size_t way;

	begin();
	for (way = 0; way < WAYS; way++)
		assert_int_equal(ways[way].get(NULL), RPMA_E_INVAL);
	conn = world.conn;
	world.conn = NULL;
	for (way = 0; way < WAYS; way++)
		assert_int_equal(get_nothing(&ways[way]), RPMA_E_INVAL);
	world.conn = conn;
	expect_trace("");
	world_end();
}

/* The longer struct is all written but imm, the shorter ends before flags. */
MOCK_TEST(get__success_TRANSLATED)
{
	const struct {
		enum ibv_wc_opcode opcode;
		enum rpma_op op;
	} pairs[] = {
		{IBV_WC_RDMA_READ, RPMA_OP_READ},
		{IBV_WC_RDMA_WRITE, RPMA_OP_WRITE},
		{IBV_WC_SEND, RPMA_OP_SEND},
		{IBV_WC_RECV, RPMA_OP_RECV},
	};
	struct rpma_completion cmpl;
	size_t i;
	size_t way;

	begin();
	for (i = 0; i < WAYS * sizeof(pairs) / sizeof(pairs[0]); i++) {
		way = i % WAYS;
		deliver(&(struct ibv_wc){
			.opcode = pairs[i / WAYS].opcode,
			.byte_len = 77,
			.wc_flags = IBV_WC_GRH,
		});
		memset(&cmpl, GARBAGE, sizeof(cmpl));
		ok(ways[way].get(&cmpl));
		assert_ptr_equal(cmpl.op_context, CTX);
		assert_int_equal(cmpl.op, pairs[i / WAYS].op);
		assert_int_equal(cmpl.byte_len, 77);
		assert_int_equal(cmpl.op_status, IBV_WC_SUCCESS);
		if (ways[way].is_0_9)
			assert_true(is_garbage(&cmpl.flags, &cmpl + 1));
		else
			assert_int_equal(cmpl.flags, IBV_WC_GRH);
		assert_true(is_garbage(&cmpl.imm, &cmpl.imm + 1));
	}
	deliver_nothing();
	world_end();
}

MOCK_TEST(get__failed_CONTEXT_AND_STATUS_ONLY)
{
	struct rpma_completion cmpl;
	size_t way;

	begin();
	for (way = 0; way < WAYS; way++) {
		/* of a failed one the opcode may be anything */
		deliver(&(struct ibv_wc){
			.status = IBV_WC_WR_FLUSH_ERR,
			.opcode = IBV_WC_LOCAL_INV,
			.byte_len = 77,
			.wc_flags = IBV_WC_WITH_IMM,
		});
		memset(&cmpl, GARBAGE, sizeof(cmpl));
		ok(ways[way].get(&cmpl));
		assert_ptr_equal(cmpl.op_context, CTX);
		assert_int_equal(cmpl.op_status, IBV_WC_WR_FLUSH_ERR);
		assert_true(is_garbage(&cmpl.op, &cmpl.op_status));
		assert_true(is_garbage(&cmpl.flags, &cmpl + 1));
	}
	deliver_nothing();
	world_end();
}

MOCK_TEST(get__immediate_IN_HOST_ORDER)
{
	struct rpma_completion cmpl;
	size_t way;

	begin();
	for (way = 0; way < WAYS; way++) {
		deliver(&(struct ibv_wc){
			.opcode = IBV_WC_RECV,
			.wc_flags = IBV_WC_WITH_IMM,
			.imm_data = htonl(0x12345678),
		});
		memset(&cmpl, GARBAGE, sizeof(cmpl));
		ok(ways[way].get(&cmpl));
		assert_int_equal(cmpl.op, RPMA_OP_RECV);
		if (ways[way].is_0_9) {
			assert_true(is_garbage(&cmpl.flags, &cmpl + 1));
			continue;
		}
		assert_int_equal(cmpl.flags, IBV_WC_WITH_IMM);
		assert_int_equal(cmpl.imm, 0x12345678);
	}
	/* of a send it says nothing, whatever is in it */
	deliver(&(struct ibv_wc){
		.opcode = IBV_WC_SEND,
		.wc_flags = IBV_WC_WITH_IMM,
		.imm_data = 7,
	});
	memset(&cmpl, GARBAGE, sizeof(cmpl));
	ok(rpma_cq_get_completion(cq, &cmpl));
	assert_true(is_garbage(&cmpl.imm, &cmpl.imm + 1));
	deliver_nothing();
	world_end();
}

/* 0.9 had no word for it yet. */
MOCK_TEST(get__write_with_immediate_RECV_RDMA_WITH_IMM)
{
	struct rpma_completion cmpl;
	size_t way;

	begin();
	for (way = 0; way < WAYS; way++) {
		deliver(&(struct ibv_wc){
			.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
			.wc_flags = IBV_WC_WITH_IMM,
			.byte_len = 5,
			.imm_data = htonl(9),
		});
		if (ways[way].is_0_9) {
			assert_int_equal(get_nothing(&ways[way]),
					 RPMA_E_NOSUPP);
			continue;
		}
		ok(ways[way].get(&cmpl));
		assert_int_equal(cmpl.op, RPMA_OP_RECV_RDMA_WITH_IMM);
		assert_int_equal(cmpl.byte_len, 5);
		assert_int_equal(cmpl.imm, 9);
	}
	deliver_nothing();
	world_end();
}

/* Bound windows, native flushes, ... : taken, and no word for it. */
MOCK_TEST(get__other_opcode_NOSUPP)
{
	const int opcodes[] = {IBV_WC_COMP_SWAP,
			       IBV_WC_BIND_MW,
			       IBV_WC_LOCAL_INV,
			       IBV_WC_TM_RECV,
			       12, /* of no rdma-core: 8 and 9 are 56's */
			       13};
	size_t i;

	begin();
	for (i = 0; i < WAYS * sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		mocks_reset();
		deliver(&(struct ibv_wc){
			.opcode = (enum ibv_wc_opcode)opcodes[i / WAYS],
		});
		assert_int_equal(get_nothing(&ways[i % WAYS]), RPMA_E_NOSUPP);
		expect_trace("poll(1)");
	}
	deliver_nothing();
	world_end();
}

/* In the words of a program of 0.9: nothing behind its 24 bytes. */
MOCK_TEST(get__0_9_STAYS_WITHIN_ITS_STRUCT)
{
	struct guarded guarded;

	assert_int_equal(sizeof(guarded.cmpl), 24);
	begin();
	deliver(&(struct ibv_wc){
		.opcode = IBV_WC_RECV,
		.wc_flags = IBV_WC_WITH_IMM,
		.imm_data = 1,
	});
	memset(&guarded, GARBAGE, sizeof(guarded));
	ok(rpma__conn_completion_get_0_9(world.conn, &guarded.cmpl));
	ok(rpma__conn_next_completion_0_9(world.conn, &guarded.cmpl));
	assert_int_equal(guarded.cmpl.op, RPMA_OP_RECV);
	assert_true(is_garbage(guarded.behind, &guarded + 1));
	deliver_nothing();
	world_end();
}

/* Taking completions of a connection, or a CQ, that another has claimed. */
MOCK_TEST(get__claimed_SHARED_CHANNEL)
{
	size_t way;

	begin();
	for (way = 0; way < WAYS; way++) {
		ok(rpma_cq_claim(cq, &me));
		assert_int_equal(get_nothing(&ways[way]),
				 RPMA_E_SHARED_CHANNEL);
		ok(rpma_cq_release(cq, &me));
		if (ways[way].get == get_of_cq)
			continue;
		ok(rpma_conn_claim(world.conn, &me));
		assert_int_equal(get_nothing(&ways[way]),
				 RPMA_E_SHARED_CHANNEL);
		ok(rpma_conn_release(world.conn, &me));
	}
	expect_trace("");
	world_end();
}

TEST_MAIN()
