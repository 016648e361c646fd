/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A claim: one owner has a thing to itself, or any number of users are inside
 * it, never both. Embedded in a CQ (its waiters enter) and in a connection
 * (nobody enters; posts only look). All-zero is free. Any thread.
 *
 * Ordering [CLAIM]: whoever gets in (take, enter) acquires state; whoever gets
 * out (drop, leave) releases it. So an owner sees all that the users before it
 * did, and users all that the owner before them did.
 */

#ifndef RPMA_CLAIM_H
#define RPMA_CLAIM_H 1

#include <stdatomic.h>
#include <stdbool.h>

#define RPMA__CLAIM_HELD (1U << 31)

struct rpma__claim {
	atomic_uint state; /* RPMA__CLAIM_HELD, or the number of users inside */
	_Atomic(const void *) owner; /* valid while held */
};

static inline bool rpma__claim_is_held(const struct rpma__claim *claim)
{
	/* acquire [CLAIM]: free again means that its owner has finished */
	unsigned state =
		atomic_load_explicit(&claim->state, memory_order_acquire);

	return __builtin_expect(state == RPMA__CLAIM_HELD, false);
}

/* owner NULL: true if the claim is free */
bool rpma__claim_is_held_by(const struct rpma__claim *claim, const void *owner);

/* E_CLAIMED: held by another. E_INVAL: free, and there is an owner. */
int rpma__claim_check(const struct rpma__claim *claim, const void *owner);

/* E_INVAL: owner NULL. E_AGAIN: users inside. E_CLAIMED: held by another. */
int rpma__claim_take(struct rpma__claim *claim, const void *owner);
/* E_INVAL: owner NULL, or the claim is free. E_CLAIMED: held by another. */
int rpma__claim_drop(struct rpma__claim *claim, const void *owner);

/* false: the claim is held. Each enter that succeeds needs one leave. */
bool rpma__claim_enter(struct rpma__claim *claim);
void rpma__claim_leave(struct rpma__claim *claim);

#endif /* RPMA_CLAIM_H */
