/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * native.c -- native flushes and atomic writes, by verbs that rdma-core 56 has
 * and 44 has not. Arguments: as for delivery.c.
 */

#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(RPMA_HAVE_NATIVE_ATOMIC_WRITE) || !defined(RPMA_HAVE_NATIVE_FLUSH)

int main(void)
{
	puts("skipped: the rdma-core that this is built with knows neither "
	     "ibv_wr_flush() nor ibv_wr_atomic_write(); 56 does");
	return 77;
}

#else

#define AT 1024u

static int judge_range(const uint8_t *file)
{
	return bytes_judge(file, AT, RANGE, 0, 1);
}

static int judge_word(const uint8_t *file)
{
	return bytes_judge(file, AT, 8, 0, 1);
}

static void expect(void (*run)(struct world *w), int outcomes)
{
	/* the region persists because of its rights */
	const struct scenario s = {.run = run,
				   .judge = judge_range,
				   .is_near = true,
				   .is_native = true,
				   .is_unnamed = true};

	world_expect(&s, outcomes);
}

static void start(struct world *w)
{
	ibv_wr_start(w->ex);
	w->ex->wr_id = 1;
	w->ex->wr_flags = IBV_SEND_SIGNALED;
}

static void flush(struct world *w, uint32_t at, uint32_t len, uint8_t type,
		  uint8_t level)
{
	start(w);
	ibv_wr_flush(w->ex, w->link[0].rkey, w->link[0].addr + at, len, type,
		     level);
	assert_int_equal(ibv_wr_complete(w->ex), 0);
	end_expect(w->link[0].end, 1, IBV_WC_SUCCESS);
}

static void write_flush(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	flush(w, AT, RANGE, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

TEST(flush__makes_its_range_persistent)
{
	expect(write_flush, THERE);
}

static void write_flush_region(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	flush(w, 0, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
}

TEST(flush__makes_the_region_persistent)
{
	expect(write_flush_region, THERE);
}

static void write_flush_beside(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	flush(w, AT + RANGE, RANGE, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

TEST(flush__of_another_range_does_not_help)
{
	expect(write_flush_beside, ANY);
}

static void write_make_visible(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	flush(w, AT, RANGE, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

TEST(flush__for_visibility_does_not_help)
{
	expect(write_make_visible, ANY);
}

static void atomic_write(struct world *w)
{
	uint8_t bytes[FILE_SIZE];

	bytes_fill(bytes, AT, 8, 1);
	start(w);
	ibv_wr_atomic_write(w->ex, w->link[0].rkey, w->link[0].addr + AT,
			    bytes + AT);
	assert_int_equal(ibv_wr_complete(w->ex), 0);
	end_expect(w->link[0].end, 1, IBV_WC_SUCCESS);
}

TEST(atomic_write__may_be_lost_and_is_never_torn)
{
	const struct scenario s = {.run = atomic_write,
				   .judge = judge_word,
				   .is_near = true,
				   .is_native = true,
				   .is_unnamed = true};

	world_expect(&s, LOST | THERE);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		world_seeds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return tests_run(NULL, NULL);
}

#endif
