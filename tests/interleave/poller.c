/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poller.c -- a poller of the runtime under the deterministic scheduler: the
 * real code for poll, arm, wake, acknowledgement and release, run as in manual
 * mode, with the back-stop off. A lost wake-up is a deadlock, and so is
 * destroying a CQ with unacknowledged events.
 *
 * The CQs belong to the pool; every schedule begins with messages for the CQs
 * on the way to the poller and ends with the pool emptied. The completions have
 * no route, which the poller counts.
 */

#include "search.h"

#include <poll.h>
#include <stdio.h>

#include "base/runtime.h"
#include "cm/cm.h"
#include "poller/poller.h"
#include "events/events.h"
#include "poller/cq_pool.h"

#define ENTRIES 16

static struct rpma_rt *rt;
static struct rt_poller *poller;
static struct rt_device *device;
static uint64_t completions; /* of the schedules before */

/* of a schedule: the CQs and their users */
static struct rt_cq *cqs[MAX_CQS];
static struct rt_cq_user users[MAX_CQS];

/* messages to the threads of the device, for which the other thread stands:
 * owned by the scheduler. Two messages destroy a CQ */
#define MESSAGES(cqs) (2 * (cqs))
static struct rt_msg *to_device[MESSAGES(MAX_CQS)];
static int to_device_count;
static int handled; /* of them */

void __real_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
void __wrap_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg);
void __wrap_rt_inbox_push_mt(struct rt_inbox *inbox, struct rt_msg *msg)
{
	if (device != NULL && (inbox == &device->control.inbox ||
			       inbox == &device->destroyer.inbox))
		to_device[to_device_count++] = msg;
	else
		__real_rt_inbox_push_mt(inbox, msg);
}

/*
 * No asynchronous events: the reader thread does not belong to the scheduler.
 */
int __wrap_rt_async_watch(struct rt_async_device *watched);
int __wrap_rt_async_watch(struct rt_async_device *watched)
{
	(void)watched;
	return 0;
}

void __wrap_rt_async_unwatch(struct rt_async_device *watched);
void __wrap_rt_async_unwatch(struct rt_async_device *watched)
{
	(void)watched;
}

static uint64_t count_completions(void)
{
	/* relaxed: one thread runs at a time */
	return atomic_load_explicit(&poller->stats.completions,
				    memory_order_relaxed);
}

static void set_stopping(bool stopping)
{
	/* relaxed: as above */
	atomic_store_explicit(&poller->stopping, stopping,
			      memory_order_relaxed);
}

static void begin_with_pool(struct scene *scene)
{
	int done;
	int i;

	/* as the first time: no bell of an earlier run, rounds from CQ 0 */
	set_stopping(false);
	MUST(scene, rt_device_get(rt, scene->ctx, &device));
	done = rpma_rt_poller_run(rt, 0, ENTRIES);
	MUST(scene, done < 0);
	poller->cqs_first = 0;
	poller->cqs_rested = 0;
	completions = count_completions();
	to_device_count = 0;
	handled = 0;
	for (i = 0; i < scene->cqs; i++) {
		users[i] = (struct rt_cq_user){.room = ENTRIES};
		pthread_mutex_lock(&rt->lock);
		MUST(scene, rt_cq_pool_reserve(poller, scene->ctx, &users[i],
					       &cqs[i]));
		pthread_mutex_unlock(&rt->lock);
		scene->cq[i] = cqs[i]->ibv_cq;
	}
	rt_cq_pool_unwatch(poller);
}

