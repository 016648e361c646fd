/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * knobs.c -- behaviour in which real devices differ: the default, and the
 * effect of a knob. Also overrun, removal, and raised events.
 */

#include "fixture.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static void knob(const char *rule)
{
	assert_int_equal(rpma_loopback_fault(rule), 0);
}

static uint32_t next_number(struct pair *p, uint32_t *first)
{
	struct ibv_qp *qp = end_qp(&p->a);
	uint32_t second;

	*first = qp->qp_num;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = end_qp(&p->a);
	second = qp->qp_num;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return second;
}

FRESH(qp_number__reused_ONLY_WITH_THE_KNOB)
{
	struct pair *p = pair_new(0);
	uint32_t first, second;

	second = next_number(p, &first);
	assert_int_not_equal(second, first);
	knob("knob:qpn_reuse=1");
	second = next_number(p, &first);
	assert_int_equal(second, first);
	pair_delete(p);
}

/* Completions of a QP that remain after it was destroyed. */
static int left_after_destroy(struct pair *p)
{
	struct ibv_wc wc[4];

	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	assert_int_equal(end_write(&p->a, &p->b, 2, 0, 8), 0);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	p->a.qp = end_qp(&p->a);
	return ibv_poll_cq(p->a.cq, 4, wc);
}

FRESH(destroy_qp__leaves_completions_BY_DEFAULT)
{
	struct pair *p = pair_new(0);

	assert_int_equal(left_after_destroy(p), 2);
	pair_delete(p);
}

FRESH(destroy_qp__cleans_WITH_THE_KNOB)
{
	struct pair *p = pair_new(0);

	knob("knob:destroy_cleans=1");
	assert_int_equal(left_after_destroy(p), 0);
	pair_delete(p);
}

FRESH(arm__not_empty_EVENT_WITH_THE_KNOB)
{
	struct pair *p = pair_new(0);

	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	assert_int_equal(ibv_req_notify_cq(p->a.cq, 0), 0);
	assert_false(end_has_event(&p->a));
	knob("knob:arm_pending=1");
	assert_int_equal(ibv_req_notify_cq(p->a.cq, 0), 0);
	end_take_event(&p->a);
	pair_delete(p);
}

FRESH(error__fields_SPOILT_UNLESS_PLAIN)
{
	struct pair *p = pair_new(0);
	struct ibv_wc wc;

	assert_int_equal(end_recv(&p->a, 1, 0, 8), 0);
	assert_int_equal(end_move(&p->a, NULL, IBV_QPS_ERR), 0);
	wc = end_wait(&p->a);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.qp_num, p->a.qp->qp_num);
	assert_int_not_equal(wc.byte_len, 0);
	knob("knob:plain_errors=1");
	assert_int_equal(end_recv(&p->a, 2, 0, 8), 0);
	wc = end_wait(&p->a);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, 0);
	pair_delete(p);
}

static int last_wqe_events(void)
{
	struct pair *p = pair_new(1);
	struct rpma_loopback_stats before, after;

	rpma_loopback_get_stats(&before);
	assert_int_equal(end_move(&p->a, NULL, IBV_QPS_ERR), 0);
	rpma_loopback_get_stats(&after);
	pair_delete(p);
	return (int)(after.async_events - before.async_events);
}

FRESH(last_wqe__once_NEVER_OR_TWICE)
{
	assert_int_equal(last_wqe_events(), 1);
	knob("knob:last_wqe=1");
	assert_int_equal(last_wqe_events(), 0);
	knob("knob:last_wqe=2");
	assert_int_equal(last_wqe_events(), 2);
}

FRESH(retry__bounded_BY_THE_KNOB)
{
	struct pair *p = pair_new(0);
	struct timespec from, to;
	struct rpma_loopback_stats before, after;

	knob("knob:retry_us=100");
	rpma_loopback_get_stats(&before);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	p->b.qp = end_qp(&p->b);
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_RETRY_EXC_ERR);
	clock_gettime(CLOCK_MONOTONIC, &to);
	rpma_loopback_get_stats(&after);
	print_message("three tries of 100 us took %ld us\n",
		      (to.tv_sec - from.tv_sec) * 1000000 +
			      (to.tv_nsec - from.tv_nsec) / 1000);
	assert_int_equal(after.retries - before.retries, 3);
	pair_delete(p);
}

