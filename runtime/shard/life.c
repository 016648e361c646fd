/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * life.c -- a set of shards from new to delete, and the calls on a set in
 * between. Any thread.
 */

#include "shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/cfg.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "poller/poller.h"
#include "queue/queue.h"

/* ---------------------------------------------------------- making --- */

/* Deletes the existing queues; queues that cannot be deleted stay. */
static int shard_delete_queues(struct rpma_rt_shards *set)
{
	uint32_t i;
	int ret;

	for (i = 0; i < set->count; i++) {
		ret = rpma_rt_queue_delete(&set->shards[i].queue);
		if (ret)
			return ret;
		set->queues[i] = NULL;
		set->shards[i].is_queue_over = true;
	}
	return 0;
}

static void shard_free_set(struct rpma_rt_shards *set)
{
	uint32_t i;

	for (i = 0; i < set->count * set->count; i++)
		free(set->lanes[i]);
	pthread_mutex_destroy(&set->lock);
	free(set->lanes);
	free(set->queues);
	free(set->shards);
	free(set);
}

static struct rpma_rt_shards *shard_alloc_set(uint32_t count)
{
	struct rpma_rt_shards *set = aligned_alloc(RT_APART, sizeof(*set));

	if (set == NULL)
		return NULL;
	memset(set, 0, sizeof(*set));
	pthread_mutex_init(&set->lock, NULL);
	set->count = count;
	set->shards = aligned_alloc(RT_APART, count * sizeof(*set->shards));
	set->queues = calloc(count, sizeof(*set->queues));
	set->lanes = calloc((size_t)count * count, sizeof(*set->lanes));
	if (set->shards == NULL || set->queues == NULL || set->lanes == NULL) {
		if (set->lanes == NULL)
			set->count = 0;
		shard_free_set(set);
		return NULL;
	}
	memset(set->shards, 0, count * sizeof(*set->shards));
	return set;
}

static int shard_make_queue(struct rpma_rt_shard *shard,
			    const struct rpma_rt_shards_cfg *cfg)
{
	struct rpma_rt_queue_cfg queue_cfg = RPMA_RT_QUEUE_CFG_INIT;
	char name[RPMA_RT_NAME_MAX + 1];

	if (cfg->queue != NULL)
		return rpma_rt_queue_new(shard->rt, cfg->queue, &shard->queue);
	snprintf(name, sizeof(name), "shard %u", shard->index);
	queue_cfg.name = name;
	return rpma_rt_queue_new(shard->rt, &queue_cfg, &shard->queue);
}

/* Prepares words for sends of the shard. */
static void shard_init_sender(struct rpma_rt_shard *shard)
{
	uint64_t from = shard->index;
	uint32_t kind;
	uint32_t i;

	for (kind = 0; kind < RPMA_RT_SHARD_WRITABLE; kind++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		shard->places[kind] = from << 32 | (uint64_t)kind << 48;
#else
		shard->places[kind] = from << 16 | (uint64_t)kind << 8;
#endif
	}
	for (i = 0; i < shard->count; i++)
		shard->out[i].bit = rt_shard_bit(i);
}

static int shard_watch(struct rpma_rt_shard *shard, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(shard->epfd, EPOLL_CTL_ADD, fd, &event))
		return rt_refuse_system("epoll_ctl");
	return 0;
}

static int shard_watch_all(struct rpma_rt_shard *shard)
{
	int fd;
	int ret = shard_watch(shard, shard->eventfd);

	if (ret == 0)
		ret = rpma_rt_queue_get_fd(shard->queue, &fd);
	if (ret == 0)
		ret = shard_watch(shard, fd);
	if (ret == 0)
		ret = rpma_rt_poller_get_fd(shard->rt, shard->index, &fd);
	if (ret == 0)
		ret = shard_watch(shard, fd);
	return ret;
}

static void shard_close_fds(struct rpma_rt_shard *shard)
{
	if (shard->epfd >= 0)
		close(shard->epfd);
	if (shard->eventfd >= 0)
		close(shard->eventfd);
	shard->epfd = -1;
	shard->eventfd = -1;
}

static int shard_open_fds(struct rpma_rt_shard *shard)
{
	int ret;

	shard->eventfd = -1;
	shard->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (shard->epfd < 0)
		return rt_refuse_system("epoll_create1");
	shard->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (shard->eventfd < 0)
		ret = rt_refuse_system("eventfd");
	else
		ret = shard_watch_all(shard);
	if (ret)
		shard_close_fds(shard);
	return ret;
}

