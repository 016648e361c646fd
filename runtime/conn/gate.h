/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * gate.h -- the posters' part of a connection's side: the turn, which says
 * whether the side is open and which thread posts, and the ledger, which
 * belongs to the thread that holds the right to post. The control thread opens,
 * pauses and closes. doc/protocols/ledger.md.
 */

#ifndef RT_CONN_GATE_H
#define RT_CONN_GATE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/order.h"
#include "base/turn.h"
#include "conn/ledger.h"

struct rt_gate {
	alignas(RT_CACHE_LINE) struct rt_turn turn;
	/* belongs to the holder of the right; after HANDOVER to the poller */
	struct rt_ledger ledger;
};
static_assert(sizeof(struct rt_gate) == 3 * RT_CACHE_LINE,
	      "a post alone touches two lines of the connection's side");

/* Returns whether the side is closed for good. Thread: any. */
static inline bool rt_gate_is_closed(const struct rt_gate *gate)
{
	return rt_turn_look(&gate->turn) & RT_TURN_CLOSED;
}

/* The following are for the control thread, and for a thread that changes
 * routes. */

/* Closes the gate for good. Waits until no thread is inside a verb and no other
 * thread has paused the gate; afterwards no thread goes inside. */
void rt_gate_close(struct rt_gate *gate);
/* Pauses the gate: waits until no thread is inside a verb; no thread goes
 * inside until the gate is resumed. Waits for the end of another thread's
 * pause. Ledger and line belong to the caller meanwhile, unless the gate is
 * closed. */
void rt_gate_pause(struct rt_gate *gate);
/* Ends a pause. Returns true if the poller has to look at the gate. */
bool rt_gate_resume(struct rt_gate *gate);

#endif /* RT_CONN_GATE_H */
