/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * talk.h: what the loops of this folder have in common: a runtime in manual
 * mode, both ends of a connection, and one turn of whatever loop runs them.
 */

#ifndef LOOP_TALK_H
#define LOOP_TALK_H

#define TALK_TICK_MS 10

enum talk {
	TALK_SLEEP, /* armed: sleep until one of the descriptors is readable */
	TALK_AGAIN, /* there may be more: do not sleep */
	TALK_OVER,
	TALK_FAILED
};

/* 0, or the status that the program exits with. */
int talk_open(int argc, char **argv);
void talk_close(void);
/* To be watched for being readable; level-triggered, and not to be read. */
int talk_get_fds(int *poller, int *queue);

/* A round of the poller, and what it delivered. */
enum talk talk_turn(void);
/* Every TALK_TICK_MS: the client says something. */
enum talk talk_tick(void);

#endif /* LOOP_TALK_H */
