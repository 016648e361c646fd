/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The owner of a poller of manual mode: attached, released, the end of the
 * thread; and the threads that serve a poller without an owner, in turn. */

#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "rt_fake.h"
#include "base/owner.h"

/* The first test: no other test has made the key before. */
TEST(start__no_key_is_left_LATER_THERE_IS)
{
	pthread_key_t keys[PTHREAD_KEYS_MAX];
	int count = 0;

	while (count < PTHREAD_KEYS_MAX &&
	       pthread_key_create(&keys[count], NULL) == 0)
		count++;
	assert_int_equal(rt_owner_start(), RPMA_E_NOMEM);
	ok(pthread_key_delete(keys[--count]));
	ok(rt_owner_start());
	while (count > 0)
		ok(pthread_key_delete(keys[--count]));
}

/* A poller without anything behind the owner. */
struct turns {
	struct rt_owned owned; /* first */
	struct rt_inbox inbox;
	_Atomic int rounds;
};

static void run(struct rt_owned *owned)
{
	/* release: pairs with the acquire in rounds_of() */
	atomic_fetch_add_explicit(&((struct turns *)owned)->rounds, 1,
				  memory_order_release);
}

static int rounds_of(struct turns *turns)
{
	/* acquire: pairs with the release in run() */
	return atomic_load_explicit(&turns->rounds, memory_order_acquire);
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

static void attach(struct turns *turns)
{
	ok(rt_owner_enter(&turns->owned));
	ok(rt_owner_attach(&turns->owned));
	rt_owner_leave(&turns->owned);
}

/* ------------------------------------------------------ another thread --- */

/* Owns a poller, or is inside, until the test ends the thread. */
struct other {
	struct turns *turns;
	struct fake_thread thread;
	pid_t tid;
	bool is_owner;
	bool stays_inside;
};

static void *enter_it(void *arg)
{
	struct other *other = arg;

	other->tid = gettid();
	pthread_setname_np(pthread_self(), "shard-1");
	ok(rt_owner_enter(&other->turns->owned));
	if (other->is_owner)
		ok(rt_owner_attach(&other->turns->owned));
	if (!other->stays_inside)
		rt_owner_leave(&other->turns->owned);
	fake_thread_stay(&other->thread);
	if (other->stays_inside)
		rt_owner_leave(&other->turns->owned);
	return NULL;
}

static void other_begin(struct other *other, struct turns *turns, bool is_owner,
			bool stays)
{
	other->turns = turns;
	other->is_owner = is_owner;
	other->stays_inside = stays;
	fake_thread_begin(&other->thread, enter_it, other);
}

/* --------------------------------------------------------------- tests --- */

/* The first case: the thread has owned no poller. */
TEST(enter__nobody_owns_it)
{
	struct turns turns;

	turns_init(&turns);
	ok(enter_and_leave(&turns));
	assert_false(rt_owner_is_self(&turns.owned));
	assert_false(rt_owner_has_any());
	assert_true(rt_owner_close(&turns.owned));
	assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_CLOSED);
}

TEST(attach__the_caller_owns_it)
{
	char name[RT_THREAD_NAME];
	struct turns turns;
	pid_t tid;

	turns_init(&turns);
	assert_false(rt_owner_is_self(&turns.owned));
	attach(&turns);
	assert_true(rt_owner_is_self(&turns.owned));
	assert_false(rt_owner_is_other(&turns.owned, name, &tid));
	assert_true(rt_owner_has_any());
	attach(&turns); /* once more: no change */
	rt_owner_run_all();
	assert_int_equal(rounds_of(&turns), 1);
	assert_true(rt_owner_close(&turns.owned));
}

