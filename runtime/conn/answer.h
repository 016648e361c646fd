/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * answer.h -- a refused post of a connection may be tried again: WRITABLE, in
 * its queue or to the function inside which it was refused. Runs on its
 * poller. doc/protocols/ledger.md, callback.md.
 */

#ifndef RT_CONN_ANSWER_H
#define RT_CONN_ANSWER_H

#include "conn/conn.h"

/* There is credit, or room in a lane: answers these wants of the side. */
void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants);
/* The same of the rt_side that waited for a lane, whose backlog has cleared. */
void rt_answer_eased_poller(void *arg);

struct rpma_rt_route;
/* Inside running's function: a post to that side of its own connection had to
 * wait for another thread. The function gets WRITABLE in the next round. */
void rt_answer_retry_lock(struct rpma_rt_route *running, int side);

#endif /* RT_CONN_ANSWER_H */
