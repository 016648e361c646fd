/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * gate.h -- the posters' part of a connection's side: the lock, or, where one
 * poster was declared, its marker; the ledger; and whether posting is open.
 * Posters enter and leave, the control thread opens, pauses and closes.
 * doc/protocols/ledger.md.
 */

#ifndef RT_CONN_GATE_H
#define RT_CONN_GATE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/order.h"
#include "base/self.h"
#include "conn/ledger.h"
#include "poller/side.h"

enum rt_gate_state {
	RT_GATE_NOT_YET = 0,
	RT_GATE_OPEN = 1,
	RT_GATE_CLOSED = 2,
	/* open; work requests with a future wait for room, others are behind */
	RT_GATE_WAITING = 3,
	/* a bit beside OPEN and WAITING, of a single poster's: another thread
	 * is inside, or looks whether it may go in */
	RT_GATE_PAUSED = 4
};

/* one cache line, the posters': what others write there they write seldom */
struct rt_gate {
	/* posters, under the lock or as the single one declared, between two
	 * steps of the marker; the ledger is the poller's after HANDOVER */
	alignas(RT_CACHE_LINE) struct rt_lock lock;
	_Atomic uint32_t marker; /* odd: the single poster is inside */
	struct rt_side *side;	 /* immutable: the poller's part */
	struct rt_ledger ledger;
	_Atomic uint32_t owed; /* for the directory: see RT_OWED_UNKNOWN */
	_Atomic uint8_t state; /* enum rt_gate_state */
	bool single;	       /* immutable */
	bool enters_kernel;    /* immutable: see base/verb.h */
};
static_assert(sizeof(struct rt_gate) == RT_CACHE_LINE,
	      "a post touches one line of the connection's side");

/* of rt_gate.owed: not handed over yet; else how many were unfinished when the
 * connection made its last step */
#define RT_OWED_UNKNOWN UINT32_MAX

#define RT_GATE_REFUSED_YET 1
#define RT_GATE_BEHIND	    2

/* Poster. 0: inside, until it leaves; RT_GATE_BEHIND: likewise, and others wait
 * for room. RT_GATE_REFUSED_YET: the gate will open. ERRORS: RPMA_RT_E_CLOSED
 * (it will not), RPMA_E_AGAIN (a poller thread would have to wait) */
static inline int rt_gate_enter(struct rt_gate *gate);
/* Poster, refused with RT_GATE_REFUSED_YET. The same: want is left, and
 * answered behind the event that comes with the opening. 0: the gate has
 * changed, enter again. ERRORS: RPMA_E_AGAIN (as above) */
int rt_gate_await_open(struct rt_gate *gate, uint32_t want);
static inline void rt_gate_leave(struct rt_gate *gate);
/* The side's poller, outside of functions: goes in beside the posters, a single
 * one too, as they do, or goes away. ERRORS: RPMA_E_AGAIN (another thread is
 * inside), as rt_gate_enter() */
int rt_gate_enter_poller(struct rt_gate *gate);
void rt_gate_leave_poller(struct rt_gate *gate);
/* Any thread, also beside a single poster: until rt_gate_let_go() the gate does
 * not change, and no route of its side loses its lane. ERRORS: RPMA_E_AGAIN (a
 * poller; another thread is inside), RPMA_RT_E_CLOSED */
int rt_gate_hold(struct rt_gate *gate);
void rt_gate_let_go(struct rt_gate *gate);
/* Poster, or poller, inside: from here on some wait for room, or none does any
 * more; or the gate is closed, for what is left of a link. */
void rt_gate_set_waiting(struct rt_gate *gate, bool is_waiting);
void rt_gate_close_inside(struct rt_gate *gate);
/* Inside: a verb refused the newest count entries of the ledger, which complete
 * as not posted when the connection ends. Closes the gate. */
__attribute__((cold)) void rt_gate_refuse(struct rt_gate *gate, uint32_t count);
/* Does it stay closed? No post that finds it so is answered later. */
bool rt_gate_is_closed(const struct rt_gate *gate);

/* Control thread. Opened once; never again after it was closed. */
void rt_gate_open(struct rt_gate *gate);
/* When it returns, no poster is inside and none will enter. */
void rt_gate_close(struct rt_gate *gate);
/* The same for a while: nobody is inside until the gate is resumed, or, with
 * is_over, closed. Also by a redirection. */
void rt_gate_pause(struct rt_gate *gate);
void rt_gate_resume(struct rt_gate *gate, bool is_over);

/* -------------------------------------------- inline: each post does it --- */

/* The same where it is no lock, where the caller must not wait for it, and for
 * the caller that has it and finds the gate not open. The latter two are not
 * for a single poster. */
int rt_gate_enter_single(struct rt_gate *gate);
int rt_gate_try_enter(struct rt_gate *gate);
int rt_gate_refuse_locked(struct rt_gate *gate);

static inline bool rt_gate_is_open(const struct rt_gate *gate)
{
	/* relaxed: the lock orders it; the poller's early CLOSED is a hint */
	return atomic_load_explicit(&gate->state, memory_order_relaxed) ==
	       RT_GATE_OPEN;
}

static inline int rt_gate_enter(struct rt_gate *gate)
{
	if (gate->single)
		return rt_gate_enter_single(gate);
	/* a poller never waits for another thread's post */
	if (__builtin_expect(rt_self_is_poller(), 0))
		return rt_gate_try_enter(gate);
	rt_lock_take(&gate->lock);
	return __builtin_expect(rt_gate_is_open(gate), 1)
		       ? 0
		       : rt_gate_refuse_locked(gate);
}

/* Inside the gate: rt_ledger_append() to the side. */
static inline void rt_gate_append(struct rt_gate *gate, uint64_t wr_id,
				  uint8_t opcode, bool signaled)
{
	rt_ledger_append(&gate->ledger, wr_id, opcode, signaled);
	/* relaxed, both: posting it orders it before its completion */
	if (!signaled && !atomic_load_explicit(&gate->side->has_unsignaled,
					       memory_order_relaxed))
		atomic_store_explicit(&gate->side->has_unsignaled, true,
				      memory_order_relaxed);
}

static inline void rt_gate_leave_single(struct rt_gate *gate)
{
	/* relaxed: its own word. Release: the ledger and the queue pair are
	 * the control thread's once it sees this [GATE-2] */
	atomic_store_explicit(
		&gate->marker,
		atomic_load_explicit(&gate->marker, memory_order_relaxed) + 1,
		memory_order_release);
}

static inline void rt_gate_leave(struct rt_gate *gate)
{
	if (gate->single)
		rt_gate_leave_single(gate);
	else
		rt_lock_release(&gate->lock);
}

#endif /* RT_CONN_GATE_H */
