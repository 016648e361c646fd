/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turn.h -- a thread that polls in vain offers its CPU to others: the thread or
 * the process that would bring something may need this CPU.
 *
 * A thread offers its CPU when its polls have found nothing for the thread's
 * patience. The patience becomes short when an offer helped: another thread
 * ran, and the next poll found something. The patience doubles when nobody
 * took the offer, or when somebody kept the CPU for long. So a thread that has
 * its CPU alone makes few system calls, and two threads that share a CPU hand
 * the CPU over after a microsecond.
 */

#ifndef LB_BASE_TURN_H
#define LB_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct lb_turn {
	uint32_t empty;	   /* polls in a row that found nothing */
	bool is_taken;	   /* somebody ran since the last poll */
	bool is_long;	   /* and for long */
	uint64_t since;	   /* nothing was found, ns */
	uint64_t patience; /* ns; 0: the first */
};

/*
 * How many links to other processes are up, and one more in the thread mode. If
 * the number is 0, nobody but the program's own threads brings anything, and no
 * thread offers its CPU.
 */
extern _Atomic uint32_t lb_turn_others;

static inline bool lb_turn_has_others(void)
{
	/* relaxed: one that has just come is met by the next poll */
	return !lb_likely(
		!atomic_load_explicit(&lb_turn_others, memory_order_relaxed));
}

static inline void lb_turn_count_others(int more)
{
	/* relaxed: a hint to those who poll */
	atomic_fetch_add_explicit(&lb_turn_others, (uint32_t)more,
				  memory_order_relaxed);
}

/* so many polls go by between two looks at the clock: less than 1 us */
#define LB_TURN_POLLS 32

/*
 * The calling thread, one of the device, asks for short slices of its CPU, or
 * for usual ones. With short ones it runs at once when it wakes, also beside a
 * program that spins on memory, and its offers of the CPU are worth less.
 */
void lb_turn_set_slice(bool is_short);
/* The polls of the calling thread. */
extern _Thread_local struct lb_turn lb_turn_mine;

/* A poll has found something, the first one after some that have not. */
void lb_turn_found(struct lb_turn *turn);
/* LB_TURN_POLLS more have found nothing. */
void lb_turn_empty(struct lb_turn *turn);

/* Counts a poll, and offers the CPU if the patience is over. No lock held. */
static inline void lb_turn_polled(struct lb_turn *turn, bool found)
{
	if (found) {
		if (turn->empty)
			lb_turn_found(turn);
	} else if (turn->is_taken || !(++turn->empty % LB_TURN_POLLS)) {
		lb_turn_empty(turn);
	}
}

#endif /* LB_BASE_TURN_H */
