/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_dereg.c -- one process loads another with everything, while that one
 * deregisters the memory, or destroys the queue pair first, and unmaps it at
 * once: an access behind that is a segmentation fault. The requests have
 * success up to one that fails, in order.
 */

#include "meet.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SIZE 65536u /* of the memory that goes: messages of four parts */

static const struct meet_opts opts = {.rnr_retry = 7, .timeout = 8};
static unsigned rounds = 40;

/* --- the one whose memory goes */

struct owner {
	struct meet m;
	_Atomic bool is_over;
	_Atomic unsigned polls;
	unsigned seed;
};

/* Takes what comes from the other process, as the link thread does. */
static void *poll_until_the_end(void *arg)
{
	struct owner *o = arg;
	struct ibv_wc wc;

	/* relaxed, both: nothing else is told */
	while (!atomic_load_explicit(&o->is_over, memory_order_relaxed)) {
		ibv_poll_cq(o->m.end.cq, 1, &wc);
		atomic_fetch_add_explicit(&o->polls, 1, memory_order_relaxed);
	}
	return NULL;
}

static void make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {DEPTH, DEPTH, 4, 4, 64},
		.qp_type = IBV_QPT_RC,
	};

	end->qp = ibv_create_qp(end->pd, &init);
	assert_non_null(end->qp);
}

static void reset(struct end *end)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
}

static void post_receives(struct meet *m, void *mem, struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mem, SIZE, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	int i;

	for (i = 0; i < DEPTH; i++)
		assert_int_equal(ibv_post_recv(m->end.qp, &wr, &bad), 0);
}

/* Waits until the other thread has polled so often. */
static void wait_polls(struct owner *o, unsigned n)
{
	/* relaxed: a count */
	unsigned from = atomic_load_explicit(&o->polls, memory_order_relaxed);

	while (atomic_load_explicit(&o->polls, memory_order_relaxed) - from < n)
		sched_yield();
}

static void own(struct owner *o, bool destroys)
{
	struct meet *m = &o->m;
	void *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(
		m->end.pd, mem, SIZE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	struct meet_side mine;

	assert_non_null(mr);
	mine = (struct meet_side){m->end.qp->qp_num, mr->rkey, (uintptr_t)mem};
	two_swap(m->self, &mine, &m->other, sizeof(mine));
	meet_connect(m, &opts);
	post_receives(m, mem, mr);
	two_wait(m->self);
	wait_polls(o, (unsigned)rand_r(&o->seed) % 1000);
	if (destroys)
		assert_int_equal(ibv_destroy_qp(m->end.qp), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(mem, SIZE), 0);
	two_wait(m->self);
	if (destroys)
		make_qp(&m->end);
	else
		reset(&m->end);
}

/* --- the other */

static void post_some(struct meet *m, unsigned *seed)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM};
	int i;

	for (i = 0; i < DEPTH; i++) {
		unsigned chance = (unsigned)rand_r(seed);
		enum ibv_wr_opcode opcode = opcodes[chance % 5];
		uint32_t length = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
					  ? 8
					  : (chance >> 8) % SIZE;

		assert_int_equal(
			meet_post(m, opcode, (unsigned)i, 0, length, 0, 0), 0);
	}
}

static void use(struct meet *m, unsigned *seed)
{
	const struct meet_side mine = {.qpn = m->end.qp->qp_num};
	bool has_failed = false;
	struct ibv_wc wc;
	uint64_t i;

	two_swap(m->self, &mine, &m->other, sizeof(mine));
	meet_connect(m, &opts);
	two_wait(m->self);
	post_some(m, seed);
	for (i = 0; i < DEPTH; i++) {
		while (!ibv_poll_cq(m->end.cq, 1, &wc))
			;
		assert_int_equal(wc.wr_id, i);
		if (has_failed)
			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		else if (wc.status != IBV_WC_SUCCESS)
			assert_true(wc.status == IBV_WC_REM_ACCESS_ERR ||
				    wc.status == IBV_WC_REM_OP_ERR ||
				    wc.status == IBV_WC_RETRY_EXC_ERR);
		has_failed = wc.status != IBV_WC_SUCCESS;
	}
	two_wait(m->self);
	reset(&m->end);
}

static void body(const struct two_process *self)
{
	struct owner o = {.seed = 7 + (unsigned)self->number};
	pthread_t poller;
	unsigned i;

	meet_make(&o.m, self, &opts);
	if (!self->number)
		assert_int_equal(
			pthread_create(&poller, NULL, poll_until_the_end, &o),
			0);
	for (i = 0; i < rounds; i++) {
		if (self->number)
			use(&o.m, &o.seed);
		else
			own(&o, i % 2);
	}
	/* relaxed: as where it is read */
	atomic_store_explicit(&o.is_over, true, memory_order_relaxed);
	if (!self->number)
		assert_int_equal(pthread_join(poller, NULL), 0);
	meet_end(&o.m);
}

TEST(memory__goes_under_load_NO_ACCESS_AFTER)
{
	struct two_process p[2] = {0};

	two_run(p, body);
	assert_int_equal(two_count(&p[0], " is wrong"), 0);
	assert_int_equal(two_count(&p[1], " is wrong"), 0);
}

int main(int argc, char *argv[])
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	return tests_run(NULL, NULL);
}
