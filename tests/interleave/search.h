/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * search.h -- one thread waits on one to three CQs for up to three completions,
 * another one makes them; every interleaving of the two at the points where
 * the waiter polls, arms, reads an event, acknowledges and lets go, and the
 * other one posts and delivers. A completion is a receive of a queue pair in
 * error, which is flushed at once.
 */

#ifndef SEARCH_H
#define SEARCH_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "rpma_loopback.h"

#define MAX_CQS	   3
#define MAX_COMPLS 3

struct scene;

enum play_kind {
	RIGHT,
	LATE,  /* right; an event is readable some time after its completion */
	WRONG, /* the search must find it out */
};

/* the threads that wait, and how */
struct play {
	const char *name;
	/* before each schedule: makes scene->cq[] */
	void (*begin)(struct scene *scene);
	/* waits for all, in scene->taken, and lets everything go */
	void (*wait)(struct scene *scene);
	/* what the other thread does after its last post, or NULL */
	void (*end)(struct scene *scene);
	enum play_kind kind;
	int end_steps; /* for how many steps the end counts */
};

struct scene {
	const struct play *play;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int cqs;
	int compls;
	int where[MAX_COMPLS]; /* the CQ of each */
	/* of a schedule */
	struct ibv_cq *cq[MAX_CQS];
	struct ibv_qp *qp[MAX_CQS];
	int taken;
	const char *failed; /* what a body could not do */
};

/* A body goes on after it: the schedule fails at its end. */
#define MUST(scene, call)                                 \
	do {                                              \
		if ((call) != 0 && !(scene)->failed)      \
			(scene)->failed = #call " fails"; \
	} while (0)

/* Before the CQs are let go: of one, of all that are left. */
void scene_destroy_qp(struct scene *scene, int cq);
void scene_destroy_qps(struct scene *scene);

/*
 * The program: every schedule of each play that is right, with up to 3 CQs and
 * completions, but CQs and steps of the other thread (a completion, its event
 * if that comes late, those of an end) together at most STEPS, which is 6 if
 * not given. With "found": the search finds something in that play, or in any
 * that is right, and finds it again from its schedule alone; with "wrong": in
 * each of those that are wrong. Prints how many schedules there were; a
 * failure prints how it is repeated, which is the last form.
 *
 *	PROGRAM [STEPS]
 *	PROGRAM found [PLAY]
 *	PROGRAM wrong
 *	PROGRAM [again] PLAY CQS WHERE
 */
int search_main(int argc, char **argv, struct ibv_context *ctx,
		const struct play *plays);

#endif /* SEARCH_H */
