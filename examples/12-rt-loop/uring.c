/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * uring ADDRESS: the example epoll in a loop of io_uring. The ring polls both
 * descriptors and waits for the time; a completed entry is queued again. Status
 * 77: the kernel refuses io_uring, as many containers do.
 */

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "talk.h"

#define ENTRIES	    8
#define UNAVAILABLE 77
#define TICK	    2 /* after the two descriptors */

static struct io_uring ring;
static int fds[2];
static struct __kernel_timespec tick = {.tv_nsec = TALK_TICK_MS * 1000000L};

/* Queues an entry; there is room, because at most three are outstanding. */
static void queue_entry(unsigned which)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (which == TICK)
		io_uring_prep_timeout(sqe, &tick, 0, 0);
	else
		io_uring_prep_poll_add(sqe, fds[which], POLLIN);
	io_uring_sqe_set_data64(sqe, which);
}

/* Takes completed entries; then the next turn looks for work. */
static enum talk reap(void)
{
	struct io_uring_cqe *cqe;
	enum talk next = TALK_AGAIN;

	while (next != TALK_FAILED && io_uring_peek_cqe(&ring, &cqe) == 0) {
		unsigned which = (unsigned)io_uring_cqe_get_data64(cqe);

		io_uring_cqe_seen(&ring, cqe);
		if (which == TICK)
			next = talk_tick();
		queue_entry(which);
	}
	return next;
}

static enum talk loop(void)
{
	enum talk next = TALK_AGAIN;

	for (unsigned i = 0; i <= TICK; i++)
		queue_entry(i);
	while (next != TALK_OVER && next != TALK_FAILED) {
		next = talk_turn();
		if (next != TALK_SLEEP && next != TALK_AGAIN)
			break;
		if (io_uring_submit_and_wait(&ring, next == TALK_SLEEP) < 0)
			return TALK_FAILED;
		next = reap();
	}
	return next;
}

int main(int argc, char **argv)
{
	int err = io_uring_queue_init(ENTRIES, &ring, 0);
	int ret;

	if (err) {
		fprintf(stderr, "no io_uring: %s\n", strerror(-err));
		return UNAVAILABLE;
	}
	ret = talk_open(argc, argv) || talk_get_fds(&fds[0], &fds[1]) ||
	      loop() != TALK_OVER;
	/* first the descriptors are no longer watched, then closed */
	io_uring_queue_exit(&ring);
	talk_close();
	return ret;
}
