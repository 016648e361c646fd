/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of the native atomic write and flush, in a librpma built as with
 * a newer rdma-core.
 */

#include "world.h"

#include <errno.h>
#include <string.h>

#include "verbs_compat.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

static struct ibv_qp_ex qpx;
static uint64_t written;

static void wr_start(struct ibv_qp_ex *qp)
{
	(void)qp;
	(void)mock_enter("start", "%s", "");
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	(void)qp;
	return mock_enter("complete", "%s", "");
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey,
			    uint64_t remote_addr, const void *data)
{
	(void)mock_enter("atomic_write", "(%lu, 0x%x, +%lu, 0x%x)",
			 (unsigned long)qp->wr_id, qp->wr_flags,
			 (unsigned long)(remote_addr - (uintptr_t)world.mem),
			 rkey);
	memcpy(&written, data, sizeof(written));
}

/* id, flags, where, how much, placement, what is selected */
static void native_flush(struct ibv_qp_ex *qp, uint64_t remote_addr, size_t len,
			 unsigned type, unsigned level)
{
	(void)mock_enter("flush", "(%lu, 0x%x, +%lu, %zu, %u, %u)",
			 (unsigned long)qp->wr_id, qp->wr_flags,
			 (unsigned long)(remote_addr - (uintptr_t)world.mem),
			 len, type, level);
}

#ifdef MOCK_FLUSH
static void bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		    const struct ibv_mw_bind_info *info)
{
	(void)qp;
	(void)mw;
	(void)rkey;
	(void)info;
}

void ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
		  size_t len, uint8_t type, uint8_t level)
{
	(void)rkey;
	native_flush(qp, remote_addr, len, type, level);
}

#define FLUSH_SLOT bind_mw
#else
static void flush_slot(struct ibv_qp_ex *qp, uint32_t rkey,
		       uint64_t remote_addr, size_t len, uint8_t type,
		       uint8_t level)
{
	(void)rkey;
	native_flush(qp, remote_addr, len, type, level);
}

#define FLUSH_SLOT flush_slot
#endif

/* A device and QPs that can do these. */
static void begin(bool atomic_write, bool flush)
{
	uint64_t caps = 0;

	if (atomic_write)
		caps |= IB_UVERBS_DEVICE_ATOMIC_WRITE;
	if (flush)
		caps |= IB_UVERBS_DEVICE_FLUSH_GLOBAL |
			IB_UVERBS_DEVICE_FLUSH_PERSISTENT;
	mock_attr.device_cap_flags_ex = caps;
	qpx = (struct ibv_qp_ex){
		.wr_start = wr_start,
		.wr_complete = wr_complete,
		.wr_atomic_write = atomic_write ? wr_atomic_write : NULL,
		.wr_flush = flush ? FLUSH_SLOT : NULL,
	};
	mock_qpx = &qpx;
	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
}

static void end(void)
{
	world_end();
	mock_attr.device_cap_flags_ex = 0;
	mock_qpx = NULL;
}

MOCK_TEST(caps__flush_NEEDS_BOTH_TYPES)
{
	struct rpma__caps caps;

	mock_attr.device_cap_flags_ex = IB_UVERBS_DEVICE_FLUSH_GLOBAL;
	ok(rpma__caps_query(MOCK_CTX, &caps));
	assert_false(caps.native_flush);
	mock_attr.device_cap_flags_ex |= IB_UVERBS_DEVICE_FLUSH_PERSISTENT;
	ok(rpma__caps_query(MOCK_CTX, &caps));
	assert_true(caps.native_flush);
	assert_false(caps.native_atomic_write);
	mock_attr.device_cap_flags_ex = 0;
}

