/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.h -- futures as a poller sees them: slots, one for each future that is
 * out, in which it stores the result. A side of a connection has a block of
 * them, and a route number that leads there; the wr_id says which slot. States,
 * owners of each word, why nothing is missed: doc/protocols/future.md.
 */

#ifndef RT_POLLER_FUTURE_H
#define RT_POLLER_FUTURE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/bell.h"
#include "base/inbox.h"
#include "base/lang.h"
#include "base/order.h"

struct rt_poller;
struct rt_route_entry;
struct rt_side;
struct rt_future_source;

/* the reserved number whose turn at a batch's end is theirs */
#define RT_ROUTE_FUTURES 1u

enum rt_future_state {
	RT_FUTURE_FREE = 0,
	RT_FUTURE_OUT = 1,
	RT_FUTURE_DONE = 2,	/* the result is there */
	RT_FUTURE_ENDED = 3,	/* it was detached, and its work is over */
	RT_FUTURE_WAITING = 4,	/* its work request stands in line */
	RT_FUTURE_UNPOSTED = 5, /* it did, and was taken back by the holder */
	RT_FUTURE_MAKING = 6	/* by a poster, who makes it */
};

/* what its holder asks of the poller: bits */
enum rt_future_ask {
	RT_FUTURE_THEN = 1 << 0,
	RT_FUTURE_CANCEL = 1 << 1,
	RT_FUTURE_DROP = 1 << 2,
	RT_FUTURE_TAKEN = 1 << 3, /* with DROP: the holder has the result */
	/* poller: the result is stored; it is to be published as ENDED */
	RT_FUTURE_FILLED = 1 << 4,
	RT_FUTURE_DETACHED = 1 << 5,
	RT_FUTURE_WATCH = 1 << 6 /* the next item, or event */
};

/* of rt_future.line: a slot whose work request stands in line is used again
 * only when both its holder and the line have let it go */
enum rt_future_line {
	RT_FUTURE_OFF_LINE = 0,
	RT_FUTURE_IN_LINE = 1,
	RT_FUTURE_LET_GO = 2 /* by all but the line */
};

/* its continuation: of two that want the last word one gets it */
enum rt_future_claim {
	RT_FUTURE_NONE = 0,
	RT_FUTURE_ARMED = 1,
	RT_FUTURE_CALLED = 2, /* it is, or will be, once */
	RT_FUTURE_NEVER = 3
};

/* the holder's own notes: bits */
enum rt_future_mine {
	RT_FUTURE_READ = 1 << 0,       /* it has the result */
	RT_FUTURE_AWAY = 1 << 1,       /* it waits for ENDED instead of DONE */
	RT_FUTURE_TAKEN_BACK = 1 << 2, /* its work request was not posted */
	RT_FUTURE_CANCELLED = 1 << 3   /* before it was complete */
};

/* one slot, a cache line */
struct rt_future {
	/* the poller's until state says DONE or ENDED; the context, and who
	 * has it in hand before that: the poster */
	alignas(RT_CACHE_LINE) struct rpma_rt_completion result;
	struct rt_futures *of; /* immutable */
	/* where the holder waits; taken by exchange [FUTURE-9] */
	_Atomic(struct rt_future_place *) waiter;
	_Atomic uint32_t generation; /* of the holder; odd while it is out */
	/* in the stack of those asked for: index + 1 */
	uint32_t next;
	_Atomic uint8_t state; /* enum rt_future_state */
	_Atomic uint8_t asked; /* bits of enum rt_future_ask */
	_Atomic uint8_t claim; /* enum rt_future_claim */
	uint8_t mine;	       /* the holder's: bits of enum rt_future_mine */
	_Atomic uint8_t line;  /* enum rt_future_line */
	uint8_t told;	       /* the poller's: what was asked */
	/* the poster's: another in each wr_id; of a future that is asked for:
	 * the index of what it waits for, or RT_FUTURE_KEEPER */
	uint8_t tag;
};
_Static_assert(sizeof(struct rt_future) == RT_CACHE_LINE, "a line each");

