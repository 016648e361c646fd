/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.c -- the loop of the control thread (and the resolver's), tickets.
 */

#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/runtime.h"
#include "base/self.h"
#include "poller/poller.h"
#include "poller/manual.h"

#define ASSIST_NS 100000 /* between two looks of who waits in manual mode */

/* ----------------------------------------------------------- the thread --- */

static void sleep_on_bell(struct rt_thread *control)
{
	struct pollfd fd = {.fd = rt_bell_fd(&control->bell), .events = POLLIN};

	rt_bell_prepare(&control->bell);
	/* acquire: pairs with the release in rt_thread_stop() */
	if (rt_inbox_is_empty(&control->inbox) &&
	    !atomic_load_explicit(&control->stopping, memory_order_acquire))
		poll(&fd, 1, -1);
	rt_bell_cancel(&control->bell);
}

static void *control_main(void *arg)
{
	struct rt_thread *control = arg;
	bool stopping;

	for (;;) {
		/* acquire: pairs with the release in rt_thread_stop(). Before
		 * the inbox is run: what was sent before the stop is in it */
		stopping = atomic_load_explicit(&control->stopping,
						memory_order_acquire);
		if (rt_inbox_run_owner(&control->inbox, control->rt) > 0)
			continue;
		if (stopping)
			break;
		sleep_on_bell(control);
	}
	return NULL;
}

int rt_thread_start(struct rt_thread *control, struct rpma_rt *rt)
{
	int ret;

	control->rt = rt;
	/* relaxed: the thread's creation orders it */
	atomic_store_explicit(&control->stopping, false, memory_order_relaxed);
	ret = rt_bell_init(&control->bell);
	if (ret)
		return ret;
	ret = rt_inbox_init(&control->inbox, &control->bell);
	if (ret)
		goto err_fini_bell;
	ret = RPMA_E_PROVIDER;
	if (pthread_create(&control->thread, NULL, control_main, control))
		goto err_fini_inbox;
	return 0;
err_fini_inbox:
	rt_inbox_fini(&control->inbox);
err_fini_bell:
	rt_bell_fini(&control->bell);
	return ret;
}

void rt_thread_stop(struct rt_thread *control)
{
	/* release: pairs with the acquires above */
	atomic_store_explicit(&control->stopping, true, memory_order_release);
	rt_bell_ring(&control->bell);
	pthread_join(control->thread, NULL);
	rt_inbox_fini(&control->inbox);
	rt_bell_fini(&control->bell);
}

/* -------------------------------------------------------------- tickets --- */

struct ticket {
	struct rt_msg msg;
	int (*fn)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
	int result;
};

static void run_ticket(struct rt_msg *msg, void *owner)
{
	struct ticket *ticket = (struct ticket *)msg;
	int result = ticket->fn(ticket->arg);

	(void)owner;
	/* signalled under the lock: the waiter may free it once it has it */
	pthread_mutex_lock(&ticket->lock);
	ticket->result = result;
	ticket->done = true;
	pthread_cond_signal(&ticket->changed);
	pthread_mutex_unlock(&ticket->lock);
}

void rt_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void rt_wait_a_little(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ASSIST_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(cond, lock, &until);
}

int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg)
{
	struct ticket ticket = {.msg.fn = run_ticket, .fn = fn, .arg = arg};
	bool manual = rt != NULL && rt->cfg.mode == RPMA_RT_MODE_MANUAL;

	if (rt_self_poller() != NULL && &rt_self_poller()->inbox == inbox)
		return fn(arg);
	pthread_mutex_init(&ticket.lock, NULL);
	rt_cond_init(&ticket.changed);
	rt_inbox_push_mt(inbox, &ticket.msg);
	pthread_mutex_lock(&ticket.lock);
	while (!ticket.done) {
		if (!manual) {
			pthread_cond_wait(&ticket.changed, &ticket.lock);
			continue;
		}
		pthread_mutex_unlock(&ticket.lock);
		rt_manual_assist(rt);
		pthread_mutex_lock(&ticket.lock);
		if (!ticket.done)
			rt_wait_a_little(&ticket.changed, &ticket.lock);
	}
	pthread_mutex_unlock(&ticket.lock);
	pthread_cond_destroy(&ticket.changed);
	pthread_mutex_destroy(&ticket.lock);
	return ticket.result;
}
