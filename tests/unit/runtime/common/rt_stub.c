/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A runtime without threads; see rt_stub.h. */

#include "rt_stub.h"
#include "base/context.h"
#include "base/owner.h"
#include "base/thread.h"
#include "base/wait.h"
#include "queue/impl.h"
#include "queue/queue.h"
#include "queue/take.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local bool stub_on_poller;

void rpma_log_message(enum rpma_log_level level, const char *file_name,
		      int line_no, const char *function_name,
		      const char *message_format, ...)
{
	(void)level;
	(void)file_name;
	(void)line_no;
	(void)function_name;
	(void)message_format;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level *level)
{
	(void)threshold;
	*level = RPMA_LOG_DISABLED;
	return 0;
}

int rt_cpu_check(int cpu)
{
	(void)cpu;
	return 0;
}

int rt_context_pollers(const struct rpma_rt *rt)
{
	return rt->pollers;
}

_Atomic unsigned rt_context_forks;

int rt_context_refuse_forked(const struct rt_log_place *place)
{
	(void)place;
	return RPMA_RT_E_FORKED;
}

int rt_context_check_thread(const struct rt_log_place *place)
{
	(void)place;
	return stub_on_poller ? RPMA_RT_E_THREAD : 0;
}

bool rt_context_is_stopped(const struct rpma_rt *rt)
{
	return rt->stopped;
}

bool rt_context_is_timed(const struct rpma_rt *rt)
{
	return rt->timed;
}

struct rt_owned *rt_context_owned(const struct rpma_rt *rt)
{
	(void)rt;
	return NULL;
}

/* Nobody owns pollers here: a wait sleeps. */
_Thread_local struct rt_owner rt_owner_self;

bool rt_owner_has_any(void)
{
	return false;
}

bool rt_wait_run(struct rt_owned *known, struct rt_owned *first, uint64_t which)
{
	(void)known;
	(void)first;
	(void)which;
	return false;
}

uint64_t rt_context_spin_ns(const struct rpma_rt *rt)
{
	(void)rt;
	return 0;
}

/* No poller here lends itself. */
struct rt_owned *rt_context_lending(const struct rpma_rt *rt)
{
	(void)rt;
	return NULL;
}

bool rt_owner_serve(struct rt_owned *owned,
		    bool (*round)(struct rt_owned *owned))
{
	(void)owned;
	(void)round;
	return false;
}

void rt_lend_add_bell(struct rt_lending *lending, struct rt_lend_bell *place,
		      const struct rt_bell *bell)
{
	(void)lending;
	(void)place;
	(void)bell;
}

void rt_lend_remove_bell(struct rt_lending *lending, struct rt_lend_bell *place)
{
	(void)lending;
	(void)place;
}

uint64_t rt_context_sharded(const struct rpma_rt *rt)
{
	(void)rt;
	return 0;
}

void rt_wait_cond_init(pthread_cond_t *cond)
{
	pthread_cond_init(cond, NULL);
}

void rt_wait_step(struct rt_wait *wait, pthread_cond_t *cond,
		  pthread_mutex_t *lock)
{
	(void)wait;
	pthread_cond_wait(cond, lock);
}

void rt_queue_list_add(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	(void)queue;
	rt->queues++;
}

void rt_queue_list_remove(struct rpma_rt *rt, struct rpma_rt_queue *queue)
{
	(void)queue;
	rt->queues--;
}

void rt_context_drop_item(struct rpma_rt *rt,
			  const struct rpma_rt_completion *item)
{
	(void)item;
	rt->drops++;
}

void stub_rt_init(struct rpma_rt *rt, int pollers)
{
	int i;

	memset(rt, 0, sizeof(*rt));
	rt->pollers = pollers;
	for (i = 0; i < pollers; i++) {
		if (rt_bell_init(&rt->bells[i])) {
			fprintf(stderr, "no eventfd for a bell\n");
			exit(1);
		}
	}
}

void stub_rt_fini(struct rpma_rt *rt)
{
	int i;

	for (i = 0; i < rt->pollers; i++)
		rt_bell_fini(&rt->bells[i]);
	rt_queue_free_idle(rt);
}

static struct rpma_rt_queue *new_queue(struct rpma_rt *rt, uint32_t lane_size,
				       uint32_t backlog_limit, bool shared)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue = NULL;

	cfg.lane_size = lane_size;
	cfg.backlog_limit = backlog_limit;
	cfg.spin_us = 0;
	cfg.shared = shared;
	return rpma_rt_queue_new(rt, &cfg, &queue) ? NULL : queue;
}

struct rpma_rt_queue *stub_queue_new(struct rpma_rt *rt, uint32_t lane_size,
				     uint32_t backlog_limit)
{
	return new_queue(rt, lane_size, backlog_limit, false);
}

struct rpma_rt_completion stub_item(uint64_t context)
{
	return (struct rpma_rt_completion){.context = context};
}

void stub_publish(struct rt_lane *lane, uint64_t first, uint32_t count)
{
	struct rpma_rt_completion item;
	uint32_t i;

	for (i = 0; i < count; i++) {
		item = stub_item(first + i);
		rt_lane_write_poller(lane, &item);
	}
	rt_lane_publish_poller(lane);
}

bool stub_is_readable(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

int stub_open(void **state, int pollers, bool timed, bool shared)
{
	struct stub_world *world = calloc(1, sizeof(*world));

	if (world == NULL)
		return -1;
	stub_rt_init(&world->rt, pollers);
	world->rt.timed = timed;
	world->queue = new_queue(&world->rt, STUB_LANE, STUB_LIMIT, shared);
	if (world->queue != NULL && pollers == 1)
		world->lane =
			rt_queue_lane(world->queue, 0, &world->rt.bells[0]);
	*state = world;
	return world->queue == NULL || (pollers == 1 && world->lane == NULL);
}

int stub_close(void **state)
{
	struct stub_world *world = *state;

	if (rpma_rt_queue_delete(&world->queue) || world->rt.queues != 0)
		return -1;
	stub_rt_fini(&world->rt);
	free(world);
	return 0;
}

int stub_poll(struct stub_world *world, int max)
{
	world->got = rpma_rt_queue_poll(world->queue, world->taken, max);
	return world->got;
}

int stub_fd(struct stub_world *world)
{
	int fd;

	return rpma_rt_queue_get_fd(world->queue, &fd) ? -1 : fd;
}

bool stub_ring(struct rt_lane *lane)
{
	rt_fence_dekker();
	return rt_lane_bell_poller(lane);
}

/* poller/take.c, where a queue has no poller */
int rpma_rt_queue_wait(struct rpma_rt_queue *queue,
		       struct rpma_rt_completion *cmpl, int max, int timeout_ms)
{
	return rt_queue_wait_any(queue, cmpl, max, timeout_ms);
}
