/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Atomic writes and flushes, posted by ibv_wr_atomic_write() and
 * ibv_wr_flush(): requirements, effects, and the ends of forbidden operations.
 * Both functions are known to rdma-core 56, not to 44.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../vm/pmem.h"
#include "wire.h"

#if !defined(RPMA_HAVE_NATIVE_ATOMIC_WRITE) || !defined(RPMA_HAVE_NATIVE_FLUSH)

int main(void)
{
	puts("skipped: the rdma-core that this is built with knows neither "
	     "ibv_wr_flush() nor the capability of atomic writes; 56 does");
	return 77;
}

#else

#define OPS                                                       \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |        \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_WRITE | \
	 IBV_QP_EX_WITH_FLUSH)
#define CAPS                                                             \
	(IB_UVERBS_DEVICE_ATOMIC_WRITE | IB_UVERBS_DEVICE_FLUSH_GLOBAL | \
	 IB_UVERBS_DEVICE_FLUSH_PERSISTENT)
#define WORD 0x1122334455667788u

/* A connection with these rights, for a single operation. */
static struct ibv_qp_ex *ex;
static struct wire *w;

static uint64_t capabilities(void)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(dut.verbs, NULL, &attr), 0);
	return attr.device_cap_flags_ex;
}

static void connect_with(unsigned qp_access, int mr_access)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	fx_need((capabilities() & CAPS) == CAPS,
		"the device has no native atomic writes or flushes");
	opts.qp_access = qp_access;
	opts.mr_access = mr_access;
	w = wire_new_ex(&opts, OPS, &ex);
}

static void connect_all(void)
{
	connect_with(FX_REMOTE_ACCESS | IBV_ACCESS_FLUSH_GLOBAL |
			     IBV_ACCESS_FLUSH_PERSISTENT,
		     FX_ALL_ACCESS | IBV_ACCESS_FLUSH_GLOBAL);
}

static uint64_t there(uint32_t at)
{
	return (uintptr_t)w->b.buf + at;
}

