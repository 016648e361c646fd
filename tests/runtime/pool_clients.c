/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool_clients.c CLIENTS [idle|srqs] -- clients of a server, on default
 * configurations: each end has its receives from a pool and sends from slots of
 * that pool. Every connection has a receive, a slot to send from is there each
 * time, and every question has an answer: of 64 clients, whose receives the
 * pool has; of 200, for whom eight receives each would be more than the pool
 * has, and of whom all but one are idle and hold their receives; and where the
 * server has four pollers, with an SRQ of the same pool each.
 */

#include <stdlib.h>
#include <string.h>

#include "world.h"

#define CLIENTS	  200 /* most */
#define QUESTIONS 20  /* of each client */
#define POLLERS	  4   /* with SRQs */

struct site {
	struct world world;
	struct rpma_rt_pool *pools[2]; /* of the clients, and of the server */
	struct rpma_rt_queue *queues[2];
	struct rpma_rt_conn *conns[2][CLIENTS];
	struct rpma_rt_lease sent[2][RPMA_RT_DEFAULT_POOL_COUNT]; /* by slot */
	struct rpma_rt_srq *srqs[POLLERS];
	int clients;
	bool is_idle; /* one client asks at a time, the last first */
	bool has_srqs;
	int answers[CLIENTS]; /* of each client */
	int established;
	int closed;
};

enum { CLIENT, SERVER };

static struct rpma_rt_pool *open_pool(const struct site *s)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;
	struct rpma_rt_pool *pool;

	cfg.peer = s->world.peer;
	MUST(rpma_rt_pool_new(s->world.rt, &cfg, &pool));
	return pool;
}

/* Sends a number from a slot of the end's pool. */
static void say(struct site *s, int end, struct rpma_rt_conn *conn,
		uint32_t number)
{
	struct rpma_rt_lease lease;

	MUST(rpma_rt_pool_take(s->pools[end], &lease));
	memcpy(lease.data, &number, sizeof(number));
	s->sent[end][lease.slot] = lease;
	MUST(rpma_rt_send(conn, lease.mr, lease.offset, sizeof(number),
			  RPMA_F_COMPLETION_ALWAYS, lease.slot));
}

static void hear(struct site *s, int end, const struct rpma_rt_completion *item,
		 const struct rpma_rt_lease *message)
{
	struct rpma_rt_conn *conn = item->user;
	uint32_t number;
	uint32_t client;

	CHECK(message->len == sizeof(number));
	memcpy(&number, message->data, sizeof(number));
	MUST(rpma_rt_lease_release(message));
	client = number % (uint32_t)s->clients;
	if (end == SERVER) {
		say(s, SERVER, s->conns[SERVER][client], number);
		return;
	}
	CHECK(conn == NULL);
	CHECK((int)number / s->clients == s->answers[client]);
	if (++s->answers[client] < QUESTIONS)
		say(s, CLIENT, s->conns[CLIENT][client],
		    number + (uint32_t)s->clients);
	else
		MUST(rpma_rt_conn_close(s->conns[CLIENT][client]));
	if (s->is_idle && s->answers[client] == QUESTIONS && client > 0)
		say(s, CLIENT, s->conns[CLIENT][client - 1], client - 1);
}

static void event(struct site *s, const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(item);
	struct rpma_conn_private_data pdata;
	uint32_t index;

	switch (rpma_rt_completion_event(item)) {
	case RPMA_RT_EVENT_READY:
		for (index = 0; s->conns[CLIENT][index] != conn;)
			index++;
		pdata.ptr = &index;
		pdata.len = sizeof(index);
		MUST(rpma_rt_conn_connect(conn, &pdata));
		break;
	case RPMA_RT_EVENT_REQUEST:
		MUST(rpma_rt_conn_get_private_data(conn, &pdata));
		memcpy(&index, pdata.ptr, sizeof(index));
		CHECK(index < (uint32_t)s->clients);
		s->conns[SERVER][index] = conn;
		MUST(rpma_rt_conn_accept(conn, NULL));
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		s->established++;
		break;
	case RPMA_RT_EVENT_CLOSED:
		s->closed++;
		MUST(rpma_rt_conn_unref(&conn));
		break;
	}
}

