/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server.c: main takes the connection requests, checks each request, makes the
 * link and gives the link to a worker, which does all other work: posts the
 * receives, accepts, answers, closes.
 */

#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "message.h"

#define REQUEST_BATCH 16

/* --------------------------------------------- in the workers' threads --- */

static void on_command(struct worker *worker, enum command command,
		       struct link *link)
{
	if (command != COMMAND_TAKE || link->is_closed)
		return;
	if (worker->is_stopping) {
		link_close(link);
		return;
	}
	/* the receives go first: a message may follow the answer at once */
	link_post(link);
	int ret = rpma_rt_conn_accept(link->conn, NULL);
	if (ret && ret != RPMA_RT_E_CLOSED) {
		end_fail(worker->end, "connection %u: cannot accept: %s",
			 link->connection, rpma_rt_err_2str(ret));
		link_close(link);
	}
}

static void on_event(struct worker *worker, struct link *link,
		     const struct rpma_rt_completion *event)
{
	(void)worker;
	if (event->opcode == RPMA_RT_EVENT_ESTABLISHED)
		link->is_up = true;
}

static void on_received(struct worker *worker, struct link *link, uint32_t slot,
			uint32_t len)
{
	if (len != link->size ||
	    !message_check(link_recv_slot(link, slot), link->size, link->seed,
			   link->connection, link->received))
		count(&worker->stats.verify_errors, 1);
	link->received++;
	link->pending[link->pending_in++ % link->receives] = slot;
	/* counted here: if the client leaves right after the last answer, the
	 * send of the answer is flushed although the client has the answer */
	count(&worker->stats.messages, 1);
	if (!counted(&worker->stats.first_ns))
		count(&worker->stats.first_ns, worker->now_ns);
	atomic_store_explicit(&worker->stats.last_ns, worker->now_ns,
			      memory_order_relaxed);
}

static void on_sent(struct worker *worker, struct link *link, uint32_t slot)
{
	hist_add(&worker->stats.latency, worker->now_ns - link->since_ns[slot]);
	atomic_store_explicit(&worker->stats.last_ns, worker->now_ns,
			      memory_order_relaxed);
}

/* Copies the answers, in order, and releases their receives. */
static void answer(struct worker *worker, struct link *link)
{
	while (link->pending_out < link->pending_in) {
		uint32_t from, to;
		uint8_t *reply = link_stage(link, &to);

		if (!reply)
			return;
		from = link->pending[link->pending_out++ % link->receives];
		memcpy(reply, link_recv_slot(link, from), link->size);
		link->since_ns[to] = worker->now_ns;
		link_release(link, from);
	}
}

static void pump(struct worker *worker, struct link *link)
{
	if (!worker->is_stopping)
		answer(worker, link);
	link_post(link);
	if (worker->is_stopping && !link->send_tally.out && !link->staged)
		link_close(link);
}

static void on_gone(struct worker *worker, struct link *link)
{
	/* 0 for an honest client, which leaves after the last answer */
	count(&worker->stats.unanswered,
	      link->pending_in - link->pending_out + link->staged);
}

static const struct end_ops SERVER_OPS = {
	.on_command = on_command,
	.on_event = on_event,
	.on_received = on_received,
	.on_sent = on_sent,
	.pump = pump,
	.on_gone = on_gone,
};

/* ------------------------------------------------------------ in main --- */

/* Checks a hello: no field is trusted. */
static bool is_acceptable(const struct server *server,
			  const struct hello *hello, struct refusal *refusal)
{
	const struct options *o = server->end.options;
	uint64_t room = MEMORY_MAX - atomic_load_explicit(&server->end.memory,
							  memory_order_relaxed);

	*refusal = (struct refusal){0};
	if (hello->size < MESSAGE_MIN || hello->size > o->size)
		*refusal = (struct refusal){REFUSAL_SIZE, o->size};
	else if (hello->depth < 1 || hello->depth > o->depth)
		*refusal = (struct refusal){REFUSAL_DEPTH, o->depth};
	/* acquire: pairs with the release in give_number() of link.c */
	else if (atomic_load_explicit(&server->end.open,
				      memory_order_acquire) >= o->connections)
		*refusal =
			(struct refusal){REFUSAL_CONNECTIONS, o->connections};
	else if (buffer_bytes(1, hello->depth, hello->size) > room)
		*refusal = (struct refusal){REFUSAL_MEMORY,
					    (uint32_t)(room >> 20)};
	return refusal->reason == 0;
}

static void refuse(struct rpma_rt_conn *conn, const struct refusal *refusal)
{
	uint8_t bytes[REFUSAL_SIZE_BYTES];
	struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};

	refusal_encode(refusal, bytes);
	rpma_rt_conn_reject(conn, &pdata);
	rpma_rt_conn_unref(&conn);
}

/*
 * Chooses a worker. In manual mode the connection stays on the core of its
 * poller.
 */
static struct worker *choose_worker(struct server *server,
				    const struct rpma_rt_conn *conn)
{
	struct end *end = &server->end;
	int poller;

	if (end->options->is_manual &&
	    rpma_rt_conn_get_poller(conn, &poller) == 0)
		return &end->workers[(unsigned)poller % end->worker_count];
	return &end->workers[server->next_worker++ % end->worker_count];
}

/*
 * Gives the link to a worker, which owns the link from rpma_rt_conn_set_queue()
 * on.
 */
static void hand_over(struct server *server, struct link *link,
		      struct rpma_rt_conn *conn)
{
	struct worker *worker = choose_worker(server, conn);
	struct rpma_rt_queue *queue = worker->queue;

