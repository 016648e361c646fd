/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shards ADDRESS: a server of two shards. Clients ask for a ticket, and the
 * shard of the connection answers; shard 0 has the tickets, and other shards
 * ask shard 0 by a message. The clients are on the shards, too.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../common/both.h"

#define SHARDS	2
#define CLIENTS 4

/* private data of the thread of a shard */
struct core {
	struct rpma_rt_shard *shard;
	pthread_t thread;
	uint32_t index;
	uint64_t tickets;	    /* tickets given out, on shard 0 */
	struct end *waits[CLIENTS]; /* clients whose request was refused */
	int waiting;
	struct end servers[CLIENTS];
	int accepted;
};

static struct both both;
static struct rpma_rt_shards *shards;
static struct core cores[SHARDS];
static struct end clients[CLIENTS];
static _Atomic int answered;

/* ------------------------------------------------------------- messages --- */

static void ask(struct core *core, struct end *end)
{
	struct rpma_rt_shard_message message = {.context = (uintptr_t)end};

	if (rpma_rt_shard_request(core->shard, 0, &message) == RPMA_E_AGAIN)
		core->waits[core->waiting++] = end;
}

static void on_message(struct rpma_rt_shard *shard,
		       const struct rpma_rt_shard_message *message, void *arg)
{
	struct rpma_rt_shard_message answer = {0};
	struct core *core = arg;
	char text[MESSAGE];
	int waiting;

	switch (message->kind) {
	case RPMA_RT_SHARD_REQUEST:
		answer.words[0] = ++core->tickets;
		TRY(rpma_rt_shard_answer(shard, message, &answer));
		break;
	case RPMA_RT_SHARD_ANSWER:
		snprintf(text, sizeof(text), "ticket %" PRIu64 ", by shard %u",
			 message->words[0], message->from);
		end_send(&both, (struct end *)(uintptr_t)message->context,
			 text);
		break;
	case RPMA_RT_SHARD_WRITABLE:
		waiting = core->waiting;
		core->waiting = 0;
		while (waiting > 0)
			ask(core, core->waits[--waiting]);
		break;
	}
}

/* ---------------------------------------------------------- connections --- */

static bool is_client(const struct end *end)
{
	return end >= clients && end < clients + CLIENTS;
}

static void on_received(struct core *core, struct end *end)
{
	if (!is_client(end)) {
		ask(core, end);
		return;
	}
	printf("client %d, on shard %u: %s\n", end->number, core->index,
	       end_heard(&both, end));
	/* seq_cst: simple; the last answer stops the shards */
	if (atomic_fetch_add_explicit(&answered, 1, memory_order_seq_cst) ==
	    CLIENTS - 1)
		TRY(rpma_rt_shards_stop(shards));
}

static void on_item(struct rpma_rt_shard *shard,
		    const struct rpma_rt_completion *item, void *arg)
{
	struct core *core = arg;
	struct end *end = item->user;

	(void)shard;
	if (rpma_rt_completion_is_received(item)) {
		on_received(core, end);
	} else if (item->kind == RPMA_RT_WRITABLE) {
		end_send_again(&both, end);
	} else if (rpma_rt_completion_event(item) == RPMA_RT_EVENT_REQUEST) {
		if (core->accepted < CLIENTS)
			end_accept(&both, &core->servers[core->accepted++],
				   rpma_rt_completion_conn(item));
		else
			both_refuse(rpma_rt_completion_conn(item));
	} else if (item->kind == RPMA_RT_EVENT && end != NULL) {
		end_event(&both, item);
		if (is_client(end) &&
		    rpma_rt_completion_event(item) == RPMA_RT_EVENT_ESTABLISHED)
			end_send(&both, end, "a ticket, please");
	}
}

/* ----------------------------------------------------------- the shards --- */

static void *core_main(void *arg)
{
	struct core *core = arg;

	while (rpma_rt_shard_run(core->shard, -1) >= 0)
		;
	return NULL;
}

static int make_shards(void)
{
	struct rpma_rt_shards_cfg cfg = RPMA_RT_SHARDS_CFG_INIT;
	void *args[SHARDS];
	uint32_t i;
	int ret, n;

	for (i = 0; i < SHARDS; i++)
		args[i] = &cores[i];
	cfg.item_fn = on_item;
	cfg.message_fn = on_message;
	cfg.args = args;
	cfg.arg_count = SHARDS;
	ret = TRY(rpma_rt_shards_new(both.rt, &cfg, &shards));
	for (i = 0; i < SHARDS && ret == 0; i++) {
		cores[i].index = i;
		for (n = 0; n < CLIENTS; n++)
			end_init(&both, &cores[i].servers[n], n);
		ret = TRY(rpma_rt_shards_get(shards, i, &cores[i].shard));
	}
	return ret;
}

static int listen_dealt(void)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	uint16_t port;

	cfg.peer = both.peer;
	if (TRY(rpma_rt_shards_deal(shards, &cfg)) ||
	    TRY(rpma_rt_listen(both.rt, both.address, "0", &cfg,
			       &both.listener)) ||
	    TRY(rpma_rt_listener_get_port(both.listener, &port)))
		return 1;
	snprintf(both.port, sizeof(both.port), "%u", port);
	return 0;
}

/* Connects client n on shard n % SHARDS; the server end is on another shard. */
static int connect_client(int n)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct end *end = &clients[n];

	end_init(&both, end, n);
	cfg.peer = both.peer;
	cfg.poller = n % SHARDS;
	cfg.user = end;
	return TRY(rpma_rt_shard_get_queue(cores[n % SHARDS].shard,
					   &cfg.queue)) ||
	       TRY(rpma_rt_conn_new(both.rt, both.address, both.port, &cfg,
				    &end->conn));
}

static int run(void)
{
	int ret, n, started = 0;

	ret = make_shards() || listen_dealt();
	for (n = 0; n < CLIENTS && ret == 0; n++)
		ret = connect_client(n);
	for (; started < SHARDS && ret == 0; started++)
		ret = pthread_create(&cores[started].thread, NULL, core_main,
				     &cores[started]);
	while (started-- > 0)
		pthread_join(cores[started].thread, NULL);
	printf("%" PRIu64 " tickets, %d shards\n", cores[0].tickets, SHARDS);
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	int ret, i, n;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	cfg.pollers = SHARDS;
	ret = both_usage(argc, argv) || both_open(&both, argv[1], &cfg) ||
	      run();
	both_stop(&both);
	for (n = 0; n < CLIENTS; n++) {
		rpma_rt_conn_unref(&clients[n].conn);
		for (i = 0; i < SHARDS; i++)
			rpma_rt_conn_unref(&cores[i].servers[n].conn);
	}
	rpma_rt_shards_delete(&shards);
	both_close(&both);
	return ret;
}
