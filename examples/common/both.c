/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See both.h. */

#include "both.h"

#include <stdlib.h>

#include "peer.h"

#define PAGE 4096

int both_usage(int argc, char **argv)
{
	if (argc == 2)
		return 0;
	fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
	return 2;
}

int both_open(struct both *both, const char *address,
	      const struct rpma_rt_cfg *cfg)
{
	const int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;

	*both = (struct both){.address = address,
			      .page = aligned_alloc(PAGE, PAGE)};
	if (both->page == NULL)
		return RPMA_E_NOMEM;
	if (open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &both->peer) ||
	    TRY(rpma_mr_reg(both->peer, both->page, PAGE, usage, &both->mr)))
		return RPMA_E_PROVIDER;
	return TRY(rpma_rt_new(cfg, &both->rt));
}

int both_stop(struct both *both)
{
	rpma_rt_listener_delete(&both->listener);
	return both->rt ? TRY(rpma_rt_stop(both->rt)) : 0;
}

void both_close(struct both *both)
{
	if (both->pool != NULL)
		TRY(rpma_rt_pool_delete(&both->pool));
	TRY(rpma_rt_delete(&both->rt));
	rpma_mr_dereg(&both->mr);
	rpma_peer_delete(&both->peer);
	free(both->page);
}

int both_listen(struct both *both, struct rpma_rt_queue *queue)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	uint16_t port = 0;
	int ret;

	cfg.peer = both->peer;
	cfg.queue = queue;
	cfg.pool = both->pool;
	cfg.futures = both->futures;
	ret = TRY(rpma_rt_listen(both->rt, both->address, "0", &cfg,
				 &both->listener)) ||
	      TRY(rpma_rt_listener_get_port(both->listener, &port));
	snprintf(both->port, sizeof(both->port), "%u", port);
	return ret;
}

int both_connect(struct both *both, struct rpma_rt_queue *queue,
		 struct end *end)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;

	cfg.peer = both->peer;
	cfg.queue = queue;
	cfg.futures = both->futures;
	cfg.user = end;
	cfg.pool = both->pool;
	return TRY(rpma_rt_conn_new(both->rt, both->address, both->port, &cfg,
				    &end->conn));
}

int both_refuse(struct rpma_rt_conn *conn)
{
	int ret = TRY(rpma_rt_conn_reject(conn, NULL));

	rpma_rt_conn_unref(&conn);
	return ret;
}

void end_init(struct both *both, struct end *end, int number)
{
	*end = (struct end){.number = number,
			    .in = both->used,
			    .out = both->used + MESSAGE};
	both->used += 2 * MESSAGE;
}

int end_receive(struct both *both, struct end *end)
{
	return TRY(rpma_rt_recv(end->conn, both->mr, end->in, MESSAGE, 0));
}

/* Posts a receive, before the first message of the peer can arrive. */
static int prepare(struct both *both, struct end *end)
{
	return both->pool == NULL && end_receive(both, end);
}

int end_connect(struct both *both, struct end *end)
{
	return prepare(both, end) || TRY(rpma_rt_conn_connect(end->conn, NULL));
}

int end_accept(struct both *both, struct end *end, struct rpma_rt_conn *conn)
{
	end->conn = conn;
	return TRY(rpma_rt_conn_set_user(conn, end)) || prepare(both, end) ||
	       TRY(rpma_rt_conn_accept(conn, NULL));
}

int end_event(struct both *both, const struct rpma_rt_completion *event)
{
	struct end *end = event->user;

	if (rpma_rt_completion_event(event) == RPMA_RT_EVENT_READY)
		return end_connect(both, end);
	/* without an end if the connection was refused */
	if (rpma_rt_completion_event(event) == RPMA_RT_EVENT_CLOSED && end)
		end->is_closed = true;
	return 0;
}

int end_send_again(struct both *both, struct end *end)
{
	/* no completion is needed: the answer says that the message has
	 * arrived */
	int ret = rpma_rt_send(end->conn, both->mr, end->out, MESSAGE,
			       RPMA_F_COMPLETION_ON_ERROR, 0);

	return ret == RPMA_E_AGAIN ? 0 : rt_check("rpma_rt_send", ret);
}

int end_send(struct both *both, struct end *end, const char *text)
{
	snprintf(both->page + end->out, MESSAGE, "%s", text);
	return end_send_again(both, end);
}

const char *end_heard(const struct both *both, const struct end *end)
{
	return both->page + end->in;
}
