/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Start and stop of a runtime, with real threads: each failing step leaves
 * nothing behind, and the results of calls before, during and after.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>

#include <sys/eventfd.h>
#include <unistd.h>
#include "rt_fake.h"
#include "cm/cm.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"

static struct rpma_rt_cfg cfg;
static struct rpma_rt *rt; /* of the case; NULL: none, or deleted */

static int setup(void **state)
{
	(void)state;
	assert_int_equal(fake_memory(), 0);
	cfg = (struct rpma_rt_cfg)RPMA_RT_CFG_INIT;
	cfg.pollers = 2;
	cfg.mode = RPMA_RT_MODE_EVENT;
	fake_ctx.async_fd = eventfd(0, EFD_CLOEXEC);
	return fake_ctx.async_fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	ok(rpma_rt_delete(&rt));
	fake_forget_trace();
	close(fake_ctx.async_fd);
	fake_ctx.async_fd = -1;
	assert_int_equal(fake_objects(), 0);
	assert_int_equal(fake_memory(), 0);
	return fake_failed() ? 0 : -1;
}

#define RT_TEST(name) TEST_WITH(name, setup, teardown)

/* Makes the nth call of the name fail, for every possible n. */
static int fail_each(const char *call, int value, int expected)
{
	int nth;
	int ret;

	for (nth = 1;; nth++) {
		fake_fail(call, nth, value);
		ret = rpma_rt_new(&cfg, &rt);
		if (!fake_failed())
			break;
		assert_int_equal(ret, expected);
		assert_null(rt);
		assert_int_equal(fake_objects(), 0);
		assert_int_equal(fake_memory(), 0);
	}
	ok(ret);
	ok(rpma_rt_delete(&rt));
	return nth - 1;
}

RT_TEST(new__each_failure_nothing_left)
{
	/* runtime, pollers, of each slots and the table of connections */
	assert_int_equal(fail_each("malloc", 1, RPMA_E_NOMEM), 4);
	assert_int_equal(fail_each("mmap", ENOMEM, RPMA_E_NOMEM), 2);
	/* event thread, two pollers */
	assert_int_equal(fail_each("epoll_create1", EMFILE, RPMA_E_PROVIDER),
			 3);
	assert_int_equal(fail_each("eventfd", EMFILE, RPMA_E_PROVIDER), 3);
	assert_int_equal(fail_each("pthread_create", EAGAIN, RPMA_E_PROVIDER),
			 3);
}

RT_TEST(new__epoll_refuses_PROVIDER)
{
	int nth;

	/* the bells of the event thread and of two pollers; later removals may
	 * fail silently */
	for (nth = 1; nth <= 3; nth++) {
		fake_fail("epoll_ctl", nth, ENOSPC);
		assert_int_equal(rpma_rt_new(&cfg, &rt), RPMA_E_PROVIDER);
		assert_true(fake_failed());
		assert_null(rt);
		assert_int_equal(fake_objects(), 0);
		assert_int_equal(fake_memory(), 0);
	}
}

/* The first use of a device makes everything needed, or nothing. */
RT_TEST(device__each_failure_nothing_left)
{
	static const struct {
		const char *call;
		int value;
		int times;
		int error;
	} failures[] = {
		/* device, CM channel, reader of asynchronous events */
		{"malloc", 1, 3, RPMA_E_NOMEM},
		{"cm_channel_new", RPMA_E_PROVIDER, 1, RPMA_E_PROVIDER},
		{"rdma_create_event_channel", 1, 1, RPMA_E_PROVIDER},
		{"fcntl", EIO, 4, RPMA_E_PROVIDER},
		/* control thread, destroyer */
		{"epoll_create1", EMFILE, 2, RPMA_E_PROVIDER},
		{"eventfd", EMFILE, 2, RPMA_E_PROVIDER},
		{"pthread_create", EAGAIN, 2, RPMA_E_PROVIDER},
		/* their bells, the asynchronous events, the CM channel */
		{"epoll_ctl", ENOSPC, 4, RPMA_E_PROVIDER},
	};
	struct rt_device *device = NULL;
	int objects;
	int memory;
	size_t i;
	int nth;

	ok(rpma_rt_new(&cfg, &rt));
	objects = fake_objects();
	memory = fake_memory();
	for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		for (nth = 1; nth <= failures[i].times; nth++) {
			fake_fail(failures[i].call, nth, failures[i].value);
			assert_int_equal(rt_device_get(rt, &fake_ctx, &device),
					 failures[i].error);
			assert_true(fake_failed());
			assert_null(device);
			assert_int_equal(fake_objects(), objects);
			assert_int_equal(fake_memory(), memory);
		}
	}
}

