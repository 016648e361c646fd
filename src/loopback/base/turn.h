/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * turn.h -- a thread that polls in vain offers its CPU to others: the thread or
 * process that would bring work may need the CPU.
 *
 * A thread offers its CPU when its polls have found nothing for the patience of
 * the thread. The patience becomes short when an offer helped: another thread
 * ran, and the next poll found something. The patience doubles when no thread
 * took the offer, or when another thread kept the CPU for long. So a thread
 * alone on its CPU makes few system calls, and two threads on the same CPU hand
 * the CPU over after a microsecond.
 */

#ifndef LB_BASE_TURN_H
#define LB_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct lb_turn {
	uint32_t empty;	   /* empty polls in a row */
	bool is_taken;	   /* somebody ran since the last poll */
	bool is_long;	   /* and for long */
	uint64_t since;	   /* nothing was found, ns */
	uint64_t patience; /* ns; 0: the first */
};

/*
 * The number of links to other processes that are up, and one more in the
 * thread mode. If the number is 0, only the threads of the program bring work,
 * and no thread offers its CPU.
 */
extern _Atomic uint32_t lb_turn_others;

static inline bool lb_turn_has_others(void)
{
	/* relaxed: a link that has just come is seen by the next poll */
	return !lb_likely(
		!atomic_load_explicit(&lb_turn_others, memory_order_relaxed));
}

static inline void lb_turn_count_others(int more)
{
	/* relaxed: a hint for polling threads */
	atomic_fetch_add_explicit(&lb_turn_others, (uint32_t)more,
				  memory_order_relaxed);
}

/* so many polls go by between two looks at the clock: less than 1 us */
#define LB_TURN_POLLS 32

/*
 * Asks for short or for usual slices of the CPU, for the calling thread of the
 * device. With short slices the thread runs at once after a wake, also beside a
 * program that spins on memory, and offers of the CPU are worth less.
 */
void lb_turn_set_slice(bool is_short);
/* The polls of the calling thread. */
extern _Thread_local struct lb_turn lb_turn_mine;

/* Notes the first poll with a result after empty polls. */
void lb_turn_found(struct lb_turn *turn);
/* LB_TURN_POLLS more have found nothing. */
void lb_turn_empty(struct lb_turn *turn);
/*
 * Counts a look of a thread that waits for some tens of microseconds at a time.
 * Returns true if the CPU was kept for long after an offer: the caller has to
 * end the wait. The next wait begins with the first patience, because a thread
 * with a patience longer than a wait would never offer the CPU again.
 */
bool lb_turn_waited(struct lb_turn *turn, bool found);

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
