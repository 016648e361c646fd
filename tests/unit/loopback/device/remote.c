/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote.c -- connections between two processes: every operation, of lengths
 * around the limits of parts, arrives as sent.
 */

#include "meet.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

enum { SENDER, RECEIVER };

#define PART 16384u /* bytes of a message in a record of the wire */
#define HALF (MEET_SIZE / 2)

static const uint32_t lengths[] = {
	0,	1,	  7,	    8,	      9,	63,
	64,	65,	  1024,	    1025,     4095,	PART - 1,
	PART,	PART + 1, PART + 7, PART + 8, PART + 9, 2 * PART + 3,
	300000, 1u << 20, HALF,
};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static const struct meet_opts plain = {.rnr_retry = 7};

static struct ibv_wc expect(struct meet *m, uint64_t id,
			    enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = end_wait(&m->end);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.qp_num, m->end.qp->qp_num);
	return wc;
}

/* --- messages */

static void send_each(struct meet *m, enum ibv_wr_opcode opcode)
{
	for (uint32_t i = 0; i < LENGTHS; i++) {
		meet_fill(m, 0, lengths[i], i);
		assert_int_equal(meet_post(m, opcode, i, 0, lengths[i], HALF,
					   IBV_SEND_SOLICITED),
				 0);
		expect(m, i,
		       opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RDMA_WRITE
							    : IBV_WC_SEND);
	}
}

static void receive_each(struct meet *m, enum ibv_wr_opcode opcode)
{
	bool is_write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	for (uint32_t i = 0; i < LENGTHS; i++) {
		struct ibv_wc wc;

		assert_int_equal(meet_recv(m, i, HALF, is_write ? 0 : HALF), 0);
		wc = expect(m, i,
			    is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_int_equal(wc.byte_len, lengths[i]);
		assert_int_equal(wc.src_qp, m->other.qpn);
		assert_int_equal(wc.wc_flags,
				 opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM);
		if (opcode != IBV_WR_SEND)
			assert_int_equal(ntohl(wc.imm_data), i);
		meet_check(m, HALF, lengths[i], i);
		memset(m->mem + HALF, 0, HALF);
	}
}

static void one_way(const struct two_process *self,
		    const struct meet_opts *opts, enum ibv_wr_opcode opcode)
{
	struct meet m = {0};

	meet_begin(&m, self, opts);
	if (self->number == SENDER)
		send_each(&m, opcode);
	else
		receive_each(&m, opcode);
	two_wait(self);
	meet_end(&m);
}

static void send_all(const struct two_process *self)
{
	one_way(self, &plain, IBV_WR_SEND);
}

static void send_all_threaded(const struct two_process *self)
{
	const struct meet_opts threaded = {.rnr_retry = 7, .is_threaded = 1};

	one_way(self, &threaded, IBV_WR_SEND);
}

static void send_imm_all(const struct two_process *self)
{
	one_way(self, &plain, IBV_WR_SEND_WITH_IMM);
}

static void send_to_srq(const struct two_process *self)
{
	const struct meet_opts shared = {.rnr_retry = 7, .with_srq = 1};

	one_way(self, &shared, IBV_WR_SEND);
}

static void write_imm_all(const struct two_process *self)
{
	one_way(self, &plain, IBV_WR_RDMA_WRITE_WITH_IMM);
}

/* --- one-sided operations: the other process calls no verb meanwhile */

static void write_and_read_each(struct meet *m)
{
	for (uint32_t i = 0; i < LENGTHS; i++) {
		meet_fill(m, 0, lengths[i], i);
		assert_int_equal(
			meet_post(m, IBV_WR_RDMA_WRITE, i, 0, lengths[i], 1, 0),
			0);
		expect(m, i, IBV_WC_RDMA_WRITE);
		assert_int_equal(meet_post(m, IBV_WR_RDMA_READ, i, HALF,
					   lengths[i], 1, 0),
				 0);
		expect(m, i, IBV_WC_RDMA_READ);
		meet_check(m, HALF, lengths[i], i);
	}
}

static void write_and_read(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &plain);
	if (self->number == SENDER)
		write_and_read_each(&m);
	two_wait(self);
	if (self->number == RECEIVER)
		meet_check(&m, 1, lengths[LENGTHS - 1], LENGTHS - 1);
	meet_end(&m);
}

/* The link thread looks seldom while a program polls and finds much: as soon as
 * the program calls no verb, writes to the program are executed all the
 * same. */
#define STREAMS 5u
#define LENGTH	2000u

