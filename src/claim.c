/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Claims: one word that is either held or counts users. See claim.h. */

#include "claim.h"

#include <stddef.h>

#include "librpma.h"
#include "log.h"

bool rpma__claim_is_held_by(const struct rpma__claim *claim, const void *owner)
{
	if (!rpma__claim_is_held(claim))
		return owner == NULL;
	/* relaxed: an owner reads its own store; for any other caller the words
	 * differ, whichever value is read */
	return owner != NULL &&
	       atomic_load_explicit(&claim->owner, memory_order_relaxed) ==
		       owner;
}

static int claim_refuse(void)
{
	return RPMA_REFUSE(RPMA_E_CLAIMED, "another owner has claimed the "
					   "object: release the claim first");
}

int rpma__claim_check(const struct rpma__claim *claim, const void *owner)
{
	if (rpma__claim_is_held_by(claim, owner))
		return 0;
	if (rpma__claim_is_held(claim))
		return claim_refuse();
	return RPMA_REFUSE(
		RPMA_E_INVAL,
		"owner has no claim on the object: take the claim first");
}

int rpma__claim_take(struct rpma__claim *claim, const void *owner)
{
	unsigned state = 0;

	if (owner == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", owner);
	if (rpma__claim_is_held_by(claim, owner))
		return 0;

	/* acquire [CLAIM]; relaxed on failure: nothing is read then */
	if (!atomic_compare_exchange_strong_explicit(
		    &claim->state, &state, RPMA__CLAIM_HELD,
		    memory_order_acquire, memory_order_relaxed))
		return state == RPMA__CLAIM_HELD ? claim_refuse()
						 : RPMA_E_AGAIN;
	/* relaxed: only this owner needs to find its own name there */
	atomic_store_explicit(&claim->owner, owner, memory_order_relaxed);
	return 0;
}

int rpma__claim_drop(struct rpma__claim *claim, const void *owner)
{
	int ret;

	if (owner == NULL)
		return RPMA_REFUSE(RPMA_E_INVAL, "owner is NULL");
	ret = rpma__claim_check(claim, owner);
	if (ret)
		return ret;
	/* relaxed: the claim belongs to this owner until the store below */
	atomic_store_explicit(&claim->owner, NULL, memory_order_relaxed);
	/* release [CLAIM] */
	atomic_store_explicit(&claim->state, 0, memory_order_release);
	return 0;
}

bool rpma__claim_enter(struct rpma__claim *claim)
{
	/* relaxed: only a first guess for the exchange */
	unsigned users =
		atomic_load_explicit(&claim->state, memory_order_relaxed);

	do {
		if (users == RPMA__CLAIM_HELD)
			return false;
		/* acquire [CLAIM]; relaxed on failure: a better guess */
	} while (!atomic_compare_exchange_weak_explicit(
		&claim->state, &users, users + 1, memory_order_acquire,
		memory_order_relaxed));
	return true;
}

void rpma__claim_leave(struct rpma__claim *claim)
{
	/* release [CLAIM] */
	(void)atomic_fetch_sub_explicit(&claim->state, 1, memory_order_release);
}
