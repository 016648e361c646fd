/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * epoll ADDRESS: one thread with an event loop, and no poller in the
 * background. The thread sleeps in epoll on the descriptors of poller and
 * queue, and on a timer, which stands for the other descriptors of a loop.
 */

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "talk.h"

#define TICK_NS (TALK_TICK_MS * 1000000L)

static int watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static enum talk on_timer(int timer)
{
	uint64_t passed;

	return read(timer, &passed, sizeof(passed)) < 0 ? TALK_AGAIN
							: talk_tick();
}

static enum talk loop(int epoll, int timer)
{
	struct epoll_event event;
	enum talk next = TALK_AGAIN;

	while (next != TALK_OVER && next != TALK_FAILED) {
		next = talk_turn();
		if (next == TALK_SLEEP &&
		    epoll_wait(epoll, &event, 1, -1) == 1 &&
		    event.data.fd == timer)
			next = on_timer(timer);
	}
	return next;
}

int main(int argc, char **argv)
{
	const struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int epoll = epoll_create1(0);
	int poller, queue;
	int ret = talk_open(argc, argv) || talk_get_fds(&poller, &queue) ||
		  watch(epoll, poller) || watch(epoll, queue) ||
		  watch(epoll, timer) ||
		  timerfd_settime(timer, 0, &every, NULL) ||
		  loop(epoll, timer) != TALK_OVER;

	talk_close();
	close(epoll);
	close(timer);
	return ret;
}
