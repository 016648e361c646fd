/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.c -- listening on the runtime's CM channel, and the way of a CM
 * event: the event thread copies, holds what it names, acknowledges, forwards;
 * the control thread acts. doc/protocols/connection.md.
 */

#include "conn/listener.h"

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/runtime.h"
#include "base/thread.h"
#include "conn/cfg.h"
#include "queue/queue.h"
#include "srq/srq.h"
#include "poller/place.h"

/* ------------------------------------------------------------ CM events --- */

static void target_unref(struct rt_cm_target *target)
{
	if (target->kind == RT_CM_CONN)
		rt_conn_unref((struct rpma_rt_conn *)target);
	else
		rt_listener_unref((struct rpma_rt_listener *)target);
}

void rt_cm_keep_control(struct rpma_rt *rt, struct rt_cm_target *target)
{
	if (target->is_kept)
		return;
	target->is_kept = true;
	/* relaxed: the caller holds it */
	atomic_fetch_add_explicit(&target->count, 1, memory_order_relaxed);
	target->next_kept = rt->kept_targets;
	rt->kept_targets = target;
}

int rt_cm_let_go_control(void *arg)
{
	struct rpma_rt *rt = arg;
	struct rt_cm_target *target;

	while ((target = rt->kept_targets) != NULL) {
		rt->kept_targets = target->next_kept;
		target_unref(target);
	}
	return 0;
}

