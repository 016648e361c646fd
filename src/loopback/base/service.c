/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * service.c -- the service thread: runs jobs when their time has come. The
 * first job starts it, detached, with signals blocked, and it never ends. Under
 * the deterministic scheduler it sleeps, and the scheduler runs the jobs.
 */

#include "base/service.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/turn.h"

struct job {
	uint64_t when;
	uint64_t order; /* of posting, for jobs of the same time */
	void (*fn)(void *arg);
	void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake; /* initialised with the thread: monotonic */
static pthread_cond_t rested = PTHREAD_COND_INITIALIZER;
static bool is_started;
static bool is_running;	 /* a job */
static struct job *heap; /* the earliest is first */
static size_t njobs, room;
static uint64_t orders;

/* --- the heap; lock held */

static bool is_before(const struct job *a, const struct job *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void swap(size_t a, size_t b)
{
	struct job tmp = heap[a];

	heap[a] = heap[b];
	heap[b] = tmp;
}

static int insert(const struct job *job)
{
	size_t i = njobs;

	if (njobs == room) {
		size_t more = room ? 2 * room : 64;
		struct job *bigger = realloc(heap, more * sizeof(*heap));

		if (!bigger)
			return ENOMEM;
		heap = bigger;
		room = more;
	}
	heap[njobs++] = *job;
	for (; i && is_before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
	return 0;
}

static struct job remove_first(void)
{
	struct job first = heap[0];
	size_t i = 0, child;

	heap[0] = heap[--njobs];
	while ((child = 2 * i + 1) < njobs) {
		if (child + 1 < njobs &&
		    is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &heap[i]))
			break;
		swap(i, child);
		i = child;
	}
	return first;
}

/* --- the thread */

static void wait_until(uint64_t when)
{
	struct timespec ts = {
		.tv_sec = (time_t)(when / 1000000000u),
		.tv_nsec = (long)(when % 1000000000u),
	};

	pthread_cond_timedwait(&wake, &lock, &ts);
}

static void *service(void *arg)
{
	struct job job;
	uint64_t now;

	(void)arg;
	lb_turn_set_slice(true);
	pthread_mutex_lock(&lock);
	for (;;) {
		if (!njobs || lb_clock_is_virtual(&now)) {
			pthread_cond_wait(&wake, &lock);
			continue;
		}
		if (heap[0].when > lb_clock_real_now()) {
			wait_until(heap[0].when);
			continue;
		}
		job = remove_first();
		is_running = true;
		pthread_mutex_unlock(&lock);
		job.fn(job.arg);
		pthread_mutex_lock(&lock);
		is_running = false;
		pthread_cond_broadcast(&rested);
	}
	return NULL;
}

int lb_service_spawn(void *(*fn)(void *), const char *name, void *arg,
		     pthread_t *thread)
{
	pthread_attr_t attr;
	pthread_t detached;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* memory/lost.c */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	if (!thread) {
		thread = &detached;
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	}
	err = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err) /* not the name of the thread that was first to need it */
		(void)pthread_setname_np(*thread, name);
	return err;
}

/* lock held */
static int start(void)
{
	pthread_condattr_t attr;
	int err;

	if (is_started)
		return 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	pthread_condattr_destroy(&attr);
	err = lb_service_spawn(service, "lb-service", NULL, NULL);
	is_started = !err;
	return err;
}

int lb_service_post(void (*fn)(void *arg), void *arg, uint64_t delay_ns)
{
	struct job job = {
		.when = lb_clock_now() + delay_ns,
		.fn = fn,
		.arg = arg,
	};
	int err;

	pthread_mutex_lock(&lock);
	job.order = orders++;
	err = start();
	if (!err)
		err = insert(&job);
	if (!err && !lb_clock_is_virtual(&(uint64_t){0}))
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	return err ? ENOMEM : 0;
}

void lb_service_wake(void)
{
	pthread_mutex_lock(&lock);
	if (is_started)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

void lb_service_rest(void)
{
	LB_NOT_CANCELLED;

	pthread_mutex_lock(&lock);
	while (is_running)
		pthread_cond_wait(&rested, &lock);
	pthread_mutex_unlock(&lock);
}

void lb_service_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE) {
		pthread_mutex_lock(&lock);
		return;
	}
	if (step == LB_FORK_CHILD) {
		is_started = false; /* the thread is the parent's, */
		is_running = false; /* and so are those who wait for it: */
		rested = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
		njobs = 0;
	}
	pthread_mutex_unlock(&lock);
}

bool lb_service_has_work(void)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = njobs;
	pthread_mutex_unlock(&lock);
	return has;
}

bool lb_service_step(void)
{
	struct job job = {0};

	pthread_mutex_lock(&lock);
	if (njobs)
		job = remove_first();
	pthread_mutex_unlock(&lock);
	if (!job.fn)
		return false;
	lb_clock_advance(job.when);
	job.fn(job.arg);
	return true;
}