/* where a thread that waits for futures sleeps, of the lot; never freed */
struct rt_future_place {
	alignas(RT_CACHE_LINE) struct rt_bell bell;
	/* complete slots that pointed here: pollers push, the thread takes
	 * all */
	_Atomic(struct rt_future *) pushed;
	struct rt_future_place *next; /* of the lot */
};

/* the part of a slot that only waits use */
struct rt_future_waited {
	/* in the list of a place: of the thread that has the slot's token, see
	 * [FUTURE-9] */
	struct rt_future *next;
	/* the holder's, while it waits: a slot whose result depends on other
	 * pollers of manual mode; how often the call names this slot, 0:
	 * counted */
	struct rt_future *next_visited;
	uint32_t times;
};

/* what is called, or where it is delivered; the holder writes it before it
 * asks */
struct rt_future_then {
	rpma_rt_route_fn *fn; /* NULL: arg is a route, which it is led to */
	void *arg;	      /* of that NULL: the connection's queue */
};

/* events of a connection that futures are asked for */
#define RT_FUTURE_EVENT_FIRST RPMA_RT_EVENT_READY
#define RT_FUTURE_EVENTS      3
_Static_assert(RPMA_RT_EVENT_CLOSED ==
		       RT_FUTURE_EVENT_FIRST + RT_FUTURE_EVENTS - 1,
	       "READY, ESTABLISHED, CLOSED");
/* futures of events at once, a connection; of requests at once, a listener */
#define RT_FUTURE_EVENT_SLOTS 16

/* what futures of a block are of: the operations of that kind. Immutable */
struct rt_future_kind {
	/* success: RPMA_RT_COMPLETION: one with that status; RPMA_RT_EVENT: the
	 * event opcode, or, of latches, opcode + slot.tag */
	uint8_t item; /* enum rpma_rt_kind */
	uint8_t opcode;
	bool is_kept; /* a success that no holder has is never lost */
	/* The poller, or in its place: does what was asked of a slot without a
	 * result, as far as that is possible at once; true: the result is
	 * stored. */
	bool (*ask)(struct rt_future *slot, uint32_t asked);
	/* Likewise: no holder has the success in the slot. NULL: it goes to the
	 * connection's queue. */
	void (*put_back)(struct rt_future *slot);
	/* why a future is delivered nowhere; why not to the connection's queue.
	 * NULL: it is */
	const char *not_delivered;
	const char *not_to_queue;
};

/* of work requests: [receives][connections with a queue] */
extern const struct rt_future_kind rt_future_posts[2][2];

/* The poller's: slots that watch the same, in their order, index + 1, 0: none;
 * what they get when no item comes any more. */
struct rt_awaited {
	uint32_t first;
	uint32_t last;
	bool is_over;
	struct rpma_rt_completion end;
};

/* rt_future.tag of the slot that stands for the source of its block */
#define RT_FUTURE_KEEPER UINT8_MAX

/* of one side of a connection, of its events, or of a source; used again by
 * others when that has ended */
struct rt_futures {
	/* immutable while a connection, or a source, has it */
	const struct rt_future_kind *kind;
	struct rpma_rt *rt;
	struct rt_poller *poller;
	/* bits: the pollers of the runtime on which a result depends */
	uint64_t pollers;
	struct rt_side *side;
	uint32_t number;	   /* the route */
	uint32_t count;		   /* slots that it uses */
	uint32_t room;		   /* all slots, a power of two; immutable */
	struct rt_futures *events; /* the connection's; of its send side */
	/* the poller's: where messages go that nobody waits for, if that leads
	 * to a queue; NULL: the connection has not begun, or has written
	 * CLOSED */
	const struct rt_route_entry *own;
	/* the poller's, of futures that are asked for: by event of a
	 * connection; of a source the first. The source; NULL: it is gone, or
	 * there is none */
	struct rt_awaited awaited[RT_FUTURE_EVENTS];
	struct rt_future_source *source;

	/* holders: slots with something asked for, index + 1, 0: none */
	_Atomic uint32_t requests;
	_Atomic bool msg_sent;	   /* about them */
	_Atomic bool ending;	   /* after a stop: a thread does them */
	_Atomic uint32_t sleepers; /* calls that wait for one of the slots */
	struct rt_msg msg;

