/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * sched.c -- the deterministic scheduler finds the classical mistakes, reports
 * none where there is none, and replays the schedules that it found.
 */

#include "fixture.h"

#include <errno.h>
#include <string.h>

struct world {
	struct pair *p;
	int got;
	int steps;
	uint64_t order;
};

static void setup(void *arg)
{
	struct world *w = arg;

	if (w->p)
		pair_delete(w->p);
	w->p = pair_new(0);
	w->got = 0;
	w->steps = 0;
	w->order = 0;
}

static void poster(void *arg)
{
	struct world *w = arg;

	assert_int_equal(end_write(&w->p->a, &w->p->b, 1, 0, 8), 0);
}

static int got_one(struct world *w)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(w->p->a.cq, 1, &wc);

	w->got += n;
	return n;
}

/* Waits for a completion as it must be done. */
static void careful(void *arg)
{
	struct world *w = arg;

	while (!got_one(w)) {
		ibv_req_notify_cq(w->p->a.cq, 0);
		if (got_one(w))
			return;
		end_take_event(&w->p->a);
	}
}

/* Forgets to poll between arming and waiting. */
static void careless(void *arg)
{
	struct world *w = arg;

	while (!got_one(w)) {
		ibv_req_notify_cq(w->p->a.cq, 0);
		end_take_event(&w->p->a);
	}
}

static int check_got(void *arg)
{
	return ((struct world *)arg)->got != 1;
}

FRESH(wait__careful_EVERY_SCHEDULE)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {careful, poster},
		.setup = setup,
		.check = check_got,
		.arg = &w,
		.max_preemptions = 4,
	};
	struct rpma_loopback_sched_result result;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 0);
	assert_true(result.complete);
	assert_true(result.runs > 10);
	print_message("%u schedules of at most %u steps\n", result.runs,
		      result.steps);
	pair_delete(w.p);
}

static unsigned count_careful(uint32_t points)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {careful, poster},
		.setup = setup,
		.check = check_got,
		.arg = &w,
		.max_preemptions = 4,
		.points = points,
	};
	struct rpma_loopback_sched_result result;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 0);
	assert_true(result.complete);
	pair_delete(w.p);
	return result.runs;
}

FRESH(points__named_FEWER_SCHEDULES)
{
	unsigned arms = count_careful(1u << RPMA_LOOPBACK_ARM);

	assert_true(arms > 1);
	assert_true(count_careful(1u << RPMA_LOOPBACK_ARM |
				  1u << RPMA_LOOPBACK_POLL) > arms);
	/* never reached: only where the waiter sleeps */
	assert_true(count_careful(1u << RPMA_LOOPBACK_MODIFY) < arms);
}

FRESH(wait__careful_RANDOM_AND_SLICED)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {careful, poster},
		.setup = setup,
		.check = check_got,
		.arg = &w,
		.runs = 200,
	};

	rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), 0);
	pair_delete(w.p);
}

/* A body is stuck for ever in the end, so this test is the last. */
FRESH(wait__careless_DEADLOCK_FOUND)
{
	static struct world w;
	static struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {careless, poster},
		.setup = setup,
		.check = check_got,
		.arg = &w,
	};
	struct rpma_loopback_sched_result result, again;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 1);
	assert_true(strlen(result.failed) > 0);
	w.p = NULL; /* its thread still has it */
	sched.replay = result.failed;
	assert_int_equal(rpma_loopback_sched_run(&sched, &again), 1);
	assert_int_equal(again.runs, 1);
	assert_string_equal(again.failed, result.failed);
}

/* A counter without a lock: two steps that another thread may divide. */
static void add_one(void *arg)
{
	struct world *w = arg;
	int seen = w->steps;

	rpma_loopback_sched_point("between load and store");
	w->steps = seen + 1;
}

static int check_two(void *arg)
{
	return ((struct world *)arg)->steps != 2;
}

static void set_zero(void *arg)
{
	((struct world *)arg)->steps = 0;
}

FRESH(race__found_AND_REPLAYED)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {add_one, add_one},
		.setup = set_zero,
		.check = check_two,
		.arg = &w,
	};
	struct rpma_loopback_sched_result result, again;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 1);
	sched.replay = result.failed;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rpma_loopback_sched_run(&sched, &again), 1);
		assert_string_equal(again.failed, result.failed);
	}
	sched.replay = "0"; /* another one is in order */
	assert_int_equal(rpma_loopback_sched_run(&sched, &again), 0);
}

