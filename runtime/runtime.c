/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * runtime.c -- a runtime's start and stop, its lists, fork. No other file
 * decides which threads run.
 */

#include "base/cancel.h"
#include "base/runtime.h"

#include <stdlib.h>

#include "adopt.h"
#include "base/context.h"
#include "base/cfg.h"
#include "base/log.h"
#include "base/order.h"
#include "base/owner.h"
#include "base/self.h"
#include "cm/cm.h"
#include "conn/conn.h"
#include "base/wait.h"
#include "conn/listener.h"
#include "conn/resolve.h"
#include "events/events.h"
#include "future/future.h"
#include "queue/queue.h"
#include "srq/srq.h"
#include "pool/pool.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

#define PAGE 4096

/* Runs in the child of a fork: the threads of the parent's objects do not exist
 * here. The thread that forked is an ordinary thread, even if the thread forked
 * inside a callback. */
static void runtime_forked(void)
{
	rt_context_forked();
	rt_self_forked();
	rt_owner_forked();
	rt_events_forked();
	rt_async_forked();
	rt_lookup_forked();
}

__attribute__((constructor)) static void runtime_watch_forks(void)
{
	pthread_atfork(NULL, NULL, runtime_forked);
}

/* ------------------------------------------------------------- starting --- */

static int runtime_cpu_of(const struct rpma_rt_cfg *cfg, uint32_t poller)
{
	return cfg->cpus == NULL || cfg->mode == RPMA_RT_MODE_MANUAL
		       ? RPMA_RT_CPU_ANY
		       : cfg->cpus[poller];
}

static void runtime_fini_pollers(struct rpma_rt *rt, uint32_t count)
{
	while (count-- > 0) {
		rt_internal_delete(&rt->pollers[count]);
		rt_poller_fini(&rt->pollers[count]);
	}
	free(rt->pollers);
}

static int runtime_init_poller(struct rt_poller *poller, struct rpma_rt *rt,
			       uint32_t index, int cpu)
{
	int ret = rt_poller_init(poller, rt, (int)index, cpu);

	if (ret)
		return ret;
	ret = rt_internal_new(poller);
	if (ret)
		rt_poller_fini(poller);
	return ret;
}

static int runtime_init_pollers(struct rpma_rt *rt)
{
	size_t size = (size_t)rt->cfg.pollers * sizeof(*rt->pollers);
	uint32_t i;
	int ret = 0;

	/* whole pages: the place of lanes then does not depend on the size of
	 * the pollers. A lane by chance at the same place of a page as words
	 * that a poller reads would cost 10 % of a round */
	rt->pollers = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
	if (rt->pollers == NULL)
		return RPMA_E_NOMEM;
	for (i = 0; i < rt->cfg.pollers; i++) {
		ret = runtime_init_poller(&rt->pollers[i], rt, i,
					  runtime_cpu_of(&rt->cfg, i));
		if (ret)
			break;
	}
	/* the array belongs to the program, and is valid for this call only */
	rt->cfg.cpus = NULL;
	if (ret)
		runtime_fini_pollers(rt, i);
	else if (rt->cfg.mode == RPMA_RT_MODE_MANUAL)
		rt->owned = &rt->pollers[0].owned;
	else if (rt->cfg.mode == RPMA_RT_MODE_ADAPTIVE)
		rt->lending = &rt->pollers[0].owned;
	return ret;
}

static int runtime_start_pollers(struct rpma_rt *rt)
{
	uint32_t i;
	int ret = 0;

	if (rt->cfg.mode == RPMA_RT_MODE_MANUAL)
		return 0;
	for (i = 0; i < rt->cfg.pollers; i++) {
		ret = rt_poller_start(&rt->pollers[i]);
		if (ret)
			break;
	}
	while (ret && i-- > 0)
		rt_poller_stop(&rt->pollers[i]);
	return ret;
}

static int runtime_start(struct rpma_rt *rt)
{
	int ret;

	ret = rt_events_ref(rt_async_lost);
	if (ret)
		return ret;
	ret = runtime_init_pollers(rt);
	if (ret)
		goto err_put_events;
	ret = runtime_start_pollers(rt);
	if (ret)
		goto err_fini_pollers;
	return 0;
err_fini_pollers:
	runtime_fini_pollers(rt, rt->cfg.pollers);
err_put_events:
	rt_events_unref();
	return ret;
}

