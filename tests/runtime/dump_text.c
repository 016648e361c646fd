/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* dump_text.c -- see dump_text.h. */

#define _GNU_SOURCE
#include "dump_text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

/* -------------------------------------------------------------- clocks --- */

static _Thread_local uint32_t ahead;
static _Atomic uint32_t ahead_all;

void dump_text_set_ahead(uint32_t ms)
{
	ahead = ms;
}

void dump_text_add_ahead_all(uint32_t ms)
{
	/* relaxed: a clock */
	atomic_fetch_add_explicit(&ahead_all, ms, memory_order_relaxed);
}

static uint64_t ms_ahead(void)
{
	/* relaxed: a clock */
	return ahead + atomic_load_explicit(&ahead_all, memory_order_relaxed);
}

/* These two in place of the C library's, for the libraries too. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
							 struct timespec *ts)
{
	uint64_t ms = ms_ahead();
	int ret = (int)syscall(SYS_clock_gettime, clock, ts);

	if (ret ||
	    (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE))
		return ret;
	ts->tv_sec += (time_t)(ms / 1000);
	ts->tv_nsec += (long)(ms % 1000) * 1000000;
	if (ts->tv_nsec >= 1000000000) {
		ts->tv_nsec -= 1000000000;
		ts->tv_sec++;
	}
	return 0;
}

/* A time of the clock above is one of the kernel's: a sleep of a moment would
 * last as long as the clock is ahead. The conditions are all monotonic. */
__attribute__((visibility("default"))) int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
		       const struct timespec *until)
{
	uint64_t ms = ms_ahead();
	struct timespec real = *until;

	real.tv_sec -= (time_t)(ms / 1000);
	real.tv_nsec -= (long)(ms % 1000) * 1000000;
	if (real.tv_nsec < 0) {
		real.tv_nsec += 1000000000;
		real.tv_sec--;
	}
	return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &real);
}

/* It knows the time of day only, which somebody may set. */
__attribute__((visibility("default"))) int
pthread_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until)
{
	(void)lock;
	(void)until;
	fprintf(stderr, "a lock is waited for by the time of day\n");
	abort();
}

/* --------------------------------------------------------------- dumps --- */

char *dump_text(struct rpma_rt *rt, enum rpma_rt_dump_format format)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	off_t size;
	char *text;

	CHECK(fd >= 0);
	MUST(rpma_rt_dump(rt, fd, format));
	size = lseek(fd, 0, SEEK_END);
	CHECK(size > 0);
	text = calloc((size_t)size + 1, 1);
	CHECK(text != NULL);
	CHECK(pread(fd, text, (size_t)size, 0) == size);
	close(fd);
	return text;
}

char *dump_text_later(struct rpma_rt *rt, enum rpma_rt_dump_format format,
		      uint32_t ms)
{
	char *text;

	dump_text_set_ahead(ms);
	text = dump_text(rt, format);
	dump_text_set_ahead(0);
	return text;
}

void dump_text_expect(const char *text, const char *words)
{
	if (strstr(text, words) != NULL)
		return;
	fprintf(stderr, "not there: %s\n%s\n", words, text);
	CHECK(strstr(text, words) != NULL);
}

uint64_t dump_text_count(const char *text, const char *kind)
{
	char words[64];
	const char *at;

	snprintf(words, sizeof(words), "rpma_rt_wrong{kind=\"%s\"} ", kind);
	dump_text_expect(text, words);
	at = strstr(text, words) + strlen(words);
	return strtoull(at, NULL, 10);
}

/* JSON has a member "stopping" behind the "asleep" of a poller, not of a queue;
 * Prometheus: rpma_rt_poller_asleep{poller="0"} 0 */
static bool has_awake_poller(const char *text)
{
	const char *name = "rpma_rt_poller_asleep{";

	if (strstr(text, ", awake") != NULL ||
	    strstr(text, "\"asleep\":false,\"stopping\"") != NULL)
		return true;
	while ((text = strstr(text, name)) != NULL) {
		text = strstr(text, "} ");
		CHECK(text != NULL);
		if (text[2] == '0')
			return true;
	}
	return false;
}

char *dump_text_asleep(struct rpma_rt *rt, enum rpma_rt_dump_format format,
		       uint32_t ms)
{
	uint64_t end_ms = world_now_ms() + WORLD_PATIENCE_MS;
	char *text = dump_text_later(rt, format, ms);

	while (has_awake_poller(text)) {
		CHECK(world_now_ms() < end_ms);
		free(text);
		text = dump_text_later(rt, format, ms);
	}
	return text;
}

void dump_text_await_sleep(struct rpma_rt *rt)
{
	free(dump_text_asleep(rt, RPMA_RT_DUMP_HUMAN, 0));
}

static bool has_old_clock(const char *text, uint32_t ms)
{
	const char *asleep = "\"asleep\":";
	const char *age = "\"clock_age_ms\":";
	const char *end = strstr(text, "\"cqs\":");
	bool is_old = false;

	CHECK(end != NULL);
	while ((text = strstr(text, asleep)) != NULL && text < end) {
		text += strlen(asleep);
		is_old |= strncmp(text, "true", 4) != 0 &&
			  strtoul(strstr(text, age) + strlen(age), NULL, 10) >=
				  ms;
	}
	return is_old;
}

void dump_text_await_clock(struct rpma_rt *rt, uint32_t ms)
{
	bool is_old = true;
	char *text;

	while (is_old) {
		text = dump_text(rt, RPMA_RT_DUMP_JSON);
		is_old = has_old_clock(text, ms);
		free(text);
	}
}
