/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.c -- see device.h. The list grows in front, under the runtime's lock,
 * and shrinks in a stop only, so it is walked without.
 */

#include "cm/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fds.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/thread.h"
#include "cm/cm.h"

/* Control thread. */
static void lost_message(struct rt_msg *msg, void *owner)
{
	struct rt_device *device = RT_FROM(struct rt_device, lost_msg, msg);

	(void)owner;
	device->rt->device_ops->lost(device);
}

/* Control thread: its own descriptors. The destroyer needs none. */
static void lost(struct rt_thread *thread, int err)
{
	struct rt_device *device = RT_FROM(struct rt_device, control, thread);

	rt_fds_note_lost(device->rt, err);
	device->rt->device_ops->lost(device);
}

/* One of a device's two threads. */
static int start(struct rt_thread *thread, struct rpma_rt *rt, const char *kind,
		 uint32_t number)
{
	char name[RT_SPAWN_NAME];

	snprintf(name, sizeof(name), "%s%" PRIu32, kind, number);
	return rt_thread_start(thread, rt, name);
}

static int device_new(struct rpma_rt *rt, struct ibv_context *ibv_ctx,
		      struct rt_device **device_ptr)
{
	/* relaxed: a name, orders nothing */
	uint32_t number = atomic_fetch_add_explicit(&rt->devices_made, 1,
						    memory_order_relaxed);
	struct rt_device *device;
	int ret;

	device = calloc(1, sizeof(*device));
	if (device == NULL)
		return RPMA_E_NOMEM;
	device->rt = rt;
	device->ibv_ctx = ibv_ctx;
	device->lost_msg.fn = lost_message;
	device->control.lost = lost;
	ret = start(&device->control, rt, "rt-ctl", number);
	if (ret)
		goto err_free;
	ret = start(&device->destroyer, rt, "rt-del", number);
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

static int end_reading(void *arg)
{
	rt_cm_end_control(arg);
	return 0;
}

/* REQUIRES: no other thread uses the device. The control thread ends first: it
 * may still send CQs to the destroyer, which sends nothing back any more. */
static void device_delete(struct rt_device *device)
{
	/* first: it still hands over what is to be destroyed */
	rt_thread_join(&device->control);
	rt_thread_join(&device->destroyer);
	rt_thread_fini(&device->control);
	rt_thread_fini(&device->destroyer);
	rt_cm_delete(device->cm);
	free(device);
}

/* The device of its context that is in the list: this one, unless another
 * thread was faster. */
static struct rt_device *list_device(struct rpma_rt *rt, struct rt_device *made)
{
	struct rt_device *device;

	pthread_mutex_lock(&rt->lock);
	device = rt_device_find(rt, made->ibv_ctx);
	if (device == NULL) {
		device = made;
		/* relaxed: changed under the lock */
		made->next = atomic_load_explicit(&rt->devices,
						  memory_order_relaxed);
		/* release: pairs with the acquire in rt_device_find() */
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
		device = list_device(rt, made);
		if (device != made) {
			rt_cm_unwatch(made->cm);
			rt_call_sync(rt, &made->control.inbox, end_reading,
				     made->cm);
			device_delete(made);
		}
	}
	*device_ptr = device;
	return 0;
}

void rt_device_end_reading(struct rpma_rt *rt)
{
	struct rt_device *device;

	/* acquire: pairs with the release in list_device() */
	device = atomic_load_explicit(&rt->devices, memory_order_acquire);
	for (; device != NULL; device = device->next) {
		rt_cm_unwatch(device->cm);
		rt_call_sync(rt, &device->control.inbox, end_reading,
			     device->cm);
	}
}

void rt_device_delete_all(struct rpma_rt *rt)
{
	struct rt_device *device;
	struct rt_device *next;

	/* relaxed: nobody else uses them */
	device = atomic_exchange_explicit(&rt->devices, NULL,
					  memory_order_relaxed);
	for (; device != NULL; device = next) {
		next = device->next;
		device_delete(device);
	}
}
