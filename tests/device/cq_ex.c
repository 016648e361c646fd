/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Extended completion queues: batches of start, next and end.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>
#include "wire.h"

static struct ibv_cq_ex *cq_ex_with(uint64_t flags)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = flags};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dut.verbs, &attr);

	fx_need(cq || (errno != EOPNOTSUPP && errno != ENOSYS),
		"the device has no extended CQs with these fields");
	assert_non_null(cq);
	fx_keep_cq(ibv_cq_ex_to_cq(cq));
	return cq;
}

static struct ibv_cq_ex *cq_ex(void)
{
	return cq_ex_with(IBV_WC_EX_WITH_BYTE_LEN);
}

static void post_write(const struct end *e, uint64_t id)
{
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.id = id,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};

	assert_int_equal(wire_post(e, &op), 0);
}

/* The first of a batch, awaited. */
static void start_batch(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	struct fx_deadline d = fx_deadline();
	int ret;

	while ((ret = ibv_start_poll(cq, &attr)) == ENOENT)
		fx_check(&d, "a completion");
	assert_int_equal(ret, 0);
}

FX_TEST(cq_ex__empty_ENOENT)
{
	struct ibv_cq_ex *cq = cq_ex();
	struct ibv_poll_cq_attr attr = {0};

	for (int i = 0; i < 3; ++i)
		assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	fx_expect_empty(ibv_cq_ex_to_cq(cq));
}

FX_TEST(cq_ex__gives_what_is_there)
{
	struct ibv_cq_ex *cq = cq_ex();
	struct end e;

	fx_need(dut.traits->next_poll_keeps_batch,
		"the device's library ends a batch twice");
	wire_self(&e, ibv_cq_ex_to_cq(cq));
	for (uint64_t round = 0; round < 10; ++round) {
		uint64_t got = 0;

		for (uint64_t i = 0; i < 8; ++i)
			post_write(&e, i);
		while (got < 8) {
			start_batch(cq);
			do {
				assert_int_equal(cq->status, IBV_WC_SUCCESS);
				assert_int_equal(cq->wr_id, got++);
				assert_int_equal(ibv_wc_read_opcode(cq),
						 IBV_WC_RDMA_WRITE);
			} while (ibv_next_poll(cq) == 0);
			ibv_end_poll(cq);
		}
	}
}

FX_TEST(cq_ex__receives_have_a_length)
{
	struct ibv_cq_ex *cq = cq_ex();
	struct end e;
	int seen = 0;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	assert_int_equal(wire_recv(&e, 1, 64, 64), 0);
	assert_int_equal(wire_send(&e, 2), 0);
	for (int i = 0; i < 2; ++i) {
		start_batch(cq);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		if (cq->wr_id == 1) {
			assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
			assert_int_equal(ibv_wc_read_byte_len(cq), 8);
		}
		seen |= 1 << cq->wr_id;
		ibv_end_poll(cq);
	}
	assert_int_equal(seen, 1 << 1 | 1 << 2);
}

FX_TEST(cq_ex__receives_have_all_standard_fields)
{
	struct ibv_cq_ex *cq = cq_ex_with(IBV_WC_STANDARD_FLAGS);
	struct op op = {.code = IBV_WR_SEND_WITH_IMM,
			.id = 2,
			.flags = IBV_SEND_SIGNALED,
			.len = 8,
			.imm = 0x11223344};
	struct end e;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	assert_int_equal(wire_recv(&e, 1, 64, 64), 0);
	assert_int_equal(wire_post(&e, &op), 0);
	for (int i = 0; i < 2; ++i) {
		start_batch(cq);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_qp_num(cq), e.qp->qp_num);
		if (cq->wr_id == 1) {
			assert_int_equal(ibv_wc_read_byte_len(cq), 8);
			assert_true(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM);
			assert_int_equal(ntohl(ibv_wc_read_imm_data(cq)),
					 0x11223344);
			assert_int_equal(ibv_wc_read_sl(cq), 0);
			assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
		}
		ibv_end_poll(cq);
	}
}

FX_TEST(cq_ex__receives_have_no_vlan)
{
	struct ibv_cq_ex *cq = cq_ex_with(IBV_WC_EX_WITH_CVLAN);
	struct end e;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	assert_int_equal(wire_recv(&e, 1, 64, 64), 0);
	assert_int_equal(wire_send(&e, 2), 0);
	for (int i = 0; i < 2; ++i) {
		start_batch(cq);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		if (cq->wr_id == 1)
			assert_int_equal(ibv_wc_read_cvlan(cq), 0);
		ibv_end_poll(cq);
	}
}

