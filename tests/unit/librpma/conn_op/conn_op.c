/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the operations: their checks, and the WRs they post. */

#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define CTX	 ((void *)0x1111222233334444)

static int me;

static void begin(void)
{
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
}

/* The one posted: its opcode, context and flags. */
static const struct ibv_send_wr *sent(enum ibv_wr_opcode opcode, unsigned flags)
{
	assert_int_equal(mock_sent_count, 1);
	assert_int_equal(mock_sent[0].opcode, opcode);
	assert_int_equal(mock_sent[0].wr_id, (uintptr_t)CTX);
	assert_int_equal(mock_sent[0].send_flags, flags);
	assert_null(mock_sent[0].next);
	return &mock_sent[0];
}

static void expect_sge(const void *addr, uint32_t len, uint32_t lkey)
{
	assert_int_equal(mock_sent[0].num_sge, 1);
	assert_int_equal(mock_sent_sge[0].addr, (uintptr_t)addr);
	assert_int_equal(mock_sent_sge[0].length, len);
	assert_int_equal(mock_sent_sge[0].lkey, lkey);
}

static void expect_remote(size_t offset)
{
	assert_int_equal(mock_sent[0].wr.rdma.remote_addr,
			 (uintptr_t)world.mem + offset);
	assert_int_equal(mock_sent[0].wr.rdma.rkey, 0x22334455);
}

static void expect_nothing_remote(void)
{
	assert_int_equal(mock_sent[0].num_sge, 0);
	assert_null(mock_sent[0].sg_list);
	assert_int_equal(mock_sent[0].wr.rdma.remote_addr, 0);
	assert_int_equal(mock_sent[0].wr.rdma.rkey, 0);
}

static int do_read(void)
{
	return rpma_read(world.conn, world.mr, 1, world.remote, 2, 3, ALWAYS,
			 CTX);
}

static int do_write(void)
{
	return rpma_write(world.conn, world.remote, 4, world.mr, 5, 6, ON_ERROR,
			  CTX);
}

static int do_write_with_imm(void)
{
	return rpma_write_with_imm(world.conn, world.remote, 7, world.mr, 8, 9,
				   ALWAYS, 5, CTX);
}

static int do_atomic_write(void)
{
	return rpma_atomic_write(world.conn, world.remote, 16, "1234567",
				 ALWAYS, CTX);
}

static int do_flush(void)
{
	return rpma_flush(world.conn, world.remote, 10, 20,
			  RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CTX);
}

static int do_send(void)
{
	return rpma_send(world.conn, world.mr, 11, 12, ALWAYS, CTX);
}

static int do_send_with_imm(void)
{
	return rpma_send_with_imm(world.conn, world.mr, 13, 14, ON_ERROR,
				  0x12345678, CTX);
}

static int do_recv(void)
{
	return rpma_recv(world.conn, world.mr, 15, 16, CTX);
}

MOCK_TEST(read__POSTS)
{
	begin();
	ok(do_read());
	sent(IBV_WR_RDMA_READ, IBV_SEND_SIGNALED);
	expect_sge(world.mem + 1, 3, 0x11);
	expect_remote(2);
	ok(rpma_read(world.conn, NULL, 0, NULL, 0, 0, ON_ERROR, CTX));
	sent(IBV_WR_RDMA_READ, 0);
	expect_nothing_remote();
	world_end();
}

