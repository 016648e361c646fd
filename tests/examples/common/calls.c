/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The window of calls: ids, deadlines, a connection that ends. */

#include "../../cases.h"
#include "calls.h"

static struct calls calls;

static int setup(void **state)
{
	(void)state;
	calls = (struct calls){.open = 0};
	calls_init(&calls, 4);
	return 0;
}

TEST_WITH(open__full_window_NULL, setup, NULL)
{
	int users[4], i;

	for (i = 0; i < 4; i++)
		assert_non_null(calls_open(&calls, &users[i], CALLS_NONE));
	assert_null(calls_open(&calls, state, CALLS_NONE));
	calls_close(&calls, calls_any(&calls));
	assert_non_null(calls_open(&calls, state, CALLS_NONE));
}

TEST_WITH(find__open_call_FOUND, setup, NULL)
{
	const struct call *call = calls_open(&calls, state, CALLS_NONE);

	assert_ptr_equal(calls_find(&calls, call->id), call);
	assert_ptr_equal(call->user, state);
}

TEST_WITH(find__closed_call_NULL, setup, NULL)
{
	struct call *call = calls_open(&calls, state, CALLS_NONE);
	uint64_t id = call->id;

	calls_close(&calls, call);
	assert_null(calls_find(&calls, id));
	/* the place is used again, with another id */
	call = calls_open(&calls, state, CALLS_NONE);
	assert_null(calls_find(&calls, id));
	assert_ptr_equal(calls_find(&calls, call->id), call);
}

TEST_WITH(find__any_number_NULL, setup, NULL)
{
	uint64_t id;

	for (id = 0; id < 600; id++)
		assert_null(calls_find(&calls, id));
	assert_null(calls_find(&calls, UINT64_MAX));
}

TEST_WITH(find__id_of_former_window_NULL, setup, NULL)
{
	uint64_t id = calls_open(&calls, state, CALLS_NONE)->id;
	int i;

	calls_init(&calls, 4);
	assert_null(calls_find(&calls, id));
	for (i = 0; i < 4; i++)
		assert_int_not_equal(calls_open(&calls, state, CALLS_NONE)->id,
				     id);
}

TEST_WITH(expire__deadline_passed_ONCE, setup, NULL)
{
	struct call *early = calls_open(&calls, state, 10);
	struct call *late = calls_open(&calls, state, 20);

	assert_null(calls_expire(&calls, 9));
	assert_ptr_equal(calls_expire(&calls, 10), early);
	assert_true(early->is_expired);
	assert_null(calls_expire(&calls, 10));
	assert_int_equal(calls.earliest_ns, 20);
	assert_ptr_equal(calls_expire(&calls, 30), late);
	assert_null(calls_expire(&calls, 30));
	assert_int_equal(calls.earliest_ns, CALLS_NONE);
}

TEST_WITH(expire__keeps_the_place, setup, NULL)
{
	struct call *call = calls_open(&calls, state, 10);
	int i;

	assert_ptr_equal(calls_expire(&calls, 10), call);
	for (i = 0; i < 3; i++)
		assert_non_null(calls_open(&calls, state, CALLS_NONE));
	assert_null(calls_open(&calls, state, CALLS_NONE));
	assert_ptr_equal(calls_find(&calls, call->id), call);
}

TEST_WITH(any__all_calls_THEN_NULL, setup, NULL)
{
	struct call *call;
	int i;

	for (i = 0; i < 3; i++)
		calls_open(&calls, state, CALLS_NONE);
	for (i = 0; (call = calls_any(&calls)) != NULL; i++)
		calls_close(&calls, call);
	assert_int_equal(i, 3);
}

TEST_MAIN()
