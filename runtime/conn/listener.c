/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.c -- listening on a device's CM channel, and the end of that: the
 * control thread refuses from then on, the caller takes it off the network. It
 * is closed by whoever took it off the runtime's list.
 */

#include "conn/listener.h"

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/runtime.h"
#include "base/thread.h"
#include "cm/device.h"
#include "conn/cfg.h"
#include "queue/queue.h"
#include "srq/srq.h"
#include "poller/place.h"

void rt_listener_unref(struct rpma_rt_listener *listener)
{
	struct rpma_rt *rt = listener->rt;

	/* acq_rel: the last one sees what every other did */
	if (atomic_fetch_sub_explicit(&listener->target.count, 1,
				      memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&rt->lock);
	rt_conn_cfg_unref_srqs(&listener->cfg);
	pthread_mutex_unlock(&rt->lock);
	rt_conn_cfg_fini(&listener->cfg);
	free(listener);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}

/* Control thread. */
static void cm_event(struct rt_cm_target *target,
		     const struct rpma_cm_event *event)
{
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		rt_conn_request_control((struct rpma_rt_listener *)target,
					event);
}

static void cm_unref(struct rt_cm_target *target)
{
	rt_listener_unref((struct rpma_rt_listener *)target);
}

static const struct rt_cm_ops cm_ops = {.event = cm_event, .unref = cm_unref};

static int refuse_on_control(void *arg)
{
	struct rpma_rt_listener *listener = arg;

	listener->closed = true;
	return 0;
}

static int keep_on_control(void *arg)
{
	struct rpma_rt_listener *listener = arg;

	rt_cm_keep_control(listener->device->cm, &listener->target);
	return 0;
}

void rt_listener_close(struct rpma_rt_listener *listener)
{
	struct rt_inbox *control = &listener->device->control.inbox;

	/* first: a request that is being handled has become a connection, or
	 * was refused, before the caller may delete the queue */
	rt_call_sync(listener->rt, control, refuse_on_control, listener);
	if (rpma_ep_shutdown(&listener->ep))
		rt_call_sync(listener->rt, control, keep_on_control, listener);
	rt_queue_unref(listener->cfg.queue);
}

static int listener_new(struct rpma_rt *rt, const struct rpma_rt_conn_cfg *cfg,
			struct rpma_rt_listener **listener_ptr)
{
	struct rpma_rt_listener *listener;
	int ret;

	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return RPMA_E_NOMEM;
	listener->target.ops = &cm_ops;
	/* relaxed: nobody else knows it. The application's handle */
	atomic_store_explicit(&listener->target.count, 1, memory_order_relaxed);
	listener->rt = rt;
	ret = rt_conn_cfg_read(cfg, rt, &listener->cfg);
	if (ret) {
		free(listener);
		return ret;
	}
	pthread_mutex_lock(&rt->lock);
	rt_conn_cfg_ref_srqs(&listener->cfg);
	pthread_mutex_unlock(&rt->lock);
	/* relaxed: a count, read under no order */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	*listener_ptr = listener;
	return 0;
}

/* Into the runtime's list, unless it stops: then nobody would close it. */
static int list_listener(struct rpma_rt *rt, struct rpma_rt_listener *listener)
{
	int ret = RPMA_RT_E_CLOSED;

	pthread_mutex_lock(&rt->lock);
	if (!rt->stopping) {
		listener->next = rt->listeners;
		rt->listeners = listener;
		ret = 0;
	}
	pthread_mutex_unlock(&rt->lock);
	return ret;
}

/* Was it listed? Then the caller has to close it. */
static bool unlist_listener(struct rpma_rt *rt,
			    const struct rpma_rt_listener *listener)
{
	struct rpma_rt_listener **link = &rt->listeners;
	bool is_listed;

	pthread_mutex_lock(&rt->lock);
	while (*link != NULL && *link != listener)
		link = &(*link)->next;
	is_listed = *link != NULL;
	if (is_listed)
		*link = listener->next;
	pthread_mutex_unlock(&rt->lock);
	return is_listed;
}

/* On the network; what is made of it is the caller's to undo. */
static int begin(struct rpma_rt_listener *listener, const char *addr,
		 const char *port)
{
	struct rpma_peer *peer = listener->cfg.peer;
	struct rpma_rt *rt = listener->rt;
	struct ibv_context *ibv_ctx;
	int ret;

	if (rt_queue_is_closed(listener->cfg.queue))
		return RPMA_RT_E_CLOSED;
	ret = rpma_peer_get_ibv_context(peer, &ibv_ctx);
	if (ret == 0)
		ret = rt_device_get(rt, ibv_ctx, &listener->device);
	if (ret == 0)
		ret = rpma_ep_listen_ex(peer, addr, port, listener->cfg.backlog,
					listener->device->cm->channel,
					&listener->target, &listener->ep);
	if (ret)
		return ret;
	rpma_ep_get_port(listener->ep, &listener->port);
	ret = list_listener(rt, listener);
	if (ret)
		rpma_ep_shutdown(&listener->ep);
	return ret;
}

int rpma_rt_listen(struct rpma_rt *rt, const char *addr, const char *port,
		   const struct rpma_rt_conn_cfg *cfg,
		   struct rpma_rt_listener **listener_ptr)
{
	struct rpma_rt_listener *listener;
	int ret;

	if (rt == NULL || addr == NULL || port == NULL || cfg == NULL ||
	    listener_ptr == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret == 0)
		ret = rt_context_ref(rt);
	if (ret)
		return ret;
	ret = listener_new(rt, cfg, &listener);
	if (ret)
		goto release_runtime;
	/* held before begin() looks whether it is closed */
	rt_queue_ref(listener->cfg.queue);
	ret = begin(listener, addr, port);
	if (ret == 0) {
		*listener_ptr = listener;
	} else {
		rt_queue_unref(listener->cfg.queue);
		rt_listener_unref(listener);
	}
release_runtime:
	rt_context_unref(rt);
	return ret;
}

int rpma_rt_listener_get_port(const struct rpma_rt_listener *listener,
			      uint16_t *port)
{
	int ret;

	if (listener == NULL || port == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(listener->rt);
	if (ret == 0)
		*port = listener->port;
	return ret;
}

int rpma_rt_listener_delete(struct rpma_rt_listener **listener_ptr)
{
	struct rpma_rt_listener *listener;
	bool is_ours = false;
	struct rpma_rt *rt;
	int ret;

	if (listener_ptr == NULL)
		return RPMA_E_INVAL;
	listener = *listener_ptr;
	if (listener == NULL)
		return 0;
	rt = listener->rt;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	if (rt_context_ref(rt) == 0) {
		is_ours = unlist_listener(rt, listener);
		if (is_ours)
			rt_listener_close(listener);
		rt_context_unref(rt);
	}
	if (!is_ours) /* the stop closes it */
		rt_context_wait_stopped(rt);
	*listener_ptr = NULL;
	rt_listener_unref(listener);
	return 0;
}
