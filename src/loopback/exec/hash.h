/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hash.h -- what the buffers of a request hash to, for the strict mode.
 */

#ifndef LB_EXEC_HASH_H
#define LB_EXEC_HASH_H

#include <stdint.h>

struct lb_qp;
struct lb_wqe;

/* Stores the hash of the buffers of the request at pos, for the strict mode. */
void lb_hash_remember(struct lb_qp *qp, uint32_t pos);
/* Hash of the buffers of a request, 0 if not to be read; barrier entered. */
uint64_t lb_hash_wqe(const struct lb_qp *qp, const struct lb_wqe *wqe);

#endif /* LB_EXEC_HASH_H */
