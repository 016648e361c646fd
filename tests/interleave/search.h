/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * search.h -- a thread waits on one to three CQs for up to three completions,
 * another thread makes completions; every interleaving of the two at the points
 * where the waiter polls, arms, reads an event, acknowledges and releases, and
 * the other thread posts and delivers. A completion is a receive of a queue
 * pair in error, flushed at once.
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
	WRONG, /* the search must find an error */
};

/* the waiting threads, and their way to wait */
struct play {
	const char *name;
	/* before each schedule: makes scene->cq[] */
	void (*begin)(struct scene *scene);
	/* waits for all, in scene->taken, and lets everything go */
	void (*wait)(struct scene *scene);
	/* work of the other thread after its last post, or NULL */
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
	const char *failed; /* error of a body */
};

/*
 * Checks a call; the body goes on after a failure: the schedule fails at its
 * end.
 */
#define MUST(scene, call)                                 \
	do {                                              \
		if ((call) != 0 && !(scene)->failed)      \
			(scene)->failed = #call " fails"; \
	} while (0)

/*
 * Destroy queue pairs before the CQs are released: of a CQ, or of all
 * remaining.
 */
void scene_destroy_qp(struct scene *scene, int cq);
void scene_destroy_qps(struct scene *scene);

/*
 * The program: runs every schedule of each right play, with up to 3 CQs and
 * completions, where CQs and steps of the other thread (a completion, a late
 * event, the steps of an end) are together at most STEPS, by default 6. With
 * "found": the search finds an error in the play, or in any right play, and
 * finds the error again from its schedule alone; with "wrong": in each wrong
 * play. Prints the number of schedules; a failure prints how to repeat the
 * failure, which is the last form.
 *
 * PROGRAM [STEPS]
 * PROGRAM found [STEPS | PLAY]
 * PROGRAM wrong
 * PROGRAM [again] PLAY CQS WHERE
 */
int search_main(int argc, char **argv, struct ibv_context *ctx,
		const struct play *plays);

#endif /* SEARCH_H */
