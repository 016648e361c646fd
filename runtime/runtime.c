/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * runtime.c -- a runtime's start and stop, its lists, fork.
 * The only file that decides which threads run.
 */

#include "base/runtime.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "adopt.h"
#include "base/context.h"
#include "base/cpu.h"
#include "base/owner.h"
#include "base/self.h"
#include "base/wait.h"
#include "conn/listener.h"
#include "conn/resolve.h"
#include "queue/queue.h"
#include "srq/srq.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

/* In the child: what the parent made has no threads here. The one that forked
 * is nobody's, also if it did so inside a function that it called for us. */
static void forked(void)
{
	rt_context_forked();
	rt_self_forked();
	rt_owner_forked();
	rt_events_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* ------------------------------------------------------------- starting --- */

static int check_cfg(const struct rpma_rt_cfg *cfg)
{
	int ret = 0;
	int i;

	if (cfg->cpus_count != 0 && cfg->cpus_count != cfg->pollers)
		return RPMA_E_INVAL;
	for (i = 0; i < cfg->cpus_count && ret == 0; i++)
		ret = rt_cpu_check(cfg->cpus[i]);
	return ret;
}

static int cpu_of(const struct rpma_rt_cfg *cfg, int poller, int *cpu)
{
	*cpu = RPMA_RT_CPU_ANY;
	if (cfg->mode == RPMA_RT_MODE_MANUAL)
		return 0;
	if (cfg->cpus_count != 0) {
		*cpu = cfg->cpus[poller];
		return 0;
	}
	return rt_cpu_nth_allowed(poller, cpu);
}

static void fini_pollers(struct rpma_rt *rt, int count)
{
	while (count-- > 0)
		rt_poller_fini(&rt->pollers[count]);
	free(rt->pollers);
}

static int init_pollers(struct rpma_rt *rt)
{
	int ret = 0;
	int cpu;
	int i;

	rt->pollers = aligned_alloc(
		RT_CACHE_LINE, (size_t)rt->cfg.pollers * sizeof(*rt->pollers));
	if (rt->pollers == NULL)
		return RPMA_E_NOMEM;
	for (i = 0; i < rt->cfg.pollers; i++) {
		ret = cpu_of(&rt->cfg, i, &cpu);
		if (ret == 0)
			ret = rt_poller_init(&rt->pollers[i], rt, i, cpu);
		if (ret)
			break;
	}
	if (ret)
		fini_pollers(rt, i);
	return ret;
}

static int start_pollers(struct rpma_rt *rt)
{
	int ret = 0;
	int i;

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

static int start_cm(struct rpma_rt *rt)
{
	int flags;
	int ret;

	ret = rpma_cm_channel_new(&rt->cm);
	if (ret)
		return ret;
	rpma_cm_channel_get_fd(rt->cm, &rt->cm_source.fd);
	rt->cm_source.ready = rt_cm_ready;
	flags = fcntl(rt->cm_source.fd, F_GETFL);
	ret = RPMA_E_PROVIDER;
	if (flags >= 0 && !fcntl(rt->cm_source.fd, F_SETFL, flags | O_NONBLOCK))
		ret = rt_events_add(&rt->cm_source);
	if (ret)
		rpma_cm_channel_delete(&rt->cm);
	return ret;
}

static void stop_cm(struct rpma_rt *rt)
{
	free(rt->spare);
	rpma_cm_channel_delete(&rt->cm);
}

static int start(struct rpma_rt *rt)
{
	int ret;

	ret = rt_events_ref();
	if (ret)
		return ret;
	ret = start_cm(rt);
	if (ret)
		goto err_put_events;
	ret = init_pollers(rt);
	if (ret)
		goto err_stop_cm;
	ret = rt_thread_start(&rt->control, rt);
	if (ret)
		goto err_fini_pollers;
	ret = start_pollers(rt);
	if (ret)
		goto err_stop_control;
	return 0;
err_stop_control:
	rt_thread_stop(&rt->control);
err_fini_pollers:
	fini_pollers(rt, rt->cfg.pollers);
err_stop_cm:
	rt_events_remove(&rt->cm_source);
	stop_cm(rt);
err_put_events:
	rt_events_unref();
	return ret;
}

static void free_runtime(struct rpma_rt *rt)
{
	pthread_cond_destroy(&rt->changed);
	pthread_cond_destroy(&rt->quiet);
	pthread_mutex_destroy(&rt->directory);
	pthread_mutex_destroy(&rt->cm_lock);
	pthread_mutex_destroy(&rt->ask_lock);
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

int rpma_rt_new(const struct rpma_rt_cfg *cfg, struct rpma_rt **rt_ptr)
{
	struct rpma_rt *rt;
	int ret;

	/* what is made where calls may not wait could not be used there */
	ret = rt_ptr == NULL ? RPMA_E_INVAL : rt_context_check_thread();
	if (ret)
		return ret;
	rt = calloc(1, sizeof(*rt));
	if (rt == NULL)
		return RPMA_E_NOMEM;
	if (cfg != NULL)
		rt->cfg = *cfg;
	else
		rt_cfg_init(&rt->cfg);
	rt->fork_generation = rt_context_generation();
	rt->drop_item = rt_conn_drop_item;
	pthread_mutex_init(&rt->lock, NULL);
	pthread_mutex_init(&rt->cm_lock, NULL);
	pthread_mutex_init(&rt->directory, NULL);
	pthread_mutex_init(&rt->ask_lock, NULL);
	rt_wait_cond_init(&rt->quiet);
	rt_wait_cond_init(&rt->changed);
	ret = check_cfg(&rt->cfg);
	if (ret == 0)
		ret = start(rt);
	if (ret) {
		free_runtime(rt);
		return ret;
	}
	*rt_ptr = rt;
	return 0;
}

/* ------------------------------------------------------------- stopping --- */

/* Control thread: no further requests, and everything that lives dies. */
static int close_all(void *arg)
{
	struct rpma_rt *rt = arg;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;

	pthread_mutex_lock(&rt->lock);
	for (listener = rt->listeners; listener != NULL;
	     listener = listener->next)
		rt_listener_close_control(listener);
	for (conn = rt->conns; conn != NULL; conn = conn->next)
		rt_conn_die_control(conn, RPMA_RT_REASON_STOPPED, 0);
	pthread_mutex_unlock(&rt->lock);
	return 0;
}

static void wait_until_quiet(struct rpma_rt *rt)
{
	bool is_manual = rt->cfg.mode == RPMA_RT_MODE_MANUAL;
	struct rt_wait wait = {
		.pollers = is_manual ? &rt->pollers[0].owned : NULL,
		.is_for_all = true,
	};

	pthread_mutex_lock(&rt->lock);
	while (rt->in_use > 0)
		rt_wait_step(&wait, &rt->quiet, &rt->lock);
	pthread_mutex_unlock(&rt->lock);
}

static void finish_queues(struct rpma_rt *rt)
{
	pthread_mutex_lock(&rt->lock);
	/* release: pairs with the acquire in rt_context_is_stopped() */
	atomic_store_explicit(&rt->stopped, true, memory_order_release);
	rt_queue_finish_all(rt->queues);
	pthread_cond_broadcast(&rt->quiet);
	pthread_mutex_unlock(&rt->lock);
}

static void stop_threads(struct rpma_rt *rt)
{
	int i;

	rt_adopt_detach_all(rt);
	/* what it still knows goes to the control thread */
	rt_resolve_stop(rt);
	/* requests that were read before their listener closed are refused by
	 * the control thread, and need the CM channel for it */
	rt_events_remove(&rt->cm_source);
	rt_call_sync(rt, &rt->control.inbox, rt_cm_let_go_control, rt);
	stop_cm(rt);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_cq_pool_unwatch(&rt->pollers[i]);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_poller_stop(&rt->pollers[i]);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_poller_close(&rt->pollers[i]);
	rt_thread_stop(&rt->control);
	for (i = 0; i < rt->cfg.pollers; i++)
		rt_cq_pool_fini(&rt->pollers[i]);
	rt_events_unref();
}

/* The first to stop does it, others wait until it is done. */
static bool begin_to_stop(struct rpma_rt *rt)
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
	int ret;

	if (rt == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check_wait(rt);
	if (ret)
		return ret;
	if (!begin_to_stop(rt))
		return 0;
	rt_call_sync(rt, &rt->control.inbox, close_all, rt);
	wait_until_quiet(rt);
	rt_srq_finish_all(rt);
	stop_threads(rt);
	finish_queues(rt);
	return 0;
}

int rpma_rt_delete(struct rpma_rt **rt_ptr)
{
	struct rpma_rt *rt;
	int ret;

	if (rt_ptr == NULL)
		return RPMA_E_INVAL;
	rt = *rt_ptr;
	if (rt == NULL)
		return 0;
	ret = rpma_rt_stop(rt);
	if (ret)
		return ret;
	/* acquire: pairs with the release of who frees a handle */
	if (atomic_load_explicit(&rt->handles, memory_order_acquire) > 0)
		return RPMA_E_AGAIN;
	fini_pollers(rt, rt->cfg.pollers);
	free_runtime(rt);
	*rt_ptr = NULL;
	return 0;
}
