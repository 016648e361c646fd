/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The owner of a poller of manual mode: entered, taken over, released, visited,
 * closed, and the end of its thread. */

#define _GNU_SOURCE
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "rt_fake.h"
#include "base/owner.h"

/* A poller without anything behind it. */
struct turns {
	struct rt_owned owned; /* first */
	struct rt_inbox inbox;
	int rounds;
};

static void run(struct rt_owned *owned)
{
	((struct turns *)owned)->rounds++;
}

static void turns_init(struct turns *turns)
{
	memset(turns, 0, sizeof(*turns));
	ok(rt_owner_start());
	rt_owner_init(&turns->owned, 0, &turns->inbox, run);
}

static int enter_and_leave(struct turns *turns)
{
	int ret = rt_owner_enter(&turns->owned);

	if (ret == 0)
		rt_owner_leave(&turns->owned);
	return ret;
}

/* ------------------------------------------------------ another thread --- */

/* It owns a poller until it is told to end. */
struct other {
	struct turns *turns;
	pthread_t thread;
	sem_t owns;
	sem_t ends;
	pid_t tid;
	bool stays_inside;
};

static void *own_it(void *arg)
{
	struct other *other = arg;

	other->tid = gettid();
	pthread_setname_np(pthread_self(), "shard-1");
	ok(rt_owner_enter(&other->turns->owned));
	if (!other->stays_inside)
		rt_owner_leave(&other->turns->owned);
	sem_post(&other->owns);
	sem_wait(&other->ends);
	if (other->stays_inside)
		rt_owner_leave(&other->turns->owned);
	return NULL;
}

static void other_begin(struct other *other, struct turns *turns, bool stays)
{
	other->turns = turns;
	other->stays_inside = stays;
	sem_init(&other->owns, 0, 0);
	sem_init(&other->ends, 0, 0);
	ok(pthread_create(&other->thread, NULL, own_it, other));
	sem_wait(&other->owns);
}

static void other_end(struct other *other)
{
	sem_post(&other->ends);
	pthread_join(other->thread, NULL);
	sem_destroy(&other->owns);
	sem_destroy(&other->ends);
}

/* --------------------------------------------------------------- tests --- */

static void enter__the_caller_owns_it(void **state)
{
	char name[RT_THREAD_NAME];
	struct turns turns;
	pid_t tid;

	(void)state;
	turns_init(&turns);
	assert_false(rt_owner_is_self(&turns.owned));
	assert_false(rt_owner_is_other(&turns.owned, name, &tid));
	ok(enter_and_leave(&turns));
	assert_true(rt_owner_is_self(&turns.owned));
	assert_false(rt_owner_is_other(&turns.owned, name, &tid));
	assert_true(rt_owner_has_any());
	assert_true(rt_owner_close(&turns.owned));
}

static void enter__somebody_inside_BUSY(void **state)
{
	struct turns turns;
	struct other other;

	(void)state;
	turns_init(&turns);
	ok(rt_owner_enter(&turns.owned));
	assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_BUSY);
	rt_owner_leave(&turns.owned);
	other_begin(&other, &turns, true);
	assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_BUSY);
	assert_false(rt_owner_close(&turns.owned));
	other_end(&other);
	ok(enter_and_leave(&turns));
	assert_true(rt_owner_close(&turns.owned));
	assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_CLOSED);
}

/* The last one that went in has it; the one before runs it no more. */
static void enter__taken_over_from_another_thread(void **state)
{
	char name[RT_THREAD_NAME];
	struct turns turns;
	struct other other;
	pid_t tid;

	(void)state;
	turns_init(&turns);
	ok(enter_and_leave(&turns));
	other_begin(&other, &turns, false);
	assert_false(rt_owner_is_self(&turns.owned));
	assert_true(rt_owner_is_other(&turns.owned, name, &tid));
	assert_string_equal(name, "shard-1");
	assert_int_equal(tid, other.tid);
	rt_owner_run_all();
	assert_int_equal(turns.rounds, 0);
	ok(enter_and_leave(&turns));
	assert_true(rt_owner_is_self(&turns.owned));
	other_end(&other);
	assert_true(rt_owner_is_self(&turns.owned));
	rt_owner_run_all();
	assert_int_equal(turns.rounds, 1);
	assert_true(rt_owner_close(&turns.owned));
}

