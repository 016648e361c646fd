/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * line.h -- the slots of a turn: work requests that were published, or are
 * about to be published, copied so that only the memory regions of the caller
 * are still needed. A slot belongs to its poster until publication, then to the
 * holder. Made with the queue pair or the SRQ. doc/protocols/ledger.md.
 */

#ifndef RT_BASE_LINE_H
#define RT_BASE_LINE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rpma_rt.h"
#include "base/order.h"
#include "base/turn.h"

/* where the bytes of a send are */
enum rt_line_bytes {
	RT_LINE_NONE,	/* no bytes */
	RT_LINE_PIECE,	/* a single piece, named in the slot */
	RT_LINE_LIST,	/* several pieces, listed behind the slot */
	RT_LINE_DATA,	/* inline: in the slot's data */
	RT_LINE_BEHIND, /* inline: behind the slot */
};

struct rt_line_send {
	_Atomic uint16_t next; /* link of the free list or of the turn */
	uint8_t is_waited;     /* 1: the future that wr_id names waits */
	uint8_t bytes;	       /* enum rt_line_bytes */
	uint32_t length;
	uint64_t wr_id;
	uint64_t addr;
	uint64_t remote_addr;
	uint64_t data; /* or compare_add */
	uint64_t swap; /* or the immediate */
	uint32_t lkey;
	uint32_t rkey;
	uint8_t opcode;	   /* enum ibv_wr_opcode */
	uint8_t flags;	   /* of enum ibv_send_flags, but SIGNALED */
	uint8_t completes; /* enum ibv_wc_opcode */
	uint8_t link;	   /* bits of enum rt_ledger_link */
	uint8_t native;	   /* as in struct rpma_send_wr, these two */
	uint8_t native_arg;
	uint8_t pieces;
};
_Static_assert(sizeof(struct rt_line_send) == 64, "a cache line");

struct rt_line_recv {
	_Atomic uint16_t next; /* as in struct rt_line_send, these two */
	uint8_t is_waited;
	uint8_t pieces; /* a list of several pieces is behind the slot */
	uint32_t length;
	uint64_t wr_id; /* of an SRQ: the context */
	uint64_t addr;
	uint32_t lkey;
};
_Static_assert(sizeof(struct rt_line_recv) == 32, "half a cache line");

struct rt_line {
	uint32_t places; /* of the queue and the line together */
	uint16_t slots;
	alignas(RT_CACHE_LINE) char memory[]; /* memory of the turn's slots */
};

/* Returns the places of a queue of that depth and its line. waiting: from the
 * configuration, may be 0 or RPMA_RT_NO_WAITING. */
static inline uint32_t rt_line_places(uint32_t depth, uint32_t waiting)
{
	if (waiting == RPMA_RT_NO_WAITING)
		return depth;
	return depth + (waiting == 0 ? depth : waiting);
}

/* size of a line */
struct rt_line_size {
	uint32_t places;
	uint32_t stride; /* bytes of a slot and of the memory behind the slot */
};

/* Returns the bytes of a line, in whole cache lines. */
size_t rt_line_bytes(const struct rt_line_size *size);
/* Returns bytes rounded up to whole cache lines. */
size_t rt_line_round_up(size_t bytes);
/* Allocates zeroed memory that begins with a cache line. NULL: no memory. Pages
 * without a write stay unused. */
void *rt_line_alloc(size_t bytes);
/* Frees the memory of rt_line_alloc(), or nothing for NULL. */
void rt_line_release(void *memory);
/* Makes the turn and its line in rt_line_bytes() bytes of zeroed memory, which
 * begins with a cache line. The caller frees the memory when no thread uses the
 * turn. */
void rt_line_init(struct rt_turn *turn, const struct rt_line_size *size,
		  void *memory);
/* Makes the turn, with a line in memory of its own, for rt_line_free().
 * ERRORS: RPMA_E_NOMEM */
int rt_line_new(struct rt_turn *turn, const struct rt_line_size *size);
/* Frees the line that rt_line_new() made. No thread uses the turn any more. */
void rt_line_free(struct rt_turn *turn);

/* Returns the bytes behind the slot of a work request with at most max_sge
 * pieces and max_inline inline bytes. */
static inline uint32_t rt_line_behind(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t list = max_sge > 1 ? max_sge * 16 : 0;
	uint32_t bytes = max_inline > 8 ? (max_inline + 15) / 16 * 16 : 0;

	return list > bytes ? list : bytes;
}

static inline struct rt_line *rt_line_of(const struct rt_turn *turn)
{
	return (struct rt_line *)(void *)(turn->free.memory -
					  offsetof(struct rt_line, memory));
}

static inline void *rt_line_slot(const struct rt_turn *turn, uint16_t slot)
{
	return rt_freelist_slot(&turn->free, slot);
}

/*
 * Returns how many slots may be in use, unless work requests leave the queue
 * meanwhile. posted: number of work requests ever given to the device, as
 * stored by the holder; retired: number of work requests that have left the
 * queue.
 */
uint32_t rt_line_limit(const struct rt_turn *turn, uint32_t posted,
		       uint32_t retired);
/* Returns whether work requests may stand in line beyond a queue of that
 * depth. */
static inline bool rt_line_waits(const struct rt_turn *turn, uint32_t depth)
{
	return rt_line_of(turn)->places > depth;
}

/* Takes count slots within the limit. Returns the first slot of a chain; 0:
 * there are too few slots. */
static inline uint16_t rt_line_take(struct rt_turn *turn, uint32_t count,
				    uint32_t limit)
{
	return count > limit ? 0
			     : rt_freelist_take(&turn->free, (uint16_t)count,
						(uint16_t)limit);
}

/* Copy a prepared work request into a slot that the caller took; the caller
 * adds the words for the ledger. */
void rt_line_put_send(const struct rt_turn *turn, uint16_t slot,
		      const struct rpma_send_wr *wr);
void rt_line_put_recv(const struct rt_turn *turn, uint16_t slot,
		      const struct rpma_recv_wr *wr);
/* Make a work request of a slot, for the holder. The slot stays in use until
 * the device has the work request, because lists and inline bytes are in the
 * slot. */
void rt_line_get_send(const struct rt_turn *turn, uint16_t slot,
		      struct rpma_send_wr *wr);
void rt_line_get_recv(const struct rt_turn *turn, uint16_t slot,
		      struct rpma_recv_wr *wr);

#endif /* RT_BASE_LINE_H */
