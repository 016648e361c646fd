/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * clock.c -- the time of the device: the system's, or the virtual time that the
 * deterministic scheduler sets. Any thread.
 */

#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

#include "base/base.h"

static _Atomic int is_virtual;
static _Atomic uint64_t virtual_now;

uint64_t lb_clock_real_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool lb_clock_is_virtual(uint64_t *now)
{
	/* acquire: pairs with the release in lb_clock_start(); it is set */
	if (lb_likely(!atomic_load_explicit(&is_virtual, memory_order_acquire)))
		return false;
	/* relaxed: one thread runs at a time, and the baton orders them */
	*now = atomic_load_explicit(&virtual_now, memory_order_relaxed);
	return true;
}

uint64_t lb_clock_now(void)
{
	uint64_t now;

	return lb_clock_is_virtual(&now) ? now : lb_clock_real_now();
}

void lb_clock_start(uint64_t now)
{
	/* relaxed: published by the release */
	atomic_store_explicit(&virtual_now, now, memory_order_relaxed);
	/* release: pairs with the acquire in lb_clock_is_virtual() */
	atomic_store_explicit(&is_virtual, 1, memory_order_release);
}

void lb_clock_stop(void)
{
	/* release: pairs with the acquire in lb_clock_is_virtual() */
	atomic_store_explicit(&is_virtual, 0, memory_order_release);
}

void lb_clock_advance(uint64_t now)
{
	/* relaxed, both: as in lb_clock_is_virtual() */
	if (now > atomic_load_explicit(&virtual_now, memory_order_relaxed))
		atomic_store_explicit(&virtual_now, now, memory_order_relaxed);
}