static void runtime_free(struct rpma_rt *rt)
{
	pthread_cond_destroy(&rt->changed);
	pthread_cond_destroy(&rt->quiet);
	pthread_mutex_destroy(&rt->directory);
	pthread_mutex_destroy(&rt->ask_lock);
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

int rpma_rt_new(const struct rpma_rt_cfg *cfg, struct rpma_rt **rt_ptr)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no runtime is made";
	struct rpma_rt_cfg checked;
	struct rpma_rt *rt;
	int ret;

	/* refused where calls may not wait: the runtime could not be used
	 * there */
	ret = RT_REFUSE_NULL(rt_ptr);
	if (ret == 0)
		ret = RT_REFUSE_THREAD();
	if (ret == 0)
		ret = rt_cfg_read_runtime(cfg, &checked);
	if (ret)
		return ret;
	rt = calloc(1, sizeof(*rt));
	if (rt == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, what);
	/* before the runtime has threads, which make the registration slow */
	rt_fence_start();
	rt->cfg = checked;
	rt->fork_generation = rt_context_generation();
	rt->drop_item = rt_conn_drop_item;
	rt->device_ops = &rt_lost_ops;
	pthread_mutex_init(&rt->lock, NULL);
	pthread_mutex_init(&rt->directory, NULL);
	pthread_mutex_init(&rt->ask_lock, NULL);
	CDS_INIT_LIST_HEAD(&rt->listed_listeners);
	CDS_INIT_LIST_HEAD(&rt->listed_srqs);
	CDS_INIT_LIST_HEAD(&rt->listed_adopted);
	CDS_INIT_LIST_HEAD(&rt->listed_pools);
	CDS_INIT_LIST_HEAD(&rt->listed_shards);
	rt_wait_cond_init(&rt->quiet);
	rt_wait_cond_init(&rt->changed);
	ret = runtime_start(rt);
	if (ret) {
		runtime_free(rt);
		return RT_REFUSED(ret, what);
	}
	*rt_ptr = rt;
	return 0;
}

/* ------------------------------------------------------------- stopping --- */

/* Closes the connections of a device, on the device's control thread: each
 * connection dies in a message of its own, because dying blocks. */
static int runtime_close_conns(void *arg)
{
	struct rt_device *device = arg;
	struct rpma_rt *rt = device->rt;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	for (conn = rt->conns; conn != NULL; conn = conn->next) {
		if (conn->device == device)
			rt_conn_tell_control(conn, RT_CTL_STOP);
	}
	pthread_mutex_unlock(&rt->lock);
	return 0;
}

/* Takes the first listener off the list, with a reference; NULL: the list is
 * empty. */
static struct rpma_rt_listener *runtime_take_listener(struct rpma_rt *rt)
{
	struct rpma_rt_listener *listener;

	pthread_mutex_lock(&rt->lock);
	listener = rt->listeners;
	if (listener != NULL) {
		rt->listeners = listener->next;
		/* relaxed: the listener is listed, so the owner holds a
		 * count */
		atomic_fetch_add_explicit(&listener->target.count, 1,
					  memory_order_relaxed);
	}
	pthread_mutex_unlock(&rt->lock);
	return listener;
}

/* Closes all connections and listeners. The runtime is stopping, so no new
 * connections and listeners are made. */
static void runtime_close_all(struct rpma_rt *rt)
{
	struct rpma_rt_listener *listener;
	struct rt_device *device;

	/* acquire: pairs with the release in device_list(), cm/cm.c */
	device = atomic_load_explicit(&rt->devices, memory_order_acquire);
	for (; device != NULL; device = device->next)
		rt_call_sync(rt, &device->control.inbox, runtime_close_conns,
			     device);
	while ((listener = runtime_take_listener(rt)) != NULL) {
		rt_listener_close(listener, RPMA_RT_REASON_STOPPED);
		rt_listener_unref(listener);
	}
}

static void runtime_wait_until_quiet(struct rpma_rt *rt)
{
	struct rt_wait wait = {.pollers = rt->owned, .which = RT_WAIT_ALL};

	pthread_mutex_lock(&rt->lock);
	while (rt->in_use > 0)
		rt_wait_step(&wait, &rt->quiet, &rt->lock);
	pthread_mutex_unlock(&rt->lock);
}

