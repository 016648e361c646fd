/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Counts forks, and keeps the locks free in a child. See fork.h. */

#include "fork.h"

#include <pthread.h>

#include "cq_table.h"
#include "flush.h"
#include "log.h"
#include "log_default.h"

atomic_uint rpma__forks;

void rpma__log_not_here(void)
{
	RPMA_LOG_ERROR(
		"an object was made before a fork, in another process: fork "
		"first (daemon() forks too), or make a new object here");
}

/*
 * Takes all locks. No thread holds one of the locks while waiting for another.
 */
static void before(void)
{
	rpma__log_default_lock();
	rpma__cq_table_lock();
	rpma__flush_lock();
}

static void in_parent(void)
{
	rpma__flush_unlock();
	rpma__cq_table_unlock();
	rpma__log_default_unlock();
}

static void in_child(void)
{
	/* relaxed: nothing else runs in the child yet */
	(void)atomic_fetch_add_explicit(&rpma__forks, 1, memory_order_relaxed);
	in_parent();
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before, in_parent, in_child);
}
