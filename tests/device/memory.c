/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Registration, and protection at both ends: a key opens the bytes of a region,
 * in the domain of the region, for the registered access, until the region is
 * deregistered, and nothing else.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "wire.h"

#define OURS   0xa5
#define THEIRS 0x5a

typedef void (*spoil)(struct wire *w, struct ibv_send_wr *wr,
		      struct ibv_sge *sge);

static const struct op send_op = {.code = IBV_WR_SEND,
				  .id = 11,
				  .flags = IBV_SEND_SIGNALED,
				  .at = 64,
				  .len = 8};
static const struct op write_op = {.code = IBV_WR_RDMA_WRITE,
				   .id = 12,
				   .flags = IBV_SEND_SIGNALED,
				   .at = 64,
				   .len = 8,
				   .to = 128};
static const struct op read_op = {.code = IBV_WR_RDMA_READ,
				  .id = 13,
				  .flags = IBV_SEND_SIGNALED,
				  .at = 64,
				  .len = 8,
				  .to = 128};
static const struct op add_op = {.code = IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .id = 14,
				 .flags = IBV_SEND_SIGNALED,
				 .at = 64,
				 .len = 8,
				 .to = 128,
				 .add = 1};
static const struct op swap_op = {.code = IBV_WR_ATOMIC_CMP_AND_SWP,
				  .id = 15,
				  .flags = IBV_SEND_SIGNALED,
				  .at = 64,
				  .len = 8,
				  .to = 128,
				  .add = UINT64_C(0x5a5a5a5a5a5a5a5a)};

static void set_rkey(struct ibv_send_wr *wr, uint32_t rkey)
{
	if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ)
		wr->wr.rdma.rkey = rkey;
	else
		wr->wr.atomic.rkey = rkey;
}

static void set_raddr(struct ibv_send_wr *wr, const uint8_t *addr)
{
	if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ)
		wr->wr.rdma.remote_addr = (uintptr_t)addr;
	else
		wr->wr.atomic.remote_addr = (uintptr_t)addr;
}

static void assert_untouched(const struct end *end, uint8_t pattern)
{
	for (size_t i = 0; i < FX_BUF; ++i)
		assert_int_equal(end->buf[i], pattern);
}

static void assert_in_error(struct ibv_qp *qp)
{
	struct fx_deadline d = fx_deadline();
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	do {
		fx_check(&d, "the move to the error state");
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init),
				 0);
	} while (attr.qp_state != IBV_QPS_ERR);
}

/* A WR on a new connection must fail so, and change no byte. */
static void fails(const struct wire_opts *opts, const struct op *op,
		  spoil spoiler, enum ibv_wc_status status)
{
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	size_t mark = fx_mark();
	struct wire *w = wire_new(opts);

	memset(w->a.buf, OURS, FX_BUF);
	memset(w->b.buf, THEIRS, FX_BUF);
	assert_int_equal(wire_recv(&w->b, 20, 0, 64), 0);
	wire_wr(&w->a, op, &wr, &sge);
	if (spoiler)
		spoiler(w, &wr, &sge);
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, op->id, status);
	assert_in_error(w->a.qp);
	assert_untouched(&w->a, OURS);
	assert_untouched(&w->b, THEIRS);
	fx_release(mark);
}

/* Atomics without a change: the device may find out after the other end. */
static void fails_locally(spoil spoiler)
{
	struct op add = add_op;
	struct op swap = swap_op;

	add.add = 0;
	swap.swap = swap.add;
	fails(NULL, &send_op, spoiler, dut.traits->bad_gather);
	fails(NULL, &write_op, spoiler, dut.traits->bad_gather);
	fails(NULL, &read_op, spoiler, IBV_WC_LOC_PROT_ERR);
	fails(NULL, &add, spoiler, IBV_WC_LOC_PROT_ERR);
	fails(NULL, &swap, spoiler, IBV_WC_LOC_PROT_ERR);
}

static void fails_remotely(spoil spoiler)
{
	fails(NULL, &write_op, spoiler, IBV_WC_REM_ACCESS_ERR);
	fails(NULL, &read_op, spoiler, IBV_WC_REM_ACCESS_ERR);
	fails(NULL, &add_op, spoiler, IBV_WC_REM_ACCESS_ERR);
	fails(NULL, &swap_op, spoiler, IBV_WC_REM_ACCESS_ERR);
}

static void wrong_lkey(struct wire *w, struct ibv_send_wr *wr,
		       struct ibv_sge *sge)
{
	(void)w;
	(void)wr;
	sge->lkey ^= 0x55;
}

