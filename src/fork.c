/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Counting forks, and no lock that a child could find taken. See fork.h. */

#include "fork.h"

#include <pthread.h>

#include "log.h"
#include "log_default.h"

atomic_uint rpma__forks;

void rpma__log_not_here(void)
{
	RPMA_LOG_ERROR("an object of another process, from before a fork");
}

static void in_child(void)
{
	/* relaxed: nothing else runs in the child yet */
	(void)atomic_fetch_add_explicit(&rpma__forks, 1, memory_order_relaxed);
	rpma__log_default_unlock();
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(rpma__log_default_lock, rpma__log_default_unlock,
			     in_child);
}
