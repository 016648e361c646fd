/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nth_life.h -- lives of a runtime, for runtime_nth: everything is made, used
 * and unmade; the first error ends it early, in an orderly way.
 */

#ifndef NTH_LIFE_H
#define NTH_LIFE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "rpma_loopback.h"
#include "rpma_rt.h"

#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			abort();                                           \
		}                                                          \
	} while (0)

#define MUST(call) CHECK((call) == 0)

/* A connection said CLOSED where it should have lived. */
#define LIFE_CLOSED 1

struct life {
	const char *name;
	bool is_manual;
	bool is_stopped;   /* with its connections alive */
	bool is_shared;	   /* receives from an SRQ; sends led to a function */
	int (*live)(void); /* in place of all of these */
};

/* Ends with one without a name. */
extern const struct life lives[];

/* In nth_objects.c: futures, whose messages come from a pool; shards. */
int life_of_futures(void);
int life_of_shards(void);

/* What all lives use. */
void life_open(void);
struct rpma_peer *life_peer(void);
/* An event of a port: nobody's, but to be read. */
void life_raise(void);
/* The fault that is raised, for the message if the test hangs. */
extern const char *life_trouble;
/* From rpma_rt_new() to rpma_rt_delete(); the first error. Aborts where the
 * runtime broke a promise. */
int life_live(const struct life *life);

#endif /* NTH_LIFE_H */
