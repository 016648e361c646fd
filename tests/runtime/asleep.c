/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * asleep.c -- a message comes when a consumer has found nothing and is about
 * to sleep, and nothing wakes it afterwards: it comes in the last reading of
 * the clock before the sleep. The clock is this program's, so the moment is
 * certain.
 */

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stage.h"

#define ROUNDS 100

static _Thread_local struct rpma_rt_queue *waited_for;
static _Thread_local int readings;

/* The libraries call this one. The consumer reads it to find the end of its
 * time limit, and, when nothing but falling asleep is left, what remains. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
							 struct timespec *ts)
{
	struct rpma_rt_queue *queue = waited_for;

	if (queue != NULL && --readings == 0) {
		waited_for = NULL;
		MUST(rpma_rt_queue_push(
			queue, &(struct rpma_rt_completion){.context = 7}));
	}
	return (int)syscall(SYS_clock_gettime, clock, ts);
}

static void message__before_sleep(struct rpma_rt_queue *queue, int nth)
{
	struct rpma_rt_completion item;

	readings = nth;
	waited_for = queue;
	MUST_ANSWER(1, rpma_rt_queue_wait(queue, &item, 1, WORLD_PATIENCE_MS));
	CHECK(item.kind == RPMA_RT_MESSAGE && item.context == 7);
	CHECK(waited_for == NULL);
}

static void run(struct world *w, bool shared)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;
	struct rpma_rt_queue *queue;
	int i;

	cfg.spin_us = 0;
	cfg.shared = shared;
	MUST(rpma_rt_queue_new(w->rt, &cfg, &queue));
	for (i = 0; i < ROUNDS; i++)
		message__before_sleep(queue, 1 + i % 2);
	MUST(rpma_rt_queue_delete(&queue));
}

int main(void)
{
	struct world w;

	world_open(&w);
	world_start(&w, 1, RPMA_RT_MODE_EVENT);
	run(&w, false);
	run(&w, true);
	MUST(rpma_rt_stop(w.rt));
	world_close(&w);
	printf("ok\n");
	return 0;
}
