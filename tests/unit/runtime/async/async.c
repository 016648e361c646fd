/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Asynchronous events on the real event thread and a made-up device: each event
 * goes to the owner of its object, or to handlers, is acknowledged once, and is
 * never mistaken for an event of a later object at the same address.
 */

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "events/events.h"
#include "rt_fake.h"
#include "base/self.h"

#define PATIENCE_MS 300000

/* an owner that counts events on an eventfd, to be waited for */
struct owner {
	struct rt_async_object object;
	struct rt_async_device device;
	struct rpma_rt rt; /* of which only the configuration matters */
	int fd;
	enum ibv_event_type type;
	const void *element;
	const void *last; /* the object with the last event */
	uint32_t acked;	  /* when a handler ran */
	atomic_bool is_stopped;
};

static void ring(struct owner *owner)
{
	uint64_t one = 1;

	assert_int_equal(write(owner->fd, &one, sizeof(one)), sizeof(one));
}

static void object_event(struct rt_async_object *self, enum ibv_event_type type)
{
	struct owner *owner = RT_FROM(struct owner, object, self);

	owner->type = type;
	owner->last = self;
	ring(owner);
}

static void device_fatal(struct rt_async_device *self)
{
	struct owner *owner = RT_FROM(struct owner, device, self);

	owner->last = self;
	ring(owner);
}

static void handler(struct ibv_context *ibv_ctx,
		    const struct ibv_async_event *event, void *arg)
{
	struct owner *owner = arg;

	assert_ptr_equal(ibv_ctx, &fake_ctx);
	assert_true(rt_self_is_events());
	owner->type = event->event_type;
	owner->element = event->element.qp;
	owner->last = handler;
	owner->acked = fake_async_acked();
	ring(owner);
}

static void owner_init(struct owner *owner, bool watches)
{
	memset(owner, 0, sizeof(*owner));
	owner->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	assert_true(owner->fd >= 0);
	owner->object.event = object_event;
	owner->rt.cfg.async_fn = handler;
	owner->rt.cfg.async_arg = owner;
	owner->device = (struct rt_async_device){
		.ibv_ctx = &fake_ctx, .rt = &owner->rt, .fatal = device_fatal};
	if (watches)
		ok(rt_async_watch(&owner->device));
}

static void owner_own(struct owner *owner, const void *object)
{
	owner->object.object = object;
	rt_async_own(&owner->object);
}

/* Ends a watching owner. */
static void owner_end(struct owner *owner)
{
	rt_async_unwatch(&owner->device);
	close(owner->fd);
}

/* Waits until the owner gets another event. */
static void wait_for(struct owner *owner)
{
	struct pollfd fd = {.fd = owner->fd, .events = POLLIN};
	uint64_t one;

	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(owner->fd, &one, sizeof(one)), sizeof(one));
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The owner got no event, and all events have been read. */
static void expect_quiet(struct owner *owner)
{
	struct pollfd fd = {.fd = owner->fd, .events = POLLIN};

	/* the first call may find the thread before the thread looks at the
	 * source */
	ok(rt_events_call(nothing, NULL));
	ok(rt_events_call(nothing, NULL));
	assert_int_equal(poll(&fd, 1, 0), 0);
}

static int setup(void **state)
{
	(void)state;
	fake_ctx.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	assert_true(fake_ctx.async_fd >= 0);
	ok(rt_events_ref(NULL));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rt_events_unref();
	close(fake_ctx.async_fd);
	fake_ctx.async_fd = -1;
	assert_int_equal(fake_memory(), 0);
	return fake_failed() ? 0 : -1;
}

/* Only the owner hears, and no handler. */
TEST_WITH(event__told_to_the_owner_of_its_object, setup, teardown)
{
	uint32_t acked = fake_async_acked();
	struct owner a;
	struct owner b;
	struct ibv_qp qp;

	owner_init(&a, true);
	owner_init(&b, true);
	owner_own(&b, &qp);
	fake_async_event(IBV_EVENT_QP_FATAL, &qp);
	wait_for(&b);
	assert_ptr_equal(b.last, &b.object);
	assert_int_equal(b.type, IBV_EVENT_QP_FATAL);
	expect_quiet(&a);
	expect_quiet(&b);
	assert_int_equal(fake_async_acked(), acked + 1);
	rt_async_disown(&b.object);
	rt_async_disown(&b.object);
	owner_end(&a);
	owner_end(&b);
}

/* An event read while the old owner had the object goes to the old owner; an
 * event read later, for the same address, goes to the new owner. */
TEST_WITH(event__address_used_again_only_the_owner_of_then, setup, teardown)
{
	struct owner old;
	struct owner new;
	struct ibv_qp qp;

	owner_init(&old, true);
	owner_init(&new, false);
	old.object.object = &qp;
	new.object.object = &qp;
	rt_async_own(&old.object);
	fake_async_event(IBV_EVENT_QP_FATAL, &qp);
	wait_for(&old);
	rt_async_disown(&old.object); /* then destroy the object and make
				       * another */
	rt_async_own(&new.object);
	expect_quiet(&new);
	fake_async_event(IBV_EVENT_QP_ACCESS_ERR, &qp);
	wait_for(&new);
	assert_int_equal(new.type, IBV_EVENT_QP_ACCESS_ERR);
	expect_quiet(&old);
	rt_async_disown(&new.object);
	owner_end(&old);
	close(new.fd);
}

