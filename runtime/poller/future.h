/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.h -- futures as a poller sees futures: slots, a slot for each future
 * that is out, in which the poller stores the result. A side of a connection
 * has a block of slots, and a route number that leads to the block; the wr_id
 * says which slot. States, owners of each word, and why nothing is missed:
 * doc/protocols/future.md.
 */

#ifndef RT_POLLER_FUTURE_H
#define RT_POLLER_FUTURE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "base/bell.h"
#include "base/inbox.h"
#include "base/lang.h"
#include "base/order.h"
#include "queue/lane.h"

struct rt_poller;
struct rt_route_entry;
struct rt_side;
struct rt_future_source;

/* the reserved route number of futures: at the end of a batch that completed
 * futures, the poller calls the operations of the number, which publish the
 * results, wake waiting threads and call continuations. No work request has the
 * number */
#define RT_ROUTE_FUTURES 1u

enum rt_future_state {
	RT_FUTURE_FREE = 0,	/* after an even number of uses */
	RT_FUTURE_FREE_ODD = 1, /* after an odd number of uses */
	RT_FUTURE_OUT = 2,
	RT_FUTURE_DONE = 3, /* the result is stored */
	/* the future was detached, and the work request is over */
	RT_FUTURE_ENDED = 4,
	RT_FUTURE_WAITING = 5, /* the work request stands in line */
	/* the work request stood in line, and the holder took it back */
	RT_FUTURE_UNPOSTED = 6
};

/* bits: what the holder of a future asks of the poller */
enum rt_future_ask {
	RT_FUTURE_THEN = 1 << 0,
	RT_FUTURE_CANCEL = 1 << 1,
	RT_FUTURE_DROP = 1 << 2,
	RT_FUTURE_TAKEN = 1 << 3, /* with DROP: the holder has the result */
	/* set by the poller: the result is stored, and will be published */
	RT_FUTURE_FILLED = 1 << 4,
	RT_FUTURE_DETACHED = 1 << 5,
	RT_FUTURE_WATCH = 1 << 6 /* asks for the next item, or the event */
};

/* values of rt_future.line: a slot whose work request stands in line is used
 * again only when both the holder and the line have let the slot go */
enum rt_future_line {
	RT_FUTURE_OFF_LINE = 0,
	RT_FUTURE_IN_LINE = 1,
	RT_FUTURE_LET_GO = 2 /* only the line still has the slot */
};

/* state of the continuation: poller and holder race for CALLED and NEVER,
 * exactly one of the two wins */
enum rt_future_claim {
	RT_FUTURE_NONE = 0,
	RT_FUTURE_ARMED = 1,
	/* the continuation is called, or will be called, once */
	RT_FUTURE_CALLED = 2,
	RT_FUTURE_NEVER = 3
};

/* bits: notes of the holder */
enum rt_future_mine {
	RT_FUTURE_READ = 1 << 0, /* the holder has the result */
	/* the holder waits for ENDED instead of DONE */
	RT_FUTURE_AWAY = 1 << 1,
	/* the work request was taken back before it was posted */
	RT_FUTURE_TAKEN_BACK = 1 << 2,
	/* the future was cancelled before it was complete */
	RT_FUTURE_CANCELLED = 1 << 3
};