/* Many providers refuse the mask bit: only QPs that need it have it. */
MOCK_TEST(qp__operations_ASKED_FOR_IF_THERE)
{
	begin(false, false);
	assert_int_equal(mock_qp_attr.comp_mask, IBV_QP_INIT_ATTR_PD);
	assert_int_equal(mock_qp_attr.send_ops_flags, 0);
	end();
	begin(true, false);
	assert_int_equal(mock_qp_attr.comp_mask,
			 IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
	assert_int_equal(mock_qp_attr.send_ops_flags,
			 IBV_QP_EX_WITH_ATOMIC_WRITE);
	end();
	begin(true, true);
	assert_int_equal(mock_qp_attr.send_ops_flags,
			 IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH);
	end();
}

MOCK_TEST(atomic_write__native)
{
	begin(true, true);
	ok(rpma_atomic_write(world.conn, world.remote, 8, "1234567", ALWAYS,
			     (void *)5));
	expect_trace("start atomic_write(5, 0x2, +8, 0x22334455) complete");
	assert_memory_equal(&written, "1234567", 8);
	mocks_reset();
	ok(rpma_atomic_write(world.conn, world.remote, 0, "1234567", 1, NULL));
	expect_trace("start atomic_write(0, 0x0, +0, 0x22334455) complete");
	mocks_reset();
	ok(rpma_atomic_write(world.conn, world.remote, 0, "1234567",
			     RPMA_F_FENCE, NULL));
	expect_trace("start atomic_write(0, 0x1, +0, 0x22334455) complete");
	mock_fail("complete", 1, ENOMEM);
	assert_int_equal(rpma_atomic_write(world.conn, world.remote, 8,
					   "1234567", ALWAYS, NULL),
			 RPMA_E_PROVIDER);
	end();
}

MOCK_TEST(flush__native_HAS_NO_BUFFER)
{
	struct rpma_peer_cfg *pcfg = NULL;

	begin(false, true);
	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	ok(rpma_conn_apply_remote_peer_cfg(world.conn, pcfg));
	ok(rpma_flush(world.conn, world.remote, 8, 16,
		      RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, (void *)5));
	ok(rpma_flush(world.conn, world.remote, 0, 64,
		      RPMA_FLUSH_TYPE_PERSISTENT, 1, (void *)6));
	ok(rpma_flush(world.conn, world.remote, 0, 64, 7, RPMA_F_FENCE,
		      (void *)7));
	expect_trace("start flush(5, 0x2, +8, 16, 1, 0) complete "
		     "start flush(6, 0x0, +0, 64, 2, 0) complete "
		     "start flush(7, 0x1, +0, 64, 0, 0) complete");
	ok(rpma_peer_cfg_delete(&pcfg));
	mocks_reset();
	ok(rpma_conn_delete(&world.conn));
	expect_trace("destroy_qp destroy_cq(10) destroy_ch destroy_id "
		     "destroy_evch");
	end();
}

static int flush_bytes(size_t len)
{
	return rpma_flush(world.conn, world.remote, 0, len,
			  RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, (void *)5);
}

/* Verbs take 32 bits: what is longer is refused, in words, and not cut. */
MOCK_TEST(flush__native_TOO_LONG_INVAL)
{
	const size_t most = UINT32_MAX;
	struct rpma_send_wr wr;

	begin(false, true);
	mocks_listen();
	assert_int_equal(flush_bytes(most + 1), RPMA_E_INVAL);
	expect_said("len: a native flush has up to 4294967295 bytes, not "
		    "4294967296");
	assert_int_equal(flush_bytes(SIZE_MAX), RPMA_E_INVAL);
	assert_int_equal(rpma_wr_flush(world.conn, world.remote, 0, most + 17,
				       RPMA_FLUSH_TYPE_VISIBILITY,
				       ALWAYS | RPMA_F_FENCE, 5, &wr),
			 RPMA_E_INVAL);
	assert_int_equal(mocks_said_count(), 3);
	expect_trace("");
	ok(flush_bytes(most));
	expect_trace("start flush(5, 0x2, +0, 4294967295, 1, 0) complete");
	end();
}

/* Whoever flushes by reading may do so too. */
MOCK_TEST(access__flush_NATIVE_AND_BY_READ)
{
	struct rpma_mr_local *mr = NULL;

	begin(false, true);
	ok(rpma_mr_reg(world.peer, world.mem, 8,
		       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr));
	assert_int_equal(mock_access,
			 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_REMOTE_READ);
	ok(rpma_mr_dereg(&mr));
	ok(rpma_mr_reg(world.peer, world.mem, 8,
		       RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, &mr));
	assert_int_equal(mock_access,
			 IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_REMOTE_READ);
	ok(rpma_mr_dereg(&mr));
	end();
}

/* write, atomic write, flush, send, send: each run has its own doorbell */
/* Programs from before there were any know reads and writes. */
MOCK_TEST(completion__native_OLD_PROGRAMS_SEE_READ_AND_WRITE)
{
	assert_int_equal(rpma__wc_emulated(IBV_WC_FLUSH), IBV_WC_RDMA_READ);
	assert_int_equal(rpma__wc_emulated(IBV_WC_ATOMIC_WRITE),
			 IBV_WC_RDMA_WRITE);
	assert_int_equal(rpma__wc_emulated(IBV_WC_SEND), IBV_WC_SEND);
}

static void make_chain(struct rpma_send_wr *wr)
{
	int i;

	ok(rpma_wr_write(world.conn, NULL, 0, NULL, 0, 0, ALWAYS, 0, &wr[0]));
	ok(rpma_wr_atomic_write(world.conn, world.remote, 8, "1234567", ALWAYS,
				1, &wr[1]));
	ok(rpma_wr_flush(world.conn, world.remote, 0, 8,
			 RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, 2, &wr[2]));
	ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 3, &wr[3]));
	ok(rpma_wr_send(world.conn, NULL, 0, 0, ALWAYS, 4, &wr[4]));
	for (i = 0; i < 4; i++)
		wr[i].wr.next = &wr[i + 1].wr;
}

