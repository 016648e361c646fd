/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rq.c -- the ring of posted receives, of a QP or of an SRQ. A poster holds
 * rq.post, an executor towards the owner holds rq.pop, and they share only the
 * slots: each says by its seq whether it is posted. Positions never go back,
 * not even when the owner is reset or its memory serves another QP, so a
 * completion that is polled late cannot free a slot twice.
 */

#include "qp/rq.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/advance.h"
#include "base/base.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/zalloc.h"

static struct lb_rqe *slot_at(const struct lb_rq *rq, uint32_t pos)
{
	return (struct lb_rqe *)(rq->slots +
				 (size_t)(pos & rq->mask) * rq->stride);
}

static uint32_t stride_of(uint32_t max_sge)
{
	size_t stride =
		sizeof(struct lb_rqe) + max_sge * sizeof(struct ibv_sge);

	return (uint32_t)((stride + LB_CACHE_LINE - 1) &
			  ~(size_t)(LB_CACHE_LINE - 1));
}

size_t lb_rq_bytes(uint32_t cap, uint32_t max_sge)
{
	return (size_t)lb_pow2(cap) * stride_of(max_sge);
}

void lb_rq_init(struct lb_rq *rq, uint32_t cap, uint32_t max_sge, void *memory)
{
	uint32_t i;

	rq->cap = cap;
	rq->mask = lb_pow2(cap) - 1;
	rq->max_sge = max_sge;
	rq->stride = stride_of(max_sge);
	rq->slots = memory;
	for (i = 0; i <= rq->mask; i++)
		atomic_init(&slot_at(rq, i)->seq, rq->tail);
	lb_rq_reset(rq);
}

int lb_rq_resize(struct lb_rq *rq, uint32_t cap)
{
	struct lb_rq old = *rq;
	uint32_t i;

	rq->cap = cap;
	rq->mask = lb_pow2(cap) - 1;
	rq->slots = lb_zalloc((size_t)(rq->mask + 1) * rq->stride);
	if (!rq->slots) {
		rq->slots = old.slots;
		rq->mask = old.mask;
		rq->cap = old.cap;
		return ENOMEM;
	}
	for (i = 0; i <= rq->mask; i++)
		atomic_init(&slot_at(rq, i)->seq, rq->head);
	for (i = rq->head; i != rq->tail; i++)
		memcpy(slot_at(rq, i), slot_at(&old, i), rq->stride);
	free(old.slots);
	return 0;
}

void lb_rq_fini(struct lb_rq *rq)
{
	lb_rq_reset(rq);
	rq->slots = NULL;
	rq->cap = 0;
}

void lb_rq_reset(struct lb_rq *rq)
{
	rq->head = rq->tail;
	rq->freed_seen = rq->tail;
	lb_advance(&rq->freed, rq->tail);
}

static bool has_room(struct lb_rq *rq)
{
	if (lb_likely(rq->tail - rq->freed_seen < rq->cap))
		return true;
	/* acquire: pairs with the release in lb_advance() */
	rq->freed_seen = atomic_load_explicit(&rq->freed, memory_order_acquire);
	return rq->tail - rq->freed_seen < rq->cap;
}

static bool lies_over(const struct ibv_sge *a, const struct ibv_sge *b)
{
	return a->length && b->length && a->addr < b->addr + b->length &&
	       b->addr < a->addr + a->length;
}

/* Say if the buffer lies over one that is already posted; rq.post held. */
static void check_overlap(const struct lb_rq *rq, const struct ibv_recv_wr *wr)
{
	uint32_t pos, i, n;
	int k;

	/* relaxed: a receive completed meanwhile is at worst a false friend */
	for (pos = atomic_load_explicit(&rq->freed, memory_order_relaxed);
	     pos != rq->tail; pos++) {
		const struct lb_rqe *rqe = slot_at(rq, pos);

		for (i = 0, n = rqe->nsge; i < n; i++) {
			for (k = 0; k < wr->num_sge; k++) {
				if (lies_over(&rqe->sge[i], &wr->sg_list[k]))
					lb_log_misuse(
						"receive %#llx overlaps "
						"receive %#llx, which is "
						"still posted",
						(unsigned long long)wr->wr_id,
						(unsigned long long)rqe->wr_id);
			}
		}
	}
}

int lb_rq_post(struct lb_rq *rq, const struct ibv_recv_wr *wr)
{
	struct lb_rqe *rqe;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (!has_room(rq))
		return ENOMEM;
	if (lb_is_strict())
		check_overlap(rq, wr);
	rqe = slot_at(rq, rq->tail);
	rqe->wr_id = wr->wr_id;
	rqe->nsge = (uint32_t)wr->num_sge;
	if (wr->num_sge)
		memcpy(rqe->sge, wr->sg_list,
		       (size_t)wr->num_sge * sizeof(rqe->sge[0]));
	rq->tail++;
	/* release: pairs with the acquire in lb_rq_pop(); publishes the slot */
	atomic_store_explicit(&rqe->seq, rq->tail, memory_order_release);
	return 0;
}

struct lb_rqe *lb_rq_pop(struct lb_rq *rq, uint32_t *pos)
{
	struct lb_rqe *rqe = slot_at(rq, rq->head);

	/* acquire: pairs with the release in lb_rq_post() */
	if (!rq->cap || atomic_load_explicit(&rqe->seq, memory_order_acquire) !=
				rq->head + 1)
		return NULL;
	*pos = rq->head++;
	return rqe;
}

uint32_t lb_rq_count(const struct lb_rq *rq)
{
	return rq->tail - rq->head;
}
