/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * port.c -- names owned by one process: a socket is bound to each. To learn the
 * owner of a name, connect to the name: a record with the number comes, and the
 * connection ends. Any thread; the link thread reads answers and questions.
 *
 * Both structs are never freed: the link thread may hold an event for an ended
 * struct, and then finds no descriptor, or a descriptor without data.
 */

#include "wire/port.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/list.h"
#include "base/log.h"
#include "base/service.h"
#include "wire/hello.h"
#include "wire/parts.h"
#include "wire/socket.h"
#include "wire/watch.h"

#define RETRY_NS     1000000u
#define ACCEPT_AGAIN 100000000u /* ns; without a descriptor */
#define AT_A_TIME    64		/* questions */
#define NAMES	     2

struct lb_port {
	struct lb_watch watch; /* first; under the lock */
	struct lb_list node;   /* of used or free_ports */
	struct lb_nic *nic;    /* answers questions; or NULL */
};

enum ask_state {
	ASK_ASKED,
	ASK_LATER, /* no descriptor, or too many ask: a job tries again */
	ASK_DONE,  /* fn is about to be called */
	ASK_CANCELLED,
};

struct lb_ask {
	struct lb_watch watch; /* first; all under the lock */
	struct lb_list node;   /* of asks or free_asks */
	struct lb_nic *nic;
	enum ask_state state;
	lb_port_fn *fn;
	uint32_t token;
	char names[NAMES][LB_PORT_NAME];
};

/* The answer of the owner of a name. */
struct answer {
	uint32_t magic;
	uint16_t version;
	uint16_t length;
	uint32_t number;
	uint32_t spare;
};

/* a leaf */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lb_list used = {&used, &used};
static struct lb_list free_ports = {&free_ports, &free_ports};
static struct lb_list asks = {&asks, &asks};
static struct lb_list free_asks = {&free_asks, &free_asks};

/* --- names */

struct lb_port *lb_port_hold(const char *name)
{
	LB_NOT_CANCELLED;
	struct lb_port *port = NULL;
	int fd = lb_socket_bind(name);

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	if (!lb_list_is_empty(&free_ports)) {
		port = lb_entry(free_ports.next, struct lb_port, node);
		lb_list_del(&port->node);
	} else {
		port = calloc(1, sizeof(*port));
	}
	if (port) {
		port->watch.fd = fd;
		lb_list_push(&used, &port->node);
	}
	pthread_mutex_unlock(&lock);
	if (!port) {
		close(fd);
		errno = ENOMEM;
	}
	return port;
}

