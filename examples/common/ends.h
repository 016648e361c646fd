/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ends.h: the beginning and the end of librpma's small examples with both ends
 * in one process: a peer, a page of memory that both use, a listening endpoint,
 * connections to it.
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
	struct rpma_mr_local *mr;      /* the page, for everything */
	struct rpma_mr_remote *remote; /* the same, as the other end sees it */
};

struct link {
	struct rpma_conn *client;
	struct rpma_conn *server;
};

/* What fails is named on stderr; whatever is there ends_close() frees. */
int ends_open(struct ends *ends, const char *address);
void ends_close(struct ends *ends);

/* A connection, established. A cfg may be NULL. */
int ends_connect(struct ends *ends, const struct rpma_conn_cfg *client_cfg,
		 const struct rpma_conn_cfg *server_cfg, struct link *link);
/* Its end, on both sides. */
int ends_part(struct link *link);

/* main() of an example: its address, and what to do with both ends. */
int ends_main(int argc, char **argv, int (*run)(struct ends *ends));

#endif /* EXAMPLES_ENDS_H */
