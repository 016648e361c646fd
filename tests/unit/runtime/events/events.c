/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The event thread, for real: sources, and how they end or rest. */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rt_fake.h"

#define PATIENCE_MS 300000

static int setup(void **state)
{
	(void)state;
	ok(rt_events_ref(NULL));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rt_events_unref();
	assert_int_equal(fake_memory(), 0);
	return fake_failed() ? 0 : -1;
}

TEST_WITH(get__counted, setup, teardown)
{
	ok(rt_events_ref(NULL));
	rt_events_unref();
}

/* a source that counts, and answers through an eventfd of its own */
struct counter {
	struct rt_source source; /* first */
	int answer;
};

static void counter_ready(struct rt_source *source)
{
	struct counter *counter = (struct counter *)source;
	uint64_t value;

	assert_int_equal(read(source->fd, &value, sizeof(value)),
			 sizeof(value));
	assert_int_equal(write(counter->answer, &value, sizeof(value)),
			 sizeof(value));
}

static int mute(void *source)
{
	rt_thread_mute(source);
	return 0;
}

/* When it returns, ready() does not run and will not. */
static void remove_source(struct rt_source *source)
{
	rt_events_call(mute, source);
}

TEST_WITH(source__ready_until_removed, setup, teardown)
{
	struct counter counter = {.source = {.ready = counter_ready}};
	struct pollfd fd = {.events = POLLIN};
	uint64_t one = 1;

	counter.source.fd = eventfd(0, EFD_CLOEXEC);
	counter.answer = eventfd(0, EFD_CLOEXEC);
	ok(rt_events_add(&counter.source));
	assert_int_equal(rt_events_add(&counter.source), RPMA_E_PROVIDER);
	assert_int_equal(write(counter.source.fd, &one, sizeof(one)),
			 sizeof(one));
	fd.fd = counter.answer;
	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(counter.answer, &one, sizeof(one)), sizeof(one));
	remove_source(&counter.source);
	assert_int_equal(write(counter.source.fd, &one, sizeof(one)),
			 sizeof(one));
	remove_source(&counter.source); /* a round of the thread later */
	assert_int_equal(poll(&fd, 1, 0), 0);
	close(counter.source.fd);
	close(counter.answer);
}

#define GIVEN_UP 16 /* failures in a row, of other kinds */

/* a source that has no memory for a while */
struct poor {
	struct rt_source source; /* first */
	int refusals;		 /* before it goes on */
	int calls;
	int answer;
};

static void poor_ready(struct rt_source *source)
{
	struct poor *poor = (struct poor *)source;
	uint64_t value;

	if (poor->calls++ < poor->refusals) {
		assert_false(rt_thread_failed(source, ENOMEM));
		return;
	}
	assert_int_equal(read(source->fd, &value, sizeof(value)),
			 sizeof(value));
	assert_int_equal(write(poor->answer, &value, sizeof(value)),
			 sizeof(value));
}

static void poor_init(struct poor *poor, int refusals)
{
	*poor = (struct poor){.source.ready = poor_ready,
			      .refusals = refusals,
			      .answer = eventfd(0, EFD_CLOEXEC)};
	poor->source.fd = eventfd(1, EFD_CLOEXEC); /* readable at once */
	ok(rt_events_add(&poor->source));
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* What it could not take is not lost. */
TEST_WITH(rest__goes_on_later, setup, teardown)
{
	struct pollfd fd = {.events = POLLIN};
	struct poor poor;

	poor_init(&poor, GIVEN_UP + 4);
	fd.fd = poor.answer;
	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	remove_source(&poor.source);
	assert_int_equal(poor.calls, GIVEN_UP + 5);
	close(poor.source.fd);
	close(poor.answer);
}

/* However often the thread is woken for other things meanwhile, it is not
 * called every time: a few times in hundreds of rounds. */
TEST_WITH(rest__not_in_every_round, setup, teardown)
{
	struct poor poor;
	int rounds;

	poor_init(&poor, INT_MAX);
	for (rounds = 0; rounds < 1000; rounds++)
		ok(rt_events_call(nothing, NULL));
	remove_source(&poor.source); /* while it rests */
	assert_true(poor.calls < 500);
	close(poor.source.fd);
	close(poor.answer);
}

/* a source whose reading fails always */
struct broken {
	struct rt_source source; /* first */
	_Atomic int calls;
	sem_t called;
};

static void broken_ready(struct rt_source *source)
{
	struct broken *broken = (struct broken *)source;

	/* relaxed: a count */
	atomic_fetch_add_explicit(&broken->calls, 1, memory_order_relaxed);
	/* of what will not pass */
	rt_thread_failed(source, EIO);
	assert_int_equal(sem_post(&broken->called), 0);
}

/* It is given up. */
TEST_WITH(failed__not_for_ever, setup, teardown)
{
	struct broken broken = {.source.ready = broken_ready};
	int i;

	assert_int_equal(sem_init(&broken.called, 0, 0), 0);
	broken.source.fd = eventfd(1, EFD_CLOEXEC); /* readable for ever */
	ok(rt_events_add(&broken.source));
	for (i = 0; i < GIVEN_UP; i++)
		assert_int_equal(sem_wait(&broken.called), 0);
	for (i = 0; i < 100; i++)
		ok(rt_events_call(nothing, NULL));
	remove_source(&broken.source);
	/* relaxed: no other thread calls it any more */
	assert_int_equal(
		atomic_load_explicit(&broken.calls, memory_order_relaxed),
		GIVEN_UP);
	close(broken.source.fd);
	sem_destroy(&broken.called);
}

TEST_MAIN()
