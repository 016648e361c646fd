/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq.h: shared receive queues (SRQ): receives that connections of one poller
 * share. Each receive comes back once: to the connection that took the receive,
 * or, if no connection did, to the queue of the SRQ with RPMA_RT_C_SYNTHESIZED.
 */

#ifndef RPMA_RT_SRQ_H
#define RPMA_RT_SRQ_H

#include <rpma_rt/post.h>

RPMA_RT_BEGIN

#define RPMA_RT_DEFAULT_SRQ_SIZE 1024

/* Posts up to room further receives; runs on the thread that runs the poller,
 * and may call what rpma_rt_route_fn may. */
typedef void rpma_rt_refill_fn(struct rpma_rt_srq *srq, uint32_t room,
			       void *arg);

struct rpma_rt_srq_cfg {
	uint32_t size;
	uint32_t poller;	     /* index; default 0 */
	struct rpma_peer *peer;	     /* required: the peer of the connections */
	struct rpma_rt_queue *queue; /* of events; NULL with futures only */
	void *user;		     /* in items of the queue; default NULL */
	/* called below limit; NULL (default): SRQ_LIMIT comes to the queue */
	rpma_rt_refill_fn *refill;
	void *refill_arg;
	/* receives, 1..1048576; 0 (default): 1024, or what the pool has */
	uint32_t srq_size;
	uint32_t limit;	  /* ..srq_size; 0: refill after each batch, no event */
	uint32_t max_sge; /* pieces of a receive, 1..32 and device; default 1 */
	uint32_t futures; /* of messages, with a pool, 0..1048576; default 0 */
	struct rpma_rt_pool *pool; /* in place of refill; default NULL */
	uint32_t waiting; /* in line, as in rpma_rt_conn_cfg; 0: srq_size */
	uint32_t reserved32;
};

/* clang-format off */
#define RPMA_RT_SRQ_CFG_INIT { sizeof(struct rpma_rt_srq_cfg), 0, NULL, NULL, \
	NULL, NULL, NULL, 0, 0, 1, 0, NULL, 0, 0 }
/* clang-format on */

/* Writes size bytes of RPMA_RT_SRQ_CFG_INIT. Returns 0. Thread: any. */
int rpma_rt_srq_cfg_init(struct rpma_rt_srq_cfg *cfg, size_t size);

/* Makes an SRQ. Returns 0. Errors: NOMEM, PROVIDER, BUSY (the consumer of the
 * queue is behind), CLOSED. Thread: waits. */
int rpma_rt_srq_new(struct rpma_rt *rt, const struct rpma_rt_srq_cfg *cfg,
		    struct rpma_rt_srq **srq_ptr) RPMA_RT_MUST_CHECK;

/* Ends and frees the SRQ; posted receives come back, then EVENT_SRQ_CLOSED.
 * Returns 0. Errors: BUSY (a connection that is not closed, or a listener, uses
 * the SRQ). Thread: owner, waits. */
int rpma_rt_srq_delete(struct rpma_rt_srq **srq_ptr);

/* Posts count (0..) receives, without routes and futures.
 * Returns the number taken, the first ones. Errors: AGAIN (WRITABLE follows in
 * the queue of the SRQ), CLOSED (failed or stopped). Thread: any. */
int rpma_rt_srq_post_recv(struct rpma_rt_srq *srq,
			  const struct rpma_rt_recv_wr *wr,
			  int count) RPMA_RT_MUST_CHECK;

/* Posts a receive into len bytes of dst.
 * Returns 0. Errors: as rpma_rt_srq_post_recv(). Thread: any. */
RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_srq_recv(struct rpma_rt_srq *srq, struct rpma_mr_local *dst,
		 size_t offset, size_t len, uint64_t context)
{
	struct rpma_rt_recv_wr wr;
	int ret;

	rpma_rt_prep_recv(&wr, dst, offset, len, context);
	ret = rpma_rt_srq_post_recv(srq, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_END

#endif /* RPMA_RT_SRQ_H */
