/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The arena without a device: pieces do not overlap, and join again. */

#include <stdlib.h>
#include <string.h>

#include "../../cases.h"
#include "arena.h"

#define LARGEST	  ((size_t)1 << ARENA_MOST)
#define PIECES	  300
#define ROUNDS	  20000
#define SIZES_MAX 3000000

static struct arena arena;
static int registered;

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr)
{
	(void)peer;
	(void)ptr;
	(void)size;
	(void)usage;
	registered++;
	*mr_ptr = (struct rpma_mr_local *)&registered;
	return 0;
}

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr)
{
	registered--;
	*mr_ptr = NULL;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return arena_open(&arena, NULL, LARGEST + 1, 0);
}

static int teardown(void **state)
{
	(void)state;
	return arena_close(&arena) || registered != 0;
}

TEST_WITH(take__all_FULL, setup, teardown)
{
	uint64_t first, second;

	first = arena_take(&arena, LARGEST);
	second = arena_take(&arena, LARGEST - 1);
	assert_int_not_equal(first, ARENA_FULL);
	assert_int_not_equal(second, ARENA_FULL);
	assert_int_not_equal(first, second);
	assert_true(arena_take(&arena, 1) == ARENA_FULL);
	assert_true(arena_take(&arena, LARGEST + 1) == ARENA_FULL);
	arena_give(&arena, first);
	assert_int_equal(arena_take(&arena, LARGEST), first);
}

TEST_WITH(give__all_pieces_JOIN, setup, teardown)
{
	uint64_t pieces[PIECES];
	int i;

	for (i = 0; i < PIECES; i++)
		pieces[i] = arena_take(&arena, (size_t)i * 700);
	for (i = 0; i < PIECES; i++)
		arena_give(&arena, pieces[(i * 7) % PIECES]);
	assert_int_equal(arena.used, 0);
	assert_true(arena_take(&arena, LARGEST) != ARENA_FULL);
	assert_true(arena_take(&arena, LARGEST) != ARENA_FULL);
}

/* Pieces of random sizes, first and last byte of each marked. */
TEST_WITH(take__random_sizes_DO_NOT_OVERLAP, setup, teardown)
{
	uint64_t pieces[PIECES];
	size_t sizes[PIECES];
	unsigned random = 1;
	int i, n;

	for (i = 0; i < PIECES; i++)
		pieces[i] = ARENA_FULL;
	for (n = 0; n < ROUNDS; n++) {
		random = random * 1103515245 + 12345;
		i = (int)(random >> 8) % PIECES;
		if (pieces[i] != ARENA_FULL) {
			assert_int_equal(arena.memory[pieces[i]], (char)i);
			assert_int_equal(arena.memory[pieces[i] + sizes[i] - 1],
					 (char)i);
			arena_give(&arena, pieces[i]);
			pieces[i] = ARENA_FULL;
			continue;
		}
		sizes[i] = 1 + (random >> 4) % (SIZES_MAX >> random % 16);
		pieces[i] = arena_take(&arena, sizes[i]);
		if (pieces[i] == ARENA_FULL)
			continue;
		assert_true(pieces[i] + sizes[i] <= arena.size);
		arena.memory[pieces[i]] = (char)i;
		arena.memory[pieces[i] + sizes[i] - 1] = (char)i;
	}
}

TEST_MAIN()
