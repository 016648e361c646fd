/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hold.h -- a thread with the right to post to a side of a connection posts the
 * line, gives the right back, and then does everything that may not be done
 * inside: logs, messages, closing. doc/protocols/ledger.md.
 */

#ifndef RT_CONN_HOLD_H
#define RT_CONN_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lang.h"
#include "base/line.h"
#include "base/wr.h"
#include "conn/conn.h"
#include "conn/reason.h"
#include "poller/post.h"

/* value of rt_side.awaited: posts to several routes were refused */
#define RT_LOOK_MANY UINT32_MAX

/*
 * Asks the connection's poller to look at both sides: for work requests that
 * were published and not posted, places that came back unposted, posts refused
 * for a lane's backlog, a drain. rt_answer_look() is the poller's part. Does
 * nothing while such a message is on its way. Thread: any that has a handle of
 * the connection.
 */
void rt_look_send(struct rpma_rt_conn *conn);

/* Posts the published work requests and gives the right back. Called with the
 * right. */
void rt_hold_published(struct rpma_rt_conn *conn, enum rpma_rt_side side);
/* Closes the side: the device refused work requests that the thread posted
 * alone. Nothing is posted to the side any more. */
__attribute__((cold)) void rt_hold_refused(struct rpma_rt_conn *conn,
					   enum rpma_rt_side side,
					   uint64_t seen);
/* Posts the line, if no thread has the right. On the poller, after the fence of
 * its batch. */
void rt_hold_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side);
/* Gives the right back without posting, because the thread has a lock: for the
 * dump. The poller posts what was published meanwhile. */
static inline void rt_hold_let_go(struct rpma_rt_conn *conn,
				  enum rpma_rt_side side)
{
	if (rt_turn_let_go(&conn->gate[side].turn))
		rt_look_send(conn);
}

/* Returns whether there may be cancelled work requests in line. Thread: any. */
static inline bool rt_hold_has_cancelled(const struct rpma_rt_conn *conn,
					 enum rpma_rt_side side)
{
	const struct rt_futures *futures = conn->side[side].futures;

	/* relaxed: a hint */
	return futures != NULL &&
	       atomic_load_explicit(&futures->cancelled, memory_order_relaxed) >
		       0;
}
/* Takes cancelled work requests out of line, if no thread has the right.
 * Returns true if places may have come back. */
bool rt_hold_sweep(struct rpma_rt_conn *conn, enum rpma_rt_side side);

/* Tells the poller that slots were given back unposted: a thread that was
 * refused for want of places may go on. REQUIRES: the caller does not hold the
 * right */
void rt_hold_tell_places(struct rpma_rt_conn *conn, enum rpma_rt_side side);

/* Ends the keeping of rights to post to the connections of a list, except where
 * the keeper is inside: for the dump, which reads ledgers. */
void rt_hold_recall(struct rpma_rt_conn *conn);

/* Gives the right back, after a thread took the right alone at the word `seen`
 * and has posted; posts what was published meanwhile. Inline for the usual case
 * that nothing was published. */
static inline void rt_hold_leave(struct rpma_rt_conn *conn,
				 enum rpma_rt_side side, uint64_t seen)
{
	if (unlikely(!rt_turn_leave_alone(&conn->gate[side].turn, seen)))
		rt_hold_published(conn, side);
}

/* Follows rt_turn_take_alone() that has returned false. */
static inline void rt_hold_answer_recall(struct rpma_rt_conn *conn,
					 enum rpma_rt_side side, uint64_t seen)
{
	if (unlikely(rt_turn_answer_recall(&conn->gate[side].turn, seen)))
		rt_hold_published(conn, side);
}

/*
 * Begins a row of entries for the work requests that the device gets next:
 * until rt_hold_end_row() nothing else looks at the ledger.
 */
static inline struct rt_ledger_pen rt_hold_begin_row(struct rpma_rt_conn *conn,
						     enum rpma_rt_side side)
{
	return rt_ledger_begin(&conn->gate[side].ledger);
}

/* Appends an entry. Returns whether the work request has to be signaled. */
static inline bool rt_hold_append(struct rt_ledger_pen *pen, uint64_t wr_id,
				  uint8_t opcode, uint32_t tick)
{
	/* two calls, because an append of a constant kind is shorter */
	if ((wr_id & RT_ON_ERROR_ONLY) && likely(!rt_ledger_must_signal(pen))) {
		rt_ledger_append(pen, wr_id, opcode, false, tick);
		return false;
	}
	rt_ledger_append(pen, wr_id, opcode, true, tick);
	return true;
}

static inline void rt_hold_end_row(struct rpma_rt_conn *conn,
				   enum rpma_rt_side side,
				   const struct rt_ledger_pen *pen)
{
	rt_ledger_end(pen);
	if (likely(!pen->has_group || pen->ledger->is_marked))
		return;
	pen->ledger->is_marked = true;
	rt_side_mark(&conn->side[side], RT_SIDE_UNSIGNALED);
}

/* Appends a signaled entry that ends a group. Out of line: one of many entries
 * does. */
__attribute__((cold)) void rt_hold_append_end(struct rpma_rt_conn *conn,
					      enum rpma_rt_side side,
					      uint64_t wr_id, uint8_t opcode,
					      uint32_t tick);

/* Appends a single entry. Returns whether the work request has to be
 * signaled. */
