/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Regions that the program registers itself, on a device: with flags of its own
 * and, as rpma_mr_reg() does not, at an address of its own choice. On-demand
 * paging, dmabufs and device memory need devices that have them.
 */

#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define SIGNALED RPMA_F_COMPLETION_ALWAYS
#define SIZE	 4096

/* a device that flushes itself wants the right to it */
#ifdef RPMA_HAVE_NATIVE_FLUSH
#define FLUSH IBV_ACCESS_FLUSH_GLOBAL
#else
#define FLUSH 0
#endif

#define REMOTE                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | FLUSH)
#define USAGE                                               \
	(RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | \
	 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |          \
	 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

/* Memory at the server that the client works on. */
struct ground {
	struct pair pair;
	char *mem;
	struct ibv_mr *ibv_mr;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
};

static void open_ground(struct ground *g, int access)
{
	struct ibv_pd *pd = NULL;
	char desc[32];

	pair_open(&g->pair);
	g->mem = aligned_alloc(SIZE, SIZE);
	assert_non_null(g->mem);
	memset(g->mem, 0, SIZE);
	ok(rpma_peer_get_ibv_pd(the_peer, &pd));
	g->ibv_mr = ibv_reg_mr(pd, g->mem, SIZE, access);
	assert_non_null(g->ibv_mr);
	ok(rpma_mr_from_ibv_mr(the_peer, g->ibv_mr, (uintptr_t)g->mem, USAGE,
			       &g->mr));
	ok(rpma_mr_get_descriptor(g->mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &g->remote));
}

static void close_ground(struct ground *g)
{
	pair_close(&g->pair);
	ok(rpma_mr_remote_delete(&g->remote));
	ok(rpma_mr_dereg(&g->mr));
	/* it is there still, and the program's */
	ok(ibv_dereg_mr(g->ibv_mr));
	free(g->mem);
}

/* Write, flush, read, and a message each way. */
static void use(struct ground *g)
{
	struct side *client = &g->pair.client;
	struct side *server = &g->pair.server;

	memcpy(client->mem, "written", 8);
	ok(rpma_write(client->conn, g->remote, 128, client->mr, 0, 8, SIGNALED,
		      (void *)1));
	expect_done(client, 1, IBV_WC_RDMA_WRITE);
	ok(rpma_flush(client->conn, g->remote, 128, 8,
		      RPMA_FLUSH_TYPE_VISIBILITY, SIGNALED, (void *)2));
	assert_int_equal(next_wc(cq_of(client)).status, IBV_WC_SUCCESS);
	assert_string_equal(g->mem + 128, "written");
	ok(rpma_read(client->conn, client->mr, 64, g->remote, 128, 8, SIGNALED,
		     (void *)3));
	expect_done(client, 3, IBV_WC_RDMA_READ);
	assert_string_equal(client->mem + 64, "written");

	ok(rpma_recv(server->conn, g->mr, 256, 8, (void *)4));
	ok(rpma_send(client->conn, client->mr, 0, 8, SIGNALED, (void *)5));
	expect_done(client, 5, IBV_WC_SEND);
	expect_done(server, 4, IBV_WC_RECV);
	assert_string_equal(g->mem + 256, "written");
	ok(rpma_recv(client->conn, client->mr, 512, 8, (void *)6));
	ok(rpma_send(server->conn, g->mr, 256, 8, SIGNALED, (void *)7));
	expect_done(server, 7, IBV_WC_SEND);
	expect_done(client, 6, IBV_WC_RECV);
	assert_string_equal(client->mem + 512, "written");
}

TEST(from_ibv_mr__plain_flags)
{
	struct ground g;

	open_ground(&g, REMOTE);
	use(&g);
	close_ground(&g);
}

TEST(from_ibv_mr__relaxed_ordering)
{
	struct ground g;

	open_ground(&g, REMOTE | IBV_ACCESS_RELAXED_ORDERING);
	use(&g);
	close_ground(&g);
}

/* What the usage says is for others; what may be done is the ibv_mr's. */
TEST(from_ibv_mr__no_remote_access_ERROR)
{
	struct ground g;
	struct ibv_wc wc;

	open_ground(&g, IBV_ACCESS_LOCAL_WRITE);
	ok(rpma_write(g.pair.client.conn, g.remote, 0, g.pair.client.mr, 0, 8,
		      SIGNALED, NULL));
	wc = next_wc(cq_of(&g.pair.client));
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	close_ground(&g);
}

PAIR_MAIN()
