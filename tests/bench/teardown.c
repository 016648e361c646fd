/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_teardown [--seconds S] [--cpus A,B] quiet|disturbed COUNT
 *
 * The 99th percentile, over the writes of one busy connection, of the time
 * from the call that posts to the completion in its consumer's hands; COUNT
 * other connections of the same poller stand by, or are all torn down
 * meanwhile on a device whose calls to modify and to destroy sleep for a
 * millisecond, as a kernel's do. The runtime's defaults: its poller, like the
 * consumer, spins for a while and sleeps; nothing is pinned to --cpus.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench.h"
#include "busy.h"
#include "crowd.h"
#include "rpma_loopback.h"

#define KERNEL_NS 1000000

struct bench {
	struct stage stage;
	struct busy busy;
	struct crowd others;
};

/* What a kernel adds to these calls. */
static void as_a_kernel(enum rpma_loopback_point point, const void *object,
			void *arg)
{
	(void)object;
	(void)arg;
	if (point == RPMA_LOOPBACK_MODIFY || point == RPMA_LOOPBACK_DESTROY)
		bench_sleep_until(bench_now_ns() + KERNEL_NS);
}

static bool are_closed(void *arg)
{
	return crowd_is_closed(arg);
}

static void measure(struct bench *bench, double seconds, bool disturbed)
{
	prctl(PR_SET_TIMERSLACK, 1ul);
	rpma_loopback_set_hook(as_a_kernel, NULL);
	busy_start(&bench->busy);
	if (disturbed)
		crowd_close(&bench->others);
	busy_write(&bench->busy, seconds, disturbed ? are_closed : NULL,
		   &bench->others);
	busy_stop(&bench->busy);
	rpma_loopback_set_hook(NULL, NULL);
	if (!disturbed)
		crowd_close(&bench->others);
	crowd_end(&bench->others);
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {.pollers = 1,
				      .mode = RPMA_RT_MODE_ADAPTIVE,
				      .depth = BUSY_DEPTH};
	struct bench_args args = bench_parse(argc, argv);
	static struct bench bench;

	if (args.count != 2)
		bench_fail("usage: bench_teardown [--seconds S] [--cpus A,B] "
			   "quiet|disturbed COUNT");
	stage_open(&bench.stage, &cfg);
	busy_open(&bench.busy, &bench.stage, false);
	crowd_open(&bench.others, &bench.stage.world, 0,
		   (uint32_t)atoi(args.words[1]), NULL);
	measure(&bench, args.seconds, strcmp(args.words[0], "disturbed") == 0);
	bench_report(args.words[0], busy_percentile(&bench.busy, 0.99), "us");
	bench_report("median", busy_percentile(&bench.busy, 0.5), "us");
	bench_report("longest", busy_percentile(&bench.busy, 0.99999), "us");
	bench_report("writes", (double)bench.busy.posted, "count");
	busy_close(&bench.busy);
	stage_close(&bench.stage);
	return 0;
}