static void lkey_of_other_pd(struct wire *w, struct ibv_send_wr *wr,
			     struct ibv_sge *sge)
{
	(void)wr;
	sge->lkey = fx_mr_at(fx_pd(), w->a.buf, FX_BUF, FX_ALL_ACCESS)->lkey;
}

static void stale_lkey(struct wire *w, struct ibv_send_wr *wr,
		       struct ibv_sge *sge)
{
	struct ibv_mr *mr = fx_mr_at(w->a.pd, w->a.buf, FX_BUF, FX_ALL_ACCESS);

	(void)wr;
	sge->lkey = mr->lkey;
	assert_int_equal(fx_destroy(mr), 0);
}

static void local_past_end(struct wire *w, struct ibv_send_wr *wr,
			   struct ibv_sge *sge)
{
	(void)wr;
	sge->addr = (uintptr_t)w->a.buf + FX_BUF - 7;
}

static void local_before_start(struct wire *w, struct ibv_send_wr *wr,
			       struct ibv_sge *sge)
{
	struct ibv_mr *mr =
		fx_mr_at(w->a.pd, w->a.buf + 4096, 4096, FX_ALL_ACCESS);

	(void)wr;
	sge->lkey = mr->lkey;
	sge->addr = (uintptr_t)w->a.buf + 4095;
}

FX_TEST(lkey__unknown_fails)
{
	fails_locally(wrong_lkey);
}

FX_TEST(lkey__other_pd_fails)
{
	fails_locally(lkey_of_other_pd);
}

FX_TEST(lkey__deregistered_fails)
{
	fails_locally(stale_lkey);
}

FX_TEST(lkey__past_end_fails)
{
	fails_locally(local_past_end);
}

FX_TEST(lkey__before_start_fails)
{
	fails_locally(local_before_start);
}

FX_TEST(lkey__read_into_readonly_LOC_PROT_ERR)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.mr_access = IBV_ACCESS_REMOTE_READ;
	fails(&opts, &read_op, NULL, IBV_WC_LOC_PROT_ERR);
}

static void wrong_rkey(struct wire *w, struct ibv_send_wr *wr,
		       struct ibv_sge *sge)
{
	(void)sge;
	set_rkey(wr, w->b.mr->rkey ^ 0x55);
}

static void rkey_of_other_pd(struct wire *w, struct ibv_send_wr *wr,
			     struct ibv_sge *sge)
{
	(void)sge;
	set_rkey(wr, fx_mr_at(fx_pd(), w->b.buf, FX_BUF, FX_ALL_ACCESS)->rkey);
}

static void stale_rkey(struct wire *w, struct ibv_send_wr *wr,
		       struct ibv_sge *sge)
{
	struct ibv_mr *mr = fx_mr_at(w->b.pd, w->b.buf, FX_BUF, FX_ALL_ACCESS);

	(void)sge;
	set_rkey(wr, mr->rkey);
	assert_int_equal(fx_destroy(mr), 0);
}

static void stale_rkey_with_successor(struct wire *w, struct ibv_send_wr *wr,
				      struct ibv_sge *sge)
{
	stale_rkey(w, wr, sge);
	fx_mr_at(w->b.pd, w->b.buf, FX_BUF, FX_ALL_ACCESS);
}

static void remote_past_end(struct wire *w, struct ibv_send_wr *wr,
			    struct ibv_sge *sge)
{
	(void)sge;
	set_raddr(wr, w->b.buf + FX_BUF);
}

static void remote_before_start(struct wire *w, struct ibv_send_wr *wr,
				struct ibv_sge *sge)
{
	struct ibv_mr *mr =
		fx_mr_at(w->b.pd, w->b.buf + 4096, 4096, FX_ALL_ACCESS);

	(void)sge;
	set_rkey(wr, mr->rkey);
	set_raddr(wr, w->b.buf + 4088);
}

static void remote_wraps(struct wire *w, struct ibv_send_wr *wr,
			 struct ibv_sge *sge)
{
	(void)w;
	(void)sge;
	set_raddr(wr, (const uint8_t *)(uintptr_t)(UINT64_MAX - 7));
}

static void rkey_of_neighbour(struct wire *w, struct ibv_send_wr *wr,
			      struct ibv_sge *sge)
{
	struct ibv_mr *mr =
		fx_mr_at(w->b.pd, w->b.buf + 4096, 4096, FX_ALL_ACCESS);

	(void)sge;
	set_rkey(wr, mr->rkey);
}

FX_TEST(rkey__unknown_REM_ACCESS_ERR)
{
	fails_remotely(wrong_rkey);
}

