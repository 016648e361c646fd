/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * calls.h: the requests of a connection that have no answer yet: ids, a window,
 * deadlines. Meant to be copied: needs calls.c and nothing else.
 *
 * A call whose deadline passes is reported once, by calls_expire(), and stays
 * in the window until the answer comes or the connection ends: the peer may
 * still work on the request, and may still write into the caller's memory.
 * Thread: one at a time.
 */

#ifndef EXAMPLES_CALLS_H
#define EXAMPLES_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define CALLS_MAX  256
#define CALLS_NONE UINT64_MAX /* no deadline */

struct call {
	uint64_t id; /* the low 8 bits are the place in the window */
	uint64_t deadline_ns;
	void *user;
	bool is_open;
	bool is_expired;
};

struct calls {
	struct call calls[CALLS_MAX];
	uint8_t free[CALLS_MAX]; /* a stack of free places */
	uint32_t window;
	uint32_t open;
	uint64_t earliest_ns; /* no deadline is earlier */
};

/* Begins with an empty window of 1..CALLS_MAX calls. Ids of a former window are
 * not used again before 2^56 calls. */
void calls_init(struct calls *calls, uint32_t window);
/* Opens a call and returns the call, NULL while the window is full. */
struct call *calls_open(struct calls *calls, void *user, uint64_t deadline_ns);
/* Finds the open call of an answer; returns NULL for any other id. */
struct call *calls_find(struct calls *calls, uint64_t id);
/* Closes an open call. */
void calls_close(struct calls *calls, struct call *call);
/* Returns a call whose deadline has passed, once each; then NULL. */
struct call *calls_expire(struct calls *calls, uint64_t now_ns);
/* Returns any open call, or NULL: for a connection that has ended. */
struct call *calls_any(struct calls *calls);

#endif /* EXAMPLES_CALLS_H */
