/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * socket.h -- sockets of abstract names; records come whole or not at all. No
 * call waits; every call returns 0 or an errno, or a descriptor or a negative
 * errno.
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

/*
 * Sets the network of names: at first 0. Before the first of the other calls.
 */
void lb_socket_set_network(uint32_t number);

/* Listens at @name; -EADDRINUSE: another socket has the name. */
int lb_socket_listen(const char *name);
/* Listen in two steps; before the second step no process can connect. */
int lb_socket_bind(const char *name);
int lb_socket_listen_at(int fd);
int lb_socket_accept(int listener);
/* Connects; -ECONNREFUSED: the name is free; -EAGAIN: too many wait. */
int lb_socket_connect(const char *name);

/*
 * lb_socket_hold() holds @name by a socket without connections;
 * lb_socket_probe() tells whether any name is so held.
 */
int lb_socket_hold(const char *name);
int lb_socket_probe(void);
bool lb_socket_is_held(int probe, const char *name);

/*
 * Returns the process at the other end, at the time of its connect() or
 * listen().
 */
int lb_socket_peer(int fd, pid_t *pid, uid_t *uid);
/*
 * Returns a descriptor that is readable once pid has ended, or a negative
 * errno.
 */
int lb_socket_pidfd(pid_t pid);
int lb_socket_is_readable(int fd); /* 0 or 1 */

/* Send a record, with a descriptor if pass is not -1. */
int lb_socket_send(int fd, const void *data, size_t size);
int lb_socket_send_fd(int fd, const void *data, size_t size, int pass);
int lb_socket_bell(int fd);
/*
 * Receives a record: returns its length, 0 at the end, or a negative errno;
 * -EMSGSIZE if the record is longer, or lost a descriptor. *passed is the
 * descriptor in the record, or -1.
 */
ssize_t lb_socket_receive(int fd, void *data, size_t size, int *passed);

void lb_socket_close(int *fd); /* sets -1; harmless for -1 */

#endif /* LB_WIRE_SOCKET_H */
