/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The ledger alone: credits, forced signals, WRs still owed a completion. */

#include <stdlib.h>
#include <string.h>

#include "rt_fake.h"
#include "conn/ledger.h"
#include "poller/route.h"

#define DEPTH 6 /* no power of two */

static struct rt_ledger ledger;

/* A ledger whose memory has any contents before. */
static void make(struct rt_ledger *made, uint32_t depth)
{
	size_t bytes = rt_ledger_bytes(depth);
	void *memory = malloc(bytes);

	assert_non_null(memory);
	memset(memory, 0xff, bytes);
	rt_ledger_init(made, depth, memory);
}

static int setup(void **state)
{
	(void)state;
	make(&ledger, DEPTH);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(ledger.entries);
	assert_int_equal(fake_memory(), 0);
	return 0;
}

static void append_one(struct rt_ledger *to, uint64_t wr_id, uint8_t opcode,
		       bool signaled)
{
	struct rt_ledger_pen pen = rt_ledger_begin(to);

	rt_ledger_append(&pen, wr_id, opcode, signaled, 0);
	rt_ledger_end(&pen);
}

/* One letter a work request: S signaled, u unsignaled; e and o likewise, and
 * their wr_id says that only an error is wanted. wr_id counts from first. */
static void append(uint64_t first, const char *kinds)
{
	bool signaled, on_error;

	for (; *kinds; kinds++) {
		signaled = *kinds == 'S' || *kinds == 'e';
		on_error = *kinds == 'e' || *kinds == 'o';
		append_one(&ledger, first++ | (on_error ? RT_ON_ERROR_ONLY : 0),
			   IBV_WC_SEND, signaled);
	}
}

static void expect_unfinished(uint64_t wr_id)
{
	const struct rt_ledger_entry *entry =
		rt_ledger_take_unfinished(&ledger);

	assert_non_null(entry);
	assert_true(entry->wr_id == wr_id);
}

static void expect_nothing_unfinished(void)
{
	assert_null(rt_ledger_take_unfinished(&ledger));
	assert_int_equal(ledger.head, ledger.tail);
}

static void finish(uint64_t wr_id, bool success)
{
	const struct rt_ledger_entry *entry =
		rt_ledger_finish(&ledger, wr_id, success);

	assert_non_null(entry);
	assert_true(entry->wr_id == wr_id);
}

TEST_WITH(init__depth_0_has_no_room, setup, teardown)
{
	struct rt_ledger other;

	make(&other, 0);
	assert_int_equal(rt_ledger_room(&other), 0);
	assert_null(rt_ledger_take_unfinished(&other));
	free(other.entries);
}

TEST_WITH(room__never_beyond_depth, setup, teardown)
{
	append(0, "SSSSS");
	assert_int_equal(rt_ledger_room(&ledger), 1);
	append(5, "S");
	assert_int_equal(rt_ledger_room(&ledger), 0);
}

/* Asserts that a success retires count work requests. */
static void expect_group(uint32_t *retired, uint32_t count)
{
	assert_int_equal(rt_ledger_group(&ledger, *retired), count);
	*retired += count;
	rt_ledger_reap(&ledger, *retired);
}

TEST_WITH(reap__unsignaled_before_a_retired_one, setup, teardown)
{
	uint32_t retired = 0;

	append(0, "uuSuS");
	expect_group(&retired, 3);
	assert_int_equal(rt_ledger_room(&ledger), DEPTH - 2);
	rt_ledger_reap(&ledger, retired); /* nothing new */
	assert_int_equal(rt_ledger_room(&ledger), DEPTH - 2);
	expect_group(&retired, 2);
	assert_int_equal(rt_ledger_room(&ledger), DEPTH);
	append(5, "SuSS");
	expect_group(&retired, 1);
	expect_group(&retired, 2);
	expect_group(&retired, 1);
	assert_int_equal(ledger.head, ledger.tail);
}

TEST_WITH(reap__counts_wrap, setup, teardown)
{
	uint32_t retired = UINT32_MAX - 2;
	uint32_t i;

	ledger.head = ledger.tail = retired;
	for (i = 0; i < 8; i++) {
		append(i, "uS");
		expect_group(&retired, 2);
		assert_int_equal(rt_ledger_room(&ledger), DEPTH);
	}
	assert_int_equal(ledger.head, 13);
}