static void stream(struct meet *m, bool is_sender)
{
	for (uint32_t i = 0; i < LENGTH; i++) {
		if (is_sender) {
			assert_int_equal(
				meet_post(m, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
			expect(m, i, IBV_WC_SEND);
		} else {
			expect(m, i % DEPTH, IBV_WC_RECV);
			assert_int_equal(meet_recv(m, i % DEPTH, HALF, 8), 0);
		}
	}
}

static void stream_and_write(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &plain);
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(meet_recv(&m, i, HALF, 8), 0);
	two_wait(self);
	for (uint32_t i = 0; i < STREAMS; i++) {
		stream(&m, self->number == SENDER);
		if (self->number == SENDER) {
			meet_fill(&m, 0, 100, i);
			assert_int_equal(meet_post(&m, IBV_WR_RDMA_WRITE, i, 0,
						   100, HALF + 64, 0),
					 0);
			expect(&m, i, IBV_WC_RDMA_WRITE);
		}
		two_wait(self);
		if (self->number == RECEIVER)
			meet_check(&m, HALF + 64, 100, i);
	}
	meet_end(&m);
}

/* --- many at once */

/* More than the ring has room for, both ways at the same time, in order. */
#define MANY  400u
#define BYTES 60000u

static void send_next(struct meet *m, uint32_t *posted)
{
	while (*posted < MANY) {
		uint32_t slot = *posted % DEPTH, at = slot * BYTES;

		meet_fill(m, at, BYTES, *posted);
		if (meet_post(m, IBV_WR_SEND, *posted, at, BYTES, 0, 0))
			return;
		++*posted;
		if (*posted % DEPTH == 0)
			return;
	}
}

static void send_both_ways(const struct two_process *self)
{
	uint32_t i, sent = 0, posted = 0, received = 0;
	struct meet m = {0};

	meet_begin(&m, self, &plain);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(meet_recv(&m, i, HALF + i * BYTES, BYTES), 0);
	while (sent < MANY || received < MANY) {
		struct ibv_wc wc;

		if (sent == posted)
			send_next(&m, &posted);
		wc = end_wait(&m.end);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			assert_int_equal(wc.wr_id, sent++);
			continue;
		}
		i = received++ % DEPTH;
		assert_int_equal(wc.wr_id, i);
		meet_check(&m, HALF + i * BYTES, BYTES, received - 1);
		assert_int_equal(meet_recv(&m, i, HALF + i * BYTES, BYTES), 0);
	}
	two_wait(self);
	meet_end(&m);
}

/* Reads may be under way together, but no more than was agreed. */
static void read_many(const struct two_process *self)
{
	struct meet m = {0};
	uint32_t i;

	meet_begin(&m, self, &plain);
	meet_fill(&m, 0, DEPTH * BYTES, 5);
	two_wait(self);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(meet_post(&m, IBV_WR_RDMA_READ, i,
					   HALF + i * BYTES, BYTES, i * BYTES,
					   0),
				 0);
	for (i = 0; i < DEPTH; i++)
		expect(&m, i, IBV_WC_RDMA_READ);
	meet_check(&m, HALF, DEPTH * BYTES, 5);
	two_wait(self);
	meet_end(&m);
}

/* --- small ones */

#define TURNS 200

/* Each sleeps until the other's message comes. */
static void sleep_in_turns(const struct two_process *self)
{
	struct meet m = {0};
	struct ibv_wc wc;
	int i, received = 0;

	meet_begin(&m, self, &plain);
	for (i = 0; i < DEPTH; i++)
		assert_int_equal(meet_recv(&m, 1, HALF, 8), 0);
	assert_int_equal(ibv_req_notify_cq(m.end.cq, 0), 0);
	two_wait(self);
	if (self->number == SENDER)
		assert_int_equal(meet_post(&m, IBV_WR_SEND, 2, 0, 8, 0, 0), 0);
	while (received < TURNS) {
		end_take_event(&m.end);
		assert_int_equal(ibv_req_notify_cq(m.end.cq, 0), 0);
		while (ibv_poll_cq(m.end.cq, 1, &wc)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode != IBV_WC_RECV)
				continue;
			received++;
			assert_int_equal(meet_recv(&m, 1, HALF, 8), 0);
			assert_int_equal(
				meet_post(&m, IBV_WR_SEND, 2, 0, 8, 0, 0), 0);
		}
	}
	two_wait(self);
	meet_end(&m);
}

/* --- the tests */

static void run(two_body_fn *body)
{
	struct two_process p[2] = {0};

	two_run(p, body);
	assert_string_equal(p[0].said, "");
	assert_string_equal(p[1].said, "");
}

TEST(send__of_any_length_ARRIVES)
{
	run(send_all);
}

TEST(send__in_thread_mode_ARRIVES)
{
	run(send_all_threaded);
}

TEST(send_imm__of_any_length_ARRIVES)
{
	run(send_imm_all);
}

TEST(send__to_srq_ARRIVES)
{
	run(send_to_srq);
}

TEST(write_imm__of_any_length_ARRIVES)
{
	run(write_imm_all);
}

TEST(write_read__of_any_length_WITHOUT_THE_OTHER_PROGRAM)
{
	run(write_and_read);
}

TEST(write__behind_a_stream_WITHOUT_THE_OTHER_PROGRAM)
{
	run(stream_and_write);
}

TEST(send__both_ways_without_room_IN_ORDER)
{
	run(send_both_ways);
}

TEST(read__many_at_once_IN_ORDER)
{
	run(read_many);
}

TEST(event__WAKES_WHO_SLEEPS)
{
	run(sleep_in_turns);
}

TEST_MAIN()
