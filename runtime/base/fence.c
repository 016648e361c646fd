/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* fence.c -- the heavy half of the asymmetric fence of order.h. */

#include "base/order.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/log.h"

#define SLEEP_NS 1000000 /* longer than a store stays in a buffer */

static atomic_bool is_ready;
static atomic_bool is_refused; /* for good */
static atomic_bool is_told;    /* the refusal was logged */

void rt_fence_start(void)
{
	/* relaxed, all: the light half orders from the registration on, and
	 * every thread that reads true runs after the registration */
	if (!atomic_load_explicit(&is_refused, memory_order_relaxed) &&
	    !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
		     0, 0))
		atomic_store_explicit(&is_ready, true, memory_order_relaxed);
}

bool rt_fence_is_ready(void)
{
	/* relaxed: see rt_fence_start() */
	return atomic_load_explicit(&is_ready, memory_order_relaxed);
}

void rt_fence_heavy(void)
{
	RT_NOT_CANCELLED;
	const struct timespec nap = {.tv_nsec = SLEEP_NS};
	int err;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	err = errno;
	/* relaxed, all: a thread that reads the old values relies on the sleep.
	 * ENOMEM passes */
	if (err != ENOMEM) {
		atomic_store_explicit(&is_refused, true, memory_order_relaxed);
		atomic_store_explicit(&is_ready, false, memory_order_relaxed);
	}
	nanosleep(&nap, NULL);
}

void rt_fence_warn(void)
{
	/* relaxed, both: the line comes once, at some time */
	if (!atomic_load_explicit(&is_refused, memory_order_relaxed) ||
	    atomic_exchange_explicit(&is_told, true, memory_order_relaxed))
		return;
	RT_LOG_WARNING("the kernel refuses membarrier() from now on, so posts "
		       "cost more: allow membarrier() in the sandbox");
}
