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

/* The side's operation. There is credit, or room in a lane: posts what stands
 * in line, and answers these wants of the side. */
void rt_answer_poller(struct rt_side *side, struct rt_poller *poller,
		      uint32_t wants);
/* The look message of a connection; see look.h. */
void rt_answer_look(struct rt_msg *msg, void *owner);
/* The rt_side waited for a lane, whose backlog has cleared. */
void rt_answer_eased_poller(void *arg);

#endif /* RT_CONN_ANSWER_H */
