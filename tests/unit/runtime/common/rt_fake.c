/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Failures, the trace, and a system that can fail; see rt_fake.h. */

#define _GNU_SOURCE
#include "rt_fake.h"

#include "base/runtime.h"
#include "conn/conn.h"
#include "srq/srq.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_FAILURES 8
#define TRACE_SIZE   4096

static struct {
	pthread_mutex_t lock;
	struct failure {
		const char *call;
		int nth;
		int value;
	} failures[MAX_FAILURES];
	char trace[TRACE_SIZE];
	_Atomic int memory;
	int objects;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -------------------------------------------------------------- the log --- */

static _Atomic int logged;
static struct {
	pthread_mutex_t lock;
	char text[512];
	enum rpma_log_level level;
	int count;
	char trouble[512]; /* the last warning or error */
} last_log = {.lock = PTHREAD_MUTEX_INITIALIZER};
static char news[512];

bool __wrap_rt_limit_pass(uint64_t now_ns, const char *file, int line,
			  uint32_t *left_out, bool *is_last);

/* Tests say more in a second than programs do. */
bool __wrap_rt_limit_pass(uint64_t now_ns, const char *file, int line,
			  uint32_t *left_out, bool *is_last)
{
	(void)now_ns;
	(void)file;
	(void)line;
	*left_out = 0;
	*is_last = false;
	return true;
}

static struct rpma_rt *watched;
static _Thread_local int held; /* pairs of rpma_log_hold(), open */

static void expect_free(pthread_mutex_t *lock)
{
	assert_int_equal(pthread_mutex_trylock(lock), 0);
	pthread_mutex_unlock(lock);
}

/* Asserts that no thread has the right to post. */
static void expect_left(const struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	assert_false(rt_turn_is_held(&conn->gate[side].turn));
}

/* The log function is the program's: it may call what takes these. */
static void expect_no_lock(void)
{
	struct rpma_rt_conn *conn;
	struct rpma_rt_srq *srq;

	if (watched == NULL)
		return;
	expect_free(&watched->lock);
	expect_free(&watched->directory);
	expect_free(&watched->ask_lock);
	for (conn = watched->conns; conn != NULL; conn = conn->next) {
		expect_left(conn, RPMA_RT_SEND_SIDE);
		expect_left(conn, RPMA_RT_RECV_SIDE);
	}
	for (srq = watched->srqs; srq != NULL; srq = srq->next)
		assert_false(rt_turn_look(&srq->turn) & RT_TURN_HELD);
}

void fake_watch_locks(struct rpma_rt *rt)
{
	watched = rt;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level *level)
{
	(void)threshold;
	*level = RPMA_LOG_LEVEL_INFO;
	return 0;
}

void rpma_log_hold(void)
{
	held++;
}

void rpma_log_release(void)
{
	expect_no_lock();
	assert_true(held-- > 0);
}

bool fake_log_is_held(void)
{
	return held > 0;
}

void fake_may_log(void)
{
	if (held == 0)
		expect_no_lock();
}

const char *fake_news(void)
{
	return news;
}

void fake_forget_messages(void)
{
	pthread_mutex_lock(&last_log.lock);
	last_log.count = 0;
	pthread_mutex_unlock(&last_log.lock);
}

int fake_messages(enum rpma_log_level *level, char *text, size_t size)
{
	int count;

	pthread_mutex_lock(&last_log.lock);
	count = last_log.count;
	*level = last_log.level;
	snprintf(text, size, "%s", last_log.text);
	pthread_mutex_unlock(&last_log.lock);
	return count;
}

void rpma_log_message(enum rpma_log_level level, const char *file_name,
		      int line_no, const char *function_name,
		      const char *message_format, ...)
{
	char text[512];
	va_list args;

	(void)line_no;
	expect_no_lock();
	assert_non_null(file_name);
	assert_non_null(function_name);
	assert_non_null(message_format);
	va_start(args, message_format);
	vsnprintf(text, sizeof(text), message_format, args);
	va_end(args);
	pthread_mutex_lock(&last_log.lock);
	memcpy(last_log.text, text, sizeof(text));
	last_log.level = level;
	last_log.count++;
	if (level > RPMA_LOG_LEVEL_WARNING) /* news, and no trouble */
		memcpy(news, text, sizeof(text));
	else
		memcpy(last_log.trouble, text, sizeof(text));
	pthread_mutex_unlock(&last_log.lock);
	if (level > RPMA_LOG_LEVEL_WARNING)
		return;
	/* relaxed: a count */
	atomic_fetch_add_explicit(&logged, 1, memory_order_relaxed);
}

bool fake_said(const char *words)
{
	bool is_said;

	pthread_mutex_lock(&last_log.lock);
	is_said = strstr(last_log.trouble, words) != NULL;
	pthread_mutex_unlock(&last_log.lock);
	return is_said;
}

int fake_logged(void)
{
	/* relaxed: as above */
	return atomic_exchange_explicit(&logged, 0, memory_order_relaxed);
}

/* ----------------------------------------------- failures and the trace --- */

void fake_fail(const char *call, int nth, int value)
{
	int i = 0;

	pthread_mutex_lock(&fake.lock);
	while (i < MAX_FAILURES && fake.failures[i].call != NULL)
		i++;
	if (i < MAX_FAILURES)
		fake.failures[i] = (struct failure){call, nth, value};
	pthread_mutex_unlock(&fake.lock);
	assert_true(i < MAX_FAILURES);
}

bool fake_failed(void)
{
	bool all = true;
	int i;

	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < MAX_FAILURES; i++)
		all = all && fake.failures[i].call == NULL;
	memset(fake.failures, 0, sizeof(fake.failures));
	pthread_mutex_unlock(&fake.lock);
	return all;
}

