/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.c -- the mode in which a progress thread executes: later than the
 * post, QPs in random order, messages in random slices. It finds faults that
 * the inline mode cannot show: buffers used again before their completion, data
 * that is there before the completion is, completions of QPs in another order.
 */

#include "exec/thread.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/random.h"
#include "base/service.h"
#include "base/turn.h"
#include "object/limits.h"
#include "qp/qp.h"

#define MAX_NAP_NS 50000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t rested = PTHREAD_COND_INITIALIZER;
static bool is_started;
static bool is_running;		       /* a slice */
static struct lb_qp *queue[LB_MAX_QP]; /* QPs with work, in no order */
static unsigned queued;
static void (*execute)(struct lb_qp *qp, uint64_t budget); /* under lock */

/* --- the queue; lock held */

static void push(struct lb_qp *qp)
{
	if (qp->run_queued)
		return;
	qp->run_queued = true;
	queue[queued++] = qp;
}

static struct lb_qp *pick(void)
{
	struct lb_qp **at = &queue[lb_random() % queued];
	struct lb_qp *qp = *at;

	*at = queue[--queued];
	qp->run_queued = false;
	return qp;
}

/* --- execution */

/* Bytes of one slice: often tiny, sometimes whole messages. */
static uint64_t slice(void)
{
	uint64_t r = lb_random();

	switch (r & 3) {
	case 0:
		return 1 + (r >> 8) % 64;
	case 1:
		return 1 + (r >> 8) % 4096;
	default:
		return 1 + (r >> 8) % (1 << 20);
	}
}

/* Sometimes be late. */
static void dawdle(void)
{
	uint64_t r = lb_random();
	struct timespec nap = {.tv_nsec = (long)((r >> 16) % MAX_NAP_NS)};

	if (!(r & 63))
		nanosleep(&nap, NULL);
	else if (!(r & 3))
		sched_yield();
}

bool lb_thread_step(void)
{
	void (*fn)(struct lb_qp *qp, uint64_t budget);
	struct lb_qp *qp = NULL;

	pthread_mutex_lock(&lock);
	fn = execute;
	if (queued)
		qp = pick();
	pthread_mutex_unlock(&lock);
	if (qp)
		fn(qp, slice());
	return qp;
}

bool lb_thread_has_work(void)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = queued;
	pthread_mutex_unlock(&lock);
	return has;
}

static void *progress(void *arg)
{
	uint64_t now;

	(void)arg;
	lb_turn_set_slice(true);
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!queued || lb_clock_is_virtual(&now))
			pthread_cond_wait(&wake, &lock);
		is_running = true;
		pthread_mutex_unlock(&lock);
		dawdle();
		lb_thread_step();
		pthread_mutex_lock(&lock);
		is_running = false;
		pthread_cond_broadcast(&rested);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

void lb_thread_add(struct lb_qp *qp,
		   void (*fn)(struct lb_qp *qp, uint64_t budget))
{
	uint64_t now;

	pthread_mutex_lock(&lock);
	if (!is_started)
		is_started =
			!lb_service_spawn(progress, "lb-progress", NULL, NULL);
	execute = fn; /* it is always the same */
	push(qp);
	if (!lb_clock_is_virtual(&now))
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

void lb_thread_wake(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

void lb_thread_rest(void)
{
	LB_NOT_CANCELLED;

	pthread_mutex_lock(&lock);
	while (is_running)
		pthread_cond_wait(&rested, &lock);
	pthread_mutex_unlock(&lock);
}

void lb_thread_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE) {
		pthread_mutex_lock(&lock);
		return;
	}
	if (step == LB_FORK_CHILD) {
		is_started = false; /* the thread is the parent's, */
		is_running = false; /* and so are those who wait for it: */
		wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
		rested = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
		while (queued)
			queue[--queued]->run_queued = false;
	}
	pthread_mutex_unlock(&lock);
}
