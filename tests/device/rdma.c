/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * One-sided operations: WRITE, WRITE with immediate data, READ, the two
 * atomics, and the order in which they take effect.
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "wire.h"

#define LARGE (1u << 20)

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static struct ibv_wc run(const struct end *e, struct op op)
{
	op.id = 99;
	op.flags |= IBV_SEND_SIGNALED;
	assert_int_equal(wire_post(e, &op), 0);
	return fx_expect(e->scq, 99, IBV_WC_SUCCESS);
}

FX_TEST(write__places_exactly_its_bytes)
{
	static const uint32_t lengths[] = {1,  3,   8,	  9,	15,  16,
					   17, 100, 1024, 1027, 4000};
	struct wire *w = wire_new(NULL);

	for (uint32_t i = 0; i < FX_BUF; ++i)
		w->a.buf[i] = (uint8_t)(i * 7 + 1);
	for (unsigned i = 0; i < FX_COUNT(lengths); ++i) {
		struct op op = {.code = IBV_WR_RDMA_WRITE,
				.at = 5,
				.len = lengths[i],
				.to = 13};

		memset(w->b.buf, 0xee, FX_BUF);
		assert_int_equal(run(&w->a, op).opcode, IBV_WC_RDMA_WRITE);
		assert_memory_equal(w->b.buf + 13, w->a.buf + 5, op.len);
		assert_int_equal(w->b.buf[12], 0xee);
		assert_int_equal(w->b.buf[13 + op.len], 0xee);
	}
	fx_expect_empty(w->b.rcq);
}

FX_TEST(write__of_nothing_completes)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_RDMA_WRITE};

	run(&w->a, op);
	wire_check(w);
}

FX_TEST(write__inline)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
			.len = 16,
			.to = 64};
	struct wire *w;

	opts.inline_size = 16;
	w = wire_new(&opts);
	memset(w->a.buf, 0x21, 16);
	assert_int_equal(wire_post(&w->a, &op), 0);
	memset(w->a.buf, 0xff, 16);
	fx_expect(w->a.scq, 0, IBV_WC_SUCCESS);
	assert_int_equal(w->b.buf[64], 0x21);
	assert_int_equal(w->b.buf[79], 0x21);
}

FX_TEST(write_with_imm__completes_a_receive)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_RDMA_WRITE_WITH_IMM,
			.len = 24,
			.to = 512,
			.imm = 0xa1b2c3d4};
	struct ibv_wc wc;

	memset(w->a.buf, 0x33, 24);
	assert_int_equal(wire_recv(&w->b, 7, 0, 16), 0);
	run(&w->a, op);
	wc = fx_expect(w->b.rcq, 7, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 0xa1b2c3d4);
	assert_int_equal(wc.byte_len, 24);
	assert_int_equal(w->b.buf[512], 0x33);
	assert_int_equal(w->b.buf[0], 0);
}

FX_TEST(write_with_imm__of_nothing_completes_a_receive)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_RDMA_WRITE_WITH_IMM, .imm = 5};
	struct ibv_wc wc;

	assert_int_equal(wire_recv(&w->b, 7, 0, 0), 0);
	run(&w->a, op);
	wc = fx_expect(w->b.rcq, 7, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 5);
	assert_int_equal(wc.byte_len, 0);
}

FX_TEST(read__fetches_exactly_its_bytes)
{
	struct wire *w = wire_new(NULL);
	struct op op = {
		.code = IBV_WR_RDMA_READ, .at = 100, .len = 3000, .to = 50};

	for (uint32_t i = 0; i < FX_BUF; ++i)
		w->b.buf[i] = (uint8_t)(i * 3 + 1);
	memset(w->a.buf, 0xee, FX_BUF);
	assert_int_equal(run(&w->a, op).opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(w->a.buf + 100, w->b.buf + 50, 3000);
	assert_int_equal(w->a.buf[99], 0xee);
	assert_int_equal(w->a.buf[3100], 0xee);
}

FX_TEST(read__of_nothing_completes)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_RDMA_READ};

	run(&w->a, op);
	wire_check(w);
}

