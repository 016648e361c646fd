/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * explore.h -- every order in which two or three threads access shared words,
 * with a store buffer for each thread: others see a store some time after the
 * store was made, in order, at the latest before the next atomic
 * read-modify-write, fence or system call of the thread. Orders that differ
 * only in accesses that do not concern each other are tried once.
 *
 * The code under test is compiled as for ThreadSanitizer, whose calls are
 * replaced (traced.c); watched words are shared.
 */

#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPLORE_THREADS 3

struct explore {
	const char *name;
	int threads;
	void (*body[EXPLORE_THREADS])(void);
	/* before each order, and afterwards; outside of the threads */
	void (*setup)(void);
	void (*check)(void);
	bool is_long; /* too much for the default */
	/* the most interruptions of an order: another thread goes on although
	 * this thread could, or a store leaves its buffer early. 0: no bound */
	unsigned bound;
};

/* The program: runs all plays but the long plays; with "all" the long plays
 * too; with "found" all plays that are not long, or the play named behind, and
 * an order of one must fail; or a single play, in a single order if
 * EXPLORE_REPLAY names the order.
 * Returns 0, or 1 if an error was found. Prints the number of orders, and how
 * to repeat a failure. plays ends with a name NULL. */
int explore_main(int argc, char **argv, const struct explore *plays);

/* In setup(): shares the bytes. */
void explore_watch(const volatile void *from, size_t size);
void explore_watch_nothing(void);
/* In setup() of a play with explore_fence_all(), which comes before or behind a
 * store: a store into the buffer is a step of its own. */
void explore_stop_at_stores(void);

/* ----------------------------------------------------- in the threads --- */

/* The order is wrong: prints why and ends the program. Also in check(). */
__attribute__((format(printf, 1, 2), noreturn)) void
explore_fail(const char *format, ...);
#define EXPLORE_CHECK(cond)                                                   \
	do {                                                                  \
		if (!(cond))                                                  \
			explore_fail("%s:%d: %s", __FILE__, __LINE__, #cond); \
	} while (0)

/* Announces an access, by a system call or an untraced part, to the object of
 * the address. */
void explore_touch(const void *at);
/* A fence in every thread, as of membarrier(): one thread after the other, at
 * any moment of that thread, has its stores in the memory. */
void explore_fence_all(void);
/* Announces an access, and sleeps until is_over(arg). */
void explore_wait(const void *at, bool (*is_over)(void *arg), void *arg);

/* ---------------------------------------------------------- traced.c --- */

/*
 * Returns true if the caller is a thread of the play and the bytes are watched.
 */
bool explore_is_watched(const volatile void *at);
/*
 * Before an atomic load: returns true if the value, *value, comes from the
 * buffer.
 */
bool explore_load(const volatile void *at, uint64_t *value);
/* In place of an atomic store of so many bytes. */
void explore_store(volatile void *at, uint64_t value, unsigned size);
/* Before an atomic read-modify-write of any word, which acts as a fence. */
void explore_modify(const volatile void *at);
void explore_fence(void);

#endif /* EXPLORE_H */