/* a slot, of a cache line */
struct rt_future {
	/* written by the poller until state says DONE or ENDED; context, opcode
	 * and queue pair were written by the poster */
	alignas(RT_CACHE_LINE) struct rpma_rt_completion result;
	struct rt_futures *of; /* immutable */
	/* where the holder waits; taken by exchange [FUTURE-9] */
	_Atomic(struct rt_future_place *) waiter;
	/* written by the poster, then the holder; odd while the future is
	 * out */
	_Atomic uint32_t generation;
	/* next slot in the stack of requests to the poller: index + 1 */
	uint32_t next;
	_Atomic uint8_t state; /* enum rt_future_state */
	_Atomic uint8_t asked; /* bits of enum rt_future_ask */
	/* bits of enum rt_future_ask that the poller has taken; written by the
	 * poller */
	uint8_t told;
	/* written by the poster: differs in each wr_id; of a future that a
	 * program asks for: the index of what the future waits for, or
	 * RT_FUTURE_KEEPER */
	uint8_t tag;
	union {
		struct {
			_Atomic uint8_t claim; /* enum rt_future_claim */
			/* bits of enum rt_future_mine; written by the holder */
			uint8_t mine;
			_Atomic uint8_t line; /* enum rt_future_line */
			uint8_t unused;
		};
		/* all of these; 0: nothing but the result was asked, the holder
		 * has not read the result, and the slot is off the line */
		_Atomic uint32_t extras;
	};
};
_Static_assert(RT_FUTURE_NONE == 0 && RT_FUTURE_OFF_LINE == 0,
	       "rt_future.extras");
_Static_assert(sizeof(struct rt_future) == RT_CACHE_LINE, "a line each");

/* a place where a thread that waits for futures sleeps; from a lot of places,
 * never freed */
struct rt_future_place {
	alignas(RT_CACHE_LINE) struct rt_bell bell;
	/* complete slots that pointed to this place: pollers push, the waiting
	 * thread takes all */
	_Atomic(struct rt_future *) pushed;
	struct rt_future_place *next; /* list of the lot */
};

/* the part of a slot that only waits use */
struct rt_future_waited {
	/* in the list of a place; written by the thread that has the slot's
	 * token, see [FUTURE-9] */
	struct rt_future *next;
	/* written by the holder during a wait. next_visited: list of the slots
	 * whose result depends on other pollers of manual mode. times: how
	 * often the call names this slot, 0: counted */
	struct rt_future *next_visited;
	uint32_t times;
};

/* the continuation: a function, or a route; the holder writes the continuation
 * before asking the poller */
struct rt_future_then {
	/* NULL: the result is delivered to the route in arg */
	rpma_rt_route_fn *fn;
	/* if fn is NULL, NULL means the connection's queue */
	void *arg;
};

/* events of a connection for which a program may ask futures */
#define RT_FUTURE_EVENT_FIRST RPMA_RT_EVENT_READY
#define RT_FUTURE_EVENTS      3
_Static_assert(RPMA_RT_EVENT_CLOSED ==
		       RT_FUTURE_EVENT_FIRST + RT_FUTURE_EVENTS - 1,
	       "READY, ESTABLISHED, CLOSED");
/* most futures at a time: for events of a connection, for requests of a
 * listener */
#define RT_FUTURE_EVENT_SLOTS 16

/* operations of a kind of futures, the same for all slots of a block.
 * Immutable */
struct rt_future_kind {
	/* what a success looks like. item RPMA_RT_COMPLETION: a completion with
	 * status success; item RPMA_RT_EVENT: the event `opcode` or, for
	 * latches, opcode + slot.tag */
	uint8_t item; /* enum rpma_rt_kind */
	uint8_t opcode;
	bool is_kept; /* a success that no holder has is never lost */
	/* does what was asked of a slot without a result, as far as possible at
	 * once; returns true if the result is stored. On the poller, or after
	 * the poller's end */
	bool (*ask)(struct rt_future *slot, uint32_t asked);
	/* takes the success of a slot that no holder has. On the poller, or
	 * after the poller's end. NULL: the success goes to the connection's
	 * queue */
	void (*put_back)(struct rt_future *slot);
	/* texts: why a future cannot be delivered to a route, and why not to
	 * the connection's queue. NULL: delivery is possible */
	const char *not_delivered;
	const char *not_to_queue;
};

/* kinds of futures of work requests: [receives][connections with a queue] */
extern const struct rt_future_kind rt_future_posts[2][2];

/* Slots that watch for the same thing, in order: index + 1, 0: no slot. end:
 * what slots get when no item comes any more. Used by the poller. */