int fake_errno = EIO;

int fake_failing(const char *call)
{
	struct failure *failure;
	int value = 0;
	int i;

	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < MAX_FAILURES && value == 0; i++) {
		failure = &fake.failures[i];
		if (failure->call == NULL || strcmp(failure->call, call) ||
		    --failure->nth > 0)
			continue;
		value = failure->value;
		failure->call = NULL;
	}
	pthread_mutex_unlock(&fake.lock);
	if (value == RPMA_E_PROVIDER)
		errno = fake_errno;
	return value;
}

int fake_enter(const char *call)
{
	size_t used;

	pthread_mutex_lock(&fake.lock);
	used = strlen(fake.trace);
	snprintf(fake.trace + used, TRACE_SIZE - used, "%s%s", used ? " " : "",
		 call);
	pthread_mutex_unlock(&fake.lock);
	return fake_failing(call);
}

const char *fake_trace(void)
{
	return fake.trace;
}

void fake_forget_trace(void)
{
	fake.trace[0] = '\0';
}

int fake_memory(void)
{
	/* relaxed: read when no other thread runs */
	return atomic_load_explicit(&fake.memory, memory_order_relaxed);
}

int fake_objects(void)
{
	return fake.objects;
}

void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);

void *fake_object_new(size_t size)
{
	void *object = __real_calloc(1, size);

	pthread_mutex_lock(&fake.lock);
	fake.objects++;
	pthread_mutex_unlock(&fake.lock);
	return object;
}

void fake_object_free(void *object)
{
	pthread_mutex_lock(&fake.lock);
	fake.objects--;
	pthread_mutex_unlock(&fake.lock);
	__real_free(object);
}

/* ------------------------------------------------------- memory, system --- */

#define WRAP(type, name, args)   \
	type __real_##name args; \
	type __wrap_##name args; \
	type __wrap_##name args

static void *counted(void *memory)
{
	/* relaxed: a count */
	if (memory != NULL)
		atomic_fetch_add_explicit(&fake.memory, 1,
					  memory_order_relaxed);
	return memory;
}

