/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A thread's start and end, and calls. */

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rt_fake.h"
#include "base/self.h"

static struct rpma_rt rt; /* not more of one than thread.c knows */
static struct rt_thread thread;

TEST(start__each_failure_nothing_left)
{
	fake_fail("epoll_create1", 1, EMFILE);
	assert_int_equal(rt_thread_start(&thread, &rt, "test"),
			 RPMA_E_PROVIDER);
	fake_fail("epoll_ctl", 1, ENOSPC);
	assert_int_equal(rt_thread_start(&thread, &rt, "test"),
			 RPMA_E_PROVIDER);
	fake_fail("eventfd", 1, EMFILE);
	assert_int_equal(rt_thread_start(&thread, &rt, "test"),
			 RPMA_E_PROVIDER);
	fake_fail("pthread_create", 1, EAGAIN);
	assert_int_equal(rt_thread_start(&thread, &rt, "test"),
			 RPMA_E_PROVIDER);
	assert_true(fake_failed());
	assert_int_equal(fake_memory(), 0);
}

struct asked {
	pthread_t thread;
	int answer;
};

static int answer(void *arg)
{
	struct asked *asked = arg;

	asked->thread = pthread_self();
	return asked->answer;
}

TEST(call__runs_on_the_owner_and_answers)
{
	struct asked asked = {.answer = -7};

	ok(rt_thread_start(&thread, &rt, "test"));
	assert_int_equal(rt_call_sync(&rt, &thread.inbox, answer, &asked), -7);
	assert_true(pthread_equal(asked.thread, thread.thread));
	rt_thread_stop(&thread);
}

struct counted {
	struct rt_msg msg; /* first */
	int *count;
};

static void count(struct rt_msg *msg, void *owner)
{
	assert_ptr_equal(owner, &rt);
	++*((struct counted *)msg)->count;
}

/* What was sent before the stop is done. */
TEST(stop__the_inbox_is_run_first)
{
	struct counted msgs[100];
	int done = 0;
	int i;

	ok(rt_thread_start(&thread, &rt, "test"));
	for (i = 0; i < 100; i++) {
		msgs[i] = (struct counted){.msg.fn = count, .count = &done};
		rt_inbox_push_mt(&thread.inbox, &msgs[i].msg);
	}
	rt_thread_stop(&thread);
	assert_int_equal(done, 100);
}

/* A message that may wait, or not, and writes down that it ran. */
struct noted {
	struct rt_msg msg; /* first */
	char name;
};

static char notes[8];
static struct noted first = {.name = 'i'};
static struct noted second = {.name = 's'};
static struct noted may_wait[3];

static void note(const struct noted *noted)
{
	notes[strlen(notes)] = noted->name;
}

static void noting(struct rt_msg *msg, void *owner)
{
	(void)owner;
	note((struct noted *)msg);
	if (msg == &may_wait[0].msg)
		rt_inbox_push_mt(&thread.inbox, &second.msg);
}

/* On the thread, so that all is there before it looks at any of it. */
static void send_all(struct rt_msg *msg, void *owner)
{
	int i;

	(void)msg;
	(void)owner;
	for (i = 0; i < 3; i++)
		rt_inbox_push_mt(&thread.later, &may_wait[i].msg);
	rt_inbox_push_mt(&thread.inbox, &first.msg);
}

/* However many may wait, any other waits for one of them at most. */
TEST(messages__one_that_may_wait_then_all_others)
{
	struct rt_msg sender = {.fn = send_all};
	int i;

	first.msg.fn = noting;
	second.msg.fn = noting;
	for (i = 0; i < 3; i++) {
		may_wait[i] = (struct noted){.msg.fn = noting,
					     .name = (char)('0' + i)};
	}
	ok(rt_thread_start(&thread, &rt, "test"));
	rt_inbox_push_mt(&thread.inbox, &sender);
	rt_thread_stop(&thread);
	assert_string_equal(notes, "0is12");
}

struct last {
	struct counted msg;
	sem_t sent;
};

/* It has found nothing; then a message comes, and the stop. */
static void send_and_stop(void *arg)
{
	struct last *last = arg;

	rt_inbox_push_mt(&thread.inbox, &last->msg.msg);
	/* release: as rt_thread_stop() does it */
	atomic_store_explicit(&thread.stopping, true, memory_order_release);
	sem_post(&last->sent);
}

TEST(stop__right_after_a_message)
{
	int done = 0;
	struct last last = {.msg.msg.fn = count, .msg.count = &done};

	sem_init(&last.sent, 0, 0);
	fake_when_empty(send_and_stop, &last);
	ok(rt_thread_start(&thread, &rt, "test"));
	sem_wait(&last.sent);
	rt_thread_stop(&thread);
	assert_int_equal(done, 1);
}

/* The poller is nobody's: whoever waits for it runs it. */
FAKE_TEST(call__of_nobodys_poller_runs_it)
{
	struct asked asked = {.answer = 4};

	assert_int_equal(rt_poller_call(f->poller, answer, &asked), 4);
	assert_true(pthread_equal(asked.thread, pthread_self()));
	assert_null(rt_self_poller());
}

/* ----------------------------------------------------------- expecting --- */

/* A message after which the thread expects another. */
struct expecting {
	struct rt_msg msg; /* first */
	sem_t ran;
	int fd;
};

static void expect(struct rt_msg *msg, void *owner)
{
	const uint64_t one = 1;
	struct expecting *expecting = (struct expecting *)msg;

	(void)owner;
	thread.expects = true;
	if (expecting->fd >= 0)
		assert_int_equal(write(expecting->fd, &one, sizeof(one)),
				 sizeof(one));
	sem_post(&expecting->ran);
}

/* The message that is expected comes at once, or when the thread has gone to
 * sleep without the message: it runs all the same. */
TEST(expects__message_comes_at_once_or_late_runs)
{
	struct expecting expecting = {.msg.fn = expect, .fd = -1};
	int i;

	sem_init(&expecting.ran, 0, 0);
	ok(rt_thread_start(&thread, &rt, "test"));
	for (i = 0; i < 200; i++) {
		while (i % 4 == 0 &&
		       rt_bell_ways(&thread.bell) == RT_BELL_AWAKE)
			sched_yield();
		rt_inbox_push_mt(&thread.inbox, &expecting.msg);
		sem_wait(&expecting.ran);
	}
	rt_thread_stop(&thread);
	sem_destroy(&expecting.ran);
}

static sem_t served;

static void serve(struct rt_source *source)
{
	uint64_t value;

	assert_int_equal(read(source->fd, &value, sizeof(value)),
			 sizeof(value));
	sem_post(&served);
}

/* A source that is ready does not wait for the message. */
TEST(expects__source_is_served)
{
	struct rt_source source = {.fd = eventfd(0, EFD_CLOEXEC),
				   .ready = serve};
	struct expecting expecting = {.msg.fn = expect, .fd = source.fd};
	int i;

	sem_init(&expecting.ran, 0, 0);
	sem_init(&served, 0, 0);
	ok(rt_thread_start(&thread, &rt, "test"));
	ok(rt_thread_add(&thread, &source));
	for (i = 0; i < 20; i++) {
		rt_inbox_push_mt(&thread.inbox, &expecting.msg);
		sem_wait(&expecting.ran);
		sem_wait(&served);
	}
	rt_thread_stop(&thread);
	sem_destroy(&served);
	sem_destroy(&expecting.ran);
	close(source.fd);
}

TEST_MAIN()
