/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * strict.c -- the device reports every misuse that it promises to report, in
 * the modes that can, and none in a correct program.
 */

#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t misuses(void)
{
	struct rpma_loopback_stats stats;

	rpma_loopback_get_stats(&stats);
	return stats.misuses;
}

static struct pair *strict_pair(void)
{
	rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_WARN);
	return pair_new(0);
}

static void ack_later(int sig)
{
	(void)sig;
	_exit(42);
}

/* The call would wait for itself: a child shows that it said so before. */
FRESH(destroy_cq__reader_holds_its_event)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		struct pair *p;
		struct ibv_cq *cq;
		void *context;

		signal(SIGABRT, ack_later);
		rpma_loopback_set_strict(RPMA_LOOPBACK_STRICT_ABORT);
		p = pair_new(0);
		rpma_loopback_spurious_event(p->a.cq);
		ibv_get_cq_event(p->a.channel, &cq, &context);
		ibv_destroy_qp(p->a.qp);
		ibv_destroy_cq(p->a.cq);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

FRESH(good_use__SILENT)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	for (int i = 0; i < 50; i++) {
		p->a.buf[0] = (uint8_t)i;
		assert_int_equal(end_recv(&p->b, 1, 0, 4096), 0);
		assert_int_equal(end_send(&p->a, 2, 0, 4096), 0);
		end_expect(&p->b, 1, IBV_WC_SUCCESS);
		end_expect(&p->a, 2, IBV_WC_SUCCESS);
	}
	pair_delete(p);
	assert_int_equal(misuses(), before);
}

static void change_early(void *arg)
{
	struct pair *p = arg;

	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 64), 0);
	p->a.buf[3] ^= 1;
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
}

/*
 * The scheduler runs the delayed request in the thread that changes the buffer.
 * In threads of their own they would race, and a sanitizer would say so too.
 */
FRESH(buffer__changed_before_its_completion)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();
	struct rpma_loopback_sched sched = {
		.threads = 1,
		.body = {change_early},
		.arg = p,
		.runs = 1,
	};

	assert_int_equal(rpma_loopback_fault("wr:delay_us=1000,count=1"), 0);
	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), 0);
	assert_int_equal(misuses(), before + 1);
	pair_delete(p);
}

static int write_fenced(const struct pair *p, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)p->a.buf, 64, p->a.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
			.wr.rdma = {(uintptr_t)p->b.buf, p->b.mr->rkey},
		};

	return ibv_post_send(p->a.qp, &wr, &bad);
}

/* What was remembered of a request that failed is not its successor's. */
FRESH(buffer__changed_after_one_that_failed_SILENT)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT,
						IBV_QPS_RTR, IBV_QPS_RTS};
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	assert_int_equal(rpma_loopback_fault("wr:status=rem_op_err,count=1"),
			 0);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 64), 0);
	end_expect(&p->a, 1, IBV_WC_REM_OP_ERR);
	p->a.buf[3] ^= 1;
	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		assert_int_equal(end_move(&p->a, &p->b, way[i]), 0);
		assert_int_equal(end_move(&p->b, &p->a, way[i]), 0);
	}
	/* once around the queue, to the same place in it */
	for (uint64_t id = 2; id < 2 + DEPTH; id++) {
		assert_int_equal(write_fenced(p, id), 0);
		end_expect(&p->a, id, IBV_WC_SUCCESS);
	}
	pair_delete(p);
	assert_int_equal(misuses(), before);
}

FRESH(receives__overlap)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	assert_int_equal(end_recv(&p->b, 1, 0, 64), 0);
	assert_int_equal(end_recv(&p->b, 2, 64, 64), 0);
	assert_int_equal(misuses(), before);
	assert_int_equal(end_recv(&p->b, 3, 32, 0), 0); /* nothing */
	assert_int_equal(misuses(), before);
	assert_int_equal(end_recv(&p->b, 4, 32, 64), 0);
	assert_int_equal(misuses(), before + 2);
	pair_delete(p);
}

FRESH(post__in_a_wrong_state)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	assert_int_equal(end_move(&p->a, NULL, IBV_QPS_RESET), 0);
	assert_int_equal(end_send(&p->a, 1, 0, 8), EINVAL);
	assert_int_equal(end_recv(&p->a, 1, 0, 8), EINVAL);
	assert_int_equal(misuses(), before + 2);
	pair_delete(p);
}

FRESH(destroy__others_refer_to_it)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	assert_int_equal(ibv_destroy_cq(p->a.cq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(p->a.pd), EBUSY);
	assert_int_equal(misuses(), before + 2);
	pair_delete(p);
}

FRESH(destroy__not_an_object)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	assert_int_equal(ibv_destroy_cq((struct ibv_cq *)p->a.qp), ENOENT);
	assert_int_equal(ibv_destroy_qp((struct ibv_qp *)p->a.buf), ENOENT);
	assert_int_equal(misuses(), before + 2);
	pair_delete(p);
}

FRESH(destroy_qp__sends_under_way)
{
	uint64_t before = misuses();
	struct pair *p = strict_pair();

	assert_int_equal(end_send(&p->a, 1, 0, 8), 0); /* no receive */
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	assert_int_equal(misuses(), before + 1);
	p->a.qp = end_qp(&p->a);
	pair_delete(p);
}

TEST_MAIN()