static void note_order(struct world *w, int who)
{
	w->order = w->order * 3 + (uint64_t)who + 1;
	rpma_loopback_sched_point("noted");
}

static void first(void *arg)
{
	for (int i = 0; i < 3; i++)
		note_order(arg, 0);
}

static void second(void *arg)
{
	for (int i = 0; i < 3; i++)
		note_order(arg, 1);
}

static uint64_t all_orders;

static void clear_order(void *arg)
{
	((struct world *)arg)->order = 0;
}

static int mix_order(void *arg)
{
	all_orders = all_orders * 31 + ((struct world *)arg)->order;
	return 0;
}

static uint64_t random_orders(uint64_t seed)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {first, second},
		.setup = clear_order,
		.check = mix_order,
		.arg = &w,
		.runs = 20,
		.seed = seed,
	};

	all_orders = 0;
	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), 0);
	return all_orders;
}

FRESH(random__same_seed_SAME_SCHEDULES)
{
	assert_true(random_orders(3) == random_orders(3));
	assert_true(random_orders(3) != random_orders(4));
}

/* A timer is a step like others, in virtual time: it costs none. */
static void wait_delayed(void *arg)
{
	struct world *w = arg;

	end_take_event(&w->p->a);
	w->got = got_one(w);
}

static void post_delayed(void *arg)
{
	struct world *w = arg;

	ibv_req_notify_cq(w->p->a.cq, 0);
	end_write(&w->p->a, &w->p->b, 1, 0, 8);
}

FRESH(time__is_virtual)
{
	struct world w = {0};
	struct rpma_loopback_sched sched = {
		.threads = 2,
		.body = {wait_delayed, post_delayed},
		.setup = setup,
		.check = check_got,
		.arg = &w,
		.runs = 10,
	};

	/* an hour each time: the test's own limit is a minute */
	assert_int_equal(rpma_loopback_fault("wr:delay_us=3600000000"), 0);
	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), 0);
	pair_delete(w.p);
}

/* ---- a timer that outlives its run is no choice of the next ------------- */

static void post_only(void *arg)
{
	struct world *w = arg;

	end_write(&w->p->a, &w->p->b, 1, 0, 8);
	rpma_loopback_sched_point("posted");
}

static void do_nothing(void *arg)
{
	(void)arg;
	rpma_loopback_sched_point("nothing to choose from");
}

static unsigned count_runs(struct world *w, void (*body)(void *arg))
{
	struct rpma_loopback_sched sched = {
		.threads = 1,
		.body = {body},
		.setup = setup,
		.arg = w,
	};
	struct rpma_loopback_sched_result result;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 0);
	assert_true(result.complete);
	return result.runs;
}

FRESH(timer__left_behind_NO_CHOICE)
{
	struct world w = {0};

	assert_int_equal(rpma_loopback_fault("wr:delay_us=3600000000"), 0);
	assert_true(count_runs(&w, post_only) > 1);
	assert_int_equal(count_runs(&w, do_nothing), 1);
	pair_delete(w.p);
}

/* ---- bodies that do not repeat themselves are told ----------------------- */

static int is_first_over(void *arg)
{
	return ((struct world *)arg)->got;
}

static void say_over(void *arg)
{
	rpma_loopback_sched_point("once");
	rpma_loopback_sched_point("twice");
	((struct world *)arg)->got = 1;
}

static void another(void *arg)
{
	(void)arg;
	rpma_loopback_sched_point("another");
}

/* every other run it waits for what it did not wait for before */
static void fickle(void *arg)
{
	static int calls;

	if (calls++ % 2)
		rpma_loopback_sched_wait(is_first_over, arg);
	else
		rpma_loopback_sched_point("not this time");
}

static void set_nothing(void *arg)
{
	((struct world *)arg)->got = 0;
}

/* The threads stay, so after others. */
FRESH(run__fickle_body_TOLD)
{
	static struct world w;
	static struct rpma_loopback_sched sched = {
		.threads = 3,
		.body = {say_over, another, fickle},
		.setup = set_nothing,
		.arg = &w,
	};
	struct rpma_loopback_sched_result result;

	assert_int_equal(rpma_loopback_sched_run(&sched, &result), 1);
	assert_true(result.runs > 1);
	assert_false(result.complete);
}

FRESH(run__bad_arguments_EINVAL)
{
	struct rpma_loopback_sched sched = {.threads = 0};

	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), -EINVAL);
	sched.threads = 9;
	assert_int_equal(rpma_loopback_sched_run(&sched, NULL), -EINVAL);
}

TEST_MAIN()
