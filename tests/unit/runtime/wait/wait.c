/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The wait of a call: the pollers run meanwhile, and the message about a poller
 * of another thread with work and without rounds. */

#include <string.h>

#include "rt_fake.h"
#include "base/clock.h"
#include "base/wait.h"

/* A poller that ends a wait after some rounds. */
struct turns {
	struct rt_owned owned; /* first */
	struct rt_bell bell;
	struct rt_inbox inbox;
	int rounds;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

static void run(struct rt_owned *owned)
{
	struct turns *turns = (struct turns *)owned;

	/* no lock is held meanwhile */
	ok(pthread_mutex_trylock(&lock));
	turns->rounds++;
	pthread_mutex_unlock(&lock);
}

static void turns_open(struct turns *turns)
{
	memset(turns, 0, sizeof(*turns));
	ok(rt_bell_init(&turns->bell));
	ok(rt_inbox_init(&turns->inbox, &turns->bell));
	ok(rt_owner_start());
	rt_owner_init(&turns->owned, 1, &turns->inbox, run);
}

static void turns_close(struct turns *turns)
{
	assert_true(rt_owner_close(&turns->owned));
	rt_inbox_fini(&turns->inbox);
	rt_bell_fini(&turns->bell);
}

static void own(struct turns *turns)
{
	ok(rt_owner_enter(&turns->owned));
	ok(rt_owner_attach(&turns->owned));
	rt_owner_leave(&turns->owned);
}

static void wait_for_rounds(struct rt_wait *wait, const struct turns *turns,
			    int rounds)
{
	pthread_mutex_lock(&lock);
	while (turns->rounds < rounds)
		rt_wait_step(wait, &changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* Runs each poller of the mask that has no owner. In the first case the thread
 * owns nothing. */
TEST(run__the_pollers_of_the_mask)
{
	struct turns turns[4];
	int i;

	for (i = 0; i < 4; i++) {
		turns_open(&turns[i]);
		turns[i].owned.next = i < 3 ? &turns[i + 1].owned : NULL;
	}
	assert_false(rt_wait_run(NULL, &turns[0].owned, 0));
	assert_true(rt_wait_run(NULL, &turns[0].owned, 1u << 1 | 1u << 3));
	assert_int_equal(turns[0].rounds, 0);
	assert_int_equal(turns[1].rounds, 1);
	assert_int_equal(turns[2].rounds, 0);
	assert_int_equal(turns[3].rounds, 1);
	for (i = 0; i < 4; i++)
		turns_close(&turns[i]);
}

/* Runs the known poller without the lock of all owners, if the thread has no
 * other poller; otherwise runs all pollers of the thread. */
TEST(run__known_poller_WITH_ALL_OF_THE_THREAD)
{
	struct turns turns[3];
	int i;

	for (i = 0; i < 3; i++)
		turns_open(&turns[i]);
	own(&turns[0]);
	assert_true(rt_wait_run(&turns[0].owned, NULL, 0));
	assert_int_equal(turns[0].rounds, 1);
	assert_true(rt_wait_run(&turns[2].owned, NULL, 0));
	assert_int_equal(turns[0].rounds, 2);
	own(&turns[1]);
	assert_true(rt_wait_run(&turns[1].owned, NULL, 0));
	assert_int_equal(turns[0].rounds, 3);
	assert_int_equal(turns[1].rounds, 1);
	assert_int_equal(turns[2].rounds, 0);
	for (i = 0; i < 3; i++)
		turns_close(&turns[i]);
}

/* Runs all pollers of the calling thread, whatever the wait is for. */
TEST(step__runs_all_of_the_calling_thread)
{
	struct rt_wait wait = {0};
	struct turns turns[3];
	int i;

	for (i = 0; i < 3; i++)
		turns_open(&turns[i]);
	own(&turns[0]);
	own(&turns[1]);
	wait_for_rounds(&wait, &turns[1], 5);
	assert_true(turns[0].rounds >= 4);
	assert_int_equal(turns[2].rounds, 0);
	for (i = 0; i < 3; i++)
		turns_close(&turns[i]);
}

/* Visits, among pollers without an owner, the awaited one; in a stop each. */
TEST(step__visits_what_it_waits_for)
{
	struct turns turns[2];
	struct rt_wait wait = {.pollers = &turns[0].owned,
			       .which = RT_WAIT_ONE};
	struct rt_wait all = {.pollers = &turns[0].owned, .which = RT_WAIT_ALL};

	turns_open(&turns[0]);
	turns_open(&turns[1]);
	turns[0].owned.next = &turns[1].owned;
	wait_for_rounds(&wait, &turns[0], 3);
	assert_int_equal(turns[1].rounds, 0);
	assert_false(rt_owner_is_self(&turns[0].owned));
	wait_for_rounds(&all, &turns[1], 3);
	turns_close(&turns[0]);
	turns_close(&turns[1]);
}

struct other {
	struct turns *turns;
	struct fake_thread thread;
};

static void *own_it(void *arg)
{
	struct other *other = arg;

	own(other->turns);
	fake_thread_stay(&other->thread);
	return NULL;
}

static void other_begin(struct other *other, struct turns *turns)
{
	other->turns = turns;
	fake_thread_begin(&other->thread, own_it, other);
}

static void nothing(struct rt_msg *msg, void *owner)
{
	(void)msg;
	(void)owner;
}

/* Steps for somewhat more than a second; how much was logged. */
static int wait_a_second(struct rt_wait *wait)
{
	uint64_t end = rt_now_ns() + UINT64_C(1300000000);

	fake_logged();
	pthread_mutex_lock(&lock);
	while (rt_now_ns() < end)
		rt_wait_step(wait, &changed, &lock);
	pthread_mutex_unlock(&lock);
	return fake_logged();
}

/* Steps until something is logged; how much was. */
static int wait_until_logged(struct rt_wait *wait)
{
	int logged;

	fake_logged();
	pthread_mutex_lock(&lock);
	while ((logged = fake_logged()) == 0)
		rt_wait_step(wait, &changed, &lock);
	pthread_mutex_unlock(&lock);
	return logged;
}

/* Logs once about a poller with work whose thread does not run the poller. */
TEST(step__owner_does_not_run_it_LOGGED_ONCE)
{
	struct turns turns;
	struct rt_wait wait = {.pollers = &turns.owned, .which = RT_WAIT_ONE};
	struct rt_msg msg = {.fn = nothing};
	struct other other;

	turns_open(&turns);
	other_begin(&other, &turns);
	rt_inbox_push_mt(&turns.inbox, &msg);
	assert_int_equal(wait_until_logged(&wait), 1);
	assert_int_equal(wait_a_second(&wait), 0);
	assert_int_equal(turns.rounds, 0);
	fake_thread_end(&other.thread);
	turns_close(&turns);
}

/* Logs nothing about a poller without work: the thread of the poller may sleep
 * as long as the thread wants. */
TEST(step__owner_asleep_NOTHING_SAID)
{
	struct turns turns;
	struct rt_wait wait = {.pollers = &turns.owned, .which = RT_WAIT_ALL};
	struct other other;

	turns_open(&turns);
	other_begin(&other, &turns);
	assert_int_equal(wait_a_second(&wait), 0);
	fake_thread_end(&other.thread);
	turns_close(&turns);
}

/* Runs the poller of a thread that ends while another thread waits for the
 * poller. */
TEST(step__owner_ends_RUN_BY_WHO_WAITS)
{
	struct turns turns;
	struct rt_wait wait = {.pollers = &turns.owned, .which = RT_WAIT_ONE};
	struct other other;

	turns_open(&turns);
	other_begin(&other, &turns);
	pthread_mutex_lock(&lock);
	rt_wait_step(&wait, &changed, &lock);
	pthread_mutex_unlock(&lock);
	assert_int_equal(turns.rounds, 0);
	fake_thread_end(&other.thread);
	wait_for_rounds(&wait, &turns, 1);
	turns_close(&turns);
}

static int setup(void **state)
{
	(void)state;
	rt_wait_cond_init(&changed);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return pthread_cond_destroy(&changed);
}

int main(void)
{
	return tests_run(setup, teardown);
}