/* Makes a shard, and logs each failure, as the calls that make the queue do. */
static int shard_make(struct rpma_rt_shards *set, uint32_t index,
		      const struct rpma_rt_shards_cfg *cfg)
{
	struct rpma_rt_shard *shard = &set->shards[index];
	int ret;

	shard->set = set;
	shard->rt = set->rt;
	shard->index = index;
	shard->count = set->count;
	shard->poller = &set->rt->pollers[index];
	shard->arg = cfg->args == NULL ? NULL : cfg->args[index];
	shard_init_sender(shard);
	ret = shard_make_queue(shard, cfg);
	if (ret)
		return ret;
	rt_queue_set_shard(shard->queue, index);
	set->queues[index] = shard->queue;
	return RT_REFUSED(shard_open_fds(shard), "no shards are made");
}

static void shard_close_all_fds(struct rpma_rt_shards *set, uint32_t count)
{
	while (count-- > 0)
		shard_close_fds(&set->shards[count]);
}

void rt_shard_show_pollers(struct rpma_rt *rt)
{
	struct cds_list_head *link;
	uint64_t sharded = 0;

	pthread_mutex_lock(&rt->directory);
	/* relaxed, both: see rt_context_sharded(); of two threads that take
	 * bits, the later one inside the lock sees both */
	cds_list_for_each(link, &rt->listed_shards) sharded |=
		atomic_load_explicit(
			&RT_FROM(struct rpma_rt_shards, listed, link)->running,
			memory_order_relaxed);
	atomic_store_explicit(&rt->sharded, sharded, memory_order_relaxed);
	pthread_mutex_unlock(&rt->directory);
}

/* Lists the set. From here on waits for other queues leave the pollers to the
 * shards. */
static void shard_list_set(struct rpma_rt_shards *set)
{
	rt_context_list(set->rt, &set->rt->listed_shards, &set->listed);
	rt_shard_show_pollers(set->rt);
}

static void shard_unlist_set(struct rpma_rt_shards *set)
{
	rt_context_unlist(set->rt, &set->listed);
	rt_shard_show_pollers(set->rt);
}

static int shard_make_set(struct rpma_rt *rt,
			  const struct rpma_rt_shards_cfg *cfg,
			  struct rpma_rt_shards **set_ptr)
{
	struct rpma_rt_shards *set =
		shard_alloc_set((uint32_t)rt_context_pollers(rt));
	uint32_t i;
	int ret = 0;

	if (set == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "no shards are made");
	set->rt = rt;
	set->lane_size = cfg->lane_size;
	set->spin_ns = (uint64_t)cfg->spin_us * 1000;
	set->item_fn = cfg->item_fn;
	set->message_fn = cfg->message_fn;
	/* relaxed: no other thread knows the set */
	atomic_store_explicit(&set->running, UINT64_MAX >> (64 - set->count),
			      memory_order_relaxed);
	for (i = 0; i < set->count && ret == 0; i++)
		ret = shard_make(set, i, cfg);
	if (ret) {
		/* the shard that failed has closed its own descriptors */
		shard_close_all_fds(set, i - 1);
		(void)shard_delete_queues(set);
		shard_free_set(set);
		return ret;
	}
	shard_list_set(set);
	*set_ptr = set;
	return 0;
}

int rpma_rt_shards_new(struct rpma_rt *rt, const struct rpma_rt_shards_cfg *cfg,
		       struct rpma_rt_shards **shards_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_shards_cfg checked;
	int ret = RT_REFUSE_NULL(rt, cfg, shards_ptr);

	if (ret == 0)
		ret = RT_REFUSE_WAIT(rt);
	if (ret == 0)
		ret = rt_cfg_read_shards(cfg, (uint32_t)rt_context_pollers(rt),
					 &checked);
	if (ret)
		return ret;
	if (rt_context_owned(rt) == NULL)
		return RT_REFUSE(RPMA_E_NOSUPP,
				 "shards run the pollers: rpma_rt_cfg.mode is "
				 "not RPMA_RT_MODE_MANUAL");
	return shard_make_set(rt, &checked, shards_ptr);
}

/* ---------------------------------------------------------- asking --- */