FX_TEST(read__scatters)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct op op = {
		.code = IBV_WR_RDMA_READ, .flags = IBV_SEND_SIGNALED, .len = 8};
	struct ibv_sge sge[3];
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct wire *w;

	opts.sge = 3;
	w = wire_new(&opts);
	memcpy(w->b.buf, "abcdefghijkl", 12);
	wire_wr(&w->a, &op, &wr, &sge[0]);
	sge[2] = sge[1] = sge[0];
	sge[0].length = 3;
	sge[1].addr += 100;
	sge[1].length = 4;
	sge[2].addr += 200;
	sge[2].length = 5;
	wr.num_sge = 3;
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, 0, IBV_WC_SUCCESS);
	assert_memory_equal(w->a.buf, "abc", 3);
	assert_memory_equal(w->a.buf + 100, "defg", 4);
	assert_memory_equal(w->a.buf + 200, "hijkl", 5);
}

static void large(enum ibv_wr_opcode code)
{
	struct wire *w = wire_new(NULL);
	struct ibv_mr *ours = fx_mr(w->a.pd, LARGE, FX_ALL_ACCESS);
	struct ibv_mr *theirs = fx_mr(w->b.pd, LARGE, FX_ALL_ACCESS);
	uint8_t *from = code == IBV_WR_RDMA_READ ? theirs->addr : ours->addr;
	struct ibv_sge sge = {(uintptr_t)ours->addr, LARGE, ours->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = code,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)theirs->addr, theirs->rkey}};
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < LARGE; ++i)
		from[i] = (uint8_t)(i + (i >> 8) * 5 + (i >> 16) * 3);
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, 0, IBV_WC_SUCCESS);
	assert_int_equal(memcmp(ours->addr, theirs->addr, LARGE), 0);
}

FX_TEST(write__a_mebibyte)
{
	large(IBV_WR_RDMA_WRITE);
}

FX_TEST(read__a_mebibyte)
{
	large(IBV_WR_RDMA_READ);
}

FX_TEST(fetch_add__returns_the_old_value)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.at = 64,
			.len = 8,
			.to = 128,
			.add = 7};

	put64(w->b.buf + 128, 100);
	assert_int_equal(run(&w->a, op).opcode, IBV_WC_FETCH_ADD);
	assert_true(get64(w->a.buf + 64) == 100);
	assert_true(get64(w->b.buf + 128) == 107);
}

FX_TEST(fetch_add__wraps)
{
	struct wire *w = wire_new(NULL);
	struct op op = {
		.code = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .add = 2};

	put64(w->b.buf, UINT64_MAX);
	run(&w->a, op);
	assert_true(get64(w->a.buf) == UINT64_MAX);
	assert_true(get64(w->b.buf) == 1);
}

FX_TEST(cmp_swap__swaps_if_equal)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_ATOMIC_CMP_AND_SWP,
			.len = 8,
			.add = 5,
			.swap = 6};

	put64(w->b.buf, 5);
	assert_int_equal(run(&w->a, op).opcode, IBV_WC_COMP_SWAP);
	assert_true(get64(w->a.buf) == 5);
	assert_true(get64(w->b.buf) == 6);
	run(&w->a, op);
	assert_true(get64(w->a.buf) == 6);
	assert_true(get64(w->b.buf) == 6);
}

struct adder {
	const struct end *end;
	int bad;
};

#define ADDS 200

/* Runs in a thread of its own, so it reports instead of asserting. */
static void *add_many(void *arg)
{
	struct adder *a = arg;
	struct op op = {.code = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.flags = IBV_SEND_SIGNALED,
			.len = 8,
			.add = 1};
	struct ibv_wc wc;

	for (int i = 0; i < ADDS && !a->bad; ++i) {
		a->bad = wire_post(a->end, &op);
		while (!a->bad && ibv_poll_cq(a->end->scq, 1, &wc) == 0)
			;
		a->bad |= wc.status != IBV_WC_SUCCESS;
	}
	return NULL;
}

FX_TEST(fetch_add__of_two_pairs_loses_nothing)
{
	struct wire *one = wire_new(NULL);
	struct wire *two = wire_new(NULL);
	struct ibv_mr *word =
		fx_mr_at(two->b.pd, one->b.buf, FX_BUF, FX_ALL_ACCESS);
	struct adder adders[2] = {{&one->a, 0}, {&two->a, 0}};
	pthread_t t[2];

	/* the second pair adds to the word of the first */
	two->b.mr = word;
	two->b.buf = one->b.buf;
	for (int i = 0; i < 2; ++i)
		assert_int_equal(
			pthread_create(&t[i], NULL, add_many, &adders[i]), 0);
	for (int i = 0; i < 2; ++i) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_int_equal(adders[i].bad, 0);
	}
	assert_true(get64(one->b.buf) == 2 * ADDS);
}

