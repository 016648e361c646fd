/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * persistent ADDRESS: appends records to a log in the memory of the server.
 * Each record counted by the log is whole, whenever the server loses power:
 * first the record and a flush, then the count, written by an atomic write, and
 * a flush.
 */

#include <string.h>

#include "../common/ends.h"

#define RECORD	64
#define RECORDS 3
#define COUNT	0    /* in the page: the number of records, */
#define LOG	64   /* the records, */
#define OUT	2048 /* and the bytes that the client writes from */

#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define ALWAYS	 RPMA_F_COMPLETION_ALWAYS

/*
 * Lets the client ask for persistence. The server says whether writes reach
 * persistent memory and do not stay in a cache; only then may the client ask
 * for persistent flushes. Between two processes the descriptor travels like the
 * descriptor of the memory.
 */
static int allow_persistent(struct rpma_conn *client)
{
	struct rpma_peer_cfg *server_side = NULL;
	struct rpma_peer_cfg *client_side = NULL;
	char descriptor[8];
	size_t size;
	int ret;

	ret = TRY(rpma_peer_cfg_new(&server_side)) ||
	      TRY(rpma_peer_cfg_set_direct_write_to_pmem(server_side, true)) ||
	      TRY(rpma_peer_cfg_get_descriptor_size(server_side, &size)) ||
	      size > sizeof(descriptor) ||
	      TRY(rpma_peer_cfg_get_descriptor(server_side, descriptor)) ||
	      TRY(rpma_peer_cfg_from_descriptor(descriptor, size,
						&client_side)) ||
	      TRY(rpma_conn_apply_remote_peer_cfg(client, client_side));
	TRY(rpma_peer_cfg_delete(&server_side));
	TRY(rpma_peer_cfg_delete(&client_side));
	return ret;
}

static int flush(struct ends *ends, struct rpma_conn *conn, size_t offset,
		 size_t len, int flags)
{
	return TRY(rpma_flush(conn, ends->remote, offset, len,
			      RPMA_FLUSH_TYPE_PERSISTENT, flags, NULL));
}

/* Appends a record: four operations in order, a completion for the last. */
static int append(struct ends *ends, struct rpma_conn *conn, uint64_t count)
{
	size_t at = LOG + count * RECORD;
	struct rpma_cq *cq;
	struct ibv_wc wc;
	char word[8];

	snprintf(ends->page + OUT, RECORD, "record %u", (unsigned)count);
	count++;
	memcpy(word, &count, sizeof(word));
	if (TRY(rpma_conn_get_cq(conn, &cq)) ||
	    TRY(rpma_write(conn, ends->remote, at, ends->mr, OUT, RECORD,
			   ON_ERROR, NULL)) ||
	    flush(ends, conn, at, RECORD, ON_ERROR) ||
	    /* no reader sees half of the count, which is written after the
	     * flush */
	    TRY(rpma_atomic_write(conn, ends->remote, COUNT, word, ON_ERROR,
				  NULL)) ||
	    flush(ends, conn, COUNT, sizeof(word), ALWAYS) || wait_wc(cq, &wc))
		return 1;
	printf("client: %u records are persistent\n", (unsigned)count);
	return 0;
}

static void show(const struct ends *ends)
{
	uint64_t count;

	memcpy(&count, ends->page + COUNT, sizeof(count));
	printf("server: %u records, the last is \"%s\"\n", (unsigned)count,
	       ends->page + LOG + (count - 1) * RECORD);
}

static int run(struct ends *ends)
{
	struct link link;
	int ret;

	memset(ends->page, 0, ENDS_PAGE);
	ret = ends_connect(ends, NULL, NULL, &link) ||
	      allow_persistent(link.client);
	for (uint64_t i = 0; i < RECORDS && !ret; i++)
		ret = append(ends, link.client, i);
	if (!ret)
		show(ends);
	return ends_part(&link) || ret;
}

int main(int argc, char **argv)
{
	return ends_main(argc, argv, run);
}
