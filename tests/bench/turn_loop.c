/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_turn_loop TURNS: so many turns of a shard with nothing to do, on one
 * connection and one queue: a round of its poller and a look into the queue.
 * bench_turn runs it under callgrind, which counts the instructions of
 * measured_turns().
 */

#include <stdlib.h>

#include "stage.h"

__attribute__((noinline)) void measured_turns(struct stage *s, long turns);

void measured_turns(struct stage *s, long turns)
{
	struct rpma_rt_completion items[8];

	while (turns-- > 0) {
		MUST(rpma_rt_poller_run(s->world.rt, 0, 32));
		CHECK(rpma_rt_queue_poll(s->aq, items, 8) == 0);
	}
}

int main(int argc, char **argv)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = 16};
	struct world_pair pair;
	struct stage s;

	stage_open(&s, &cfg);
	/* the poller is this thread's: what it waits for runs it */
	CHECK(rpma_rt_poller_run(s.world.rt, 0, 1) >= 0);
	stage_connect(&s, &pair);
	measured_turns(&s, argc > 1 ? atol(argv[1]) : 1000);
	stage_disconnect(&s, &pair);
	stage_close(&s);
	return 0;
}
