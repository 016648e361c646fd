/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A queue shared by several workers, one situation at a time: which worker is
 * woken, which worker wakes the next, how a worker inside affects the others;
 * and a second consumer of a queue that is not shared.
 */

#include <stdlib.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../cases.h"
#include "queue/impl.h"
#include "rt_stub.h"

#define MAX	8
#define WORKERS 3

struct worker {
	pthread_t thread;
	struct rpma_rt_queue *queue;
	int max;
	int got;
	_Atomic bool back;
};

static struct worker workers[WORKERS];

static int setup(void **state)
{
	return stub_open(state, 1, false, true);
}

#define ON_WORLD(name) \
	TEST_OF(struct stub_world *world, name, setup, stub_close)

static uint32_t consumers(struct stub_world *world)
{
	/* acquire: the actions of the workers before */
	return atomic_load_explicit(&world->queue->consumers,
				    memory_order_acquire);
}

static void set_shared(struct stub_world *world, uint32_t word)
{
	/* release: like a leaving worker */
	atomic_store_explicit(&world->queue->consumers, word,
			      memory_order_release);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct rpma_rt_completion items[MAX];

	worker->got = rpma_rt_queue_wait(worker->queue, items, worker->max, -1);
	/* release: pairs with is_back() */
	atomic_store_explicit(&worker->back, true, memory_order_release);
	return NULL;
}

static bool is_back(struct worker *worker)
{
	/* acquire: pairs with worker_main() */
	return atomic_load_explicit(&worker->back, memory_order_acquire);
}

/* Returns when so many workers wait. */
static void send_to_sleep(struct stub_world *world, int count, int max)
{
	int i;

	for (i = 0; i < count; i++) {
		workers[i].queue = world->queue;
		workers[i].max = max;
		/* relaxed: the thread does not run yet */
		atomic_store_explicit(&workers[i].back, false,
				      memory_order_relaxed);
		assert_int_equal(pthread_create(&workers[i].thread, NULL,
						worker_main, &workers[i]),
				 0);
	}
	while (consumers(world) != (uint32_t)count * RT_CONSUMER_WAITER)
		sched_yield();
}

/* Waits for count workers; returns how many are back. */
static int wait_until_back(int count, int of)
{
	int back = 0;
	int i;

	while (back < count) {
		sched_yield();
		for (back = 0, i = 0; i < of; i++)
			back += is_back(&workers[i]);
	}
	return back;
}

static void join_all(int count)
{
	while (count-- > 0)
		pthread_join(workers[count].thread, NULL);
}

static void publish_and_ring(struct stub_world *world, uint32_t count)
{
	stub_publish(world->lane, 1, count);
	stub_ring(world->lane);
}

/* ---------------------------------------------------------------- tests --- */

ON_WORLD(wait__nothing_comes_NONE)
{
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, MAX, 1),
			 0);
	assert_int_equal(consumers(world), 0);
}

ON_WORLD(wait__one_published_ONE_WAKES)
{
	send_to_sleep(world, WORKERS, 1);
	publish_and_ring(world, 1);
	assert_int_equal(wait_until_back(1, WORKERS), 1);
	/* the others are waited for again, and not woken */
	while (consumers(world) != (WORKERS - 1) * RT_CONSUMER_WAITER)
		sched_yield();
	assert_int_equal(rt_bell_ways(&world->queue->bell), RT_BELL_ON_FUTEX);
	rpma_rt_queue_close(world->queue);
	join_all(WORKERS);
}

ON_WORLD(wait__more_left_than_taken_NEXT_WAKES)
{
	int i;

	send_to_sleep(world, WORKERS, 1);
	publish_and_ring(world, WORKERS);
	wait_until_back(WORKERS, WORKERS);
	join_all(WORKERS);
	for (i = 0; i < WORKERS; i++) {
		assert_int_equal(workers[i].got, 1);
	}
}

ON_WORLD(poll__leaves_some_while_one_waits_IT_WAKES)
{
	send_to_sleep(world, 1, MAX);
	/* published, and the ring is still to come */
	stub_publish(world->lane, 1, 3);
	assert_int_equal(stub_poll(world, 1), 1);
	stub_ring(world->lane);
	wait_until_back(1, 1);
	join_all(1);
	assert_int_equal(workers[0].got, 2);
}

ON_WORLD(finish__several_wait_ALL_TOLD)
{
	int i;

	send_to_sleep(world, WORKERS, 1);
	rt_queue_finish(world->queue);
	join_all(WORKERS);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(workers[i].got, RPMA_RT_E_CLOSED);
}

ON_WORLD(poll__another_inside_NONE)
{
	stub_publish(world->lane, 1, 1);
	set_shared(world, RT_CONSUMER_INSIDE);
	assert_int_equal(stub_poll(world, 1), 0);
	/* nothing wakes the worker, so there is no mark */
	assert_int_equal(consumers(world), RT_CONSUMER_INSIDE);
	set_shared(world, 0);
	assert_int_equal(stub_poll(world, 1), 1);
}

/* the worker inside may be off its CPU: the loop sleeps meanwhile, and the
 * worker looks for the loop */
ON_WORLD(arm__another_inside_MARKED)
{
	int fd = stub_fd(world);

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	publish_and_ring(world, 1);
	assert_true(stub_is_readable(fd));
	set_shared(world, RT_CONSUMER_INSIDE);
	assert_int_equal(stub_poll(world, 1), 0);
	assert_true(stub_is_readable(fd));
	assert_int_equal(consumers(world), RT_CONSUMER_INSIDE);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
	assert_int_equal(consumers(world),
			 RT_CONSUMER_INSIDE | RT_CONSUMER_AGAIN);
	assert_int_equal(rt_bell_ways(&world->queue->bell), RT_BELL_ON_FD);
	set_shared(world, 0);
	assert_int_equal(stub_poll(world, 1), 1);
}

