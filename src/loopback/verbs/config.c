/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * config.c -- the process-wide state, its settings from the environment, and
 * the small services that every other file uses: log, clock, random numbers,
 * the slow half of the lock. Any thread.
 */

#include "loopback.h"
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* a contended lock: looks, then offers of the processor, then naps */
#define LOCK_SPINS   100
#define LOCK_YIELDS  50
#define LOCK_NAP_NS  20000
#define DEFAULT_SEED 1

struct lb_globals lb = {
	.big = PTHREAD_MUTEX_INITIALIZER,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t draws;
static _Atomic uint64_t misuses;

/* --- locks, time, chance */

void lb_lock_wait(struct lb_lock *lock)
{
	const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
	unsigned tries = 0;

	for (;; tries++) {
		/* relaxed: only a hint that trying may succeed */
		if (!atomic_load_explicit(&lock->word, memory_order_relaxed) &&
		    lb_lock_try(lock))
			return;
		if (tries < LOCK_SPINS)
			lb_cpu_relax();
		else if (tries < LOCK_SPINS + LOCK_YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

uint64_t lb_real_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t lb_now(void)
{
	uint64_t now;

	return lb_sched_clock(&now) ? now : lb_real_now();
}

uint64_t lb_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t lb_random(void)
{
	/* relaxed: each draw is different, their order does not matter */
	uint64_t n = atomic_fetch_add_explicit(&draws, 1, memory_order_relaxed);

	return lb_mix(
		lb_mix(atomic_load_explicit(&lb.seed, memory_order_relaxed)) +
		n);
}

void lb_draw(void *buf, size_t size)
{
	uint8_t *to = buf;
	uint64_t x = lb_real_now() ^ (uint64_t)getpid() << 32;
	ssize_t got = getrandom(buf, size, 0);
	size_t i;

	/* where the kernel does not give any: the time and the process */
	for (i = got > 0 ? (size_t)got : 0; i < size; i++) {
		x = lb_mix(x);
		to[i] = (uint8_t)x;
	}
}

/* --- what goes to stderr */

static void say(const char *what, const char *fmt, va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	/* one call, so that lines of several threads do not mix */
	fprintf(stderr, "loopback: %s%s\n", what, text);
}

void lb_log(int level, const char *fmt, ...)
{
	va_list ap;

	/* relaxed: an option */
	if (level > atomic_load_explicit(&lb.log, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void lb_misuse(const char *fmt, ...)
{
	va_list ap;
	/* relaxed: an option, and a counter */
	int strict = atomic_load_explicit(&lb.strict, memory_order_relaxed);

	if (strict == RPMA_LOOPBACK_STRICT_OFF)
		return;
	atomic_fetch_add_explicit(&misuses, 1, memory_order_relaxed);
	va_start(ap, fmt);
	say("misuse: ", fmt, ap);
	va_end(ap);
	if (strict == RPMA_LOOPBACK_STRICT_ABORT)
		abort();
}

uint64_t lb_misuse_count(void)
{
	/* relaxed: a counter */
	return atomic_load_explicit(&misuses, memory_order_relaxed);
}

/* --- the environment */

/* The index of the variable's value in names, or 0 and a message. */
static int env_choice(const char *var, const char *const names[])
{
	const char *value = getenv(var);
	int i;

	if (!value)
		return 0;
	for (i = 0; names[i]; i++) {
		if (!strcmp(value, names[i]))
			return i;
	}
	fprintf(stderr, "loopback: %s=%s: known are", var, value);
	for (i = 0; names[i]; i++)
		fprintf(stderr, " %s", names[i]);
	fprintf(stderr, "; using %s\n", names[0]);
	return 0;
}

static uint64_t env_number(const char *var, uint64_t def, uint64_t max)
{
	const char *value = getenv(var);
	char *end;
	uint64_t n;

	if (!value)
		return def;
	errno = 0;
	n = strtoull(value, &end, 0);
	if (!errno && end != value && !*end && n <= max)
		return n;
	fprintf(stderr,
		"loopback: %s=%s: want a number up to %llu; using %llu\n", var,
		value, (unsigned long long)max, (unsigned long long)def);
	return def;
}

/* --- fork: a child may open devices of its own, not use its parent's */

static void fork_step(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE)
		pthread_mutex_lock(&lb.big);
	lb_service_fork(step);
	lb_thread_fork(step);
	lb_qp_number_fork(step);
	lb_mcast_fork(step);
	lb_barrier_fork(step);
	if (step != LB_FORK_BEFORE)
		pthread_mutex_unlock(&lb.big);
}

static void before_fork(void)
{
	fork_step(LB_FORK_BEFORE);
}

static void after_fork_parent(void)
{
	fork_step(LB_FORK_PARENT);
}

static void after_fork_child(void)
{
	fork_step(LB_FORK_CHILD);
}

static void start(void)
{
	static const char *const modes[] = {"inline", "thread", NULL};
	static const char *const stricts[] = {"off", "warn", "abort", NULL};
	const char *rules = getenv("RPMA_LOOPBACK_FAULT");

	/* relaxed, all: pthread_once() publishes them */
	atomic_store_explicit(&lb.mode, env_choice("RPMA_LOOPBACK_MODE", modes),
			      memory_order_relaxed);
	atomic_store_explicit(&lb.strict,
			      env_choice("RPMA_LOOPBACK_STRICT", stricts),
			      memory_order_relaxed);
	atomic_store_explicit(&lb.log,
			      (int)env_number("RPMA_LOOPBACK_LOG", 0, 9),
			      memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(
		&lb.seed,
		env_number("RPMA_LOOPBACK_SEED", DEFAULT_SEED, UINT64_MAX),
		memory_order_relaxed);
	lb.ndevices =
		(int)env_number("RPMA_LOOPBACK_DEVICES", 1, LB_MAX_DEVICES);
	lb_mr_start();
	lb_barrier_start();
	lb_device_start();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	if (rules)
		rpma_loopback_fault(rules);
}

void lb_start(void)
{
	pthread_once(&once, start);
}

/* --- the same by call */

LB_EXPORT void rpma_loopback_set_mode(enum rpma_loopback_mode mode)
{
	lb_start();
	/* relaxed: read by posts that come after in some other order */
	atomic_store_explicit(&lb.mode, (int)mode, memory_order_relaxed);
}

LB_EXPORT enum rpma_loopback_mode rpma_loopback_get_mode(void)
{
	lb_start();
	/* relaxed: an option */
	return (enum rpma_loopback_mode)atomic_load_explicit(
		&lb.mode, memory_order_relaxed);
}

LB_EXPORT void rpma_loopback_set_seed(uint64_t seed)
{
	lb_start();
	/* relaxed: whoever needs a repeatable run sets it while all is quiet */
	atomic_store_explicit(&lb.seed, seed, memory_order_relaxed);
	atomic_store_explicit(&draws, 0, memory_order_relaxed);
}

LB_EXPORT uint64_t rpma_loopback_get_seed(void)
{
	lb_start();
	/* relaxed: an option */
	return atomic_load_explicit(&lb.seed, memory_order_relaxed);
}

LB_EXPORT void rpma_loopback_set_strict(enum rpma_loopback_strict strict)
{
	lb_start();
	/* relaxed: an option */
	atomic_store_explicit(&lb.strict, (int)strict, memory_order_relaxed);
}
