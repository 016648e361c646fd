/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * signal.c -- sends that want a completion on error only, of many connections
 * that share one CQ. Each stays below the count at which the runtime asks for
 * a completion by itself, round after round, and none runs out of credit or
 * room; then all of them die at once with all that they can have outstanding,
 * and each work request is reported once, by the device.
 *
 * usage: runtime_signal [rounds]
 */

#include <string.h>

#include "stage.h"

#define CONNS	 16
#define DEPTH	 32
#define BELOW	 (DEPTH / 2 - 1) /* sends, and nothing is signaled yet */
#define CQ_SIZE	 4096		 /* all of them, with both ends */
#define MSG_SIZE 16

struct signal {
	struct stage stage;
	struct world_pair pairs[CONNS];
};

/* Without an answer unless it fails; waits while it is refused. */
static void send_quietly(struct signal *s, int i, uint64_t context)
{
	struct rpma_rt_completion item;
	int ret;

	while ((ret = rpma_rt_send(s->pairs[i].active, s->stage.mr, 0, MSG_SIZE,
				   RPMA_F_COMPLETION_ON_ERROR, context))) {
		CHECK(ret == RPMA_E_AGAIN);
		CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
		item = world_next(s->stage.aq);
		CHECK(item.kind == RPMA_RT_WRITABLE);
	}
}

static void expect_nothing(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;

	while (rpma_rt_queue_poll(queue, &item, 1) > 0)
		CHECK(item.kind == RPMA_RT_WRITABLE);
}

/* So many messages on each connection; all of them arrive. */
static void turn(struct signal *s, int messages)
{
	struct rpma_rt_completion item;
	int i;
	int n;

	for (i = 0; i < CONNS; i++) {
		for (n = 0; n < messages; n++)
			MUST(rpma_rt_recv(s->pairs[i].passive, s->stage.mr,
					  MSG_SIZE, MSG_SIZE, (uint64_t)n));
	}
	for (n = 0; n < messages; n++) {
		for (i = 0; i < CONNS; i++)
			send_quietly(s, i, (uint64_t)n);
	}
	for (n = 0; n < CONNS * messages; n++) {
		item = world_next(s->stage.pq);
		CHECK(item.kind == RPMA_RT_COMPLETION);
		CHECK(item.status == IBV_WC_SUCCESS);
	}
	expect_nothing(s->stage.aq);
}

/* One message each that gets a completion; nothing else does. */
static void expect_alive(struct signal *s)
{
	int i;

	for (i = 0; i < CONNS; i++)
		stage_ping(&s->stage, &s->pairs[i], (uint64_t)i);
}

static void below_the_period__nobody_is_short(struct signal *s, int rounds)
{
	int i;

	for (i = 0; i < rounds; i++)
		turn(s, BELOW);
	expect_alive(s);
}

/* Everything of all active ends, in any order among them. */
static void collect_the_dead(struct signal *s)
{
	uint32_t heard[CONNS] = {0};
	struct rpma_rt_completion item;
	int closed = 0;
	int i;

	while (closed < CONNS) {
		item = world_next(s->stage.aq);
		if (item.kind == RPMA_RT_WRITABLE)
			continue;
		if (item.kind == RPMA_RT_EVENT) {
			CHECK(item.opcode == RPMA_RT_EVENT_CLOSED);
			CHECK(item.status == RPMA_RT_REASON_LOCAL);
			closed++;
			continue;
		}
		i = (int)(item.context / DEPTH);
		CHECK(i < CONNS && closed < CONNS);
		CHECK(item.context % DEPTH == heard[i]); /* in order, once */
		heard[i]++;
		CHECK(item.status != IBV_WC_SUCCESS);
		CHECK(!(item.flags & RPMA_RT_C_SYNTHESIZED));
	}
	for (i = 0; i < CONNS; i++)
		CHECK(heard[i] == DEPTH);
}

/* Nobody receives: as many flushed sends as there are slots come to the CQ. */
static void all_die_at_once__the_CQ_holds_it(struct signal *s)
{
	struct rpma_rt_poller_stats stats;
	struct world_pair stranger;
	int i;
	int n;

	stage_connect(&s->stage, &stranger);
	for (i = 0; i < CONNS; i++) {
		for (n = 0; n < DEPTH; n++)
			send_quietly(s, i, (uint64_t)(i * DEPTH + n));
	}
	expect_nothing(s->stage.aq);
	for (i = 0; i < CONNS; i++)
		MUST(rpma_rt_conn_close(s->pairs[i].active));
	collect_the_dead(s);
	for (i = 0; i < CONNS; i++) {
		world_event(s->stage.pq, RPMA_RT_EVENT_CLOSED);
		world_unref(&s->pairs[i]);
	}
	MUST(rpma_rt_poller_get_stats(s->stage.world.rt, 0, &stats,
				      sizeof(stats)));
	CHECK(stats.lost == 0);
	stage_ping(&s->stage, &stranger, 1);
	stage_disconnect(&s->stage, &stranger);
}

int main(int argc, char **argv)
{
	struct stage_cfg cfg = {
		.pollers = 1, .depth = DEPTH, .cq_size = CQ_SIZE};
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	struct signal s;
	int i;

	stage_open(&s.stage, &cfg);
	for (i = 0; i < CONNS; i++)
		stage_connect(&s.stage, &s.pairs[i]);
	below_the_period__nobody_is_short(&s, rounds);
	all_die_at_once__the_CQ_holds_it(&s);
	stage_close(&s.stage);
	printf("ok\n");
	return 0;
}
