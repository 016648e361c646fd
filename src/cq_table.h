/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * All CQs of the library by ibv_cq, so that a CQ of the library is recognized
 * without touching the memory of a foreign CQ. Any thread.
 */

#ifndef RPMA_CQ_TABLE_H
#define RPMA_CQ_TABLE_H 1

#include "librpma.h"

/* Adds a CQ; cq->cq is set. */
void rpma__cq_table_add(struct rpma_cq *cq);
/*
 * Removes a CQ, before its ibv_cq is destroyed: afterwards the address may
 * belong to a new CQ.
 */
void rpma__cq_table_remove(struct rpma_cq *cq);
/*
 * Finds a CQ; returns NULL if ibv_cq belongs to no CQ of this library. ibv_cq
 * is compared, never followed.
 */
struct rpma_cq *rpma__cq_table_find(const struct ibv_cq *ibv_cq);

/*
 * Locks the table while a process forks, so that the child finds the table
 * whole and unlocked.
 */
void rpma__cq_table_lock(void);
void rpma__cq_table_unlock(void);

#endif /* RPMA_CQ_TABLE_H */