MOCK_TEST(write__POSTS)
{
	begin();
	ok(do_write());
	sent(IBV_WR_RDMA_WRITE, 0);
	expect_sge(world.mem + 5, 6, 0x11);
	expect_remote(4);
	ok(rpma_write(world.conn, NULL, 0, NULL, 0, 0, ALWAYS, CTX));
	sent(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
	expect_nothing_remote();
	/* the bit that asks for more than errors decides */
	ok(rpma_write(world.conn, NULL, 0, NULL, 0, 0, 2, CTX));
	sent(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
	ok(rpma_write(world.conn, NULL, 0, NULL, 0, 0, 4, CTX));
	sent(IBV_WR_RDMA_WRITE, 0);
	/* no length is one of the element, not none of it */
	ok(rpma_write(world.conn, world.remote, 0, world.mr, 0, 0, ALWAYS,
		      CTX));
	expect_sge(world.mem, 0, 0x11);
	world_end();
}

MOCK_TEST(write_with_imm__POSTS)
{
	begin();
	ok(do_write_with_imm());
	assert_int_equal(
		sent(IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED)->imm_data,
		htonl(5));
	expect_sge(world.mem + 8, 9, 0x11);
	expect_remote(7);
	world_end();
}

MOCK_TEST(atomic_write__emulated_IS_INLINE_AND_FENCED)
{
	begin();
	ok(do_atomic_write());
	sent(IBV_WR_RDMA_WRITE,
	     IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SIGNALED);
	assert_int_equal(mock_sent_sge[0].length, 8);
	assert_int_equal(mock_sent_sge[0].lkey, 0);
	expect_remote(16);
	ok(rpma_atomic_write(world.conn, world.remote, 8, "1234567", ON_ERROR,
			     CTX));
	sent(IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | IBV_SEND_FENCE);
	assert_int_equal(rpma_atomic_write(world.conn, world.remote, 9,
					   "1234567", ALWAYS, CTX),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_atomic_write(world.conn, world.remote, 8, NULL,
					   ALWAYS, CTX),
			 RPMA_E_INVAL);
	world_end();
}

MOCK_TEST(flush__emulated_READS_8_BYTES)
{
	begin();
	ok(do_flush());
	sent(IBV_WR_RDMA_READ, IBV_SEND_SIGNALED);
	assert_int_equal(mock_sent_sge[0].length, 8);
	expect_remote(10);
	ok(rpma_flush(world.conn, world.remote, 0, 0,
		      RPMA_FLUSH_TYPE_VISIBILITY, ON_ERROR, CTX));
	sent(IBV_WR_RDMA_READ, 0);
	/* what it reads does not depend on the length, so that may be any */
	ok(rpma_flush(world.conn, world.remote, 0, SIZE_MAX,
		      RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CTX));
	world_end();
}

static int flush_as(enum rpma_flush_type type)
{
	return rpma_flush(world.conn, world.remote, 0, 8, type, ALWAYS, CTX);
}

MOCK_TEST(flush__type_not_allowed_NOSUPP)
{
	const int usages[] = {RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			      RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT};
	struct rpma_peer_cfg *pcfg = NULL;
	int i;

	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	for (i = 0; i < 2; i++) {
		bool persistent =
			usages[i] == RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

		world_regions(usages[i]);
		world_conn(NULL);
		assert_int_equal(flush_as(RPMA_FLUSH_TYPE_PERSISTENT),
				 RPMA_E_NOSUPP);
		ok(rpma_conn_apply_remote_peer_cfg(world.conn, pcfg));
		assert_int_equal(flush_as(RPMA_FLUSH_TYPE_PERSISTENT),
				 persistent ? 0 : RPMA_E_NOSUPP);
		assert_int_equal(flush_as(RPMA_FLUSH_TYPE_VISIBILITY),
				 persistent ? RPMA_E_NOSUPP : 0);
		/* one it does not know is executed */
		ok(flush_as(2));
		world_end();
	}
	ok(rpma_peer_cfg_delete(&pcfg));
}

MOCK_TEST(send__POSTS)
{
	begin();
	ok(do_send());
	sent(IBV_WR_SEND, IBV_SEND_SIGNALED);
	expect_sge(world.mem + 11, 12, 0x11);
	ok(do_send_with_imm());
	assert_int_equal(sent(IBV_WR_SEND_WITH_IMM, 0)->imm_data,
			 htonl(0x12345678));
	expect_sge(world.mem + 13, 14, 0x11);
	ok(rpma_send(world.conn, NULL, 0, 0, ALWAYS, CTX));
	assert_int_equal(mock_sent[0].num_sge, 0);
	world_end();
}

MOCK_TEST(recv__POSTS)
{
	begin();
	ok(do_recv());
	assert_int_equal(mock_received_count, 1);
	assert_int_equal(mock_received[0].wr_id, (uintptr_t)CTX);
	assert_int_equal(mock_received_sge[0].addr, (uintptr_t)world.mem + 15);
	assert_int_equal(mock_received_sge[0].length, 16);
	ok(rpma_recv(world.conn, NULL, 0, 0, CTX));
	assert_int_equal(mock_received[0].num_sge, 0);
	world_end();
}

static int (*const operations[])(void) = {
	do_read,  do_write, do_write_with_imm, do_atomic_write,
	do_flush, do_send,  do_send_with_imm,  do_recv,
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

MOCK_TEST(every__post_fails_PROVIDER)
{
	const struct failure send_failures[] = {
		{"post_send", 1, ENOMEM, RPMA_E_PROVIDER, "post_send"},
		{"post_send", 1, EINVAL, RPMA_E_PROVIDER, "post_send"},
	};
	const struct failure recv_failures[] = {
		{"post_recv", 1, ENOMEM, RPMA_E_PROVIDER, "post_recv"},
	};
	size_t i;

	begin();
	for (i = 0; i < OPERATIONS; i++) {
		if (operations[i] == do_recv)
			EACH_FAILURE(operations[i], recv_failures);
		else
			EACH_FAILURE(operations[i], send_failures);
	}
	world_end();
}

MOCK_TEST(every__claimed_SHARED_CHANNEL)
{
	size_t i;

	begin();
	ok(rpma_conn_claim(world.conn, &me));
	for (i = 0; i < OPERATIONS; i++)
		assert_int_equal(operations[i](), RPMA_E_SHARED_CHANNEL);
	expect_trace("");
	ok(rpma_conn_release(world.conn, &me));
	world_end();
}

MOCK_TEST(every__qp_destroyed_INVAL)
{
	size_t i;

	begin();
	ok(rpma_conn_destroy_qp(world.conn, NULL));
	mocks_reset();
	for (i = 0; i < OPERATIONS; i++)
		assert_int_equal(operations[i](), RPMA_E_INVAL);
	expect_trace("");
	world_end();
}

MOCK_TEST(every__no_connection_INVAL)
{
	struct rpma_conn *conn;
	size_t i;

	begin();
	conn = world.conn;
	world.conn = NULL;
	for (i = 0; i < OPERATIONS; i++)
		assert_int_equal(operations[i](), RPMA_E_INVAL);
	expect_trace("");
	world.conn = conn;
	world_end();
}

/* read and write alike: both regions, or neither and no bytes */
static int rdma(bool read, bool local, size_t local_offset, bool remote,
		size_t remote_offset, size_t len, int flags)
{
	struct rpma_mr_remote *dst = remote ? world.remote : NULL;
	struct rpma_mr_local *src = local ? world.mr : NULL;

	if (read)
		return rpma_read(world.conn, src, local_offset, dst,
				 remote_offset, len, flags, CTX);
	assert_int_equal(rpma_write(world.conn, dst, remote_offset, src,
				    local_offset, len, flags, CTX),
			 rpma_write_with_imm(world.conn, dst, remote_offset,
					     src, local_offset, len, flags, 0,
					     CTX));
	return rpma_write(world.conn, dst, remote_offset, src, local_offset,
			  len, flags, CTX);
}

MOCK_TEST(rdma__arguments_INVAL)
{
	int read;

	begin();
	for (read = 0; read < 2; read++) {
		assert_int_equal(rdma(read, true, 0, true, 0, 1, 0),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, true, 0, false, 0, 1, ALWAYS),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, false, 0, true, 0, 1, ALWAYS),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, true, 0, false, 0, 0, ALWAYS),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, false, 0, true, 0, 0, ALWAYS),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, false, 1, false, 0, 0, ALWAYS),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, false, 0, false, 1, 0, ALWAYS),
				 RPMA_E_INVAL);
		assert_int_equal(rdma(read, false, 0, false, 0, 1, ALWAYS),
				 RPMA_E_INVAL);
	}
	expect_trace("");
	world_end();
}

