/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * listener.c -- listening on a device's CM channel, and the end of a listener:
 * the control thread refuses requests; the caller takes the listener off the
 * network or, if the device was removed, the destroyer does; then the pollers
 * write LISTENER_CLOSED. The thread that took the listener off the runtime's
 * list closes the listener.
 */

#include "conn/listener.h"

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/cfg.h"
#include "base/context.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/thread.h"
#include "cm/cm.h"
#include "conn/cfg.h"
#include "conn/conn.h"
#include "conn/resolve.h"
#include "future/future.h"
#include "poller/poller.h"
#include "poller/source.h"
#include "queue/queue.h"
#include "srq/srq.h"

static _Atomic uint32_t last_number;

/* Releases the SRQs: no further request can come, so the thread that takes
 * LISTENER_CLOSED may delete the SRQs, unless connections use them. */
static void listener_release_srqs(struct rpma_rt_listener *listener)
{
	pthread_mutex_lock(&listener->rt->lock);
	if (listener->has_srqs)
		rt_conn_cfg_unref(&listener->cfg);
	listener->has_srqs = false;
	pthread_mutex_unlock(&listener->rt->lock);
}

/* Ends the source of requests: the source's poller refuses requests that no
 * future has. */
static void listener_end_requests(struct rpma_rt_listener *listener)
{
	rt_source_drop_mt(listener->requests);
	pthread_mutex_lock(&listener->rt->lock);
	rt_future_block_return(listener->requests);
	pthread_mutex_unlock(&listener->rt->lock);
}

void rt_listener_unref(struct rpma_rt_listener *listener)
{
	struct rpma_rt *rt = listener->rt;

	/* acq_rel: pairs with the other holders' decrements: the last holder
	 * sees what the others did */
	if (atomic_fetch_sub_explicit(&listener->target.count, 1,
				      memory_order_acq_rel) != 1)
		return;
	rt_context_unlist(rt, &listener->listed);
	listener_release_srqs(listener);
	listener_end_requests(listener);
	rt_conn_cfg_fini(&listener->cfg);
	rt_listener_poller_free_all(listener);
	free(listener);
	/* release: pairs with the acquire in rpma_rt_delete() */
	atomic_fetch_sub_explicit(&rt->handles, 1, memory_order_release);
}

/* Returns whether the device has failed since the listener was begun: the end
 * of the device did not find the listener in the list. REQUIRES: the runtime's
 * lock */
static bool listener_is_lost(const struct rpma_rt_listener *listener,
			     uint32_t fatals)
{
	const struct rt_cm *cm = listener->device->cm;

	return listener->is_lost || cm->fatals != fatals ||
	       rt_cm_error(cm) != 0;
}

/* Lists the listener, unless the runtime stops, the device is lost, or a queue
 * has no place for the last item: then the caller has to close the listener. A
 * stop waits for the listener's end in any case, because the caller holds the
 * runtime. */
static int listener_list(struct rpma_rt *rt, struct rpma_rt_listener *listener,
			 uint32_t fatals)
{
	int ret = 0;

	/* relaxed: the caller holds the listener. The count is dropped at the
	 * end, on the last poller */
	atomic_fetch_add_explicit(&listener->target.count, 1,
				  memory_order_relaxed);
	rt_context_list(rt, &rt->listed_listeners, &listener->listed);
	pthread_mutex_lock(&rt->lock);
	rt->in_use++;
	if (rt->stopping) {
		ret = RPMA_RT_E_CLOSED;
	} else if (listener_is_lost(listener, fatals)) {
		ret = RPMA_E_PROVIDER;
	} else {
		ret = rt_listener_poller_reserve_all(listener);
	}
	if (ret == 0) {
		listener->is_listed = true;
		listener->next = rt->listeners;
		rt->listeners = listener;
	}
	pthread_mutex_unlock(&rt->lock);
	if (ret == RPMA_E_PROVIDER)
		RT_LOG_ERROR("no listener at port %u: its device failed while "
			     "it was made",
			     listener->port);
	return ret;
}

/* Takes the listener off the list. Returns whether the listener was listed; if
 * so the caller has to close the listener. */
static bool listener_unlist_locked(const struct rpma_rt_listener *listener)
{
	struct rpma_rt_listener **link = &listener->rt->listeners;

	while (*link != NULL && *link != listener)
		link = &(*link)->next;
	if (*link == NULL)
		return false;
	*link = listener->next;
	return true;
}