/*
 * The element of an unknown event is never followed, whatever the element is.
 */
TEST_WITH(event__newer_than_the_list_SHOWN, setup, teardown)
{
	struct owner a;
	struct ibv_qp qp;

	owner_init(&a, true);
	owner_own(&a, &qp);
	fake_async_event((enum ibv_event_type)(IBV_EVENT_WQ_FATAL + 1), &qp);
	wait_for(&a);
	assert_ptr_equal(a.last, handler);
	assert_int_equal(a.type, IBV_EVENT_WQ_FATAL + 1);
	rt_async_disown(&a.object);
	owner_end(&a);
}

/* A lost device: the handler gets the end of the device. */
TEST_WITH(read__broken_for_good_FATAL, setup, teardown)
{
	uint64_t one = 1;
	struct owner a;

	owner_init(&a, true);
	/* relaxed, both: the event publishes the value, which stays */
	atomic_store_explicit(&fake_async_errno, EIO, memory_order_relaxed);
	assert_int_equal(write(fake_ctx.async_fd, &one, sizeof(one)),
			 sizeof(one)); /* readable for ever */
	wait_for(&a);
	assert_ptr_equal(a.last, &a.device);
	assert_true(fake_said("asynchronous events of fake0 can be read no "
			      "more: Input/output error"));
	atomic_store_explicit(&fake_async_errno, 0, memory_order_relaxed);
	owner_end(&a);
}

/* Foreign objects, ports: every runtime of the device once, acknowledged. */
TEST_WITH(event__of_nobody_shown_to_handlers, setup, teardown)
{
	struct rt_async_device again;
	uint32_t acked;
	struct owner a;
	struct owner b;
	struct ibv_qp qp;

	owner_init(&a, true);
	owner_init(&b, true);
	again = a.device; /* another poller of the same runtime */
	ok(rt_async_watch(&again));
	acked = fake_async_acked();
	fake_async_event(IBV_EVENT_COMM_EST, &qp);
	wait_for(&a);
	wait_for(&b);
	assert_ptr_equal(a.last, handler);
	assert_ptr_equal(a.element, &qp);
	assert_int_equal(a.acked, acked + 1);
	fake_async_event(IBV_EVENT_PORT_ERR, NULL);
	wait_for(&a);
	wait_for(&b);
	assert_int_equal(b.type, IBV_EVENT_PORT_ERR);
	expect_quiet(&a);
	/* after an owner leaves, the other still gets events */
	rt_async_unwatch(&a.device);
	rt_async_unwatch(&again);
	b.rt.cfg.async_fn = NULL;
	fake_async_event(IBV_EVENT_PORT_ACTIVE, NULL);
	fake_async_event(IBV_EVENT_DEVICE_FATAL, NULL);
	wait_for(&b);
	assert_ptr_equal(b.last, &b.device);
	expect_quiet(&a);
	rt_async_unwatch(&b.device);
	close(a.fd);
	close(b.fd);
}

TEST_WITH(watch__refused_nothing_left, setup, teardown)
{
	struct owner a;

	owner_init(&a, false);
	fake_fail("malloc", 1, 1);
	assert_int_equal(rt_async_watch(&a.device), RPMA_E_NOMEM);
	fake_fail("fcntl", 1, EBADF);
	assert_int_equal(rt_async_watch(&a.device), RPMA_E_PROVIDER);
	fake_fail("epoll_ctl", 1, ENOSPC);
	assert_int_equal(rt_async_watch(&a.device), RPMA_E_PROVIDER);
	assert_true(fake_failed());
	assert_int_equal(fake_memory(), 0);
	close(a.fd);
}

/* Each event causes the next event, until the handler stops. */
static void flooding_handler(struct ibv_context *ibv_ctx,
			     const struct ibv_async_event *event, void *arg)
{
	struct owner *owner = arg;

	handler(ibv_ctx, event, owner);
	if (!atomic_load_explicit(&owner->is_stopped, memory_order_acquire))
		fake_async_event(IBV_EVENT_PORT_ACTIVE, NULL);
}

static int stop_flood(void *arg)
{
	struct owner *owner = arg;

	atomic_store_explicit(&owner->is_stopped, true, memory_order_release);
	return 0;
}

/* A device with endless events: other requests to the thread are done. */
TEST_WITH(flood__others_have_their_turn, setup, teardown)
{
	struct owner owner;

	owner_init(&owner, true);
	owner.rt.cfg.async_fn = flooding_handler;
	fake_async_event(IBV_EVENT_PORT_ACTIVE, NULL);
	wait_for(&owner);
	ok(rt_events_call(stop_flood, &owner));
	ok(rt_events_call(nothing, NULL));
	owner_end(&owner);
}

TEST_MAIN()