RT_TEST(device__made_once)
{
	struct ibv_context other = fake_ctx;
	struct rt_device *devices[3];

	other.async_fd = eventfd(0, EFD_CLOEXEC);
	ok(rpma_rt_new(&cfg, &rt));
	ok(rt_device_get(rt, &fake_ctx, &devices[0]));
	ok(rt_device_get(rt, &other, &devices[1]));
	ok(rt_device_get(rt, &fake_ctx, &devices[2]));
	assert_ptr_equal(devices[2], devices[0]);
	assert_ptr_not_equal(devices[1], devices[0]);
	assert_ptr_equal(rt_device_find(rt, &other), devices[1]);
	ok(rpma_rt_delete(&rt));
	close(other.async_fd);
}

RT_TEST(delete__queues_held_BUSY)
{
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	struct rpma_rt_queue *late = NULL;

	ok(rpma_rt_new(&cfg, &rt));
	ok(rpma_rt_queue_new(rt, NULL, &queue));
	ok(rpma_rt_queue_push(queue,
			      &(struct rpma_rt_completion){.context = 5}));
	assert_int_equal(rpma_rt_delete(&rt), RPMA_RT_E_BUSY);
	assert_non_null(rt);
	/* the runtime has stopped, the queue lives on until empty */
	assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), 1);
	assert_int_equal(item.context, 5);
	assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), RPMA_RT_E_CLOSED);
	assert_int_equal(rpma_rt_queue_wait(queue, &item, 1, -1),
			 RPMA_RT_E_CLOSED);
	assert_int_equal(rpma_rt_queue_new(rt, NULL, &late), RPMA_RT_E_CLOSED);
	assert_null(late);
	ok(rpma_rt_queue_delete(&queue));
	ok(rpma_rt_delete(&rt));
	assert_null(rt);
	ok(rpma_rt_delete(&rt));
	assert_int_equal(rpma_rt_delete(NULL), RPMA_E_INVAL);
}

static void *stop(void *arg)
{
	ok(rpma_rt_stop(arg));
	return NULL;
}

/* Both calls return after the stop, not before. */
RT_TEST(stop__two_at_once)
{
	struct rpma_rt_completion item;
	struct rpma_rt_queue *queue;
	pthread_t thread;

	ok(rpma_rt_new(&cfg, &rt));
	ok(rpma_rt_queue_new(rt, NULL, &queue));
	ok(pthread_create(&thread, NULL, stop, rt));
	ok(rpma_rt_stop(rt));
	assert_int_equal(rpma_rt_queue_poll(queue, &item, 1), RPMA_RT_E_CLOSED);
	pthread_join(thread, NULL);
	ok(rpma_rt_queue_delete(&queue));
}

/*
 * A CQ that fails after the pollers have ended, before the control thread ends.
 */
struct late {
	struct rt_device *device;
	struct rt_cq *cq;
	struct rt_msg msg;
};

/* On the control thread, again and again until the thread is to end. */
static void fail_late(struct rt_msg *msg, void *owner)
{
	struct late *late = caa_container_of(msg, struct late, msg);

	(void)owner;
	/* acquire: pairs with the release of rt_thread_join() */
	if (atomic_load_explicit(&late->device->control.stopping,
				 memory_order_acquire))
		rt_cq_fail_mt(late->cq);
	else
		rt_inbox_push_mt(&late->device->control.inbox, msg);
}

static void not_told(struct rt_cq_user *user)
{
	(void)user;
	fail();
}

/* The last message of the control thread sends the poller of the CQ a message
 * that lies in the CQ: the message is run before the CQ is freed. */
RT_TEST(stop__cq_fails_LAST_MESSAGE_RUN)
{
	struct rt_cq_user user = {.failed = not_told, .room = 1};
	struct late late = {.msg.fn = fail_late};

	ok(rpma_rt_new(&cfg, &rt));
	ok(rt_device_get(rt, &fake_ctx, &late.device));
	pthread_mutex_lock(&rt->lock);
	ok(rt_cq_pool_reserve(&rt->pollers[0], &fake_ctx, &user, &late.cq));
	rt_cq_pool_unreserve(late.cq, &user);
	pthread_mutex_unlock(&rt->lock);
	rt_inbox_push_mt(&late.device->control.inbox, &late.msg);
	ok(rpma_rt_stop(rt));
	assert_true(rt_inbox_is_empty(&rt->pollers[0].inbox));
}

