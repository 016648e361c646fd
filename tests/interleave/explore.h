/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * explore.h -- every order in which two or three threads access the words that
 * they share, with a store buffer for each: a store is seen by others some time
 * after it was made, in order, at the latest before the thread's next atomic
 * read-modify-write, fence or system call. Orders that differ only in accesses
 * that do not concern each other are tried once.
 *
 * The code under test is compiled as for ThreadSanitizer, whose calls are ours
 * (traced.c); words are shared if they are watched.
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
	/* before each order, and after it; outside of the threads */
	void (*setup)(void);
	void (*check)(void);
	bool is_long; /* too much for the default */
	/* interruptions of an order, at most: another thread goes on although
	 * this one could, or a store leaves its buffer before it has to.
	 * 0: there is no bound */
	unsigned bound;
};

/* The program: all plays but the long ones; with "all" those too; with "found"
 * all that are not long, of which one must fail; or one play, in one order if
 * EXPLORE_REPLAY says which. 0, 1: something was found. Prints how many orders
 * there were, and of a failure how to repeat it. plays ends with a name NULL.
 */
int explore_main(int argc, char **argv, const struct explore *plays);

/* In setup(): these bytes are shared. */
void explore_watch(const volatile void *from, size_t size);
void explore_watch_nothing(void);

/* ----------------------------------------------------- in the threads --- */

/* The order is wrong: prints why and ends the program. Also in check(). */
__attribute__((format(printf, 1, 2), noreturn)) void
explore_fail(const char *format, ...);
#define EXPLORE_CHECK(cond)                                                   \
	do {                                                                  \
		if (!(cond))                                                  \
			explore_fail("%s:%d: %s", __FILE__, __LINE__, #cond); \
	} while (0)

/* A system call, or a part that is not traced, is about to access what that
 * address stands for. */
void explore_touch(const void *at);
/* The same, when is_over(arg): it sleeps until then. */
void explore_wait(const void *at, bool (*is_over)(void *arg), void *arg);

/* ---------------------------------------------------------- traced.c --- */

/* Is the caller one of the threads, and are these bytes watched? */
bool explore_is_watched(const volatile void *at);
/* Before an atomic load: true: it reads *value, which is in the buffer. */
bool explore_load(const volatile void *at, uint64_t *value);
/* In place of an atomic store of so many bytes. */
void explore_store(volatile void *at, uint64_t value, unsigned size);
/* Before an atomic read-modify-write, of any word: it is a fence. */
void explore_modify(const volatile void *at);
void explore_fence(void);

#endif /* EXPLORE_H */
