/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thread.c -- the loop of the threads that may block. A source whose reading
 * fails rests: the fd stays readable, and must not keep the thread busy. A
 * message of the first inbox, or a source, waits for at most a single message
 * of the inbox "later", however many messages that inbox has.
 */

#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpma_rt.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/self.h"

/* ------------------------------------------------------------------ cpu --- */

/*
 * The system keeps CPUs for each thread and none for the process, so the CPUs
 * of the first thread are read when the library is loaded, before the program
 * pins anything.
 */

#define MOST_CPUS (1 << 20) /* more CPUs than any kernel knows */

/* CPUs of the process; immutable after the library is loaded; NULL: not
 * known */
static cpu_set_t *allowed;
static int cpu_count; /* number of CPUs for which the set has room */
static int cpu_error; /* errno that says why the CPUs are not known */

/* Reads the CPUs of the process into a set that is large enough: the kernel
 * refuses a set that is smaller than the kernel's own. */
__attribute__((constructor)) static void cpu_read_allowed(void)
{
	for (cpu_count = CPU_SETSIZE; cpu_count <= MOST_CPUS; cpu_count *= 2) {
		allowed = CPU_ALLOC(cpu_count);
		if (allowed == NULL) {
			cpu_error = ENOMEM;
			return;
		}
		if (sched_getaffinity(getpid(), CPU_ALLOC_SIZE(cpu_count),
				      allowed) == 0)
			return;
		cpu_error = errno;
		CPU_FREE(allowed);
		allowed = NULL;
		if (cpu_error != EINVAL)
			return;
	}
}

int rt_cpu_check(int cpu)
{
	if (cpu == RPMA_RT_CPU_ANY)
		return 0;
	if (allowed == NULL) {
		RT_LOG_ERROR("CPU %d cannot be named: the CPUs of this process "
			     "are not known, sched_getaffinity() failed: %s",
			     cpu, strerror(cpu_error));
		return RPMA_E_PROVIDER;
	}
	if (cpu >= 0 && cpu < cpu_count &&
	    CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE(cpu_count), allowed))
		return 0;
	return RPMA_E_INVAL;
}

void rt_cpu_place(pthread_t thread, int cpu)
{
	size_t size = CPU_ALLOC_SIZE(cpu_count);
	cpu_set_t *set;

	if (allowed == NULL)
		return;
	if (cpu == RPMA_RT_CPU_ANY) {
		(void)pthread_setaffinity_np(thread, size, allowed);
		return;
	}
	set = CPU_ALLOC(cpu_count);
	if (set == NULL)
		return;
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)cpu, size, set);
	(void)pthread_setaffinity_np(thread, size, set);
	CPU_FREE(set);
}

/* ---------------------------------------------------------------- spawn --- */

/*
 * A thread inherits the signal mask and the CPUs of the thread that starts it.
 * So the mask is set around the start: no signal can reach the new thread
 * before the new thread could have set a mask by itself.
 */

/* Fills the set with all signals but faults. The kernel reports a fault to the
 * thread that caused the fault; blocked, the fault would end the process
 * without the program's handler. */
static void spawn_all_but_faults(sigset_t *set)
{
	static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
				     SIGILL,  SIGTRAP, SIGSYS};
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(set, faults[i]);
}

int rt_spawn(pthread_t *thread, const char *name, int cpu, void *(*fn)(void *),
	     void *arg)
{
	sigset_t blocked;
	sigset_t before;
	int err;

	spawn_all_but_faults(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		errno = err;
		return rt_refuse_system("pthread_create");
	}
	/* the thread works without a name, too */
	(void)pthread_setname_np(*thread, name);
	rt_cpu_place(*thread, cpu);
	return 0;
}

/* --------------------------------------------------------------- thread --- */

#define BATCH 16 /* ready sources that are handled at a time */
/* A source that cannot be read rests, twice as long after each failure, up to a
 * limit. Such rests cost nothing, and delay the source little when reading
 * succeeds again. */
#define FIRST_REST_NS	UINT64_C(10000000)
#define LONGEST_REST_NS UINT64_C(160000000)
#define NS_PER_MS	INT64_C(1000000)
/* The thread waits awake for an expected message at most for this time: some
 * times the cost of a sleep and a wake-up. */
#define LINGER_NS UINT64_C(50000)
/* A wait that took longer, because other threads kept the CPU, is followed by a
 * pause of this many times the wait's length, in which the thread does not wait
 * awake: such waits cost 3 percent at most. */
#define LINGER_PAUSES 32
/* failed reads after which a source is given up, if the cause does not pass */
#define MOST_FAILURES 16

/* --------------------------------------------------------------- timers --- */

