/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * spawn.h -- the threads that the library starts: each with a name, none of the
 * program's signals, and a place.
 */

#ifndef RT_BASE_SPAWN_H
#define RT_BASE_SPAWN_H

#include <pthread.h>

#define RT_SPAWN_NAME 16 /* bytes of a name, with the 0 */

/*
 * Starts fn(arg). Whatever the caller blocks, every signal is blocked in the
 * new thread but those that report a fault of the thread itself. cpu: as
 * rt_cpu_place().
 * ERRORS: RPMA_E_PROVIDER
 */
int rt_spawn(pthread_t *thread, const char *name, int cpu, void *(*fn)(void *),
	     void *arg);

#endif /* RT_BASE_SPAWN_H */