static void start(uint64_t id)
{
	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

/* ---- atomic writes ---- */

static void post_atomic_write(uint64_t id, uint64_t to)
{
	const uint64_t word = WORD;

	start(id);
	ibv_wr_atomic_write(ex, w->b.mr->rkey, to, &word);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

static void atomic_write(uint64_t to, enum ibv_wc_status status)
{
	post_atomic_write(1, to);
	fx_expect(w->a.scq, 1, status);
}

FX_TEST(query__tells_what_there_is)
{
	fx_need((capabilities() & CAPS) == CAPS,
		"the device has no native atomic writes or flushes");
	/* the low half equals the old field */
	assert_int_equal((uint32_t)capabilities(), dut.attr.device_cap_flags);
}

FX_TEST(atomic_write__places_its_word)
{
	uint64_t got[3];
	struct ibv_wc wc;

	connect_all();
	memset(w->b.buf, 0xee, sizeof(got));
	post_atomic_write(1, there(8));
	wc = fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_ATOMIC_WRITE);
	memcpy(got, w->b.buf, sizeof(got));
	assert_true(got[0] == 0xeeeeeeeeeeeeeeeeu && got[1] == WORD &&
		    got[2] == 0xeeeeeeeeeeeeeeeeu);
}

FX_TEST(atomic_write__misaligned_fails)
{
	static const uint8_t nothing[32];

	connect_all();
	atomic_write(there(4), IBV_WC_REM_INV_REQ_ERR);
	assert_memory_equal(w->b.buf, nothing, sizeof(nothing));
}

FX_TEST(atomic_write__beyond_the_region_fails)
{
	connect_all();
	atomic_write(there(FX_BUF), IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(atomic_write__to_a_region_that_forbids_it_fails)
{
	connect_with(FX_REMOTE_ACCESS,
		     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	atomic_write(there(0), IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(atomic_write__to_a_qp_that_forbids_it_fails)
{
	connect_with(IBV_ACCESS_REMOTE_READ, FX_ALL_ACCESS);
	atomic_write(there(0), IBV_WC_REM_INV_REQ_ERR);
}

FX_TEST(atomic_write__is_ordered)
{
	const uint64_t word = WORD;

	connect_all();
	start(1);
	ibv_wr_atomic_write(ex, w->b.mr->rkey, there(64), &word);
	ex->wr_id = 2;
	ibv_wr_rdma_read(ex, w->b.mr->rkey, there(64));
	ibv_wr_set_sge(ex, w->a.mr->lkey, (uintptr_t)w->a.buf, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(w->a.buf, &word, sizeof(word));
}

/* ---- flushes ---- */

struct flush {
	uint64_t at; /* address */
	size_t len;
	uint8_t type;
	uint8_t level;
};

static int post_flush(uint64_t id, const struct flush *f)
{
	start(id);
	ibv_wr_flush(ex, w->b.mr->rkey, f->at, f->len, f->type, f->level);
	return ibv_wr_complete(ex);
}

static struct ibv_wc flush(struct flush f, enum ibv_wc_status status)
{
	assert_int_equal(post_flush(1, &f), 0);
	return fx_expect(w->a.scq, 1, status);
}

static struct flush whole(void)
{
	struct flush f = {there(0), FX_BUF, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE};

	return f;
}

FX_TEST(flush__completes_behind_writes)
{
	struct ibv_wc wc;

	connect_all();
	for (uint64_t i = 1; i < 50; ++i) {
		memset(w->a.buf, (int)i, 1024);
		start(1);
		ibv_wr_rdma_write(ex, w->b.mr->rkey, there(1024));
		ibv_wr_set_sge(ex, w->a.mr->lkey, (uintptr_t)w->a.buf, 1024);
		ex->wr_id = 2;
		ibv_wr_flush(ex, w->b.mr->rkey, there(1024), 1024,
			     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		assert_int_equal(ibv_wr_complete(ex), 0);
		fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
		wc = fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_FLUSH);
		assert_memory_equal(w->b.buf + 1024, w->a.buf, 1024);
	}
}

/* An announcing word is written only after the data. */
FX_TEST(flush__before_an_atomic_write)
{
	const uint64_t word = WORD;

	connect_all();
	start(1);
	ibv_wr_rdma_write(ex, w->b.mr->rkey, there(1024));
	ibv_wr_set_sge(ex, w->a.mr->lkey, (uintptr_t)w->a.buf, 1024);
	ibv_wr_flush(ex, w->b.mr->rkey, there(1024), 1024, IBV_FLUSH_GLOBAL,
		     IBV_FLUSH_RANGE);
	ex->wr_id = 2;
	ibv_wr_atomic_write(ex, w->b.mr->rkey, there(0), &word);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(w->b.buf, &word, sizeof(word));
}

FX_TEST(flush__of_the_whole_range)
{
	connect_all();
	flush(whole(), IBV_WC_SUCCESS);
}

FX_TEST(flush__of_nothing)
{
	struct flush f;

	connect_all();
	f = whole();
	f.len = 0;
	flush(f, IBV_WC_SUCCESS);
}

/* A level flushes the whole region; then the range is ignored. */
FX_TEST(flush__of_the_region)
{
	struct flush f = {.at = 8,
			  .len = 8,
			  .type = IBV_FLUSH_GLOBAL,
			  .level = IBV_FLUSH_MR};

	connect_all();
	flush(f, IBV_WC_SUCCESS);
}

/* Neither visible nor persistent: the flush waits for earlier operations. */
FX_TEST(flush__of_no_type)
{
	struct flush f;

	connect_all();
	f = whole();
	f.type = 0;
	flush(f, IBV_WC_SUCCESS);
}

FX_TEST(flush__beyond_the_region_fails)
{
	struct flush f;

	connect_all();
	f = whole();
	f.len++;
	flush(f, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(flush__by_a_wrong_rkey_fails)
{
	struct flush f;

	connect_all();
	f = whole();
	w->b.mr = w->a.mr; /* another domain's */
	flush(f, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(flush__of_a_region_that_forbids_it_fails)
{
	connect_with(FX_REMOTE_ACCESS | IBV_ACCESS_FLUSH_GLOBAL, FX_ALL_ACCESS);
	flush(whole(), IBV_WC_REM_ACCESS_ERR);
	/* another process has the event of its end */
	if (dut.traits->access_event && w->b.qp->context == dut.verbs)
		fx_expect_async(dut.verbs, IBV_EVENT_QP_ACCESS_ERR);
}

FX_TEST(flush__of_a_region_for_another_type_fails)
{
	struct flush f;

	connect_all();
	f = whole();
	f.type = IBV_FLUSH_PERSISTENT;
	flush(f, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(flush__to_a_qp_that_forbids_it_fails)
{
	connect_with(FX_REMOTE_ACCESS, FX_ALL_ACCESS | IBV_ACCESS_FLUSH_GLOBAL);
	flush(whole(), IBV_WC_REM_INV_REQ_ERR);
}

FX_TEST(flush__in_error_state_is_flushed)
{
	connect_all();
	wire_fail(w->a.qp);
	flush(whole(), IBV_WC_WR_FLUSH_ERR);
}

/* ---- flushes of persistent memory ---- */

#define BOTH (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

static int undo_pmem(void *at)
{
	return pmem_unmap(at, FX_BUF);
}

/* Returns FX_BUF bytes accepted by the device as persistent memory. */
static uint8_t *persistent_memory(void)
{
	uint8_t *at;

	if (dut.traits->any_memory_persists)
		return fx_alloc(FX_BUF);
	at = pmem_map(FX_BUF);
	fx_need(at, "the device takes persistent memory only, and "
		    "RPMA_TEST_PMEM names none");
	fx_keep(at, undo_pmem);
	memset(at, 0, FX_BUF);
	return at;
}

/* Gives end b such memory, in a region with these rights to flush. */
static void connect_persistent(unsigned qp_access, int flush_access)
{
	connect_with(FX_REMOTE_ACCESS | qp_access, FX_ALL_ACCESS);
	w->b.buf = persistent_memory();
	w->b.mr = fx_mr_at(w->b.pd, w->b.buf, FX_BUF,
			   FX_ALL_ACCESS | flush_access);
}

/* Posts a write, and then a flush of the kind, of the same bytes or of all. */
static void write_and_flush(uint8_t byte, uint8_t type, uint8_t level)
{
	struct ibv_wc wc;

	memset(w->a.buf, byte, 1024);
	start(1);
	ibv_wr_rdma_write(ex, w->b.mr->rkey, there(1024));
	ibv_wr_set_sge(ex, w->a.mr->lkey, (uintptr_t)w->a.buf, 1024);
	ex->wr_id = 2;
	ibv_wr_flush(ex, w->b.mr->rkey, there(1024), 1024, type, level);
	assert_int_equal(ibv_wr_complete(ex), 0);
	fx_expect(w->a.scq, 1, IBV_WC_SUCCESS);
	wc = fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_FLUSH);
	assert_memory_equal(w->b.buf + 1024, w->a.buf, 1024);
}

FX_TEST(flush__persistent_by_each_level)
{
	connect_persistent(BOTH, IBV_ACCESS_FLUSH_PERSISTENT);
	write_and_flush(1, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	write_and_flush(2, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
}

FX_TEST(flush__of_each_type_by_each_level)
{
	static const uint8_t types[] = {IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT,
					IBV_FLUSH_GLOBAL |
						IBV_FLUSH_PERSISTENT};

	connect_persistent(BOTH, BOTH);
	for (uint8_t i = 0; i < FX_COUNT(types); ++i) {
		write_and_flush((uint8_t)(2 * i + 1), types[i],
				IBV_FLUSH_RANGE);
		write_and_flush((uint8_t)(2 * i + 2), types[i], IBV_FLUSH_MR);
	}
}

FX_TEST(flush__global_of_what_persists_only_fails)
{
	struct flush f;

	connect_persistent(BOTH, IBV_ACCESS_FLUSH_PERSISTENT);
	f = whole();
	f.type = IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT;
	flush(f, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(flush__persistent_beyond_the_region_fails)
{
	struct flush f;

	connect_persistent(BOTH, BOTH);
	f = whole();
	f.type = IBV_FLUSH_PERSISTENT;
	f.at += 8;
	flush(f, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(flush__persistent_to_a_qp_that_forbids_it_fails)
{
	struct flush f;

	connect_persistent(IBV_ACCESS_FLUSH_GLOBAL, BOTH);
	f = whole();
	f.type = IBV_FLUSH_PERSISTENT;
	flush(f, IBV_WC_REM_INV_REQ_ERR);
}

FX_TEST(reg_mr__of_ordinary_memory_to_persist)
{
	struct ibv_mr *mr;

	fx_need((capabilities() & CAPS) == CAPS,
		"the device has no native atomic writes or flushes");
	mr = ibv_reg_mr(fx_pd(), fx_alloc(FX_BUF), FX_BUF,
			FX_ALL_ACCESS | IBV_ACCESS_FLUSH_PERSISTENT);
	if (mr)
		fx_keep_mr(mr);
	assert_int_equal(mr != NULL, dut.traits->any_memory_persists);
}

FX_TEST(wr__a_flush_of_no_such_kind_EINVAL)
{
	struct flush f[3];

	fx_need(dut.traits->post_checks_opcode, "the device takes any");
	connect_all();
	f[0] = f[1] = f[2] = whole();
	f[0].type = 4;
	f[1].level = 2;
	f[2].len = (size_t)UINT32_MAX + 1;
	for (unsigned i = 0; i < FX_COUNT(f); ++i)
		assert_int_equal(post_flush(1, &f[i]), EINVAL);
	flush(whole(), IBV_WC_SUCCESS);
}

/*
 * A work request of ibv_post_send() has no room for the arguments of a flush.
 */
FX_TEST(post_send__a_flush_EINVAL)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_FLUSH};

	fx_need(dut.traits->post_checks_opcode, "the device takes any opcode");
	connect_all();
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), EINVAL);
}

FX_TEST(create_qp_ex__flushes_of_uc_refused)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UC,
		.cap = {4, 4, 1, 1, 0},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH,
	};

	attr.pd = fx_pd();
	attr.send_cq = attr.recv_cq = fx_cq(8, NULL, NULL);
	assert_null(ibv_create_qp_ex(dut.verbs, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* Makes an end b that answers no operation of the kind of reads. */
static void answer_no_reads(void)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_qp_attr attr;
	int mask;

	opts.qp_access = FX_REMOTE_ACCESS | IBV_ACCESS_FLUSH_GLOBAL;
	wire_reset(w->b.qp);
	wire_move(&opts, w->b.qp, w->a.qp->qp_num, IBV_QPS_INIT);
	mask = wire_to_rtr(&opts, w->a.qp->qp_num, &attr);
	attr.max_dest_rd_atomic = 0;
	assert_int_equal(ibv_modify_qp(w->b.qp, &attr, mask), 0);
}

FX_TEST(atomic_write__takes_a_resource_of_reads)
{
	connect_all();
	answer_no_reads();
	atomic_write(there(0), IBV_WC_REM_INV_REQ_ERR);
}

FX_TEST(flush__takes_a_resource_of_reads)
{
	fx_need(dut.traits->flush_is_counted,
		"the device's flushes take no resource of reads");
	connect_all();
	answer_no_reads();
	flush(whole(), IBV_WC_REM_INV_REQ_ERR);
}

FX_MAIN("native")

#endif