/* Takes the listener off the runtime's list, for the caller to end the
 * listener. REQUIRES: the listener is listed; the runtime's lock */
static void rt_listener_unlist_locked(struct rpma_rt_listener *listener)
{
	listener_unlist_locked(listener);
	listener->is_removed = true;
}

/* --------------------------------------------------- the control thread --- */

/* Goes on with the end: the destroyer has taken the listener off the
 * network. */
static void listener_removed_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_listener *listener =
		RT_FROM(struct rpma_rt_listener, msg, msg);

	(void)owner;
	if (listener->is_id_kept)
		rt_cm_keep_control(listener->device->cm, &listener->target);
	listener_release_srqs(listener);
	rt_listener_poller_end_all(listener);
}

static void listener_shutdown_message(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_listener *listener =
		RT_FROM(struct rpma_rt_listener, msg, msg);

	(void)owner;
	listener->is_id_kept = rpma_ep_shutdown(&listener->ep) != 0;
	listener->msg.fn = listener_removed_message;
	rt_inbox_push_mt(&listener->device->control.inbox, &listener->msg);
}

/* Closes the listener as rt_listener_close() does, for a caller that may not
 * wait and that took the listener off the list. err: an errno with more detail,
 * or 0. */
static void rt_listener_end_control(struct rpma_rt_listener *listener,
				    enum rpma_rt_reason reason, int err)
{
	RT_LOG_ERROR("the listener at port %u ends: its device %s",
		     listener->port,
		     reason == RPMA_RT_REASON_DEVICE
			     ? "failed, or was removed"
			     : "reports no requests any more");
	listener->closed = true;
	listener->reason = reason;
	listener->err = err;
	listener->msg.fn = listener_shutdown_message;
	rt_inbox_push_mt(&listener->device->destroyer.inbox, &listener->msg);
}

/* Ends the listener, whose device is gone, unless another thread ends the
 * listener already. A thread that is just making the listener notices when it
 * would list the listener. */
static void listener_device_removed(struct rpma_rt_listener *listener)
{
	struct rpma_rt *rt = listener->rt;
	bool is_ours;

	pthread_mutex_lock(&rt->lock);
	is_ours = listener_unlist_locked(listener);
	listener->is_removed |= is_ours;
	listener->is_lost = true;
	pthread_mutex_unlock(&rt->lock);
	if (is_ours)
		rt_listener_end_control(listener, RPMA_RT_REASON_DEVICE, 0);
}

void rt_conn_request_control(struct rpma_rt_listener *listener,
			     const struct rpma_cm_event *event)
{
	struct rt_conn_spec spec = {
		.rt = listener->rt,
		.device = listener->device,
		.cfg = &listener->cfg,
		.passive = true,
		.listener = listener,
		.control = rt_conn_control_message,
		.cm_ops = &rt_conn_cm_ops,
	};
	struct rpma_cm_event bare;
	struct rpma_rt_conn *conn;
	int ret = RPMA_RT_E_CLOSED;
	int err;

	if (!listener->closed)
		ret = rt_conn_create(&spec, &conn);
	if (ret) {
		if (ret != RPMA_RT_E_CLOSED)
			rt_listener_poller_count_refused(listener, ret);
		rdma_reject(event->id, NULL, 0);
		if (rdma_destroy_id(event->id))
			rt_cm_keep_control(listener->device->cm,
					   &listener->target);
		return;
	}
	conn->setup->id = event->id;
	rt_conn_keep_private_data(conn, event);
	bare = rt_conn_bare_event(event);
	ret = rpma_conn_req_new_from_event(conn->setup->peer, &bare,
					   conn->setup->cfg, &conn->target,
					   &conn->setup->req);
	if (ret == 0)
		ret = rt_conn_qp_is_made_control(conn);
	if (ret) {
		err = rt_failure_errno(ret);
		rt_listener_poller_count_refused(
			listener, ret == RPMA_E_PROVIDER && err ? err : ret);
		/* not reported to the application: the control thread owns the
		 * handle */
		conn->ctl.handshake = RT_HANDSHAKE_UNHEARD;
		rt_conn_die_control(conn, RPMA_RT_REASON_FAILED,
				    (uint32_t)-err);
		rt_conn_unref(conn);
	}
}

