/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * search.c -- the two threads of search.h, and every schedule of them: no bound
 * on preemptions, and a completion at any point of the waiter. Those of the
 * poster's own steps that nobody sees are not points.
 */

#include "search.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POINT(name) (1u << RPMA_LOOPBACK_##name)
#define POINTS                                                      \
	(POINT(POLL) | POINT(ARM) | POINT(GET_EVENT) | POINT(ACK) | \
	 POINT(DESTROY))

#define STEPS 6 /* CQs and steps together */

static const char *program;

/* --------------------------------------------------------- the schedule --- */

static struct ibv_qp *broken_qp(struct scene *scene, struct ibv_cq *cq)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {1, MAX_COMPLS, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(scene->pd, &init);

	if (qp == NULL) {
		scene->failed = "no queue pair";
		return NULL;
	}
	MUST(scene,
	     ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				   IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_ERR;
	MUST(scene, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return qp;
}

void scene_destroy_qp(struct scene *scene, int cq)
{
	if (scene->qp[cq] != NULL)
		MUST(scene, ibv_destroy_qp(scene->qp[cq]));
	scene->qp[cq] = NULL;
}

void scene_destroy_qps(struct scene *scene)
{
	int i;

	for (i = 0; i < scene->cqs; i++)
		scene_destroy_qp(scene, i);
}

static void begin(void *arg)
{
	struct scene *scene = arg;
	int i;

	scene->taken = 0;
	scene->failed = NULL;
	scene->play->begin(scene);
	for (i = 0; i < scene->cqs; i++)
		scene->qp[i] = broken_qp(scene, scene->cq[i]);
}

static void run_waiter(void *arg)
{
	struct scene *scene = arg;

	scene->play->wait(scene);
}

static void run_poster(void *arg)
{
	struct scene *scene = arg;
	int i;

	for (i = 0; i < scene->compls; i++) {
		struct ibv_recv_wr wr = {.wr_id = 1};
		struct ibv_recv_wr *bad;

		if (i > 0)
			rpma_loopback_sched_point("next");
		MUST(scene,
		     ibv_post_recv(scene->qp[scene->where[i]], &wr, &bad));
	}
	if (scene->play->end) {
		rpma_loopback_sched_point("end");
		scene->play->end(scene);
	}
}

static int check(void *arg)
{
	const struct scene *scene = arg;

	if (scene->failed)
		fprintf(stderr, "%s\n", scene->failed);
	else if (scene->taken != scene->compls)
		fprintf(stderr, "%d of %d completions\n", scene->taken,
			scene->compls);
	return scene->failed || scene->taken != scene->compls;
}

/* ------------------------------------------------------------- searches --- */

static void print_where(const struct scene *scene, char *where)
{
	int i;

	for (i = 0; i < scene->compls; i++)
		where[i] = (char)('0' + scene->where[i]);
	if (i == 0)
		where[i++] = '-';
	where[i] = '\0';
}

/* 0, or 1 and the schedule is printed; how many there were */
static int search(struct scene *scene, unsigned *runs)
{
	struct rpma_loopback_sched_result result;
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {run_waiter, run_poster},
		.setup = begin,
		.check = check,
		.arg = scene,
		.max_preemptions = UINT_MAX,
		.max_runs = UINT_MAX,
		.points = POINTS |
			  (scene->play->kind == LATE ? POINT(DELIVER) : 0),
	};
	char where[MAX_COMPLS + 2];
	int ret = rpma_loopback_sched_run(&sched, &result);

	*runs += result.runs;
	if (ret == 0)
		return 0;
	print_where(scene, where);
	fprintf(stderr,
		"schedule %u; again: RPMA_LOOPBACK_REPLAY=%s %s %s %d %s\n",
		result.runs, result.failed, program, scene->play->name,
		scene->cqs, where);
	setenv("RPMA_LOOPBACK_REPLAY", result.failed, 1);
	return ret;
}

/* Every way to put so many completions into so many CQs. */
static int search_ways(struct scene *scene, unsigned *runs)
{
	unsigned ways = 1;
	unsigned way;
	unsigned rest;
	int i;

	for (i = 0; i < scene->compls; i++)
		ways *= (unsigned)scene->cqs;
	for (way = 0; way < ways; way++) {
		rest = way;
		for (i = 0; i < scene->compls; i++) {
			scene->where[i] = (int)(rest % (unsigned)scene->cqs);
			rest /= (unsigned)scene->cqs;
		}
		if (search(scene, runs))
			return 1;
	}
	return 0;
}

/* What the number of schedules grows with. */
static int count_steps(const struct scene *scene)
{
	return scene->compls * (scene->play->kind == LATE ? 2 : 1) +
	       scene->play->end_steps;
}

static int search_play(struct scene *scene, int most)
{
	unsigned runs;

	for (scene->cqs = 1; scene->cqs <= MAX_CQS; scene->cqs++) {
		for (scene->compls = 0; scene->compls <= MAX_COMPLS;
		     scene->compls++) {
			if (scene->cqs + count_steps(scene) > most)
				continue;
			runs = 0;
			if (search_ways(scene, &runs))
				return 1;
			printf("%s: %d CQs, %d completions: all %u "
			       "schedules\n",
			       scene->play->name, scene->cqs, scene->compls,
			       runs);
		}
	}
	return 0;
}

static int search_plays(struct scene *scene, const struct play *plays, int most)
{
	for (scene->play = plays; scene->play->name; scene->play++) {
		if (scene->play->kind != WRONG && search_play(scene, most))
			return 1;
	}
	return 0;
}

/* -------------------------------------------------------------- failing --- */

/* This program again, in a process where nothing was before. */
static int run_program(const char *const *args)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe", (char *const *)(uintptr_t)args);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* From its schedule alone. */
static int find_again(const struct scene *scene)
{
	char cqs[] = {(char)('0' + scene->cqs), '\0'};
	char where[MAX_COMPLS + 2];
	const char *const args[] = {program, "again", scene->play->name,
				    cqs,     where,   NULL};

	print_where(scene, where);
	return run_program(args);
}

/* In that play, or, name NULL, in any of those that are right. */
static int find(struct scene *scene, const struct play *plays, const char *name,
		int most)
{
	for (scene->play = plays; scene->play->name; scene->play++) {
		if (name ? strcmp(name, scene->play->name) != 0
			 : scene->play->kind == WRONG)
			continue;
		if (search_play(scene, most))
			return find_again(scene);
	}
	fprintf(stderr, "nothing was found\n");
	return 1;
}

/* Each in a process of its own: a deadlock's threads stay. */
static int find_wrong(const struct play *plays)
{
	const char *args[] = {program, "found", NULL, NULL};

	for (; plays->name; plays++) {
		if (plays->kind != WRONG)
			continue;
		printf("%s:\n", plays->name);
		args[2] = plays->name;
		if (run_program(args))
			return 1;
	}
	return 0;
}

static int run_one(struct scene *scene, const struct play *plays, char **args)
{
	unsigned runs = 0;
	int i;

	for (scene->play = plays; scene->play->name; scene->play++) {
		if (strcmp(scene->play->name, args[0]) == 0)
			break;
	}
	scene->cqs = atoi(args[1]);
	scene->compls = args[2][0] == '-' ? 0 : (int)strlen(args[2]);
	if (scene->play->name == NULL || scene->cqs < 1 ||
	    scene->cqs > MAX_CQS || scene->compls > MAX_COMPLS)
		return 2;
	for (i = 0; i < scene->compls; i++) {
		scene->where[i] = args[2][i] - '0';
		if (scene->where[i] < 0 || scene->where[i] >= scene->cqs)
			return 2;
	}
	i = search(scene, &runs);
	printf("%u schedules\n", runs);
	return i;
}

/* -------------------------------------------------------------- program --- */

static int run(int argc, char **argv, struct scene *scene,
	       const struct play *plays)
{
	const char *what = argc > 1 ? argv[1] : "6";

	if (argc == 3 && strcmp(what, "found") == 0 && atoi(argv[2]) > 0)
		return find(scene, plays, NULL, atoi(argv[2]));
	if (argc <= 3 && strcmp(what, "found") == 0)
		return find(scene, plays, argv[2], STEPS);
	if (argc == 2 && strcmp(what, "wrong") == 0)
		return find_wrong(plays);
	if (argc <= 2 && atoi(what) > 0)
		return search_plays(scene, plays, atoi(what));
	if (argc == 5 && strcmp(what, "again") == 0)
		return run_one(scene, plays, argv + 2) != 1;
	if (argc == 4)
		return run_one(scene, plays, argv + 1);
	return 2;
}

int search_main(int argc, char **argv, struct ibv_context *ctx,
		const struct play *plays)
{
	struct scene scene = {.ctx = ctx, .pd = ibv_alloc_pd(ctx)};
	int ret;

	program = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (scene.pd == NULL)
		return 1;
	ret = run(argc, argv, &scene, plays);
	if (ret == 2)
		fprintf(stderr,
			"usage: %s [STEPS | found [STEPS | PLAY] | wrong | "
			"PLAY CQS WHERE]\n",
			program);
	fflush(NULL);
	return ret;
}
