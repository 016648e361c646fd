/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sched.c -- the deterministic scheduler. Every body has a thread, but only the
 * holder of the baton runs; at each hook point the holder decides which body is
 * next, from a list that depends only on earlier decisions. A due timer and the
 * progress of the device are entries of the list ("S", "P"), run by the holder
 * of the baton. The decisions with a choice are the schedule; a failure prints
 * the schedule and a replay reads a schedule.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hook.h"
#include "base/random.h"
#include "base/service.h"
#include "exec/thread.h"
#include "rpma_loopback.h"
#include "verbs/config.h"

#define MAX_THREADS   8
#define MAX_DECISIONS 65536
#define MAX_STEPS     1000000
#define MAX_STREAK    64    /* steps in a row of one thread, then others too */
#define MAX_LEFT      10000 /* steps of the device before a run */
#define STUCK_SECONDS 20

enum {
	SERVICE = MAX_THREADS, /* ids after the ids of threads */
	PROGRESS,
	CHOICES,
};

static const char letters[CHOICES + 1] = "01234567SP";

enum body_state {
	READY,
	WAITING, /* for pred */
	DONE,
};

struct body {
	struct run *run;
	int id;
	enum body_state state;
	bool (*pred)(void *arg);
	void *pred_arg;
	pthread_t thread;
	pthread_cond_t turn;
};

struct decision {
	uint8_t choices; /* how many there were */
	uint8_t chosen;	 /* which of them */
	char letter;
};

/* A run of the bodies. After a deadlock the run stays, with its threads. */
struct run {
	const struct rpma_loopback_sched *sched;
	const struct decision *prefix; /* to be taken first */
	uint32_t nprefix;
	const char *replay; /* or this */
	bool is_random;
	uint64_t random;

	pthread_mutex_t lock;
	pthread_cond_t end;
	int current; /* the body with the baton; -1: the caller of run() */
	int last;    /* the previous holder */
	unsigned streak;
	unsigned preemptions;
	unsigned steps;
	uint32_t ndecisions;
	struct decision decisions[MAX_DECISIONS];
	const char *failure; /* NULL: no failure */
	struct body bodies[MAX_THREADS];
};

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct body *self; /* NULL: not a thread of the run */

/* --- deciding; run->lock held */

static bool is_runnable(struct body *body)
{
	if (body->state == WAITING && body->pred(body->pred_arg))
		body->state = READY;
	return body->state == READY;
}

/*
 * Lists the entries that may run next: the last holder first, or last after a
 * streak.
 */
static int list_choices(struct run *run, int *ids, bool *last_may)
{
	int n = 0, i, threads = run->sched->threads;

	*last_may = run->last >= 0 && is_runnable(&run->bodies[run->last]);
	if (*last_may && run->streak < MAX_STREAK)
		ids[n++] = run->last;
	for (i = 0; i < threads; i++) {
		int id = (run->last + 1 + i) % threads;

		if (id != run->last && is_runnable(&run->bodies[id]))
			ids[n++] = id;
	}
	if (lb_thread_has_work())
		ids[n++] = PROGRESS;
	if (lb_service_has_work())
		ids[n++] = SERVICE;
	if (*last_may && run->streak >= MAX_STREAK)
		ids[n++] = run->last;
	return n;
}

static int choose_replay(struct run *run, const int *ids, int n)
{
	int i;

	for (i = 0; i < n && *run->replay; i++) {
		if (letters[ids[i]] == *run->replay) {
			run->replay++;
			return i;
		}
	}
	if (*run->replay)
		run->failure = "the replay does not fit";
	return 0;
}

/* The prefix is of an earlier run: the bodies must do the same again. */
static int choose_prefix(struct run *run, int n)
{
	const struct decision *decision = &run->prefix[run->ndecisions];

	if (decision->choices == n)
		return decision->chosen;
	run->failure = "not the choices of the run before: setup() or a body "
		       "does not repeat itself";
	return 0;
}

