/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * faults.c -- the effect of rules on requests, calls and events, and the error
 * of a rule that is not understood.
 */

#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LATE_US 20000

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void fault(const char *rules)
{
	assert_int_equal(rpma_loopback_fault(rules), 0);
}

FRESH(wr__nth_before_FAILS_AND_FLUSHES)
{
	struct pair *p = pair_new(0);

	fault("wr:op=write,nth=2,status=rem_op_err");
	memset(p->a.buf, 7, 16);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	assert_int_equal(end_write(&p->a, &p->b, 2, 8, 8), 0);
	assert_int_equal(end_write(&p->a, &p->b, 3, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	end_expect(&p->a, 2, IBV_WC_REM_OP_ERR);
	end_expect(&p->a, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p->b.buf[0], 7);
	assert_int_equal(p->b.buf[8], 0); /* the data did not move */
	assert_int_equal(rpma_loopback_fault_count(), 1);
	pair_delete(p);
}

FRESH(wr__after_THE_DATA_MOVED)
{
	struct pair *p = pair_new(0);

	fault("wr:op=send,status=retry_exc_err,when=after,count=1");
	p->a.buf[0] = 9;
	assert_int_equal(end_recv(&p->b, 5, 0, 8), 0);
	assert_int_equal(end_send(&p->a, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_RETRY_EXC_ERR);
	end_expect(&p->b, 5, IBV_WC_SUCCESS);
	assert_int_equal(p->b.buf[0], 9);
	pair_delete(p);
}

FRESH(wr__of_one_qp_OTHERS_PASS)
{
	struct pair *p = pair_new(0), *q = pair_new(0);
	char rule[80];

	snprintf(rule, sizeof(rule), "wr:qp=%u,status=general_err",
		 p->a.qp->qp_num);
	fault(rule);
	assert_int_equal(end_write(&q->a, &q->b, 1, 0, 8), 0);
	end_expect(&q->a, 1, IBV_WC_SUCCESS);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_GENERAL_ERR);
	pair_delete(p);
	pair_delete(q);
}

/* The first that is made is number 1 of the process's life. */
FRESH(wr__of_the_nth_qp_OTHERS_PASS)
{
	struct pair *p = pair_new(0);
	struct pair *q;
	char rule[80];
	unsigned long n = 0;

	/* the order of those that this test makes: it looks for p's first */
	while (!rpma_loopback_fault_count()) {
		snprintf(rule, sizeof(rule), "wr:qp=#%lu,rnr=1,count=1", ++n);
		fault(rule);
		assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
		end_expect(&p->a, 1, IBV_WC_SUCCESS);
	}
	rpma_loopback_fault_clear();
	q = pair_new(0); /* the next two */
	snprintf(rule, sizeof(rule), "wr:qp=#%lu,status=general_err", n + 3);
	fault(rule);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	assert_int_equal(end_write(&q->a, &q->b, 1, 0, 8), 0);
	end_expect(&q->a, 1, IBV_WC_SUCCESS);
	assert_int_equal(end_write(&q->b, &q->a, 1, 0, 8), 0);
	end_expect(&q->b, 1, IBV_WC_GENERAL_ERR);
	pair_delete(p);
	pair_delete(q);
}

FRESH(wr__rnr_twice_SUCCEEDS_THEN)
{
	struct pair *p = pair_new(0);
	struct rpma_loopback_stats before, after;

	fault("wr:op=send,rnr=2,count=1");
	rpma_loopback_get_stats(&before);
	assert_int_equal(end_recv(&p->b, 5, 0, 8), 0);
	assert_int_equal(end_send(&p->a, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	rpma_loopback_get_stats(&after);
	assert_int_equal(after.rnr - before.rnr, 2);
	pair_delete(p);
}

FRESH(wr__rnr_thrice_RNR_RETRY_EXC_ERR)
{
	struct pair *p = pair_new(0);

	fault("wr:op=send,rnr=3,count=1");
	assert_int_equal(end_recv(&p->b, 5, 0, 8), 0);
	assert_int_equal(end_send(&p->a, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_delete(p);
}

FRESH(wr__delayed_IS_LATER)
{
	struct pair *p = pair_new(0);
	int64_t begin = now_us();

	fault("wr:delay_us=20000,count=1");
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	assert_int_equal(end_write(&p->a, &p->b, 2, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS); /* the order is kept */
	assert_true(now_us() - begin >= LATE_US);
	end_expect(&p->a, 2, IBV_WC_SUCCESS);
	pair_delete(p);
}

FRESH(call__nth_FAILS_ONCE)
{
	struct pair *p = pair_new(0);
	struct ibv_pd *pd;

	fault("call:verb=ibv_alloc_pd,nth=2,errno=ENOMEM");
	pd = ibv_alloc_pd(p->a.ctx);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	errno = 0;
	assert_null(ibv_alloc_pd(p->a.ctx));
	assert_int_equal(errno, ENOMEM);
	pd = ibv_alloc_pd(p->a.ctx);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	pair_delete(p);
}

FRESH(call__destroy_EIO_AND_AGAIN)
{
	struct pair *p = pair_new(0);

	fault("call:verb=ibv_destroy_qp,count=1");
	assert_int_equal(ibv_destroy_qp(p->a.qp), EIO);
	pair_delete(p);
}

FRESH(call__post_send_BAD_WR_IS_THE_FIRST)
{
	struct pair *p = pair_new(0);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;

	fault("call:verb=ibv_post_send,errno=ENOMEM,count=1");
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	pair_delete(p);
}

static void make_event(struct pair *p)
{
	assert_int_equal(ibv_req_notify_cq(p->a.cq, 0), 0);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
}

FRESH(event__dropped_NONE)
{
	struct pair *p = pair_new(0);

	fault("event:of=cq,action=drop,nth=1");
	make_event(p);
	assert_false(end_has_event(&p->a));
	make_event(p);
	end_take_event(&p->a);
	pair_delete(p);
}

FRESH(event__doubled_TWO)
{
	struct pair *p = pair_new(0);

	fault("event:of=cq,action=double,nth=1");
	make_event(p);
	end_take_event(&p->a);
	end_take_event(&p->a);
	assert_false(end_has_event(&p->a));
	pair_delete(p);
}

FRESH(event__late_AFTER_THE_COMPLETION)
{
	struct pair *p = pair_new(0);
	int64_t begin = now_us();

	fault("event:of=cq,action=late,delay_us=20000,nth=1");
	make_event(p);
	end_take_event(&p->a); /* waits for the event */
	assert_true(now_us() - begin >= LATE_US);
	pair_delete(p);
}

FRESH(event__late_OF_A_CQ_THAT_IS_GONE)
{
	struct pair *p = pair_new(0);

	fault("event:of=cq,action=late,delay_us=1000");
	make_event(p);
	pair_delete(p);
	p = pair_new(0);
	make_event(p);
	end_take_event(&p->a);
	pair_delete(p);
}

FRESH(event__spurious_ON_AN_EMPTY_CQ)
{
	struct pair *p = pair_new(0);

	assert_int_equal(rpma_loopback_spurious_event(p->a.cq), 0);
	end_take_event(&p->a);
	pair_delete(p);
}

FRESH(rules__bad_REFUSED_AS_A_WHOLE)
{
	static const char *const bad[] = {
		"wr",
		"wr:",
		"wr:status",
		"wr:nth=1",
		"wr:status=no_such",
		"wr:status=rem_op_err,nth=x",
		"wr:status=rem_op_err,no_such=1",
		"no_such:a=1",
		"call:nth=1",
		"call:verb=no_such",
		"call:verb=ibv_alloc_pd,errno=ENOSUCH",
		"event:of=cq",
		"link:nth=1",
		"link:action=no_such",
		"link:action=stall",
		"event:action=drop",
		"event:of=no_such,action=drop",
		"knob:no_such=1",
		"knob:qpn_reuse=-1x",
		"wr:status=rem_op_err;no_such:a=1",
	};
	struct pair *p = pair_new(0);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rpma_loopback_fault(bad[i]), -EINVAL);
	assert_int_equal(rpma_loopback_fault(""), 0); /* nothing to add */
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	pair_delete(p);
}

FRESH(rules__too_many_REFUSED)
{
	int i, ret = 0;

	for (i = 0; i < 1000 && !ret; i++)
		ret = rpma_loopback_fault("wr:status=fatal_err,nth=1000000");
	assert_int_equal(ret, -EINVAL);
}

static uint32_t outcome(uint64_t seed)
{
	struct pair *p;
	uint32_t mask = 0;

	fresh(NULL);
	rpma_loopback_set_seed(seed);
	fault("call:verb=ibv_query_device,prob=3");
	p = pair_new(0);
	for (int i = 0; i < 32; i++) {
		struct ibv_device_attr attr;

		if (ibv_query_device(p->a.ctx, &attr))
			mask |= 1u << i;
	}
	pair_delete(p);
	return mask;
}

FRESH(rules__chance_FOLLOWS_FROM_THE_SEED)
{
	assert_int_equal(outcome(5), outcome(5));
	assert_int_not_equal(outcome(5), outcome(6));
}

TEST_MAIN()
