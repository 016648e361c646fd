/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * numbers.h -- free numbers of one CQ's routes. Under the runtime's lock, but
 * for those that the poller gives back: these are in a ring that it writes and
 * that whoever has the lock reads. doc/protocols/route.md.
 */

#ifndef RT_POLLER_NUMBERS_H
#define RT_POLLER_NUMBERS_H

#include <stdatomic.h>
#include <stdint.h>

struct rt_numbers {
	uint16_t *returned; /* a stack, with room for all handed out */
	uint32_t returned_count;
	uint32_t returned_max;
	uint32_t next; /* never handed out yet from here on */
	/* given back by the poller: a place for each; NULL: none yet */
	uint16_t *back;
	uint32_t back_head;
	_Atomic uint32_t back_tail; /* written by the poller */
};

void rt_numbers_init(struct rt_numbers *numbers);
void rt_numbers_fini(struct rt_numbers *numbers);
/* How many can be taken. */
uint32_t rt_numbers_left(const struct rt_numbers *numbers);
/* ERRORS: RPMA_E_NOMEM (also: all 32512 in use) */
int rt_numbers_take(struct rt_numbers *numbers, uint32_t *number);
void rt_numbers_return(struct rt_numbers *numbers, uint32_t number);
/* From now on the poller may give numbers back. ERRORS: RPMA_E_NOMEM */
int rt_numbers_let_poller(struct rt_numbers *numbers);
/* Without the lock. REQUIRES: the message about the above was run */
void rt_numbers_return_poller(struct rt_numbers *numbers, uint32_t number);

#endif /* RT_POLLER_NUMBERS_H */