RT_TEST(manual__only_in_that_mode_NOSUPP)
{
	int value = 7;

	ok(rpma_rt_new(&cfg, &rt));
	assert_int_equal(rpma_rt_poller_run(rt, 0, 1), RPMA_E_NOSUPP);
	assert_int_equal(rpma_rt_poller_arm(rt, 0), RPMA_E_NOSUPP);
	assert_int_equal(rpma_rt_poller_attach(rt, 0), RPMA_E_NOSUPP);
	assert_int_equal(rpma_rt_poller_get_fd(rt, 0, &value), RPMA_E_NOSUPP);
	assert_int_equal(value, 7);
}

RT_TEST(manual__run_by_its_owner_only)
{
	static struct rt_owner other = {.tid = 4711, .name = "shard-1"};
	int fd;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	ok(rpma_rt_new(&cfg, &rt));
	assert_int_equal(rpma_rt_poller_run(rt, 0, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_poller_run(rt, 2, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_poller_run(NULL, 0, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_poller_get_fd(rt, UINT32_MAX, &fd),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_poller_run(rt, 1, UINT32_MAX), 0);
	ok(rpma_rt_poller_arm(rt, 1));
	ok(rpma_rt_poller_arm(rt, 1)); /* armed already: anew */
	ok(rpma_rt_poller_get_fd(rt, 1, &fd));
	ok(rpma_rt_poller_attach(rt, 0));
	ok(rpma_rt_poller_attach(rt, 0));
	assert_int_equal(rpma_rt_poller_run(rt, 0, 1), 0);
	/* relaxed: in place of another thread */
	atomic_store_explicit(&rt->pollers[1].owned.owner, &other,
			      memory_order_relaxed);
	assert_int_equal(rpma_rt_poller_run(rt, 1, 1), RPMA_RT_E_BUSY);
	assert_int_equal(rpma_rt_poller_arm(rt, 1), RPMA_RT_E_BUSY);
	assert_int_equal(rpma_rt_poller_attach(rt, 1), RPMA_RT_E_BUSY);
	assert_int_equal(rpma_rt_poller_release(rt, 1), RPMA_RT_E_BUSY);
	atomic_store_explicit(&rt->pollers[1].owned.owner, NULL,
			      memory_order_relaxed);
	ok(rpma_rt_stop(rt));
	assert_int_equal(rpma_rt_poller_run(rt, 0, 1), RPMA_RT_E_CLOSED);
}

/* A stop from a round would wait for itself. */
RT_TEST(stop__from_a_poller_THREAD)
{
	cfg.mode = RPMA_RT_MODE_MANUAL;
	ok(rpma_rt_new(&cfg, &rt));
	ok(rt_poller_enter(&rt->pollers[0]));
	assert_int_equal(rpma_rt_stop(rt), RPMA_RT_E_THREAD);
	assert_int_equal(rpma_rt_delete(&rt), RPMA_RT_E_THREAD);
	rt_poller_leave(&rt->pollers[0]);
}

RT_TEST(place__round_robin_unless_named)
{
	int i;

	ok(rpma_rt_new(&cfg, &rt));
	for (i = 0; i < 4; i++)
		assert_int_equal(
			rt_place_choose(rt, RPMA_RT_POLLER_ANY, 0)->index,
			i % 2);
	assert_int_equal(rt_place_choose(rt, 1, 0)->index, 1);
}

RT_TEST(place__least_loaded)
{
	int i;

	ok(rpma_rt_new(&cfg, &rt));
	assert_false(rt_place_is_valid(rt, RPMA_RT_POLLER_LEAST - 1));
	assert_true(rt_place_is_valid(rt, RPMA_RT_POLLER_LEAST));
	assert_true(rt_place_is_valid(rt, 1));
	assert_false(rt_place_is_valid(rt, 2));
	rt->pollers[0].conns = 3;
	for (i = 0; i < 3; i++) {
		struct rt_poller *poller =
			rt_place_choose(rt, RPMA_RT_POLLER_LEAST, 0);

		assert_int_equal(poller->index, 1);
		poller->conns++;
	}
	/* of equals the first */
	assert_int_equal(rt_place_choose(rt, RPMA_RT_POLLER_LEAST, 0)->index,
			 0);
	rt->pollers[0].conns = 0;
	rt->pollers[1].conns = 0;
}

TEST_MAIN()
