/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* wait.c -- see wait.h. Any thread that may wait. */

#include "base/wait.h"

#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/self.h"

/* between two looks at whom a poller belongs to */
/* a poller that has something to do and is not run for so long is logged */
#define STALL_NS 1000000000u

void rt_wait_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void sleep_for(pthread_cond_t *cond, pthread_mutex_t *lock, long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(cond, lock, &until);
}

/* ----------------------------------------------- a poller that stalls --- */

static uint32_t turns_of(const struct rt_owned *owned)
{
	/* relaxed: whether it changes is all that is asked */
	return atomic_load_explicit(&owned->turns, memory_order_relaxed);
}

static bool is_suspect(struct rt_owned *owned)
{
	char name[RT_THREAD_NAME];
	pid_t tid;

	return !rt_mpsc_is_empty_mt(&owned->inbox->shared) &&
	       rt_owner_is_other(owned, name, &tid);
}

static void log_stall(struct rt_owned *owned)
{
	char name[RT_THREAD_NAME];
	pid_t tid;

	if (rt_owner_is_other(owned, name, &tid))
		RT_LOG_WARNING("poller %d belongs to thread %s (%d), which has "
			       "not run it for a second: a call waits for it. "
			       "Run it there, or let it go with "
			       "rpma_rt_poller_release()",
			       owned->index, name, (int)tid);
}

/* The next one that is awaited, and after the last the first. */
static struct rt_owned *next_of(const struct rt_wait *wait,
				const struct rt_owned *owned)
{
	if (!wait->is_for_all || owned == NULL || owned->next == NULL)
		return wait->pollers;
	return owned->next;
}

/* Watches the next awaited poller from now on, if there is one. */
static void suspect_next(struct rt_wait *wait, uint64_t now)
{
	struct rt_owned *first = next_of(wait, wait->suspect);
	struct rt_owned *owned = first;

	wait->suspect = NULL;
	do {
		if (is_suspect(owned)) {
			wait->suspect = owned;
			wait->turns = turns_of(owned);
			wait->since_ns = now;
			return;
		}
		owned = next_of(wait, owned);
	} while (owned != first);
}

/* Is a poller that is awaited not run by the thread that it belongs to? Says
 * so once. */
static void watch(struct rt_wait *wait)
{
	uint64_t now = rt_now_ns();

	if (wait->is_logged)
		return;
	if (wait->suspect == NULL || !is_suspect(wait->suspect) ||
	    turns_of(wait->suspect) != wait->turns) {
		suspect_next(wait, now);
	} else if (now - wait->since_ns >= STALL_NS) {
		wait->is_logged = true;
		log_stall(wait->suspect);
	}
}

/* -------------------------------------------------------------- waiting --- */

/* A round of each awaited poller that belongs to nobody; is there one? */
static bool visit(const struct rt_wait *wait)
{
	struct rt_owned *owned = wait->pollers;
	bool is_any = false;

	for (; owned != NULL; owned = wait->is_for_all ? owned->next : NULL)
		is_any |= rt_owner_visit(owned);
	return is_any;
}

void rt_wait_step(struct rt_wait *wait, pthread_cond_t *cond,
		  pthread_mutex_t *lock)
{
	bool is_running = rt_owner_has_any();

	assert(!rt_self_is_poller());
	if (!is_running && wait->pollers == NULL) {
		pthread_cond_wait(cond, lock);
		return;
	}
	wait->has_run = !wait->has_run;
	if (!wait->has_run) { /* in the step before, and it is not over */
		sleep_for(cond, lock, wait->nap_ns);
		return;
	}
	pthread_mutex_unlock(lock);
	rt_owner_run_all();
	if (wait->pollers != NULL) {
		is_running |= visit(wait);
		watch(wait);
	}
	wait->nap_ns = is_running ? RT_WAIT_NS : RT_WAIT_LOOK_NS;
	pthread_mutex_lock(lock);
}

void rt_wait_nap(void)
{
	const struct timespec nap = {.tv_nsec = RT_WAIT_NS};

	rt_owner_run_all();
	nanosleep(&nap, NULL);
}

bool rt_wait_has_pollers(void)
{
	return rt_owner_has_any();
}

void rt_wait_run(void)
{
	rt_owner_run_all();
}
