/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Posting work requests, alone or as a chain. Any thread; verbs lock the QP. */

#ifndef RPMA_WR_H
#define RPMA_WR_H 1

#include "librpma.h"

/*
 * Posts a chain. Returns 0 or an errno; then *bad_wr is the first work request
 * that was not posted.
 */
int rpma__post_send(struct ibv_qp *qp, struct rpma_send_wr *wr,
		    struct rpma_send_wr **bad_wr);
int rpma__post_recv(struct ibv_qp *qp, struct rpma_recv_wr *wr,
		    struct rpma_recv_wr **bad_wr);

/*
 * Returns E_INVAL, logged, for a reserved word or for more pieces than the
 * queue takes.
 */
int rpma__wr_check_recv(const struct rpma_recv_wr *wr, uint32_t max_sge);

#endif /* RPMA_WR_H */