int rt_thread_run_timers(struct rt_thread *thread)
{
	struct rt_heap_node *first = thread->timers.first;
	struct rt_timer *timer;
	uint64_t now;
	uint64_t ms;

	if (first == NULL)
		return -1;
	now = rt_now_ns();
	while ((first = thread->timers.first) != NULL && first->key <= now) {
		timer = RT_FROM(struct rt_timer, node, first);
		rt_heap_remove(&thread->timers, first);
		timer->due(timer);
	}
	if (first == NULL)
		return -1;
	ms = (first->key - now) / 1000000 + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* -------------------------------------------------------------- sources --- */

static void thread_set_events(struct rt_source *source, uint32_t wanted)
{
	struct epoll_event event = {.events = wanted, .data.ptr = source};

	/* without this check the number may be another descriptor of the
	 * program */
	if (!source->thread->has_lost_fds)
		epoll_ctl(source->thread->epfd, EPOLL_CTL_MOD, source->fd,
			  &event);
}

int rt_thread_add(struct rt_thread *thread, struct rt_source *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	source->thread = thread;
	return epoll_ctl(thread->epfd, EPOLL_CTL_ADD, source->fd, &event)
		       ? rt_refuse_system("epoll_ctl")
		       : 0;
}

void rt_thread_mute(struct rt_source *source)
{
	rt_thread_cancel_timer(source->thread, &source->rest);
	if (!source->thread->has_lost_fds)
		epoll_ctl(source->thread->epfd, EPOLL_CTL_DEL, source->fd,
			  NULL);
}

static uint64_t thread_rest_of(const struct rt_source *source)
{
	uint64_t ns = FIRST_REST_NS;
	unsigned i;

	for (i = 1; i < source->failures && ns < LONGEST_REST_NS; i++)
		ns *= 2;
	return ns;
}

static void thread_end_rest(struct rt_timer *timer)
{
	thread_set_events(RT_FROM(struct rt_source, rest, timer), EPOLLIN);
}

static void thread_rest(struct rt_source *source)
{
	struct rt_thread *thread = source->thread;

	/* epoll reports a broken fd even while the source rests */
	if (rt_heap_has(&thread->timers, &source->rest.node))
		return;
	source->rest.due = thread_end_rest;
	rt_thread_set_timer(thread, &source->rest,
			    rt_now_ns() + thread_rest_of(source));
	thread_set_events(source, 0);
}

/* Returns whether the error is a lack of something that others may give
 * back. */
static bool thread_may_pass(int err)
{
	switch (err) {
	case EAGAIN:
	case EBUSY:
	case EINTR:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return true;
	default:
		return false;
	}
}

bool rt_thread_failed(struct rt_source *source, int err)
{
	source->failures++;
	source->hopeless += !thread_may_pass(err);
	if (source->hopeless < MOST_FAILURES) {
		thread_rest(source);
		return false;
	}
	rt_thread_mute(source);
	return true;
}

/* ----------------------------------------------------------- the thread --- */

int rt_thread_run_messages(struct rt_thread *thread)
{
	int count = rt_inbox_run_owner(&thread->inbox, thread->rt);

	return count + rt_inbox_run_some_owner(&thread->later, thread->rt, 1);
}

bool rt_thread_is_idle(struct rt_thread *thread)
{
	return rt_inbox_is_empty(&thread->inbox) &&
	       rt_inbox_is_empty(&thread->later);
}

/* Takes note that the program closed the thread's descriptors: messages arrive
 * without them. */
static void thread_lose_fds(struct rt_thread *thread, int err)
{
	thread->has_lost_fds = true;
	rt_bell_lose_fd(&thread->bell);
	if (thread->lost != NULL)
		thread->lost(thread, err);
}

bool rt_thread_renew(struct rt_thread *thread)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0)
		return false;
	if (rt_bell_renew_fd(&thread->bell) == 0) {
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, rt_bell_fd(&thread->bell),
			      &event) == 0) {
			thread->epfd = epfd;
			thread->has_lost_fds = false;
			return true;
		}
		/* not closed: a thread that rang before may write to the fd */
		rt_bell_lose_fd(&thread->bell);
	}
	rt_refuse_forget();
	close(epfd);
	return false;
}

/* Sleeps. Returns the number of ready sources, or -1 and errno. */
static int thread_sleep_until_ready(struct rt_thread *thread,
				    struct epoll_event *batch, int timeout_ms)
{
	if (!thread->has_lost_fds)
		return rt_fds_wait(thread->epfd, &thread->bell, batch, BATCH,
				   timeout_ms);
	rt_bell_sleep_armed(&thread->bell,
			    timeout_ms < 0 ? -1 : timeout_ms * NS_PER_MS);
	return 0;
}

/* Waits awake for an expected message: looks for messages and sources for a
 * moment, and yields the CPU between two looks, because the sender may need the
 * CPU. The bell is not prepared, so the message costs its sender no system
 * call. Where other threads keep the CPU for longer, the thread does not wait
 * awake for some time. Returns the number of ready sources; *is_idle: neither a
 * source nor a message came. */
