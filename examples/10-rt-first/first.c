/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * first ADDRESS: the smallest program with librpma_rt, both ends in one
 * process. A poller thread takes completions off the device, and a queue leads
 * everything to main, which handles items until both ends are closed.
 */

#include <stdlib.h>
#include <string.h>

#include <rpma_rt.h>

#include "../common/peer.h"

#define PAGE 4096
#define LEN  64
#define WAIT 10000 /* milliseconds */

/* An end of the connection; the user pointer of its completions. */
struct end {
	const char *name;
	struct rpma_rt_conn *conn;
	struct rpma_mr_local *mr;
	size_t in;  /* offset of receives, */
	size_t out; /* and of sends */
	char *page;
	bool is_closed;
};

static int rt_check(const char *what, int ret)
{
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", what, rpma_rt_err_2str(ret));
	return ret;
}
#define TRY(call) rt_check(#call, call)

/*
 * Sends the text of the end. A message may arrive before the connection is
 * ESTABLISHED, and before ESTABLISHED nothing can be sent: after a post that is
 * refused for now, WRITABLE follows.
 */
static int send_out(const struct end *end)
{
	int ret = rpma_rt_send(end->conn, end->mr, end->out, LEN, 0, 0);

	return ret == RPMA_E_AGAIN ? 0 : rt_check("rpma_rt_send", ret);
}

static int say(const struct end *end, const char *text)
{
	snprintf(end->page + end->out, LEN, "%s", text);
	return send_out(end);
}

/* Posts a receive, before the first message of the peer can arrive. */
static int receive(struct end *end, struct rpma_rt_conn *conn)
{
	end->conn = conn;
	return TRY(rpma_rt_recv(conn, end->mr, end->in, LEN, 0));
}

/* Refuses another client: the program has a single connection. */
static int refuse(struct rpma_rt_conn *conn)
{
	int ret = TRY(rpma_rt_conn_reject(conn, NULL));

	rpma_rt_conn_unref(&conn);
	return ret;
}

/*
 * Handles an event. The user pointer is the client, or the server for events of
 * the listener.
 */
static int on_event(const struct rpma_rt_completion *event,
		    const struct end *client)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(event);
	struct end *end = event->user;

	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_REQUEST:
		if (end->conn)
			return refuse(conn);
		return receive(end, conn) ||
		       TRY(rpma_rt_conn_accept(conn, NULL));
	case RPMA_RT_EVENT_READY:
		return receive(end, conn) ||
		       TRY(rpma_rt_conn_connect(conn, NULL));
	case RPMA_RT_EVENT_ESTABLISHED:
		return end == client ? say(end, "ping") : 0;
	case RPMA_RT_EVENT_CLOSED:
		/* of the connection refused above */
		if (conn != end->conn)
			return 0;
		/* the last item of the connection: everything was delivered */
		printf("%s: closed\n", end->name);
		end->is_closed = true;
		return 0;
	}
	return 0;
}

static int on_message(const struct end *end, const struct end *client)
{
	printf("%s: received %.*s\n", end->name, LEN, end->page + end->in);
	return end == client ? TRY(rpma_rt_conn_close(end->conn))
			     : say(end, "pong");
}

static int run(struct rpma_rt_queue *queue, struct end *server,
	       struct end *client)
{
	struct rpma_rt_completion cmpl;
	int ret = 0;

	while (!ret && !(server->is_closed && client->is_closed)) {
		if (TRY(rpma_rt_queue_wait(queue, &cmpl, 1, WAIT)) != 1)
			return 1;
		/* closing returns posted receives as completions, too, but no
		 * message was received */
		if (rpma_rt_completion_is_received(&cmpl))
			ret = on_message(cmpl.user, client);
		else if (cmpl.kind == RPMA_RT_WRITABLE)
			ret = send_out(cmpl.user);
		else
			ret = on_event(&cmpl, client);
	}
	return ret;
}

static int both(struct rpma_rt *rt, struct rpma_peer *peer, const char *address,
		struct rpma_rt_queue *queue, struct end *server,
		struct end *client)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_listener *listener = NULL;
	uint16_t number = 0;
	char port[8];
	int ret;

	cfg.peer = peer;
	cfg.queue = queue;
	cfg.user = server;
	ret = TRY(rpma_rt_listen(rt, address, "0", &cfg, &listener)) ||
	      TRY(rpma_rt_listener_get_port(listener, &number));
	snprintf(port, sizeof(port), "%u", number);
	cfg.user = client;
	ret = ret ||
	      TRY(rpma_rt_conn_new(rt, address, port, &cfg, &client->conn)) ||
	      run(queue, server, client);
	rpma_rt_listener_delete(&listener);
	return ret;
}

int main(int argc, char **argv)
{
	char *page = aligned_alloc(PAGE, PAGE);
	struct end server = {.name = "server", .in = 0, .out = LEN};
	struct end client = {.name = "client", .in = 2 * LEN, .out = 3 * LEN};
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_rt *rt = NULL;
	struct rpma_rt_queue *queue = NULL;
	int ret = 1;

	/* no poller thread: main runs the poller in rpma_rt_queue_wait() */
	if (argc == 3 && !strcmp(argv[2], "manual"))
		cfg.mode = RPMA_RT_MODE_MANUAL;
	else if (argc != 2)
		argc = 0;
	if (!argc || !page) {
		fprintf(stderr, "usage: %s ADDRESS [manual]\n", argv[0]);
		free(page);
		return 2;
	}
	server.page = client.page = page;
	if (!open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) &&
	    !check("rpma_mr_reg",
		   rpma_mr_reg(peer, page, PAGE,
			       RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr)) &&
	    !TRY(rpma_rt_new(&cfg, &rt)) &&
	    !TRY(rpma_rt_queue_new(rt, NULL, &queue))) {
		server.mr = client.mr = mr;
		ret = both(rt, peer, argv[1], queue, &server, &client);
	}
	/* closes connections, delivers outstanding items, ends the threads */
	if (rt)
		rpma_rt_stop(rt);
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_queue_delete(&queue);
	rpma_rt_delete(&rt);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(page);
	return ret ? 1 : 0;
}
