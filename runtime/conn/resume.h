/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resume.h -- what waits for room on a side of a connection, on its poller:
 * posted when room comes, before refused posters are answered; completed as not
 * posted at the end of the connection. doc/protocols/future.md.
 */

#ifndef RT_CONN_RESUME_H
#define RT_CONN_RESUME_H

#include <stdbool.h>

#include "conn/conn.h"

/* The side's operation; see rt_answer_poller(). */
void rt_resume_answer_poller(struct rt_side *side, struct rt_poller *poller,
			     uint32_t wants);

/* After HANDOVER: the next one that waits, whose future ends, as an item for
 * the side's futures. False: none is left. */
bool rt_resume_take_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			   struct rpma_rt_completion *item);

#endif /* RT_CONN_RESUME_H */
