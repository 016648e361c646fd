/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* cm.c -- the CM channel of a device, and the devices of a runtime. */

#include "cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "base/fds.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/thread.h"

/* ------------------------------------------------------------------- cm --- */

/*
 * Reading the CM channel of a device. All functions but those that make and
 * delete the channel run on the device's control thread.
 */

#define BATCH 64 /* events that the control thread reads in a round */

/* ------------------------------------------------------------ reading --- */

/* Reads and handles a single event. RPMA_E_AGAIN: there may be more events. */
static int cm_read_event(struct rt_cm *cm)
{
	struct rpma_cm_event event;
	struct rt_cm_target *target;
	int ret = rpma_cm_channel_get_event(cm->channel, &event);

	if (ret)
		return ret;
	target = event.context;
	/* relaxed: until here the event, which is not acknowledged yet, keeps
	 * the target alive. The thread that destroys the id goes on after the
	 * acknowledgement */
	atomic_fetch_add_explicit(&target->count, 1, memory_order_relaxed);
	rpma_cm_event_ack(&event);
	target->ops->event(target, &event);
	target->ops->unref(target);
	return RPMA_E_AGAIN;
}

static const char *cm_name_of(const struct rt_cm *cm)
{
	return cm->device->ibv_ctx->device->name;
}

/* Logs a failed reading once for each row of failures. */
static void cm_say_failed(const struct rt_cm *cm, int err)
{
	if (cm->source.failures == 1)
		RT_LOG_WARNING("CM events of %s cannot be read for now, "
			       "connections of it neither begin nor end: %s",
			       cm_name_of(cm), strerror(err));
}

/* Gives up reading for good: each object that cannot go on reports its end. */
static void cm_give_up(struct rt_cm *cm, int err)
{
	struct rt_device *device = cm->device;

	RT_LOG_ERROR("CM events of %s can be read no more: %s. What is not "
		     "established ends, and nothing new begins, in this "
		     "runtime; established connections go on, and do not "
		     "notice that the peer leaves",
		     cm_name_of(cm), strerror(err));
	/* release: pairs with the acquire in rt_cm_error() */
	atomic_store_explicit(&cm->error, err, memory_order_release);
	/* relaxed: statistic, orders nothing */
	atomic_store_explicit(&device->rt->cm_errno, err, memory_order_relaxed);
	device->rt->device_ops->deaf(device);
}

static void cm_failed(struct rt_cm *cm, int err)
{
	if (rt_thread_failed(&cm->source, err))
		cm_give_up(cm, err);
	else
		cm_say_failed(cm, err);
}

static void cm_succeeded(struct rt_cm *cm)
{
	if (cm->source.failures > 0)
		RT_LOG_INFO("CM events of %s can be read again",
			    cm_name_of(cm));
	rt_thread_succeeded(&cm->source);
}

static void cm_ready(struct rt_source *source)
{
	struct rt_cm *cm = (struct rt_cm *)source;
	int ret = RPMA_E_AGAIN;
	int i;

	for (i = 0; i < BATCH && ret == RPMA_E_AGAIN; i++)
		ret = cm_read_event(cm);
	if (ret == RPMA_E_PROVIDER) /* of librdmacm, which leaves errno */
		cm_failed(cm, errno);
	else
		cm_succeeded(cm);
}

int rt_cm_check(const struct rt_cm *cm)
{
	int err = rt_cm_error(cm);

	if (err == 0)
		return 0;
	RT_LOG_ERROR(
		"no connections with %s in this runtime: its CM events can "
		"be read no more (%s). Make a new runtime",
		cm_name_of(cm), strerror(err));
	return RPMA_E_PROVIDER;
}

void rt_cm_keep_control(struct rt_cm *cm, struct rt_cm_target *target)
{
	if (target->is_kept)
		return;
	target->is_kept = true;
	/* relaxed: the caller holds a count of the target */
	atomic_fetch_add_explicit(&target->count, 1, memory_order_relaxed);
	target->next_kept = cm->kept;
	cm->kept = target;
}

int rt_cm_silence_control(struct rt_cm *cm, struct rdma_cm_id *id)
{
	return rdma_migrate_id(id, cm->quiet) ? RPMA_E_PROVIDER : 0;
}

