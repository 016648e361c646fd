/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Every CQ of the library by its ibv_cq, so that a CQ of the library is
 * recognized without touching the memory of another. Any thread.
 */

#ifndef RPMA_CQ_TABLE_H
#define RPMA_CQ_TABLE_H 1

#include "librpma.h"

/* Requires: cq->cq is set. */
void rpma__cq_table_add(struct rpma_cq *cq);
/* Before its ibv_cq is destroyed: the address may be a new one's then. */
void rpma__cq_table_remove(struct rpma_cq *cq);
/* NULL: not a CQ of this library. ibv_cq is compared, never followed. */
struct rpma_cq *rpma__cq_table_find(const struct ibv_cq *ibv_cq);

/* While a process forks, so that its child finds the table whole and free. */
void rpma__cq_table_lock(void);
void rpma__cq_table_unlock(void);

#endif /* RPMA_CQ_TABLE_H */