static int choose(struct run *run, const int *ids, int n)
{
	if (run->ndecisions < run->nprefix)
		return choose_prefix(run, n);
	if (run->replay)
		return choose_replay(run, ids, n);
	if (!run->is_random)
		return 0;
	run->random = lb_random_mix(run->random);
	return (int)(run->random % (unsigned)n);
}

/* Returns the id of the next entry to run, or -1. */
static int decide(struct run *run)
{
	unsigned max = run->sched->max_preemptions;
	int ids[CHOICES], n, chosen = 0;
	bool last_may;

	n = list_choices(run, ids, &last_may);
	if (!n)
		return -1;
	/* only taking the baton from a runnable body is bounded */
	if (!run->is_random && !run->replay && ids[0] == run->last &&
	    run->preemptions >= (max ? max : 2))
		n = 1;
	if (n > 1 && run->ndecisions < MAX_DECISIONS) {
		chosen = choose(run, ids, n);
		run->decisions[run->ndecisions++] = (struct decision){
			.choices = (uint8_t)n,
			.chosen = (uint8_t)chosen,
			.letter = letters[ids[chosen]],
		};
		if (last_may && ids[0] == run->last && chosen)
			run->preemptions++;
	}
	return ids[chosen];
}

/* --- the baton */

/* Runs a timer or a slice, which may call hooks; the hooks must not switch. */
static void step_device(struct run *run, int id)
{
	struct body *me = self;

	pthread_mutex_unlock(&run->lock);
	self = NULL;
	if (id == SERVICE)
		lb_service_step();
	else
		lb_thread_step();
	self = me;
	pthread_mutex_lock(&run->lock);
}

static bool is_finished(const struct run *run)
{
	int i;

	for (i = 0; i < run->sched->threads; i++) {
		if (run->bodies[i].state != DONE)
			return false;
	}
	return true;
}

/* Give the baton to whoever is next. */
static void pass_on(struct run *run)
{
	int id = -1;

	while (!is_finished(run) && !run->failure) {
		if (++run->steps > MAX_STEPS) {
			run->failure = "it does not end";
			break;
		}
		id = decide(run);
		if (id < 0) {
			run->failure = "deadlock: every thread waits";
			break;
		}
		if (id < MAX_THREADS)
			break;
		step_device(run, id);
		id = -1;
	}
	if (run->failure)
		id = -1;
	run->streak = id == run->last ? run->streak + 1 : 0;
	if (id >= 0)
		run->last = id;
	run->current = id;
	/* no other thread is woken: most steps leave the baton with the
	 * holder */
	if (id < 0)
		pthread_cond_signal(&run->end);
	else if (self != &run->bodies[id])
		pthread_cond_signal(&run->bodies[id].turn);
}

static void take_turn(struct run *run, int id)
{
	while (run->current != id)
		pthread_cond_wait(&run->bodies[id].turn, &run->lock);
}

static void yield(struct body *me)
{
	pthread_mutex_lock(&me->run->lock);
	pass_on(me->run);
	take_turn(me->run, me->id);
	pthread_mutex_unlock(&me->run->lock);
}

/* --- called by the hooks */

static bool is_scheduled(void)
{
	return self;
}

static void yield_at(enum rpma_loopback_point point)
{
	uint32_t points = self ? self->run->sched->points : 0;

	if (self && (!points || points & 1u << point))
		yield(self);
}

static bool block(bool (*pred)(void *arg), void *arg)
{
	struct body *me = self;

	if (!me)
		return false;
	pthread_mutex_lock(&me->run->lock);
	me->pred = pred;
	me->pred_arg = arg;
	me->state = WAITING;
	pass_on(me->run);
	take_turn(me->run, me->id);
	pthread_mutex_unlock(&me->run->lock);
	return true;
}

static const struct lb_scheduler scheduler = {
	.is_scheduled = is_scheduled,
	.yield = yield_at,
	.block = block,
};

