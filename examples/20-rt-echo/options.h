/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * options.h: the command line, checked; and how many threads may spin.
 */

#ifndef ECHO_OPTIONS_H
#define ECHO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum role { ROLE_BOTH, ROLE_SERVER, ROLE_CLIENT };

#define MAX_THREADS	64u
#define MAX_CONNECTIONS 4096u
#define MAX_DEPTH	8192u
/* receives posted beyond the messages in flight */
#define RECEIVE_SLACK 8u
/* of buffers, at each end */
#define MEMORY_MAX (UINT64_C(1) << 30)

static inline uint64_t buffer_bytes(uint64_t connections, uint64_t depth,
				    uint64_t size)
{
	return connections * (2 * depth + RECEIVE_SLACK) * size;
}

struct options {
	enum role role;
	const char *address; /* NULL: the address of the first device */
	const char *port;
	unsigned pollers;     /* 0: chosen by options_plan() */
	unsigned workers;     /* of each end; 0: chosen by options_plan() */
	unsigned connections; /* server: at a time */
	unsigned size;	      /* server: the largest accepted */
	unsigned depth;	      /* server: the largest accepted */
	uint64_t seconds;     /* 0: not limited */
	uint64_t messages;    /* 0: not limited */
	uint64_t seed;
	bool is_manual;
	bool pollers_spin; /* set by options_plan() */
	bool workers_spin;
};

enum parsed { PARSED_OK, PARSED_HELP, PARSED_WRONG };

/* Parses the command line. PARSED_WRONG: an error was printed on stderr. */
enum parsed options_parse(int argc, char **argv, struct options *options);

/*
 * Chooses the numbers of pollers and workers for the CPUs where no number is
 * given, and lowers given numbers, so that no more threads spin than there are
 * CPUs; prints changes on stderr.
 */
void options_plan(struct options *options, unsigned cpus);

#endif /* ECHO_OPTIONS_H */
