/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sleep.c -- a shard sleeps: one word that it alone writes, an eventfd that
 * others write (ring.c), and one epoll set of all that it sleeps on.
 */

#define _GNU_SOURCE
#include "shard/shard.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"

#define NS_PER_S 1000000000u
#define NAP_NS	 10000000 /* where there is no descriptor to sleep on */

/* --------------------------------------------------------- the fds --- */

static int watch(struct rpma_rt_shard *shard, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(shard->epfd, EPOLL_CTL_ADD, fd, &event))
		return rt_refuse_system("epoll_ctl");
	return 0;
}

static int watch_all(struct rpma_rt_shard *shard)
{
	int fd;
	int ret = watch(shard, shard->eventfd);

	if (ret == 0)
		ret = rpma_rt_queue_get_fd(shard->queue, &fd);
	if (ret == 0)
		ret = watch(shard, fd);
	if (ret == 0)
		ret = rpma_rt_poller_get_fd(shard->rt, shard->index, &fd);
	if (ret == 0)
		ret = watch(shard, fd);
	return ret;
}

int rt_shard_sleep_init(struct rpma_rt_shard *shard)
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
		ret = watch_all(shard);
	if (ret)
		rt_shard_sleep_fini(shard);
	return ret;
}

void rt_shard_sleep_fini(struct rpma_rt_shard *shard)
{
	if (shard->epfd >= 0)
		close(shard->epfd);
	if (shard->eventfd >= 0)
		close(shard->eventfd);
	shard->epfd = -1;
	shard->eventfd = -1;
}

/* -------------------------------------------------------- sleeping --- */

/* Writes that came late make it readable again, once for nothing. */
static void read_rings(struct rpma_rt_shard *shard)
{
	uint64_t writes;
	ssize_t ret;

	if (!shard->is_rung)
		return;
	shard->is_rung = false;
	ret = read(shard->eventfd, &writes, sizeof(writes));
	(void)ret; /* nothing to read is quiet too */
}

/* The next number: odd, it sleeps. */
static void count_asleep(struct rpma_rt_shard *shard)
{
	/* relaxed: the shard alone writes it */
	uint32_t asleep =
		atomic_load_explicit(&shard->asleep, memory_order_relaxed);

	/* release: wants of the lanes, before it */
	atomic_store_explicit(&shard->asleep, asleep + 1, memory_order_release);
}

static bool has_work(struct rpma_rt_shard *shard)
{
	return rt_shard_take_has_some(shard) || rt_shard_send_is_eased(shard) ||
	       rt_shard_end_is_due(shard);
}

/* 0: armed; 1: there is something, or there was a wake; or an error. */
static int arm_queue(struct rpma_rt_shard *shard)
{
	int ret;

	if (shard->is_queue_over)
		return 0;
	ret = rpma_rt_queue_arm(shard->queue);
	/* the next turn finds that it is closed */
	return ret == RPMA_RT_E_CLOSED ? 1 : ret;
}

/* 0: armed; 1: there is work; or an error. */
static int arm_poller(struct rpma_rt_shard *shard)
{
	int ret;

	if (shard->is_poller_over)
		return 0;
	ret = rpma_rt_poller_arm(shard->rt, shard->index);
	return ret == RPMA_RT_E_CLOSED ? 1 : ret;
}

static void sleep_on_fd(struct rpma_rt_shard *shard, uint64_t until_ns)
{
	struct pollfd fd = {.fd = shard->epfd, .events = POLLIN};
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct timespec timeout = {0, 0};
	uint64_t now;

	if (until_ns != UINT64_MAX) {
		now = rt_now_ns();
		if (until_ns <= now)
			return;
		timeout.tv_sec = (time_t)((until_ns - now) / NS_PER_S);
		timeout.tv_nsec = (long)((until_ns - now) % NS_PER_S);
	}
	rt_stat_add(&shard->counters.sleeps, 1);
	/* on a signal it looks again, too */
	if (ppoll(&fd, 1, until_ns == UINT64_MAX ? NULL : &timeout, NULL) != 0)
		shard->is_rung = true;
	/* the program closed the descriptor: no ring comes, so turns go on */
	if (fd.revents & POLLNVAL)
		nanosleep(&nap, NULL);
}

int rt_shard_sleep(struct rpma_rt_shard *shard, uint64_t until_ns)
{
	RT_NOT_CANCELLED;
	int armed = 0;
	int ret = 0;

	/* before asleep: a ring that this takes away was for what the look
	 * finds */
	read_rings(shard);
	count_asleep(shard);
	/* [SHARD-4]: asleep before the look */
	rt_fence_dekker();
	if (!has_work(shard)) {
		ret = arm_queue(shard);
		if (ret == 0)
			armed = arm_poller(shard);
		if (ret == 0 && armed == 0)
			sleep_on_fd(shard, until_ns);
	}
	count_asleep(shard);
	if (armed < 0)
		return armed;
	return ret;
}
