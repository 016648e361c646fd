/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lost.c -- see lost.h. All of it runs on the control thread of the device.
 * Connections learn of a device's end from their CQs (cq_pool.c); listeners and
 * SRQs, which have none, from here.
 */

#include "conn/lost.h"

#include "conn/conn.h"
#include "conn/listener.h"
#include "srq/srq.h"

/* The next listener of the device, off the runtime's list; NULL: none. */
static struct rpma_rt_listener *take_listener(const struct rt_device *device)
{
	struct rpma_rt *rt = device->rt;
	struct rpma_rt_listener *listener;

	pthread_mutex_lock(&rt->lock);
	listener = rt->listeners;
	while (listener != NULL && listener->device != device)
		listener = listener->next;
	if (listener != NULL)
		rt_listener_unlist_locked(listener);
	pthread_mutex_unlock(&rt->lock);
	return listener;
}

static void end_listeners(const struct rt_device *device,
			  enum rpma_rt_reason reason, int err)
{
	struct rpma_rt_listener *listener;

	while ((listener = take_listener(device)) != NULL)
		rt_listener_end_control(listener, reason, err);
}

static void fail_srqs(const struct rt_device *device)
{
	struct rpma_rt *rt = device->rt;
	struct rpma_rt_srq *srq;

	pthread_mutex_lock(&rt->lock);
	for (srq = rt->srqs; srq != NULL; srq = srq->next) {
		if (srq->device == device)
			rt_srq_fail_mt(srq);
	}
	pthread_mutex_unlock(&rt->lock);
}

static void fatal(struct rt_device *device)
{
	end_listeners(device, RPMA_RT_REASON_DEVICE, 0);
	fail_srqs(device);
}

/* Each connection in a message of its own, for dying blocks. */
static void deaf(struct rt_device *device)
{
	struct rpma_rt *rt = device->rt;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->device == device)
			rt_conn_tell_control(conn, RT_CTL_DEAF);
	}
	pthread_mutex_unlock(&rt->lock);
	end_listeners(device, RPMA_RT_REASON_FAILED, rt_cm_error(device->cm));
}

/* Nothing can be read on the device any more, by no thread of the runtime. */
static void lost(struct rt_device *device)
{
	/* first: the end of an SRQ has a connection die for another reason */
	deaf(device);
	fail_srqs(device);
}

const struct rt_device_ops rt_lost_ops = {
	.fatal = fatal, .deaf = deaf, .lost = lost};