/* Whether the owner is inside or not. */
TEST(enter__of_another_thread_BUSY)
{
	char name[RT_THREAD_NAME];
	struct turns turns;
	struct other other;
	pid_t tid;
	int i;

	for (i = 0; i < 2; i++) {
		turns_init(&turns);
		other_begin(&other, &turns, true, i == 1);
		assert_true(rt_owner_is_other(&turns.owned, name, &tid));
		assert_string_equal(name, "shard-1");
		assert_int_equal(tid, other.tid);
		assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_BUSY);
		assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_BUSY);
		assert_false(rt_owner_visit(&turns.owned));
		rt_owner_run_all();
		assert_int_equal(rounds_of(&turns), 0);
		fake_thread_end(&other.thread);
		assert_false(rt_owner_is_self(&turns.owned));
		attach(&turns);
		assert_true(rt_owner_close(&turns.owned));
	}
}

/* A thread that enters while another thread is inside. */
struct second {
	struct turns *turns;
	pthread_t thread;
	_Atomic bool has_entered;
};

static void *enter_second(void *arg)
{
	struct second *second = arg;

	ok(rt_owner_enter(&second->turns->owned));
	/* release: pairs with the acquires of the test */
	atomic_store_explicit(&second->has_entered, true, memory_order_release);
	rt_owner_leave(&second->turns->owned);
	return NULL;
}

static bool sleeps_for_its_turn(struct turns *turns)
{
	/* relaxed: only whether the state is reached matters */
	return atomic_load_explicit(&turns->owned.inside,
				    memory_order_relaxed) == RT_INSIDE_AWAITED;
}

/* The second thread waits for the end of the round of the first, and no longer;
 * a visit does not wait. */
TEST(enter__somebody_inside_WAITS)
{
	struct second seconds[2];
	struct turns turns;
	int i;

	turns_init(&turns);
	ok(rt_owner_enter(&turns.owned));
	for (i = 0; i < 2; i++) {
		seconds[i].turns = &turns;
		atomic_init(&seconds[i].has_entered, false);
		ok(pthread_create(&seconds[i].thread, NULL, enter_second,
				  &seconds[i]));
	}
	while (!sleeps_for_its_turn(&turns))
		sched_yield();
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(rounds_of(&turns), 0);
	assert_false(rt_owner_close(&turns.owned));
	for (i = 0; i < 2; i++)
		/* acquire: pairs with the release in enter_second() */
		assert_false(atomic_load_explicit(&seconds[i].has_entered,
						  memory_order_acquire));
	rt_owner_leave(&turns.owned);
	for (i = 0; i < 2; i++)
		pthread_join(seconds[i].thread, NULL);
	assert_true(rt_owner_close(&turns.owned));
}

/* The first becomes the owner meanwhile: the second does not enter. */
static void *enter_busy(void *arg)
{
	struct second *second = arg;

	assert_int_equal(rt_owner_enter(&second->turns->owned), RPMA_RT_E_BUSY);
	return NULL;
}

TEST(enter__attached_meanwhile_BUSY)
{
	struct second second;
	struct turns turns;

	turns_init(&turns);
	second.turns = &turns;
	ok(rt_owner_enter(&turns.owned));
	ok(pthread_create(&second.thread, NULL, enter_busy, &second));
	while (!sleeps_for_its_turn(&turns))
		sched_yield();
	ok(rt_owner_attach(&turns.owned));
	rt_owner_leave(&turns.owned);
	pthread_join(second.thread, NULL);
	assert_true(rt_owner_is_self(&turns.owned));
	assert_true(rt_owner_close(&turns.owned));
}

/* A thread with pollers runs its pollers while waiting for its turn. */
static void *enter_with_own(void *arg)
{
	struct second *second = arg;

	attach(&second->turns[1]);
	ok(rt_owner_enter(&second->turns[0].owned));
	rt_owner_leave(&second->turns[0].owned);
	return NULL;
}

