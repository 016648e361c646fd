/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * service.h -- the service thread: jobs that run when their time has come.
 */

#ifndef LB_BASE_SERVICE_H
#define LB_BASE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"

/*
 * Run fn(arg) in the service thread once delay_ns of lb_clock_now() have
 * passed. Jobs that are due run in the order of their times, one at a time,
 * with no lock held; a job may post others, and may call verbs. There is no
 * cancelling: let arg name something that can be looked up. Returns 0 or
 * ENOMEM.
 */
int lb_service_post(void (*fn)(void *arg), void *arg, uint64_t delay_ns);

bool lb_service_step(void); /* the scheduler: run the earliest job now */
bool lb_service_has_work(void);
/* Look again whether the scheduler has gone. */
void lb_service_wake(void);
/* Wait until it sees that the scheduler is on, and does nothing. */
void lb_service_rest(void);
/* A child has neither the thread nor the work of its parent. */
void lb_service_fork(enum lb_fork_step step);

/*
 * A thread that no signal interrupts; *thread is to be joined. NULL: detached,
 * for one that never ends. 0 or an errno.
 */
int lb_service_spawn(void *(*fn)(void *), const char *name, void *arg,
		     pthread_t *thread);

#endif /* LB_BASE_SERVICE_H */