static void thread__its_end_releases(void **state)
{
	char name[RT_THREAD_NAME];
	struct turns turns[2];
	struct other others[2];
	pid_t tid;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		turns_init(&turns[i]);
		other_begin(&others[i], &turns[i], false);
		assert_true(rt_owner_is_other(&turns[i].owned, name, &tid));
	}
	for (i = 0; i < 2; i++) {
		other_end(&others[i]);
		assert_false(rt_owner_is_other(&turns[i].owned, name, &tid));
		assert_false(rt_owner_is_self(&turns[i].owned));
		assert_true(rt_owner_close(&turns[i].owned));
	}
}

static void release__nobodys_and_visited(void **state)
{
	struct turns turns;
	struct other other;

	(void)state;
	turns_init(&turns);
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(turns.rounds, 1);
	assert_false(rt_owner_is_self(&turns.owned));
	ok(rt_owner_enter(&turns.owned));
	rt_owner_release(&turns.owned);
	rt_owner_leave(&turns.owned);
	rt_owner_run_all();
	assert_int_equal(turns.rounds, 1);
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(turns.rounds, 2);
	other_begin(&other, &turns, false);
	assert_false(rt_owner_visit(&turns.owned));
	assert_int_equal(turns.rounds, 2);
	other_end(&other);
	assert_true(rt_owner_close(&turns.owned));
}

static void run_again(struct rt_owned *owned)
{
	run(owned);
	/* a call that waits is inside */
	assert_int_equal(rt_owner_enter(owned), RPMA_E_AGAIN);
	assert_false(rt_owner_close(owned));
}

/* The owner to be waits for the end of a visitor's round only, */
static void visit__owner_waits_AGAIN(void **state)
{
	struct turns turns;

	(void)state;
	turns_init(&turns);
	turns.owned.run = run_again;
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(turns.rounds, 1);
	ok(enter_and_leave(&turns));
	assert_true(rt_owner_close(&turns.owned));
}

/* and for the end of a round that the owner runs while the owner waits. */
static void run_all__owner_to_be_waits_AGAIN(void **state)
{
	struct turns turns;

	(void)state;
	turns_init(&turns);
	turns.owned.run = run_again;
	ok(enter_and_leave(&turns));
	rt_owner_run_all();
	assert_int_equal(turns.rounds, 1);
	ok(enter_and_leave(&turns));
	assert_true(rt_owner_close(&turns.owned));
}

static void run_all__each_once(void **state)
{
	struct turns turns[3];
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		turns_init(&turns[i]);
		ok(enter_and_leave(&turns[i]));
	}
	rt_owner_run_all();
	assert_true(rt_owner_close(&turns[1].owned));
	rt_owner_run_all();
	assert_int_equal(turns[0].rounds, 2);
	assert_int_equal(turns[1].rounds, 1);
	assert_int_equal(turns[2].rounds, 2);
	assert_true(rt_owner_close(&turns[0].owned));
	assert_true(rt_owner_close(&turns[2].owned));
	assert_true(rt_owner_close(&turns[2].owned)); /* closed already */
}

/* The thread of a child is not the parent's owner. */
static void forked__owns_nothing(void **state)
{
	struct turns turns;

	(void)state;
	turns_init(&turns);
	ok(enter_and_leave(&turns));
	rt_owner_forked();
	assert_false(rt_owner_has_any());
	rt_owner_run_all();
	assert_int_equal(turns.rounds, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enter__the_caller_owns_it),
		cmocka_unit_test(enter__somebody_inside_BUSY),
		cmocka_unit_test(enter__taken_over_from_another_thread),
		cmocka_unit_test(thread__its_end_releases),
		cmocka_unit_test(release__nobodys_and_visited),
		cmocka_unit_test(visit__owner_waits_AGAIN),
		cmocka_unit_test(run_all__owner_to_be_waits_AGAIN),
		cmocka_unit_test(run_all__each_once),
		cmocka_unit_test(forked__owns_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
