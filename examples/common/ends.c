/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ends.c: see ends.h. One thread does the work of both ends: a request for a
 * connection returns before the other end has answered.
 */

#include "ends.h"

#include <stdlib.h>

#define USAGES                                               \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |   \
	 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | \
	 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |           \
	 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |               \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
#define MAX_DESCRIPTOR 32

/*
 * Makes the view of the other end. Between two processes the descriptor
 * travels, mostly in private data.
 */
static int see_as_other_end(struct ends *ends)
{
	char descriptor[MAX_DESCRIPTOR];
	size_t size;

	if (TRY(rpma_mr_get_descriptor_size(ends->mr, &size)) ||
	    size > sizeof(descriptor))
		return 1;
	return TRY(rpma_mr_get_descriptor(ends->mr, descriptor)) ||
	       TRY(rpma_mr_remote_from_descriptor(descriptor, size,
						  &ends->remote));
}

int ends_open(struct ends *ends, const char *address)
{
	uint16_t port;

	*ends = (struct ends){.address = address};
	ends->page = aligned_alloc(ENDS_PAGE, ENDS_PAGE);
	if (!ends->page ||
	    open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ends->peer) ||
	    TRY(rpma_mr_reg(ends->peer, ends->page, ENDS_PAGE, USAGES,
			    &ends->mr)) ||
	    see_as_other_end(ends) ||
	    /* any free port */
	    TRY(rpma_ep_listen(ends->peer, address, "0", &ends->ep)) ||
	    TRY(rpma_ep_get_port(ends->ep, &port)))
		return 1;
	snprintf(ends->port, sizeof(ends->port), "%u", port);
	return 0;
}

void ends_close(struct ends *ends)
{
	TRY(rpma_ep_shutdown(&ends->ep));
	TRY(rpma_mr_remote_delete(&ends->remote));
	TRY(rpma_mr_dereg(&ends->mr));
	TRY(rpma_peer_delete(&ends->peer));
	free(ends->page);
}

int ends_connect(struct ends *ends, const struct rpma_conn_cfg *client_cfg,
		 const struct rpma_conn_cfg *server_cfg, struct link *link)
{
	struct rpma_conn_req *req = NULL;

	*link = (struct link){0};
	return TRY(rpma_conn_req_new(ends->peer, ends->address, ends->port,
				     client_cfg, &req)) ||
	       TRY(rpma_conn_req_connect(&req, NULL, &link->client)) ||
	       TRY(rpma_ep_next_conn_req(ends->ep, server_cfg, &req)) ||
	       TRY(rpma_conn_req_connect(&req, NULL, &link->server)) ||
	       expect(link->client, RPMA_CONN_ESTABLISHED) ||
	       expect(link->server, RPMA_CONN_ESTABLISHED);
}

int ends_part(struct link *link)
{
	int ret = 0;

	if (link->client && link->server)
		ret = TRY(rpma_conn_disconnect(link->client)) ||
		      expect(link->server, RPMA_CONN_CLOSED);
	ret = TRY(rpma_conn_delete(&link->client)) || ret;
	return TRY(rpma_conn_delete(&link->server)) || ret;
}

int ends_main(int argc, char **argv, int (*run)(struct ends *ends))
{
	struct ends ends;
	int ret = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
		return 2;
	}
	if (!ends_open(&ends, argv[1]))
		ret = run(&ends);
	ends_close(&ends);
	return ret ? 1 : 0;
}
