/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * talk.h: the common part of the loops in this folder: a runtime in manual
 * mode, both ends of a connection, and a turn, called by any loop.
 */

#ifndef LOOP_TALK_H
#define LOOP_TALK_H

#define TALK_TICK_MS 10

enum talk {
	TALK_SLEEP, /* armed: sleep until a descriptor is readable */
	TALK_AGAIN, /* there may be more work: do not sleep */
	TALK_OVER,
	TALK_FAILED
};

/* Opens both ends. Returns 0, or the exit status of the program. */
int talk_open(int argc, char **argv);
void talk_close(void);
/* Gets the descriptors to watch: level-triggered, and never read. */
int talk_get_fds(int *poller, int *queue);

/* Runs a round of the poller, and handles delivered items. */
enum talk talk_turn(void);
/* Sends a text of the client; called every TALK_TICK_MS. */
enum talk talk_tick(void);

#endif /* LOOP_TALK_H */
