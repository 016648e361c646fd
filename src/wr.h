/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Posting work requests, alone or as a chain. Any thread; verbs lock the QP. */

#ifndef RPMA_WR_H
#define RPMA_WR_H 1

#include "librpma.h"

/* 0 or an errno; *bad_wr is then the first that was not posted. */
int rpma__post_send(struct ibv_qp *qp, struct rpma_send_wr *wr,
		    struct rpma_send_wr **bad_wr);
int rpma__post_recv(struct ibv_qp *qp, struct rpma_recv_wr *wr,
		    struct rpma_recv_wr **bad_wr);

/* E_INVAL, logged: a reserved word, or more pieces than the queue takes. */
int rpma__wr_check_recv(const struct rpma_recv_wr *wr, uint32_t max_sge);

#endif /* RPMA_WR_H */
