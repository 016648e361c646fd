/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client ADDRESS PORT [TEXT]: writes TEXT into the server's memory.
 */

#include <stdlib.h>
#include <string.h>

#include "../common/peer.h"

#define PAGE 4096

/*
 * Reads the descriptor of the lent memory from the private data of the server.
 */
static int borrow(const struct rpma_conn *conn, size_t len,
		  struct rpma_mr_remote **remote)
{
	struct rpma_conn_private_data pdata;
	size_t size;

	if (check("rpma_conn_get_private_data",
		  rpma_conn_get_private_data(conn, &pdata)))
		return 1;
	/* librpma refuses a descriptor of a wrong length: no check is needed
	 * here */
	if (check("rpma_mr_remote_from_descriptor",
		  rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len,
						 remote)) ||
	    check("rpma_mr_remote_get_size",
		  rpma_mr_remote_get_size(*remote, &size)))
		return 1;
	if (size >= len)
		return 0;
	fprintf(stderr, "the server lends only %zu bytes\n", size);
	return 1;
}

static int write_text(struct rpma_conn *conn, const struct rpma_mr_local *mr,
		      struct rpma_mr_remote *remote, size_t len)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	if (check("rpma_conn_get_cq", rpma_conn_get_cq(conn, &cq)) ||
	    check("rpma_write", rpma_write(conn, remote, 0, mr, 0, len,
					   RPMA_F_COMPLETION_ON_ERROR, NULL)))
		return 1;
	/* a flush completes after the writes before the flush are in the
	 * memory */
	if (check("rpma_flush",
		  rpma_flush(conn, remote, 0, len, RPMA_FLUSH_TYPE_VISIBILITY,
			     RPMA_F_COMPLETION_ALWAYS, NULL)))
		return 1;
	if (wait_wc(cq, &wc))
		return 1;
	printf("wrote %zu bytes\n", len);
	return 0;
}

static int use(struct rpma_conn *conn, const struct rpma_mr_local *mr,
	       size_t len)
{
	struct rpma_mr_remote *remote = NULL;
	int ret = expect(conn, RPMA_CONN_ESTABLISHED) ||
		  borrow(conn, len, &remote) ||
		  write_text(conn, mr, remote, len) ||
		  check("rpma_conn_disconnect", rpma_conn_disconnect(conn)) ||
		  expect(conn, RPMA_CONN_CLOSED);

	rpma_mr_remote_delete(&remote);
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	const char *text = argc == 4 ? argv[3] : "good morning";
	char *page;
	int ret = 1;

	if (argc < 3 || argc > 4 || strlen(text) >= PAGE) {
		fprintf(stderr, "usage: %s ADDRESS PORT [TEXT (to %d bytes)]\n",
			argv[0], PAGE - 1);
		return 2;
	}
	page = aligned_alloc(PAGE, PAGE);
	if (!page)
		return 1;
	strcpy(page, text);
	if (!open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) &&
	    !check("rpma_mr_reg", rpma_mr_reg(peer, page, PAGE,
					      RPMA_MR_USAGE_WRITE_SRC, &mr)) &&
	    !check("rpma_conn_req_new",
		   rpma_conn_req_new(peer, argv[1], argv[2], NULL, &req)) &&
	    !check("rpma_conn_req_connect",
		   rpma_conn_req_connect(&req, NULL, &conn)))
		ret = use(conn, mr, strlen(page) + 1);
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&peer);
	free(page);
	return ret;
}