static void listener_cm_event(struct rt_cm_target *target,
			      const struct rpma_cm_event *event)
{
	struct rpma_rt_listener *listener = (struct rpma_rt_listener *)target;

	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		rt_conn_request_control(listener, event);
	else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		listener_device_removed(listener);
}

static void listener_cm_unref(struct rt_cm_target *target)
{
	rt_listener_unref((struct rpma_rt_listener *)target);
}

static const struct rt_cm_ops cm_ops = {.event = listener_cm_event,
					.unref = listener_cm_unref};

static int listener_refuse_on_control(void *arg)
{
	struct rpma_rt_listener *listener = arg;

	listener->closed = true;
	return 0;
}

static int listener_keep_on_control(void *arg)
{
	struct rpma_rt_listener *listener = arg;

	rt_cm_keep_control(listener->device->cm, &listener->target);
	return 0;
}

void rt_listener_close(struct rpma_rt_listener *listener,
		       enum rpma_rt_reason reason)
{
	struct rt_inbox *control = &listener->device->control.inbox;

	/* first: a request that is being handled has become a connection, or
	 * was refused, before the caller may delete the queue */
	rt_call_sync(listener->rt, control, listener_refuse_on_control,
		     listener);
	if (rpma_ep_shutdown(&listener->ep))
		rt_call_sync(listener->rt, control, listener_keep_on_control,
			     listener);
	listener_release_srqs(listener);
	listener->reason = reason;
	rt_listener_poller_end_all(listener);
}

/* ----------------------------------------------------------------- lost --- */

/*
 * The end of everything on a device that is lost, or whose connections' events
 * are lost, so that no program waits for ever. Runs on the control thread of
 * the device. Connections learn of a device's end from their CQs (cq_pool.c);
 * listeners and SRQs, which have no CQs, from here.
 */

/* Takes the next listener of the device off the runtime's list; NULL: there is
 * no such listener. */
static struct rpma_rt_listener *
lost_take_listener(const struct rt_device *device)
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

static void lost_end_listeners(const struct rt_device *device,
			       enum rpma_rt_reason reason, int err)
{
	struct rpma_rt_listener *listener;

	while ((listener = lost_take_listener(device)) != NULL)
		rt_listener_end_control(listener, reason, err);
}

static void lost_fail_srqs(const struct rt_device *device)
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

static void lost_fatal(struct rt_device *device)
{
	lost_end_listeners(device, RPMA_RT_REASON_DEVICE, 0);
	lost_fail_srqs(device);
}

/* Makes all connections deaf and ends the listeners. Each connection gets a
 * message of its own, because dying blocks. */
static void lost_deaf(struct rt_device *device)
{
	struct rpma_rt *rt = device->rt;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->device == device)
			rt_conn_tell_control(conn, RT_CTL_DEAF);
	}
	pthread_mutex_unlock(&rt->lock);
	lost_end_listeners(device, RPMA_RT_REASON_FAILED,
			   rt_cm_error(device->cm));
}

/* Ends everything on the device: no thread of the runtime can read the device's
 * events any more. */
static void lost_descriptors(struct rt_device *device)
{
	/* first, because the end of an SRQ gives its connections another reason
	 * to die */
	lost_deaf(device);
	lost_fail_srqs(device);
}

const struct rt_device_ops rt_lost_ops = {
	.fatal = lost_fatal, .deaf = lost_deaf, .lost = lost_descriptors};

/* --------------------------------------------------------------- making --- */

/* Returns the first poller that the listener uses. */
static struct rt_poller *
rt_listener_poller_first(const struct rpma_rt_listener *listener)
{
	uint32_t i = 0;

	while (!listener->parts[i].is_used)
		i++;
	return listener->parts[i].poller;
}

/* Returns bits: the pollers through which requests and the end of the listener
 * pass. */
static uint64_t rt_listener_poller_used(const struct rpma_rt_listener *listener)
{
	uint64_t used = 0;
	uint32_t i;

	for (i = 0; i < listener->rt->cfg.pollers; i++)
		used |= (uint64_t)listener->parts[i].is_used << i;
	return used;
}

/* Makes the source of a listener without a queue: requests are futures, on the
 * listener's first poller. */
