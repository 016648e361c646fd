/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * echo.h: the parts of verbs.c and migrated.c that a migration leaves alone:
 * the messages, their places in memory, the requests that completions lead back
 * to, and the clock.
 */

#ifndef MIGRATION_ECHO_H
#define MIGRATION_ECHO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTSTANDING 16 /* messages of the client */
#define SLOTS	    32 /* receives, and as many places to send from */
#define SIZE	    128
#define AT_LEAST    1000 /* messages, however short the time */
#define USAGE	    "server ADDRESS | client ADDRESS PORT SECONDS"

/* What a work request is for: its address is the context, or the wr_id. */
struct request {
	bool is_recv;
	int slot;
};

struct echo {
	char memory[2 * SLOTS][SIZE]; /* received into, then sent from */
	struct request requests[2 * SLOTS];
	bool is_server;
	uint64_t sent, received;
	int unsent;   /* sends that are not complete */
	bool is_late; /* nothing more is sent */
	double begin, end;
};

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void echo_init(struct echo *echo, bool is_server)
{
	echo->is_server = is_server;
	for (int i = 0; i < 2 * SLOTS; i++)
		echo->requests[i] = (struct request){i < SLOTS, i % SLOTS};
}

/* The client's time begins when the connection is there. */
static inline void echo_begin(struct echo *echo, const char *seconds)
{
	echo->begin = now();
	echo->end = echo->begin + atof(seconds);
}

/* Returns whether the client has its last echo. */
static inline bool echo_is_over(struct echo *echo)
{
	echo->is_late |= echo->sent >= AT_LEAST && now() >= echo->end;
	return echo->is_late && echo->sent == echo->received;
}

/* Returns whether the client may send one more message now. */
static inline bool echo_may_send(const struct echo *echo)
{
	return !echo->is_late && echo->unsent < OUTSTANDING &&
	       echo->sent - echo->received < OUTSTANDING;
}

/* Writes the client's next message; returns the slot to send from. */
static inline int echo_write(struct echo *echo)
{
	uint64_t number = echo->sent++;
	int slot = (int)(number % SLOTS);
	char *out = echo->memory[SLOTS + slot];

	memset(out, (char)number, SIZE);
	memcpy(out, &number, sizeof(number));
	return slot;
}

/* Checks each byte of an echo that arrived at the client. */
static inline void echo_check(struct echo *echo, int slot)
{
	const char *in = echo->memory[slot];
	uint64_t number = echo->received++;

	if (memcmp(in, &number, sizeof(number)) != 0)
		die("echo out of order");
	for (size_t i = sizeof(number); i < SIZE; i++)
		if (in[i] != (char)number)
			die("wrong echo");
}

static inline void echo_print(const struct echo *echo)
{
	printf("rate %.1f Kops/s\n",
	       (double)echo->received / (now() - echo->begin) / 1000);
}

#endif /* MIGRATION_ECHO_H */
