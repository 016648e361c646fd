/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rq.h -- the ring of posted receives, of a QP or of an SRQ.
 */

#ifndef LB_QP_RQ_H
#define LB_QP_RQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/lock.h"

struct lb_rqe {
	_Atomic uint32_t seq; /* position + 1 when posted */
	uint32_t nsge;
	uint64_t wr_id;
	struct ibv_sge sge[];
};

/* Receives of a QP or of an SRQ. */
struct lb_rq {
	uint8_t *slots;
	uint32_t stride;
	uint32_t mask;
	uint32_t cap;
	uint32_t max_sge;

	LB_ALIGNED struct lb_lock post; /* to post receives */
	uint32_t tail;
	uint32_t freed_seen; /* freed as of the last look */

	LB_ALIGNED struct lb_lock pop; /* to execute towards this QP */
	uint32_t head;

	/* slots before this may be reused; set by the poll (QP), pop (SRQ) */
	LB_ALIGNED _Atomic uint32_t freed;
};

/* Returns the bytes of the slots of a queue, in whole cache lines. */
size_t lb_rq_bytes(uint32_t cap, uint32_t max_sge);
/* memory: so many bytes, zeroed, which stay the caller's. */
void lb_rq_init(struct lb_rq *rq, uint32_t cap, uint32_t max_sge, void *memory);
/* Changes the size to one that holds what is posted; post and pop held. Frees
 * the memory of before, which has to be of lb_zalloc(). Returns 0 or ENOMEM. */
int lb_rq_resize(struct lb_rq *rq, uint32_t cap);
/* Leaves the memory to the caller. */
void lb_rq_fini(struct lb_rq *rq);
void lb_rq_reset(struct lb_rq *rq); /* all locks of its owner held */
int lb_rq_post(struct lb_rq *rq, const struct ibv_recv_wr *wr);
struct lb_rqe *lb_rq_pop(struct lb_rq *rq, uint32_t *pos);
uint32_t lb_rq_count(const struct lb_rq *rq); /* post and pop held */

#endif /* LB_QP_RQ_H */