bool lb_port_is_held(const char *name)
{
	LB_NOT_CANCELLED;
	int fd = lb_socket_bind(name);

	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

/* Answers a question: a connection, a record, the end. 0 or an errno. */
static int answer_one(const struct lb_nic *nic, int listener)
{
	LB_NOT_CANCELLED;
	const struct answer answer = {
		.magic = LB_HELLO_MAGIC,
		.version = LB_HELLO_VERSION,
		.length = sizeof(answer),
		.number = nic->number,
	};
	int fd = lb_socket_accept(listener);

	if (fd < 0)
		return -fd;
	/* without room for the record, the other side sees the end of file */
	lb_socket_send(fd, &answer, sizeof(answer));
	close(fd);
	return 0;
}

static void accept_again(void *arg)
{
	struct lb_port *port = arg;

	pthread_mutex_lock(&lock);
	if (port->nic)
		lb_watch_add(port->nic, &port->watch);
	pthread_mutex_unlock(&lock);
}

/* No descriptor is left: questions stay in the queue for a while, or the
 * listener would be ready at once. */
static void accept_later(struct lb_port *port)
{
	if (!lb_service_post(accept_again, port, ACCEPT_AGAIN))
		lb_watch_leave(port->nic, &port->watch);
}

static void on_port(struct lb_nic *nic, struct lb_watch *watch, uint32_t events)
{
	struct lb_port *port = (struct lb_port *)(void *)watch;
	int n, err = 0;

	(void)events;
	pthread_mutex_lock(&lock);
	for (n = 0; n < AT_A_TIME && port->nic && !err; n++)
		err = answer_one(nic, watch->fd);
	if (err && err != EAGAIN && err != ECONNABORTED)
		accept_later(port);
	pthread_mutex_unlock(&lock);
}

int lb_port_listen(struct lb_port *port, struct lb_nic *nic)
{
	int err;

	pthread_mutex_lock(&lock);
	port->watch.ready = on_port;
	err = lb_socket_listen_at(port->watch.fd);
	if (!err && !lb_watch_add(nic, &port->watch) && errno != EEXIST)
		err = errno;
	if (!err)
		port->nic = nic;
	pthread_mutex_unlock(&lock);
	return err;
}

void lb_port_release(struct lb_port *port)
{
	if (!port)
		return;
	pthread_mutex_lock(&lock);
	if (port->nic)
		lb_watch_leave(port->nic, &port->watch);
	port->nic = NULL;
	lb_socket_close(&port->watch.fd);
	lb_list_del(&port->node);
	lb_list_push(&free_ports, &port->node);
	pthread_mutex_unlock(&lock);
}

/* --- questions */

/* The lock is held; *ask is somebody else's from now on. */
static void end(struct lb_ask *ask)
{
	lb_watch_close(ask->nic, &ask->watch);
	lb_list_del(&ask->node);
	lb_list_push(&free_asks, &ask->node);
}

/* Returns the number in a record, or 0. */
static unsigned number_of(const struct answer *answer, ssize_t size)
{
	if (size != (ssize_t)sizeof(*answer) ||
	    answer->magic != LB_HELLO_MAGIC ||
	    answer->version != LB_HELLO_VERSION ||
	    answer->length != sizeof(*answer) ||
	    answer->number > LB_PARTS_NUMBERS)
		return 0;
	return answer->number;
}

/* Ends a question. No lock: fn takes locks of the layer above. */
static void finish(struct lb_ask *ask, unsigned number)
{
	ask->fn(ask, ask->token, number);
	pthread_mutex_lock(&lock);
	end(ask);
	pthread_mutex_unlock(&lock);
}

static void on_ask(struct lb_nic *nic, struct lb_watch *watch, uint32_t events)
{
	struct lb_ask *ask = (struct lb_ask *)(void *)watch;
	struct answer answer;
	ssize_t size = -EAGAIN;
	int passed = -1;

	(void)events;
	pthread_mutex_lock(&lock);
	if (watch->fd >= 0)
		size = lb_socket_receive(watch->fd, &answer, sizeof(answer),
					 &passed);
	if (size != -EAGAIN) {
		ask->state = ASK_DONE;
		lb_watch_close(nic, watch);
	}
	pthread_mutex_unlock(&lock);
	lb_socket_close(&passed);
	if (size != -EAGAIN)
		finish(ask, number_of(&answer, size));
}

/*
 * Returns a connection to the process listening at a name, or a negative errno.
 */
static int reach(const char *name)
{
	LB_NOT_CANCELLED;
	int fd = lb_socket_connect(name);
	uid_t uid = 0;
	pid_t pid;

	if (fd < 0)
		return fd;
	if (!lb_socket_peer(fd, &pid, &uid) && uid == geteuid())
		return fd;
	close(fd);
	lb_log(0, "%s is a process of user %u: not connected to by user %u",
	       name, (unsigned)uid, (unsigned)geteuid());
	return -ECONNREFUSED;
}

static bool is_for_now(int err)
{
	return err == EAGAIN || err == EMFILE || err == ENFILE ||
	       err == ENOMEM || err == ENOBUFS || err == ENOSPC;
}

/* Under the lock: 0 or an errno. */
static int try(struct lb_ask *ask)
{
	int fd = -ECONNREFUSED, i;

	for (i = 0; i < NAMES && fd == -ECONNREFUSED; i++) {
		if (ask->names[i][0])
			fd = reach(ask->names[i]);
	}
	if (fd < 0)
		return -fd;
	ask->watch.fd = fd;
	ask->watch.ready = on_ask;
	ask->state = ASK_ASKED;
	if (lb_watch_add(ask->nic, &ask->watch))
		return 0;
	lb_socket_close(&ask->watch.fd);
	return ENOMEM;
}

static int try_later(struct lb_ask *ask);

static void try_again(void *arg)
{
	struct lb_ask *ask = arg;
	bool is_refused = false;
	int err;

	pthread_mutex_lock(&lock);
	if (ask->state == ASK_CANCELLED) {
		end(ask);
	} else {
		err = try(ask);
		if (is_for_now(err))
			err = try_later(ask);
		is_refused = err != 0;
		if (is_refused)
			ask->state = ASK_DONE;
	}
	pthread_mutex_unlock(&lock);
	if (is_refused)
		finish(ask, 0);
}

static int try_later(struct lb_ask *ask)
{
	ask->state = ASK_LATER;
	return lb_service_post(try_again, ask, RETRY_NS);
}

/* Under the lock. */
static struct lb_ask *ask_new(void)
{
	struct lb_ask *ask;

	if (lb_list_is_empty(&free_asks)) {
		ask = calloc(1, sizeof(*ask));
		if (!ask)
			return NULL;
		lb_list_init(&ask->node);
	} else {
		ask = lb_entry(free_asks.next, struct lb_ask, node);
		lb_list_del(&ask->node);
	}
	ask->watch.fd = -1;
	lb_list_push(&asks, &ask->node);
	return ask;
}

static int begin(struct lb_ask *ask, const char *const names[])
{
	int i, err;

	memset(ask->names, 0, sizeof(ask->names));
	for (i = 0; i < NAMES && names[i]; i++)
		memcpy(ask->names[i], names[i],
		       strnlen(names[i], LB_PORT_NAME - 1));
	err = try(ask);
	return is_for_now(err) ? try_later(ask) : err;
}

struct lb_ask *lb_port_ask(struct lb_nic *nic, const char *const names[],
			   lb_port_fn *fn, uint32_t token)
{
	struct lb_ask *ask;
	int err = ENOMEM;

	pthread_mutex_lock(&lock);
	ask = ask_new();
	if (ask) {
		ask->nic = nic;
		ask->fn = fn;
		ask->token = token;
		err = begin(ask, names);
		if (err) {
			end(ask);
			ask = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	errno = err;
	return ask;
}

void lb_port_cancel(struct lb_ask *ask)
{
	pthread_mutex_lock(&lock);
	if (ask->state == ASK_ASKED)
		end(ask);
	else if (ask->state == ASK_LATER)
		ask->state = ASK_CANCELLED;
	pthread_mutex_unlock(&lock);
}

/* --- fork */

/*
 * A child has no name, and has asked nothing. The descriptors do not leave the
 * parent's epoll, which is still the child's too.
 */
void lb_port_fork(enum lb_fork_step step)
{
	struct lb_list *node;

	if (step == LB_FORK_BEFORE)
		pthread_mutex_lock(&lock);
	if (step == LB_FORK_CHILD) {
		for (node = used.next; node != &used; node = node->next) {
			struct lb_port *port =
				lb_entry(node, struct lb_port, node);

			port->nic = NULL;
			lb_socket_close(&port->watch.fd);
		}
		for (node = asks.next; node != &asks; node = node->next)
			lb_socket_close(
				&lb_entry(node, struct lb_ask, node)->watch.fd);
	}
	if (step != LB_FORK_BEFORE)
		pthread_mutex_unlock(&lock);
}
