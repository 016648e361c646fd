/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * connect.c -- preloaded into both ends: rdma_connect() waits until a process
 * listens at the port. Some servers name their port before they listen at it,
 * and a client that is faster is refused, by a kernel too. A port at which
 * somebody listens is a file in LAUNCH_PORTS, a directory. The server of
 * riostream listens before it asks for maps, so with LAUNCH_IOMAPS the file
 * comes when the server has asked. With LAUNCH_PATIENT poll() waits for as long
 * as a test may take: libiscsi takes a second without an answer for an error.
 */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 300000 /* ms; then the device says that nobody listens */

/* The listening identifiers; the programs make them in one thread. */
static struct rdma_cm_id *listeners[8];
#define LISTENERS (sizeof(listeners) / sizeof(*listeners))

static void *next_of(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void path_of(char path[512], unsigned port)
{
	snprintf(path, 512, "%s/%u", getenv("LAUNCH_PORTS"), port);
}

static void announce(struct rdma_cm_id *id)
{
	char path[512];

	path_of(path, ntohs(rdma_get_src_port(id)));
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

int rsetsockopt(int socket, int level, int name, const void *value,
		socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t) =
		next_of("rsetsockopt");
	int ret = next(socket, level, name, value, len);
	size_t i;

	if (level != SOL_RDMA || name != RDMA_IOMAPSIZE)
		return ret;
	for (i = 0; i < LISTENERS && listeners[i]; i++)
		announce(listeners[i]);
	return ret;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int (*next)(struct rdma_cm_id *, int) = next_of("rdma_listen");
	int ret = next(id, backlog);
	size_t i;

	for (i = 0; i < LISTENERS && listeners[i]; i++)
		;
	if (ret || i == LISTENERS)
		return ret;
	listeners[i] = id;
	if (!getenv("LAUNCH_IOMAPS"))
		announce(id);
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int (*next)(struct rdma_cm_id *) = next_of("rdma_destroy_id");
	char path[512];
	size_t i;

	for (i = 0; i < LISTENERS; i++) {
		if (listeners[i] != id)
			continue;
		listeners[i] = NULL;
		path_of(path, ntohs(rdma_get_src_port(id)));
		unlink(path);
	}
	return next(id);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*next)(struct rdma_cm_id *, struct rdma_conn_param *) =
		next_of("rdma_connect");
	const struct timespec pause = {.tv_nsec = 1000000};
	char path[512];
	int i;

	path_of(path, ntohs(rdma_get_dst_port(id)));
	for (i = 0; i < PATIENCE && access(path, F_OK); i++)
		nanosleep(&pause, NULL);
	return next(id, param);
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
	int (*next)(struct pollfd *, nfds_t, int) = next_of("poll");

	return next(fds, count,
		    ms > 0 && getenv("LAUNCH_PATIENT") ? PATIENCE : ms);
}
