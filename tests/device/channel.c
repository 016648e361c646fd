/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Completion channels: what an armed CQ is woken by, once; one channel for
 * many CQs; the fd with poll, epoll and O_NONBLOCK; acknowledgements. That no
 * event comes is looked at once, after the completion was seen: such a test
 * can overlook a late event, it cannot fail by being slow.
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

enum arming {
	NOT_ARMED,
	ANY,
	SOLICITED,
	ANY_THEN_SOLICITED,
	SOLICITED_THEN_ANY,
	ARMINGS
};
enum completion {
	PLAIN_RECV,
	SOLICITED_RECV,
	SOLICITED_IMM,
	FLUSHED_RECV,
	PLAIN_SEND,
	FAILED_SEND,
	COMPLETIONS
};

static const char *const arming_names[] = {"not armed", "any", "solicited",
					   "any then solicited",
					   "solicited then any"};
static const char *const completion_names[] = {
	"plain recv",	"solicited recv",  "solicited write with imm",
	"flushed recv", "successful send", "failed send"};

static void arm(struct ibv_cq *cq, int solicited_only)
{
	assert_int_equal(ibv_req_notify_cq(cq, solicited_only), 0);
}

static void arm_as(struct ibv_cq *cq, enum arming how)
{
	if (how == SOLICITED || how == SOLICITED_THEN_ANY)
		arm(cq, 1);
	if (how == ANY || how == ANY_THEN_SOLICITED ||
	    how == SOLICITED_THEN_ANY)
		arm(cq, 0);
	if (how == ANY_THEN_SOLICITED)
		arm(cq, 1);
}

static void deliver(struct wire *w, enum ibv_wr_opcode code, unsigned flags)
{
	struct op op = {.code = code, .id = 2, .flags = flags, .len = 8};

	op.flags |= IBV_SEND_SIGNALED;
	assert_int_equal(wire_post(&w->a, &op), 0);
	fx_drain(w->b.rcq, 1);
	fx_drain(w->a.scq, 1);
}

static void fail_a_send(struct wire *w)
{
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct op op = {.code = IBV_WR_RDMA_WRITE,
			.id = 3,
			.flags = IBV_SEND_SIGNALED,
			.len = 8};

	wire_wr(&w->a, &op, &wr, &sge);
	wr.wr.rdma.rkey ^= 0x55;
	assert_int_equal(ibv_post_send(w->a.qp, &wr, &bad), 0);
	fx_expect(w->a.scq, 3, IBV_WC_REM_ACCESS_ERR);
}