WRAP(void *, malloc, (size_t size))
{
	return fake_failing("malloc") ? NULL : counted(__real_malloc(size));
}

WRAP(void *, calloc, (size_t count, size_t size))
{
	return fake_failing("malloc") ? NULL
				      : counted(__real_calloc(count, size));
}

WRAP(void *, aligned_alloc, (size_t alignment, size_t size))
{
	return fake_failing("malloc")
		       ? NULL
		       : counted(__real_aligned_alloc(alignment, size));
}

WRAP(char *, strdup, (const char *text))
{
	return fake_failing("malloc") ? NULL : counted(__real_strdup(text));
}

WRAP(void *, realloc, (void *memory, size_t size))
{
	void *moved;

	if (fake_failing("malloc"))
		return NULL;
	moved = __real_realloc(memory, size);
	return memory == NULL ? counted(moved) : moved;
}

WRAP(void, free, (void *memory))
{
	/* relaxed: a count */
	if (memory != NULL)
		atomic_fetch_sub_explicit(&fake.memory, 1,
					  memory_order_relaxed);
	__real_free(memory);
}

/* -1 with that errno, if this call is to fail */
static bool sys_fails(const char *call)
{
	int err = fake_failing(call);

	if (err)
		errno = err;
	return err != 0;
}

WRAP(void *, mmap,
     (void *addr, size_t length, int prot, int flags, int fd, off_t offset))
{
	void *memory;

	if (sys_fails("mmap"))
		return MAP_FAILED;
	memory = __real_mmap(addr, length, prot, flags, fd, offset);
	if (memory != MAP_FAILED)
		counted(memory);
	return memory;
}

WRAP(int, munmap, (void *memory, size_t length))
{
	/* relaxed: a count */
	atomic_fetch_sub_explicit(&fake.memory, 1, memory_order_relaxed);
	return __real_munmap(memory, length);
}

WRAP(int, madvise, (void *memory, size_t length, int advice))
{
	return fake_enter("madvise") ? -1
				     : __real_madvise(memory, length, advice);
}

WRAP(int, epoll_create1, (int flags))
{
	return sys_fails("epoll_create1") ? -1 : __real_epoll_create1(flags);
}

WRAP(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
	return sys_fails("epoll_ctl") ? -1
				      : __real_epoll_ctl(epfd, op, fd, event);
}

WRAP(int, eventfd, (unsigned value, int flags))
{
	return sys_fails("eventfd") ? -1 : __real_eventfd(value, flags);
}

WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *),
      void *arg))
{
	int err = fake_failing("pthread_create");

	return err ? err : __real_pthread_create(thread, attr, fn, arg);
}

WRAP(int, pthread_setaffinity_np,
     (pthread_t thread, size_t size, const cpu_set_t *set))
{
	int err = fake_failing("pthread_setaffinity_np");

	return err ? err : __real_pthread_setaffinity_np(thread, size, set);
}

WRAP(int, pthread_mutex_clocklock,
     (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until))
{
	int err = fake_failing("pthread_mutex_clocklock");

	/* the time of day may be set while a thread waits */
	assert_int_equal(clock, CLOCK_MONOTONIC);
	return err ? err : __real_pthread_mutex_clocklock(mutex, clock, until);
}

/* What it writes to is the caller's to free. */
WRAP(FILE *, open_memstream, (char **text, size_t *len))
{
	FILE *file;

	if (fake_failing("malloc"))
		return NULL;
	file = __real_open_memstream(text, len);
	counted(file);
	return file;
}

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);

int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list args;
	int arg;

	va_start(args, cmd);
	arg = cmd == F_SETFL ? va_arg(args, int) : 0;
	va_end(args);
	return sys_fails("fcntl") ? -1 : __real_fcntl(fd, cmd, arg);
}
