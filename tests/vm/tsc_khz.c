/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The frequency of this machine's time stamp counter, measured and printed in
 * kHz. An emulated processor has the counter of its host, and the kernel there
 * would measure it while it boots. A pause of the emulation at the wrong moment
 * makes the clock of such a guest fast, so "run" passes the frequency.
 */

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define SPAN_NS 100000000LL
#define LOOKS	1000

/* An instant by both clocks. */
struct instant {
	uint64_t ticks;
	int64_t ns;
};

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The instant of the look at which least time passed between the two reads of
 * the counter: a thread that loses its CPU in one look does not in all. */
static struct instant look(void)
{
	struct instant best = {0, 0};
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < LOOKS; i++) {
		uint64_t before = __rdtsc();
		int64_t ns = clock_ns();
		uint64_t after = __rdtsc();

		if (after - before < shortest) {
			shortest = after - before;
			best.ticks = before + shortest / 2;
			best.ns = ns;
		}
	}
	return best;
}

int main(void)
{
	struct timespec span = {.tv_nsec = SPAN_NS};
	struct instant from = look(), to;

	nanosleep(&span, NULL);
	to = look();
	printf("%.0f\n", (double)(to.ticks - from.ticks) * 1e6 /
				 (double)(to.ns - from.ns));
	return 0;
}