TEST(enter__waits_and_runs_its_own)
{
	struct turns turns[2];
	struct second second = {.turns = turns};

	turns_init(&turns[0]);
	turns_init(&turns[1]);
	ok(rt_owner_enter(&turns[0].owned));
	ok(pthread_create(&second.thread, NULL, enter_with_own, &second));
	while (rounds_of(&turns[1]) < 3)
		sched_yield();
	rt_owner_leave(&turns[0].owned);
	pthread_join(second.thread, NULL);
	assert_true(rt_owner_close(&turns[0].owned));
	assert_true(rt_owner_close(&turns[1].owned));
}

TEST(thread__its_end_releases)
{
	char name[RT_THREAD_NAME];
	struct turns turns[2];
	struct other others[2];
	pid_t tid;
	int i;

	for (i = 0; i < 2; i++) {
		turns_init(&turns[i]);
		other_begin(&others[i], &turns[i], true, false);
		assert_true(rt_owner_is_other(&turns[i].owned, name, &tid));
	}
	for (i = 0; i < 2; i++) {
		fake_thread_end(&others[i].thread);
		assert_false(rt_owner_is_other(&turns[i].owned, name, &tid));
		assert_false(rt_owner_is_self(&turns[i].owned));
		assert_true(rt_owner_close(&turns[i].owned));
	}
}

TEST(release__nobodys_and_visited)
{
	struct turns turns;
	struct other other;

	turns_init(&turns);
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(rounds_of(&turns), 1);
	assert_false(rt_owner_is_self(&turns.owned));
	attach(&turns);
	assert_false(rt_owner_visit(&turns.owned));
	ok(rt_owner_enter(&turns.owned));
	rt_owner_release(&turns.owned);
	rt_owner_leave(&turns.owned);
	rt_owner_run_all();
	assert_int_equal(rounds_of(&turns), 1);
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(rounds_of(&turns), 2);
	other_begin(&other, &turns, true, false);
	assert_false(rt_owner_visit(&turns.owned));
	assert_int_equal(rounds_of(&turns), 2);
	fake_thread_end(&other.thread);
	assert_true(rt_owner_close(&turns.owned));
	assert_true(rt_owner_visit(&turns.owned)); /* and runs nothing */
	assert_int_equal(rounds_of(&turns), 2);
}

TEST(run_all__each_once)
{
	struct turns turns[3];
	int i;

	for (i = 0; i < 3; i++) {
		turns_init(&turns[i]);
		attach(&turns[i]);
	}
	rt_owner_run_all();
	assert_true(rt_owner_close(&turns[1].owned));
	rt_owner_run_all();
	assert_int_equal(rounds_of(&turns[0]), 2);
	assert_int_equal(rounds_of(&turns[1]), 1);
	assert_int_equal(rounds_of(&turns[2]), 2);
	assert_true(rt_owner_close(&turns[0].owned));
	assert_true(rt_owner_close(&turns[2].owned));
	assert_true(rt_owner_close(&turns[2].owned)); /* closed already */
}

/* The thread of a child is not the parent's owner. */
TEST(forked__owns_nothing)
{
	struct turns turns;

	turns_init(&turns);
	attach(&turns);
	rt_owner_forked();
	assert_false(rt_owner_has_any());
	rt_owner_run_all();
	assert_int_equal(rounds_of(&turns), 0);
}

/* ------------------------------------------------------------- kept in --- */

/* A poller that only the owner enters, by plain stores, from the end of the
 * first round on. */

static uint32_t state_of(struct turns *turns)
{
	/* relaxed: the state that the calling thread has left, or of a thread
	 * that has been awaited */
	return atomic_load_explicit(&turns->owned.inside, memory_order_relaxed);
}

static int set_up_owned(void **state)
{
	(void)state;
	rt_fence_start();
	return 0;
}

/* Attaches, and runs the first round. */
static void own(struct turns *turns)
{
	turns_init(turns);
	if (!rt_fence_is_ready())
		skip();
	attach(turns);
	assert_int_equal(state_of(turns), RT_INSIDE_NOBODY);
	rt_owner_run_all();
	assert_int_equal(rounds_of(turns), 1);
	assert_int_equal(state_of(turns), RT_INSIDE_OWNED);
}