static void runtime_finish_queues(struct rpma_rt *rt)
{
	pthread_mutex_lock(&rt->lock);
	/* release: pairs with the acquire in rt_context_is_stopped() */
	atomic_store_explicit(&rt->stopped, true, memory_order_release);
	rt_queue_finish_all(rt->queues);
	/* before another caller of stop, which may delete, goes on */
	rt_future_finish_all(rt);
	pthread_cond_broadcast(&rt->quiet);
	pthread_mutex_unlock(&rt->lock);
}

/* Runs the last messages of the pollers. The device's threads have ended, and
 * some of their messages name a CQ: such messages have to leave the inbox
 * before the CQ is freed. A posting thread may be in the middle of a push in
 * front of such a message. */
static void runtime_run_last(struct rpma_rt *rt)
{
	struct rt_poller *poller;
	uint32_t i;

	for (i = 0; i < rt->cfg.pollers; i++) {
		poller = &rt->pollers[i];
		while (!rt_inbox_is_empty(&poller->inbox)) {
			if (rt_inbox_run_owner(&poller->inbox, poller) == 0)
				rt_wait_nap();
		}
	}
}

static void runtime_stop_threads(struct rpma_rt *rt)
{
	uint32_t i;

	rt_adopt_detach_all(rt);
	rt_device_end_reading(rt);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_cq_pool_unwatch(&rt->pollers[i]);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_poller_stop(&rt->pollers[i]);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_poller_close(&rt->pollers[i]);
	rt_device_delete_all(rt);
	runtime_run_last(rt);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_cq_pool_fini(&rt->pollers[i]);
	rt_events_unref();
}

/* Returns true to the first caller of stop. The other callers wait until the
 * stop is over. */
static bool runtime_begin_to_stop(struct rpma_rt *rt)
{
	bool first;

	pthread_mutex_lock(&rt->lock);
	first = !rt->stopping;
	rt->stopping = true;
	pthread_mutex_unlock(&rt->lock);
	if (!first)
		rt_context_wait_stopped(rt);
	return first;
}

int rpma_rt_stop(struct rpma_rt *rt)
{
	RT_NOT_CANCELLED;
	int ret;

	ret = RT_REFUSE_NULL(rt);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret)
		return ret;
	if (!runtime_begin_to_stop(rt))
		return 0;
	runtime_close_all(rt);
	runtime_wait_until_quiet(rt);
	rt_srq_finish_all(rt);
	rt_pool_end_all(rt);
	runtime_stop_threads(rt);
	runtime_finish_queues(rt);
	return 0;
}

/* Runs the messages of threads that were inside a post while the runtime
 * stopped: each of the messages holds a handle. */
static void runtime_run_left(struct rpma_rt *rt)
{
	uint32_t i;

	for (i = 0; i < rt->cfg.pollers; i++)
		rt_inbox_run_owner(&rt->pollers[i].inbox, &rt->pollers[i]);
}

int rpma_rt_delete(struct rpma_rt **rt_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt *rt;
	uint32_t handles;
	uint32_t futures;
	int ret;

	ret = RT_REFUSE_NULL(rt_ptr);
	if (ret || *rt_ptr == NULL)
		return ret;
	rt = *rt_ptr;
	ret = rpma_rt_stop(rt);
	if (ret)
		return ret;
	runtime_run_left(rt);
	/* acquire: pairs with the release by which a thread that frees a handle
	 * counts `handles` down */
	handles = atomic_load_explicit(&rt->handles, memory_order_acquire);
	futures = rt_future_held(rt);
	if (handles > 0 || futures > 0)
		/* relaxed: statistic, orders nothing */
		atomic_store_explicit(&rt->delete_refused, true,
				      memory_order_relaxed);
	if (handles > 0)
		return RT_REFUSE(RPMA_RT_E_BUSY,
				 "the runtime is stopped and not deleted: %u "
				 "handles of it are held (connections, "
				 "listeners, queues, SRQs, pools, adopted); "
				 "rpma_rt_dump() lists them",
				 handles);
	if (futures > 0)
		return RT_REFUSE(RPMA_RT_E_BUSY,
				 "the runtime is stopped and not deleted: %u "
				 "futures of it are held, drop them",
				 futures);
	rt_conn_free_left(rt);
	rt_srq_free_left(rt);
	rt_future_free_all(rt);
	rt_queue_free_idle(rt);
	runtime_fini_pollers(rt, rt->cfg.pollers);
	rt_pool_free_ended(rt);
	runtime_free(rt);
	*rt_ptr = NULL;
	return 0;
}