/* --- called by the bodies */

LB_EXPORT void rpma_loopback_sched_point(const char *name)
{
	(void)name; /* for readers of the test */
	if (self)
		yield(self);
}

struct wait {
	int (*pred)(void *arg);
	void *arg;
};

static bool is_true(void *arg)
{
	struct wait *wait = arg;

	return wait->pred(wait->arg);
}

LB_EXPORT void rpma_loopback_sched_wait(int (*pred)(void *arg), void *arg)
{
	const struct timespec nap = {.tv_nsec = 50000};
	struct wait wait = {.pred = pred, .arg = arg};

	if (block(is_true, &wait))
		return;
	while (!pred(arg))
		nanosleep(&nap, NULL);
}

/* --- a run */

static void *body_main(void *arg)
{
	struct body *me = arg;
	struct run *run = me->run;

	pthread_mutex_lock(&run->lock);
	take_turn(run, me->id);
	pthread_mutex_unlock(&run->lock);
	self = me;
	run->sched->body[me->id](run->sched->arg);
	pthread_mutex_lock(&run->lock);
	me->state = DONE;
	pass_on(run);
	pthread_mutex_unlock(&run->lock);
	self = NULL;
	return NULL;
}

static void activate(void)
{
	lb_clock_start(lb_clock_real_now());
	lb_service_rest();
	lb_thread_rest();
	lb_hook_attach(&scheduler);
}

static void deactivate(void)
{
	lb_hook_detach();
	lb_clock_stop();
	lb_service_wake();
	lb_thread_wake();
}

/*
 * Runs timers and slices left by earlier runs, or from before, which would be
 * choices of this run: in virtual time. Bounded, because a queue pair may retry
 * for ever.
 */
static void clear_device(void)
{
	int left = MAX_LEFT;

	activate();
	while (left-- > 0 && (lb_thread_step() || lb_service_step()))
		;
	deactivate();
}

/* Wait for the end of the run; run->lock held. */
static void wait_end(struct run *run)
{
	struct timespec until;
	unsigned steps = 0;

	while (run->current != -1) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += STUCK_SECONDS;
		if (pthread_cond_timedwait(&run->end, &run->lock, &until) !=
		    ETIMEDOUT)
			continue;
		if (steps == run->steps) {
			run->failure = "a thread is blocked where the "
				       "scheduler does not see it";
			return;
		}
		steps = run->steps;
	}
}

static int start_bodies(struct run *run)
{
	int i;

	for (i = 0; i < run->sched->threads; i++) {
		struct body *body = &run->bodies[i];

		body->run = run;
		body->id = i;
		if (pthread_create(&body->thread, NULL, body_main, body))
			return -1;
	}
	return 0;
}

static void run_once(struct run *run)
{
	const struct rpma_loopback_sched *sched = run->sched;
	bool is_clean;
	int i;

	clear_device();
	if (sched->setup)
		sched->setup(sched->arg);
	run->last = run->current = -2;
	activate();
	if (start_bodies(run)) {
		fprintf(stderr, "loopback: scheduler: no threads\n");
		abort();
	}
	pthread_mutex_lock(&run->lock);
	run->last = -1;
	pass_on(run);
	wait_end(run);
	is_clean = !run->failure;
	pthread_mutex_unlock(&run->lock);
	for (i = 0; i < sched->threads; i++) {
		if (is_clean)
			pthread_join(run->bodies[i].thread, NULL);
		else
			pthread_detach(run->bodies[i].thread);
	}
	deactivate();
	if (is_clean && sched->check && sched->check(sched->arg))
		run->failure = "check";
}

/* --- many runs */

static struct run *run_new(const struct rpma_loopback_sched *sched)
{
	struct run *run = calloc(1, sizeof(*run));
	int i;

