/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client.c: main starts the connections; the worker of a connection posts the
 * receives, connects, and after COMMAND_GO keeps depth messages in flight,
 * checking every reply. Replies arrive in the order of the messages.
 */

#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "message.h"

/* --------------------------------------------- in the workers' threads --- */

static void on_command(struct worker *worker, enum command command,
		       struct link *link)
{
	(void)link;
	if (command == COMMAND_GO)
		count(&worker->stats.first_ns, worker->now_ns);
}

static void connect_link(struct link *link)
{
	const struct hello hello = {
		.connection = link->connection,
		.size = link->size,
		.depth = link->depth,
		.seed = link->seed,
		.total = link->total,
	};
	uint8_t bytes[HELLO_SIZE];
	struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};

	hello_encode(&hello, bytes);
	link_post(link);
	int ret = rpma_rt_conn_connect(link->conn, &pdata);
	if (ret && ret != RPMA_RT_E_CLOSED) {
		end_fail(link->end, "connection %u: cannot connect: %s",
			 link->connection, rpma_rt_err_2str(ret));
		link_close(link);
	}
}

static const char *reason_text(unsigned reason)
{
	switch (reason) {
	case RPMA_RT_REASON_DISCONNECTED:
		return "the server closed it";
	case RPMA_RT_REASON_REJECTED:
		return "refused; does a server listen there?";
	case RPMA_RT_REASON_UNREACHABLE:
		return "nobody answers there";
	case RPMA_RT_REASON_ERROR:
		return "a work request failed: the server died or broke it";
	case RPMA_RT_REASON_DEVICE:
		return "the device failed";
	case RPMA_RT_REASON_FAILED:
		return "the device refused a resource; lower --connections or "
		       "--depth";
	default:
		return "closed";
	}
}

/* Prints why the server refused: bytes from the network only select a text. */
static void fail_refused(const struct link *link, const struct refusal *refusal)
{
	struct end *end = link->end;
	unsigned limit = refusal->limit;

	switch (refusal->reason) {
	case REFUSAL_SIZE:
		end_fail(end, "--size %u: the server takes at most %u",
			 link->size, limit);
		break;
	case REFUSAL_DEPTH:
		end_fail(end, "--depth %u: the server takes at most %u",
			 link->depth, limit);
		break;
	case REFUSAL_CONNECTIONS:
		end_fail(end,
			 "--connections %u: the server takes at most %u at a "
			 "time",
			 end->options->connections, limit);
		break;
	case REFUSAL_MEMORY:
		end_fail(end,
			 "connection %u: the server has %u MiB of memory left; "
			 "lower --connections, --depth or --size",
			 link->connection, limit);
		break;
	case REFUSAL_STOPPING:
		end_fail(end, "connection %u: the server is stopping",
			 link->connection);
		break;
	default:
		end_fail(end, "connection %u: the server is not of this kind",
			 link->connection);
		break;
	}
}

static void explain(const struct link *link, unsigned reason)
{
	const struct client *client = (const struct client *)link->end;
	struct rpma_conn_private_data pdata = {0};
	struct refusal refusal;

	if (reason == RPMA_RT_REASON_REJECTED && link->conn &&
	    rpma_rt_conn_get_private_data(link->conn, &pdata) == 0 &&
	    refusal_decode(pdata.ptr, pdata.len, &refusal))
		fail_refused(link, &refusal);
	else
		end_fail(link->end, "connection %u to %s port %u: %s",
			 link->connection, client->address, client->port,
			 reason_text(reason));
}

static void on_event(struct worker *worker, struct link *link,
		     const struct rpma_rt_completion *event)
{
	struct end *end = worker->end;

	/* main may store the handle later than this event arrives */
	link->conn = rpma_rt_completion_conn(event);
	switch (event->opcode) {
	case RPMA_RT_EVENT_READY:
		if (worker->is_stopping)
			link_close(link);
		else
			connect_link(link);
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		link->is_up = true;
		/* relaxed: main only waits for the number */
		atomic_fetch_add_explicit(&end->established, 1,
					  memory_order_relaxed);
		break;
	case RPMA_RT_EVENT_CLOSED:
		if (event->status != RPMA_RT_REASON_LOCAL)
			explain(link, event->status);
		break;
	}
}

static void on_received(struct worker *worker, struct link *link, uint32_t slot,
			uint32_t len)
{
	struct stats *stats = &worker->stats;

	if (len != link->size ||
	    !message_check(link_recv_slot(link, slot), link->size, link->seed,
			   link->connection, link->received))
		count(&stats->verify_errors, 1);
	hist_add(&stats->latency,
		 worker->now_ns - link->since_ns[link->received % link->depth]);
	link->received++;
	count(&stats->messages, 1);
	/* relaxed: one writer, a figure for the report */
	atomic_store_explicit(&stats->last_ns, worker->now_ns,
			      memory_order_relaxed);
	link_release(link, slot);
}

