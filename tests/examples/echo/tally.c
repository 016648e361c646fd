/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The echo example's tally: whether the judge sees every fault.
 */

#include "../../cases.h"
#include "tally.h"

#define SLOTS 130 /* not a multiple of a word of bits */

static int setup(void **state)
{
	static struct tally tally;

	assert_true(tally_init(&tally, SLOTS));
	*state = &tally;
	return 0;
}

static int teardown(void **state)
{
	tally_fini(*state);
	return 0;
}

#define ON_TALLY(name) TEST_OF(struct tally *tally, name, setup, teardown)

ON_TALLY(ticket_pack__extremes_COME_BACK)
{
	const struct ticket tickets[] = {
		{0, 0, 0, 0, 0},
		{1, TICKET_WORKERS - 1, TICKET_LINKS - 1, TICKET_TURNS - 1,
		 TICKET_SLOTS - 1},
		{1, 0, 0, 0, 0},
		{0, 1, 2, 3, 4},
		{0, TICKET_WORKERS - 1, 0, TICKET_TURNS - 1, 0},
	};

	for (size_t i = 0; i < sizeof(tickets) / sizeof(tickets[0]); i++) {
		uint64_t context = ticket_pack(&tickets[i]);
		struct ticket back = ticket_unpack(context);

		/* what a runtime takes as a context */
		assert_int_equal(context >> 48, 0);
		assert_memory_equal(&back, &tickets[i], sizeof(back));
	}
}

ON_TALLY(tally_deliver__posted_ONCE)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		tally_post(tally, slot);
	assert_int_equal(tally->out, SLOTS);
	for (uint32_t slot = SLOTS; slot-- > 0;) {
		assert_true(tally_is_out(tally, slot));
		assert_true(tally_deliver(tally, slot, 0));
		assert_false(tally_is_out(tally, slot));
		assert_false(tally_deliver(tally, slot, 0));
		assert_int_equal(tally->out, slot);
	}
}

ON_TALLY(tally_deliver__never_posted_FALSE)
{
	assert_false(tally_deliver(tally, 0, 0));
	assert_false(tally_deliver(tally, SLOTS, 0));
	assert_int_equal(tally->out, 0);
}

ON_TALLY(tally_deliver__turn_gone_by_FALSE)
{
	tally_post(tally, 7);
	assert_true(tally_deliver(tally, 7, 0));
	tally_post(tally, 7);
	/* the first completion again, while the second is outstanding */
	assert_false(tally_deliver(tally, 7, 0));
	assert_int_equal(tally->out, 1);
	assert_true(tally_deliver(tally, 7, 1));
}

ON_TALLY(tally_deliver__one_lost_one_doubled_BOTH_SHOW)
{
	tally_post(tally, 1);
	tally_post(tally, 2);
	assert_true(tally_deliver(tally, 1, 0));
	assert_false(tally_deliver(tally, 1, 0));
	/* two posted and two came, and still one is missing */
	assert_int_equal(tally->out, 1);
}

ON_TALLY(tally_turn__wraps)
{
	for (unsigned i = 0; i < TICKET_TURNS; i++) {
		assert_int_equal(tally_turn(tally, 3), i);
		tally_post(tally, 3);
		assert_true(tally_deliver(tally, 3, i));
	}
	assert_int_equal(tally_turn(tally, 3), 0);
}

TEST_MAIN()
