/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel ADDRESS: a server with a separate CQ for receives, the RCQ, and one
 * completion channel for the RCQ and the CQ of sends: the server sleeps on one
 * descriptor, and learns which CQ had a completion.
 */

#include "../common/ends.h"

#define ROUNDS 3
#define SIZE   64
#define Q_SIZE 10
/* offsets in the page */
#define CLIENT_IN  0
#define CLIENT_OUT 1024
#define SERVER_IN  2048
#define SERVER_OUT 3072

struct counts {
	int received;
	int sent;
};

static int receive(struct ends *ends, struct rpma_conn *conn, size_t in)
{
	return TRY(rpma_recv(conn, ends->mr, in, SIZE, NULL));
}

static int send_from(struct ends *ends, struct rpma_conn *conn, size_t out)
{
	return TRY(rpma_send(conn, ends->mr, out, SIZE,
			     RPMA_F_COMPLETION_ALWAYS, NULL));
}

/* Sleeps until a CQ had a completion, and takes all completions of the CQ. */
static int serve_once(struct ends *ends, struct rpma_conn *conn,
		      struct counts *counts)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	bool is_rcq;
	int ret;

	if (TRY(rpma_conn_wait(conn, 0, &cq, &is_rcq)))
		return 1;
	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == 0) {
		if (wc.status != IBV_WC_SUCCESS)
			return 1;
		if (!is_rcq) {
			counts->sent++;
			continue;
		}
		counts->received++;
		/* the next receive first, then the answer that makes the client
		 * send */
		if (receive(ends, conn, SERVER_IN) ||
		    send_from(ends, conn, SERVER_OUT))
			return 1;
	}
	/* the event may belong to a completion that was taken before */
	return ret == RPMA_E_NO_COMPLETION ? 0 : TRY(ret);
}

static int talk(struct ends *ends, struct link *link)
{
	struct counts counts = {0};
	struct rpma_cq *cq;
	struct ibv_wc wc;

	if (TRY(rpma_conn_get_cq(link->client, &cq)) ||
	    receive(ends, link->server, SERVER_IN))
		return 1;
	for (int i = 1; i <= ROUNDS; i++) {
		if (receive(ends, link->client, CLIENT_IN) ||
		    send_from(ends, link->client, CLIENT_OUT))
			return 1;
		while (counts.received < i || counts.sent < i)
			if (serve_once(ends, link->server, &counts))
				return 1;
		/* the CQ of the client gets both completions, in either
		 * order */
		if (wait_wc(cq, &wc) || wait_wc(cq, &wc))
			return 1;
	}
	printf("server: received %d, sent %d, on one descriptor\n",
	       counts.received, counts.sent);
	return 0;
}

static int run(struct ends *ends)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct link link = {0};
	int ret;

	ret = TRY(rpma_conn_cfg_new(&cfg)) ||
	      TRY(rpma_conn_cfg_set_rcq_size(cfg, Q_SIZE)) ||
	      TRY(rpma_conn_cfg_set_compl_channel(cfg, true)) ||
	      ends_connect(ends, NULL, cfg, &link) || talk(ends, &link);
	TRY(rpma_conn_cfg_delete(&cfg));
	return ends_part(&link) || ret;
}

int main(int argc, char **argv)
{
	return ends_main(argc, argv, run);
}
