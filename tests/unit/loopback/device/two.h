/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * two.h -- two processes, each with a device of its own, which exchange what
 * they have to know of one another over a socket, as programs do between two
 * machines. The test is the parent of both.
 */

#ifndef LOOPBACK_TWO_H
#define LOOPBACK_TWO_H

#include <sys/types.h>

#include "../../../cases.h"

#define TWO_LOG 16384

struct two_process {
	int number; /* 0 or 1 */
	int socket; /* to the other one */
	int other;  /* the other one's end of it */
	int log;    /* the parent's end of its stderr */
	pid_t pid;
	int signal; /* that it is to end by; 0: it has to end well */
	char said[TWO_LOG];
};

typedef void two_body_fn(const struct two_process *self);

/* Two processes at the same time; p[].signal is set before. */
void two_run(struct two_process p[2], two_body_fn *body);
/* How often the text is in what the process said. */
int two_count(const struct two_process *p, const char *text);
/* Both give mine, and get the other's. */
void two_swap(const struct two_process *self, const void *mine, void *theirs,
	      size_t size);
/* Goes on when the other one is here too. */
void two_wait(const struct two_process *self);

#endif /* LOOPBACK_TWO_H */