void rt_cm_end_control(struct rt_cm *cm)
{
	struct rt_cm_target *target;

	rt_thread_mute(&cm->source);
	while ((target = cm->kept) != NULL) {
		cm->kept = target->next_kept;
		target->ops->unref(target);
	}
}

/* ----------------------------------------------------- the device's end --- */

/* Handles DEVICE_FATAL on the control thread. */
static void cm_fatal_message(struct rt_msg *msg, void *owner)
{
	struct rt_cm *cm = RT_FROM(struct rt_cm, fatal_msg, msg);
	struct rpma_rt *rt = owner;

	/* acquire: pairs with the exchange in cm_fatal(); from here on the
	 * message may be sent again */
	atomic_exchange_explicit(&cm->fatal_sent, false, memory_order_acquire);
	pthread_mutex_lock(&rt->lock);
	cm->fatals++;
	pthread_mutex_unlock(&rt->lock);
	rt->device_ops->fatal(cm->device);
}

/* Reports DEVICE_FATAL, on the event thread or a feeding thread. */
static void cm_fatal(struct rt_async_device *self)
{
	struct rt_cm *cm = RT_FROM(struct rt_cm, async, self);

	/* acq_rel: pairs with the exchange in cm_fatal_message(): finding false
	 * means that the message is free again */
	if (!atomic_exchange_explicit(&cm->fatal_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&cm->device->control.inbox, &cm->fatal_msg);
}

void rt_cm_unwatch(struct rt_cm *cm)
{
	rt_async_unwatch(&cm->async);
}

/* -------------------------------------------------------- its life --- */

static int cm_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return rt_refuse_system("fcntl");
	return 0;
}

int rt_cm_new(struct rt_device *device, struct rt_cm **cm_ptr)
{
	struct rt_cm *cm;
	int ret;

	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return RPMA_E_NOMEM;
	ret = rpma_cm_channel_new(&cm->channel);
	if (ret)
		goto err_free;
	cm->quiet = rdma_create_event_channel();
	if (cm->quiet == NULL) {
		ret = rt_refuse_system("rdma_create_event_channel");
		goto err_delete_channel;
	}
	rpma_cm_channel_get_fd(cm->channel, &cm->source.fd);
	cm->source.ready = cm_ready;
	cm->device = device;
	cm->fatal_msg.fn = cm_fatal_message;
	cm->async = (struct rt_async_device){.ibv_ctx = device->ibv_ctx,
					     .rt = device->rt,
					     .fatal = cm_fatal};
	ret = cm_set_nonblocking(cm->source.fd);
	if (ret == 0)
		ret = rt_async_watch(&cm->async);
	if (ret)
		goto err_delete_quiet;
	ret = rt_thread_add(&device->control, &cm->source);
	if (ret)
		goto err_unwatch;
	*cm_ptr = cm;
	return 0;
err_unwatch:
	rt_async_unwatch(&cm->async);
err_delete_quiet:
	rdma_destroy_event_channel(cm->quiet);
err_delete_channel:
	rpma_cm_channel_delete(&cm->channel);
err_free:
	free(cm);
	return ret;
}

void rt_cm_delete(struct rt_cm *cm)
{
	rdma_destroy_event_channel(cm->quiet);
	rpma_cm_channel_delete(&cm->channel);
	free(cm);
}

/* --------------------------------------------------------------- device --- */

/*
 * The list of devices grows in front, under the runtime's lock, and shrinks
 * only in a stop, so the list is walked without the lock.
 */

/* Ends the objects of the device, on the control thread: another thread lost
 * its descriptors. */
static void device_lost_message(struct rt_msg *msg, void *owner)
{
	struct rt_device *device = RT_FROM(struct rt_device, lost_msg, msg);

	(void)owner;
	device->rt->device_ops->lost(device);
}

/* Takes note, on the control thread, that the program closed the thread's own
 * descriptors. The destroyer needs no descriptors. */
static void device_lost(struct rt_thread *thread, int err)
{
	struct rt_device *device = RT_FROM(struct rt_device, control, thread);

	rt_fds_note_lost(device->rt, err);
	device->rt->device_ops->lost(device);
}

