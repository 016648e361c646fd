/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * events.c -- the event thread of the process, and the asynchronous events that
 * the thread reads.
 */

#include "events/events.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rpma_rt.h"
#include "base/cancel.h"
#include "base/context.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/thread.h"

/* --------------------------------------------------------------- events --- */

/*
 * The event thread of the process: the number of users, and calls to the
 * thread. Sources are added by any thread and removed on the event thread,
 * between two batches, so that ready() never runs on a removed source.
 */

static struct {
	pthread_mutex_t lock; /* for count: start and stop */
	unsigned count;
	/* the program closed the thread's descriptors, and there were no others
	 * to open; under the lock of `async` */
	bool is_deaf;
	struct rt_thread thread;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int events_become_thread(void *arg)
{
	(void)arg;
	rt_self_set_events();
	return 0;
}

static int events_start(void (*lost)(struct rt_thread *thread, int err))
{
	int ret;

	events.thread.lost = lost;
	events.is_deaf = false;
	ret = rt_thread_start(&events.thread, NULL, "rt-event");

	if (ret == 0)
		rt_call_sync(NULL, &events.thread.inbox, events_become_thread,
			     NULL);
	return ret;
}

int rt_events_ref(void (*lost)(struct rt_thread *thread, int err))
{
	int ret = 0;

	pthread_mutex_lock(&events.lock);
	if (events.count == 0)
		ret = events_start(lost);
	if (ret == 0)
		events.count++;
	pthread_mutex_unlock(&events.lock);
	return ret;
}

void rt_events_unref(void)
{
	pthread_mutex_lock(&events.lock);
	if (--events.count == 0)
		rt_thread_stop(&events.thread);
	pthread_mutex_unlock(&events.lock);
}

void rt_events_forked(void)
{
	pthread_mutex_init(&events.lock, NULL);
	events.count = 0;
}

int rt_events_call(int (*fn)(void *arg), void *arg)
{
	/* from a handler: the handler runs between two events */
	return rt_self_is_events()
		       ? fn(arg)
		       : rt_call_sync(NULL, &events.thread.inbox, fn, arg);
}

int rt_events_add(struct rt_source *source)
{
	return rt_thread_add(&events.thread, source);
}

/* ---------------------------------------------------------------- async --- */

/*
 * Finds the owner of the object that an asynchronous event names, and calls the
 * owner and the handlers. Lists change under the lock. Any thread lists
 * devices, in front; only the event thread takes devices off. So the event
 * thread reads the head under the lock and walks on without the lock, and
 * handlers may call the runtime.
 */

#define BUCKETS 1024
#define BATCH	64 /* events that the event thread reads in a round */

/* a reader of the events of a context */
struct reader {
	struct rt_source source; /* first */
	struct ibv_context *ibv_ctx;
	/* devices of runtimes that read events, and are not fed by the
	 * program */
	unsigned users;
	/* the thread lost its descriptors since the source was added */
	bool is_lost;
	struct reader *next;
};

static struct {
	pthread_mutex_t lock;
	struct rt_async_object *objects[BUCKETS];
	struct rt_async_device *devices;
	struct reader *readers;
} async = {.lock = PTHREAD_MUTEX_INITIALIZER};

void rt_async_forked(void)
{
	struct reader *reader;
	size_t i;

	pthread_mutex_init(&async.lock, NULL);
	for (i = 0; i < BUCKETS; i++)
		async.objects[i] = NULL;
	async.devices = NULL;
	/* frees memory only: the parent's epoll set watches the fd, and stays
	 * the parent's set in the child */
	while ((reader = async.readers) != NULL) {
		async.readers = reader->next;
		free(reader);
	}
}

/* -------------------------------------------------------------- objects --- */

static struct rt_async_object **async_bucket_of(const void *object)
{
	uint64_t hash = (uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);

	return &async.objects[hash >> 54];
}

void rt_async_own(struct rt_async_object *object)
{
	struct rt_async_object **bucket = async_bucket_of(object->object);

	pthread_mutex_lock(&async.lock);
	object->owned = true;
	object->next = *bucket;
	*bucket = object;
	pthread_mutex_unlock(&async.lock);
}

void rt_async_disown(struct rt_async_object *object)
{
	struct rt_async_object **link = async_bucket_of(object->object);

	pthread_mutex_lock(&async.lock);
	while (object->owned && *link != object)
		link = &(*link)->next;
	if (object->owned)
		*link = object->next;
	object->owned = false;
	pthread_mutex_unlock(&async.lock);
}

/* Returns the object of the event, if the object may belong to a runtime. NULL:
 * the event is about a port, the device, or an object that runtimes never
 * make. */
static const void *async_object_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq;
	default: /* about a port, the device, a WQ, or newer than this list */
		return NULL;
	}
}