int rpma_rt_shards_get(const struct rpma_rt_shards *shards, uint32_t index,
		       struct rpma_rt_shard **shard_ptr)
{
	int ret = RT_REFUSE_NULL(shards, shard_ptr);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(shards->rt);
	if (ret)
		return ret;
	if (index >= shards->count)
		return RT_REFUSE(RPMA_E_INVAL,
				 "index is %u, the shards are 0..%u", index,
				 shards->count - 1);
	*shard_ptr = &shards->shards[index];
	return 0;
}

int rpma_rt_shard_get_queue(const struct rpma_rt_shard *shard,
			    struct rpma_rt_queue **queue_ptr)
{
	int ret = RT_REFUSE_NULL(shard, queue_ptr);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(shard->rt);
	if (ret == 0)
		*queue_ptr = shard->queue;
	return ret;
}

int rpma_rt_shards_deal(const struct rpma_rt_shards *shards,
			struct rpma_rt_conn_cfg *cfg)
{
	int ret = RT_REFUSE_NULL(shards, cfg);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(shards->rt);
	if (ret)
		return ret;
	cfg->poller = RPMA_RT_POLLER_ANY;
	cfg->queue = NULL;
	cfg->queues = shards->queues;
	cfg->queue_count = shards->count;
	return 0;
}

/* -------------------------------------------------------- stopping --- */

int rpma_rt_shards_stop(struct rpma_rt_shards *shards)
{
	uint32_t i;
	int ret = RT_REFUSE_NULL(shards);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(shards->rt);
	if (ret)
		return ret;
	/* release: pairs with the acquire in rt_shard_is_stopping(): earlier
	 * writes of the caller */
	atomic_store_explicit(&shards->stopping, true, memory_order_release);
	/* behind the store, because the write is a system call; awake shards
	 * are rung, too */
	for (i = 0; i < shards->count; i++)
		rt_shard_ring_wake(&shards->shards[i]);
	return 0;
}

/* ---------------------------------------------------------- ending --- */

/* Returns how many messages of a lane were not taken or not published.
 * REQUIRES: no other thread uses the lane */
static uint32_t shard_left_in(const struct rt_shard_out *out)
{
	/* relaxed: no other thread uses the lane */
	return rt_shard_lane_next(out) -
	       atomic_load_explicit(&out->lane->head, memory_order_relaxed);
}

/* Counts the messages left over after the last run of a shard. */
static uint32_t shard_count_left(const struct rpma_rt_shards *set)
{
	const struct rt_shard_out *out;
	uint32_t left = 0;
	uint32_t i;

	for (i = 0; i < set->count * set->count; i++) {
		out = &set->shards[i / set->count].out[i % set->count];
		if (out->lane != NULL)
			left += shard_left_in(out);
	}
	return left;
}

static int shard_refuse_run(const struct rpma_rt_shards *set)
{
	uint32_t i;

	for (i = 0; i < set->count; i++) {
		/* acquire: pairs with the release in shard_leave(), run.c */
		if (atomic_load_explicit(&set->shards[i].runner,
					 memory_order_acquire) != 0)
			return RT_REFUSE(RPMA_RT_E_BUSY,
					 "the shards are not deleted: a thread "
					 "runs shard %u",
					 i);
	}
	return 0;
}

/* Ends all timers: the program owns the structs again, and may set them on
 * another shard. */
static void shard_end_timers(struct rpma_rt_shards *set)
{
	uint32_t i;

	for (i = 0; i < set->count; i++)
		rt_shard_timer_end(&set->shards[i]);
}

int rpma_rt_shards_delete(struct rpma_rt_shards **shards_ptr)
{
	RT_NOT_CANCELLED;
	struct rpma_rt_shards *set;
	uint32_t left;
	int ret = RT_REFUSE_NULL(shards_ptr);

	if (ret || *shards_ptr == NULL)
		return ret;
	set = *shards_ptr;
	ret = RT_REFUSE_WAIT(set->rt);
	if (ret)
		return ret;
	(void)rpma_rt_shards_stop(set);
	ret = shard_refuse_run(set);
	if (ret)
		return ret;
	/* before queues are freed, so that the dump finds no freed queue */
	shard_unlist_set(set);
	ret = shard_delete_queues(set);
	if (ret) {
		shard_list_set(set);
		return ret;
	}
	left = shard_count_left(set);
	if (left > 0)
		RT_LOG_WARNING("%u messages between shards were not delivered: "
			       "run each until it is RPMA_RT_E_CLOSED",
			       left);
	shard_end_timers(set);
	shard_close_all_fds(set, set->count);
	shard_free_set(set);
	*shards_ptr = NULL;
	return 0;
}
