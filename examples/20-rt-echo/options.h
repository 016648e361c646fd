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
	const char *address; /* NULL: that of the first device */
	const char *port;
	unsigned pollers;     /* 0: to be chosen by options_plan() */
	unsigned workers;     /* likewise, of each end */
	unsigned connections; /* server: at a time */
	unsigned size;	      /* server: the most it takes */
	unsigned depth;	      /* likewise */
	uint64_t seconds;     /* 0: not limited */
	uint64_t messages;    /* likewise */
	uint64_t seed;
	bool is_manual;
	bool pollers_spin; /* set by options_plan() */
	bool workers_spin;
};

enum parsed { PARSED_OK, PARSED_HELP, PARSED_WRONG };

/* PARSED_WRONG: one line on stderr said what and why. */
enum parsed options_parse(int argc, char **argv, struct options *options);

/*
 * Chooses pollers and workers for so many CPUs where none are given, and cuts
 * what is given so that no more threads spin than there are CPUs; says so on
 * stderr.
 */
void options_plan(struct options *options, unsigned cpus);

#endif /* ECHO_OPTIONS_H */