	server->handles[link->index] = conn;
	link->worker = worker;
	link->conn = conn;
	int ret = rpma_rt_conn_set_user(conn, link);
	if (!ret)
		ret = rpma_rt_conn_set_queue(conn, queue);
	if (ret) {
		/* the connection is gone already, or the worker is behind, and
		 * the client is refused: main gets CLOSED */
		server->handles[link->index] = NULL;
		rpma_rt_conn_close(conn);
		link_delete(link);
		return;
	}
	ret = rpma_rt_queue_push(
		queue, &(struct rpma_rt_completion){.context = COMMAND_TAKE,
						    .user = link});
	if (ret)
		end_fail(&server->end, "cannot hand a connection over: %s",
			 rpma_rt_err_2str(ret));
}

/*
 * Removes a handle: a new connection may have the address of a deleted
 * connection.
 */
static void forget(struct server *server, const struct rpma_rt_conn *conn)
{
	for (unsigned i = 0; i < TICKET_LINKS; i++)
		if (server->handles[i] == conn)
			server->handles[i] = NULL;
}

static void take_request(struct server *server, struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata = {0};
	struct refusal refusal = {REFUSAL_NOT_HELLO, 0};
	struct hello hello;

	forget(server, conn);
	rpma_rt_conn_get_private_data(conn, &pdata);
	if (server->is_stopping)
		refusal.reason = REFUSAL_STOPPING;
	if (server->is_stopping ||
	    !hello_decode(pdata.ptr, pdata.len, &hello) ||
	    !is_acceptable(server, &hello, &refusal)) {
		refuse(conn, &refusal);
		return;
	}
	struct link_cfg cfg = {
		.connection = hello.connection,
		.size = hello.size,
		.depth = hello.depth,
		.seed = hello.seed,
		.total = hello.total,
	};
	struct link *link = link_new(&server->end, &cfg);
	if (!link) {
		fprintf(stderr,
			"rt-echo: server: refused a connection: no "
			"memory registered (%s); see ulimit -l\n",
			strerror(errno));
		refusal = (struct refusal){REFUSAL_MEMORY, 0};
		refuse(conn, &refusal);
		return;
	}
	hand_over(server, link, conn);
}

/*
 * Passes CLOSED on to the worker, if the link was handed over too late for the
 * queue of the worker.
 */
static void take_closed(struct server *server, const struct rpma_rt_conn *conn)
{
	for (unsigned i = 0; i < TICKET_LINKS; i++) {
		if (server->handles[i] != conn)
			continue;
		/* relaxed: main stored the link; only this CLOSED lets the
		 * worker delete the link */
		struct link *link = atomic_load_explicit(&server->end.links[i],
							 memory_order_relaxed);
		rpma_rt_queue_push(
			link->worker->queue,
			&(struct rpma_rt_completion){.context = COMMAND_CLOSED,
						     .user = link});
		return;
	}
}

void server_accept(struct server *server, int timeout_ms)
{
	struct rpma_rt_completion items[REQUEST_BATCH];
	int got = rpma_rt_queue_wait(server->requests, items, REQUEST_BATCH,
				     timeout_ms);

	for (int i = 0; i < got; i++) {
		struct rpma_rt_conn *conn = rpma_rt_completion_conn(&items[i]);

		if (items[i].kind != RPMA_RT_EVENT)
			continue;
		if (items[i].opcode == RPMA_RT_EVENT_REQUEST)
			take_request(server, conn);
		else if (items[i].opcode == RPMA_RT_EVENT_CLOSED)
			take_closed(server, conn);
	}
}

static int listen_on(struct server *server, const char *address)
{
	const struct options *o = server->end.options;
	struct rpma_rt_conn_cfg cfg = end_conn_cfg(&server->end);
	int ret;

	cfg.queue = server->requests;
	ret = rpma_rt_listen(server->end.rt, address, o->port, &cfg,
			     &server->listener);
	if (ret)
		return ret;
	return rpma_rt_listener_get_port(server->listener, &server->port);
}

static void fail_listen(struct server *server, const char *address, int ret,
			int err)
{
	const char *why = err ? strerror(err) : rpma_rt_err_2str(ret);
	const char *cure = "";

	if (err == EADDRINUSE)
		cure = "; give another --port, or 0 for any free one";
	if (err == EADDRNOTAVAIL || err == ENODEV)
		cure = "; give an --address of an RDMA device here";
	end_fail(&server->end, "cannot listen on %s port %s: %s%s", address,
		 server->end.options->port, why, cure);
}

struct server *server_new(const struct options *options, const char *address,
			  struct rpma_rt *rt, struct rpma_peer *peer,
			  unsigned first_id)
{
	struct server *server = calloc(1, sizeof(*server));
	int ret;

	if (!server) {
		fprintf(stderr, "rt-echo: server: no memory\n");
		return NULL;
	}
	if (!end_init(&server->end, "server", &SERVER_OPS, options, rt, peer,
		      first_id))
		goto err_delete;
	ret = rpma_rt_queue_new(rt, NULL, &server->requests);
	errno = 0;
	if (!ret)
		ret = listen_on(server, address);
	if (ret) {
		fail_listen(server, address, ret, errno);
		goto err_delete;
	}
	return server;

err_delete:
	server_delete(&server);
	return NULL;
}

void server_stop(struct server *server)
{
	server->is_stopping = true;
	rpma_rt_listener_delete(&server->listener);
	end_tell(&server->end, COMMAND_STOP);
}

void server_delete(struct server **server_ptr)
{
	struct server *server = *server_ptr;

	if (!server)
		return;
	*server_ptr = NULL;
	if (server->listener)
		rpma_rt_listener_delete(&server->listener);
	end_fini(&server->end);
	if (server->requests)
		rpma_rt_queue_delete(&server->requests);
	free(server);
}
