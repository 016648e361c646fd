/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of claims: held, or entered, or free. */

#include "mocks.h"

#include "claim.h"

static int me, other;

MOCK_TEST(take__free_HELD)
{
	struct rpma__claim claim = {0};

	assert_false(rpma__claim_is_held(&claim));
	assert_true(rpma__claim_is_held_by(&claim, NULL));
	assert_false(rpma__claim_is_held_by(&claim, &me));
	ok(rpma__claim_take(&claim, &me));
	assert_true(rpma__claim_is_held(&claim));
	assert_true(rpma__claim_is_held_by(&claim, &me));
	assert_false(rpma__claim_is_held_by(&claim, &other));
	assert_false(rpma__claim_is_held_by(&claim, NULL));
}

MOCK_TEST(take__held_CLAIMED_UNLESS_OWN)
{
	struct rpma__claim claim = {0};

	ok(rpma__claim_take(&claim, &me));
	ok(rpma__claim_take(&claim, &me));
	assert_int_equal(rpma__claim_take(&claim, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma__claim_take(&claim, NULL), RPMA_E_INVAL);
}

MOCK_TEST(drop__not_the_owner_CLAIMED)
{
	struct rpma__claim claim = {0};

	assert_int_equal(rpma__claim_drop(&claim, &me), RPMA_E_INVAL);
	ok(rpma__claim_take(&claim, &me));
	assert_int_equal(rpma__claim_drop(&claim, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma__claim_drop(&claim, NULL), RPMA_E_INVAL);
	ok(rpma__claim_drop(&claim, &me));
	assert_int_equal(rpma__claim_drop(&claim, &me), RPMA_E_INVAL);
	ok(rpma__claim_take(&claim, &other));
}

/* Free: callers that name no owner may; held: the owner only. */
MOCK_TEST(check__OWNER_ONLY)
{
	struct rpma__claim claim = {0};

	ok(rpma__claim_check(&claim, NULL));
	assert_int_equal(rpma__claim_check(&claim, &me), RPMA_E_INVAL);
	ok(rpma__claim_take(&claim, &me));
	ok(rpma__claim_check(&claim, &me));
	assert_int_equal(rpma__claim_check(&claim, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma__claim_check(&claim, NULL), RPMA_E_CLAIMED);
}

MOCK_TEST(enter__users_KEEP_OWNERS_OUT)
{
	struct rpma__claim claim = {0};

	assert_true(rpma__claim_enter(&claim));
	assert_true(rpma__claim_enter(&claim));
	assert_int_equal(rpma__claim_take(&claim, &me), RPMA_E_AGAIN);
	rpma__claim_leave(&claim);
	assert_int_equal(rpma__claim_take(&claim, &me), RPMA_E_AGAIN);
	rpma__claim_leave(&claim);
	ok(rpma__claim_take(&claim, &me));
	assert_false(rpma__claim_enter(&claim));
	ok(rpma__claim_drop(&claim, &me));
	assert_true(rpma__claim_enter(&claim));
}

TEST_MAIN()
