/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT: receives numbers, and sends each number back plus one,
 * until the client leaves.
 */

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../common/peer.h"

#define PAGE 4096
#define IN   0		      /* where the number arrives */
#define OUT  sizeof(uint64_t) /* where the answer is sent from */

static int answer(struct rpma_conn *conn, struct rpma_mr_local *mr, char *page)
{
	uint64_t number;

	memcpy(&number, page + IN, sizeof(number));
	printf("received %llu\n", (unsigned long long)number++);
	memcpy(page + OUT, &number, sizeof(number));
	/* the next receive first: the client may be faster than the server */
	if (check("rpma_recv", rpma_recv(conn, mr, IN, sizeof(number), NULL)))
		return 1;
	/* the completion gives the place in the send queue back: of sends
	 * without completions the queue would be full after ten */
	return check("rpma_send", rpma_send(conn, mr, OUT, sizeof(number),
					    RPMA_F_COMPLETION_ALWAYS, NULL));
}

static int answer_all(struct rpma_conn *conn, struct rpma_cq *cq,
		      struct rpma_mr_local *mr, char *page)
{
	struct ibv_wc wc;
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == 0) {
		/* the last receive fails, flushed, when the client leaves */
		if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
			continue;
		if (answer(conn, mr, page))
			return 1;
	}
	return ret == RPMA_E_NO_COMPLETION ? 0 : check("rpma_cq_get_wc", ret);
}

/*
 * Serves a connection: waits for a completion, or for the end of the
 * connection.
 */
static int serve(struct rpma_conn *conn, struct rpma_mr_local *mr, char *page)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
	struct rpma_cq *cq;

	if (expect(conn, RPMA_CONN_ESTABLISHED) ||
	    check("rpma_conn_get_cq", rpma_conn_get_cq(conn, &cq)) ||
	    check("rpma_cq_get_fd", rpma_cq_get_fd(cq, &fds[0].fd)) ||
	    check("rpma_conn_get_event_fd",
		  rpma_conn_get_event_fd(conn, &fds[1].fd)))
		return 1;
	while (!answer_all(conn, cq, mr, page)) {
		if (poll(fds, 2, -1) < 0)
			return 1;
		if (fds[1].revents)
			return expect(conn, RPMA_CONN_CLOSED);
		/* takes the event and arms the CQ; then the loop empties the CQ
		 * again */
		if (fds[0].revents && check("rpma_cq_wait", rpma_cq_wait(cq)))
			return 1;
	}
	return 1;
}

static int accept_one(struct rpma_ep *ep, struct rpma_mr_local *mr, char *page)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	if (check("rpma_ep_next_conn_req",
		  rpma_ep_next_conn_req(ep, NULL, &req)))
		return 1;
	/* before accepting: the first message finds a receive */
	if (check("rpma_conn_req_recv",
		  rpma_conn_req_recv(req, mr, IN, sizeof(uint64_t), NULL))) {
		rpma_conn_req_delete(&req);
		return 1;
	}
	if (check("rpma_conn_req_connect",
		  rpma_conn_req_connect(&req, NULL, &conn)))
		return 1;
	int ret = serve(conn, mr, page) ||
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
	if (page && !open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) &&
	    !check("rpma_mr_reg",
		   rpma_mr_reg(peer, page, PAGE,
			       RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND, &mr)) &&
	    !check("rpma_ep_listen",
		   rpma_ep_listen(peer, argv[1], argv[2], &ep)))
		ret = accept_one(ep, mr, page);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(page);
	return ret;
}
