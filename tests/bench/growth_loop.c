/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_growth_loop NAME COUNT [KIND COUNT]...: makes each public call of a
 * runtime in manual mode, of those with NAME in their name, beside COUNT
 * objects of each kind, or of another number of the kinds that are named, three
 * times. bench_growth runs it under callgrind, which counts the instructions of
 * measured_call().
 *
 * Left out: calls that read a word of a handle, print a name or fill in a
 * configuration (*_2str, *_cfg_init, conn_get_*, completion_*, again_*), calls
 * that begin or end the runtime or a set of shards, adopted connections, which
 * end where the program of librpma does, and events that are fed in.
 */

#include <string.h>
#include <unistd.h>

#include "growth.h"

#if defined(__has_include) && __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else /* bench_growth skips */
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_ZERO_STATS		((void)0)
#define CALLGRIND_DUMP_STATS_AT(name)	((void)(name))
#endif

#define TIMES 3

__attribute__((noinline)) void measured_call(const struct growth_call *call,
					     struct growth *g);

void measured_call(const struct growth_call *call, struct growth *g)
{
	call->call(g);
}

static void make(const struct growth_call *call, struct growth *g,
		 bool is_measured)
{
	if (call->before != NULL)
		call->before(g);
	if (is_measured) {
		CALLGRIND_ZERO_STATS;
		measured_call(call, g);
		CALLGRIND_DUMP_STATS_AT(call->name);
	} else {
		call->call(g);
	}
	if (call->after != NULL)
		call->after(g);
}

static uint32_t *count_of(struct growth_counts *counts, const char *kind)
{
	const struct {
		const char *name;
		uint32_t *count;
	} kinds[] = {
		{"connections", &counts->conns},
		{"routes", &counts->routes},
		{"srqs", &counts->srqs},
		{"listeners", &counts->listeners},
		{"queues", &counts->queues},
		{"futures", &counts->futures},
		{"leases", &counts->leases},
		{"timers", &counts->timers},
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, kind) == 0)
			return kinds[i].count;
	}
	fprintf(stderr, "no kind of object: %s\n", kind);
	exit(2);
}

int main(int argc, char **argv)
{
	static struct growth g;
	uint32_t count = argc > 2 ? (uint32_t)atol(argv[2]) : 10;
	const struct growth_call *call;
	bool is_dump;
	int i;

	g.counts = (struct growth_counts){count, count, count, count,
					  count, count, count, count};
	for (i = 3; i + 1 < argc; i += 2)
		*count_of(&g.counts, argv[i]) = (uint32_t)atol(argv[i + 1]);
	growth_open(&g);
	CALLGRIND_START_INSTRUMENTATION;
	for (call = growth_calls; call->name != NULL; call++) {
		if (argc > 1 && strstr(call->name, argv[1]) == NULL)
			continue;
		/* it takes long, and grows in any case */
		is_dump = strcmp(call->name, "rpma_rt_dump") == 0;
		if (!is_dump)
			make(call, &g, false); /* symbols are bound */
		for (i = 0; i < (is_dump ? 1 : TIMES); i++)
			make(call, &g, true);
	}
	/* what was made goes with the process */
	fflush(stdout);
	_exit(0);
}
