/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A claim: either one owner has an object to itself, or any number of users are
 * inside the object, never both. A claim is embedded in a CQ (waiters enter the
 * claim) and in a connection (no thread enters; posts only test the claim). An
 * all-zero claim is free. Any thread may call.
 *
 * Ordering [CLAIM]: a thread that gets in (take, enter) acquires state; a
 * thread that gets out (drop, leave) releases state. So an owner sees
 * everything that the users before the owner did, and users see everything that
 * the owner before the users did.
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
	/* acquire [CLAIM]: if the claim is free again, the owner has
	 * finished */
	unsigned state =
		atomic_load_explicit(&claim->state, memory_order_acquire);

	return __builtin_expect(state == RPMA__CLAIM_HELD, false);
}

/* Returns true if owner holds the claim; owner NULL: if the claim is free. */
bool rpma__claim_is_held_by(const struct rpma__claim *claim, const void *owner);

/*
 * Returns E_CLAIMED if another owner holds the claim, E_INVAL if the claim is
 * free and owner is not NULL.
 */
int rpma__claim_check(const struct rpma__claim *claim, const void *owner);

/*
 * Takes the claim. Returns E_INVAL if owner is NULL, E_AGAIN if users are
 * inside, E_CLAIMED if another owner holds the claim.
 */
int rpma__claim_take(struct rpma__claim *claim, const void *owner);
/*
 * Drops the claim. Returns E_INVAL if owner is NULL or the claim is free,
 * E_CLAIMED if another owner holds the claim.
 */
int rpma__claim_drop(struct rpma__claim *claim, const void *owner);

/*
 * Enters the claim; returns false if the claim is held. Each successful enter
 * needs one leave.
 */
bool rpma__claim_enter(struct rpma__claim *claim);
void rpma__claim_leave(struct rpma__claim *claim);

#endif /* RPMA_CLAIM_H */
