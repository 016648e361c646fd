/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * immediate ADDRESS: the client writes records into the memory of the server,
 * with 32 bits of immediate data that number the record: the server gets a
 * completion for each write, and looks at the record. A message may consist of
 * nothing but the 32 bits.
 */

#include <arpa/inet.h>
#include <string.h>

#include "../common/ends.h"

#define RECORD	64
#define RECORDS 3
#define OUT	2048 /* in the page: the client writes from here */
#define THE_END 0xffffffff

/* Takes the completion of a receive; the number is in network byte order. */
static int hear(const struct ends *ends, struct rpma_cq *cq)
{
	struct ibv_wc wc;
	uint32_t number;

	if (wait_wc(cq, &wc) || !(wc.wc_flags & IBV_WC_WITH_IMM))
		return 1;
	number = ntohl(wc.imm_data);
	/* of a write: the bytes are where the client wrote the record */
	if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && number < RECORDS)
		printf("server: record %u: %s\n", number,
		       ends->page + number * RECORD);
	else
		printf("server: a message of no bytes: %x\n", number);
	return 0;
}

static int write_record(const struct ends *ends, struct rpma_conn *conn,
			uint32_t number)
{
	snprintf(ends->page + OUT, RECORD, "written by the client, %u", number);
	return TRY(rpma_write_with_imm(conn, ends->remote, number * RECORD,
				       ends->mr, OUT, RECORD,
				       RPMA_F_COMPLETION_ALWAYS, number, NULL));
}

static int talk(struct ends *ends, struct link *link)
{
	struct rpma_cq *client;
	struct rpma_cq *server;
	struct ibv_wc wc;

	if (TRY(rpma_conn_get_cq(link->client, &client)) ||
	    TRY(rpma_conn_get_cq(link->server, &server)))
		return 1;
	/* each write takes a receive, which needs no memory: the bytes go
	 * elsewhere */
	for (int i = 0; i < RECORDS + 1; i++)
		if (TRY(rpma_recv(link->server, NULL, 0, 0, NULL)))
			return 1;
	for (uint32_t i = 0; i < RECORDS; i++)
		if (write_record(ends, link->client, i) ||
		    wait_wc(client, &wc) || hear(ends, server))
			return 1;
	return TRY(rpma_send_with_imm(link->client, NULL, 0, 0,
				      RPMA_F_COMPLETION_ALWAYS, THE_END,
				      NULL)) ||
	       wait_wc(client, &wc) || hear(ends, server);
}

static int run(struct ends *ends)
{
	struct link link;
	int ret = ends_connect(ends, NULL, NULL, &link) || talk(ends, &link);

	return ends_part(&link) || ret;
}

int main(int argc, char **argv)
{
	return ends_main(argc, argv, run);
}
