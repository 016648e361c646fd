/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Asynchronous events: a descriptor per context, events of the objects of
 * that context, acknowledged before their object can go.
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "wire.h"

/* What is left over from earlier tests. */
static void forget_events(struct ibv_context *verbs)
{
	struct ibv_async_event event;

	while (fx_readable(verbs->async_fd)) {
		assert_int_equal(ibv_get_async_event(verbs, &event), 0);
		ibv_ack_async_event(&event);
	}
}

/* An event that every device raises: an SRQ of one receive with limit one. */
struct srq_event {
	struct ibv_srq *srq;
	struct wire *w;
};

static struct srq_event srq_event_new(void)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct ibv_srq_attr attr = {.srq_limit = 1};
	struct srq_event e;

	opts.srq_pd = fx_pd();
	opts.srq = fx_srq(opts.srq_pd, 4);
	e.srq = opts.srq;
	e.w = wire_new(&opts);
	forget_events(dut.verbs);
	assert_int_equal(wire_srq_recv(e.srq, e.w->b.mr, 1), 0);
	assert_int_equal(ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(wire_send(&e.w->a, 2), 0);
	fx_expect(e.w->a.scq, 2, IBV_WC_SUCCESS);
	return e;
}

FX_TEST(async_fd__nonblocking_EAGAIN)
{
	struct ibv_context *verbs = fx_context();
	struct ibv_async_event event;

	fx_nonblock(verbs->async_fd);
	assert_int_equal(ibv_get_async_event(verbs, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

FX_TEST(async_fd__readable_until_got)
{
	struct srq_event e = srq_event_new();
	struct ibv_async_event event;

	fx_wait_readable(dut.verbs->async_fd, "the limit event");
	assert_int_equal(ibv_get_async_event(dut.verbs, &event), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, e.srq);
	assert_false(fx_readable(dut.verbs->async_fd));
}

FX_TEST(event__only_in_its_own_context)
{
	struct ibv_context *other = fx_context();

	srq_event_new();
	fx_expect_async(dut.verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_false(fx_readable(other->async_fd));
}

struct destroyer {
	struct ibv_srq *srq;
	int ret;
	atomic_bool done;
};

static void *destroy_srq(void *arg)
{
	struct destroyer *d = arg;

	d->ret = ibv_destroy_srq(d->srq);
	/* release: the result; pairs with the acquire in the test */
	atomic_store_explicit(&d->done, true, memory_order_release);
	return NULL;
}

FX_TEST(destroy__waits_for_acknowledgement)
{
	struct srq_event e = srq_event_new();
	struct destroyer destroyer = {.srq = e.srq};
	struct fx_deadline d = fx_deadline();
	struct ibv_async_event event;
	pthread_t t;

	fx_wait_readable(dut.verbs->async_fd, "the limit event");
	assert_int_equal(ibv_get_async_event(dut.verbs, &event), 0);
	assert_int_equal(fx_destroy(e.w->b.qp), 0);
	fx_forget(e.srq);
	assert_int_equal(pthread_create(&t, NULL, destroy_srq, &destroyer), 0);
	/* long enough that a destroy which does not wait would be noticed */
	usleep(50000);
	assert_false(
		atomic_load_explicit(&destroyer.done, memory_order_acquire));
	ibv_ack_async_event(&event);
	while (!atomic_load_explicit(&destroyer.done, memory_order_acquire))
		fx_check(&d, "the end of the destruction");
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(destroyer.ret, 0);
}

FX_TEST(destroy__withdraws_unread_events)
{
	struct srq_event e = srq_event_new();

	fx_wait_readable(dut.verbs->async_fd, "the limit event");
	assert_int_equal(fx_destroy(e.w->b.qp), 0);
	assert_int_equal(fx_destroy(e.srq), 0);
	assert_false(fx_readable(dut.verbs->async_fd));
}

FX_TEST(access_error__event_at_the_responder)
{
	struct wire *w = wire_new(NULL);
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.id = 1,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct ibv_async_event event;

	fx_need(dut.traits->access_event,
		"the device raises no event for a remote access error");
	wire_wr(&w->a, &op, &wr, &sge);
	wr.wr.rdma.rkey ^= 0x55;
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	event = fx_expect_async(dut.verbs, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, w->b.qp);
}

FX_TEST(first_message__in_rtr_COMM_EST)
{
	struct ibv_async_event event;
	struct end a;
	struct end b;

	fx_need(dut.traits->comm_est_event, "the device raises no COMM_EST");
	fx_far();
	wire_end(NULL, &a);
	fx_near();
	wire_end(NULL, &b);
	a.peer = &b;
	wire_move(NULL, b.qp, a.qp->qp_num, IBV_QPS_RTR);
	wire_move(NULL, a.qp, b.qp->qp_num, IBV_QPS_RTS);
	assert_int_equal(wire_recv(&b, 1, 0, 8), 0);
	assert_int_equal(wire_send(&a, 2), 0);
	event = fx_expect_async(dut.verbs, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, b.qp);
	fx_expect(b.rcq, 1, IBV_WC_SUCCESS);
	fx_expect(a.scq, 2, IBV_WC_SUCCESS);
}

static void on_signal(int sig)
{
	(void)sig;
}

struct reader {
	struct ibv_context *verbs;
	int ret;
	int error;
	atomic_bool done;
};

static void *read_event(void *arg)
{
	struct reader *r = arg;
	struct ibv_async_event event;

	r->ret = ibv_get_async_event(r->verbs, &event);
	r->error = errno;
	/* release: the result; pairs with the acquire in the test */
	atomic_store_explicit(&r->done, true, memory_order_release);
	return NULL;
}

FX_TEST(get_async_event__signal_EINTR)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct sigaction old;
	struct reader reader = {.verbs = fx_context()};
	struct fx_deadline d = fx_deadline();
	pthread_t t;

	assert_int_equal(sigaction(SIGUSR1, &act, &old), 0);
	assert_int_equal(pthread_create(&t, NULL, read_event, &reader), 0);
	while (!atomic_load_explicit(&reader.done, memory_order_acquire)) {
		pthread_kill(t, SIGUSR1);
		fx_check(&d, "the return from a blocking read by a signal");
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(reader.ret, -1);
	assert_int_equal(reader.error, EINTR);
	sigaction(SIGUSR1, &old, NULL);
}

FX_MAIN("async")