static inline bool rt_hold_append_one(struct rpma_rt_conn *conn,
				      enum rpma_rt_side side, uint64_t wr_id,
				      uint8_t opcode, uint32_t tick)
{
	struct rt_ledger *ledger = &conn->gate[side].ledger;

	/* without a pen, whose copies of the words would cost more than the
	 * entry */
	if ((wr_id & RT_ON_ERROR_ONLY) &&
	    rt_ledger_append_unsignaled(ledger, wr_id, opcode, tick))
		return false;
	if (unlikely(ledger->in_group))
		rt_hold_append_end(conn, side, wr_id, opcode, tick);
	else
		rt_ledger_append_alone(ledger, wr_id, opcode, tick);
	return true;
}

/* Gives n appended work requests, linked by their `next`, to the device;
 * returns how many the device took. */
static inline int rt_hold_give_linked_sends(struct rpma_rt_conn *conn,
					    struct rpma_send_wr *chain, int n)
{
	struct ibv_send_wr *bad = NULL;
	int err = rt_verb_post_send(conn->verb_is_plain, conn->qp, &chain[0].wr,
				    &bad);

	if (likely(err == 0))
		return n;
	rt_reason_refused(conn, err);
	/* without a look at the chain where the answer is known */
	return bad != NULL && n > 1 ? (int)((struct rpma_send_wr *)bad - chain)
				    : 0;
}

static inline int rt_hold_give_linked_recvs(struct rpma_rt_conn *conn,
					    struct rpma_recv_wr *chain, int n)
{
	struct ibv_recv_wr *bad = NULL;
	/* by the queue pair, because the request may become a connection
	 * meanwhile */
	int err = rt_verb_post_recv(conn->verb_is_plain, conn->qp, &chain[0].wr,
				    &bad);

	if (likely(err == 0))
		return n;
	rt_reason_refused(conn, err);
	return bad != NULL && n > 1 ? (int)((struct rpma_recv_wr *)bad - chain)
				    : 0;
}

/* Links a chain of n work requests, and gives the chain to the device. */

static inline int rt_hold_give_sends(struct rpma_rt_conn *conn,
				     struct rpma_send_wr *chain, int n)
{
	int i;

	for (i = 1; i < n; i++)
		chain[i - 1].wr.next = &chain[i].wr;
	chain[n - 1].wr.next = NULL;
	return rt_hold_give_linked_sends(conn, chain, n);
}

static inline int rt_hold_give_recvs(struct rpma_rt_conn *conn,
				     struct rpma_recv_wr *chain, int n)
{
	int i;

	for (i = 1; i < n; i++)
		chain[i - 1].wr.next = &chain[i].wr;
	chain[n - 1].wr.next = NULL;
	return rt_hold_give_linked_recvs(conn, chain, n);
}

/* Shows other threads how much was posted: the device has everything that was
 * appended, and the slots were given back. */
static inline void rt_hold_show_posted(struct rpma_rt_conn *conn,
				       enum rpma_rt_side side)
{
	struct rt_ledger *ledger = &conn->gate[side].ledger;

	/* relaxed: with an older count a thread counts too few outstanding work
	 * requests, never too many */
	atomic_store_explicit(&ledger->posted, ledger->tail,
			      memory_order_relaxed);
}

/*
 * Returns whether a work request of the route is outstanding or in line.
 * *retired: when so many entries have retired, no work request of the route is
 * left. Called by a thread that has paused the gate.
 */
bool rt_hold_find_last(struct rpma_rt_conn *conn, enum rpma_rt_side side,
		       uint32_t route, uint32_t *retired);

/* Takes the next work request in line, of a side that is handed over to the
 * poller, as an entry of a ledger. Returns false if the line is empty. */
bool rt_hold_take_unposted(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			   struct rt_ledger_entry *entry);

/* Returns how many slots may be in use, with the present room of the queue.
 * Thread: any. */
static inline uint32_t rt_hold_limit(const struct rpma_rt_conn *conn,
				     enum rpma_rt_side side)
{
	const struct rt_gate *gate = &conn->gate[side];
	/* acquire [LEDGER-1]: pairs with the release in rt_side_publish(); with
	 * the place comes the backlog flag that was set before */
	uint32_t retired = atomic_load_explicit(&conn->side[side].retired,
						memory_order_acquire);

	/* relaxed: see rt_hold_show_posted() */
	return rt_line_limit(&gate->turn,
			     atomic_load_explicit(&gate->ledger.posted,
						  memory_order_relaxed),
			     retired);
}

/* Returns how many places of the side are free. Thread: any. */
static inline uint32_t rt_hold_places(const struct rpma_rt_conn *conn,
				      enum rpma_rt_side side)
{
	return rt_post_places(&conn->gate[side].turn,
			      rt_hold_limit(conn, side));
}

/* Returns how many completions of the side may come that no poster can hold
 * back any more: of the queue, of the line and of slots. */
static inline uint32_t rt_hold_items(const struct rpma_rt_conn *conn,
				     enum rpma_rt_side side)
{
	const struct rt_gate *gate = &conn->gate[side];

	return gate->ledger.depth + rt_line_of(&gate->turn)->slots;
}

/* Returns whether the queue has room for `count` more work requests. Called
 * with the right. */
static inline bool rt_hold_has_room(struct rpma_rt_conn *conn,
				    enum rpma_rt_side side, uint32_t count)
{
	struct rt_ledger *ledger = &conn->gate[side].ledger;

	if (likely(rt_ledger_room(ledger) >= count))
		return true;
	/* acquire [LEDGER-1]: pairs with the release in rt_side_publish(); with
	 * the room comes the backlog flag that was set before */
	rt_ledger_reap(ledger, atomic_load_explicit(&conn->side[side].retired,
						    memory_order_acquire));
	return rt_ledger_room(ledger) >= count;
}

#endif /* RT_CONN_HOLD_H */