static void complete(struct wire *w, enum completion kind)
{
	switch (kind) {
	case PLAIN_RECV:
	case PLAIN_SEND:
		deliver(w, IBV_WR_SEND, 0);
		break;
	case SOLICITED_RECV:
		deliver(w, IBV_WR_SEND, IBV_SEND_SOLICITED);
		break;
	case SOLICITED_IMM:
		deliver(w, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED);
		break;
	case FLUSHED_RECV:
		wire_fail(w->b.qp);
		fx_expect(w->b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
		break;
	default:
		fail_a_send(w);
		break;
	}
}

static bool is_woken(enum arming how, enum completion kind)
{
	if (how == NOT_ARMED)
		return false;
	if (how != SOLICITED)
		return true;
	if (kind == FAILED_SEND || kind == FLUSHED_RECV)
		return dut.traits->error_is_solicited;
	return kind == SOLICITED_RECV || kind == SOLICITED_IMM;
}

static void check_arming(enum arming how, enum completion kind)
{
	size_t mark = fx_mark();
	struct wire *w = wire_new(NULL);
	bool of_send = kind == PLAIN_SEND || kind == FAILED_SEND;
	struct end *e = of_send ? &w->a : &w->b;
	struct ibv_cq *cq = of_send ? e->scq : e->rcq;

	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	arm_as(cq, how);
	complete(w, kind);
	if (is_woken(how, kind))
		fx_expect_event(e->channel, cq);
	else if (fx_readable(e->channel->fd))
		fail_msg("an event of a CQ armed for: %s, of: %s",
			 arming_names[how], completion_names[kind]);
	assert_false(fx_readable(e->channel->fd));
	fx_release(mark);
}

static void check_armings(enum completion kind)
{
	for (int how = NOT_ARMED; how < ARMINGS; ++how)
		check_arming((enum arming)how, kind);
}

static void arm__plain_recv(void **state)
{
	(void)state;
	check_armings(PLAIN_RECV);
}

static void arm__solicited_recv(void **state)
{
	(void)state;
	check_armings(SOLICITED_RECV);
}

static void arm__solicited_write_with_imm(void **state)
{
	(void)state;
	check_armings(SOLICITED_IMM);
}

static void arm__flushed_recv(void **state)
{
	(void)state;
	check_armings(FLUSHED_RECV);
}

static void arm__successful_send(void **state)
{
	(void)state;
	check_armings(PLAIN_SEND);
}

static void arm__failed_send(void **state)
{
	(void)state;
	check_armings(FAILED_SEND);
}

static void message(struct wire *w)
{
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
}

static void arm__is_one_shot(void **state)
{
	struct wire *w = wire_new(NULL);

	(void)state;
	for (int i = 0; i < 5; ++i) {
		arm(w->b.rcq, 0);
		message(w);
		message(w);
		message(w);
		fx_expect_event(w->b.channel, w->b.rcq);
		assert_false(fx_readable(w->b.channel->fd));
	}
}

static void arm__twice_is_one_event(void **state)
{
	struct wire *w = wire_new(NULL);

	(void)state;
	arm(w->b.rcq, 0);
	arm(w->b.rcq, 0);
	message(w);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_false(fx_readable(w->b.channel->fd));
}

static void arm__again_before_the_event_is_read(void **state)
{
	struct wire *w = wire_new(NULL);

	(void)state;
	arm(w->b.rcq, 0);
	message(w);
	fx_wait_readable(w->b.channel->fd, "the first event");
	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_false(fx_readable(w->b.channel->fd));
}

/* With a completion there already, an event may come; a poll must see it. */
static void arm__after_the_completion_poll_finds_it(void **state)
{
	struct wire *w = wire_new(NULL);

	(void)state;
	assert_int_equal(wire_recv(&w->b, 1, 0, 64), 0);
	assert_int_equal(wire_send(&w->a, 2), 0);
	fx_expect(w->a.scq, 2, IBV_WC_SUCCESS);
	arm(w->b.rcq, 0);
	fx_expect(w->b.rcq, 1, IBV_WC_SUCCESS);
	if (fx_readable(w->b.channel->fd))
		fx_expect_event(w->b.channel, w->b.rcq);
	else
		message(w);
}

static void event__may_find_the_queue_empty(void **state)
{
	struct wire *w = wire_new(NULL);

	(void)state;
	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
	fx_expect_empty(w->b.rcq);
	arm(w->b.rcq, 0);
	message(w);
	fx_expect_event(w->b.channel, w->b.rcq);
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

static void channel__of_20_cqs_one_event_each(void **state)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct wire *w[MANY];

	(void)state;
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

static void channel__only_cqs_with_completions_wake(void **state)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct wire *w[MANY];

	(void)state;
	make_many(w, ch);
	for (int i = 0; i < MANY; ++i)
		arm(w[i]->b.rcq, 0);
	for (int i = 0; i < MANY; i += 3) {
		assert_int_equal(wire_recv(&w[i]->b, 1, 0, 64), 0);
		assert_int_equal(wire_send(&w[i]->a, 2), 0);
	}
	gather(w, ch, (MANY + 2) / 3);
}

static void get_cq_event__nonblocking_EAGAIN(void **state)
{
	struct wire *w = wire_new(NULL);
	struct ibv_cq *cq;
	void *context;

	(void)state;
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

static void epoll__level_stays_until_read(void **state)
{
	struct wire *w = wire_new(NULL);
	int ep = epoll_of(w->b.channel->fd, EPOLLIN);
	struct epoll_event ev;

	(void)state;
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	arm(w->b.rcq, 0);
	message(w);
	assert_int_equal(epoll_wait(ep, &ev, 1, FX_DEADLINE_S * 1000), 1);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
	fx_expect_event(w->b.channel, w->b.rcq);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	close(ep);
}

static void epoll__edge_per_event(void **state)
{
	struct wire *w = wire_new(NULL);
	int ep = epoll_of(w->b.channel->fd, EPOLLIN | EPOLLET);
	struct epoll_event ev;

	(void)state;
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

static void get_cq_event__blocks_until_completion(void **state)
{
	struct wire *w = wire_new(NULL);
	struct waiter waiter = {.channel = w->b.channel};
	pthread_t t;

	(void)state;
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

static void get_cq_event__signal_EINTR(void **state)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct sigaction old;
	struct waiter waiter = {.channel = fx_channel()};
	struct fx_deadline d = fx_deadline();
	pthread_t t;

	(void)state;
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

static void destroy_cq__waits_for_acknowledgement(void **state)
{
	struct wire *w = wire_new(NULL);
	struct waiter waiter = {.cq = w->b.rcq};
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	(void)state;
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

static void destroy_cq__withdraws_unread_events(void **state)
{
	struct wire *w = wire_new(NULL);

	(void)state;
	arm(w->b.rcq, 0);
	message(w);
	fx_wait_readable(w->b.channel->fd, "an event");
	assert_int_equal(fx_destroy(w->b.qp), 0);
	assert_int_equal(fx_destroy(w->b.rcq), 0);
	assert_false(fx_readable(w->b.channel->fd));
}

static void destroy_cq__leaves_events_of_others(void **state)
{
	struct ibv_comp_channel *ch = fx_channel();
	struct wire_opts opts = WIRE_DEFAULTS;
	struct wire *one;
	struct wire *two;

	(void)state;
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FX_TEST(arm__plain_recv),
		FX_TEST(arm__solicited_recv),
		FX_TEST(arm__solicited_write_with_imm),
		FX_TEST(arm__flushed_recv),
		FX_TEST(arm__successful_send),
		FX_TEST(arm__failed_send),
		FX_TEST(arm__is_one_shot),
		FX_TEST(arm__twice_is_one_event),
		FX_TEST(arm__again_before_the_event_is_read),
		FX_TEST(arm__after_the_completion_poll_finds_it),
		FX_TEST(event__may_find_the_queue_empty),
		FX_TEST(channel__of_20_cqs_one_event_each),
		FX_TEST(channel__only_cqs_with_completions_wake),
		FX_TEST(get_cq_event__nonblocking_EAGAIN),
		FX_TEST(epoll__level_stays_until_read),
		FX_TEST(epoll__edge_per_event),
		FX_TEST(get_cq_event__blocks_until_completion),
		FX_TEST(get_cq_event__signal_EINTR),
		FX_TEST(destroy_cq__waits_for_acknowledgement),
		FX_TEST(destroy_cq__withdraws_unread_events),
		FX_TEST(destroy_cq__leaves_events_of_others),
	};

	return fx_main(argc, argv, "channel", tests, FX_COUNT(tests));
}
