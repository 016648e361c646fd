/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * barrier.c -- waits for every thread that may still use a key taken away. Each
 * executing thread has a word, odd while the thread may hold a key. The thread
 * that took a key away waits for the odd words, so the wait is as long as the
 * list of threads, however many queue pairs there are.
 * doc/protocols/loopback.md, [BARRIER].
 */

#include "memory/barrier.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/list.h"
#include "base/log.h"
#include "base/process.h"

#define SPINS 1000 /* looks at a word before the processor is given away */

_Thread_local struct lb_executor lb_barrier_executor;
bool lb_barrier_is_heavy;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct lb_list executors = {&executors, &executors};
static pthread_key_t at_exit;

/* --- the list */

/* The thread ends, and calls no verb, or joins the list again with a verb. */
static void leave_list(void *arg)
{
	struct lb_executor *self = arg;

	pthread_mutex_lock(&lock);
	lb_list_del(&self->node);
	pthread_mutex_unlock(&lock);
	self->is_listed = false;
}

void lb_barrier_join(struct lb_executor *self)
{
	pthread_mutex_lock(&lock);
	lb_list_init(&self->node);
	lb_list_push(&executors, &self->node);
	pthread_mutex_unlock(&lock);
	self->is_listed = true;
	/* or the list would keep the memory of a thread that has ended */
	if (pthread_setspecific(at_exit, self)) {
		lb_log(0, "no memory to see the end of a thread");
		abort();
	}
}

void lb_barrier_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE) {
		pthread_mutex_lock(&lock);
		return;
	}
	if (step == LB_FORK_CHILD) {
		/* other threads, and their memory, belong to the parent */
		lb_list_init(&executors);
		lb_list_init(&lb_barrier_executor.node);
		if (lb_barrier_executor.is_listed)
			lb_list_push(&executors, &lb_barrier_executor.node);
	}
	pthread_mutex_unlock(&lock);
}

void lb_barrier_start(void)
{
	if (pthread_key_create(&at_exit, leave_list)) {
		lb_log(0, "no key of threads is left");
		abort();
	}
#ifdef __SANITIZE_THREAD__
	lb_barrier_is_heavy = true; /* TSan does not see the system call */
#else
	lb_barrier_is_heavy =
		syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
#endif
}

void lb_barrier_forget_lost(struct lb_executor *self)
{
	self->lost_from = self->lost_to = 0;
	/* relaxed: read by this thread */
	atomic_store_explicit(&self->is_lost, false, memory_order_relaxed);
}

/* --- the wait */

/* Gives each executor a fence: the word is seen, or the key is seen to be 0. */
static void fence(void)
{
	if (!lb_barrier_is_heavy &&
	    !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	lb_barrier_fence();
}

static uint32_t word_of(const struct lb_executor *e)
{
	/* acquire: pairs with the release in lb_barrier_leave() */
	return atomic_load_explicit(&e->word, memory_order_acquire);
}

void lb_barrier_wait(void)
{
	struct lb_list *node;

	pthread_mutex_lock(&lock);
	fence();
	for (node = executors.next; node != &executors; node = node->next) {
		const struct lb_executor *e =
			lb_entry(node, struct lb_executor, node);
		uint32_t then = word_of(e);
		unsigned looks = 0;

		while (then & 1 && word_of(e) == then) {
			if (looks++ < SPINS)
				lb_cpu_relax();
			else
				sched_yield();
		}
	}
	pthread_mutex_unlock(&lock);
}