MOCK_TEST(chain__mixed_KEEPS_ITS_ORDER)
{
	struct rpma_send_wr wr[5];
	struct rpma_send_wr *bad = NULL;

	begin(true, true);
	make_chain(wr);
	ok(rpma_conn_post_send(world.conn, NULL, wr, &bad));
	expect_trace("post_send start "
		     "atomic_write(1, 0x2, +8, 0x22334455) "
		     "flush(2, 0x2, +0, 8, 1, 0) complete post_send(2)");
	assert_int_equal(mock_sent_count, 2);
	assert_int_equal(mock_sent[0].wr_id, 3);
	/* the chain is as it was */
	assert_ptr_equal(wr[0].wr.next, &wr[1]);
	assert_ptr_equal(wr[2].wr.next, &wr[3]);
	end();
}

/* The device orders its own flush before the write, but not a read. */
MOCK_TEST(atomic_write__behind_an_emulated_flush_IS_FENCED)
{
	begin(true, false);
	ok(rpma_flush(world.conn, world.remote, 8, 16,
		      RPMA_FLUSH_TYPE_VISIBILITY, 1, (void *)5));
	assert_int_equal(mock_sent[0].opcode, IBV_WR_RDMA_READ);
	ok(rpma_atomic_write(world.conn, world.remote, 8, "1234567", ALWAYS,
			     (void *)6));
	/* 0x3: signaled and fenced */
	expect_trace("post_send start atomic_write(6, 0x3, +8, 0x22334455) "
		     "complete");
	end();
}

MOCK_TEST(chain__native_refused_IS_THE_FIRST_OF_ITS_RUN)
{
	struct rpma_send_wr wr[5];
	struct rpma_send_wr *bad = NULL;

	begin(true, true);
	make_chain(wr);
	mock_fail("complete", 1, ENOMEM);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_AGAIN);
	assert_ptr_equal(bad, &wr[1]);
	mock_fail("post_send", 2, EINVAL);
	assert_int_equal(rpma_conn_post_send(world.conn, NULL, wr, &bad),
			 RPMA_E_PROVIDER);
	assert_ptr_equal(bad, &wr[3]);
	end();
}

TEST_MAIN()
