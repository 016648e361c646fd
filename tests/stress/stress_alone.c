/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects that a single thread enters by plain stores, on the machine's own
 * store buffers. First the lock of a queue's consumer (runtime/base/keep.h):
 * one thread takes the lock as fast as it can, so the lock is kept for that
 * thread over and over; a second thread takes the lock after short, changing
 * delays. Then a poller of manual mode (runtime/base/owner.h): the owner runs
 * the poller as fast as it can, and a second thread closes the poller, again
 * and again. Only the thread inside counts, so a count is lost if two threads
 * are inside. doc/protocols/keep.md.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/keep.h"
#include "base/owner.h"
#include "rpma_rt.h"
#include "stress.h"

#define KEEPS	3
#define DAWDLES 2000
#define SKIPPED 77

static struct {
	struct rt_keep lock;
	struct rt_owned owned;
	struct rt_inbox inbox;
	/* of the thread inside; volatile, so that each count is a load and a
	 * store */
	volatile uint64_t counted;
	volatile bool inside;
	atomic_bool over;
	atomic_bool is_kept; /* the first thread has become the keeper */
	uint64_t alone;	     /* takes, or rounds, of the first thread */
	uint64_t kept;	     /* of these by plain stores */
	uint64_t others;     /* takes, or closes, of the second thread */
	/* of the pollers, which the first thread owns one after the other */
	_Atomic uint64_t made;
	_Atomic uint64_t left;
} s;

static bool is_over(void)
{
	/* relaxed: nothing is read with it */
	return atomic_load_explicit(&s.over, memory_order_relaxed);
}

static void count_one(void)
{
	STRESS_CHECK(!s.inside);
	s.inside = true;
	s.counted++;
	STRESS_CHECK(s.inside);
	s.inside = false;
}

/* ------------------------------------------------------------- the lock --- */

static bool take_once(void)
{
	if (!rt_keep_take(&s.lock))
		return false;
	count_one();
	rt_keep_give_back(&s.lock);
	return true;
}

static void *take_alone(void *arg)
{
	(void)arg;
	while (!is_over()) {
		if (rt_keep_is_here(&s.lock) && rt_keep_go_in(&s.lock)) {
			count_one();
			rt_keep_go_out(&s.lock);
			s.alone++;
			s.kept++;
			/* relaxed: nothing is read with it */
			atomic_store_explicit(&s.is_kept, true,
					      memory_order_relaxed);
		} else {
			s.alone += take_once();
		}
	}
	return NULL;
}

static void take_beside(struct stress_rng *rng)
{
	stress_dawdle(rng, DAWDLES);
	/* the keeper is chosen for good, and has to be the first thread.
	 * relaxed: nothing is read with it */
	if (atomic_load_explicit(&s.is_kept, memory_order_relaxed))
		s.others += take_once();
}

/* ----------------------------------------------------------- the poller --- */

static void run(struct rt_owned *owned)
{
	(void)owned;
}

static bool run_own(void)
{
	if (rt_owner_enter_own(&s.owned)) {
		count_one();
		/* relaxed: written by this thread */
		s.kept += atomic_load_explicit(&s.owned.by_owner,
					       memory_order_relaxed);
		rt_owner_leave_own(&s.owned);
	} else if (rt_owner_enter(&s.owned) == 0) {
		count_one();
		rt_owner_leave(&s.owned);
	} else {
		return false;
	}
	s.alone++;
	return true;
}

static void own_next(void)
{
	int ret = rt_owner_enter(&s.owned);

	STRESS_CHECK(ret == 0 || ret == RPMA_RT_E_CLOSED);
	if (ret)
		return;
	STRESS_CHECK(rt_owner_attach(&s.owned) == 0);
	rt_owner_leave(&s.owned);
	while (run_own())
		;
}

static void *own_each(void *arg)
{
	uint64_t done = 0;

	(void)arg;
	while (!is_over()) {
		/* acquire: pairs with the release in close_next() */
		if (atomic_load_explicit(&s.made, memory_order_acquire) ==
		    done) {
			sched_yield();
			continue;
		}
		own_next();
		done++;
		/* release: pairs with the acquire in close_next() */
		atomic_store_explicit(&s.left, done, memory_order_release);
	}
	return NULL;
}

static bool is_owned(void)
{
	/* relaxed: only whether the state is reached matters */
	return atomic_load_explicit(&s.owned.inside, memory_order_relaxed) ==
	       RT_INSIDE_OWNED;
}

static void close_next(struct stress_rng *rng)
{
	s.others++;
	rt_owner_init(&s.owned, 0, &s.inbox, run);
	/* release, acquire: see own_each() */
	atomic_store_explicit(&s.made, s.others, memory_order_release);
	while (!is_owned())
		sched_yield();
	stress_dawdle(rng, DAWDLES);
	while (!rt_owner_close(&s.owned))
		sched_yield();
	count_one();
	while (atomic_load_explicit(&s.left, memory_order_acquire) != s.others)
		sched_yield();
}

/* ----------------------------------------------------------------- both --- */

static void pair(const char *what, void *(*first)(void *),
		 void (*second)(struct stress_rng *rng), double seconds,
		 struct stress_rng *rng)
{
	double end = stress_now() + seconds;
	pthread_t thread;

	s.counted = s.alone = s.kept = s.others = 0;
	/* relaxed, both: see is_over() */
	atomic_store_explicit(&s.over, false, memory_order_relaxed);
	STRESS_CHECK(!pthread_create(&thread, NULL, first, NULL));
	while (stress_now() < end)
		second(rng);
	atomic_store_explicit(&s.over, true, memory_order_relaxed);
	STRESS_CHECK(!pthread_join(thread, NULL));
	printf("%s: %llu alone, %llu of them by plain stores, %llu of the "
	       "other thread\n",
	       what, (unsigned long long)s.alone, (unsigned long long)s.kept,
	       (unsigned long long)s.others);
	STRESS_CHECK(s.counted == s.alone + s.others);
	STRESS_CHECK(s.kept > 0);
}

int main(int argc, char **argv)
{
	struct stress stress = stress_begin(argc, argv);
	struct stress_rng rng = stress_rng(stress.seed, 0);

	rt_fence_start();
	if (!rt_fence_is_ready()) {
		fprintf(stderr, "SKIPPED: the kernel has no membarrier()\n");
		return SKIPPED;
	}
	STRESS_CHECK(rt_owner_start() == 0);
	rt_keep_after = KEEPS;
	rt_keep_init(&s.lock);
	pair("lock", take_alone, take_beside, stress.seconds / 2, &rng);
	STRESS_CHECK(!rt_keep_is_taken(&s.lock));
	pair("poller", own_each, close_next, stress.seconds / 2, &rng);
	return 0;
}
