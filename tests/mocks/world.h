/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Objects of librpma on the mocks, for tests of other objects that need them.
 * Making one leaves an empty trace. World: a peer, two regions, a connection.
 */

#ifndef MOCKS_WORLD_H
#define MOCKS_WORLD_H

#include "mocks.h"

struct world {
	struct rpma_peer *peer;
	struct rpma_mr_local *mr; /* of the 64 bytes below, for everything */
	struct rpma_mr_remote *remote; /* of the same, as others see it */
	struct rpma_conn *conn;
	_Alignas(8) char mem[64];
};

extern struct world world;

/* A peer only, and with it all the rest: of this configuration. */
void world_peer(void);
void world_regions(int usage);
void world_conn(const struct rpma_conn_cfg *cfg);
/* What is there of it. */
void world_end(void);

#define WORLD_ALL_USAGES 0xff

#endif /* MOCKS_WORLD_H */