/* Control thread. */
static void cm_message(struct rt_msg *msg, void *owner)
{
	struct rt_cm_msg *cm = (struct rt_cm_msg *)msg;

	if (cm->target->kind == RT_CM_CONN)
		rt_conn_cm_event_control((struct rpma_rt_conn *)cm->target,
					 &cm->event);
	else if (cm->event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
		rt_conn_request_control((struct rpma_rt_listener *)cm->target,
					&cm->event);
	else /* read before the connection of its id was made */
		rt_conn_early_event_control(owner, &cm->event);
	target_unref(cm->target);
	free(cm);
}

/* One event; RPMA_E_AGAIN: look again. */
static int read_cm_event(struct rpma_rt *rt)
{
	struct rpma_cm_event read;
	struct rt_cm_msg *cm;
	int ret;

	/* memory first: an event that was read must not be lost */
	if (rt->spare == NULL)
		rt->spare = malloc(sizeof(*rt->spare));
	cm = rt->spare;
	if (cm == NULL)
		return RPMA_E_NOMEM;
	pthread_mutex_lock(&rt->cm_lock);
	ret = rpma_cm_channel_get_event(rt->cm, &read);
	pthread_mutex_unlock(&rt->cm_lock);
	if (ret)
		return ret;
	rt->spare = NULL;
	cm->msg.fn = cm_message;
	cm->event = read;
	cm->target = read.context;
	/* relaxed: the unacknowledged event keeps it alive until here */
	atomic_fetch_add_explicit(&cm->target->count, 1, memory_order_relaxed);
	rt_inbox_push_mt(&rt->control.inbox, &cm->msg);
	/* whoever destroys the id returns from that after this, and finds the
	 * message in the inbox; nothing waits in between */
	rpma_cm_event_ack(&read);
	return RPMA_E_AGAIN;
}

void rt_cm_ready(struct rt_source *source)
{
	struct rpma_rt *rt =
		(struct rpma_rt *)((char *)source -
				   offsetof(struct rpma_rt, cm_source));
	int ret;

	do
		ret = read_cm_event(rt);
	while (ret == RPMA_E_AGAIN);
	if (ret == RPMA_E_PROVIDER) { /* also librdmacm's want of memory */
		rt_thread_failed(source);
		return;
	}
	rt_thread_succeeded(source);
	if (ret == RPMA_E_NOMEM)
		rt_thread_rest(source);
}

/* ------------------------------------------------------------ listeners --- */

void rt_listener_unref(struct rpma_rt_listener *listener)
{
	struct rpma_rt *rt = listener->rt;

	/* acq_rel: the last one sees what every other did */
	if (atomic_fetch_sub_explicit(&listener->target.count, 1,
				      memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&rt->lock);
	rt_srq_unref_all(listener->cfg);
	pthread_mutex_unlock(&rt->lock);
	rpma_rt_conn_cfg_delete(&listener->cfg);
	free(listener);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}

void rt_listener_close_control(struct rpma_rt_listener *listener)
{
	if (listener->closed)
		return;
	listener->closed = true;
	if (rpma_ep_shutdown(&listener->ep))
		rt_cm_keep_control(listener->rt, &listener->target);
	rt_queue_unref(listener->queue);
}

static int delete_control(void *arg)
{
	rt_listener_close_control(arg);
	return 0;
}

static int listener_new(struct rpma_rt *rt, struct rpma_peer *peer,
			const struct rpma_rt_conn_cfg *cfg,
			struct rpma_rt_queue *queue,
			struct rpma_rt_listener **listener_ptr)
{
	struct rpma_rt_listener *listener;
	int ret;

	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return RPMA_E_NOMEM;
	listener->target.kind = RT_CM_LISTENER;
	/* relaxed: nobody else knows it. The application's handle */
	atomic_store_explicit(&listener->target.count, 1, memory_order_relaxed);
	listener->rt = rt;
	listener->peer = peer;
	listener->queue = queue;
	ret = rt_conn_cfg_copy(cfg, &listener->cfg);
	if (ret) {
		free(listener);
		return ret;
	}
	pthread_mutex_lock(&rt->lock);
	rt_srq_ref_all(listener->cfg);
	pthread_mutex_unlock(&rt->lock);
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

static void unlist_listener(struct rpma_rt *rt,
			    const struct rpma_rt_listener *listener)
{
	struct rpma_rt_listener **link = &rt->listeners;

	pthread_mutex_lock(&rt->lock);
	while (*link != NULL && *link != listener)
		link = &(*link)->next;
	if (*link != NULL)
		*link = listener->next;
	pthread_mutex_unlock(&rt->lock);
}

int rpma_rt_listen(struct rpma_rt *rt, struct rpma_peer *peer, const char *addr,
		   const char *port, int backlog,
		   const struct rpma_rt_conn_cfg *cfg, int poller,
		   struct rpma_rt_queue *queue, void *user,
		   struct rpma_rt_listener **listener_ptr)
{
	struct rpma_rt_listener *listener;
	int ret;

	if (rt == NULL || peer == NULL || addr == NULL || port == NULL ||
	    queue == NULL || !rt_queue_is_of(queue, rt) ||
	    listener_ptr == NULL || backlog < 0 ||
	    !rt_place_is_valid(rt, poller) || !rt_conn_cfg_is_of(cfg, rt))
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	ret = rt_context_ref(rt);
	if (ret)
		return ret;
	ret = listener_new(rt, peer, cfg, queue, &listener);
	if (ret)
		goto release_runtime;
	listener->poller = poller;
	listener->user = user;
	/* relaxed: a count, read under no order */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	rt_queue_ref(queue);
	ret = rt_queue_is_closed(queue) ? RPMA_RT_E_CLOSED : 0;
	if (ret)
		goto err_put_queue;
	ret = rpma_ep_listen_ex(peer, addr, port, backlog, rt->cm,
				&listener->target, &listener->ep);
	if (ret)
		goto err_put_queue;
	rpma_ep_get_port(listener->ep, &listener->port);
	ret = list_listener(rt, listener);
	if (ret)
		goto err_shutdown;
	*listener_ptr = listener;
	goto release_runtime;
err_shutdown:
	rpma_ep_shutdown(&listener->ep);
err_put_queue:
	rt_queue_unref(queue);
	rt_listener_unref(listener);
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
	int ret;

	if (listener_ptr == NULL)
		return RPMA_E_INVAL;
	listener = *listener_ptr;
	if (listener == NULL)
		return 0;
	ret = rt_context_check_wait(listener->rt);
	if (ret)
		return ret;
	if (rt_context_ref(listener->rt) == 0) {
		unlist_listener(listener->rt, listener);
		rt_call_sync(listener->rt, &listener->rt->control.inbox,
			     delete_control, listener);
		rt_context_unref(listener->rt);
	} else { /* the stop closes it */
		rt_context_wait_stopped(listener->rt);
		unlist_listener(listener->rt, listener);
	}
	*listener_ptr = NULL;
	rt_listener_unref(listener);
	return 0;
}
