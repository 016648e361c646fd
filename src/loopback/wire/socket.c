/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * socket.c -- sockets between processes: SOCK_SEQPACKET, abstract names, never
 * inherited by another program. Any thread.
 */

#include "wire/socket.h"

#include "base/cancel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define FLAGS	(SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC)
#define BACKLOG 64
#define MANY	4096 /* that ask for a port, at a time */
/* descriptors that may come with a record: one too many is seen as such */
#define PASSED 2

static uint32_t network;

void lb_socket_set_network(uint32_t number)
{
	network = number;
}

/* The address of an abstract name, and its length. */
static socklen_t name_address(struct sockaddr_un *sun, const char *name)
{
	int length;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	length = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1,
			  network ? "%s/%" PRIu32 : "%s", name, network);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)length);
}

int lb_socket_bind(const char *name)
{
	LB_NOT_CANCELLED;
	struct sockaddr_un sun;
	socklen_t length = name_address(&sun, name);
	int fd = socket(AF_UNIX, FLAGS, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&sun, length))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int lb_socket_listen_at(int fd)
{
	return listen(fd, MANY) ? errno : 0;
}

int lb_socket_listen(const char *name)
{
	LB_NOT_CANCELLED;
	int fd = lb_socket_bind(name);
	int err;

	if (fd < 0 || !listen(fd, BACKLOG))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int lb_socket_accept(int listener)
{
	LB_NOT_CANCELLED;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int lb_socket_connect(const char *name)
{
	LB_NOT_CANCELLED;
	struct sockaddr_un sun;
	socklen_t length = name_address(&sun, name);
	int fd = socket(AF_UNIX, FLAGS, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&sun, length))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/* --- names alone */

int lb_socket_probe(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int lb_socket_hold(const char *name)
{
	LB_NOT_CANCELLED;
	struct sockaddr_un sun;
	socklen_t length = name_address(&sun, name);
	int fd = lb_socket_probe();
	int err;

	if (fd < 0 || !bind(fd, (struct sockaddr *)&sun, length))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

bool lb_socket_is_held(int probe, const char *name)
{
	LB_NOT_CANCELLED;
	struct sockaddr_un sun;
	socklen_t length = name_address(&sun, name);

	/* one of datagrams has nobody to accept it, and may do it again */
	return !connect(probe, (struct sockaddr *)&sun, length);
}

/*
 * Returns the effective user of a process now, or the user given: a daemon
 * listens as root, and calls setuid() afterwards.
 */
static uid_t user_now(pid_t pid, uid_t uid)
{
	char name[32], line[128];
	unsigned real, effective;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	file = pid > 0 ? fopen(name, "re") : NULL;
	if (!file)
		return uid;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
			uid = effective;
	}
	fclose(file);
	return uid;
}

int lb_socket_peer(int fd, pid_t *pid, uid_t *uid)
{
	LB_NOT_CANCELLED;
	struct ucred cred;
	socklen_t length = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length))
		return errno;
	*pid = cred.pid;
	/* the credentials of listen() or connect() may be former ones */
	*uid = user_now(cred.pid, cred.uid);
	return 0;
}

int lb_socket_pidfd(pid_t pid)
{
	int fd;

	if (pid <= 0) /* of another pid namespace */
		return -EINVAL;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

int lb_socket_is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

int lb_socket_send(int fd, const void *data, size_t size)
{
	LB_NOT_CANCELLED;
	ssize_t ret;

	do {
		ret = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? errno : 0;
}

int lb_socket_send_fd(int fd, const void *data, size_t size, int pass)
{
	LB_NOT_CANCELLED;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data,
			    .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &pass, sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

int lb_socket_bell(int fd)
{
	const char bell = LB_SOCKET_BELL;

	return lb_socket_send(fd, &bell, sizeof(bell));
}

/* The first descriptor of a message; all others are closed. */
static int passed_of(struct msghdr *msg)
{
	LB_NOT_CANCELLED;
	struct cmsghdr *header;
	int passed = -1;

	for (header = CMSG_FIRSTHDR(msg); header;
	     header = CMSG_NXTHDR(msg, header)) {
		size_t n, i;

		if (header->cmsg_level != SOL_SOCKET ||
		    header->cmsg_type != SCM_RIGHTS)
			continue;
		n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int),
			       sizeof(int));
			if (passed < 0)
				passed = fd;
			else
				close(fd);
		}
	}
	return passed;
}

ssize_t lb_socket_receive(int fd, void *data, size_t size, int *passed)
{
	LB_NOT_CANCELLED;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(PASSED * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t ret;

	*passed = -1;
	do {
		ret = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	*passed = passed_of(&msg);
	/* more of either, or no descriptor was left to receive one */
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		lb_socket_close(passed);
		return -EMSGSIZE;
	}
	return ret;
}

void lb_socket_close(int *fd)
{
	LB_NOT_CANCELLED;
	int was = *fd;

	*fd = -1; /* before it is another's: a child closes what it finds */
	if (was >= 0)
		close(was);
}