struct rt_awaited {
	uint32_t first;
	uint32_t last;
	bool is_over;
	struct rpma_rt_completion end;
};

/* rt_future.tag of the slot that stands for the source of the block */
#define RT_FUTURE_KEEPER UINT8_MAX

/* a block of slots: of a side of a connection, of a connection's events, or of
 * a source. The next owner uses the block when the owner has ended */
struct rt_futures {
	/* immutable while a connection or a source has the block */
	const struct rt_future_kind *kind;
	struct rpma_rt *rt;
	struct rt_poller *poller;
	/* bits: pollers of the runtime on which a result depends */
	uint64_t pollers;
	struct rt_side *side;
	/* all slots of the block, a power of two; immutable */
	uint32_t room;
	/* in the block of a send side: the block of the connection's events */
	struct rt_futures *events;
	/* used by the poller: where messages go that no future waits for, if
	 * that is a queue; NULL: the connection has not begun, or has written
	 * CLOSED */
	const struct rt_route_entry *own;
	/* used by the poller, for futures that a program asks for. awaited: an
	 * element for each event of a connection, or the first element for a
	 * source. source: NULL if the block has no source, or the source is
	 * gone */
	struct rt_awaited awaited[RT_FUTURE_EVENTS];
	struct rt_future_source *source;

	/* slots with requests of their holders, index + 1, 0: none */
	_Atomic uint32_t requests;
	/* the message about the requests is on its way */
	_Atomic bool msg_sent;
	/* after a stop: a thread is doing the requests */
	_Atomic bool ending;
	_Atomic uint32_t sleepers; /* calls that wait for a slot of the block */
	struct rt_msg msg;

	/* The line of the posters. number: of the route; count: slots in use by
	 * the owner; both immutable, as above */
	alignas(RT_CACHE_LINE) uint32_t number;
	uint32_t count;
	struct rt_future *slots;
	/* a word for each RT_FUTURE_GROUP slots; changed by posters, see
	 * rt_future_take_row() [FUTURE-3] */
	_Atomic uint64_t *taken;
	/* hint of the posters: where the search for a free slot begins */
	_Atomic uint32_t cursor;
	/* slots in line whose work request the holder took back */
	_Atomic uint32_t cancelled;

	/* under the runtime's lock: */
	struct rt_futures *all_next;
	/* in the ring of blocks of the same size */
	struct rt_futures *idle_next;

	struct rt_future_then *then;	 /* an element for each slot */
	struct rt_future_waited *waited; /* an element for each slot */
};

/* number of sizes of blocks, all powers of two. A configuration may ask for
 * RT_CFG_FUTURES slots, and a source has a slot of its own besides */
#define RT_FUTURE_SIZES 22

#define RT_FUTURE_BATCH 64

/* futures that became complete in a poller's batch */
struct rt_future_batch {
	uint32_t count;
	uint32_t runs_count;
	uint32_t calls_count;
	bool has_detached; /* some slot is detached: ENDED, not DONE */
	struct rt_future *complete[RT_FUTURE_BATCH];
	/* runs of complete slots of the same block, with the index of the first
	 * slot: once the results are published, the holders own the slots'
	 * cache lines */
	struct {
		const struct rt_futures *of;
		uint32_t first;
	} runs[RT_FUTURE_BATCH];
	struct {
		struct rt_future_then then;
		struct rpma_rt_completion item;
	} calls[RT_FUTURE_BATCH];
};

/* Poison, and unpoison, the words of a slot that nobody may use: the address
 * sanitizer then reports every access. The other words are read of free slots,
 * too. */
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

/* Returns the lower bits of the wr_id of a slot with this tag. */
static inline uint64_t rt_future_cookie_of(const struct rt_future *slot,
					   uint8_t tag)
{
	/* added, and not put in by "or", which costs two instructions more */
	return (uint64_t)(uintptr_t)slot + (tag & (RT_CACHE_LINE - 1));
}