/* In every mixture, a full ledger holds a signaled work request. */
TEST_WITH(must_signal__full_ledger_has_one, setup, teardown)
{
	uint32_t depth;
	uint32_t signaled;
	uint32_t i;

	for (depth = 1; depth < 20; depth++) {
		struct rt_ledger other;

		make(&other, depth);
		for (signaled = 0, i = 0; i < depth; i++) {
			struct rt_ledger_pen pen = rt_ledger_begin(&other);
			bool must = rt_ledger_must_signal(&pen);

			signaled += must;
			append_one(&other, i, IBV_WC_SEND, must);
		}
		assert_in_range(signaled, 1, depth);
		free(other.entries);
	}
}

TEST_WITH(finish__in_order, setup, teardown)
{
	append(0, "SSS");
	finish(0, true);
	finish(1, false);
	finish(2, false);
	expect_nothing_unfinished();
}

TEST_WITH(finish__unknown_NULL, setup, teardown)
{
	assert_null(rt_ledger_finish(&ledger, 0, true));
	append(0, "S");
	assert_null(rt_ledger_finish(&ledger, 1, true));
	finish(0, true);
	assert_null(rt_ledger_finish(&ledger, 0, true)); /* twice */
	expect_nothing_unfinished();
}

/* Work requests with the same wr_id: each completion takes the oldest left. */
TEST_WITH(finish__same_wr_id_oldest_first, setup, teardown)
{
	const struct rt_ledger_entry *first;

	append_one(&ledger, 9, IBV_WC_SEND, true);
	append_one(&ledger, 9, IBV_WC_RDMA_READ, true);
	first = rt_ledger_finish(&ledger, 9, false);
	assert_int_equal(first->opcode, IBV_WC_SEND);
	assert_int_equal(rt_ledger_take_unfinished(&ledger)->opcode,
			 IBV_WC_RDMA_READ);
	expect_nothing_unfinished();
}

TEST_WITH(finish__success_infers_unsignaled_before, setup, teardown)
{
	append(0, "uuSu");
	finish(2, true);
	expect_unfinished(3);
	expect_nothing_unfinished();
}

/* The first error implies that earlier work requests are done; later nothing
 * can be inferred. */
TEST_WITH(finish__first_error_infers_later_do_not, setup, teardown)
{
	append(0, "uSuS");
	finish(1, false);
	assert_int_equal(ledger.head, 2);
	finish(3, false);
	expect_unfinished(2);
	expect_nothing_unfinished();
}

TEST_WITH(finish__failed_unsignaled_has_its_own, setup, teardown)
{
	append(0, "uuS");
	finish(0, false);
	finish(1, false);
	finish(2, false);
	expect_nothing_unfinished();
}

TEST_WITH(marker__finishes_what_wanted_errors_only, setup, teardown)
{
	append(0, "oSoe");
	rt_ledger_finish_marker(&ledger);
	expect_unfinished(1); /* owed, marker or not */
	expect_nothing_unfinished();
}

TEST_WITH(marker__after_error_the_same, setup, teardown)
{
	append(0, "SooS");
	finish(0, false);
	rt_ledger_finish_marker(&ledger);
	expect_unfinished(3);
	expect_nothing_unfinished();
}

/* two silent successes, a failure, a flush; equal ids */
TEST_WITH(marker__equal_wr_ids_two_completions, setup, teardown)
{
	int i;

	for (i = 0; i < 4; i++)
		append(7, "o");
	assert_non_null(rt_ledger_finish(&ledger, 7 | RT_ON_ERROR_ONLY, false));
	assert_non_null(rt_ledger_finish(&ledger, 7 | RT_ON_ERROR_ONLY, false));
	rt_ledger_finish_marker(&ledger);
	expect_nothing_unfinished();
}

/*
 * a success belongs to a signaled work request, whatever has the same id before
 */
TEST_WITH(finish__success_of_the_signaled_one, setup, teardown)
{
	const struct rt_ledger_entry *entry;

	append(7, "o");
	append(7, "o");
	append(7, "e");
	entry = rt_ledger_finish(&ledger, 7 | RT_ON_ERROR_ONLY, true);
	assert_non_null(entry);
	assert_true(entry->signaled);
	expect_nothing_unfinished();
}

TEST_WITH(take_unfinished__in_order_across_the_wrap, setup, teardown)
{
	append(0, "SSSSS");
	rt_ledger_reap(&ledger, 5);
	append(5, "SSSSSS");
	finish(7, false);
	expect_unfinished(5);
	expect_unfinished(6);
	expect_unfinished(8);
	expect_unfinished(9);
	expect_unfinished(10);
	expect_nothing_unfinished();
}

/*
 * Every link of up to four parts, with every choice of parts among all but the
 * last, with or without a first failure, then flushed or unknown: the last
 * completes once, with the first error; others complete for themselves.
 */
#define LINK 4

