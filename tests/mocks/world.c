/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Objects that tests need beside the tested one. */

#include "world.h"

#include <string.h>

struct world world;

void world_peer(void)
{
	ok(rpma_peer_new(MOCK_CTX, &world.peer));
	mocks_reset();
}

void world_regions(int usage)
{
	char desc[32];

	if (world.peer == NULL)
		world_peer();
	ok(rpma_mr_reg(world.peer, world.mem, sizeof(world.mem), usage,
		       &world.mr));
	ok(rpma_mr_get_descriptor(world.mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &world.remote));
	mocks_reset();
}

void world_conn(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;

	if (world.peer == NULL)
		world_peer();
	ok(rpma_conn_req_new(world.peer, "host", "7204", cfg, &req));
	ok(rpma_conn_req_connect(&req, NULL, &world.conn));
	mocks_reset();
}

void world_end(void)
{
	ok(rpma_conn_delete(&world.conn));
	ok(rpma_mr_remote_delete(&world.remote));
	ok(rpma_mr_dereg(&world.mr));
	ok(rpma_peer_delete(&world.peer));
	memset(&world, 0, sizeof(world));
}
