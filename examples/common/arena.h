/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * arena.h: registered memory in pieces of powers of two, by the buddy method:
 * registering once instead of once for each piece. Meant to be copied: needs
 * arena.c and nothing else. Thread: any, by a lock; a single thread, without
 * the lock, if the program sets has_one_thread.
 */

#ifndef EXAMPLES_ARENA_H
#define EXAMPLES_ARENA_H

#include <pthread.h>

#include <rpma_rt.h>

#define ARENA_LEAST 6 /* pieces of 2^6 bytes and more */
#define ARENA_MOST  26
#define ARENA_FULL  UINT64_MAX

struct arena {
	struct rpma_mr_local *mr;
	char *memory;
	size_t size;	  /* a multiple of the largest piece */
	uint8_t *size_of; /* of each smallest piece: 0, or the power of the
			   * piece that begins there, FREE in addition */
	uint64_t free[ARENA_MOST + 1]; /* lists; next and previous lie in the
					* pieces */
	size_t used;
	bool has_one_thread;
	pthread_mutex_t lock;
};

/* Makes an arena of at least so many bytes. Returns 0 or an error. */
int arena_open(struct arena *arena, struct rpma_peer *peer, size_t size,
	       int usage);
int arena_close(struct arena *arena);
/* Returns the offset of a piece of len bytes, or ARENA_FULL. */
uint64_t arena_take(struct arena *arena, size_t len);
void arena_give(struct arena *arena, uint64_t offset);

#endif /* EXAMPLES_ARENA_H */
