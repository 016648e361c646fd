/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * backlog.c -- a consumer that does not take: its lane fills, the rest spills,
 * at the limit posts to it are refused; order is kept, other queues go on, and
 * the poller sleeps on the spill until the consumer makes room.
 */

#include "stage.h"

#define LANE	64
#define LIMIT	16
#define DEPTH	32
#define PATIENT 3 /* rounds of filling and emptying */

struct slow {
	struct stage stage;
	struct world_pair pair; /* whose receives complete in queue */
	struct world_pair other;
	struct rpma_rt_queue *queue;
	struct rpma_rt_route *route;
	uint64_t posted;
	uint64_t sent;
	uint64_t taken;
};

static void set_up(struct slow *s)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};
	struct rpma_rt_queue_cfg qcfg = RPMA_RT_QUEUE_CFG_INIT;

	*s = (struct slow){0};
	stage_open(&s->stage, &cfg);
	qcfg.lane_size = LANE;
	qcfg.backlog_limit = LIMIT;
	MUST(rpma_rt_queue_new(s->stage.world.rt, &qcfg, &s->queue));
	stage_connect(&s->stage, &s->pair);
	stage_connect(&s->stage, &s->other);
	MUST(rpma_rt_route_open(s->pair.passive, RPMA_RT_RECV_SIDE, s->queue,
				&s->route));
}

static void tear_down(struct slow *s)
{
	stage_disconnect(&s->stage, &s->pair);
	stage_disconnect(&s->stage, &s->other);
	world_event(s->queue, RPMA_RT_EVENT_ROUTE_CLOSED);
	MUST(rpma_rt_queue_delete(&s->queue));
	stage_close(&s->stage);
}

static int post_recv(struct slow *s)
{
	struct rpma_rt_recv_wr wr = {.context = s->posted,
				     .route = s->route,
				     .dst = s->stage.mr,
				     .len = 64};

	return world_post_recv(s->pair.passive, &wr);
}

static void wait_for_writable(struct slow *s)
{
	struct rpma_rt_completion item = world_next(s->stage.pq);

	CHECK(item.kind == RPMA_RT_WRITABLE);
	CHECK(item.opcode == RPMA_RT_RECV_SIDE);
	CHECK(item.context == (uintptr_t)s->pair.passive);
}

/* A message each time a receive is taken, until the backlog refuses. */
static void fill(struct slow *s)
{
	int ret;

	for (;;) {
		ret = post_recv(s);
		if (ret == RPMA_E_AGAIN) {
			if (rpma_rt_again_reason() == RPMA_RT_AGAIN_BACKLOG)
				break;
			CHECK(rpma_rt_again_reason() == RPMA_RT_AGAIN_CREDIT);
			wait_for_writable(s);
			continue;
		}
		MUST(ret);
		s->posted++;
		MUST(rpma_rt_send(s->pair.active, s->stage.mr, 64, 64,
				  RPMA_F_COMPLETION_ALWAYS, s->sent));
		stage_completion(s->stage.aq, s->sent++, IBV_WC_SUCCESS);
	}
	/* not before the limit, and never beyond what is reserved for it */
	CHECK(s->posted - s->taken >= LANE + LIMIT);
	CHECK(s->posted - s->taken <= LANE + LIMIT + DEPTH);
}

/* Until the poller has gone to sleep behind the spill. */
static void wait_for_sleep(struct slow *s)
{
	struct rpma_rt_poller_stats stats;
	uint64_t before;
	uint64_t begin = world_now_ms();

	MUST(rpma_rt_poller_get_stats(s->stage.world.rt, 0, &stats,
				      sizeof(stats)));
	CHECK(stats.spilled >= LIMIT);
	before = stats.sleeps;
	/* something to wake up for, and to sleep after */
	stage_ping(&s->stage, &s->other, 1);
	do {
		CHECK(world_now_ms() - begin < WORLD_PATIENCE_MS);
		MUST(rpma_rt_poller_get_stats(s->stage.world.rt, 0, &stats,
					      sizeof(stats)));
	} while (stats.sleeps == before);
}

int main(void)
{
	struct rpma_rt_poller_stats stats;
	struct slow s;
	int round;

	set_up(&s);
	for (round = 0; round < PATIENT; round++) {
		fill(&s);
		wait_for_sleep(&s);
		/* nobody else is held up, on the same poller */
		stage_ping(&s.stage, &s.other, 2);
		while (s.taken < s.posted)
			stage_completion(s.queue, s.taken++, IBV_WC_SUCCESS);
		wait_for_writable(&s); /* exactly one: the next item is none */
	}
	MUST(rpma_rt_poller_get_stats(s.stage.world.rt, 0, &stats,
				      sizeof(stats)));
	printf("ok: %lu messages, %lu spilled, %lu sleeps\n",
	       (unsigned long)s.posted, (unsigned long)stats.spilled,
	       (unsigned long)stats.sleeps);
	tear_down(&s);
	return 0;
}
