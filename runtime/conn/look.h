/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * look.h -- the message by which any thread asks a connection's poller to look
 * at both sides: work requests that were published and not posted, places that
 * came back unposted, posts refused for a lane's backlog, a drain. The poller's
 * part is rt_answer_look(). doc/protocols/ledger.md.
 */

#ifndef RT_CONN_LOOK_H
#define RT_CONN_LOOK_H

#include "conn/conn.h"

/* of rt_side.awaited: posts to several routes were refused */
#define RT_LOOK_MANY UINT32_MAX

/* Sends the message, unless it is on its way. Thread: any that has a handle of
 * the connection. */
void rt_look_send(struct rpma_rt_conn *conn);
/* A post to that route was refused for the backlog of its lane, and has left
 * what it wants: the poller answers when the lane has eased. Thread: as
 * above. */
void rt_look_await(struct rpma_rt_conn *conn, const struct rpma_rt_route *route,
		   enum rpma_rt_side side);

#endif /* RT_CONN_LOOK_H */
