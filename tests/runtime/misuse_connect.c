/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * misuse_connect.c -- connecting with parameters that no provider takes.
 */

#include "misuse.h"

static struct rpma_rt_conn *begin(struct stage *s)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(s->world.rt, s->world.peer, s->world.addr,
			    s->world.port, s->cfg, 0, s->aq, NULL, &conn));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	return conn;
}

/* More than any provider takes: known only when it is tried, so by the end of
 * the connection. */
void connect__too_much_private_data_FAILED(struct stage *s)
{
	char bytes[UINT8_MAX] = {0};
	const struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;

	listener = world_listen(&s->world, s->cfg, s->pq);
	conn = begin(s);
	MUST(rpma_rt_conn_connect(conn, &pdata));
	CHECK(world_event(s->aq, RPMA_RT_EVENT_CLOSED).status ==
	      RPMA_RT_REASON_FAILED);
	MUST(rpma_rt_conn_unref(&conn));
	world_unlisten(&listener, s->pq);
}

/* Too much data in an answer, of either kind: the other end is refused. */
void answer__too_much_private_data(struct stage *s, bool accepts)
{
	char bytes[UINT8_MAX] = {0};
	const struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
	struct rpma_rt_listener *listener;
	struct world_pair pair;

	listener = world_listen(&s->world, s->cfg, s->pq);
	pair.active = begin(s);
	MUST(rpma_rt_conn_connect(pair.active, NULL));
	pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
			       s->pq, RPMA_RT_EVENT_REQUEST)
			       .context;
	if (accepts)
		MUST(rpma_rt_conn_accept(pair.passive, &pdata));
	else
		MUST(rpma_rt_conn_reject(pair.passive, &pdata));
	CHECK(world_event(s->pq, RPMA_RT_EVENT_CLOSED).status ==
	      (accepts ? RPMA_RT_REASON_FAILED : RPMA_RT_REASON_LOCAL));
	CHECK(world_event(s->aq, RPMA_RT_EVENT_CLOSED).status ==
	      RPMA_RT_REASON_REJECTED);
	world_unref(&pair);
	world_unlisten(&listener, s->pq);
}
