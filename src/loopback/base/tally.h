/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tally.h -- the counts of the queue pairs of a process, and the board, a
 * memory file of rpma-loopback --stats with tallies of all processes below the
 * launcher: the launcher reads the tallies of processes that ended without a
 * call of exit().
 */

#ifndef LB_BASE_TALLY_H
#define LB_BASE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

/*
 * Counts of the queue pairs of a slot, past and present. A cache line for each
 * of the two locks; the launcher reads without locks.
 */
struct lb_tally {
	/* of tallies on the board: 0, nothing to print; and the first tally
	 * of the process */
	LB_ALIGNED int32_t pid;
	uint32_t first;
	/* under sq.lock */
	uint64_t executed;
	uint64_t failed;
	uint64_t flushed; /* sends */
	uint64_t bytes;
	uint64_t rnr;
	uint64_t retries;
	uint64_t lost;
	/* under rq.pop */
	LB_ALIGNED uint64_t received; /* messages with a receive */
	uint64_t flushed_receives;
};

/* The board: tally 0 is the head. */
#define LB_BOARD_TALLIES 131072
#define LB_BOARD_MAGIC	 0x64726f6261706d72ULL

struct lb_board_head {
	LB_ALIGNED uint64_t magic;
	_Atomic uint32_t used; /* claimed tallies */
};

union lb_board {
	struct lb_board_head head;
	struct lb_tally tallies[LB_BOARD_TALLIES];
};

/* Adds the counts of a tally to the sum. */
void lb_tally_add(struct lb_tally *sum, const struct lb_tally *tally);
/* Prints the line of a process on stderr. */
void lb_tally_print(int pid, const struct lb_tally *sum);

/* Makes a board. Returns the descriptor of the board, or -1 and errno. */
int lb_tally_new_board(union lb_board **board);
/* Maps the board of the path. Returns false, and errno, if there is none. */
bool lb_tally_open_board(const char *path);
/* Returns a tally of the caller's process on the board, under lb.big; NULL: the
 * process has no board, or the board is full. */
struct lb_tally *lb_tally_claim(void);
/* The process has printed its line. */
void lb_tally_leave(void);
/* In a child: the tallies so far are those of the parent. */
void lb_tally_forked(void);

#endif /* LB_BASE_TALLY_H */
