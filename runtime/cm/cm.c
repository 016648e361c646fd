/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cm.c -- reading the CM channel of a device. Everything here but making and
 * deleting runs on the device's control thread.
 */

#include "cm/cm.h"

#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "base/device.h"

#define BATCH 64 /* events in a round of the control thread */

/* ------------------------------------------------------------ reading --- */

/* One event; RPMA_E_AGAIN: look again. */
static int read_event(struct rt_cm *cm)
{
	struct rpma_cm_event event;
	struct rt_cm_target *target;
	int ret = rpma_cm_channel_get_event(cm->channel, &event);

	if (ret)
		return ret;
	target = event.context;
	/* relaxed: the event, not acknowledged yet, keeps it alive until here.
	 * The thread that destroys the id goes on after the acknowledgement */
	atomic_fetch_add_explicit(&target->count, 1, memory_order_relaxed);
	rpma_cm_event_ack(&event);
	target->ops->event(target, &event);
	target->ops->unref(target);
	return RPMA_E_AGAIN;
}

static void cm_ready(struct rt_source *source)
{
	struct rt_cm *cm = (struct rt_cm *)source;
	int ret = RPMA_E_AGAIN;
	int i;

	for (i = 0; i < BATCH && ret == RPMA_E_AGAIN; i++)
		ret = read_event(cm);
	if (ret == RPMA_E_PROVIDER) /* also librdmacm's want of memory */
		rt_thread_failed(source);
	else
		rt_thread_succeeded(source);
}

void rt_cm_keep_control(struct rt_cm *cm, struct rt_cm_target *target)
{
	if (target->is_kept)
		return;
	target->is_kept = true;
	/* relaxed: the caller holds it */
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

/* -------------------------------------------------------- its life --- */

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return RPMA_E_PROVIDER;
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
	ret = RPMA_E_PROVIDER;
	if (cm->quiet == NULL)
		goto err_delete_channel;
	rpma_cm_channel_get_fd(cm->channel, &cm->source.fd);
	cm->source.ready = cm_ready;
	ret = set_nonblocking(cm->source.fd);
	if (ret == 0)
		ret = rt_thread_add(&device->control, &cm->source);
	if (ret)
		goto err_delete_quiet;
	*cm_ptr = cm;
	return 0;
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
