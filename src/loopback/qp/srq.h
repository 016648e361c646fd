/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq.h -- shared receive queues.
 */

#ifndef LB_QP_SRQ_H
#define LB_QP_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "memory/pd.h"
#include "base/process.h"
#include "object/async.h"
#include "object/object.h"
#include "qp/resp.h"
#include "qp/rq.h"

struct lb_srq {
	struct ibv_srq ibv; /* first: the handle */
	uint8_t slack[64];
	struct lb_obj obj;
	uint32_t magic;
	struct lb_pd *pd;
	struct lb_rq rq;
	uint32_t limit; /* under rq.pop; 0: not armed */
	struct lb_asyncs asyncs;
};

bool lb_srq_take(struct lb_srq *srq, struct lb_resp *resp);
int lb_srq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad);
struct ibv_srq *lb_srq_create_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *attr);
int lb_srq_get_num(struct ibv_srq *srq, uint32_t *num);
/* A child can only destroy the SRQs of its parent. */
void lb_srq_fork(enum lb_fork_step step);

#endif /* LB_QP_SRQ_H */
