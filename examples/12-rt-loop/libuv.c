/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * libuv ADDRESS: the example epoll in a loop of libuv. A prepare handle runs a
 * turn before each sleep; as long as there is more work, an idle handle keeps
 * the loop from sleeping; the descriptors only wake the loop.
 */

#include <uv.h>

#include "talk.h"

#define HANDLES 5

static uv_prepare_t prepare;
static uv_idle_t idle;
static uv_poll_t polls[2];
static uv_timer_t timer;
static enum talk result = TALK_AGAIN;

static void wake_up(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
}

static void go_on(uv_idle_t *handle)
{
	(void)handle;
}

static void on_result(enum talk next, uv_loop_t *loop)
{
	result = next;
	if (next == TALK_OVER || next == TALK_FAILED)
		uv_stop(loop);
}

static void on_prepare(uv_prepare_t *handle)
{
	enum talk next = talk_turn();

	if (next == TALK_SLEEP)
		uv_idle_stop(&idle);
	else
		uv_idle_start(&idle, go_on);
	on_result(next, handle->loop);
}

static void on_timer(uv_timer_t *handle)
{
	on_result(talk_tick(), handle->loop);
}

static int watch(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
	return uv_poll_init(loop, poll, fd) ||
	       uv_poll_start(poll, UV_READABLE, wake_up);
}

static int run(uv_loop_t *loop)
{
	int poller, queue;

	return talk_get_fds(&poller, &queue) ||
	       watch(loop, &polls[0], poller) ||
	       watch(loop, &polls[1], queue) ||
	       uv_prepare_init(loop, &prepare) ||
	       uv_prepare_start(&prepare, on_prepare) ||
	       uv_idle_init(loop, &idle) || uv_timer_init(loop, &timer) ||
	       uv_timer_start(&timer, on_timer, TALK_TICK_MS, TALK_TICK_MS) ||
	       uv_run(loop, UV_RUN_DEFAULT) == 0;
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	int ret = talk_open(argc, argv) || run(loop) || result != TALK_OVER;

	talk_close();
	return ret;
}
