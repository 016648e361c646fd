/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * watch.h -- --stats: the launcher stays beside the program, and prints the
 * line of each process that ended without a call of exit().
 */

#ifndef LAUNCH_WATCH_H
#define LAUNCH_WATCH_H

/*
 * Returns in a child, which becomes the program; the caller waits for the
 * child, hands signals on, and ends as the child ended. Where the system
 * refuses a child or the memory, the function returns in the caller, and only
 * processes that call exit() print.
 */
void watch_fork(void);

#endif /* LAUNCH_WATCH_H */
