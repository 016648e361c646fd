/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The numbers of a poller's connections, and the memory of the table that they
 * index: both are small again after many connections have closed. */

#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt_fake.h"

#define CROWD	   20000
#define ALL	   (RT_MAX_SLOTS - 1) /* 0 is no slot */
#define TABLE_SIZE (RT_MAX_SLOTS * sizeof(struct rpma_rt_conn *))

static uint32_t taken[RT_MAX_SLOTS];

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* How many slots lie on one page of the table. */
static uint32_t page_slots(void)
{
	return (uint32_t)(page_size() / sizeof(struct rpma_rt_conn *));
}

static struct rpma_rt_conn **table(const struct fake *f)
{
	return rt_slots_of(f->poller)->conns;
}

/* How many pages of the table are in memory. */
static int resident(const struct fake *f)
{
	uintptr_t begin = (uintptr_t)table(f) & ~(page_size() - 1);
	size_t length = (uintptr_t)table(f) + TABLE_SIZE - begin;
	unsigned char pages[RT_SLOT_PAGES + 2] = {0};
	int count = 0;
	size_t i;

	ok(mincore((void *)begin, length, pages));
	for (i = 0; i < sizeof(pages); i++)
		count += pages[i] & 1;
	return count;
}

/* As a connection does from its creation to its binding. */
static void come(const struct fake *f, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		ok(rt_slots_take(f->poller, &taken[i]));
		/* never looked into: any address will do */
		rt_slots_set_poller(f->poller, taken[i],
				    (struct rpma_rt_conn *)&taken[i]);
	}
}

static void leave(const struct fake *f, uint32_t index)
{
	rt_slots_set_poller(f->poller, taken[index], NULL);
	rt_slots_return(f->poller, taken[index]);
}

static void leave_all(const struct fake *f, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		leave(f, i);
}

/* ---------------------------------------------------------------- numbers */

FAKE_TEST(take__each_number_once_then_NOMEM)
{
	static bool seen[RT_MAX_SLOTS];
	uint32_t slot = 0;
	uint32_t i;

	for (i = 0; i < ALL; i++) {
		ok(rt_slots_take(f->poller, &slot));
		assert_in_range(slot, 1, ALL);
		assert_false(seen[slot]);
		seen[slot] = true;
	}
	assert_int_equal(rt_slots_take(f->poller, &slot), RPMA_E_NOMEM);
	/* one comes back: that one is taken, and no other */
	rt_slots_return(f->poller, 40000);
	ok(rt_slots_take(f->poller, &slot));
	assert_int_equal(slot, 40000);
	assert_int_equal(rt_slots_take(f->poller, &slot), RPMA_E_NOMEM);
}

FAKE_TEST(take__the_lowest_that_is_free)
{
	static const uint32_t freed[] = {700, 3, 64, 63, 699};
	static const uint32_t expected[] = {3, 63, 64, 699, 700, 1001};
	uint32_t slot;
	size_t i;

	come(f, 1000);
	for (i = 0; i < sizeof(freed) / sizeof(freed[0]); i++)
		rt_slots_return(f->poller, freed[i]);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		ok(rt_slots_take(f->poller, &slot));
		assert_int_equal(slot, expected[i]);
	}
}

/* ------------------------------------------------------------- the table */

FAKE_TEST(crowd__left_numbers_low_pages_given_back)
{
	uint32_t slot;

	come(f, CROWD);
	assert_true(resident(f) > 1);
	leave_all(f, CROWD);
	assert_true(resident(f) <= 1);
	ok(rt_slots_take(f->poller, &slot));
	assert_int_equal(slot, 1);
	fake_forget_trace();
}

/* Pages go singly, each when its last connection does; what is on the others
 * stays. */
FAKE_TEST(crowd__some_stay_their_pages_too)
{
	uint32_t kept = CROWD - page_slots() - 1; /* of a page in the middle */
	uint32_t i;

	come(f, CROWD);
	for (i = 0; i < CROWD; i++) {
		if (i != kept)
			leave(f, i);
	}
	assert_true(resident(f) <= 2);
	assert_ptr_equal(table(f)[taken[kept]], &taken[kept]);
	for (i = 1; i < ALL; i++) {
		if (i != taken[kept])
			assert_null(table(f)[i]);
	}
	leave(f, kept);
	fake_forget_trace();
}

/* A page that went back serves again. */
FAKE_TEST(crowd__comes_again)
{
	uint32_t i;
	int times;

	for (times = 0; times < 3; times++) {
		come(f, CROWD);
		for (i = 0; i < CROWD; i++)
			assert_ptr_equal(table(f)[taken[i]], &taken[i]);
		leave_all(f, CROWD);
		assert_true(resident(f) <= 1);
	}
	fake_forget_trace();
}

/* The count is of connections, not of calls. */
FAKE_TEST(set__twice_the_same_counted_once)
{
	struct rpma_rt_conn *conn = (struct rpma_rt_conn *)taken;
	uint32_t slot = page_slots(); /* the first of the second page */

	rt_slots_set_poller(f->poller, slot, conn);
	rt_slots_set_poller(f->poller, slot + 1, conn);
	rt_slots_set_poller(f->poller, slot, conn);
	rt_slots_set_poller(f->poller, slot, NULL);
	rt_slots_set_poller(f->poller, slot, NULL);
	assert_ptr_equal(table(f)[slot + 1], conn);
	assert_string_equal(fake_trace(), "");
	rt_slots_set_poller(f->poller, slot + 1, NULL);
	assert_string_equal(fake_trace(), "madvise");
	assert_null(table(f)[slot + 1]);
	fake_forget_trace();
}

FAKE_TEST(few__no_system_call)
{
	int times;

	for (times = 0; times < 3; times++) {
		come(f, page_slots() - 1);
		leave_all(f, page_slots() - 1);
	}
	assert_string_equal(fake_trace(), "");
}

/* The system keeps the page: it is empty all the same. */
FAKE_TEST(madvise__refused_nothing_is_seen)
{
	come(f, 2 * page_slots());
	fake_fail("madvise", 1, ENOMEM);
	leave_all(f, 2 * page_slots());
	assert_true(fake_failed());
	assert_null(table(f)[page_slots()]);
	come(f, 2 * page_slots());
	assert_ptr_equal(table(f)[taken[page_slots()]], &taken[page_slots()]);
	leave_all(f, 2 * page_slots());
	fake_forget_trace();
}

TEST_MAIN()