static void *be_busy(void *arg)
{
	struct turns *turns = arg;

	assert_int_equal(rt_owner_enter(&turns->owned), RPMA_RT_E_BUSY);
	assert_false(rt_owner_enter_own(&turns->owned));
	assert_false(rt_owner_visit(&turns->owned));
	return NULL;
}

static void *close_it(void *arg)
{
	assert_true(rt_owner_close(arg));
	return NULL;
}

static void *close_in_vain(void *arg)
{
	assert_false(rt_owner_close(arg));
	return NULL;
}

static void *enter_in_turn(void *arg)
{
	ok(enter_and_leave(arg));
	return NULL;
}

static void in_another_thread(void *(*fn)(void *arg), struct turns *turns)
{
	pthread_t thread;

	ok(pthread_create(&thread, NULL, fn, turns));
	ok(pthread_join(thread, NULL));
}

TEST_WITH(owned__only_the_owner_enters, set_up_owned, NULL)
{
	struct turns turns;

	own(&turns);
	in_another_thread(be_busy, &turns);
	assert_true(rt_owner_enter_own(&turns.owned));
	in_another_thread(be_busy, &turns);
	rt_owner_leave_own(&turns.owned);
	ok(enter_and_leave(&turns));
	attach(&turns); /* once more: no change */
	assert_int_equal(state_of(&turns), RT_INSIDE_OWNED);
	in_another_thread(be_busy, &turns);
	assert_true(rt_owner_close(&turns.owned));
}

TEST_WITH(owned__closed_outside_THE_OWNER_IS_TOLD, set_up_owned, NULL)
{
	struct turns turns;

	own(&turns);
	in_another_thread(close_it, &turns);
	assert_false(rt_owner_enter_own(&turns.owned));
	assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_CLOSED);
	rt_owner_run_all();
	assert_int_equal(rounds_of(&turns), 1);
}

/* The owner goes on, and the stop comes again. */
TEST_WITH(owned__closed_inside_LATER, set_up_owned, NULL)
{
	struct turns turns;

	own(&turns);
	assert_true(rt_owner_enter_own(&turns.owned));
	in_another_thread(close_in_vain, &turns);
	rt_owner_leave_own(&turns.owned);
	assert_true(rt_owner_is_self(&turns.owned));
	rt_owner_run_all();
	assert_int_equal(rounds_of(&turns), 2);
	in_another_thread(close_it, &turns);
	assert_int_equal(rt_owner_enter(&turns.owned), RPMA_RT_E_CLOSED);
}

TEST_WITH(owned__released_ANY_THREAD_ENTERS, set_up_owned, NULL)
{
	struct turns turns;

	own(&turns);
	ok(rt_owner_enter(&turns.owned));
	rt_owner_release(&turns.owned);
	assert_int_equal(state_of(&turns), RT_INSIDE_THREAD);
	rt_owner_leave(&turns.owned);
	in_another_thread(enter_in_turn, &turns);
	assert_true(rt_owner_visit(&turns.owned));
	assert_int_equal(rounds_of(&turns), 2);
	attach(&turns);
	rt_owner_run_all();
	assert_int_equal(state_of(&turns), RT_INSIDE_OWNED);
	assert_true(rt_owner_close(&turns.owned));
}

static void *own_and_end(void *arg)
{
	attach(arg);
	rt_owner_run_all();
	return NULL;
}

TEST_WITH(owned__the_owner_ends_ANY_THREAD_ENTERS, set_up_owned, NULL)
{
	struct turns turns;

	turns_init(&turns);
	in_another_thread(own_and_end, &turns);
	assert_int_equal(state_of(&turns), RT_INSIDE_NOBODY);
	ok(enter_and_leave(&turns));
	assert_true(rt_owner_visit(&turns.owned));
	assert_true(rt_owner_close(&turns.owned));
}

TEST_MAIN()