static int thread_linger(struct rt_thread *thread, struct epoll_event *batch,
			 bool *is_idle)
{
	uint64_t begin = rt_now_ns();
	uint64_t now = begin;
	int n;

	do {
		n = epoll_wait(thread->epfd, batch, BATCH, 0);
		*is_idle = n <= 0 && rt_thread_is_idle(thread);
		if (*is_idle) {
			rt_share_yield_now(&now);
			*is_idle = rt_thread_is_idle(thread);
		}
	} while (*is_idle && now - begin < LINGER_NS);
	if (now - begin > 2 * LINGER_NS)
		thread->lingers_ns = now + LINGER_PAUSES * (now - begin);
	return n;
}

/* Returns whether the thread expects a message and may wait awake for the
 * message; true at most once for each expectation. */
static bool thread_may_linger(struct rt_thread *thread)
{
	uint64_t now;
	bool expects = thread->expects;

	thread->expects = false;
	if (!expects || thread->has_lost_fds)
		return false;
	now = rt_now_ns();
	return now >= thread->lingers_ns &&
	       (rt_share_known.share != RT_SHARE_BUSY ||
		now >= rt_share_known.until_ns);
}

/* Sleeps until a source is ready or a message comes. The bell is prepared
 * before the last look at the inboxes, so neither the sender nor the thread
 * waits for the other. Returns the number of ready sources. */
static int thread_sleep_prepared(struct rt_thread *thread,
				 struct epoll_event *batch, int timeout)
{
	int n;

	rt_bell_prepare(&thread->bell);
	/* acquire: pairs with the release in rt_thread_join() */
	if (!rt_thread_is_idle(thread) ||
	    atomic_load_explicit(&thread->stopping, memory_order_acquire))
		timeout = 0;
	n = thread_sleep_until_ready(thread, batch, timeout);
	if (n < 0)
		thread_lose_fds(thread, errno);
	rt_bell_cancel(&thread->bell);
	return n;
}

/* Runs the ready sources. Without a ready source or a message the thread sleeps
 * first. */
static void thread_serve_sources(struct rt_thread *thread)
{
	struct epoll_event batch[BATCH];
	struct rt_source *source;
	int timeout = rt_thread_run_timers(thread);
	bool is_idle = true;
	int n = 0;
	int i;

	if (thread_may_linger(thread))
		n = thread_linger(thread, batch, &is_idle);
	if (is_idle)
		n = thread_sleep_prepared(thread, batch, timeout);
	for (i = 0; i < n; i++) {
		source = batch[i].data.ptr;
		if (source != NULL) /* NULL: the bell */
			source->ready(source);
	}
}

static void *thread_main(void *arg)
{
	struct rt_thread *thread = arg;
	bool stopping;

	for (;;) {
		/* acquire: pairs with the release in rt_thread_join(). Read
		 * before messages are run: every message sent before the stop
		 * is in an inbox then */
		stopping = atomic_load_explicit(&thread->stopping,
						memory_order_acquire);
		if (rt_thread_run_messages(thread) == 0 && stopping)
			break;
		thread_serve_sources(thread);
	}
	return NULL;
}

int rt_thread_start(struct rt_thread *thread, struct rpma_rt *rt,
		    const char *name)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ret;

	thread->rt = rt;
	thread->timers.first = NULL;
	thread->has_lost_fds = false;
	/* relaxed: the creation of the thread orders the store */
	atomic_store_explicit(&thread->stopping, false, memory_order_relaxed);
	thread->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (thread->epfd < 0)
		return rt_refuse_system("epoll_create1");
	ret = rt_bell_init(&thread->bell);
	if (ret)
		goto err_close_epfd;
	ret = rt_inbox_init(&thread->inbox, &thread->bell);
	if (ret)
		goto err_fini_bell;
	ret = rt_inbox_init(&thread->later, &thread->bell);
	if (ret)
		goto err_fini_inbox;
	if (epoll_ctl(thread->epfd, EPOLL_CTL_ADD, rt_bell_fd(&thread->bell),
		      &event))
		ret = rt_refuse_system("epoll_ctl");
	else
		ret = rt_spawn(&thread->thread, name, RPMA_RT_CPU_ANY,
			       thread_main, thread);
	if (ret)
		goto err_fini_later;
	return 0;
err_fini_later:
	rt_inbox_fini(&thread->later);
err_fini_inbox:
	rt_inbox_fini(&thread->inbox);
err_fini_bell:
	rt_bell_fini(&thread->bell);
err_close_epfd:
	close(thread->epfd);
	return ret;
}

void rt_thread_join(struct rt_thread *thread)
{
	/* release: pairs with the acquires of `stopping` in thread_main() and
	 * thread_sleep_prepared() */
	atomic_store_explicit(&thread->stopping, true, memory_order_release);
	rt_bell_ring(&thread->bell);
	pthread_join(thread->thread, NULL);
}

void rt_thread_fini(struct rt_thread *thread)
{
	rt_inbox_fini(&thread->later);
	rt_inbox_fini(&thread->inbox);
	rt_bell_fini(&thread->bell);
	if (!thread->has_lost_fds)
		close(thread->epfd);
}

void rt_thread_stop(struct rt_thread *thread)
{
	rt_thread_join(thread);
	rt_thread_fini(thread);
}
