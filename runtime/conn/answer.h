/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * answer.h -- a refused post of a connection may be tried again: WRITABLE, in
 * its queue or to the function inside which it was refused. What ends in
 * _poller runs on its poller. doc/protocols/ledger.md, callback.md.
 */

#ifndef RT_CONN_ANSWER_H
#define RT_CONN_ANSWER_H

#include "conn/conn.h"

/* There is credit, or room in a lane: answers these wants of the side. */
void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants);
/* By the side's operation: the rt_side waited for a lane, whose backlog has
 * cleared. */
void rt_answer_eased_poller(void *arg);
/* Another thread is inside the gate: by the side's operation in the next
 * round. */
void rt_answer_put_off_poller(struct rt_side *side, uint32_t wants);

struct rt_route_opened;
/* Inside running's function: a post to that side of its own connection would
 * have to wait for another thread. The function gets WRITABLE in the next
 * round. */
void rt_answer_lock_inside(struct rt_route_opened *running, int side);
/* Inside a function of another connection, on any poller: likewise, and the
 * connection's queue gets WRITABLE. ERRORS: RPMA_E_AGAIN; RPMA_RT_E_CLOSED, and
 * nothing follows */
int rt_answer_lock(struct rpma_rt_conn *conn, int side);
/* Inside the gate, by a post that listed its waiter and goes on after all: the
 * poller may have put LOCK off, found that waiter listed, and eased the lane
 * before it was on the stack. */
void rt_answer_lock_left(struct rt_side *side);

#endif /* RT_CONN_ANSWER_H */
