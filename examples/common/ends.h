/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ends.h: the common start and end of small examples of librpma with both ends
 * in one process: a peer, a page of memory for both, a listening endpoint, and
 * connections to the endpoint.
 */

#ifndef EXAMPLES_ENDS_H
#define EXAMPLES_ENDS_H

#include "peer.h"

#define ENDS_PAGE 4096
#define TRY(call) check(#call, call)

struct ends {
	const char *address;
	char port[8];
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	char *page;
	struct rpma_mr_local *mr;      /* the page, for every use */
	struct rpma_mr_remote *remote; /* the page, as the other end sees the
				        * page */
};

struct link {
	struct rpma_conn *client;
	struct rpma_conn *server;
};

/*
 * Opens everything. A failed call is named on stderr; then, too, ends_close()
 * frees everything.
 */
int ends_open(struct ends *ends, const char *address);
void ends_close(struct ends *ends);

/* Makes an established connection. A cfg may be NULL. */
int ends_connect(struct ends *ends, const struct rpma_conn_cfg *client_cfg,
		 const struct rpma_conn_cfg *server_cfg, struct link *link);
/* Closes the connection on both sides. */
int ends_part(struct link *link);

/* Runs main() of an example: run() is called with both ends. */
int ends_main(int argc, char **argv, int (*run)(struct ends *ends));

#endif /* EXAMPLES_ENDS_H */
