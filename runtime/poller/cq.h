/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq.h -- a channel, a CQ: made and destroyed. All of it may block in the
 * device, so none of it is called with a lock or on a poller.
 */

#ifndef RT_POLLER_CQ_H
#define RT_POLLER_CQ_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct rt_channel;
struct rt_cq;
struct rt_poller;

/* In the poller's epoll set; its messages and its watch are the caller's.
 * ERRORS: RPMA_E_NOMEM, RPMA_E_PROVIDER */
int rt_cq_channel_new(struct rt_poller *poller, struct ibv_context *ibv_ctx,
		      struct rt_channel **channel_ptr);
/* It is freed in any case. ERRORS: RPMA_E_PROVIDER */
int rt_cq_channel_delete(struct rt_channel *channel);

/* As large as configured, but with that room at least.
 * ERRORS: RPMA_E_NOMEM (more than the device has), RPMA_E_PROVIDER */
int rt_cq_new(struct rt_channel *channel, uint32_t room, struct rt_cq **cq_ptr);
/* REQUIRES: every event that was read of it was acknowledged, or its poller
 * does it. ERRORS: RPMA_E_AGAIN (the device has something on it still: it is
 * as it was), RPMA_E_PROVIDER */
int rt_cq_destroy(struct rt_cq *cq);
/* The record, destroyed or given up. */
void rt_cq_free(struct rt_cq *cq);

/* Any thread: the CQ works no more. Its users are told; it gets no new ones. */
void rt_cq_fail_mt(struct rt_cq *cq);
/* Its poller: nothing on it wakes the poller any more; newcomers get another.
 * Its CQs are failed one by one, after this. */
void rt_cq_fail_channel_poller(struct rt_channel *channel);
/* Its poller: has let go of a CQ that left; it is destroyed. The record may be
 * gone when this returns. */
void rt_cq_gone_poller(struct rt_cq *cq);

#endif /* RT_POLLER_CQ_H */
