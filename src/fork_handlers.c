/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Handlers of fork(): the child finds every lock of librpma free, and counts
 * the fork.
 */

#include <pthread.h>

#include "cq_table.h"
#include "flush.h"
#include "fork.h"
#include "log_default.h"

/*
 * Takes all locks. No thread holds one of the locks while waiting for another.
 */
static void fork_before(void)
{
	rpma__log_default_lock();
	rpma__cq_table_lock();
	rpma__flush_lock();
}

static void fork_in_parent(void)
{
	rpma__flush_unlock();
	rpma__cq_table_unlock();
	rpma__log_default_unlock();
}

static void fork_in_child(void)
{
	/* relaxed: nothing else runs in the child yet */
	(void)atomic_fetch_add_explicit(&rpma__forks, 1, memory_order_relaxed);
	rpma__cq_table_renew();
	fork_in_parent();
}

__attribute__((constructor)) static void fork_watch(void)
{
	(void)pthread_atfork(fork_before, fork_in_parent, fork_in_child);
}
