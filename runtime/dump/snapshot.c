/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * snapshot.c -- a snapshot of a runtime's objects. The directory's lock
 * keeps listed objects alive, and its holders never wait. Any thread; no poller
 * waits. doc/protocols/directory.md.
 */

#define _GNU_SOURCE
#include "dump/snapshot.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/runtime.h"
#include "base/stats.h"
#include "future/future.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"

/* ThreadSanitizer of gcc 12 does not know pthread_mutex_clocklock(), but the
 * unlock; its calls are weak, NULL without the sanitizer */
#define TRY_LOCK (1u << 4) /* __tsan_mutex_try_lock */
extern __attribute__((weak, visibility("default"))) void
__tsan_mutex_pre_lock(void *at, unsigned flags);
extern __attribute__((weak, visibility("default"))) void
__tsan_mutex_post_lock(void *at, unsigned flags, int depth);

static void has_locked(pthread_mutex_t *mutex)
{
	if (__tsan_mutex_pre_lock == NULL || __tsan_mutex_post_lock == NULL)
		return;
	__tsan_mutex_pre_lock(mutex, TRY_LOCK);
	__tsan_mutex_post_lock(mutex, TRY_LOCK, 0);
}

#define PATIENCE_S 1 /* a thread that changes a list never takes long */

/* ---------------------------------------------------- pollers, queues --- */

static void take_cq(const struct rt_cq *cq, const struct rt_dump_poller *poller,
		    struct rt_dump_cq *out)
{
	*out = (struct rt_dump_cq){
		.poller = poller->index,
		.channel = poller->channels - 1,
		.size = cq->cqe,
		.room = cq->room,
		.unacked = rt_cq_unacked(cq),
		.failed = cq->failed || cq->channel->failed,
	};
}

/* Writes the poller's CQs from cqs on; returns where the next one goes. */
static struct rt_dump_cq *take_poller(struct rt_poller *poller, uint32_t now_ms,
				      struct rt_dump_poller *out,
				      struct rt_dump_cq *cqs)
{
	const struct rt_channel *channel;
	const struct rt_cq *cq;

	*out = (struct rt_dump_poller){
		.index = poller->index,
		.cpu = poller->cpu,
		.asleep = rt_bell_ways(&poller->bell) != RT_BELL_AWAKE,
		.stopping = rt_stat_is(&poller->stopping),
		.clock_age_ms =
			rt_ms_between(rt_poller_last_tick(poller), now_ms),
		.manual = !poller->threaded,
		/* acquire: pairs with the release in rt_callback_show() */
		.function = atomic_load_explicit(&poller->calls.shown,
						 memory_order_acquire),
		.function_ms = rt_ms_between(
			rt_stat_read32(&poller->calls.since_ms), now_ms),
	};
	if (out->function == &poller->futures)
		strcpy(out->function_of, "a future");
	if (out->manual)
		out->known = rt_owner_look(&poller->owned, out->owner_name,
					   &out->owner_tid);
	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		out->channels++;
		for (cq = channel->cqs; cq != NULL; cq = cq->next) {
			take_cq(cq, out, cqs);
			out->unacked += cqs->unacked;
			cqs++;
		}
	}
	rpma_rt_poller_get_stats(poller->rt, (uint32_t)poller->index,
				 &out->stats, sizeof(out->stats));
	return cqs;
}

static uint32_t count_cqs(const struct rt_poller *poller)
{
	const struct rt_channel *channel;
	const struct rt_cq *cq;
	uint32_t count = 0;

	for (channel = poller->channels; channel != NULL;
	     channel = channel->next) {
		for (cq = channel->cqs; cq != NULL; cq = cq->next)
			count++;
	}
	return count;
}

static void take_queue(struct rpma_rt_queue *queue, struct rt_dump *dump,
		       struct rt_dump_queue *out)
{
	rt_queue_snapshot(queue, dump->now_ms, &out->view);
	dump->has_refused |= out->view.delete_refused;
	rpma_rt_queue_get_stats(queue, &out->stats, sizeof(out->stats));
}

/* ---------------------------------------------------------- everything --- */

static void count_all(const struct rpma_rt *rt, struct rt_dump *dump)
{
	const struct rpma_rt_queue *queue;
	const struct rpma_rt_conn *conn;
	int i;

	dump->pollers_count = (int)rt->cfg.pollers;
	for (i = 0; i < dump->pollers_count; i++)
		dump->cqs_count += count_cqs(&rt->pollers[i]);
	for (queue = rt->queues; queue != NULL; queue = rt_queue_next(queue))
		dump->queues_count++;
	for (conn = rt->conns; conn != NULL; conn = conn->next)
		dump->conns_count++;
	for (conn = rt->ended; conn != NULL; conn = conn->next)
		dump->conns_count++;
	rt_dump_others_count(rt, dump);
	rt_dump_shards_count(rt, dump);
}

void rt_dump_snapshot_free(struct rt_dump *dump)
{
	free(dump->pollers);
	free(dump->cqs);
	free(dump->queues);
	free(dump->conns);
	free(dump->listeners);
	free(dump->srqs);
	free(dump->adopted);
	free(dump->pools);
	free(dump->shards);
	free(dump->holds);
	free(dump->wrongs);
}

