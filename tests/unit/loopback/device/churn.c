/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * churn.c -- destroy against execute. Threads post, poll and arm while QPs at
 * both ends are destroyed, made again, reset and broken, and regions come and
 * go. The test fails on a crash, on a report of a sanitizer, and if a receive
 * or signaled send of a QP that is in error at the end has not completed once.
 */

#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 30

static _Atomic int stop;

static int is_over(void)
{
	/* relaxed: a flag to end loops */
	return atomic_load_explicit(&stop, memory_order_relaxed);
}

static void set_over(int over)
{
	/* relaxed: as above */
	atomic_store_explicit(&stop, over, memory_order_relaxed);
}

static void *poll_and_arm(void *arg)
{
	struct end *e = arg;
	struct ibv_wc wc[8];

	while (!is_over()) {
		ibv_req_notify_cq(e->cq, 0);
		ibv_poll_cq(e->cq, 8, wc);
		while (end_has_event(e))
			end_take_event(e);
		sched_yield();
	}
	return NULL;
}

/* Everything that can be posted, whatever comes of it. */
static void *post(void *arg)
{
	struct pair *p = arg;

	while (!is_over()) {
		end_recv(&p->a, 1, 1024, 512);
		end_send(&p->a, 2, 0, 512);
		end_write(&p->a, &p->b, 3, 2048, 512);
		sched_yield();
	}
	return NULL;
}

static void connect_again(struct pair *p)
{
	end_move(&p->b, NULL, IBV_QPS_RESET);
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++)
		end_move(&p->b, &p->a, to);
}

/* What one end can suffer while the other one writes to it. */
static void churn_b(struct pair *p, unsigned round)
{
	struct ibv_mr *mr;

	switch (round % 4) {
	case 0:
		assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
		p->b.qp = end_qp(&p->b);
		break;
	case 1:
		end_move(&p->b, NULL, IBV_QPS_ERR);
		break;
	case 2:
		connect_again(p);
		break;
	default:
		mr = ibv_reg_mr(p->b.pd, p->b.buf, 4096,
				IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void churn(enum rpma_loopback_mode mode)
{
	struct pair *p[2];
	pthread_t thread[6];
	int n = 0;

	rpma_loopback_set_mode(mode);
	set_over(0);
	for (int i = 0; i < 2; i++) {
		p[i] = pair_new(0);
		assert_int_equal(pthread_create(&thread[n++], NULL,
						poll_and_arm, &p[i]->a),
				 0);
		assert_int_equal(pthread_create(&thread[n++], NULL,
						poll_and_arm, &p[i]->b),
				 0);
		assert_int_equal(pthread_create(&thread[n++], NULL, post, p[i]),
				 0);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		churn_b(p[round & 1], round / 2);
		sched_yield();
	}
	set_over(1);
	while (n)
		assert_int_equal(pthread_join(thread[--n], NULL), 0);
	pair_delete(p[0]);
	pair_delete(p[1]);
}

FRESH(churn__executed_by_the_poster)
{
	churn(RPMA_LOOPBACK_INLINE);
}

FRESH(churn__executed_by_the_progress_thread)
{
	churn(RPMA_LOOPBACK_THREAD);
}

/* Posts until the queue is full, counting what was taken. */
struct tally {
	struct pair *p;
	int posted;
};

static void *post_counted(void *arg)
{
	struct tally *t = arg;

	while (!is_over()) {
		if (!end_recv(&t->p->a, 1, 1024, 512))
			t->posted++;
		if (!end_write(&t->p->a, &t->p->b, 3, 2048, 512))
			t->posted++;
		sched_yield();
	}
	return NULL;
}

static int poll_all(struct end *e)
{
	struct ibv_wc wc[8];
	int n, all = 0;

	while ((n = ibv_poll_cq(e->cq, 8, wc)) > 0)
		all += n;
	return all;
}

static void break_while_posting(enum rpma_loopback_mode mode)
{
	struct tally t = {.p = pair_new(0)};
	pthread_t thread;
	int completed = 0;

	rpma_loopback_set_mode(mode);
	set_over(0);
	assert_int_equal(pthread_create(&thread, NULL, post_counted, &t), 0);
	while (completed < 50)
		completed += poll_all(&t.p->a);
	assert_int_equal(end_move(&t.p->a, NULL, IBV_QPS_ERR), 0);
	set_over(1);
	/* room for it to go on: its queues are full otherwise */
	assert_int_equal(pthread_join(thread, NULL), 0);
	while (completed < t.posted)
		completed += poll_all(&t.p->a);
	assert_int_equal(completed, t.posted);
	assert_int_equal(poll_all(&t.p->a), 0);
	pair_delete(t.p);
}

FRESH(break__while_posting_EACH_COMPLETES_ONCE)
{
	for (int i = 0; i < 10; i++) {
		break_while_posting(RPMA_LOOPBACK_INLINE);
		break_while_posting(RPMA_LOOPBACK_THREAD);
	}
}

static int exchange(void)
{
	struct pair *p = pair_new(0);
	int ret = end_recv(&p->b, 1, 0, 8) || end_send(&p->a, 2, 0, 8) ||
		  end_wait(&p->b).status || end_wait(&p->a).status;

	pair_delete(p);
	return ret;
}

/* The progress and service threads are the parent's: a child starts others. */
FRESH(fork__child_opens_devices_of_its_own)
{
	pid_t child;
	int status;

#ifdef __SANITIZE_THREAD__
	print_message("skipped: the thread sanitizer ends children of fork\n");
	skip();
#endif
	rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	assert_int_equal(rpma_loopback_fault("wr:delay_us=100"), 0);
	assert_int_equal(exchange(), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(exchange());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(exchange(), 0);
}

TEST_MAIN()