/* The flags of 1.4, for each operation that has flags. */
static int with_flags(size_t op, int flags, size_t len)
{
	struct rpma_mr_remote *remote = world.remote;
	struct rpma_mr_local *mr = world.mr;

	switch (op) {
	case 0:
		return rpma_read(world.conn, mr, 0, remote, 0, len, flags, CTX);
	case 1:
		return rpma_write(world.conn, remote, 0, mr, 0, len, flags,
				  CTX);
	case 2:
		return rpma_write_with_imm(world.conn, remote, 0, mr, 0, len,
					   flags, 5, CTX);
	case 3:
		return rpma_atomic_write(world.conn, remote, 0, "1234567",
					 flags, CTX);
	case 4:
		return rpma_flush(world.conn, remote, 0, len,
				  RPMA_FLUSH_TYPE_VISIBILITY, flags, CTX);
	case 5:
		return rpma_send(world.conn, mr, 0, len, flags, CTX);
	default:
		return rpma_send_with_imm(world.conn, mr, 0, len, flags, 5,
					  CTX);
	}
}

static const struct {
	enum ibv_wr_opcode opcode;
	unsigned always;    /* flags of verbs that it has by itself */
	bool may_inline;    /* else RPMA_F_INLINE is refused */
	bool may_solicited; /* else RPMA_F_SOLICITED is refused */
} flagged[] = {
	{IBV_WR_RDMA_READ, 0, false, false},
	{IBV_WR_RDMA_WRITE, 0, true, false},
	{IBV_WR_RDMA_WRITE_WITH_IMM, 0, true, true},
	{IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | IBV_SEND_FENCE, false, false},
	{IBV_WR_RDMA_READ, 0, false, false},
	{IBV_WR_SEND, 0, true, true},
	{IBV_WR_SEND_WITH_IMM, 0, true, true},
};
#define FLAGGED (sizeof(flagged) / sizeof(flagged[0]))

