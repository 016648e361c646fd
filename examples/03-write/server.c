/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT: lends a page of memory to the client, and prints the
 * page when the client has gone. The server handles no message meanwhile.
 */

#include <stdlib.h>

#include "../common/peer.h"

#define PAGE	       4096
#define MAX_DESCRIPTOR 32

static int lend(struct rpma_ep *ep, const struct rpma_mr_local *mr)
{
	char descriptor[MAX_DESCRIPTOR];
	struct rpma_conn_private_data pdata = {descriptor, 0};
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	size_t size;

	if (check("rpma_mr_get_descriptor_size",
		  rpma_mr_get_descriptor_size(mr, &size)) ||
	    size > sizeof(descriptor) ||
	    check("rpma_mr_get_descriptor",
		  rpma_mr_get_descriptor(mr, descriptor)))
		return 1;
	pdata.len = (uint8_t)size;
	if (check("rpma_ep_next_conn_req",
		  rpma_ep_next_conn_req(ep, NULL, &req)) ||
	    check("rpma_conn_req_connect",
		  rpma_conn_req_connect(&req, &pdata, &conn)))
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
	struct rpma_mr_local *mr = NULL;
	struct rpma_ep *ep = NULL;
	char *page;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}
	page = aligned_alloc(PAGE, PAGE);
	if (!page)
		return 1;
	page[0] = '\0';
	if (!open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) &&
	    !check("rpma_mr_reg",
		   rpma_mr_reg(peer, page, PAGE,
			       RPMA_MR_USAGE_WRITE_DST |
				       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			       &mr)) &&
	    !check("rpma_ep_listen",
		   rpma_ep_listen(peer, argv[1], argv[2], &ep)))
		ret = lend(ep, mr);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	/* the client may write any bytes: at most a page, maybe no string */
	if (!ret)
		printf("in my memory: %.*s\n", PAGE, page);
	free(page);
	return ret;
}
