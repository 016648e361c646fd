/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- the 64 bits of a work request, and the table that the bits index.
 *
 * The table belongs to a CQ, and only the poller uses the table. Numbers are
 * handed out and taken back under the runtime's lock, never on the data path.
 * Why a number is never reused too early: doc/protocols/wr_id.md.
 */

#ifndef RT_POLLER_ROUTE_H
#define RT_POLLER_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include <urcu/hlist.h>

#include "rpma_rt.h"
#include "base/wr.h"

/* -------------------------------------------------------------- numbers --- */

/*
 * The free numbers of a CQ's routes. Used under the runtime's lock, but for the
 * numbers that the poller gives back: the poller writes these numbers into a
 * ring, which the thread with the lock reads. doc/protocols/route.md.
 */

struct rt_numbers {
	/* a stack, with room for all numbers that are handed out */
	uint16_t *returned;
	uint32_t returned_count;
	uint32_t returned_max;
	uint32_t next; /* numbers from here on were never handed out */
	/* ring of numbers that the poller gives back, with a place for each
	 * number; NULL: not made yet */
	uint16_t *back;
	uint32_t back_head;
	_Atomic uint32_t back_tail; /* written by the poller */
};

void rt_numbers_init(struct rt_numbers *numbers);

void rt_numbers_fini(struct rt_numbers *numbers);
/* Returns how many numbers can be taken. */
uint32_t rt_numbers_left(const struct rt_numbers *numbers);
/* Takes a number. ERRORS: RPMA_E_NOMEM (also: all 32512 numbers are in use) */
int rt_numbers_take(struct rt_numbers *numbers, uint32_t *number);
void rt_numbers_return(struct rt_numbers *numbers, uint32_t number);
/* Makes the ring through which the poller gives numbers back. ERRORS:
 * RPMA_E_NOMEM */
int rt_numbers_let_poller(struct rt_numbers *numbers);
/* Gives a number back on the poller, without the lock. REQUIRES: the poller has
 * run the message about the ring */
void rt_numbers_return_poller(struct rt_numbers *numbers, uint32_t number);

/* ---------------------------------------------------------------- route --- */

struct rt_callback;
struct rt_futures;
struct rt_lane;
struct rt_side;

#define RT_ROUTE_SHIFT	  RPMA_RT_CONTEXT_BITS
#define RT_ROUTE_MASK	  0x7fffu
#define RT_ON_ERROR_ONLY  (UINT64_C(1) << 63)
#define RT_ROUTE_INTERNAL 0u
#define RT_ROUTE_FIRST	  256u /* smaller numbers are reserved */
#define RT_ROUTE_COUNT	  (RT_ROUTE_MASK + 1)
/* of a free entry: no queue pair has such a key, because the numbers of queue
 * pairs have 24 bits */
#define RT_QP_KEY_NONE 0u

#define RT_KIND_SHIFT 44
#define RT_SLOT_MASK  0xffffffffu

/* kinds of internal work requests; 3 is free */
enum rt_internal { RT_SQ_MARKER = 1, RT_RQ_MARKER = 2, RT_KEEPALIVE = 4 };

static inline uint64_t rt_wr_id(uint32_t route, uint64_t cookie)
{
	return ((uint64_t)route << RT_ROUTE_SHIFT) | cookie;
}

static inline uint64_t rt_wr_id_internal(enum rt_internal kind, uint32_t slot)
{
	return ((uint64_t)kind << RT_KIND_SHIFT) | slot;
}

static inline uint32_t rt_wr_id_route(uint64_t wr_id)
{
	return (uint32_t)(wr_id >> RT_ROUTE_SHIFT) & RT_ROUTE_MASK;
}

static inline uint64_t rt_wr_id_cookie(uint64_t wr_id)
{
	return wr_id & RT_COOKIE_MASK;
}

/* Returns the key that an entry holds in place of a queue pair's number: never
 * RT_QP_KEY_NONE. */
static inline uint32_t rt_qp_key(uint32_t qp_num)
{
	return ~qp_num;
}

/* where a route leads. The first two can be written in rows, see round.c */
enum rt_leads_to {
	RT_TO_LANE = 0,	    /* to a queue */
	RT_TO_FUTURES = 1,  /* to the slots of futures */
	RT_TO_CALLBACK = 2, /* to a function of the program */
	RT_TO_SOURCE = 3,   /* to a source, whose futures come later */
	RT_TO_SINK = 4,	    /* to a function of the runtime, called at once */
	/* the route is closed, and leads where an open route leads */
	RT_TO_ROUTE = 5
};

/* the entry of a number of a CQ; free while qp_key is RT_QP_KEY_NONE */
struct rt_route_entry {
	union {
		struct rt_lane *lane;
		struct rt_callback *callback;
		struct rt_futures *futures;
		struct rt_led *led;
		void (*sink)(uint64_t context);
	};
	void *user;
	struct rt_side *side;
	uint32_t qp_key;
	uint8_t leads_to; /* enum rt_leads_to */
	/* RPMA_RT_C_LEASE or 0: flags of the route's completions */
	uint8_t flags;
};