	/* posters: where they begin to look for a free slot */
	_Atomic uint32_t cursor;
	_Atomic uint32_t cancelled; /* in line, taken back by their holders */

	/* under the runtime's lock */
	struct rt_futures *all_next;
	struct rt_futures *idle_next; /* in the ring of its size */

	struct rt_future_then *then;	 /* one each */
	struct rt_future_waited *waited; /* one each */
	struct rt_future *slots;
};

/* sizes of blocks: powers of two. A configuration may ask for RT_CFG_FUTURES,
 * and a source has one slot of its own besides */
#define RT_FUTURE_SIZES 22

#define RT_FUTURE_BATCH 64

/* a poller's: what was complete in this batch */
struct rt_future_batch {
	uint32_t count;
	uint32_t calls_count;
	/* with its block: once it is published the line is the holder's */
	struct {
		struct rt_future *slot;
		const struct rt_futures *of;
	} complete[RT_FUTURE_BATCH];
	struct {
		struct rt_future_then then;
		struct rpma_rt_completion item;
	} calls[RT_FUTURE_BATCH];
};

/* Nobody has the slot: nobody looks at these, as the address sanitizer would
 * tell. The other words are read of free slots, too. */
static inline void rt_future_poison(const struct rt_future *slot)
{
	rt_poison(&slot->result, sizeof(slot->result));
	rt_poison(&slot->of->then[slot - slot->of->slots],
		  sizeof(*slot->of->then));
}

static inline void rt_future_unpoison(const struct rt_future *slot)
{
	rt_unpoison(&slot->result, sizeof(slot->result));
	rt_unpoison(&slot->of->then[slot - slot->of->slots],
		    sizeof(*slot->of->then));
}

/* ---------------------------------------------------------- the poster --- */

/* Returns the part of the slot that waits use. */
static inline struct rt_future_waited *
rt_future_waited(const struct rt_future *slot)
{
	return &slot->of->waited[slot - slot->of->slots];
}

/* Of a slot that is out: the rest of its wr_id, see rt_wr_id(). */
static inline uint64_t rt_future_cookie(const struct rt_future *slot)
{
	return (uint64_t)(uintptr_t)slot | (slot->tag & (RT_CACHE_LINE - 1));
}

/* The slot that a handle names. */
static inline struct rt_future *
rt_future_slot(const struct rpma_rt_future *future)
{
	return (struct rt_future *)(uintptr_t)future->opaque[0];
}

/* Any thread, while the block is not returned: a free slot, out from here on;
 * NULL: there is none. */
struct rt_future *rt_future_take(struct rt_futures *futures, uint64_t context);
/* It was not posted. */
void rt_future_return(struct rt_future *slot);

/* Before its work request is published, which may be taken back from then
 * on. */
void rt_future_stand_in_line(struct rt_future *slot, uint8_t opcode,
			     uint32_t qp_num);
/* Has no holder taken the work request back so far? */
static inline bool rt_future_is_in_line(const struct rt_future *slot)
{
	/* relaxed: rt_future_leave_line() decides */
	return atomic_load_explicit(&slot->state, memory_order_relaxed) ==
	       RT_FUTURE_WAITING;
}
/* The work request leaves the line. True: it is posted next, and the future is
 * out again; false: the holder has taken it back. Of the two one gets it
 * [FUTURE-8]. */
bool rt_future_leave_line(struct rt_future *slot);

/* ---------------------------------------------------------- the holder --- */

static inline enum rt_future_state rt_future_state(const struct rt_future *slot)
{
	/* acquire [FUTURE-2]: pairs with publish(); the result */
	return (enum rt_future_state)atomic_load_explicit(&slot->state,
							  memory_order_acquire);
}

/* Its holder has what it waits for. */
static inline bool rt_future_is_ready(const struct rt_future *slot)
{
	enum rt_future_state state = rt_future_state(slot);

	return state == RT_FUTURE_ENDED ||
	       (state == RT_FUTURE_DONE && !(slot->mine & RT_FUTURE_AWAY));
}