/* Neither steering nor the matching of tags: there is nothing to read. */
FX_TEST(create_cq_ex__fields_of_no_use_refused)
{
	static const uint64_t flags[] = {IBV_WC_EX_WITH_FLOW_TAG,
					 IBV_WC_EX_WITH_TM_INFO};

	cq_ex();
	for (size_t i = 0; i < FX_COUNT(flags); ++i) {
		struct ibv_cq_init_attr_ex attr = {.cqe = 16,
						   .wc_flags = flags[i]};

		assert_null(ibv_create_cq_ex(dut.verbs, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

static uint64_t raw_clock(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	assert_int_equal(ibv_query_rt_values_ex(dut.verbs, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)values.raw_clock.tv_sec * 1000000000u +
	       (uint64_t)values.raw_clock.tv_nsec;
}

/* Each within the call that posted it and the poll that found it. */
FX_TEST(cq_ex__completions_have_a_time)
{
	struct ibv_cq_ex *cq = cq_ex_with(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	struct end e;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	for (uint64_t i = 0; i < 40; ++i) {
		uint64_t before = raw_clock();

		post_write(&e, i);
		start_batch(cq);
		assert_true(ibv_wc_read_completion_ts(cq) >= before);
		assert_true(ibv_wc_read_completion_ts(cq) <= raw_clock());
		ibv_end_poll(cq);
	}
}

FX_TEST(cq_ex__completions_have_a_wall_clock)
{
	struct ibv_cq_ex *cq =
		cq_ex_with(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	struct timespec now;
	struct end e;
	uint64_t told;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	post_write(&e, 1);
	start_batch(cq);
	told = ibv_wc_read_completion_wallclock_ns(cq) / 1000000000u;
	clock_gettime(CLOCK_REALTIME, &now);
	ibv_end_poll(cq);
	assert_in_range(told, (uint64_t)now.tv_sec - 100,
			(uint64_t)now.tv_sec + 1);
}

/* Those that were there keep theirs; others may come meanwhile. */
FX_TEST(cq_ex__resized_keeps_times)
{
	struct ibv_cq_ex *cq = cq_ex_with(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	uint64_t before;
	struct end e;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	before = raw_clock();
	post_write(&e, 1);
	start_batch(cq);
	ibv_end_poll(cq);
	for (uint64_t i = 2; i < 6; ++i)
		post_write(&e, i);
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 200), 0);
	for (uint64_t i = 2; i < 6; ++i) {
		start_batch(cq);
		assert_int_equal(cq->wr_id, i);
		assert_in_range(ibv_wc_read_completion_ts(cq), before,
				raw_clock());
		ibv_end_poll(cq);
	}
}

FX_TEST(cq_ex__mixes_with_poll_cq)
{
	struct ibv_cq_ex *cq = cq_ex();
	struct end e;

	wire_self(&e, ibv_cq_ex_to_cq(cq));
	for (uint64_t i = 0; i < 40; i += 2) {
		post_write(&e, i);
		post_write(&e, i + 1);
		start_batch(cq);
		assert_int_equal(cq->wr_id, i);
		ibv_end_poll(cq);
		fx_expect(e.scq, i + 1, IBV_WC_SUCCESS);
	}
}

struct resizer {
	struct ibv_cq *cq;
	sem_t begins;
	int ret;
};

static void *resize(void *arg)
{
	struct resizer *r = arg;

	sem_post(&r->begins);
	r->ret = ibv_resize_cq(r->cq, 64);
	return NULL;
}

/*
 * One thread posts within its batch while another one resizes the CQ, which
 * may wait for the end of the batch but may not hold up what is posted.
 */
FX_TEST(cq_ex__resized_while_a_batch_posts)
{
	struct ibv_cq_ex *cq = cq_ex();
	struct end e;

	fx_need(dut.traits->next_poll_keeps_batch,
		"the device's library ends a batch twice");
	wire_self(&e, ibv_cq_ex_to_cq(cq));
	for (int round = 0; round < 20; ++round) {
		struct resizer r = {.cq = ibv_cq_ex_to_cq(cq)};
		pthread_t thread;

		assert_int_equal(sem_init(&r.begins, 0, 0), 0);
		post_write(&e, 0);
		start_batch(cq);
		assert_int_equal(pthread_create(&thread, NULL, resize, &r), 0);
		assert_int_equal(sem_wait(&r.begins), 0);
		for (uint64_t i = 1; i < 100; ++i) {
			struct fx_deadline d = fx_deadline();

			post_write(&e, i);
			while (ibv_next_poll(cq) != 0)
				fx_check(&d, "a completion");
			assert_int_equal(cq->wr_id, i);
			sched_yield();
		}
		ibv_end_poll(cq);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(r.ret, 0);
		sem_destroy(&r.begins);
	}
}

FX_MAIN("cq_ex")
