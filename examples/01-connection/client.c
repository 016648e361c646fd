/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client ADDRESS PORT: connects, exchanges greetings, disconnects.
 */

#include "../common/peer.h"

static int talk(struct rpma_conn *conn)
{
	struct rpma_conn_private_data theirs;

	/* before ESTABLISHED there is no private data, and sending fails */
	if (expect(conn, RPMA_CONN_ESTABLISHED))
		return 1;
	if (rpma_conn_get_private_data(conn, &theirs) == 0 && theirs.ptr)
		printf("the server says: %.*s\n", theirs.len,
		       (const char *)theirs.ptr);
	return check("rpma_conn_disconnect", rpma_conn_disconnect(conn)) ||
	       expect(conn, RPMA_CONN_CLOSED);
}

int main(int argc, char **argv)
{
	char greeting[] = "hello from the client";
	struct rpma_conn_private_data ours = {greeting, sizeof(greeting)};
	struct rpma_peer *peer = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}
	if (open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer))
		return 1;
	if (!check("rpma_conn_req_new",
		   rpma_conn_req_new(peer, argv[1], argv[2], NULL, &req)) &&
	    !check("rpma_conn_req_connect",
		   rpma_conn_req_connect(&req, &ours, &conn)))
		ret = talk(conn);
	rpma_conn_delete(&conn);
	rpma_peer_delete(&peer);
	return ret;
}