/* Is the result a success of the block's kind? REQUIRES: there is a result */
static inline bool rt_future_has_item(const struct rt_future *slot)
{
	const struct rt_future_kind *kind = slot->of->kind;

	if (slot->result.kind != kind->item)
		return false;
	return kind->item == RPMA_RT_EVENT
		       ? slot->result.opcode == kind->opcode + slot->tag
		       : slot->result.status == IBV_WC_SUCCESS;
}

/* Has the future succeeded? What was cancelled has not, also where its message
 * stays. REQUIRES: it is ready */
static inline bool rt_future_has_succeeded(const struct rt_future *slot)
{
	return !(slot->mine & RT_FUTURE_CANCELLED) && rt_future_has_item(slot);
}

/* Does the slot hold what nobody may lose: a message, a request? The poller, or
 * its holder when it is ready. */
static inline bool rt_future_is_message(const struct rt_future *slot)
{
	return slot->of->kind->is_kept && rt_future_has_item(slot);
}

/* Its work request is not posted any more; false: it is, or does not wait. */
bool rt_future_take_post_back(struct rt_future *slot);
/* The handle that names it names it no more. */
void rt_future_end_generation(struct rt_future *slot);
/* Its holder gives it back, and the poller has no business with it any more. */
void rt_future_free_holder(struct rt_future *slot);

/* ---------------------------------------------------------- the poller --- */

/* Before its first round. */
void rt_future_init_poller(struct rt_poller *poller);

/* Is the batch to be flushed before the next one? */
static inline bool rt_future_is_full(const struct rt_future_batch *batch)
{
	return batch->count == RT_FUTURE_BATCH ||
	       batch->calls_count == RT_FUTURE_BATCH;
}

static inline struct rt_future *rt_future_of_cookie(uint64_t cookie)
{
	return (struct rt_future *)(uintptr_t)(cookie &
					       ~(uint64_t)(RT_CACHE_LINE - 1));
}

/* Of the completions of a poll, the line of the one so far ahead is asked for:
 * a holder had it, mostly, on another CPU. */
#define RT_FUTURE_AHEAD 8

static inline void rt_future_prefetch(uint64_t cookie)
{
	__builtin_prefetch(rt_future_of_cookie(cookie), 1);
}

/* Is it out, and with this wr_id? */
static inline bool rt_future_is_expected(const struct rt_future *slot,
					 uint64_t cookie)
{
	/* acquire [FUTURE-1]: what the poster wrote */
	return atomic_load_explicit(&slot->state, memory_order_acquire) ==
		       RT_FUTURE_OUT &&
	       rt_future_cookie(slot) == cookie &&
	       !(slot->told & RT_FUTURE_FILLED);
}

/* Stores the result, all but the context, which the poster stored. By value:
 * inlined, it is never put together in memory. */
static inline void rt_future_fill(struct rt_future *slot,
				  struct rpma_rt_completion item)
{
	item.context = slot->result.context;
	slot->result = item;
	slot->told |= RT_FUTURE_FILLED;
}

static inline void rt_future_add_batch(struct rt_future_batch *batch,
				       struct rt_future *slot)
{
	batch->complete[batch->count].slot = slot;
	batch->complete[batch->count++].of = slot->of;
}

/* A completion of the block's number; its context is the cookie. Where *left
 * goes; NULL: there is none. REQUIRES: not full */
const struct rt_route_entry *rt_future_complete_poller(
	struct rt_poller *poller, const struct rt_futures *futures,
	const struct rpma_rt_completion *item, struct rpma_rt_completion *left);
/* What was asked of a slot; nothing of the batch is unpublished. The rest as
 * above. */
const struct rt_route_entry *
rt_future_ask_poller(struct rt_poller *poller, struct rt_future *slot,
		     uint32_t asked, struct rpma_rt_completion *left);
/* Does what was asked of a slot whose result is stored, and not published. The
 * rest as above. */
const struct rt_route_entry *
rt_future_finish_poller(struct rt_poller *poller, struct rt_future *slot,
			struct rpma_rt_completion *left);
/* Does what was asked when the poller has ended: nothing is called, or
 * delivered. */
void rt_future_ask_ended(struct rt_future *slot, uint32_t asked);

#endif /* RT_POLLER_FUTURE_H */
