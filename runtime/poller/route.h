/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * route.h -- the 64 bits of a work request and the table that they index.
 *
 * The table belongs to a CQ and is the poller's alone. Numbers are handed out
 * and taken back under the runtime's lock, never on the data path.
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
 * Free numbers of one CQ's routes. Under the runtime's lock, but for the
 * numbers that the poller gives back: these are in a ring that the poller
 * writes and that the thread with the lock reads. doc/protocols/route.md.
 */

struct rt_numbers {
	uint16_t *returned; /* a stack, with room for all handed out */
	uint32_t returned_count;
	uint32_t returned_max;
	uint32_t next; /* never handed out yet from here on */
	/* given back by the poller: a place for each; NULL: none yet */
	uint16_t *back;
	uint32_t back_head;
	_Atomic uint32_t back_tail; /* written by the poller */
};

void rt_numbers_init(struct rt_numbers *numbers);
void rt_numbers_fini(struct rt_numbers *numbers);
/* How many can be taken. */
uint32_t rt_numbers_left(const struct rt_numbers *numbers);
/* ERRORS: RPMA_E_NOMEM (also: all 32512 in use) */
int rt_numbers_take(struct rt_numbers *numbers, uint32_t *number);
void rt_numbers_return(struct rt_numbers *numbers, uint32_t number);
/* From now on the poller may give numbers back. ERRORS: RPMA_E_NOMEM */
int rt_numbers_let_poller(struct rt_numbers *numbers);
/* Without the lock. REQUIRES: the message about the above was run */
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
#define RT_ROUTE_FIRST	  256u /* below: the poller's own */
#define RT_ROUTE_COUNT	  (RT_ROUTE_MASK + 1)
#define RT_QP_KEY_NONE	  0u /* of a free entry; numbers have 24 bits */

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

/* What an entry holds of a queue pair's number: never RT_QP_KEY_NONE. */
static inline uint32_t rt_qp_key(uint32_t qp_num)
{
	return ~qp_num;
}

/* one number of a CQ; free while qp_key is RT_QP_KEY_NONE */
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
	uint8_t is_callback; /* it leads to no lane: to a function, or */
	uint8_t is_futures;  /* to slots of futures, or */
	/* to a source, whose futures come later, or */
	bool is_source : 1;
	bool is_sink : 1; /* to a function of the runtime, at once, or */
	bool is_led : 1;  /* where an open route leads: the route is closed */
	uint8_t flags;	  /* RPMA_RT_C_LEASE, or none: of its completions */
};

/* A closed route, whose completions go where an open route leads: a node of the
 * tree of all such routes. The poller's; stays as long as its connection. */
struct rt_led {
	struct rt_led *up;		 /* NULL: the root */
	const struct rt_route_entry *to; /* of the root: of the open route */
	uint32_t size;			 /* of the root: nodes of the tree */
};

/* Joins the tree of these roots, of which each may be NULL, and returns its
 * root. */
struct rt_led *rt_route_led_join(struct rt_led *one, struct rt_led *other);
/* Returns the entry of the open route. */
const struct rt_route_entry *rt_route_led_to(struct rt_led *led);

/* of a CQ's routes to lanes, of which there are eight times as many at most; a
 * power of two */
#define RT_LANE_BUCKETS (RT_ROUTE_COUNT / 8)

/* Allocates the routes of a CQ, every entry free, and behind the routes, in the
 * same block, the empty buckets of routes to lanes. ERRORS: RPMA_E_NOMEM */
int rt_route_table_new(struct rt_route_entry **table_ptr,
		       struct cds_hlist_head **by_lane_ptr);

/* A completion as an item, where no route made its wr_id. Only what is valid is
 * read: on an error four fields are, and the opcode is the one given. */
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
 * The route numbers below RT_ROUTE_FIRST, the same in all CQs of a poller: 0 is
 * for the own work requests of the runtime, from 2 on for SRQs, which take part
 * in a batch as sides do. doc/protocols/wr_id.md, srq.md.
 */

struct rt_cq;
struct rt_poller;

/* of a kind of number; all on the poller */
struct rt_reserved_ops {
	/* a completion with that number; may run the poller's inbox */
	void (*completion)(struct rt_poller *poller, struct rt_cq *cq,
			   const struct ibv_wc *wc);
	/* the rest is NULL for numbers that are never touched. At the end of a
	 * batch in which it was: its credits go back, before the lanes are
	 * published; refused posters are answered, after the fence */
	void (*publish)(void *arg);
	void (*answer)(void *arg);
	/* a lane that got its items in this batch is over its limit, before
	 * publish; that lane is under its limit again */
	void (*held)(void *arg);
	void (*eased)(void *arg);
};

/* one number; free while ops is NULL */
struct rt_reserved {
	const struct rt_reserved_ops *ops;
	void *arg;
	bool touched; /* in this batch */
	struct rt_reserved *touched_next;
};

/* -------------------------------------------------------------- reserve --- */

/*
 * Room in the lane of a poller and a queue for all items that may be delivered
 * there. Under the lock of the runtime.
 */

struct rt_spill;

/* Room for entries more in the lane's spill; *spill_ptr is a larger one for the
 * poller to take, or NULL. ERRORS: RPMA_E_NOMEM */
int rt_reserve_spill(struct rt_lane *lane, uint32_t entries,
		     struct rt_spill **spill_ptr);

/*
 * Reserves room for entries more in the lane between the poller and the queue,
 * and references the queue; *spill_ptr as above. The caller gives both back.
 * REQUIRES: the runtime's lock. ERRORS: RPMA_E_NOMEM, RPMA_RT_E_BUSY (the
 * queue's consumer is behind), RPMA_RT_E_CLOSED (the queue is)
 */
int rt_reserve_lane(struct rt_poller *poller, struct rpma_rt_queue *queue,
		    uint32_t entries, struct rt_lane **lane_ptr,
		    struct rt_spill **spill_ptr);

#endif /* RT_POLLER_ROUTE_H */
