/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * power.c -- the rules by which delivered words become persistent, and the
 * operation at which the power fails. Run by threads that execute, with rq.pop
 * or sq.lock, and the lock of a window's row: the lock here is a leaf.
 */

#include "memory/power.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/random.h"
#include "memory/outage.h"
#include "memory/pmem.h"
#include "rpma_loopback.h"

/* Words of an operation that persist at once. */
enum early {
	EARLY_NONE,
	EARLY_ALL,
	EARLY_SOME, /* each word by a separate draw */
	EARLY_KINDS,
};

/* A delivery through a queue pair. */
struct delivery {
	uint32_t qp;
	enum early early;
	uint64_t draw;
};

bool lb_power_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed;
static uint64_t fails_at; /* 0: at no operation */
static _Atomic uint64_t operations;

/* Takes the lock; a thread that comes after the failure never returns. */
static void enter(void)
{
	pthread_mutex_lock(&lock);
	if (lb_outage_has_begun())
		lb_outage(0, 0);
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

/* --- options */

static void on_signal(int signal)
{
	(void)signal;
	/* relaxed: a number to print */
	lb_outage(atomic_load_explicit(&operations, memory_order_relaxed),
		  seed);
}

/* Reads SEED[:N]; false: not in this form. */
static bool parse(const char *text)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	seed = strtoull(text, &end, 0);
	if (*end == ':' && end[1] >= '0' && end[1] <= '9')
		fails_at = strtoull(end + 1, &end, 0);
	return !*end && !errno;
}

void lb_power_start(const char *when, const char *names)
{
	struct sigaction action = {.sa_handler = on_signal};

	if (!when)
		return;
	if (!parse(when)) {
		fprintf(stderr,
			"loopback: RPMA_LOOPBACK_POWER_FAIL=%s: want SEED or "
			"SEED:N, two numbers; the power does not fail\n",
			when);
		return;
	}
	lb_pmem_start(names);
	sigaction(SIGPWR, &action, NULL);
	lb_power_on = true;
}

LB_EXPORT int rpma_loopback_power_fail(void)
{
	if (!lb_power_on)
		return -EINVAL;
	on_signal(0);
	return 0;
}

void lb_power_fork(enum lb_fork_step step)
{
	if (!lb_power_on)
		return;
	if (step == LB_FORK_BEFORE) {
		pthread_mutex_lock(&lock);
		return;
	}
	if (step == LB_FORK_CHILD) {
		lb_pmem_forked();
		/* relaxed: the child has a single thread */
		atomic_store_explicit(&operations, 0, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
}

/* --- regions */

void lb_power_register(const void *region, const void *addr, size_t len,
		       bool persists)
{
	enter();
	lb_pmem_add(region, addr, len, persists);
	leave();
}

void lb_power_deregister(const void *region)
{
	enter();
	lb_pmem_remove(region);
	leave();
}

/* --- operations */

void lb_power_arrive(void)
{
	uint64_t n;
	bool counts;

	enter();
	counts = lb_pmem_files;
	/* relaxed: under the lock; a signal handler reads the number */
	n = atomic_load_explicit(&operations, memory_order_relaxed) + counts;
	atomic_store_explicit(&operations, n, memory_order_relaxed);
	if (counts && n == fails_at)
		lb_outage(n, seed);
	leave();
}

static bool is_early(const struct delivery *delivery, size_t word)
{
	return delivery->early == EARLY_ALL ||
	       (delivery->early == EARLY_SOME &&
		(lb_random_mix(delivery->draw + word) & 1));
}

static void deliver(struct lb_pmem *file, size_t from, size_t to, void *arg)
{
	const struct delivery *delivery = arg;
	size_t word;

	for (word = from; word < to; word++) {
		if (is_early(delivery, word))
			lb_pmem_release(file, word);
		else
			lb_pmem_own(file, word, delivery->qp);
	}
}

/* The lock is held. */
static struct delivery delivery_of(uint64_t qp)
{
	/* relaxed: under the lock */
	uint64_t draw = lb_random_mix(
		lb_random_mix(seed) ^
		atomic_load_explicit(&operations, memory_order_relaxed));

	return (struct delivery){
		.qp = (uint32_t)qp,
		.early = (enum early)(draw % EARLY_KINDS),
		.draw = lb_random_mix(draw),
	};
}

void lb_power_deliver(uint64_t qp, const struct lb_span *dst, uint64_t from,
		      uint64_t n)
{
	struct delivery delivery;

	enter();
	delivery = delivery_of(qp);
	for (; n && dst->len; dst++) {
		uint64_t piece = dst->len - from;

		if (from >= dst->len) {
			from -= dst->len;
			continue;
		}
		piece = piece < n ? piece : n;
		lb_pmem_each(dst->addr + from, piece, deliver, &delivery);
		n -= piece;
		from = 0;
	}
	leave();
}

/* --- words become persistent */

/* Releases the words of a queue pair; NULL: of every queue pair. */
static void release(struct lb_pmem *file, size_t from, size_t to, void *arg)
{
	const uint32_t *qp = arg;
	size_t word;

	for (word = from; word < to; word++) {
		if (!qp || file->owner[word] == *qp)
			lb_pmem_release(file, word);
	}
}

static void release_in_file(struct lb_pmem *file, uint32_t *qp)
{
	size_t page, pages = file->words / LB_PMEM_PAGE_WORDS;

	for (page = 0; page < pages; page++) {
		size_t from = page * LB_PMEM_PAGE_WORDS;

		if (file->counts[page])
			release(file, from, from + LB_PMEM_PAGE_WORDS, qp);
	}
}

void lb_power_read(uint64_t qp)
{
	uint32_t owner = (uint32_t)qp;
	struct lb_pmem *file;

	enter();
	for (file = lb_pmem_files; file; file = file->next)
		release_in_file(file, &owner);
	leave();
}

void lb_power_flush(uint64_t qp, const void *addr, uint64_t len)
{
	uint32_t owner = (uint32_t)qp;

	enter();
	lb_pmem_each(addr, len, release, &owner);
	leave();
}

/*
 * Stands before the msync() of the C library: the program makes bytes
 * persistent by its own CPU.
 */
LB_EXPORT int msync(void *addr, size_t len, int flags)
{
	int (*next)(void *, size_t, int);
	int ret;

	*(void **)&next = dlsym(RTLD_NEXT, "msync");
	ret = next ? next(addr, len, flags) : -1;
	if (!lb_power_is_on() || ret)
		return ret;
	enter();
	lb_pmem_each(addr, len, release, NULL);
	leave();
	return 0;
}