/* Reports the event to the owner of the event's object. Returns false if the
 * object has no owner. */
static bool async_tell_owner(const struct ibv_async_event *event)
{
	const void *object = async_object_of(event);
	struct rt_async_object *owned;

	if (object == NULL)
		return false;
	pthread_mutex_lock(&async.lock);
	owned = *async_bucket_of(object);
	while (owned != NULL && owned->object != object)
		owned = owned->next;
	if (owned != NULL)
		owned->event(owned, event->event_type);
	pthread_mutex_unlock(&async.lock);
	return owned != NULL;
}

/* -------------------------------------------------------------- devices --- */

/* Reports the device's end to the users of the device, of the runtime rt or, if
 * rt is NULL, of every runtime. Returns the number of users. */
static int async_tell_fatal(const struct ibv_context *ibv_ctx,
			    const struct rpma_rt *rt)
{
	struct rt_async_device *device;
	int told = 0;

	pthread_mutex_lock(&async.lock);
	for (device = async.devices; device != NULL; device = device->next) {
		if (device->ibv_ctx != ibv_ctx ||
		    (rt != NULL && device->rt != rt))
			continue;
		device->fatal(device);
		told++;
	}
	pthread_mutex_unlock(&async.lock);
	return told;
}

/* Returns whether the device is the first in the list of its runtime with that
 * context. */
static bool async_is_first(const struct rt_async_device *head,
			   const struct rt_async_device *device)
{
	const struct rt_async_device *other;

	for (other = head; other != device; other = other->next) {
		if (other->rt == device->rt &&
		    other->ibv_ctx == device->ibv_ctx)
			return false;
	}
	return true;
}

/* Calls, on the event thread, the handler of every runtime that has a handler,
 * once. */
static void async_call_handlers(struct ibv_context *ibv_ctx,
				const struct ibv_async_event *event)
{
	const struct rt_async_device *device;
	const struct rt_async_device *head;
	const struct rpma_rt_cfg *cfg;

	pthread_mutex_lock(&async.lock);
	head = async.devices;
	pthread_mutex_unlock(&async.lock);
	for (device = head; device != NULL; device = device->next) {
		cfg = &device->rt->cfg;
		if (device->ibv_ctx == ibv_ctx && cfg->async_fn != NULL &&
		    async_is_first(head, device))
			cfg->async_fn(ibv_ctx, event, cfg->async_arg);
	}
}

/* -------------------------------------------------------------- reading --- */

/* Reads an event, reports the event to the owner, acknowledges the event, and
 * shows it to the handlers. Returns 0, or the errno of a read without an
 * event. */
static int async_read_event(struct ibv_context *ibv_ctx)
{
	struct ibv_async_event event;
	struct ibv_async_event copy;
	bool ours;

	if (ibv_get_async_event(ibv_ctx, &event))
		return errno ? errno : EIO;
	ours = async_tell_owner(&event);
	if (event.event_type == IBV_EVENT_DEVICE_FATAL)
		async_tell_fatal(ibv_ctx, NULL);
	copy = event;
	ibv_ack_async_event(&event);
	if (!ours)
		async_call_handlers(ibv_ctx, &copy);
	return 0;
}

/* Gives up reading for good: the fd of a device that is gone is readable for
 * ever. */
static void async_give_up(const struct ibv_context *ibv_ctx, int err)
{
	RT_LOG_ERROR("asynchronous events of %s can be read no more: %s. All "
		     "that runtimes have on it ends",
		     ibv_ctx->device->name, strerror(err));
	async_tell_fatal(ibv_ctx, NULL);
}

static void async_reader_ready(struct rt_source *source)
{
	struct reader *reader = (struct reader *)source;
	int err = 0;
	int i;

	/* further events keep the fd readable: other sources and calls have
	 * their turn first */
	for (i = 0; i < BATCH && (err == 0 || err == EINTR); i++)
		err = async_read_event(reader->ibv_ctx);
	if (err == 0 || err == EINTR || err == EAGAIN)
		rt_thread_succeeded(source);
	else if (rt_thread_failed(source, err))
		async_give_up(reader->ibv_ctx, err);
}

/* REQUIRES of the following functions: the lock */
static int async_reader_new(struct ibv_context *ibv_ctx,
			    struct reader **reader_ptr)
{
	int flags = fcntl(ibv_ctx->async_fd, F_GETFL);
	struct reader *reader;