static struct ibv_async_event async_event(struct end *e)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(e->ctx, &event), 0);
	ibv_ack_async_event(&event);
	return event;
}

static void overfill(struct pair *p)
{
	struct ibv_cq *small = ibv_create_cq(p->a.ctx, 1, NULL, NULL, 0);
	struct ibv_cq *large = p->a.cq;

	assert_non_null(small);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	p->a.cq = small;
	p->a.qp = end_qp(&p->a);
	p->a.cq = large;
	assert_int_equal(end_move(&p->b, NULL, IBV_QPS_RESET), 0);
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		assert_int_equal(end_move(&p->a, &p->b, to), 0);
		assert_int_equal(end_move(&p->b, &p->a, to), 0);
	}
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	assert_int_equal(end_write(&p->a, &p->b, 2, 0, 8), 0);
}

FRESH(overrun__cq_is_dead_QP_FATAL)
{
	struct pair *p = pair_new(0);
	struct ibv_async_event event;
	struct ibv_cq *small;
	struct ibv_wc wc[4];

	overfill(p);
	small = p->a.qp->send_cq;
	event = async_event(&p->a);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, small);
	event = async_event(&p->a);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, p->a.qp);
	assert_int_equal(ibv_poll_cq(small, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(end_write(&p->a, &p->b, 3, 0, 8), 0);
	assert_int_equal(ibv_poll_cq(small, 4, wc), 0);
	knob("knob:after_cq_err=1");
	assert_int_equal(end_write(&p->a, &p->b, 4, 0, 8), 0);
	assert_int_equal(ibv_poll_cq(small, 4, wc), 1);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	assert_int_equal(ibv_destroy_cq(small), 0);
	p->a.qp = end_qp(&p->a);
	pair_delete(p);
}

FRESH(break_cq__as_by_overrun)
{
	struct pair *p = pair_new(0);
	struct ibv_async_event event;
	struct ibv_wc wc;

	assert_int_equal(rpma_loopback_break_cq(p->a.cq), 0);
	event = async_event(&p->a);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	assert_int_equal(ibv_poll_cq(p->a.cq, 1, &wc), 0);
	assert_int_equal(rpma_loopback_break_cq(NULL), -EINVAL);
	pair_delete(p);
}

FRESH(raise__every_kind_of_event)
{
	struct pair *p = pair_new(1);
	struct ibv_async_event event;

	assert_int_equal(rpma_loopback_raise(IBV_EVENT_PATH_MIG, p->a.qp), 0);
	event = async_event(&p->a);
	assert_ptr_equal(event.element.qp, p->a.qp);
	assert_int_equal(rpma_loopback_raise(IBV_EVENT_SRQ_ERR, p->a.srq), 0);
	event = async_event(&p->a);
	assert_ptr_equal(event.element.srq, p->a.srq);
	assert_int_equal(rpma_loopback_raise(IBV_EVENT_PORT_ERR, p->a.ctx), 0);
	event = async_event(&p->a);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	assert_int_equal(event.element.port_num, 1);
	assert_int_equal(rpma_loopback_raise(IBV_EVENT_CQ_ERR, p->a.qp),
			 -EINVAL);
	assert_int_equal(rpma_loopback_raise(-1, p->a.qp), -EINVAL);
	assert_int_equal(rpma_loopback_raise(1000, p->a.qp), -EINVAL);
	pair_delete(p);
}

FRESH(remove_device__flushes_AND_COMES_BACK)
{
	struct pair *p = pair_new(0);
	struct ibv_async_event event;
	struct ibv_device **list;
	int n;

	assert_int_equal(end_recv(&p->a, 1, 0, 8), 0);
	assert_int_equal(rpma_loopback_remove_device(0), 0);
	assert_int_equal(rpma_loopback_remove_device(0), -ENODEV);
	end_expect(&p->a, 1, IBV_WC_WR_FLUSH_ERR);
	event = async_event(&p->a);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 0);
	ibv_free_device_list(list);
	pair_delete(p); /* what there is can still be destroyed */
	assert_int_equal(rpma_loopback_restore_device(0), 0);
	assert_int_equal(rpma_loopback_restore_device(99), -ENODEV);
	pair_delete(pair_new(0));
}

TEST_MAIN()