/*
 * a polling worker finds the mark of an arming worker: remaining items are told
 */
ON_WORLD(poll__marked_by_an_arm_READABLE)
{
	int fd = stub_fd(world);

	stub_publish(world->lane, 1, 2);
	set_shared(world, RT_CONSUMER_INSIDE);
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	/* the worker inside goes on from here: with the mark set */
	set_shared(world, RT_CONSUMER_AGAIN);
	assert_int_equal(stub_poll(world, 1), 1);
	assert_true(stub_is_readable(fd));
	assert_int_equal(consumers(world), 0);
	assert_int_equal(stub_poll(world, 1), 1);
}

ON_WORLD(wait__another_inside_KEEPS_ITS_TIME)
{
	set_shared(world, RT_CONSUMER_INSIDE);
	assert_int_equal(rpma_rt_queue_wait(world->queue, world->taken, MAX, 2),
			 0);
	/* no longer registered, and the worker inside looks again */
	assert_int_equal(consumers(world),
			 RT_CONSUMER_INSIDE | RT_CONSUMER_AGAIN);
	set_shared(world, 0);
}

ON_WORLD(fd__items_left_READABLE_UNTIL_ARMED)
{
	int fd = stub_fd(world);
	int i;

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
	publish_and_ring(world, 3);
	for (i = 0; i < 3; i++) {
		assert_true(stub_is_readable(fd));
		assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
		assert_int_equal(stub_poll(world, 1), 1);
	}
	assert_int_equal(stub_poll(world, 1), 0);
	assert_true(stub_is_readable(fd));
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
	publish_and_ring(world, 1);
	assert_true(stub_is_readable(fd));
	assert_int_equal(stub_poll(world, 1), 1);
}

/* workers that poll and never arm: no write, no read */
ON_WORLD(poll__never_armed_NO_RING)
{
	int fd = stub_fd(world);

	assert_int_equal(stub_poll(world, 1), 0);
	publish_and_ring(world, 2);
	assert_int_equal(stub_poll(world, 1), 1);
	assert_false(stub_is_readable(fd));
	assert_int_equal(rt_bell_ways(&world->queue->bell), RT_BELL_AWAKE);
	assert_int_equal(stub_poll(world, 1), 1);
}

ON_WORLD(fd__closed_READABLE_FOR_THE_NEXT)
{
	int fd = stub_fd(world);
	int i;

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	rpma_rt_queue_close(world->queue);
	for (i = 0; i < WORKERS; i++) {
		assert_true(stub_is_readable(fd));
		assert_int_equal(rpma_rt_queue_arm(world->queue),
				 RPMA_RT_E_CLOSED);
		assert_int_equal(stub_poll(world, 1), RPMA_RT_E_CLOSED);
	}
}

ON_WORLD(wake__several_wait_ONE_COMES_BACK)
{
	int i;

	send_to_sleep(world, WORKERS, 1);
	for (i = 1; i <= WORKERS; i++) {
		assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
		assert_int_equal(wait_until_back(i, WORKERS), i);
		assert_int_equal(consumers(world),
				 (uint32_t)(WORKERS - i) * RT_CONSUMER_WAITER);
	}
	join_all(WORKERS);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(workers[i].got, 0);
}

/* woken and kept out: the worker inside rings again when leaving */
ON_WORLD(wake__another_inside_ONE_COMES_BACK)
{
	send_to_sleep(world, 1, 1);
	/* relaxed: the wake, whose ring went to a worker that could not take
	 * the wake */
	atomic_fetch_or_explicit(&world->queue->woken, RT_QUEUE_WOKEN,
				 memory_order_relaxed);
	set_shared(world, consumers(world) | RT_CONSUMER_AGAIN);
	assert_int_equal(stub_poll(world, 1), 0);
	join_all(1);
	assert_int_equal(workers[0].got, 0);
}

ON_WORLD(fd__woken_READABLE_UNTIL_ARMED)
{
	int fd = stub_fd(world);

	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_int_equal(rpma_rt_queue_wake(world->queue), 0);
	assert_true(stub_is_readable(fd));
	assert_int_equal(rpma_rt_queue_arm(world->queue), 1);
	assert_true(stub_is_readable(fd));
	assert_int_equal(rpma_rt_queue_arm(world->queue), 0);
	assert_false(stub_is_readable(fd));
}

ON_WORLD(wait__on_a_poller_THREAD)
{
	int ret;

	stub_publish(world->lane, 1, 1);
	stub_on_poller = true;
	ret = rpma_rt_queue_wait(world->queue, world->taken, 1, 0);
	stub_on_poller = false;
	assert_int_equal(ret, RPMA_RT_E_THREAD);
	/* to poll is no waiting */
	stub_on_poller = true;
	ret = stub_poll(world, 1);
	stub_on_poller = false;
	assert_int_equal(ret, 1);
}

ON_WORLD(new__not_shared_SECOND_CONSUMER_ASSERTS)
{
	struct rpma_rt_queue *alone =
		stub_queue_new(&world->rt, STUB_LANE, STUB_LIMIT);
	struct rlimit no_core = {0, 0};
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		/* the expected message is not among the output of the test */
		close(STDERR_FILENO);
		/* in place of another thread */
		assert_true(rt_keep_take(&alone->alone));
		_exit(rpma_rt_queue_poll(alone, world->taken, 1) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_int_equal(rpma_rt_queue_delete(&alone), 0);
}

TEST_MAIN()
