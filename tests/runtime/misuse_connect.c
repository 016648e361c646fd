/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * misuse_connect.c -- connecting with parameters that no provider takes.
 */

#include "misuse.h"

/* More than any provider takes: known only when it is tried, so by the end of
 * the connection. */
void connect__too_much_private_data_FAILED(struct stage *s)
{
	char bytes[UINT8_MAX] = {0};
	const struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;

	listener = world_listen(&s->world, s->cfg, s->pq);
	conn = stage_ready(s);
	MUST(rpma_rt_conn_connect(conn, &pdata));
	world_closed(s->aq, &conn, RPMA_RT_REASON_FAILED);
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
	pair.active = stage_begin(s);
	pair.passive = world_request(s->pq);
	if (accepts)
		MUST(rpma_rt_conn_accept(pair.passive, &pdata));
	else
		MUST(rpma_rt_conn_reject(pair.passive, &pdata));
	world_closed(s->pq, &pair.passive,
		     accepts ? RPMA_RT_REASON_FAILED : RPMA_RT_REASON_LOCAL);
	world_closed(s->aq, &pair.active, RPMA_RT_REASON_REJECTED);
	world_unlisten(&listener, s->pq);
}