static int listener_make_requests(struct rpma_rt_listener *listener)
{
	const struct rt_source_cfg cfg = {
		.kind = &rt_source_requests,
		.poller = rt_listener_poller_first(listener),
		.futures = RT_FUTURE_EVENT_SLOTS,
		.owner = listener,
	};

	pthread_mutex_lock(&listener->rt->lock);
	listener->requests = rt_source_new(&cfg);
	pthread_mutex_unlock(&listener->rt->lock);
	if (listener->requests != NULL) {
		listener->requests->pollers = rt_listener_poller_used(listener);
		return 0;
	}
	rt_listener_poller_undo_all(listener);
	return RPMA_E_NOMEM;
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
	/* relaxed: no other thread knows the listener. The count of the
	 * application's handle */
	atomic_store_explicit(&listener->target.count, 1, memory_order_relaxed);
	listener->rt = rt;
	CDS_INIT_LIST_HEAD(&listener->listed);
	/* relaxed: only the uniqueness of the number matters */
	listener->number = 1 + atomic_fetch_add_explicit(&last_number, 1,
							 memory_order_relaxed);
	ret = rt_conn_cfg_read(cfg, rt, &listener->cfg);
	if (ret) {
		free(listener);
		return ret;
	}
	/* holds the queues, before listener_begin() looks whether the queues
	 * are closed */
	ret = rt_listener_poller_new_all(listener);
	if (ret == 0 && rt_conn_cfg_queue(&listener->cfg, 0) == NULL)
		ret = listener_make_requests(listener);
	if (ret) {
		rt_conn_cfg_fini(&listener->cfg);
		free(listener);
		return ret;
	}
	pthread_mutex_lock(&rt->lock);
	rt_conn_cfg_ref(&listener->cfg);
	listener->has_srqs = true;
	pthread_mutex_unlock(&rt->lock);
	/* relaxed: a count, which orders no other data */
	atomic_fetch_add_explicit(&rt->handles, 1, memory_order_relaxed);
	*listener_ptr = listener;
	return 0;
}

static bool listener_has_closed_queue(const struct rpma_rt_listener *listener)
{
	const struct rpma_rt_queue *queue;
	uint32_t i;

	for (i = 0; i < listener->rt->cfg.pollers; i++) {
		queue = rt_conn_cfg_queue(&listener->cfg, i);
		if (queue != NULL && rt_queue_is_closed(queue))
			return true;
	}
	return false;
}

static uint32_t listener_count_fatals(const struct rt_device *device)
{
	uint32_t fatals;

	pthread_mutex_lock(&device->rt->lock);
	fatals = device->cm->fatals;
	pthread_mutex_unlock(&device->rt->lock);
	return fatals;
}

/* Puts the listener on the network. On failure everything is undone, silently,
 * because the program has had no request. */
static int listener_begin(struct rpma_rt_listener *listener, const char *addr,
			  const char *port)
{
	struct rpma_peer *peer = listener->cfg.peer;
	struct rpma_rt *rt = listener->rt;
	struct ibv_context *ibv_ctx;
	uint32_t fatals = 0;
	int ret = RPMA_RT_E_CLOSED;

	if (!listener_has_closed_queue(listener))
		ret = rt_limits_check(&listener->cfg);
	if (ret == 0)
		ret = rt_limits_try(&listener->cfg);
	if (ret == 0)
		ret = rpma_peer_get_ibv_context(peer, &ibv_ctx);
	if (ret == 0)
		ret = rt_device_get(rt, ibv_ctx, &listener->device);
	if (ret == 0)
		ret = rt_cm_check(listener->device->cm);
	if (ret == 0)
		fatals = listener_count_fatals(listener->device);
	if (ret == 0)
		ret = rpma_ep_listen_ex(peer, addr, port, listener->cfg.backlog,
					listener->device->cm->channel,
					&listener->target, &listener->ep);
	if (ret) {
		rt_listener_poller_undo_all(listener);
		return ret;
	}
	rpma_ep_get_port(listener->ep, &listener->port);
	ret = listener_list(rt, listener, fatals);
	if (ret) {
		listener->is_silent = true;
		rt_listener_close(listener, RPMA_RT_REASON_STOPPED);
	}
	return ret;
}

