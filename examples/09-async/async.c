/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * async ADDRESS: makes several connections at once, and no call waits for the
 * network. All events of the endpoint, of requests and of connections come to
 * one CM channel, whose descriptor is part of the poll() of the program.
 */

#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "../common/peer.h"

#define TRY(call)   check(#call, call)
#define CONNECTIONS 3

/* An end of a connection; the context of all events of the end. */
struct end {
	struct rpma_conn_req *req; /* until the request can connect */
	struct rpma_conn *conn;
	bool is_server;
	bool is_closed;
};

struct loop {
	struct rpma_peer *peer;
	struct rpma_cm_channel *channel;
	struct rpma_conn_cfg *cfg; /* names the channel */
	struct rpma_ep *ep;
	int fd;
	struct end clients[CONNECTIONS];
	struct end servers[CONNECTIONS];
	int accepted;
	int established; /* ends */
	int closed;
};

static int open_loop(struct loop *loop, const char *address, char *port)
{
	uint16_t number;

	if (open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &loop->peer) ||
	    TRY(rpma_cm_channel_new(&loop->channel)) ||
	    TRY(rpma_cm_channel_get_fd(loop->channel, &loop->fd)) ||
	    TRY(rpma_conn_cfg_new(&loop->cfg)) ||
	    TRY(rpma_conn_cfg_set_cm_channel(loop->cfg, loop->channel)) ||
	    TRY(rpma_ep_listen_ex(loop->peer, address, "0", CONNECTIONS,
				  loop->channel, NULL, &loop->ep)) ||
	    TRY(rpma_ep_get_port(loop->ep, &number)))
		return 1;
	snprintf(port, 8, "%u", number);
	return fcntl(loop->fd, F_SETFL, O_NONBLOCK);
}

static void close_loop(struct loop *loop)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		TRY(rpma_conn_req_delete(&loop->clients[i].req));
		TRY(rpma_conn_delete(&loop->clients[i].conn));
		TRY(rpma_conn_delete(&loop->servers[i].conn));
	}
	TRY(rpma_ep_shutdown(&loop->ep));
	TRY(rpma_conn_cfg_delete(&loop->cfg));
	TRY(rpma_cm_channel_delete(&loop->channel));
	TRY(rpma_peer_delete(&loop->peer));
}

/* Accepts a client: the request becomes the server end of a connection. */
static int accept_request(struct loop *loop, const struct rpma_cm_event *event)
{
	struct end *end = &loop->servers[loop->accepted];
	struct rpma_conn_req *req;

	if (loop->accepted == CONNECTIONS)
		return 1;
	loop->accepted++;
	end->is_server = true;
	return TRY(rpma_conn_req_new_from_event(loop->peer, event, loop->cfg,
						end, &req)) ||
	       TRY(rpma_conn_req_connect(&req, NULL, &end->conn));
}

/* Advances a request by a step: address, route, then connect. */
static int advance(struct end *end, const struct rpma_cm_event *event)
{
	int ret = rpma_conn_req_advance(end->req, event);

	if (ret == RPMA_E_AGAIN)
		return 0;
	return TRY(ret) ||
	       TRY(rpma_conn_req_connect(&end->req, NULL, &end->conn));
}

static int happened(struct loop *loop, struct end *end,
		    const struct rpma_cm_event *cm_event)
{
	enum rpma_conn_event event;

	if (TRY(rpma_conn_handle_event(end->conn, cm_event, &event)))
		return 1;
	if (event == RPMA_CONN_ESTABLISHED) {
		loop->established++;
		return 0;
	}
	/* CLOSED may come twice */
	if (event == RPMA_CONN_CLOSED && !end->is_closed) {
		end->is_closed = true;
		loop->closed++;
		/* the clients disconnect first */
		return end->is_server ? TRY(rpma_conn_disconnect(end->conn))
				      : 0;
	}
	return event != RPMA_CONN_CLOSED;
}

/* Takes all events that are ready, and does not wait. */
static int take_events(struct loop *loop)
{
	struct rpma_cm_event event;
	struct end *end;
	int ret;

	while ((ret = rpma_cm_channel_get_event(loop->channel, &event)) == 0) {
		end = event.context; /* NULL for events of the endpoint */
		if (TRY(rpma_cm_event_ack(&event)))
			return 1;
		if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			ret = accept_request(loop, &event);
		else if (end->req)
			ret = advance(end, &event);
		else
			ret = happened(loop, end, &event);
		if (ret)
			return 1;
	}
	return ret == RPMA_E_NO_EVENT || ret == RPMA_E_AGAIN ? 0 : TRY(ret);
}

/* Runs the loop of the program until the count is reached. */
static int run_until(struct loop *loop, const int *count, int wanted)
{
	/* other descriptors of the program would be added here */
	struct pollfd fds = {.fd = loop->fd, .events = POLLIN};

	while (*count < wanted)
		if (poll(&fds, 1, -1) < 0 || take_events(loop))
			return 1;
	return 0;
}

static int run(struct loop *loop, const char *address)
{
	char port[8];

	if (open_loop(loop, address, port))
		return 1;
	for (int i = 0; i < CONNECTIONS; i++)
		if (TRY(rpma_conn_req_new_async(loop->peer, address, port,
						loop->cfg, &loop->clients[i],
						&loop->clients[i].req)))
			return 1;
	if (run_until(loop, &loop->established, 2 * CONNECTIONS))
		return 1;
	printf("%d connections established at once\n", CONNECTIONS);
	for (int i = 0; i < CONNECTIONS; i++)
		if (TRY(rpma_conn_disconnect(loop->clients[i].conn)))
			return 1;
	if (run_until(loop, &loop->closed, 2 * CONNECTIONS))
		return 1;
	printf("and closed, all on one descriptor\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct loop loop = {0};
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
		return 2;
	}
	ret = run(&loop, argv[1]);
	close_loop(&loop);
	return ret;
}