static void append_link(uint32_t count, uint32_t parts)
{
	uint8_t link;
	uint32_t i;

	for (i = 0; i < count; i++) {
		bool part = parts >> i & 1;

		append_one(&ledger, part ? RT_ON_ERROR_ONLY | count : i,
			   IBV_WC_SEND, !part);
		link = i + 1 < count ? RT_LINK_GOES_ON : 0;
		rt_ledger_link(&ledger, part ? link | RT_LINK_PART : link);
	}
}

/* How often each completes: by WCs up to known, synthesized behind. */
static void play(uint32_t count, uint32_t parts, uint32_t fails, uint32_t known,
		 uint32_t *seen)
{
	const struct rt_ledger_entry *entry;
	bool success;
	uint32_t i;

	for (i = 0; i < known; i++) {
		success = i < fails;
		if (success && (parts >> i & 1))
			continue; /* unsignaled: no completion of the device */
		entry = rt_ledger_finish(
			&ledger, parts >> i & 1 ? RT_ON_ERROR_ONLY | count : i,
			success);
		assert_non_null(entry);
		entry = rt_ledger_due(&ledger, entry, success);
		if (entry != NULL)
			seen[entry->wr_id & ~RT_ON_ERROR_ONLY]++;
	}
	while ((entry = rt_ledger_take_unfinished(&ledger)) != NULL)
		seen[entry->wr_id & ~RT_ON_ERROR_ONLY]++;
}

TEST_WITH(link__one_outcome_whatever_fails, setup, teardown)
{
	uint32_t count, parts, fails, known, i;

	for (count = 2; count <= LINK; count++)
		for (parts = 0; parts < 1u << (count - 1); parts++)
			for (fails = 0; fails <= count; fails++)
				for (known = 0; known <= count; known++) {
					uint32_t seen[LINK + 1] = {0};

					ledger.error_seen = false;
					append_link(count, parts);
					play(count, parts, fails, known, seen);
					for (i = 0; i < count; i++)
						assert_int_equal(
							seen[i],
							!(parts >> i & 1));
					assert_int_equal(seen[count], 0);
					expect_nothing_unfinished();
				}
}

/* The device refused the rest of a link: a failed part completes nothing; the
 * last completes once, at the end. */
TEST_WITH(link__cut_off_completes_at_the_end, setup, teardown)
{
	const struct rt_ledger_entry *entry;
	uint32_t taken;
	uint32_t i;

	for (taken = 0; taken < 3; taken++) {
		append_link(3, 3);
		rt_ledger_refuse(&ledger, 3 - taken);
		for (i = 0; i < taken; i++) {
			entry = rt_ledger_finish(&ledger, RT_ON_ERROR_ONLY | 3,
						 false);
			assert_non_null(entry);
			assert_null(rt_ledger_due(&ledger, entry, false));
		}
		assert_null(
			rt_ledger_finish(&ledger, RT_ON_ERROR_ONLY | 3, false));
		entry = rt_ledger_take_unfinished(&ledger);
		assert_non_null(entry);
		assert_false(entry->link & RT_LINK_PART);
		assert_int_equal(rt_ledger_is_not_posted(entry), taken == 0);
		expect_nothing_unfinished();
		free(ledger.entries);
		make(&ledger, DEPTH);
	}
}

/* Has no completion of the device, and completes at the end, silent or not. */
TEST_WITH(refuse__completes_at_the_end_alone, setup, teardown)
{
	const struct rt_ledger_entry *entry;
	int i;

	append(0, "Suo");
	append(0, "So");
	rt_ledger_refuse(&ledger, 2);
	finish(0, true);
	assert_null(rt_ledger_finish(&ledger, 0, true));
	assert_null(rt_ledger_finish(&ledger, 0, false));
	finish(1, false);
	rt_ledger_finish_marker(&ledger);
	assert_int_equal(rt_ledger_unfinished(&ledger), 2);
	for (i = 0; i < 2; i++) {
		entry = rt_ledger_take_unfinished(&ledger);
		assert_non_null(entry);
		assert_true(rt_ledger_is_not_posted(entry));
	}
	expect_nothing_unfinished();
}

/* The device has entries in front of the refused ones: unknown, not refused. */
TEST_WITH(refuse__those_in_front_are_posted, setup, teardown)
{
	const struct rt_ledger_entry *entry;

	append(0, "SS");
	rt_ledger_refuse(&ledger, 1);
	entry = rt_ledger_take_unfinished(&ledger);
	assert_non_null(entry);
	assert_false(rt_ledger_is_not_posted(entry));
	entry = rt_ledger_take_unfinished(&ledger);
	assert_non_null(entry);
	assert_true(rt_ledger_is_not_posted(entry));
	expect_nothing_unfinished();
}

TEST_MAIN()