FX_TEST(write_then_send__seen_by_the_receiver)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 1; i < 100; ++i) {
		struct op write = {.code = IBV_WR_RDMA_WRITE,
				   .at = 64,
				   .len = 2048,
				   .to = 64};
		struct op send = {.code = IBV_WR_SEND,
				  .id = 2,
				  .flags = IBV_SEND_SIGNALED,
				  .len = 8};

		put64(w->a.buf + 64, i);
		put64(w->a.buf + 64 + 2040, i);
		assert_int_equal(wire_recv(&w->b, 1, 0, 8), 0);
		assert_int_equal(wire_post(&w->a, &write), 0);
		assert_int_equal(wire_post(&w->a, &send), 0);
		fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
		assert_true(get64(w->b.buf + 64) == i);
		assert_true(get64(w->b.buf + 64 + 2040) == i);
		fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	}
}

FX_TEST(write_then_read__reads_what_was_written)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 1; i < 50; ++i) {
		struct op write = {
			.code = IBV_WR_RDMA_WRITE, .len = 8, .to = 64};
		struct op read = {.code = IBV_WR_RDMA_READ,
				  .id = 3,
				  .flags = IBV_SEND_SIGNALED,
				  .at = 128,
				  .len = 8,
				  .to = 64};

		put64(w->a.buf, i);
		assert_int_equal(wire_post(&w->a, &write), 0);
		assert_int_equal(wire_post(&w->a, &read), 0);
		fx_expect(w->a.scq, 3, IBV_WC_SUCCESS);
		assert_true(get64(w->a.buf + 128) == i);
	}
}

/* Without the fence the write might send bytes the read has yet to place. */
FX_TEST(fence__write_waits_for_the_read)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t i = 1; i < 50; ++i) {
		struct op read = {
			.code = IBV_WR_RDMA_READ, .at = 0, .len = 8, .to = 0};
		struct op write = {.code = IBV_WR_RDMA_WRITE,
				   .id = 4,
				   .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
				   .at = 0,
				   .len = 8,
				   .to = 64};

		put64(w->b.buf, i);
		assert_int_equal(wire_post(&w->a, &read), 0);
		assert_int_equal(wire_post(&w->a, &write), 0);
		fx_expect(w->a.scq, 4, IBV_WC_SUCCESS);
		assert_true(get64(w->b.buf + 64) == i);
	}
}

FX_TEST(mixed__completions_in_order_of_posting)
{
	static const enum ibv_wr_opcode codes[] = {IBV_WR_RDMA_WRITE,
						   IBV_WR_RDMA_READ,
						   IBV_WR_ATOMIC_FETCH_AND_ADD,
						   IBV_WR_RDMA_WRITE,
						   IBV_WR_ATOMIC_CMP_AND_SWP,
						   IBV_WR_SEND,
						   IBV_WR_RDMA_READ,
						   IBV_WR_RDMA_WRITE};
	struct wire *w = wire_new(NULL);

	for (int round = 0; round < 10; ++round) {
		assert_int_equal(wire_recv(&w->b, 1, 4096, 8), 0);
		for (unsigned i = 0; i < FX_COUNT(codes); ++i) {
			struct op op = {.code = codes[i],
					.id = i,
					.flags = IBV_SEND_SIGNALED,
					.at = 64 * i,
					.len = 8,
					.to = 64 * i};

			assert_int_equal(wire_post(&w->a, &op), 0);
		}
		for (unsigned i = 0; i < FX_COUNT(codes); ++i)
			fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
		fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	}
}

/* A reader of memory sees the last bytes of a write after all others. */
FX_TEST(write__last_bytes_last)
{
	struct wire *w = wire_new(NULL);
	_Atomic uint64_t *last = (_Atomic uint64_t *)(w->b.buf + 1016);

	for (uint64_t i = 1; i < 500; ++i) {
		struct op op = {.code = IBV_WR_RDMA_WRITE,
				.id = i,
				.flags = IBV_SEND_SIGNALED,
				.len = 1024};
		struct fx_deadline d = fx_deadline();

		for (unsigned j = 0; j < 1024; j += 8)
			put64(w->a.buf + j, i);
		assert_int_equal(wire_post(&w->a, &op), 0);
		/* acquire: the bytes before; pairs with the device's store */
		while (atomic_load_explicit(last, memory_order_acquire) != i)
			fx_check(&d, "the last word of a write");
		for (unsigned j = 0; j < 1016; j += 8)
			assert_true(get64(w->b.buf + j) == i);
		fx_expect(w->a.scq, i, IBV_WC_SUCCESS);
	}
}

FX_MAIN("rdma")
