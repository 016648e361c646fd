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
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
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

/* Returns true for two descriptors of the same file; all eventfds are of one
 * file, and so are some other descriptors without a name. */
static bool is_same_file(int a, int b)
{
	struct stat of_a, of_b;

	return !fstat(a, &of_a) && !fstat(b, &of_b) &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/*
 * Returns true for an eventfd: the program may have closed the descriptor, and
 * have another file of the number. Without /proc, as in a chroot(), the file is
 * compared with the file of an eventfd.
 */
static bool is_eventfd(int fd, int eventfd)
{
	char name[64], to[64];
	ssize_t size;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	size = readlink(name, to, sizeof(to) - 1);
	if (size < 0)
		return is_same_file(fd, eventfd);
	to[size] = '\0';
	return !strcmp(to, "anon_inode:[eventfd]");
}

void lb_fd_renew(int fd)
{
	LB_NOT_CANCELLED;
	int flags = fcntl(fd, F_GETFL), of_fd = fcntl(fd, F_GETFD), fresh;

	if (flags < 0 || of_fd < 0)
		return;
	fresh = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC |
				   (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
	if (fresh < 0)
		return;
	if (is_eventfd(fd, fresh))
		dup3(fresh, fd, of_fd & FD_CLOEXEC ? O_CLOEXEC : 0);
	close(fresh);
}
