/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* arena.c: see arena.h. */

#include "arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#define FREE	  0x80 /* in size_of */
#define NO_PIECE  UINT64_MAX
#define LARGEST	  ((size_t)1 << ARENA_MOST)
#define CELLS(of) ((of) >> ARENA_LEAST)

struct piece {
	uint64_t next, previous;
};

static struct piece *piece_at(const struct arena *arena, uint64_t offset)
{
	return (struct piece *)(void *)(arena->memory + offset);
}

static void put_in(struct arena *arena, uint64_t offset, int power)
{
	struct piece *piece = piece_at(arena, offset);

	*piece = (struct piece){arena->free[power], NO_PIECE};
	if (piece->next != NO_PIECE)
		piece_at(arena, piece->next)->previous = offset;
	arena->free[power] = offset;
	arena->size_of[CELLS(offset)] = (uint8_t)(power | FREE);
}

static void take_out(struct arena *arena, uint64_t offset, int power)
{
	const struct piece *piece = piece_at(arena, offset);

	if (piece->next != NO_PIECE)
		piece_at(arena, piece->next)->previous = piece->previous;
	if (piece->previous != NO_PIECE)
		piece_at(arena, piece->previous)->next = piece->next;
	else
		arena->free[power] = piece->next;
	arena->size_of[CELLS(offset)] = 0;
}

int arena_open(struct arena *arena, struct rpma_peer *peer, size_t size,
	       int usage)
{
	uint64_t offset;
	int power, ret = RPMA_E_NOMEM;

	size = (size + LARGEST - 1) / LARGEST * LARGEST;
	*arena = (struct arena){.size = size};
	pthread_mutex_init(&arena->lock, NULL);
	arena->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena->size_of = calloc(CELLS(size), 1);
	if (arena->memory != MAP_FAILED && arena->size_of != NULL)
		ret = rpma_mr_reg(peer, arena->memory, size, usage, &arena->mr);
	if (ret) {
		arena_close(arena);
		return ret;
	}
	for (power = 0; power <= ARENA_MOST; power++)
		arena->free[power] = NO_PIECE;
	for (offset = size; offset > 0; offset -= LARGEST)
		put_in(arena, offset - LARGEST, ARENA_MOST);
	return 0;
}

int arena_close(struct arena *arena)
{
	int ret;

	if (arena->size == 0)
		return 0;
	ret = rpma_mr_dereg(&arena->mr);
	if (arena->memory != MAP_FAILED)
		munmap(arena->memory, arena->size);
	free(arena->size_of);
	pthread_mutex_destroy(&arena->lock);
	arena->size = 0;
	return ret;
}

/* Takes a piece, by halving larger pieces. */
static uint64_t take(struct arena *arena, int power)
{
	uint64_t offset;
	int from = power;

	while (from <= ARENA_MOST && arena->free[from] == NO_PIECE)
		from++;
	if (from > ARENA_MOST)
		return ARENA_FULL;
	offset = arena->free[from];
	take_out(arena, offset, from);
	for (; from > power; from--)
		put_in(arena, offset + ((uint64_t)1 << (from - 1)), from - 1);
	arena->size_of[CELLS(offset)] = (uint8_t)power;
	arena->used += (size_t)1 << power;
	return offset;
}

static void lock(struct arena *arena)
{
	if (!arena->has_one_thread)
		pthread_mutex_lock(&arena->lock);
}

static void unlock(struct arena *arena)
{
	if (!arena->has_one_thread)
		pthread_mutex_unlock(&arena->lock);
}

uint64_t arena_take(struct arena *arena, size_t len)
{
	uint64_t offset;
	int power = ARENA_LEAST;

	if (len > LARGEST)
		return ARENA_FULL;
	while (((size_t)1 << power) < len)
		power++;
	lock(arena);
	offset = take(arena, power);
	unlock(arena);
	return offset;
}

void arena_give(struct arena *arena, uint64_t offset)
{
	int power;

	lock(arena);
	power = arena->size_of[CELLS(offset)];
	arena->size_of[CELLS(offset)] = 0;
	arena->used -= (size_t)1 << power;
	for (; power < ARENA_MOST; power++) {
		uint64_t buddy = offset ^ (uint64_t)1 << power;

		if (arena->size_of[CELLS(buddy)] != (power | FREE))
			break;
		take_out(arena, buddy, power);
		offset &= ~((uint64_t)1 << power);
	}
	put_in(arena, offset, power);
	unlock(arena);
}
