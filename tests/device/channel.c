/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Completion channels: many CQs on one, the fd with poll, epoll and
 * O_NONBLOCK, a thread that waits, acknowledgements.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "wire.h"

static void arm(struct ibv_cq *cq, int solicited_only)
{
	assert_int_equal(ibv_req_notify_cq(cq, solicited_only), 0);
}

static void message(struct wire *w)
{
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
}

#define MANY 20

static void make_many(struct wire **w, struct ibv_comp_channel *ch)
{
	struct wire_opts opts = WIRE_DEFAULTS;

	opts.channel = ch;
	opts.depth = 4;
	for (int i = 0; i < MANY; ++i)
		w[i] = wire_new(&opts);
}

static void gather(struct wire **w, struct ibv_comp_channel *ch, int n)
{
	int seen[MANY] = {0};

	for (int i = 0; i < n; ++i) {
		struct ibv_cq *cq;
		void *context;
		int which = 0;

		fx_wait_readable(ch->fd, "an event of one of the CQs");
		assert_int_equal(ibv_get_cq_event(ch, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		while (which < MANY && w[which]->b.rcq != cq)
			++which;
		assert_in_range(which, 0, MANY - 1);
		assert_ptr_equal(context, &w[which]->b);
		assert_int_equal(seen[which]++, 0);
		fx_expect(cq, 1, IBV_WC_SUCCESS);
	}
	assert_false(fx_readable(ch->fd));
}

FX_TEST(channel__of_20_cqs_one_event_each)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct wire *w[MANY];

	make_many(w, ch);
	for (int round = 0; round < 3; ++round) {
		for (int i = 0; i < MANY; ++i) {
			arm(w[i]->b.rcq, 0);
			assert_int_equal(wire_recv(&w[i]->b, 1, 0, 64), 0);
		}
		for (int i = 0; i < MANY; ++i)
			assert_int_equal(
				wire_send(&w[(i * 7 + round) % MANY]->a, 2), 0);
		gather(w, ch, MANY);
		for (int i = 0; i < MANY; ++i)
			fx_expect(w[i]->a.scq, 2, IBV_WC_SUCCESS);
	}
}

FX_TEST(channel__only_cqs_with_completions_wake)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct wire *w[MANY];

	make_many(w, ch);
	for (int i = 0; i < MANY; ++i)
		arm(w[i]->b.rcq, 0);
	for (int i = 0; i < MANY; i += 3) {
		assert_int_equal(wire_recv(&w[i]->b, 1, 0, 64), 0);
		assert_int_equal(wire_send(&w[i]->a, 2), 0);
	}
	gather(w, ch, (MANY + 2) / 3);
}

/* A queue pair that is connected to itself: a send ends behind its receive. */
FX_TEST(channel__events_in_the_order_of_completions)
{
	struct wire_opts opts = WIRE_DEFAULTS;
	struct end end;

	wire_end(&opts, &end);
	end.peer = &end;
	wire_move(&opts, end.qp, end.qp->qp_num, IBV_QPS_RTS);
	for (int i = 0; i < 10; ++i) {
		arm(end.rcq, 0);
		arm(end.scq, 0);
		assert_int_equal(wire_recv(&end, 1, 0, 64), 0);
		assert_int_equal(wire_send(&end, 2), 0);
		fx_expect_event(end.channel, end.rcq);
		fx_expect_event(end.channel, end.scq);
		fx_expect(end.rcq, 1, IBV_WC_SUCCESS);
		fx_expect(end.scq, 2, IBV_WC_SUCCESS);
	}
}