/* Returns the lower bits of the wr_id of a slot that is out, see rt_wr_id(). */
static inline uint64_t rt_future_cookie(const struct rt_future *slot)
{
	return rt_future_cookie_of(slot, slot->tag);
}

/* Returns the slot that a handle names. */
static inline struct rt_future *
rt_future_slot(const struct rpma_rt_future *future)
{
	return (struct rt_future *)(uintptr_t)future->opaque[0];
}

/* slots with a common word in rt_futures.taken. A bit of the lower half of the
 * word is flipped by each take of the slot; the upper half counts the takes */
#define RT_FUTURE_GROUP 32

/* Takes free slots that lie side by side, `most` at most, for the caller, who
 * calls rt_future_begin() for each. Returns the number of slots, and in *first
 * the first slot. 0: no slot is free. Any thread, while the block is not
 * returned. */
uint32_t rt_future_take_row(struct rt_futures *futures, uint32_t most,
			    struct rt_future **first);
/* Begins to fetch the cache lines that a take of slots looks at first. The
 * lines of a connection that has not posted for a while are in no near cache. A
 * hint; any thread, while the block is not returned. */
static inline void rt_future_foresee_row(const struct rt_futures *futures)
{
	/* relaxed: a hint */
	uint32_t at =
		atomic_load_explicit(&futures->cursor, memory_order_relaxed);

	__builtin_prefetch(&futures->slots[0].state);
	rt_fetch_to_write(&futures->slots[at]);
	rt_fetch_to_write((const void *)&futures->taken[at / RT_FUTURE_GROUP]);
}
/* Takes a free slot and begins the use of the slot. NULL: no slot is free. Any
 * thread, while the block is not returned. */
struct rt_future *rt_future_take(struct rt_futures *futures, uint64_t context);
/* Returns whether a slot is free. Any thread, while the block is not
 * returned. */
bool rt_future_has_free(const struct rt_futures *futures);

/* Begins the use of a slot that the caller has taken: the slot is out from here
 * on. Returns rt_future_cookie(), and in *generation that of the use. */
static inline uint64_t rt_future_begin(struct rt_future *slot, uint64_t context,
				       uint32_t *generation)
{
	uint8_t tag = slot->tag + 1;

	rt_future_unpoison(slot);
	/* whoever took what was asked has left nothing. relaxed: no other
	 * thread has the slot */
	assert(atomic_load_explicit(&slot->asked, memory_order_relaxed) == 0);
	slot->result.context = context;
	slot->told = 0;
	slot->tag = tag;
	/* relaxed: the release below orders the store; the holder gets the slot
	 * from this thread. A free slot is off the line already */
	atomic_store_explicit(&slot->extras, 0, memory_order_relaxed);
	/* relaxed, both: the release below orders the store */
	*generation =
		atomic_load_explicit(&slot->generation, memory_order_relaxed) +
		1;
	atomic_store_explicit(&slot->generation, *generation,
			      memory_order_relaxed);
	/* release [FUTURE-1]: pairs with the acquire in
	 * rt_future_is_expected() */
	rt_store_unseen(&slot->state, RT_FUTURE_OUT, memory_order_release);
	return rt_future_cookie_of(slot, tag);
}

/* Gives a slot back whose work request was not posted. */
void rt_future_return(struct rt_future *slot);

/* Marks a slot as standing in line, before its work request is published. From
 * then on the holder may take the work request back. */
void rt_future_stand_in_line(struct rt_future *slot, uint8_t opcode,
			     uint32_t qp_num);
/* Returns whether the work request is still in line: no holder has taken it
 * back. */
static inline bool rt_future_is_in_line(const struct rt_future *slot)
{
	/* relaxed: rt_future_leave_line() decides */
	return atomic_load_explicit(&slot->state, memory_order_relaxed) ==
	       RT_FUTURE_WAITING;
}
/* Takes the slot off the line. Returns true if the work request is posted next,
 * and the future is out again; false: the holder has taken the work request
 * back. Exactly one of the two wins [FUTURE-8]. */
