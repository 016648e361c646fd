/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * random.c -- numbers that follow from the seed, so that a run can be repeated,
 * and numbers that nobody can foretell. Any thread.
 */

#include "base/random.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

static _Atomic uint64_t draws;

uint64_t lb_random_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t lb_random(void)
{
	/* relaxed: each draw is different, their order does not matter */
	uint64_t n = atomic_fetch_add_explicit(&draws, 1, memory_order_relaxed);

	return lb_random_mix(lb_random_mix(atomic_load_explicit(
				     &lb.seed, memory_order_relaxed)) +
			     n);
}

void lb_random_restart(void)
{
	/* relaxed: whoever needs a repeatable run does it while all is quiet */
	atomic_store_explicit(&draws, 0, memory_order_relaxed);
}

void lb_random_draw(void *buf, size_t size)
{
	uint8_t *to = buf;
	uint64_t x = lb_clock_real_now() ^ (uint64_t)getpid() << 32;
	ssize_t got = getrandom(buf, size, 0);
	size_t i;

	/* where the kernel does not give any: the time and the process */
	for (i = got > 0 ? (size_t)got : 0; i < size; i++) {
		x = lb_random_mix(x);
		to[i] = (uint8_t)x;
	}
}