static void flagged_is(size_t op, int flag, unsigned verbs, bool may)
{
	unsigned always = flagged[op].always;

	if (!may) {
		mocks_reset();
		assert_int_equal(with_flags(op, flag | ALWAYS, 8),
				 RPMA_E_INVAL);
		expect_trace("");
		return;
	}
	ok(with_flags(op, flag | ALWAYS, 8));
	sent(flagged[op].opcode, always | verbs | IBV_SEND_SIGNALED);
	ok(with_flags(op, flag | ON_ERROR, 8));
	sent(flagged[op].opcode, always | verbs);
	/* by itself: as with ON_ERROR */
	ok(with_flags(op, flag, 8));
	sent(flagged[op].opcode, always | verbs);
}

MOCK_TEST(flags__ARE_THOSE_OF_VERBS_OR_INVAL)
{
	size_t op;

	begin();
	for (op = 0; op < FLAGGED; op++) {
		flagged_is(op, RPMA_F_FENCE, IBV_SEND_FENCE, true);
		flagged_is(op, RPMA_F_INLINE, IBV_SEND_INLINE,
			   flagged[op].may_inline);
		flagged_is(op, RPMA_F_SOLICITED, IBV_SEND_SOLICITED,
			   flagged[op].may_solicited);
	}
	world_end();
}

