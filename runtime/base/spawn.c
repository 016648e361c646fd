/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * spawn.c -- see spawn.h. A thread inherits the mask of signals and the CPUs of
 * the thread that starts it, so the mask is set around the start: no signal can
 * come to the new thread before it would have set one itself.
 */

#define _GNU_SOURCE
#include "base/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/cpu.h"
#include "base/refuse.h"
#include "rpma_rt.h"

/* A fault is reported to the thread that made it. Blocked, it would end the
 * process without the program's handler. */
static void all_but_faults(sigset_t *set)
{
	static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
				     SIGILL,  SIGTRAP, SIGSYS};
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(set, faults[i]);
}

int rt_spawn(pthread_t *thread, const char *name, int cpu, void *(*fn)(void *),
	     void *arg)
{
	sigset_t blocked;
	sigset_t before;
	int err;

	all_but_faults(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		errno = err;
		return rt_refuse_system("pthread_create");
	}
	/* it works without a name, too */
	(void)pthread_setname_np(*thread, name);
	rt_cpu_place(*thread, cpu);
	return 0;
}