static int is_readable(void *arg)
{
	struct pollfd fd = {.fd = *(const int *)arg, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* Runs a turn of the loop in rpma_rt_poller_run(3); false: nothing to do. */
static bool turn(struct scene *scene)
{
	int done;

	done = rpma_rt_poller_run(rt, 0, RT_BATCH);
	MUST(scene, done < 0);
	scene->taken = (int)(count_completions() - completions);
	return done > 0;
}

static void sleep_on_fd(struct scene *scene)
{
	int ret = rpma_rt_poller_arm(rt, 0);
	int fd;

	scene->taken = (int)(count_completions() - completions);
	if (ret == 1) /* there is work */
		return;
	MUST(scene, ret);
	MUST(scene, rpma_rt_poller_get_fd(rt, 0, &fd));
	rpma_loopback_sched_wait(is_readable, &fd);
}

static void let_go(struct scene *scene)
{
	scene_destroy_qps(scene);
	MUST(scene, rt_cq_pool_fini(poller));
}

/* Only completions wake the thread. */
static void wait_for_all(struct scene *scene)
{
	do {
		if (!turn(scene) && scene->taken < scene->compls)
			sleep_on_fd(scene);
	} while (scene->taken < scene->compls);
	let_go(scene);
}

/* The thread stops in any state; then no connection is open, and completions
 * not seen by the last round are dropped. */
static void wait_for_stop(struct scene *scene)
{
	for (;;) {
		if (turn(scene))
			continue;
		/* acquire: pairs with the release in rt_poller_stop() */
		if (atomic_load_explicit(&poller->stopping,
					 memory_order_acquire))
			break;
		sleep_on_fd(scene);
	}
	let_go(scene);
	scene->taken = scene->compls;
}

static void stop(struct scene *scene)
{
	(void)scene;
	rt_poller_stop(poller);
}

/* -------------------------------------------------- leaving CQs --- */

/* Removes the last user; the CQ has failed, so that no spare CQ is kept. */
static void leave(struct scene *scene, int i)
{
	scene_destroy_qp(scene, i);
	pthread_mutex_lock(&rt->lock);
	cqs[i]->failed = true;
	rt_cq_pool_unreserve(cqs[i], &users[i]);
	pthread_mutex_unlock(&rt->lock);
}

static bool completes(const struct scene *scene, int cq)
{
	int i;

	for (i = 0; i < scene->compls; i++) {
		if (scene->where[i] == cq)
			return true;
	}
	return false;
}

static int is_all_destroyed(void *arg)
{
	const struct scene *scene = arg;

	return handled == MESSAGES(scene->cqs);
}

/* CQs without completions leave while other CQs have completions, which leave
 * at the end. The poller goes on while the CQs are destroyed, and reads the
 * channel once more. */
static void wait_and_leave(struct scene *scene)
{
	int done;
	int i;

	for (i = 0; i < scene->cqs; i++) {
		if (!completes(scene, i))
			leave(scene, i);
	}
	do {
		if (!turn(scene) && scene->taken < scene->compls)
			sleep_on_fd(scene);
	} while (scene->taken < scene->compls);
	for (i = 0; i < scene->cqs; i++) {
		if (completes(scene, i))
			leave(scene, i);
	}
	while (poller->cqs_count > 0 || poller->leaving != NULL)
		turn(scene);
	MUST(scene, rpma_rt_poller_arm(rt, 0));
	done = rpma_rt_poller_run(rt, 0, RT_BATCH);
	MUST(scene, done < 0);
	rpma_loopback_sched_wait(is_all_destroyed, scene);
	MUST(scene, rt_cq_pool_fini(poller));
}

static int is_any_sent(void *arg)
{
	(void)arg;
	return to_device_count > handled;
}

/*
 * Destroys each CQ after the poller has released the CQ, like the threads of
 * the device.
 */
static void destroy_gone(struct scene *scene)
{
	struct rt_msg *msg;

	while (handled < MESSAGES(scene->cqs)) {
		rpma_loopback_sched_wait(is_any_sent, NULL);
		msg = to_device[handled];
		msg->fn(msg, rt);
		handled++;
	}
}

static int open_runtime(struct ibv_context **ctx_ptr)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	int ret;

	if (list == NULL || list[0] == NULL)
		return -1;
	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	*ctx_ptr = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (*ctx_ptr == NULL)
		return -1;
	cfg.pollers = 1;
	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.cq_size = ENTRIES;
	cfg.backstop_ms = 0;
	ret = rpma_rt_new(&cfg, &rt);
	if (ret == 0)
		poller = &rt->pollers[0];
	return ret;
}

int main(int argc, char **argv)
{
	static const struct play plays[] = {
		{"patient", begin_with_pool, wait_for_all, NULL, RIGHT, 0},
		{"late", begin_with_pool, wait_for_all, NULL, LATE, 0},
		{"stopped", begin_with_pool, wait_for_stop, stop, RIGHT, 2},
		{"leaving", begin_with_pool, wait_and_leave, destroy_gone,
		 RIGHT, 3},
		{"leaving_late", begin_with_pool, wait_and_leave, destroy_gone,
		 LATE, 3},
		{NULL, NULL, NULL, NULL, RIGHT, 0},
	};
	struct ibv_context *ctx;

	if (open_runtime(&ctx)) {
		fprintf(stderr, "no device, or no runtime on it\n");
		return 1;
	}
	return search_main(argc, argv, ctx, plays);
}