FX_TEST(get_cq_event__nonblocking_EAGAIN)
{
	struct wire *w = wire_new(NULL);
	struct ibv_cq *cq;
	void *context;

	fx_nonblock(w->b.channel->fd);
	assert_int_equal(ibv_get_cq_event(w->b.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_int_equal(ibv_get_cq_event(w->b.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
}

static int epoll_of(int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events};
	int ep = epoll_create1(0);

	assert_true(ep >= 0);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	return ep;
}

FX_TEST(epoll__level_stays_until_read)
{
	struct wire *w = wire_new(NULL);
	int ep = epoll_of(w->b.channel->fd, EPOLLIN);
	struct epoll_event ev;

	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	arm(w->b.rcq, 0);
	message(w);
	assert_int_equal(epoll_wait(ep, &ev, 1, FX_DEADLINE_S * 1000), 1);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	close(ep);
}

FX_TEST(epoll__edge_per_event)
{
	struct wire *w = wire_new(NULL);
	int ep = epoll_of(w->b.channel->fd, EPOLLIN | EPOLLET);
	struct epoll_event ev;

	for (int i = 0; i < 3; ++i) {
		arm(w->b.rcq, 0);
		message(w);
		assert_int_equal(epoll_wait(ep, &ev, 1, FX_DEADLINE_S * 1000),
				 1);
		assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	}
	for (int i = 0; i < 3; ++i)
		fx_expect_event(w->b.channel, w->b.rcq);
	close(ep);
}

struct waiter {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	int ret;
	int error;
	atomic_bool done;
};

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	void *context;

	waiter->ret = ibv_get_cq_event(waiter->channel, &waiter->cq, &context);
	waiter->error = errno;
	if (waiter->ret == 0)
		ibv_ack_cq_events(waiter->cq, 1);
	/* release: the results above; pairs with the acquire in is_done() */
	atomic_store_explicit(&waiter->done, true, memory_order_release);
	return NULL;
}

static bool is_done(struct waiter *waiter)
{
	/* acquire: pairs with the release of the thread's last store */
	return atomic_load_explicit(&waiter->done, memory_order_acquire);
}

static void join_waiter(pthread_t thread, struct waiter *waiter)
{
	struct fx_deadline d = fx_deadline();

	while (!is_done(waiter))
		fx_check(&d, "the other thread's return");
	assert_int_equal(pthread_join(thread, NULL), 0);
}

FX_TEST(get_cq_event__blocks_until_completion)
{
	struct wire *w = wire_new(NULL);
	struct waiter waiter = {.channel = w->b.channel};
	pthread_t t;

	arm(w->b.rcq, 0);
	assert_int_equal(pthread_create(&t, NULL, wait_for_event, &waiter), 0);
	message(w);
	join_waiter(t, &waiter);
	assert_int_equal(waiter.ret, 0);
	assert_ptr_equal(waiter.cq, w->b.rcq);
}

static void on_signal(int sig)
{
	(void)sig;
}

FX_TEST(get_cq_event__signal_EINTR)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct sigaction old;
	struct waiter waiter = {.channel = fx_channel()};
	struct fx_deadline d = fx_deadline();
	pthread_t t;

	assert_int_equal(sigaction(SIGUSR1, &act, &old), 0);
	assert_int_equal(pthread_create(&t, NULL, wait_for_event, &waiter), 0);
	while (!is_done(&waiter)) {
		pthread_kill(t, SIGUSR1);
		fx_check(&d, "the return from a blocking read by a signal");
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(waiter.ret, -1);
	assert_int_equal(waiter.error, EINTR);
	sigaction(SIGUSR1, &old, NULL);
}

static void *destroy_cq(void *arg)
{
	struct waiter *waiter = arg;

	waiter->ret = ibv_destroy_cq(waiter->cq);
	/* release: the result; pairs with the acquire in is_done() */
	atomic_store_explicit(&waiter->done, true, memory_order_release);
	return NULL;
}

FX_TEST(destroy_cq__waits_for_acknowledgement)
{
	struct wire *w = wire_new(NULL);
	struct waiter waiter = {.cq = w->b.rcq};
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	for (int i = 0; i < 3; ++i) {
		arm(w->b.rcq, 0);
		message(w);
		fx_wait_readable(w->b.channel->fd, "an event");
		assert_int_equal(ibv_get_cq_event(w->b.channel, &cq, &context),
				 0);
	}
	ibv_ack_cq_events(cq, 2);
	assert_int_equal(fx_destroy(w->b.qp), 0);
	fx_forget(w->b.rcq);
	assert_int_equal(pthread_create(&t, NULL, destroy_cq, &waiter), 0);
	/* long enough that a destroy which does not wait would be noticed */
	usleep(50000);
	assert_false(is_done(&waiter));
	ibv_ack_cq_events(cq, 1);
	join_waiter(t, &waiter);
	assert_int_equal(waiter.ret, 0);
}

FX_TEST(destroy_cq__withdraws_unread_events)
{
	struct wire *w = wire_new(NULL);

	arm(w->b.rcq, 0);
	message(w);
	fx_wait_readable(w->b.channel->fd, "an event");
	assert_int_equal(fx_destroy(w->b.qp), 0);
	assert_int_equal(fx_destroy(w->b.rcq), 0);
	assert_false(fx_readable(w->b.channel->fd));
}

FX_TEST(destroy_cq__leaves_events_of_others)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *one;
	struct wire *two;

	opts.channel = ch;
	one = wire_new(&opts);
	two = wire_new(&opts);
	arm(one->b.rcq, 0);
	arm(two->b.rcq, 0);
	message(one);
	message(two);
	fx_wait_readable(ch->fd, "an event");
	assert_int_equal(fx_destroy(one->b.qp), 0);
	assert_int_equal(fx_destroy(one->b.rcq), 0);
	fx_expect_event(ch, two->b.rcq);
	assert_false(fx_readable(ch->fd));
}

FX_MAIN("channel")
