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

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/order.h"
#include "conn/ledger.h"
#include "poller/side.h"

enum rt_gate_state {
	RT_GATE_NOT_YET = 0,
	RT_GATE_OPEN = 1,
	RT_GATE_CLOSED = 2,
	RT_GATE_PAUSED = 3 /* single poster: the control thread is inside */
};

struct rt_gate {
	/* posters, under the lock or as the single one declared, between two
	 * steps of the marker; the ledger is the poller's after HANDOVER */
	alignas(RT_CACHE_LINE) pthread_mutex_t lock;
	_Atomic uint32_t marker; /* odd: the single poster is inside */
	bool single;		 /* immutable */
	struct rt_side *side;	 /* immutable: the poller's part */
	struct rt_ledger ledger;

	/* shared, written seldom */
	alignas(RT_CACHE_LINE) _Atomic uint32_t state; /* enum rt_gate_state */
	_Atomic uint32_t owed; /* for the directory: see RT_OWED_UNKNOWN */
};

/* of rt_gate.owed: not handed over yet; else how many were unfinished when the
 * connection made its last step */
#define RT_OWED_UNKNOWN UINT32_MAX

#define RT_GATE_REFUSED_YET 1

/* Poster. 0: inside, until it leaves. RT_GATE_REFUSED_YET: the gate will open.
 * ERRORS: RPMA_RT_E_CLOSED (it will not), RPMA_E_AGAIN (a poller thread would
 * have to wait) */
int rt_gate_enter(struct rt_gate *gate);
/* Poster, refused with RT_GATE_REFUSED_YET. The same: want is left, and
 * answered behind the event that comes with the opening. 0: the gate has
 * changed, enter again. ERRORS: RPMA_E_AGAIN (as above) */
int rt_gate_await_open(struct rt_gate *gate, uint32_t want);
void rt_gate_leave(struct rt_gate *gate);

/* Control thread. Opened once; never again after it was closed. */
void rt_gate_open(struct rt_gate *gate);
/* When it returns, no poster is inside and none will enter. */
void rt_gate_close(struct rt_gate *gate);
/* The same for a while: nobody is inside until the gate is resumed, or, with
 * is_over, closed. Also by a redirection. */
void rt_gate_pause(struct rt_gate *gate);
void rt_gate_resume(struct rt_gate *gate, bool is_over);

#endif /* RT_CONN_GATE_H */
