/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * waiting.h -- work requests with a future that wait for room on a side of a
 * connection: copies, in the order of their calls. A link waits as one. Posters
 * inside the gate, of whom the poller may be one; from HANDOVER on the poller.
 * doc/protocols/future.md.
 */

#ifndef RT_POLLER_WAITING_H
#define RT_POLLER_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "poller/future.h"
#include "poller/side.h"

#define RT_WAITING_STAYS 1

struct rt_waiting {
	uint32_t limit;	  /* immutable: entries at most */
	uint32_t max_sge; /* immutable: pieces of each, at most */
	uint32_t first;	  /* those from here on */
	uint32_t end;	  /* before here wait */
	/* the poller: room may have come. 0: nothing waits any more, and some
	 * is left; RT_WAITING_STAYS. ERRORS: RPMA_E_AGAIN: another thread is
	 * inside the gate. Set by the first to wait */
	int (*resume)(struct rt_side *side);
	uint32_t claimed; /* so many from the first were to be posted: out */
	bool is_cut;	  /* parts of the first one's link were posted */
	/* of the side; the other is NULL */
	struct rpma_rt_wr *sends;
	struct rpma_rt_recv_wr *recvs;
	/* by entry */
	struct rpma_rt_future *futures;
	struct rpma_sge *pieces;
};

/* For limit work requests of that side. NULL: no memory. */
struct rt_waiting *rt_waiting_new(enum rpma_rt_side side, uint32_t limit,
				  uint32_t max_sge);
void rt_waiting_delete(struct rt_waiting *waiting);

/* Those of that side; NULL: none may wait. */
static inline struct rt_waiting *rt_waiting_of(const struct rt_side *side)
{
	return side->futures != NULL ? side->futures->waiting : NULL;
}

static inline bool rt_waiting_is_empty(const struct rt_waiting *waiting)
{
	return waiting->first == waiting->end;
}

/* Room for so many more? Entries whose future was cancelled are dropped for
 * it. */
bool rt_waiting_has_room(struct rt_waiting *waiting, uint32_t count);

/* The next one, a copy, with its pieces; the future of the last of a link, or
 * of itself, whose slot waits from here on; NULL: a part. REQUIRES: room */
void rt_waiting_add_send(struct rt_waiting *waiting,
			 const struct rpma_rt_wr *wr, bool has_future);
void rt_waiting_add_recv(struct rt_waiting *waiting,
			 const struct rpma_rt_recv_wr *wr);

/* The last of the link that begins there, or itself. */
uint32_t rt_waiting_last(const struct rt_waiting *waiting, uint32_t index);
/* The slot of what ends there, if it still waits; NULL: it was cancelled. */
struct rt_future *rt_waiting_slot(const struct rt_waiting *waiting,
				  uint32_t index);

#endif /* RT_POLLER_WAITING_H */
