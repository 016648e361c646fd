/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel.c -- librpma's channel under the deterministic scheduler: waiters
 * that follow rpma_channel_wait(3) lose no completion in any order; the search
 * finds the losses of waiters with the bugs of brpc and others, which shows
 * that the search works.
 */

#include "search.h"

#include <stdio.h>

#include <librpma.h>

static struct rpma_channel *channel;
static struct rpma_cq *cqs[MAX_CQS];
static int fired; /* the CQ of the last event */

static void begin(struct scene *scene)
{
	int i;

	fired = 0;
	MUST(scene, rpma_channel_new(scene->ctx, &channel));
	for (i = 0; i < scene->cqs; i++) {
		MUST(scene,
		     rpma_cq_new(scene->ctx, 16, channel, 0, &cqs[i], &cqs[i]));
		MUST(scene, rpma_cq_get_ibv_cq(cqs[i], &scene->cq[i]));
	}
}

/* -------------------------------------------------------- what it is of --- */

static int take(struct scene *scene, int cq, int max)
{
	struct ibv_wc wc[MAX_COMPLS];
	int got = 0;
	int ret = rpma_cq_get_wc(cqs[cq], max, wc, max > 1 ? &got : NULL);

	if (ret == RPMA_E_NO_COMPLETION)
		return 0;
	MUST(scene, ret);
	got = max > 1 ? got : 1;
	scene->taken += got;
	return got;
}

static int take_all(struct scene *scene)
{
	int got = 0;
	int i;

	for (i = 0; i < scene->cqs; i++)
		got += take(scene, i, MAX_COMPLS);
	return got;
}

static void arm_all(struct scene *scene)
{
	int i;

	for (i = 0; i < scene->cqs; i++)
		MUST(scene, rpma_cq_arm(cqs[i], false));
}

static void sleep_on_channel(struct scene *scene)
{
	struct rpma_cq *cq;
	void *context;

	MUST(scene, rpma_channel_wait(channel, &cq));
	MUST(scene, rpma_cq_get_context(cq, &context));
	fired = (int)((struct rpma_cq **)context - cqs);
}

static void let_go(struct scene *scene)
{
	int i;

	scene_destroy_qps(scene);
	for (i = 0; i < scene->cqs; i++)
		MUST(scene, rpma_cq_delete(&cqs[i]));
	MUST(scene, rpma_channel_delete(&channel));
}

/* --------------------------------------------------------- how it waits --- */

static void wait_on_channel(struct scene *scene)
{
	while (scene->taken < scene->compls) {
		if (take_all(scene))
			continue;
		arm_all(scene);
		if (!take_all(scene))
			sleep_on_channel(scene);
	}
	let_go(scene);
}

/* Reads events by itself and acknowledges them before it lets the CQs go, or
 * forgets it. */
static void wait_on_events(struct scene *scene, bool acknowledges)
{
	unsigned unacked[MAX_CQS] = {0};
	struct ibv_comp_channel *ibv_channel;
	struct ibv_cq *cq;
	void *context;
	int i;

	MUST(scene, rpma_channel_get_ibv_channel(channel, &ibv_channel));
	while (scene->taken < scene->compls) {
		if (take_all(scene))
			continue;
		arm_all(scene);
		if (take_all(scene))
			continue;
		MUST(scene, ibv_get_cq_event(ibv_channel, &cq, &context));
		for (i = 0; i < scene->cqs; i++)
			unacked[i] += cq == scene->cq[i];
	}
	for (i = 0; acknowledges && i < scene->cqs; i++)
		ibv_ack_cq_events(scene->cq[i], unacked[i]);
	let_go(scene);
}

static void acknowledge_at_the_end(struct scene *scene)
{
	wait_on_events(scene, true);
}

static void never_acknowledge(struct scene *scene)
{
	wait_on_events(scene, false);
}

/* After all are armed, only the CQ of the last event is looked at again. */
static void poll_the_fired_again(struct scene *scene)
{
	while (scene->taken < scene->compls) {
		if (take_all(scene))
			continue;
		arm_all(scene);
		if (!take(scene, fired, MAX_COMPLS))
			sleep_on_channel(scene);
	}
	let_go(scene);
}

static void arm_the_fired(struct scene *scene)
{
	while (scene->taken < scene->compls) {
		if (take_all(scene))
			continue;
		MUST(scene, rpma_cq_arm(cqs[fired], false));
		if (!take_all(scene))
			sleep_on_channel(scene);
	}
	let_go(scene);
}

static void arm_then_sleep(struct scene *scene)
{
	while (scene->taken < scene->compls) {
		if (take_all(scene))
			continue;
		arm_all(scene);
		sleep_on_channel(scene);
	}
	let_go(scene);
}

static void poll_then_arm(struct scene *scene)
{
	while (scene->taken < scene->compls) {
		if (take_all(scene) || take_all(scene))
			continue;
		arm_all(scene);
		sleep_on_channel(scene);
	}
	let_go(scene);
}

/* One completion an event, as if there were never two. */
static void one_an_event(struct scene *scene)
{
	arm_all(scene);
	while (scene->taken < scene->compls) {
		sleep_on_channel(scene);
		MUST(scene, rpma_cq_arm(cqs[fired], false));
		take(scene, fired, 1);
	}
	let_go(scene);
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	if (list == NULL || list[0] == NULL)
		return NULL;
	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return ctx;
}

int main(int argc, char **argv)
{
	static const struct play plays[] = {
		{"wait_on_channel", begin, wait_on_channel, NULL, RIGHT, 0},
		{"wait_on_channel_late", begin, wait_on_channel, NULL, LATE, 0},
		{"acknowledge_at_the_end", begin, acknowledge_at_the_end, NULL,
		 RIGHT, 0},
		{"brpc_two_cqs", begin, poll_the_fired_again, NULL, WRONG, 0},
		{"arm_the_fired", begin, arm_the_fired, NULL, WRONG, 0},
		{"arm_then_sleep", begin, arm_then_sleep, NULL, WRONG, 0},
		{"poll_then_arm", begin, poll_then_arm, NULL, WRONG, 0},
		{"one_an_event", begin, one_an_event, NULL, WRONG, 0},
		{"never_acknowledge", begin, never_acknowledge, NULL, WRONG, 0},
		{NULL, NULL, NULL, NULL, RIGHT, 0},
	};
	struct ibv_context *ctx = open_device();

	if (ctx == NULL) {
		fprintf(stderr, "no device\n");
		return 1;
	}
	return search_main(argc, argv, ctx, plays);
}