bool rt_future_leave_line(struct rt_future *slot);

/* ---------------------------------------------------------- the holder --- */

static inline enum rt_future_state rt_future_state(const struct rt_future *slot)
{
	/* acquire [FUTURE-2]: pairs with the release in future_publish_slot();
	 * the result is visible */
	return (enum rt_future_state)atomic_load_explicit(&slot->state,
							  memory_order_acquire);
}

/* Returns whether a slot in this state is free. */
static inline bool rt_future_is_free_state(enum rt_future_state state)
{
	return state <= RT_FUTURE_FREE_ODD;
}

/* Returns whether the holder has what the holder waits for. */
static inline bool rt_future_is_ready(const struct rt_future *slot)
{
	enum rt_future_state state = rt_future_state(slot);

	return state == RT_FUTURE_DONE ? !(slot->mine & RT_FUTURE_AWAY)
				       : state == RT_FUTURE_ENDED;
}

/* Returns whether the result is a success of the block's kind. REQUIRES: there
 * is a result */
static inline bool rt_future_has_item(const struct rt_future *slot)
{
	const struct rt_future_kind *kind = slot->of->kind;

	if (slot->result.kind != kind->item)
		return false;
	return kind->item == RPMA_RT_EVENT
		       ? slot->result.opcode == kind->opcode + slot->tag
		       : slot->result.status == IBV_WC_SUCCESS;
}

/* Returns whether the future has succeeded. A cancelled future has not
 * succeeded, also where the message stays in the slot. REQUIRES: the future is
 * ready */
static inline bool rt_future_has_succeeded(const struct rt_future *slot)
{
	return !(slot->mine & RT_FUTURE_CANCELLED) && rt_future_has_item(slot);
}

/* Returns whether the slot holds something that must not be lost: a message or
 * a request. On the poller, or for the holder when the future is ready. */
static inline bool rt_future_is_message(const struct rt_future *slot)
{
	return slot->of->kind->is_kept && rt_future_has_item(slot);
}

/* Takes the work request back, so that it is not posted any more. Returns false
 * if the work request was posted, or does not stand in line. */
bool rt_future_take_post_back(struct rt_future *slot);
/* Invalidates the handles that name the slot. Returns the generation, which has
 * counted begin and end of each use. */
static inline uint32_t rt_future_end_generation(struct rt_future *slot)
{
	/* relaxed, both: the release that follows in the caller orders the
	 * store */
	const uint32_t generation =
		atomic_load_explicit(&slot->generation, memory_order_relaxed) +
		1;

	atomic_store_explicit(&slot->generation, generation,
			      memory_order_relaxed);
	return generation;
}

/* Frees a slot that is off the line. generation: what
 * rt_future_end_generation() returned. */
static inline void rt_future_set_free_at(struct rt_future *slot,
					 uint32_t generation)
{
	rt_future_poison(slot);
	/* release [FUTURE-3]: pairs with the acquire in future_is_free(),
	 * future.c; the last access of this thread to the slot */
	rt_store_unseen(&slot->state,
			(uint8_t)(RT_FUTURE_FREE + generation / 2 % 2),
			memory_order_release);
}

/* Frees the slot. REQUIRES: the slot is off the line, and
 * rt_future_end_generation() was called */
static inline void rt_future_set_free_now(struct rt_future *slot)
{
	/* relaxed: written by this thread, or before this thread got the
	 * slot */
	rt_future_set_free_at(slot, atomic_load_explicit(&slot->generation,
							 memory_order_relaxed));
}

/* Frees a slot whose work request may stand in line: the second of the line and
 * the caller frees the slot. */
void rt_future_set_free_line(struct rt_future *slot);

