/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of claims: held, or entered, or free. */

#include "mocks.h"

#include "claim.h"

static int me, other;

static void take__free_HELD(void **state)
{
	struct rpma__claim claim = {0};

	(void)state;
	assert_false(rpma__claim_is_held(&claim));
	assert_true(rpma__claim_is_held_by(&claim, NULL));
	assert_false(rpma__claim_is_held_by(&claim, &me));
	ok(rpma__claim_take(&claim, &me));
	assert_true(rpma__claim_is_held(&claim));
	assert_true(rpma__claim_is_held_by(&claim, &me));
	assert_false(rpma__claim_is_held_by(&claim, &other));
	assert_false(rpma__claim_is_held_by(&claim, NULL));
}

static void take__held_CLAIMED_UNLESS_OWN(void **state)
{
	struct rpma__claim claim = {0};

	(void)state;
	ok(rpma__claim_take(&claim, &me));
	ok(rpma__claim_take(&claim, &me));
	assert_int_equal(rpma__claim_take(&claim, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma__claim_take(&claim, NULL), RPMA_E_INVAL);
}

static void drop__not_the_owner_CLAIMED(void **state)
{
	struct rpma__claim claim = {0};

	(void)state;
	assert_int_equal(rpma__claim_drop(&claim, &me), RPMA_E_INVAL);
	ok(rpma__claim_take(&claim, &me));
	assert_int_equal(rpma__claim_drop(&claim, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma__claim_drop(&claim, NULL), RPMA_E_INVAL);
	ok(rpma__claim_drop(&claim, &me));
	assert_int_equal(rpma__claim_drop(&claim, &me), RPMA_E_INVAL);
	ok(rpma__claim_take(&claim, &other));
}

/* Free: callers that name no owner may; held: the owner only. */
static void check__OWNER_ONLY(void **state)
{
	struct rpma__claim claim = {0};

	(void)state;
	ok(rpma__claim_check(&claim, NULL));
	assert_int_equal(rpma__claim_check(&claim, &me), RPMA_E_INVAL);
	ok(rpma__claim_take(&claim, &me));
	ok(rpma__claim_check(&claim, &me));
	assert_int_equal(rpma__claim_check(&claim, &other), RPMA_E_CLAIMED);
	assert_int_equal(rpma__claim_check(&claim, NULL), RPMA_E_CLAIMED);
}

static void enter__users_KEEP_OWNERS_OUT(void **state)
{
	struct rpma__claim claim = {0};

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		mock_test(take__free_HELD),
		mock_test(take__held_CLAIMED_UNLESS_OWN),
		mock_test(drop__not_the_owner_CLAIMED),
		mock_test(check__OWNER_ONLY),
		mock_test(enter__users_KEEP_OWNERS_OUT),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