/* Takes what there is for one end. */
static void serve(struct site *s, int end)
{
	struct rpma_rt_completion items[16];
	struct rpma_rt_lease lease;
	int n = rpma_rt_queue_wait(s->queues[end], items, 16, 1);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		if (rpma_rt_completion_lease(&items[i], &lease))
			hear(s, end, &items[i], &lease);
		else if (items[i].kind == RPMA_RT_COMPLETION)
			MUST(rpma_rt_lease_release(
				&s->sent[end][items[i].context]));
		else
			event(s, &items[i]);
	}
}

/* Makes an SRQ of each poller, for the server. */
static void open_srqs(struct site *s, struct rpma_rt_conn_cfg *conn_cfg)
{
	struct rpma_rt_srq_cfg cfg = RPMA_RT_SRQ_CFG_INIT;

	cfg.peer = s->world.peer;
	cfg.pool = s->pools[SERVER];
	cfg.queue = s->queues[SERVER];
	for (int i = 0; i < POLLERS; i++) {
		cfg.poller = i;
		MUST(rpma_rt_srq_new(s->world.rt, &cfg, &s->srqs[i]));
	}
	conn_cfg->srqs = s->srqs;
	conn_cfg->srq_count = POLLERS;
}

static void open_site(struct site *s, struct rpma_rt_listener **listener)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_cfg rt_cfg = RPMA_RT_CFG_INIT;
	uint16_t port;

	world_open(&s->world);
	rt_cfg.pollers = s->has_srqs ? POLLERS : 1;
	MUST(rpma_rt_new(&rt_cfg, &s->world.rt));
	for (int end = CLIENT; end <= SERVER; end++) {
		s->pools[end] = open_pool(s);
		MUST(rpma_rt_queue_new(s->world.rt, NULL, &s->queues[end]));
	}
	cfg.peer = s->world.peer;
	if (s->has_srqs)
		open_srqs(s, &cfg);
	else
		cfg.pool = s->pools[SERVER];
	cfg.queue = s->queues[SERVER];
	MUST(rpma_rt_listen(s->world.rt, s->world.addr, "0", &cfg, listener));
	MUST(rpma_rt_listener_get_port(*listener, &port));
	snprintf(s->world.port, sizeof(s->world.port), "%u", port);
	cfg.srqs = NULL;
	cfg.srq_count = 0;
	cfg.pool = s->pools[CLIENT];
	cfg.queue = s->queues[CLIENT];
	for (int i = 0; i < s->clients; i++)
		MUST(rpma_rt_conn_new(s->world.rt, s->world.addr, s->world.port,
				      &cfg, &s->conns[CLIENT][i]));
}

static void close_site(struct site *s)
{
	for (int i = 0; s->has_srqs && i < POLLERS; i++)
		MUST(rpma_rt_srq_delete(&s->srqs[i]));
	MUST(rpma_rt_stop(s->world.rt));
	for (int end = CLIENT; end <= SERVER; end++) {
		MUST(rpma_rt_queue_delete(&s->queues[end]));
		MUST(rpma_rt_pool_delete(&s->pools[end]));
	}
	MUST(rpma_rt_delete(&s->world.rt));
	world_close(&s->world);
}

int main(int argc, char **argv)
{
	static struct site site;
	struct rpma_rt_listener *listener;

	site.clients = argc > 1 ? atoi(argv[1]) : 64;
	site.is_idle = argc > 2 && strcmp(argv[2], "idle") == 0;
	site.has_srqs = argc > 2 && strcmp(argv[2], "srqs") == 0;
	CHECK(site.clients > 0 && site.clients <= CLIENTS);
	open_site(&site, &listener);
	while (site.established < 2 * site.clients) {
		serve(&site, CLIENT);
		serve(&site, SERVER);
	}
	for (int i = site.is_idle ? site.clients - 1 : 0; i < site.clients; i++)
		say(&site, CLIENT, site.conns[CLIENT][i], (uint32_t)i);
	while (site.closed < 2 * site.clients) {
		serve(&site, CLIENT);
		serve(&site, SERVER);
	}
	for (int i = 0; i < site.clients; i++)
		CHECK(site.answers[i] == QUESTIONS);
	MUST(rpma_rt_listener_delete(&listener));
	close_site(&site);
	printf("%d clients, %d answers each\n", site.clients, QUESTIONS);
	return 0;
}
