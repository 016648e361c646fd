/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq.h -- makes and destroys channels and CQs. All of these calls may block in
 * the device, so none is made with a lock held or on a poller.
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
/* Frees the channel even on an error. ERRORS: RPMA_E_PROVIDER */
int rt_cq_channel_delete(struct rt_channel *channel);

/* Makes a CQ: with that room at least, as large as configured at least, and as
 * large as wanted where the device has so many entries. A size that the device
 * refuses is halved. ERRORS: RPMA_E_NOMEM (more than the device has),
 * RPMA_E_PROVIDER */
int rt_cq_new(struct rt_channel *channel, uint32_t room, uint32_t wanted,
	      struct rt_cq **cq_ptr);
/* REQUIRES: every event that was read of the CQ was acknowledged, or its poller
 * does it. ERRORS: RPMA_E_AGAIN (the device still uses the CQ, which is as it
 * was), RPMA_E_PROVIDER */
int rt_cq_destroy(struct rt_cq *cq);
/* Frees the record of a CQ that is destroyed or given up. */
void rt_cq_free(struct rt_cq *cq);

/* Any thread: the CQ has failed. Calls its users; it gets no new ones. */
void rt_cq_fail_mt(struct rt_cq *cq);
/* The poller: nothing on the channel wakes it any more; new connections get
 * another channel. The CQs are failed one by one, after this. */
void rt_cq_fail_channel_poller(struct rt_channel *channel);
/* The poller has let go of a CQ that left: sends it to be destroyed. The record
 * may be gone when this returns. */
void rt_cq_gone_poller(struct rt_cq *cq);

#endif /* RT_POLLER_CQ_H */
