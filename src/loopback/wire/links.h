/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* links.h -- the links of a NIC. */

#ifndef LB_WIRE_LINKS_H
#define LB_WIRE_LINKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "wire/parts.h"

/*
 * The link to a process that has this number, with a reference; one in
 * contact if there was none. is_named: the program named the process. NULL: no
 * memory, or too many are dead and in use.
 */
struct lb_link *lb_links_find(struct lb_nic *nic, unsigned number,
			      bool is_named);
/*
 * It is dead, and not the one that lb_links_find() finds; until then it is.
 * The link thread.
 */
void lb_links_leave(struct lb_nic *nic, struct lb_link *link, uint64_t until);
/* Those who wait for some link to be up look again. The link thread. */
void lb_links_came_up(struct lb_nic *nic);
/* No link of this number is kept because nobody had it. */
void lb_links_forget_nobody(struct lb_nic *nic, unsigned number);

/* How many there are; the one of an index. Any thread, no lock. */
static inline unsigned lb_links_count(struct lb_nic *nic)
{
	/* acquire: pairs with the release in add() of links.c */
	return atomic_load_explicit(&nic->nlinks, memory_order_acquire);
}

static inline struct lb_link *lb_links_at(struct lb_nic *nic, unsigned i)
{
	/* relaxed: below a count that was acquired it is constant */
	return atomic_load_explicit(&nic->links[i], memory_order_relaxed);
}

/*
 * Returns the first link that is awake from index *at on, and sets *at behind
 * that link; or NULL. n: lb_links_count().
 */
static inline struct lb_link *lb_links_next_awake(struct lb_nic *nic,
						  unsigned n, unsigned *at)
{
	uint64_t bits;

	while (*at < n) {
		/* relaxed: a hint */
		bits = atomic_load_explicit(&nic->awake[*at / 64],
					    memory_order_relaxed) >>
		       *at % 64;
		if (bits) {
			*at += (unsigned)__builtin_ctzll(bits) + 1;
			return lb_links_at(nic, *at - 1);
		}
		*at += 64 - *at % 64;
	}
	return NULL;
}

#endif /* LB_WIRE_LINKS_H */
