/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sleep.c -- nothing keeps the pollers awake: ping-pong of depth 1, the
 * back-stop off, four ends on four CQs of one channel. If one wake-up of a
 * poller or a consumer is lost, the test hangs.
 *
 * usage: runtime_sleep [rounds]
 */

#include "small_cq.h"
#include "stage.h"

#define DEPTH 4
#define PAIRS 2
#define ROOM  (2 * DEPTH + 2) /* of one end, so each has its own CQ */

/* There and back; the two pairs in turn, so that two CQs are always quiet. */
static void play(struct stage *s, struct world_pair *pairs, uint64_t rounds)
{
	struct world_pair *pair;
	struct world_pair back;
	uint64_t i;

	for (i = 0; i < rounds; i++) {
		pair = &pairs[i % PAIRS];
		stage_ping(s, pair, i);
		back = (struct world_pair){pair->passive, pair->active};
		MUST(rpma_rt_recv(back.passive, s->mr, 0, 64, i));
		MUST(rpma_rt_send(back.active, s->mr, 64, 64,
				  RPMA_F_COMPLETION_ALWAYS, i));
		stage_completion(s->aq, i, IBV_WC_SUCCESS);
		stage_completion(s->pq, i, IBV_WC_SUCCESS);
	}
}

int main(int argc, char **argv)
{
	static const struct stage_cfg cfg = {.pollers = 1,
					     .mode = RPMA_RT_MODE_EVENT,
					     .cq_size = ROOM,
					     .depth = DEPTH};
	uint64_t rounds = argc > 1 ? (uint64_t)atoll(argv[1]) : 500;
	struct rpma_rt_poller_stats stats;
	struct world_pair pairs[PAIRS];
	struct stage s;
	int i;

	small_cq_limit(ROOM);
	stage_open(&s, &cfg);
	for (i = 0; i < PAIRS; i++)
		stage_connect(&s, &pairs[i]);
	play(&s, pairs, rounds);
	MUST(rpma_rt_poller_get_stats(s.world.rt, 0, &stats, sizeof(stats)));
	printf("%lu rounds: sleeps %lu events %lu acks %lu\n",
	       (unsigned long)rounds, (unsigned long)stats.sleeps,
	       (unsigned long)stats.events, (unsigned long)stats.acks);
	CHECK(stats.sleeps > 0 && stats.events > 0);
	CHECK(stats.lost_events_recovered == 0 && stats.stale == 0);
	CHECK(stats.completions == 4 * rounds);
	for (i = 0; i < PAIRS; i++)
		stage_disconnect(&s, &pairs[i]);
	stage_close(&s); /* hangs if an event is not acknowledged */
	printf("ok\n");
	return 0;
}