	if (!run)
		return NULL;
	run->sched = sched;
	pthread_mutex_init(&run->lock, NULL);
	pthread_cond_init(&run->end, NULL);
	for (i = 0; i < MAX_THREADS; i++)
		pthread_cond_init(&run->bodies[i].turn, NULL);
	return run;
}

/* Deletes a run; with threads of a failed run the run stays. */
static void run_delete(struct run *run)
{
	int i;

	for (i = 0; i < MAX_THREADS; i++)
		pthread_cond_destroy(&run->bodies[i].turn);
	pthread_cond_destroy(&run->end);
	pthread_mutex_destroy(&run->lock);
	free(run);
}

static void report(const struct run *run,
		   struct rpma_loopback_sched_result *result)
{
	size_t i;

	for (i = 0; i < run->ndecisions && i < sizeof(result->failed) - 1; i++)
		result->failed[i] = run->decisions[i].letter;
	result->failed[i] = '\0';
	if (!i)
		strcpy(result->failed, "0"); /* there was no choice */
	fprintf(stderr,
		"loopback: scheduler: run %u failed: %s\n"
		"loopback: RPMA_LOOPBACK_REPLAY=%s\n",
		result->runs, run->failure, result->failed);
}

/* The next prefix in depth-first order, false after the last. */
static bool next_prefix(struct run *run, struct decision *prefix, uint32_t *n)
{
	uint32_t i = run->ndecisions;

	while (i--) {
		struct decision *d = &run->decisions[i];

		if (d->chosen + 1 < d->choices) {
			memcpy(prefix, run->decisions, i * sizeof(*prefix));
			prefix[i] = *d;
			prefix[i].chosen++;
			*n = i + 1;
			return true;
		}
	}
	return false;
}

/* 0 go on, 1 the run failed */
static int one_run(const struct rpma_loopback_sched *sched,
		   struct decision *prefix, uint32_t *nprefix,
		   const char *replay,
		   struct rpma_loopback_sched_result *result)
{
	struct run *run = run_new(sched);
	bool is_clean, failed;

	if (!run) {
		fprintf(stderr, "loopback: scheduler: no memory\n");
		abort();
	}
	run->prefix = prefix;
	run->nprefix = *nprefix;
	run->replay = replay;
	run->is_random = sched->runs && !replay;
	run->random = lb_random_mix(
		(sched->seed ? sched->seed : rpma_loopback_get_seed()) +
		result->runs);
	run_once(run);
	result->runs++;
	if (result->steps < run->steps)
		result->steps = run->steps;
	failed = run->failure;
	is_clean = !failed || !strcmp(run->failure, "check");
	if (failed)
		report(run, result);
	else if (!run->is_random && !replay)
		result->complete = !next_prefix(run, prefix, nprefix);
	if (is_clean)
		run_delete(run);
	return failed;
}

LB_EXPORT int rpma_loopback_sched_run(const struct rpma_loopback_sched *sched,
				      struct rpma_loopback_sched_result *result)
{
	const char *replay = getenv("RPMA_LOOPBACK_REPLAY");
	struct rpma_loopback_sched_result mine;
	struct decision *prefix;
	uint32_t nprefix = 0;
	unsigned limit;
	int ret = 0;

	if (sched->threads < 1 || sched->threads > MAX_THREADS || self)
		return -EINVAL;
	if (!result)
		result = &mine;
	prefix = calloc(MAX_DECISIONS, sizeof(*prefix));
	if (!prefix)
		return -ENOMEM;
	lb_config_start();
	memset(result, 0, sizeof(*result));
	if (!replay)
		replay = sched->replay;
	limit = sched->runs	  ? sched->runs
		: sched->max_runs ? sched->max_runs
				  : 100000;
	pthread_mutex_lock(&one);
	while (!ret && !result->complete && result->runs < limit) {
		ret = one_run(sched, prefix, &nprefix, replay, result);
		if (replay)
			break;
	}
	pthread_mutex_unlock(&one);
	free(prefix);
	return ret;
}
