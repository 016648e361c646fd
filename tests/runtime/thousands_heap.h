/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * thousands_heap.h -- what librpma and librpma_rt have allocated, by what it is
 * for, and how often they have mapped memory. Linked with --wrap into a program
 * with its own copy of both libraries; what other libraries allocate, and the
 * device, does not count. Any thread.
 */

#ifndef THOUSANDS_HEAP_H
#define THOUSANDS_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* what a block is for: by the function of the runtime that asked for it */
enum heap_room {
	HEAP_OTHER,   /* of the runtime */
	HEAP_LIBRPMA, /* of librpma, for a connection */
	HEAP_LEDGER,  /* its rings: see conn/rings.h */
	HEAP_SPILL,   /* of a lane: what one that is full takes */
	HEAP_TABLE,   /* of a CQ's routes */
	HEAP_ROOMS
};

struct heap_count {
	/* of blocks that are not freed, as malloc() made them: what can be
	 * used and the word before it */
	int64_t bytes[HEAP_ROOMS];
	int64_t blocks[HEAP_ROOMS];
	int64_t maps; /* calls of mmap() so far */
};

struct heap_count heap_now(void);

#endif /* THOUSANDS_HEAP_H */