	if (flags < 0 || fcntl(ibv_ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		return rt_refuse_system("fcntl");
	reader = calloc(1, sizeof(*reader));
	if (reader == NULL)
		return RPMA_E_NOMEM;
	reader->source.fd = ibv_ctx->async_fd;
	reader->source.ready = async_reader_ready;
	reader->ibv_ctx = ibv_ctx;
	if (rt_events_add(&reader->source)) {
		free(reader);
		return RPMA_E_PROVIDER;
	}
	*reader_ptr = reader;
	return 0;
}

static struct reader **async_find_reader(const struct ibv_context *ibv_ctx)
{
	struct reader **link = &async.readers;

	while (*link != NULL && (*link)->ibv_ctx != ibv_ctx)
		link = &(*link)->next;
	return link;
}

/* Adds the source again, for a runtime that is made after the loss. */
static int async_reader_renew(struct reader *reader)
{
	int ret = rt_events_add(&reader->source);

	reader->is_lost = ret != 0;
	return ret;
}

static int async_get_reader(struct ibv_context *ibv_ctx)
{
	struct reader **link = async_find_reader(ibv_ctx);
	int ret = 0;

	if (events.is_deaf)
		return rt_refuse_later(
			RPMA_E_PROVIDER,
			"the program closed descriptors of the event thread: "
			"stop all runtimes, then make new ones",
			0);
	if (*link == NULL)
		ret = async_reader_new(ibv_ctx, link);
	else if ((*link)->is_lost)
		ret = async_reader_renew(*link);
	if (ret == 0)
		(*link)->users++;
	return ret;
}

static void async_put_reader(const struct ibv_context *ibv_ctx)
{
	struct reader **link = async_find_reader(ibv_ctx);
	struct reader *reader = *link;

	if (--reader->users > 0)
		return;
	*link = reader->next;
	if (!reader->is_lost)
		rt_thread_mute(&reader->source);
	free(reader);
}

static int async_unwatch(void *arg)
{
	struct rt_async_device *device = arg;
	struct rt_async_device **link = &async.devices;

	pthread_mutex_lock(&async.lock);
	while (*link != device)
		link = &(*link)->next;
	*link = device->next;
	if (!device->rt->cfg.async_feed)
		async_put_reader(device->ibv_ctx);
	pthread_mutex_unlock(&async.lock);
	return 0;
}

int rt_async_watch(struct rt_async_device *device)
{
	int ret = 0;

	pthread_mutex_lock(&async.lock);
	if (!device->rt->cfg.async_feed)
		ret = async_get_reader(device->ibv_ctx);
	if (ret == 0) {
		device->next = async.devices;
		async.devices = device;
	}
	pthread_mutex_unlock(&async.lock);
	return ret;
}

void rt_async_unwatch(struct rt_async_device *device)
{
	rt_events_call(async_unwatch, device);
}

void rt_async_lost(struct rt_thread *thread, int err)
{
	const struct rt_async_device *device;
	struct reader *reader;

	/* no log messages while the lock is held */
	rpma_log_hold();
	pthread_mutex_lock(&async.lock);
	for (device = async.devices; device != NULL; device = device->next)
		rt_fds_lost_mt(device->rt, err);
	/* the descriptors of these devices may be closed, too, and their
	 * numbers be others by now: none is watched until a runtime asks */
	for (reader = async.readers; reader != NULL; reader = reader->next) {
		reader->is_lost = true;
		rt_thread_mute(&reader->source);
	}
	events.is_deaf = !rt_thread_renew(thread);
	pthread_mutex_unlock(&async.lock);
	rpma_log_release();
}

/* -------------------------------------------------------------- feeding --- */

int rpma_rt_feed_async_event(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
			     const struct ibv_async_event *event)
{
	RT_NOT_CANCELLED;
	int ret;

	ret = RT_REFUSE_NULL(rt, ibv_ctx, event);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(rt);
	if (ret)
		return ret;
	if (!rt->cfg.async_feed)
		return RT_REFUSE(RPMA_E_NOSUPP,
				 "the runtime reads these events itself: "
				 "rpma_rt_cfg.async_feed is 0");
	/* an event that names no object of the runtime is no refusal */
	if (event->event_type == IBV_EVENT_DEVICE_FATAL)
		return async_tell_fatal(ibv_ctx, rt) > 0 ? 0 : RPMA_E_UNKNOWN;
	return async_tell_owner(event) ? 0 : RPMA_E_UNKNOWN;
}