static void on_sent(struct worker *worker, struct link *link, uint32_t slot)
{
	(void)worker;
	(void)link;
	(void)slot;
}

static void stage_messages(struct worker *worker, struct link *link)
{
	while (link->sent + link->staged < link->received + link->depth) {
		uint64_t sequence = link->sent + link->staged;
		uint32_t slot;

		if (link->has_total && sequence == link->total)
			return;
		uint8_t *message = link_stage(link, &slot);
		if (!message)
			return;
		message_fill(message, link->size, link->seed, link->connection,
			     sequence);
		link->since_ns[slot] = worker->now_ns;
	}
}

static bool is_done(const struct worker *worker, const struct link *link)
{
	if (!worker->is_stopping &&
	    !(worker->has_go && link->has_total && link->sent == link->total))
		return false;
	return link->received == link->sent && !link->send_tally.out;
}

static void pump(struct worker *worker, struct link *link)
{
	if (worker->is_stopping)
		link->staged = 0;
	else if (worker->has_go && link->is_up && !link->is_closing)
		stage_messages(worker, link);
	link_post(link);
	if (is_done(worker, link))
		link_close(link);
}

static void on_gone(struct worker *worker, struct link *link)
{
	count(&worker->stats.unanswered, link->sent - link->received);
	if (link->has_total && !worker->is_stopping &&
	    link->received < link->total)
		end_fail(worker->end, "connection %u ended early",
			 link->connection);
}

static const struct end_ops CLIENT_OPS = {
	.on_command = on_command,
	.on_event = on_event,
	.on_received = on_received,
	.on_sent = on_sent,
	.pump = pump,
	.on_gone = on_gone,
};

/* ------------------------------------------------------------ in main --- */

struct client *client_new(const struct options *options, struct rpma_rt *rt,
			  struct rpma_peer *peer, unsigned first_id)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client) {
		fprintf(stderr, "rt-echo: client: no memory\n");
		return NULL;
	}
	client->end.is_from_last = true;
	if (!end_init(&client->end, "client", &CLIENT_OPS, options, rt, peer,
		      first_id))
		client_delete(&client);
	return client;
}

/* Returns the number of messages for connection i. */
static uint64_t share(const struct options *o, unsigned i)
{
	return o->messages / o->connections +
	       (i < o->messages % o->connections);
}

static bool connect_one(struct client *client, unsigned i, const char *address,
			const char *port)
{
	struct end *end = &client->end;
	const struct options *o = end->options;
	struct worker *worker = &end->workers[i % end->worker_count];
	struct rpma_rt_conn_cfg conn_cfg = end_conn_cfg(end);
	struct rpma_rt_conn *conn;
	struct link_cfg cfg = {
		.connection = i,
		.size = o->size,
		.depth = o->depth,
		.seed = o->seed,
		.total = share(o, i),
	};
	struct link *link = link_new(end, &cfg);

	if (!link) {
		end_fail(end,
			 "connection %u: no memory registered (%s): lower "
			 "--connections, --depth or --size, or raise "
			 "ulimit -l",
			 i, strerror(errno));
		return false;
	}
	link->has_total = o->messages != 0;
	link_attach(link, worker);
	if (worker->poller >= 0)
		conn_cfg.poller = worker->poller;
	conn_cfg.queue = worker->queue;
	conn_cfg.user = link;
	int ret = rpma_rt_conn_new(end->rt, address, port, &conn_cfg, &conn);
	if (ret) {
		end_fail(end, "connection %u: cannot connect to %s port %s: %s",
			 i, address, port, rpma_rt_err_2str(ret));
		link_delete(link);
		return false;
	}
	link->conn = conn;
	return true;
}

bool client_connect(struct client *client, const char *address, uint16_t port)
{
	const struct options *o = client->end.options;
	char text[8];

	client->address = address;
	client->port = port;
	snprintf(text, sizeof(text), "%u", port);
	bool is_ok = true;
	for (unsigned i = 0; is_ok && i < o->connections; i++)
		is_ok = connect_one(client, i, address, text);
	return is_ok;
}

bool client_is_connected(const struct client *client)
{
	/* relaxed: only the number counts */
	return atomic_load_explicit(&client->end.established,
				    memory_order_relaxed) ==
	       client->end.options->connections;
}

void client_delete(struct client **client_ptr)
{
	struct client *client = *client_ptr;

	if (!client)
		return;
	*client_ptr = NULL;
	end_fini(&client->end);
	free(client);
}