static inline void rt_future_set_free(struct rt_future *slot)
{
	/* acquire [FUTURE-10]: pairs with the exchange in
	 * rt_future_leave_line(): the thread that took the slot off the line
	 * for good has looked at the state */
	if (likely(rt_load_unseen(&slot->line, memory_order_acquire) ==
		   RT_FUTURE_OFF_LINE))
		rt_future_set_free_now(slot);
	else
		rt_future_set_free_line(slot);
}

/* Gives the slot back, for the holder; the poller has no business with the slot
 * any more. */
static inline void rt_future_free_holder(struct rt_future *slot)
{
	rt_future_end_generation(slot);
	rt_future_set_free(slot);
}

/* ---------------------------------------------------------- the poller --- */

/* Initialises the futures of a poller, before the poller's first round. */
void rt_future_init_poller(struct rt_poller *poller);

/* Returns whether the batch has to be flushed before something is added. */
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

/* While the poller handles a completion, the cache line of the slot this far
 * ahead is prefetched, because mostly a holder had the line on another CPU. */
#define RT_FUTURE_AHEAD 8

static inline void rt_future_prefetch(uint64_t cookie)
{
	/* the tag is smaller than a line */
	__builtin_prefetch((const void *)(uintptr_t)cookie, 1);
}

/* Returns whether the slot, which is rt_future_of_cookie(), is out, and with
 * this wr_id. */
static inline bool rt_future_is_expected(const struct rt_future *slot,
					 uint64_t cookie)
{
	/* acquire [FUTURE-1]: pairs with the release in rt_future_begin(); the
	 * words of the poster are visible */
	return rt_load_unseen(&slot->state, memory_order_acquire) ==
		       RT_FUTURE_OUT &&
	       ((slot->tag ^ cookie) & (RT_CACHE_LINE - 1)) == 0 &&
	       !(slot->told & RT_FUTURE_FILLED);
}

/* Stores the result, but for the context, which the poster stored. The item is
 * passed by value: inlined, the item is never put together in memory. */
static inline void rt_future_fill(struct rt_future *slot,
				  struct rpma_rt_completion item)
{
	item.context = slot->result.context;
	rt_lane_fill_slot(&slot->result, &item);
	slot->told |= RT_FUTURE_FILLED;
}

/* Adds n complete slots of the block to the batch, which stand behind the
 * others of the batch already. */
static inline void rt_future_add_batch(struct rt_future_batch *batch,
				       const struct rt_futures *futures,
				       uint32_t n)
{
	if (batch->runs_count == 0 ||
	    batch->runs[batch->runs_count - 1].of != futures) {
		batch->runs[batch->runs_count].of = futures;
		batch->runs[batch->runs_count++].first = batch->count;
	}
	batch->count += n;
}

/* Handles a completion of the block's route number, whose context is the
 * cookie. Returns where *left has to be delivered; NULL: nothing is left.
 * REQUIRES: the batch is not full */
const struct rt_route_entry *rt_future_complete_poller(
	struct rt_poller *poller, const struct rt_futures *futures,
	const struct rpma_rt_completion *item, struct rpma_rt_completion *left);
/* Does what was asked of a slot. Called when nothing of the batch is
 * unpublished. Result and *left as of rt_future_complete_poller(). */
const struct rt_route_entry *
rt_future_ask_poller(struct rt_poller *poller, struct rt_future *slot,
		     uint32_t asked, struct rpma_rt_completion *left);
/* Does what was asked of a slot whose result is stored and not published yet.
 * Result and *left as of rt_future_complete_poller(). */
const struct rt_route_entry *
rt_future_finish_poller(struct rt_poller *poller, struct rt_future *slot,
			struct rpma_rt_completion *left);
/* Does what was asked of a slot after the poller's end: nothing is called or
 * delivered. */
void rt_future_ask_ended(struct rt_future *slot, uint32_t asked);

#endif /* RT_POLLER_FUTURE_H */
