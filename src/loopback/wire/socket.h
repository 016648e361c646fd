/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * socket.h -- sockets of abstract names, whose records come whole or not at
 * all. None of the calls waits; all of them return 0 or an errno, or a
 * descriptor or a negative errno.
 */

#ifndef LB_WIRE_SOCKET_H
#define LB_WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* the first byte of a record, once a link is up */
enum {
	LB_SOCKET_BELL = 'b',
	LB_SOCKET_MESSAGE = 'm',
};

/* Names are one network's: 0 at first. Before the first of the other calls. */
void lb_socket_set_network(uint32_t number);

/* @name is held by a socket that listens; -EADDRINUSE: by another. */
int lb_socket_listen(const char *name);
/* The same in two steps; until the second nobody can connect to the name. */
int lb_socket_bind(const char *name);
int lb_socket_listen_at(int fd);
int lb_socket_accept(int listener);
/* -ECONNREFUSED: nobody has the name; -EAGAIN: too many wait. */
int lb_socket_connect(const char *name);

/*
 * @name is held by a socket that nobody connects to. A probe asks whether some
 * name is held by such a one.
 */
int lb_socket_hold(const char *name);
int lb_socket_probe(void);
bool lb_socket_is_held(int probe, const char *name);

/* The process at the other end, as of its connect() or listen(). */
int lb_socket_peer(int fd, pid_t *pid, uid_t *uid);
/* A descriptor that is readable once pid has ended, or a negative errno. */
int lb_socket_pidfd(pid_t pid);
int lb_socket_is_readable(int fd); /* 0 or 1 */

/* One record, with a descriptor if pass is not -1. */
int lb_socket_send(int fd, const void *data, size_t size);
int lb_socket_send_fd(int fd, const void *data, size_t size, int pass);
int lb_socket_bell(int fd);
/*
 * One record: how long it is, 0 at the end, or a negative errno; -EMSGSIZE if
 * it is longer, or not all its descriptors came. *passed is a descriptor that
 * came with it, or -1.
 */
ssize_t lb_socket_receive(int fd, void *data, size_t size, int *passed);

void lb_socket_close(int *fd); /* -1 from now on; harmless if it is that */

#endif /* LB_WIRE_SOCKET_H */
