/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* channel.c -- event channels: their descriptor, order, acknowledgement. */

#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_alarm(int sig)
{
	(void)sig;
}

/* get: a signal ends the wait */
TEST_WITH(get__signal_EINTR, reset, reset)
{
	struct itimerval often = {{0, 1000}, {0, 1000}};
	struct itimerval never = {0};
	struct sigaction act = {.sa_handler = on_alarm};
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_event *event;

	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_fails(rdma_get_cm_event(ch, &event), EINTR);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	rdma_destroy_event_channel(ch);
}

/* the descriptor stays readable until the last event is read */
TEST_WITH(fd__two_events_READABLE_until_last, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_cm_id *a = new_id(ch);
	struct rdma_cm_id *b = new_id(ch);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_resolve_addr(a, NULL, SA(addr), TIMEOUT_MS), 0);
	assert_int_equal(rdma_resolve_addr(b, NULL, SA(addr), TIMEOUT_MS), 0);
	event = next_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, a);
	rdma_ack_cm_event(event);
	assert_true(is_readable(ch));
	event = next_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, b);
	rdma_ack_cm_event(event);
	assert_false(is_readable(ch));
	rdma_destroy_id(a);
	rdma_destroy_id(b);
	rdma_destroy_event_channel(ch);
}

/* descriptors are not inherited across exec */
TEST_WITH(fd__new_CLOEXEC, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();

	assert_true(fcntl(ch->fd, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
	rdma_destroy_event_channel(ch);
}

/* get, ack: what is no channel, or no event, is refused */
TEST_WITH(ack__not_an_event_EINVAL, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_event *event;
	_Alignas(16) char junk[512];

	memset(junk, 0x5a, sizeof(junk));
	assert_fails(rdma_get_cm_event(NULL, &event), EINVAL);
	assert_fails(rdma_get_cm_event(ch, NULL), EINVAL);
	rdma_destroy_event_channel(ch);
	assert_fails(rdma_ack_cm_event(NULL), EINVAL);
	assert_fails(rdma_ack_cm_event((void *)junk), EINVAL);
	assert_fails(rdma_ack_cm_event((void *)(junk + 1)), EINVAL);
}

static uint64_t misuses(void)
{
	struct rpma_loopback_stats stats;

	rpma_loopback_get_stats(&stats);
	return stats.misuses;
}

struct acker {
	struct rdma_cm_event *event;
	uint64_t misuses;
};

static void *ack_after_misuse(void *arg)
{
	struct acker *a = arg;

	while (misuses() == a->misuses)
		sched_yield();
	rdma_ack_cm_event(a->event);
	return NULL;
}

/* destroy_id: a thread that waits for itself is reported */
TEST_WITH(destroy__own_unacked_event_MISUSE, reset, reset)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_cm_id *id = new_id(ch);
	struct acker a = {.misuses = misuses()};
	pthread_t thread;

	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	a.event = next_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	pthread_create(&thread, NULL, ack_after_misuse, &a);
	assert_int_equal(rdma_destroy_id(id), 0);
	pthread_join(thread, NULL);
	assert_int_equal(misuses(), a.misuses + 1);
	rdma_destroy_event_channel(ch);
}

struct gate {
	const void *id;
	sem_t reached;
	sem_t open;
};

static void on_event(enum rpma_loopback_point point, const void *object,
		     void *arg)
{
	struct gate *g = arg;

	if (point != RPMA_LOOPBACK_CM_EVENT || object != g->id)
		return;
	sem_post(&g->reached);
	sem_wait(&g->open);
	sem_post(&g->open); /* the gate stays open */
}

static void *destroy_server(void *arg)
{
	struct pair *p = arg;

	drop_qp(p->server, p->scq);
	assert_int_equal(rdma_destroy_id(p->server), 0);
	return NULL;
}

/* Replaces the function of the C library, which the device calls: no /proc. */
__attribute__((visibility("default"))) ssize_t
readlink(const char *restrict path, char *restrict to, size_t size)
{
	(void)path, (void)to, (void)size;
	errno = ENOENT;
	return -1;
}

/* The child has a channel of its own, and a file of the program stays. */
TEST_WITH(fork__without_proc_EVENT_STAYS, reset, reset)
{
	struct rdma_event_channel *ch = new_channel(), *closed = new_channel();
	struct sockaddr_in addr = v4("127.0.0.1", 1);
	struct rdma_cm_id *id = new_id(ch);
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], closed->fd), closed->fd);
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(addr), TIMEOUT_MS), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	pid = fork();
	if (!pid) {
		char byte;

		_exit(is_readable(ch) || read(closed->fd, &byte, 1) != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	take_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(closed);
	close(ends[0]);
	close(ends[1]);
}

/* an event held up in its hook is not overtaken by the next of its id */
TEST_WITH(deliver__first_held_up_IN_ORDER, reset, reset)
{
	struct gate g;
	struct pair p;
	pthread_t thread;

	pair_connect(&p);
	g.id = p.client;
	sem_init(&g.reached, 0, 0);
	sem_init(&g.open, 0, 0);
	rpma_loopback_set_hook(on_event, &g);
	pthread_create(&thread, NULL, destroy_server, &p);
	sem_wait(&g.reached);
	assert_false(is_readable(p.cch));
	/* starts the time of TIMEWAIT_EXIT, which another thread delivers */
	assert_int_equal(rdma_disconnect(p.client), 0);
	sem_post(&g.open);
	take_event(p.cch, RDMA_CM_EVENT_DISCONNECTED);
	take_event(p.cch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	pthread_join(thread, NULL);
	p.server = NULL;
	rpma_loopback_set_hook(NULL, NULL);
	pair_teardown(&p);
	sem_destroy(&g.reached);
	sem_destroy(&g.open);
}

TEST_MAIN()
