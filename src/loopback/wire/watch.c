/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * watch.c -- descriptors that the link thread watches. Each leaves before it is
 * closed: a copy that a child has would keep it there. Any thread.
 */

#include "wire/watch.h"

#include <sys/epoll.h>

#include "wire/parts.h"
#include "wire/socket.h"

bool lb_watch_add(struct lb_nic *nic, struct lb_watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};

	return watch->fd < 0 ||
	       !epoll_ctl(nic->epoll, EPOLL_CTL_ADD, watch->fd, &event);
}

void lb_watch_leave(struct lb_nic *nic, struct lb_watch *watch)
{
	struct epoll_event unused = {0};

	if (watch->fd >= 0)
		epoll_ctl(nic->epoll, EPOLL_CTL_DEL, watch->fd, &unused);
}

void lb_watch_close(struct lb_nic *nic, struct lb_watch *watch)
{
	lb_watch_leave(nic, watch);
	lb_socket_close(&watch->fd);
}