FX_TEST(rkey__other_pd_REM_ACCESS_ERR)
{
	fails_remotely(rkey_of_other_pd);
}

FX_TEST(rkey__deregistered_REM_ACCESS_ERR)
{
	fails_remotely(stale_rkey);
	fails_remotely(stale_rkey_with_successor);
}

FX_TEST(rkey__out_of_bounds_REM_ACCESS_ERR)
{
	fails_remotely(remote_past_end);
	fails_remotely(remote_before_start);
	fails_remotely(remote_wraps);
}

FX_TEST(rkey__of_another_region_REM_ACCESS_ERR)
{
	fails_remotely(rkey_of_neighbour);
}

static void fails_without(int access, const struct op *op)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.mr_access = FX_ALL_ACCESS & ~access;
	fails(&opts, op, NULL, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(rkey__access_not_granted_REM_ACCESS_ERR)
{
	fails_without(IBV_ACCESS_REMOTE_WRITE, &write_op);
	fails_without(IBV_ACCESS_REMOTE_READ, &read_op);
	fails_without(IBV_ACCESS_REMOTE_ATOMIC, &add_op);
	fails_without(IBV_ACCESS_REMOTE_ATOMIC, &swap_op);
}

static void fails_by_qp(unsigned access, const struct op *op)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.qp_access = FX_REMOTE_ACCESS & ~access;
	fails(&opts, op, NULL, IBV_WC_REM_INV_REQ_ERR);
}

FX_TEST(qp_access__not_granted_REM_INV_REQ_ERR)
{
	fails_by_qp(IBV_ACCESS_REMOTE_WRITE, &write_op);
	fails_by_qp(IBV_ACCESS_REMOTE_READ, &read_op);
	fails_by_qp(IBV_ACCESS_REMOTE_ATOMIC, &add_op);
	fails_by_qp(IBV_ACCESS_REMOTE_ATOMIC, &swap_op);
}

static void recv_fails(uint32_t key_change, uint32_t offset, uint32_t len,
		       enum ibv_wc_status here, enum ibv_wc_status there)
{
	size_t mark = fx_mark();
	struct wire *w = wire_new(NULL);
	struct ibv_sge sge = {(uintptr_t)w->b.buf + offset, len,
			      w->b.mr->lkey ^ key_change};
	struct ibv_recv_wr wr = {.wr_id = 31, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	memset(w->b.buf, THEIRS, FX_BUF);
	assert_int_equal(ibv_post_recv(w->b.qp, &wr, &bad), 0);
	assert_int_equal(wire_send(&w->a, 32), 0);
	fx_expect(w->b.rcq, 31, here);
	fx_expect(w->a.scq, 32, there);
	assert_in_error(w->a.qp);
	assert_in_error(w->b.qp);
	assert_untouched(&w->b, THEIRS);
	fx_release(mark);
}

FX_TEST(recv__unknown_lkey_fails_both_ends)
{
	recv_fails(0x55, 0, 64, dut.traits->bad_recv_lkey, IBV_WC_REM_OP_ERR);
}

FX_TEST(recv__past_end_fails_both_ends)
{
	recv_fails(0, FX_BUF - 4, 64, dut.traits->bad_recv_lkey,
		   IBV_WC_REM_OP_ERR);
}

FX_TEST(recv__too_short_fails_both_ends)
{
	recv_fails(0, 0, 7, dut.traits->short_recv, dut.traits->too_long);
}

FX_TEST(reg_mr__bad_arguments_refused)
{
	struct ibv_pd *pd = fx_pd();
	char *p = fx_alloc(4096);

	assert_null(ibv_reg_mr(pd, p, 4096, IBV_ACCESS_REMOTE_WRITE));
	assert_null(ibv_reg_mr(pd, p, 4096, IBV_ACCESS_REMOTE_ATOMIC));
	assert_null(ibv_reg_mr(pd, p, SIZE_MAX - 4096, FX_ALL_ACCESS));
}

FX_TEST(reg_mr__describes_itself)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_mr *mr = fx_mr(pd, 4096, FX_ALL_ACCESS);

	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->context, dut.verbs);
	assert_int_equal(mr->length, 4096);
}

FX_TEST(reg_mr__live_keys_are_distinct)
{
	enum { N = 64 };
	struct ibv_pd *pd = fx_pd();
	char *p = fx_alloc(4096);
	struct ibv_mr *mrs[N];

	for (int i = 0; i < N; ++i) {
		mrs[i] = fx_mr_at(pd, p, 4096, FX_ALL_ACCESS);
		for (int j = 0; j < i; ++j) {
			assert_int_not_equal(mrs[i]->lkey, mrs[j]->lkey);
			assert_int_not_equal(mrs[i]->rkey, mrs[j]->rkey);
		}
	}
}

