/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client ADDRESS PORT: sends a number and receives the number plus one, 12
 * times: more messages than a queue of the default size holds.
 */

#include <stdlib.h>
#include <string.h>

#include "../common/peer.h"

#define PAGE   4096
#define IN     0
#define OUT    sizeof(uint64_t)
#define ROUNDS 12

static int round_trip(struct rpma_conn *conn, struct rpma_cq *cq,
		      struct rpma_mr_local *mr, char *page, uint64_t *number)
{
	struct ibv_wc wc;

	memcpy(page + OUT, number, sizeof(*number));
	/* first the receive for the answer, then the send that causes the
	 * answer */
	if (check("rpma_recv",
		  rpma_recv(conn, mr, IN, sizeof(*number), NULL)) ||
	    check("rpma_send", rpma_send(conn, mr, OUT, sizeof(*number),
					 RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	    /* two work requests, two completions, in either order */
	    wait_wc(cq, &wc) || wait_wc(cq, &wc))
		return 1;
	memcpy(number, page + IN, sizeof(*number));
	printf("the answer is %llu\n", (unsigned long long)*number);
	return 0;
}

static int talk(struct rpma_conn *conn, struct rpma_mr_local *mr, char *page)
{
	struct rpma_cq *cq;
	uint64_t number = 1;
	int ret = 0;

	if (expect(conn, RPMA_CONN_ESTABLISHED) ||
	    check("rpma_conn_get_cq", rpma_conn_get_cq(conn, &cq)))
		return 1;
	for (int i = 0; i < ROUNDS && !ret; i++)
		ret = round_trip(conn, cq, mr, page, &number);
	return check("rpma_conn_disconnect", rpma_conn_disconnect(conn)) ||
	       expect(conn, RPMA_CONN_CLOSED) || ret || number != 1 + ROUNDS;
}

int main(int argc, char **argv)
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	char *page;
	int ret = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}
	page = aligned_alloc(PAGE, PAGE);
	if (page && !open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) &&
	    !check("rpma_mr_reg",
		   rpma_mr_reg(peer, page, PAGE,
			       RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND, &mr)) &&
	    !check("rpma_conn_req_new",
		   rpma_conn_req_new(peer, argv[1], argv[2], NULL, &req)) &&
	    !check("rpma_conn_req_connect",
		   rpma_conn_req_connect(&req, NULL, &conn)))
		ret = talk(conn, mr, page);
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(page);
	return ret;
}
