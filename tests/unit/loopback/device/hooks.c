/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hooks.c -- the places where a hook is called, in their order, and that a
 * hook may call verbs and is gone when set_hook() says so.
 */

#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MAX_POINTS 64

static enum rpma_loopback_point points[MAX_POINTS];
static int npoints;

static void record(enum rpma_loopback_point point, const void *object,
		   void *arg)
{
	(void)object, (void)arg;
	if (npoints < MAX_POINTS)
		points[npoints++] = point;
}

static void expect_points(const enum rpma_loopback_point *expected, int n)
{
	assert_int_equal(npoints, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(points[i], expected[i]);
	npoints = 0;
}

FRESH(hook__sees_arm_post_deliver_get_ack_poll)
{
	static const enum rpma_loopback_point expected[] = {
		RPMA_LOOPBACK_ARM,	    RPMA_LOOPBACK_ARM_DONE,
		RPMA_LOOPBACK_POST_SEND,    RPMA_LOOPBACK_DELIVER,
		RPMA_LOOPBACK_DELIVER_DONE, RPMA_LOOPBACK_POST_SEND_DONE,
		RPMA_LOOPBACK_GET_EVENT,    RPMA_LOOPBACK_GET_EVENT_DONE,
		RPMA_LOOPBACK_ACK,	    RPMA_LOOPBACK_ACK_DONE,
		RPMA_LOOPBACK_POLL,	    RPMA_LOOPBACK_POLL_DONE,
		RPMA_LOOPBACK_POST_RECV,    RPMA_LOOPBACK_POST_RECV_DONE,
		RPMA_LOOPBACK_MODIFY,	    RPMA_LOOPBACK_MODIFY_DONE,
	};
	struct pair *p = pair_new(0);

	npoints = 0;
	rpma_loopback_set_hook(record, NULL);
	ibv_req_notify_cq(p->a.cq, 0);
	end_write(&p->a, &p->b, 1, 0, 8);
	end_take_event(&p->a);
	end_wait(&p->a);
	end_recv(&p->a, 2, 0, 8);
	end_move(&p->a, NULL, IBV_QPS_ERR);
	rpma_loopback_set_hook(NULL, NULL);
	expect_points(expected, sizeof(expected) / sizeof(expected[0]));
	pair_delete(p);
	assert_int_equal(npoints, 0);
}

FRESH(hook__sees_destroy)
{
	static const enum rpma_loopback_point expected[] = {
		RPMA_LOOPBACK_DESTROY,
		RPMA_LOOPBACK_DESTROY_DONE,
	};
	struct pair *p = pair_new(0);

	npoints = 0;
	rpma_loopback_set_hook(record, NULL);
	ibv_destroy_qp(p->a.qp);
	rpma_loopback_set_hook(NULL, NULL);
	expect_points(expected, 2);
	p->a.qp = end_qp(&p->a);
	pair_delete(p);
}

/* A completion between an arm and the poll that follows it, made by a hook. */
static void write_after_arm(enum rpma_loopback_point point, const void *object,
			    void *arg)
{
	struct pair *p = arg;

	if (point == RPMA_LOOPBACK_ARM_DONE && object == p->a.cq)
		assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
}

FRESH(hook__may_call_verbs)
{
	struct pair *p = pair_new(0);

	rpma_loopback_set_hook(write_after_arm, p);
	assert_int_equal(ibv_req_notify_cq(p->a.cq, 0), 0);
	rpma_loopback_set_hook(NULL, NULL);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	end_take_event(&p->a);
	pair_delete(p);
}

static _Atomic int inside, stop;

static void enter(enum rpma_loopback_point point, const void *object, void *arg)
{
	(void)point, (void)object;
	/* relaxed: set_hook() is what orders them */
	atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed);
	*(int *)arg += 1; /* one thread calls hooks here: no race */
	atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
}

static void *poll_all_the_time(void *arg)
{
	struct ibv_wc wc;

	/* relaxed: a flag to end a loop */
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		ibv_poll_cq(arg, 1, &wc);
	return NULL;
}

FRESH(set_hook__the_old_one_IS_OVER)
{
	struct pair *p = pair_new(0);
	pthread_t thread;

	assert_int_equal(
		pthread_create(&thread, NULL, poll_all_the_time, p->a.cq), 0);
	for (int i = 0; i < 1000; i++) {
		int calls = 0; /* on the stack: a late call would be seen */

		rpma_loopback_set_hook(enter, &calls);
		rpma_loopback_set_hook(NULL, NULL);
		/* relaxed: as above */
		assert_int_equal(
			atomic_load_explicit(&inside, memory_order_relaxed), 0);
	}
	/* relaxed: a flag to end a loop */
	atomic_store_explicit(&stop, 1, memory_order_relaxed);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair_delete(p);
}

FRESH(point_name__each_has_its_own)
{
	for (int i = 0; i < RPMA_LOOPBACK_POINTS; i++) {
		assert_string_not_equal(rpma_loopback_point_name(i), "?");
		for (int k = 0; k < i; k++)
			assert_string_not_equal(rpma_loopback_point_name(i),
						rpma_loopback_point_name(k));
	}
	assert_string_equal(rpma_loopback_point_name(RPMA_LOOPBACK_POINTS),
			    "?");
}

TEST_MAIN()
