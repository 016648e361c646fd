/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * gate.h -- who is inside a post: the gate of a connection's side, its lock,
 * or, where one poster was declared, its marker. Posters enter and leave, the
 * control thread opens, pauses and closes. doc/protocols/ledger.md.
 */

#ifndef RT_CONN_GATE_H
#define RT_CONN_GATE_H

#include "conn/conn.h"

#define RT_GATE_REFUSED_YET 1

/* Poster. 0: inside, until it leaves. RT_GATE_REFUSED_YET: the gate will open.
 * ERRORS: RPMA_RT_E_CLOSED (it will not), RPMA_E_AGAIN (a poller thread would
 * have to wait) */
int rt_gate_enter(struct rt_side *side);
/* Poster, refused with RT_GATE_REFUSED_YET. The same: want is left, and
 * answered behind the event that comes with the opening. 0: the gate has
 * changed, enter again. ERRORS: RPMA_E_AGAIN (as above) */
int rt_gate_await_open(struct rt_side *side, uint32_t want);
void rt_gate_leave(struct rt_side *side);

/* Control thread. Opened once; never again after it was closed. */
void rt_gate_open(struct rt_side *side);
/* When it returns nobody is inside and nobody will enter. */
void rt_gate_close(struct rt_side *side);
/* The same for a while: nobody is inside until the side is resumed, or, with
 * is_over, closed. */
void rt_gate_pause(struct rt_side *side);
void rt_gate_resume(struct rt_side *side, bool is_over);

#endif /* RT_CONN_GATE_H */
