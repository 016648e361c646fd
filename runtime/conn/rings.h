/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rings.h -- the memory of a connection for each work request that the program
 * configured: ledgers, lines, completions that wait for a ledger. The rings are
 * a single block of memory, made with the connection: a thread that makes
 * connections asks the allocator once, and pages that no work request has used
 * stay untouched.
 */

#ifndef RT_CONN_RINGS_H
#define RT_CONN_RINGS_H

#include <stdint.h>

struct rpma_rt_conn;

/*
 * Makes the rings of a connection whose max_sge, max_inline and receives are
 * set. depths: of the two ledgers, by enum rpma_rt_side; waiting: from the
 * configuration. Any thread. ERRORS: RPMA_E_NOMEM
 */
int rt_rings_new(struct rpma_rt_conn *conn, const uint32_t depths[2],
		 uint32_t waiting);
/* Frees the rings, if rt_rings_new() made them. No thread posts or polls. */
void rt_rings_free(struct rpma_rt_conn *conn);

#endif /* RT_CONN_RINGS_H */