FX_TEST(reg_mr__reused_at_once_has_another_key)
{
	struct ibv_pd *pd = fx_pd();
	char *p = fx_alloc(4096);
	uint32_t last = 0;

	for (int i = 0; i < 16; ++i) {
		struct ibv_mr *mr = fx_mr_at(pd, p, 4096, FX_ALL_ACCESS);

		assert_int_not_equal(mr->rkey, last);
		last = mr->rkey;
		assert_int_equal(fx_destroy(mr), 0);
	}
}

static void both_keys_wrong(struct wire *w, struct ibv_send_wr *wr,
			    struct ibv_sge *sge)
{
	wrong_lkey(w, wr, sge);
	wrong_rkey(w, wr, sge);
}

/* The bytes come back before the device knows the destination. */
FX_TEST(rkey__with_a_bad_lkey_REM_ACCESS_ERR)
{
	fails(NULL, &read_op, both_keys_wrong, IBV_WC_REM_ACCESS_ERR);
	fails(NULL, &add_op, both_keys_wrong, IBV_WC_REM_ACCESS_ERR);
	fails(NULL, &swap_op, both_keys_wrong, IBV_WC_REM_ACCESS_ERR);
}

static struct ibv_mr *empty_mr(const struct end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf + 128, 0, FX_ALL_ACCESS);

	fx_need(mr, "the device registers no region of length 0");
	fx_keep_mr(mr);
	return mr;
}

FX_TEST(reg_mr__of_length_0_opens_nothing)
{
	struct wire *w = wire_new(NULL);
	struct op op = write_op;
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wire_wr(&w->a, &op, &wr, &sge);
	set_rkey(&wr, empty_mr(&w->b)->rkey);
	sge.length = 0;
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, op.id, IBV_WC_SUCCESS);
	sge.length = 1;
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, op.id, IBV_WC_REM_ACCESS_ERR);
}

FX_TEST(reg_mr__of_a_swapped_context_refused)
{
	struct ibv_pd *pd = fx_pd();
	void *p = fx_alloc(4096);
	struct ibv_context *other = fx_context();
	struct ibv_context *own = pd->context;
	struct ibv_mr *mr;

	pd->context = other;
	mr = ibv_reg_mr(pd, p, 4096, FX_ALL_ACCESS);
	pd->context = own;
	assert_null(mr);
}

FX_TEST(dereg_mr__of_another_region_harms_nothing)
{
	struct wire *w = wire_new(NULL);
	struct ibv_mr *mr = fx_mr_at(w->b.pd, w->b.buf, FX_BUF, FX_ALL_ACCESS);

	assert_int_equal(fx_destroy(mr), 0);
	w->a.buf[64] = 77;
	assert_int_equal(wire_post(&w->a, &write_op), 0);
	fx_expect(w->a.scq, write_op.id, IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[128], 77);
}

/* A name for the domain, as in the manual. */
static struct ibv_pd *parent_of(struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(dut.verbs, &attr);

	fx_need(parent || (errno != EOPNOTSUPP && errno != ENOSYS),
		"the device has no parent domains");
	assert_non_null(parent);
	fx_keep_pd(parent);
	return parent;
}

FX_TEST(parent_domain__has_the_keys_of_its_domain)
{
	struct ibv_cq *cq = fx_cq(16, NULL, NULL);
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {8, 8, 1, 1, 0}};
	struct end e;
	struct ibv_pd *parent;

	wire_self(&e, cq);
	parent = parent_of(e.pd);
	/* a region of the parent, a queue pair of the domain */
	e.mr = fx_mr(parent, FX_BUF, FX_ALL_ACCESS);
	e.buf = e.mr->addr;
	e.buf[64] = 77;
	assert_int_equal(wire_post(&e, &write_op), 0);
	fx_expect(cq, write_op.id, IBV_WC_SUCCESS);
	assert_int_equal(e.buf[128], 77);
	/* and the other way round */
	e.mr = fx_mr(e.pd, FX_BUF, FX_ALL_ACCESS);
	e.buf = e.mr->addr;
	e.buf[64] = 78;
	e.qp = fx_qp(parent, &attr);
	wire_move(NULL, e.qp, e.qp->qp_num, IBV_QPS_RTS);
	assert_int_equal(wire_post(&e, &write_op), 0);
	fx_expect(cq, write_op.id, IBV_WC_SUCCESS);
	assert_int_equal(e.buf[128], 78);
}