/* A closed route whose completions go where an open route leads: a node of the
 * tree of all such routes. Used by the poller only; exists as long as its
 * connection. */
struct rt_led {
	/* parent node; NULL: this node is the root */
	struct rt_led *up;
	/* in the root: the entry of the open route */
	const struct rt_route_entry *to;
	/* in the root: number of nodes of the tree */
	uint32_t size;
};

/* Joins the trees of two roots, each of which may be NULL. Returns the root of
 * the joined tree. */
struct rt_led *rt_route_led_join(struct rt_led *one, struct rt_led *other);
/* Returns the entry of the open route. */
const struct rt_route_entry *rt_route_led_to(struct rt_led *led);

/* buckets for a CQ's routes to lanes, at most eight routes to a bucket on
 * average; a power of two */
#define RT_LANE_BUCKETS (RT_ROUTE_COUNT / 8)

/* Allocates the routes of a CQ, every entry free, and behind the routes, in the
 * same block, the empty buckets of routes to lanes. ERRORS: RPMA_E_NOMEM */
int rt_route_table_new(struct rt_route_entry **table_ptr,
		       struct cds_hlist_head **by_lane_ptr);

/* Makes an item of a completion whose wr_id was made by no route. Reads only
 * the valid fields: on an error four fields are valid, and the opcode is
 * opcode_of_error. */
static inline struct rpma_rt_completion rt_item_of_wc(const struct ibv_wc *wc,
						      uint64_t context,
						      void *user,
						      uint8_t opcode_of_error)
{
	struct rpma_rt_completion item = {
		.context = context,
		.user = user,
		.qp_num = wc->qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = (uint8_t)wc->status,
		.opcode = opcode_of_error,
		.imm = wc->vendor_err,
	};

	if (wc->status != IBV_WC_SUCCESS)
		return item;
	item.byte_len = wc->byte_len;
	item.imm = wc->imm_data;
	item.opcode = (uint8_t)wc->opcode;
	item.flags = (uint8_t)wc->wc_flags &
		     (RPMA_RT_C_WITH_IMM | RPMA_RT_C_WITH_INV);
	return item;
}

/* ------------------------------------------------------------- reserved --- */

/*
 * The route numbers below RT_ROUTE_FIRST, the same in all CQs of a poller: 0
 * for the runtime's own work requests, from 2 on for SRQs. Reserved numbers
 * take part in the end of a batch as sides do. doc/protocols/wr_id.md, srq.md.
 */

struct rt_cq;
struct rt_poller;

/* functions of a reserved number; all run on the poller */
struct rt_reserved_ops {
	/* handles a completion with the number; may run the poller's inbox */
	void (*completion)(struct rt_poller *poller, struct rt_cq *cq,
			   const struct ibv_wc *wc);
	/* the functions from here on are NULL for numbers that are never
	 * touched. At the end of a batch that touched the number, publish()
	 * gives credits back, before the lanes are published, and answer()
	 * answers refused posters, after the fence */
	void (*publish)(void *arg);
	void (*answer)(void *arg);
	/* held(): a lane that got items of the number in this batch is over its
	 * limit; called before publish(). eased(): the lane is under its limit
	 * again */
	void (*held)(void *arg);
	void (*eased)(void *arg);
};

/* a reserved number; free while ops is NULL */
struct rt_reserved {
	const struct rt_reserved_ops *ops;
	void *arg;
	bool touched; /* the current batch touched the number */
	struct rt_reserved *touched_next;
};

/* -------------------------------------------------------------- reserve --- */

/*
 * Reserves room in the lane of a poller and a queue for all items that may be
 * delivered there. Under the lock of the runtime.
 */

struct rt_spill;

/* Reserves room for `entries` more items in the lane's spill. Stores in
 * *spill_ptr a larger spill for the poller to take, or NULL. ERRORS:
 * RPMA_E_NOMEM */
int rt_reserve_spill(struct rt_lane *lane, uint32_t entries,
		     struct rt_spill **spill_ptr);

/*
 * Reserves room for `entries` more items in the lane between the poller and the
 * queue, and references the queue; *spill_ptr as in rt_reserve_spill(). The
 * caller gives back room and reference. REQUIRES: the runtime's lock. ERRORS:
 * RPMA_E_NOMEM, RPMA_RT_E_BUSY (the queue's consumer is behind),
 * RPMA_RT_E_CLOSED (the queue is closed)
 */
int rt_reserve_lane(struct rt_poller *poller, struct rpma_rt_queue *queue,
		    uint32_t entries, struct rt_lane **lane_ptr,
		    struct rt_spill **spill_ptr);

#endif /* RT_POLLER_ROUTE_H */
