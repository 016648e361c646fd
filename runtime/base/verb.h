/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * verb.h -- work requests are given to the device by these calls, in which the
 * calling thread is not cancelled. The post of most devices writes to memory
 * and to a doorbell, and has no cancellation point. Where the post makes a
 * system call, as on Soft-RoCE, cancellation is disabled meanwhile. The calls
 * show ThreadSanitizer in a program that a post comes before its completion.
 */

#ifndef RT_BASE_VERB_H
#define RT_BASE_VERB_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "base/cancel.h"
#include "base/lang.h"
#include "base/order.h"

/* May posting to the device be a system call? False only for devices that are
 * known to post without. */
bool rt_verb_enters_kernel(const struct ibv_context *ibv_ctx);

/* The verbs, of a device of which rt_verb_enters_kernel() said that. */

static inline int rt_verb_post_send(bool enters_kernel, struct ibv_qp *qp,
				    struct ibv_send_wr *wr,
				    struct ibv_send_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(qp);
	if (likely(!enters_kernel))
		return ibv_post_send(qp, wr, bad);
	before = rt_cancel_disable();
	ret = ibv_post_send(qp, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

static inline int rt_verb_post_recv(bool enters_kernel, struct ibv_qp *qp,
				    struct ibv_recv_wr *wr,
				    struct ibv_recv_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(qp);
	if (likely(!enters_kernel))
		return ibv_post_recv(qp, wr, bad);
	before = rt_cancel_disable();
	ret = ibv_post_recv(qp, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

static inline int rt_verb_post_srq_recv(bool enters_kernel, struct ibv_srq *srq,
					struct ibv_recv_wr *wr,
					struct ibv_recv_wr **bad)
{
	int before;
	int ret;

	rt_order_posts(srq);
	if (likely(!enters_kernel))
		return ibv_post_srq_recv(srq, wr, bad);
	before = rt_cancel_disable();
	ret = ibv_post_srq_recv(srq, wr, bad);
	rt_cancel_restore(&before);
	return ret;
}

#endif /* RT_BASE_VERB_H */