/* One more of each: there may be none, and calloc(0) may be NULL. */
static int reserve(struct rt_dump *dump)
{
	dump->pollers =
		calloc((size_t)dump->pollers_count, sizeof(*dump->pollers));
	dump->cqs = calloc(dump->cqs_count + 1, sizeof(*dump->cqs));
	dump->queues = calloc(dump->queues_count + 1, sizeof(*dump->queues));
	dump->conns = calloc(dump->conns_count + 1, sizeof(*dump->conns));
	dump->listeners =
		calloc(dump->listeners_count + 1, sizeof(*dump->listeners));
	dump->srqs = calloc(dump->srqs_count + 1, sizeof(*dump->srqs));
	dump->adopted = calloc(dump->adopted_count + 1, sizeof(*dump->adopted));
	dump->pools = calloc(dump->pools_count + 1, sizeof(*dump->pools));
	dump->shards = calloc(dump->shards_count + 1, sizeof(*dump->shards));
	dump->holds = calloc(RT_DUMP_HOLDS, sizeof(*dump->holds));
	if (dump->pollers && dump->cqs && dump->queues && dump->conns &&
	    dump->listeners && dump->srqs && dump->adopted && dump->pools &&
	    dump->shards && dump->holds)
		return 0;
	rt_dump_snapshot_free(dump);
	return RPMA_E_NOMEM;
}

/* Those that are freed already, but for a list, are left out. */
static void take_ended(struct rpma_rt *rt, struct rt_dump *dump, uint32_t at)
{
	struct rpma_rt_conn *conn;

	for (conn = rt->ended; conn != NULL; conn = conn->next) {
		rt_dump_conn_take_ended(conn, dump->now_ms, &dump->conns[at]);
		if (dump->conns[at].held > 0)
			at++;
	}
	dump->conns_count = at;
}

static void take_flags(struct rpma_rt *rt, struct rt_dump *dump)
{
	dump->stopped = rt_context_is_stopped(rt);
	dump->requests_refused = rt_stat_read(&rt->requests_refused);
	/* relaxed: likewise */
	dump->cm_errno =
		atomic_load_explicit(&rt->cm_errno, memory_order_relaxed);
	dump->delete_refused = rt_stat_is(&rt->delete_refused);
	/* it has stopped: no block of futures is made any more */
	if (dump->delete_refused)
		dump->futures_held = rt_future_held(rt);
}

static int take_locked(struct rpma_rt *rt, struct rt_dump *dump)
{
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rt_dump_cq *cqs;
	uint32_t i;
	int ret;

	dump->now_ms = (uint32_t)(rt_now_ns() / 1000000);
	count_all(rt, dump);
	ret = reserve(dump);
	if (ret)
		return ret;
	take_flags(rt, dump);
	cqs = dump->cqs;
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		cqs = take_poller(&rt->pollers[i], dump->now_ms,
				  &dump->pollers[i], cqs);
	for (i = 0, queue = rt->queues; queue != NULL;
	     i++, queue = rt_queue_next(queue))
		take_queue(queue, dump, &dump->queues[i]);
	rt_dump_others_take(rt, dump);
	rt_dump_shards_take(rt, dump);
	for (i = 0, conn = rt->conns; conn != NULL; i++, conn = conn->next)
		rt_dump_conn_take(conn, dump, &dump->conns[i]);
	take_ended(rt, dump, i);
	return 0;
}

/* ---------------------------------------------------- without the lock --- */

/* The name of a thread of this process; "": it has ended. */
static void name_thread(uint32_t tid, char name[RT_THREAD_NAME])
{
	char path[64];
	ssize_t len;
	int fd;

	if (tid == 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, name, RT_THREAD_NAME - 1);
	close(fd);
	name[len > 0 ? len : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

/* Manual mode: what its owner would find to do, as far as it shows. */
static bool has_work(struct rt_poller *poller)
{
	struct pollfd fd = {.fd = poller->epfd, .events = POLLIN};

	return !rt_mpsc_is_empty_mt(&poller->inbox.shared) ||
	       poll(&fd, 1, 0) > 0;
}

static void take_rest(struct rpma_rt *rt, struct rt_dump *dump)
{
	struct rt_dump_queue *queue;
	uint32_t i;

	for (i = 0; i < dump->queues_count; i++) {
		queue = &dump->queues[i];
		name_thread(queue->view.take.tid, queue->take_name);
		name_thread(queue->view.inside_tid, queue->inside_name);
	}
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		dump->pollers[i].has_work = dump->pollers[i].manual &&
					    !dump->stopped &&
					    has_work(&rt->pollers[i]);
}

/* Waits for a second at most. */
static int lock_directory(struct rpma_rt *rt)
{
	struct timespec until;

	/* not the time of day, which may be set meanwhile */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_mutex_clocklock(&rt->directory, CLOCK_MONOTONIC, &until))
		return RPMA_RT_E_BUSY;
	has_locked(&rt->directory);
	return 0;
}

int rt_dump_snapshot_take(struct rpma_rt *rt, struct rt_dump *dump)
{
	int ret = lock_directory(rt);

	if (ret)
		return ret;
	ret = take_locked(rt, dump);
	pthread_mutex_unlock(&rt->directory);
	if (ret == 0)
		take_rest(rt, dump);
	return ret;
}