int rpma_rt_listen(struct rpma_rt *rt, const char *addr, const char *port,
		   const struct rpma_rt_conn_cfg *cfg,
		   struct rpma_rt_listener **listener_ptr)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no listener is made";
	struct rpma_rt_listener *listener;
	char addr_number[RT_ADDR_SIZE];
	char port_number[RT_PORT_SIZE];
	int ret;

	ret = RT_REFUSE_NULL(rt, addr, port, cfg, listener_ptr);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret == 0)
		ret = rt_resolve_check_port(RT_LOG_HERE, port);
	if (ret)
		return ret;
	/* before the runtime is held, because a stop waits for no name
	 * server */
	if (!rt_resolve_is_numeric(addr, port)) {
		ret = rt_resolve_wait(RT_LOG_HERE, addr, port, addr_number,
				      port_number);
		if (ret)
			return ret;
		addr = addr_number;
		port = port_number;
	}
	ret = rt_context_ref(rt);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = listener_new(rt, cfg, &listener);
	if (ret)
		goto release_runtime;
	ret = listener_begin(listener, addr, port);
	if (ret == 0) {
		*listener_ptr = listener;
	} else {
		rt_listener_unref(listener);
	}
release_runtime:
	rt_context_unref(rt);
	return RT_REFUSED(ret, what);
}

int rpma_rt_listener_get_port(const struct rpma_rt_listener *listener,
			      uint16_t *port)
{
	int ret;

	ret = RT_REFUSE_NULL(listener, port);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(listener->rt);
	if (ret == 0)
		*port = listener->port;
	return ret;
}

/* Drains the connections of the listener: no more posts, outstanding work
 * requests complete. Each connection gets a message of its own, because
 * draining blocks. */
static void listener_drain_conns(const struct rpma_rt_listener *listener,
				 uint32_t timeout_ms)
{
	struct rpma_rt *rt = listener->rt;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->listener != listener->number)
			continue;
		rt_conn_set_drain_ms(conn, timeout_ms);
		rt_conn_tell_control(conn, RT_CTL_DRAIN);
	}
	pthread_mutex_unlock(&rt->lock);
}

/* Ends the listener for a drain, unless another thread has ended the listener:
 * then no further connection comes. */
static void listener_end_for_drain(struct rpma_rt_listener *listener)
{
	struct rpma_rt *rt = listener->rt;
	bool is_ours;

	pthread_mutex_lock(&rt->lock);
	is_ours = listener_unlist_locked(listener);
	listener->is_removed |= is_ours;
	pthread_mutex_unlock(&rt->lock);
	if (is_ours)
		rt_listener_close(listener, RPMA_RT_REASON_LOCAL);
}

int rpma_rt_listener_drain(struct rpma_rt_listener *listener,
			   uint32_t timeout_ms)
{
	RT_NOT_CANCELLED;
	struct rpma_rt *rt;
	int ret;

	ret = RT_REFUSE_NULL(listener);
	if (ret)
		return ret;
	rt = listener->rt;
	ret = RT_REFUSE_WAIT(rt);
	if (ret == 0 && timeout_ms > RT_DRAIN_MS_MAX)
		ret = rt_cfg_refuse("rpma_rt_listener_drain()", "timeout_ms",
				    timeout_ms, 0, RT_DRAIN_MS_MAX);
	if (ret)
		return ret;
	ret = rt_context_ref(rt);
	if (ret)
		return RT_REFUSED(ret, "the listener is not drained");
	listener_end_for_drain(listener);
	listener_drain_conns(listener, timeout_ms);
	rt_context_unref(rt);
	return 0;
}

int rpma_rt_listener_delete(struct rpma_rt_listener **listener_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_listener *listener;
	bool is_removed = false;
	bool is_ours = false;
	struct rpma_rt *rt;
	int ret;

	ret = RT_REFUSE_NULL(listener_ptr);
	if (ret || *listener_ptr == NULL)
		return ret;
	listener = *listener_ptr;
	rt = listener->rt;
	ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	if (rt_context_ref(rt) == 0) {
		pthread_mutex_lock(&rt->lock);
		is_ours = listener_unlist_locked(listener);
		is_removed = listener->is_removed;
		pthread_mutex_unlock(&rt->lock);
		if (is_ours)
			rt_listener_close(listener, RPMA_RT_REASON_LOCAL);
		rt_context_unref(rt);
	}
	if (!is_ours && !is_removed) /* the stop closes the listener */
		rt_context_wait_stopped(rt);
	*listener_ptr = NULL;
	rt_listener_unref(listener);
	return 0;
}
