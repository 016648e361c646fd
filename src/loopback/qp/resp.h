/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resp.h -- the responder of a queue pair: how far it is with the request that
 * it answers, and the receive that it is filling.
 */

#ifndef LB_QP_RESP_H
#define LB_QP_RESP_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "object/limits.h"
#include "qp/rq.h"

/*
 * Under rq.pop. A responder has one requester, the one that it is connected to,
 * which has one request under way; a reset or an error takes the work away, and
 * the requester finds the responder without it.
 */
struct lb_resp {
	bool is_working; /* a request was begun, and is not at its end */
	bool busy;	 /* the receive below is taken and not completed */
	bool comm_est;	 /* said that the first message came */
	bool last_wqe;	 /* said LAST_WQE_REACHED */
	/* of a requester in another process: */
	bool is_late;  /* it got RNR: there was no receive for psn */
	uint16_t late; /* the life that got it */
	uint32_t psn;  /* of the next packet */
	uint64_t done; /* bytes moved of the request */
	uint32_t pos;
	uint32_t nsge;
	uint64_t wr_id;
	struct ibv_sge sge[LB_MAX_SGE];
};

/* Fill resp from the oldest receive; false if there is none. */
static inline void lb_resp_set(struct lb_resp *resp, const struct lb_rqe *rqe,
			       uint32_t pos)
{
	uint32_t i;

	resp->busy = true;
	resp->pos = pos;
	resp->nsge = rqe->nsge;
	resp->wr_id = rqe->wr_id;
	for (i = 0; i < rqe->nsge; i++)
		resp->sge[i] = rqe->sge[i];
}

#endif /* LB_QP_RESP_H */
