/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT: accepts a connection, greets the client by private data,
 * and waits for the end of the connection.
 */

#include "../common/peer.h"

static int serve(struct rpma_ep *ep)
{
	char greeting[] = "hello from the server";
	struct rpma_conn_private_data ours = {greeting, sizeof(greeting)};
	struct rpma_conn_private_data theirs;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	if (check("rpma_ep_next_conn_req",
		  rpma_ep_next_conn_req(ep, NULL, &req)))
		return 1;
	/* private data is bytes of some length, not yet a string */
	if (rpma_conn_req_get_private_data(req, &theirs) == 0 && theirs.ptr)
		printf("the client says: %.*s\n", theirs.len,
		       (const char *)theirs.ptr);
	/* takes the request, whether connecting succeeds or fails */
	if (check("rpma_conn_req_connect",
		  rpma_conn_req_connect(&req, &ours, &conn)))
		return 1;
	int ret = expect(conn, RPMA_CONN_ESTABLISHED) ||
		  expect(conn, RPMA_CONN_CLOSED) ||
		  check("rpma_conn_disconnect", rpma_conn_disconnect(conn));
	rpma_conn_delete(&conn);
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_peer *peer = NULL;
	struct rpma_ep *ep = NULL;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}
	if (open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer))
		return 1;
	if (!check("rpma_ep_listen",
		   rpma_ep_listen(peer, argv[1], argv[2], &ep)))
		ret = serve(ep);
	rpma_ep_shutdown(&ep);
	rpma_peer_delete(&peer);
	return ret;
}
