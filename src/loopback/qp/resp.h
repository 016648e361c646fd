/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resp.h -- the receive that a responder is filling.
 */

#ifndef LB_QP_RESP_H
#define LB_QP_RESP_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "object/limits.h"
#include "qp/rq.h"

/* The receive that the responder is filling. Under rq.pop. */
struct lb_resp {
	uint32_t epoch; /* grows when the responder loses its work */
	bool busy;	/* rqe is taken and not completed */
	bool comm_est;	/* said that the first message came */
	bool last_wqe;	/* said LAST_WQE_REACHED */
	uint32_t pos;
	uint32_t nsge;
	uint64_t wr_id;
	uint64_t flushed; /* a counter */
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