/* Starts a thread of a device. */
static int device_start_thread(struct rt_thread *thread, struct rpma_rt *rt,
			       const char *kind, uint32_t number)
{
	char name[RT_SPAWN_NAME];

	snprintf(name, sizeof(name), "%s%" PRIu32, kind, number);
	return rt_thread_start(thread, rt, name);
}

static int device_new(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
		      struct rt_device **device_ptr)
{
	/* relaxed: only a number for a name, orders nothing */
	uint32_t number = atomic_fetch_add_explicit(&rt->devices_made, 1,
						    memory_order_relaxed);
	struct rt_device *device;
	int ret;

	device = calloc(1, sizeof(*device));
	if (device == NULL)
		return RPMA_E_NOMEM;
	device->rt = rt;
	device->ibv_ctx = ibv_ctx;
	device->lost_msg.fn = device_lost_message;
	device->control.lost = device_lost;
	ret = device_start_thread(&device->control, rt, "rt-ctl", number);
	if (ret)
		goto err_free;
	ret = device_start_thread(&device->destroyer, rt, "rt-del", number);
	if (ret)
		goto err_stop_control;
	ret = rt_cm_new(device, &device->cm);
	if (ret)
		goto err_stop_destroyer;
	*device_ptr = device;
	return 0;
err_stop_destroyer:
	rt_thread_stop(&device->destroyer);
err_stop_control:
	rt_thread_stop(&device->control);
err_free:
	free(device);
	return ret;
}

static int device_end_reading(void *arg)
{
	rt_cm_end_control(arg);
	return 0;
}

/* Deletes a device. REQUIRES: no other thread uses the device. */
static void device_delete(struct rt_device *device)
{
	/* the control thread ends first, because it may still send CQs to the
	 * destroyer; the destroyer sends nothing back */
	rt_thread_join(&device->control);
	rt_thread_join(&device->destroyer);
	rt_thread_fini(&device->control);
	rt_thread_fini(&device->destroyer);
	rt_cm_delete(device->cm);
	free(device);
}

/* Lists the new device and returns it, unless another thread has listed a
 * device of the same context before: then returns that device. */
static struct rt_device *device_list(struct rpma_rt *rt, struct rt_device *made)
{
	struct rt_device *device;

	pthread_mutex_lock(&rt->lock);
	device = rt_device_find(rt, made->ibv_ctx);
	if (device == NULL) {
		device = made;
		/* relaxed: changed only under the lock */
		made->next = atomic_load_explicit(&rt->devices,
						  memory_order_relaxed);
		/* release: pairs with the acquires in rt_device_find() and
		 * rt_device_end_reading() */
		atomic_store_explicit(&rt->devices, made, memory_order_release);
	}
	pthread_mutex_unlock(&rt->lock);
	return device;
}

int rt_device_get(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
		  struct rt_device **device_ptr)
{
	struct rt_device *device = rt_device_find(rt, ibv_ctx);
	struct rt_device *made;
	int ret;

	if (rt_fds_error(rt) != 0)
		return rt_refuse_later(
			RPMA_E_PROVIDER,
			"the program closed descriptors of the "
			"runtime (errno %ld): make a new runtime",
			rt_fds_error(rt));
	if (device == NULL) {
		ret = device_new(rt, ibv_ctx, &made);
		if (ret)
			return ret;
		device = device_list(rt, made);
		if (device != made) {
			rt_cm_unwatch(made->cm);
			rt_call_sync(rt, &made->control.inbox,
				     device_end_reading, made->cm);
			device_delete(made);
		}
	}
	*device_ptr = device;
	return 0;
}

void rt_device_end_reading(struct rpma_rt *rt)
{
	struct rt_device *device;

	/* acquire: pairs with the release in device_list() */
	device = atomic_load_explicit(&rt->devices, memory_order_acquire);
	for (; device != NULL; device = device->next) {
		rt_cm_unwatch(device->cm);
		rt_call_sync(rt, &device->control.inbox, device_end_reading,
			     device->cm);
	}
}

void rt_device_delete_all(struct rpma_rt *rt)
{
	struct rt_device *device;
	struct rt_device *next;

	/* relaxed: no other thread uses the devices */
	device = atomic_exchange_explicit(&rt->devices, NULL,
					  memory_order_relaxed);
	for (; device != NULL; device = next) {
		next = device->next;
		device_delete(device);
	}
}
