/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The other process: its memory, its loop, and calls of its functions. Calls
 * come from any thread of the test, one at a time.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "far.h"
#include "far_call.h"

#define MEMORY	   (1ul << 30) /* bytes, of which few are ever touched */
#define MAX_BLOCKS 1024
#define MAX_ARGS   (256u << 10)

/* What is called, in memory of both. */
struct request {
	int (*fn)(void *args);
	int error;
	_Alignas(64) uint8_t args[MAX_ARGS];
};

static struct {
	pthread_mutex_t lock;
	struct request *request;
	int socket;
	pid_t pid;
	/* memory of both: where it begins, and blocks that are given out */
	uint8_t *memory;
	uint8_t *top;
	uint8_t *blocks[MAX_BLOCKS];
	size_t count;
} far = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};

static void give_up(const char *why)
{
	fprintf(stderr, "the other process: %s: %s\n", why, strerror(errno));
	abort();
}

void *far_alloc(size_t size)
{
	size_t pages = (size + 4095) & ~(size_t)4095;
	uint8_t *p = far.top;

	if (far.count == MAX_BLOCKS ||
	    pages > (size_t)(far.memory + MEMORY - p))
		return NULL;
	far.blocks[far.count++] = p;
	far.top = p + pages;
	return p;
}

bool far_has(const void *p)
{
	const uint8_t *at = p;

	return far.memory && at >= far.memory && at < far.memory + MEMORY;
}

void far_free(void *p)
{
	if (far.count && far.blocks[far.count - 1] == p) {
		far.count--;
		far.top = p;
	}
}

/* One byte, and a descriptor unless that is -1. */
static void send_reply(int fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.space = {0}};
	struct iovec byte = {"", 1};
	struct msghdr msg = {.msg_iov = &byte, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	if (sendmsg(far.socket, &msg, MSG_NOSIGNAL) != 1)
		_exit(1);
}

static int recv_reply(void)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char in;
	struct iovec byte = {&in, 1};
	struct msghdr msg = {.msg_iov = &byte,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;
	ssize_t got;
	int fd = -1;

	do
		got = recvmsg(far.socket, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		give_up("it has ended");
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

/* The other process: calls what it is asked to, until the test ends. */
static void serve(void)
{
	char in;

	while (recv(far.socket, &in, 1, 0) == 1) {
		int fd;

		errno = 0;
		fd = far.request->fn(far.request->args);
		far.request->error = errno;
		send_reply(fd);
	}
	_exit(0);
}

int far_call(int (*fn)(void *args), void *args, size_t size)
{
	int fd;

	if (size > MAX_ARGS)
		give_up("too many arguments");
	pthread_mutex_lock(&far.lock);
	far.request->fn = fn;
	memcpy(far.request->args, args, size);
	if (send(far.socket, "", 1, MSG_NOSIGNAL) != 1)
		give_up("it is not there");
	fd = recv_reply();
	memcpy(args, far.request->args, size);
	errno = far.request->error;
	pthread_mutex_unlock(&far.lock);
	return fd;
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		give_up("no memory");
	return p;
}

void far_start(void)
{
	int sockets[2];

	far.request = map(sizeof(*far.request));
	far.memory = map(MEMORY);
	far.top = far.memory;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		give_up("no socket");
	far.pid = fork();
	if (far.pid < 0)
		give_up("fork");
	far.socket = sockets[far.pid == 0];
	close(sockets[far.pid != 0]);
	if (far.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve();
	}
}

int far_end(void)
{
	int status;

	close(far.socket);
	if (waitpid(far.pid, &status, 0) != far.pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
