/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.h -- posts requests and receives.
 */

#ifndef LB_EXEC_POST_H
#define LB_EXEC_POST_H

#include <infiniband/verbs.h>

int lb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad);
int lb_post_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		    struct ibv_mw_bind *ask);
int lb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);

#endif /* LB_EXEC_POST_H */