MOCK_TEST(flags__no_connection_INVAL)
{
	struct rpma_conn *conn;
	size_t op;

	begin();
	conn = world.conn;
	world.conn = NULL;
	for (op = 0; op < FLAGGED; op++) {
		assert_int_equal(with_flags(op, ALWAYS | RPMA_F_FENCE, 8),
				 RPMA_E_INVAL);
		assert_int_equal(with_flags(op, ALWAYS | RPMA_F_INLINE, 8),
				 RPMA_E_INVAL);
	}
	expect_trace("");
	world.conn = conn;
	world_end();
}

/* Bits that mean nothing were ignored by 1.3, and are. */
MOCK_TEST(flags__unknown_ARE_IGNORED)
{
	const int known =
		ALWAYS | RPMA_F_FENCE | RPMA_F_INLINE | RPMA_F_SOLICITED;
	size_t op;
	int bit;

	begin();
	for (op = 0; op < FLAGGED; op++) {
		for (bit = 0; bit < 32; bit++) {
			int flag = (int)(1U << bit);

			if (flag & known)
				continue;
			ok(with_flags(op, flag, 8));
			sent(flagged[op].opcode, flagged[op].always);
		}
	}
	world_end();
}

/* 8 bytes unless the configuration asks for more. */
MOCK_TEST(inline__too_many_bytes_INVAL)
{
	struct rpma_conn_cfg *cfg = NULL;
	size_t op;

	begin();
	for (op = 0; op < FLAGGED; op++) {
		if (!flagged[op].may_inline)
			continue;
		mocks_reset();
		assert_int_equal(with_flags(op, RPMA_F_INLINE, 9),
				 RPMA_E_INVAL);
		expect_trace("");
		/* what is too long for that is not too long otherwise */
		ok(with_flags(op, RPMA_F_FENCE, 9));
		/* cut to 32 bits, the length would be 8 */
		mocks_reset();
		assert_int_equal(
			with_flags(op, RPMA_F_INLINE, (1ULL << 32) + 8),
			RPMA_E_INVAL);
		expect_trace("");
	}
	world_end();

	world_regions(WORLD_ALL_USAGES);
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_max_inline_data(cfg, 64));
	world_conn(cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	ok(with_flags(5, RPMA_F_INLINE, 64));
	assert_int_equal(with_flags(5, RPMA_F_INLINE, 65), RPMA_E_INVAL);
	world_end();
}

MOCK_TEST(messages__arguments_INVAL)
{
	const struct {
		bool mr;
		size_t offset;
		size_t len;
		int flags;
	} bad[] = {
		{true, 0, 1, 0},
		{false, 1, 0, ALWAYS},
		{false, 0, 1, ALWAYS},
	};
	size_t i;

	begin();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rpma_mr_local *mr = bad[i].mr ? world.mr : NULL;

		assert_int_equal(rpma_send(world.conn, mr, bad[i].offset,
					   bad[i].len, bad[i].flags, CTX),
				 RPMA_E_INVAL);
		assert_int_equal(rpma_send_with_imm(world.conn, mr,
						    bad[i].offset, bad[i].len,
						    bad[i].flags, 0, CTX),
				 RPMA_E_INVAL);
		if (mr == NULL)
			assert_int_equal(rpma_recv(world.conn, mr,
						   bad[i].offset, bad[i].len,
						   CTX),
					 RPMA_E_INVAL);
	}
	assert_int_equal(rpma_flush(world.conn, NULL, 0, 8, 1, ALWAYS, CTX),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_flush(world.conn, world.remote, 0, 8, 1, 0, CTX),
			 RPMA_E_INVAL);
	assert_int_equal(
		rpma_atomic_write(world.conn, NULL, 0, "1234567", ALWAYS, CTX),
		RPMA_E_INVAL);
	assert_int_equal(rpma_atomic_write(world.conn, world.remote, 0,
					   "1234567", 0, CTX),
			 RPMA_E_INVAL);
	expect_trace("");
	world_end();
}

TEST_MAIN()
