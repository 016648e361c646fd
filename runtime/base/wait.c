/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wait.c -- how calls wait, and calls that another thread runs; see wait.h. Any
 * thread that may wait.
 */

#include "base/wait.h"

#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/self.h"

/* ----------------------------------------------------------------- wait --- */

/* a poller with pending messages is logged if the owner does not run the poller
 * for this time */
#define STALL_NS 1000000000u

void rt_wait_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void wait_sleep_for(pthread_cond_t *cond, pthread_mutex_t *lock, long ns)
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

static uint32_t wait_turns_of(const struct rt_owned *owned)
{
	/* relaxed: only whether the count changes matters */
	return atomic_load_explicit(&owned->turns, memory_order_relaxed);
}

static bool wait_is_suspect(struct rt_owned *owned)
{
	char name[RT_THREAD_NAME];
	pid_t tid;

	return !rt_mpsc_is_empty_mt(&owned->inbox->shared) &&
	       rt_owner_is_other(owned, name, &tid);
}

static void wait_log_stall(struct rt_owned *owned)
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

/* Chooses, in turn, the next suspect among the pollers, and watches the suspect
 * from now on. */
static void wait_suspect_next(struct rt_wait *wait, uint64_t now)
{
	struct rt_owned *const last = wait->suspect;
	struct rt_owned *owned = wait->pollers;
	uint64_t which = wait->which;
	bool is_behind = last == NULL;

	wait->suspect = NULL;
	for (; which != 0 && owned != NULL; owned = owned->next, which >>= 1) {
		/* the first suspect behind the last suspect, else the first
		 * suspect of all */
		if ((which & 1) && (wait->suspect == NULL || is_behind) &&
		    wait_is_suspect(owned)) {
			wait->suspect = owned;
			if (is_behind)
				break;
		}
		is_behind |= owned == last;
	}
	if (wait->suspect == NULL)
		return;
	wait->turns = wait_turns_of(wait->suspect);
	wait->since_ns = now;
}

/* Watches the pollers on which the call depends: logs once that a poller has
 * work and is not run by its owner. */
static void wait_watch(struct rt_wait *wait)
{
	uint64_t now = rt_now_ns();

	if (wait->is_logged)
		return;
	if (wait->suspect == NULL || !wait_is_suspect(wait->suspect) ||
	    wait_turns_of(wait->suspect) != wait->turns) {
		wait_suspect_next(wait, now);
	} else if (now - wait->since_ns >= STALL_NS) {
		wait->is_logged = true;
		wait_log_stall(wait->suspect);
	}
}

/* -------------------------------------------------------------- waiting --- */

bool rt_wait_visit(struct rt_owned *first, uint64_t which)
{
	bool is_any = false;

	for (; which != 0 && first != NULL; first = first->next, which >>= 1) {
		if (which & 1)
			is_any |= rt_owner_visit(first);
	}
	return is_any;
}

bool rt_wait_run(struct rt_owned *known, struct rt_owned *first, uint64_t which)
{
	bool is_any = rt_owner_run_only(known);

	if (is_any) {
		/* no visit: the poller has an owner. A visit reads words of all
		 * pollers in front of the poller, which other threads write */
		which &= ~(UINT64_C(1) << known->index);
	} else {
		is_any = rt_owner_has_any();
		rt_owner_run_all();
	}
	return rt_wait_visit(first, which) || is_any;
}

void rt_wait_step(struct rt_wait *wait, pthread_cond_t *cond,
		  pthread_mutex_t *lock)
{
	assert(!rt_self_is_poller());
	if (!rt_owner_has_any() && wait->pollers == NULL) {
		pthread_cond_wait(cond, lock);
		return;
	}
	wait->has_run = !wait->has_run;
	/* the step before ran pollers, and the wait is not over */
	if (!wait->has_run) {
		wait_sleep_for(cond, lock, wait->nap_ns);
		return;
	}
	pthread_mutex_unlock(lock);
	wait->nap_ns = rt_wait_run(NULL, wait->pollers, wait->which)
			       ? RT_WAIT_NS
			       : RT_WAIT_LOOK_NS;
	if (wait->pollers != NULL)
		wait_watch(wait);
	pthread_mutex_lock(lock);
}

void rt_wait_nap(void)
{
	const struct timespec nap = {.tv_nsec = RT_WAIT_NS};

	rt_owner_run_all();
	nanosleep(&nap, NULL);
}

/* ----------------------------------------------------------------- call --- */

static void call_run(struct rt_msg *msg, void *owner)
{
	struct rt_call *call = (struct rt_call *)msg;
	int result = call->fn(call->arg);

	(void)owner;
	/* signalled under the lock: the waiter may free the call as soon as the
	 * waiter has the lock */
	pthread_mutex_lock(&call->lock);
	call->result = result;
	call->done = true;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void rt_call_send(struct rt_call *call, struct rt_inbox *inbox,
		  int (*fn)(void *arg), void *arg)
{
	*call = (struct rt_call){.msg.fn = call_run, .fn = fn, .arg = arg};
	pthread_mutex_init(&call->lock, NULL);
	rt_wait_cond_init(&call->changed);
	rt_inbox_push_mt(inbox, &call->msg);
}

static int call_end(struct rt_call *call)
{
	pthread_mutex_unlock(&call->lock);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
	return call->result;
}

int rt_call_wait(struct rt_call *call, struct rt_owned *poller)
{
	struct rt_wait wait = {.pollers = poller, .which = RT_WAIT_ONE};

	pthread_mutex_lock(&call->lock);
	while (!call->done)
		rt_wait_step(&wait, &call->changed, &call->lock);
	return call_end(call);
}

int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg)
{
	struct rt_call call;

	rt_call_send(&call, inbox, fn, arg);
	if (rt != NULL)
		return rt_call_wait(&call, NULL);
	pthread_mutex_lock(&call.lock);
	while (!call.done)
		pthread_cond_wait(&call.changed, &call.lock);
	return call_end(&call);
}
