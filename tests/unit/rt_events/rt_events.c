/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The event thread, for real, on a made-up device: events are copied to every
 * subscriber, acknowledged once, and none is lost for want of memory.
 */

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rt_fake.h"

#define PATIENCE_MS 30000

/* who receives async events */
struct receiver {
	struct rt_bell bell;
	struct rt_inbox inbox;
	struct rt_async_msg last;
	int count;
};

static void receive(struct rt_msg *msg, void *owner)
{
	struct receiver *receiver = owner;

	receiver->last = *(struct rt_async_msg *)msg;
	receiver->count++;
	free(msg);
}

static void receiver_init(struct receiver *receiver)
{
	*receiver = (struct receiver){0};
	ok(rt_bell_init(&receiver->bell));
	ok(rt_inbox_init(&receiver->inbox, &receiver->bell));
}

/* Until so many have come in all. */
static void wait_for(struct receiver *receiver, int count)
{
	struct pollfd fd = {.fd = rt_bell_fd(&receiver->bell),
			    .events = POLLIN};

	while (rt_inbox_run_owner(&receiver->inbox, receiver) >= 0 &&
	       receiver->count < count) {
		rt_bell_prepare(&receiver->bell);
		if (rt_inbox_is_empty(&receiver->inbox))
			assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		rt_bell_cancel(&receiver->bell);
	}
	assert_int_equal(receiver->count, count);
}

static int setup(void **state)
{
	(void)state;
	fake_ctx.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	assert_true(fake_ctx.async_fd >= 0);
	ok(rt_events_get());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rt_events_put();
	close(fake_ctx.async_fd);
	fake_ctx.async_fd = -1;
	assert_int_equal(fake_memory(), 0);
	return fake_failed() ? 0 : -1;
}

static void get__counted(void **state)
{
	(void)state;
	ok(rt_events_get());
	rt_events_put();
}

static void subscribe__copied_to_each_acknowledged_once(void **state)
{
	struct ibv_qp qp = {.qp_num = 4711};
	struct receiver a;
	struct receiver b;
	uint32_t acked = fake_async_acked();

	(void)state;
	receiver_init(&a);
	receiver_init(&b);
	ok(rt_async_subscribe(&fake_ctx, &a.inbox, receive));
	ok(rt_async_subscribe(&fake_ctx, &b.inbox, receive));
	ok(rt_async_subscribe(&fake_ctx, &b.inbox, receive)); /* once is once */
	fake_async_event(IBV_EVENT_QP_FATAL, &qp);
	wait_for(&a, 1);
	wait_for(&b, 1);
	assert_int_equal(a.last.type, IBV_EVENT_QP_FATAL);
	assert_int_equal(a.last.qp_num, 4711);
	assert_null(a.last.ibv_cq);
	assert_ptr_equal(a.last.ibv_ctx, &fake_ctx);
	assert_int_equal(fake_async_acked(), acked + 1);
	/* one leaves, the other still hears */
	rt_async_unsubscribe(&a.inbox);
	fake_async_event(IBV_EVENT_CQ_ERR, &qp);
	wait_for(&b, 2);
	assert_ptr_equal(b.last.ibv_cq, &qp);
	assert_int_equal(b.last.qp_num, 0);
	rt_async_unsubscribe(&b.inbox);
	rt_inbox_run_owner(&a.inbox, &a);
	assert_int_equal(a.count, 1);
	rt_bell_fini(&a.bell);
	rt_bell_fini(&b.bell);
}

static void subscribe__refused(void **state)
{
	struct receiver a;

	(void)state;
	receiver_init(&a);
	fake_fail("malloc", 1, 1); /* the subscriber */
	assert_int_equal(rt_async_subscribe(&fake_ctx, &a.inbox, receive),
			 RPMA_E_NOMEM);
	fake_fail("malloc", 2, 1); /* the context's record */
	assert_int_equal(rt_async_subscribe(&fake_ctx, &a.inbox, receive),
			 RPMA_E_PROVIDER);
	fake_fail("fcntl", 1, EBADF);
	assert_int_equal(rt_async_subscribe(&fake_ctx, &a.inbox, receive),
			 RPMA_E_PROVIDER);
	fake_fail("epoll_ctl", 1, ENOSPC);
	assert_int_equal(rt_async_subscribe(&fake_ctx, &a.inbox, receive),
			 RPMA_E_PROVIDER);
	assert_true(fake_failed());
	assert_int_equal(fake_memory(), 0);
	rt_async_unsubscribe(&a.inbox); /* of nothing */
	rt_bell_fini(&a.bell);
}

/* Without memory it stays unread, and comes when there is some. */
static void event__no_memory_not_lost(void **state)
{
	struct receiver a;
	struct receiver b;

	(void)state;
	receiver_init(&a);
	receiver_init(&b);
	ok(rt_async_subscribe(&fake_ctx, &a.inbox, receive));
	ok(rt_async_subscribe(&fake_ctx, &b.inbox, receive));
	fake_fail("malloc", 1, 1);
	fake_fail("malloc", 3, 1); /* of two, the second */
	fake_async_event(IBV_EVENT_DEVICE_FATAL, NULL);
	wait_for(&a, 1);
	wait_for(&b, 1);
	assert_int_equal(b.last.type, IBV_EVENT_DEVICE_FATAL);
	rt_async_unsubscribe(&a.inbox);
	rt_async_unsubscribe(&b.inbox);
	rt_bell_fini(&a.bell);
	rt_bell_fini(&b.bell);
}

/* a source that counts, and answers through an eventfd of its own */
struct counter {
	struct rt_source source; /* first */
	int answer;
};

static void counter_ready(struct rt_source *source)
{
	struct counter *counter = (struct counter *)source;
	uint64_t value;

	assert_int_equal(read(source->fd, &value, sizeof(value)),
			 sizeof(value));
	assert_int_equal(write(counter->answer, &value, sizeof(value)),
			 sizeof(value));
}

static void source__ready_until_removed(void **state)
{
	struct counter counter = {.source = {.ready = counter_ready}};
	struct pollfd fd = {.events = POLLIN};
	uint64_t one = 1;

	(void)state;
	counter.source.fd = eventfd(0, EFD_CLOEXEC);
	counter.answer = eventfd(0, EFD_CLOEXEC);
	ok(rt_events_add(&counter.source));
	assert_int_equal(rt_events_add(&counter.source), RPMA_E_PROVIDER);
	assert_int_equal(write(counter.source.fd, &one, sizeof(one)),
			 sizeof(one));
	fd.fd = counter.answer;
	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(counter.answer, &one, sizeof(one)), sizeof(one));
	rt_events_remove(&counter.source);
	assert_int_equal(write(counter.source.fd, &one, sizeof(one)),
			 sizeof(one));
	rt_events_remove(&counter.source); /* a round of the thread later */
	assert_int_equal(poll(&fd, 1, 0), 0);
	close(counter.source.fd);
	close(counter.answer);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(get__counted),
		TEST(subscribe__copied_to_each_acknowledged_once),
		TEST(subscribe__refused),
		TEST(event__no_memory_not_lost),
		TEST(source__ready_until_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