FX_TEST(dealloc_pd__with_a_parent_domain_EBUSY)
{
	struct ibv_pd *pd = fx_pd();
	struct ibv_pd *parent = parent_of(pd);
	struct ibv_mr *mr = fx_mr(parent, FX_BUF, FX_ALL_ACCESS);

	assert_int_equal(fx_destroy(pd), EBUSY);
	assert_int_equal(fx_destroy(parent), EBUSY);
	assert_int_equal(fx_destroy(mr), 0);
	assert_int_equal(fx_destroy(parent), 0);
	assert_int_equal(fx_destroy(pd), 0);
}

/* --- memory unmapped by the program, and deregistered afterwards */

#define GONE_LEN (4u * FX_BUF)
/* where the kernel puts nothing by itself: no thread gets the addresses */
#define GONE_AT ((void *)0x7e9000000000)

/* A region of b whose memory is unmapped, as free() does. */
static struct ibv_mr *gone(const struct wire *w)
{
	void *at = mmap(GONE_AT, GONE_LEN, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_ptr_equal(at, GONE_AT);
	mr = fx_mr_at(w->b.pd, at, GONE_LEN, FX_ALL_ACCESS);
	assert_int_equal(munmap(at, GONE_LEN), 0);
	return mr;
}

static enum ibv_wc_status unless_it_stays(enum ibv_wc_status status)
{
	return dut.traits->unmapped_memory_stays ? IBV_WC_SUCCESS : status;
}

/* The device leaves no memory where the program has none. */
static void deregister_gone(struct ibv_mr *mr)
{
	void *at = mr->addr;
	unsigned char pages[GONE_LEN / 4096 + 1];

	errno = 0;
	assert_int_equal(mincore(at, GONE_LEN, pages), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fx_destroy(mr), 0);
}

/* The owner lives, and the peer learns of the end of the memory. */
FX_TEST(unmapped__remote_access_survived)
{
	const struct op ops[] = {write_op, read_op, add_op, swap_op};

	for (unsigned i = 0; i < 2 * FX_COUNT(ops); ++i) {
		struct op op = ops[i / 2];
		size_t mark = fx_mark();
		struct wire *w = wire_new(NULL);
		struct ibv_mr *mr = gone(w);
		struct ibv_send_wr wr;
		struct ibv_send_wr *bad;
		struct ibv_sge sge;

		if (i < 4 && i & 1) /* over pages */
			op.len = FX_BUF - op.at;
		wire_wr(&w->a, &op, &wr, &sge);
		set_rkey(&wr, mr->rkey);
		set_raddr(&wr, (uint8_t *)mr->addr + 4096 + 64);
		assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
		fx_expect(w->a.scq, op.id,
			  unless_it_stays(IBV_WC_REM_ACCESS_ERR));
		deregister_gone(mr);
		fx_release(mark);
	}
}

FX_TEST(unmapped__receive_survived)
{
	struct wire *w = wire_new(NULL);
	struct ibv_mr *mr = gone(w);
	struct ibv_sge sge = {(uintptr_t)mr->addr, FX_BUF, mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(ibv_post_recv(w->b.qp, &wr, &bad), 0);
	assert_int_equal(wire_post(&w->a, &send_op), 0);
	fx_expect(w->a.scq, send_op.id, unless_it_stays(IBV_WC_REM_OP_ERR));
	fx_expect(w->b.rcq, 1, unless_it_stays(IBV_WC_LOC_PROT_ERR));
	deregister_gone(mr);
}

/* As the source of a SEND and a WRITE, and where a READ goes. */
FX_TEST(unmapped__own_access_survived)
{
	const struct op ops[] = {send_op, write_op, read_op, add_op};

	for (unsigned i = 0; i < FX_COUNT(ops); ++i) {
		size_t mark = fx_mark();
		struct wire *w = wire_new(NULL);
		struct ibv_mr *mr = gone(w);
		struct ibv_send_wr wr;
		struct ibv_send_wr *bad;
		struct ibv_sge sge;

		assert_int_equal(wire_recv(&w->a, 1, 0, FX_BUF), 0);
		wire_wr(&w->b, &ops[i], &wr, &sge);
		sge.addr = (uintptr_t)mr->addr + 64;
		sge.lkey = mr->lkey;
		assert_int_equal(ibv_post_send(w->b.qp, &wr, &bad), 0);
		fx_expect(w->b.scq, ops[i].id,
			  unless_it_stays(IBV_WC_LOC_PROT_ERR));
		deregister_gone(mr);
		fx_release(mark);
	}
}

FX_MAIN("memory")
