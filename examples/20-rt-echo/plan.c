/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * plan.c: the number of threads, and which threads may spin. A spinning thread
 * without a separate CPU only delays the thread that the spinning thread waits
 * for.
 */

#include "options.h"

#include <stdio.h>

static unsigned at_least_one(unsigned n)
{
	return n ? n : 1;
}

static unsigned at_most(unsigned n, unsigned max)
{
	return n < max ? n : max;
}

/* Lowers the larger number first, so both numbers reach one together. */
static void cut(struct options *o, unsigned ends, unsigned cpus)
{
	while (o->pollers + ends * o->workers > cpus &&
	       (o->workers > 1 || o->pollers > 1)) {
		if (o->workers >= o->pollers && o->workers > 1)
			o->workers--;
		else
			o->pollers--;
	}
}

static void say_cut(const struct options *o, unsigned pollers, unsigned workers,
		    unsigned cpus)
{
	if (o->pollers < pollers)
		fprintf(stderr, "rt-echo: %u CPUs: pollers cut from %u to %u\n",
			cpus, pollers, o->pollers);
	if (o->workers < workers)
		fprintf(stderr, "rt-echo: %u CPUs: workers cut from %u to %u\n",
			cpus, workers, o->workers);
}

void options_plan(struct options *options, unsigned cpus)
{
	struct options *o = options;
	unsigned ends = o->role == ROLE_BOTH ? 2 : 1;
	unsigned pollers = o->pollers, workers = o->workers;

	if (o->is_manual)
		o->pollers = 0;
	else if (!o->pollers)
		o->pollers = at_most(at_least_one(cpus / 4), 4);
	if (!o->workers) {
		unsigned rest = cpus > o->pollers ? cpus - o->pollers : 1;
		o->workers = at_most(at_least_one(rest / ends), 8);
	}
	/* a worker without a connection would only disturb the others */
	if (o->role != ROLE_SERVER && !workers)
		o->workers = at_most(o->workers, o->connections);
	if (o->is_manual)
		o->workers = at_most(o->workers, at_least_one(cpus / ends));
	else
		cut(o, ends, cpus);
	say_cut(o, pollers, workers, cpus);

	/* with fewer CPUs than threads, threads sleep instead */
	o->pollers_spin = o->pollers <= cpus;
	o->workers_spin = o->pollers + ends * o->workers <= cpus;
}
