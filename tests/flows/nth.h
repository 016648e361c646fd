/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Flows of librpma between two ends in one thread: the calls of a program from
 * the first object to the last.
 */

#ifndef FLOWS_NTH_H
#define FLOWS_NTH_H 1

#include <librpma.h>

#define FLOWS_MAX 8

/* A connection said LOST where it should have said ESTABLISHED, or so. */
#define FLOW_OTHER_EVENT 1

struct flow {
	const char *name;
	int (*steps)(void);
};

/* Ends with one without a name. */
extern const struct flow flows[];

/* The steps until one fails, then everything back. Returns the first error. */
int flow_run(const struct flow *flow);
/*
 * What would not go stays where the leak sanitizer finds it. Was there any?
 */
bool flow_bury(void);
/* May a call of librpma answer that when one of its calls fails so? */
bool flow_is_documented(int ret, const char *err);

#endif /* FLOWS_NTH_H */
