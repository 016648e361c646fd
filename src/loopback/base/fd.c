/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fd.c -- an eventfd that counts events, one unit each: what completion
 * channels and contexts let applications wait for. Any thread.
 */

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/hook.h"

void lb_fd_ring(int fd, uint64_t n)
{
	LB_NOT_CANCELLED;
	ssize_t ret;

	do {
		ret = write(fd, &n, sizeof(n));
	} while (ret < 0 && errno == EINTR);
}

void lb_fd_unring(int fd, uint32_t n)
{
	LB_NOT_CANCELLED;
	uint64_t unit;
	struct iovec iov = {.iov_base = &unit, .iov_len = sizeof(unit)};

	while (n-- && preadv2(fd, &iov, 1, -1, RWF_NOWAIT) > 0)
		;
}

static bool is_readable(void *arg)
{
	struct pollfd pfd = {.fd = *(int *)arg, .events = POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

int lb_fd_wait(int fd)
{
	uint64_t unit;

	if (!(fcntl(fd, F_GETFL) & O_NONBLOCK))
		lb_hook_block(is_readable, &fd);
	return read(fd, &unit, sizeof(unit)) == sizeof(unit) ? 0 : -1;
}
