/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A hash table of all CQs, linked through the CQs: adding needs no memory. */

#include "cq_table.h"

#include <pthread.h>

#include "cq.h"

#define BUCKET_BITS 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* signaled when a CQ leaves no more, or has no pin any more */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* under the lock */
static struct rpma_cq *buckets[1 << BUCKET_BITS];

void rpma__cq_table_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rpma__cq_table_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void rpma__cq_table_renew(void)
{
	changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

/*
 * Hashes an address: allocators give neighbours addresses with the same lower
 * bits.
 */
static struct rpma_cq **cq_table_bucket_of(const struct ibv_cq *ibv_cq)
{
	uint64_t hash = (uintptr_t)ibv_cq * UINT64_C(0x9e3779b97f4a7c15);

	return &buckets[hash >> (64 - BUCKET_BITS)];
}

void rpma__cq_table_add(struct rpma_cq *cq)
{
	struct rpma_cq **at = cq_table_bucket_of(cq->cq);

	rpma__cq_table_lock();
	cq->next = *at;
	*at = cq;
	rpma__cq_table_unlock();
}

void rpma__cq_table_set_leaving(struct rpma_cq *cq, bool leaving)
{
	rpma__cq_table_lock();
	cq->life = leaving ? RPMA__CQ_LEAVING : RPMA__CQ_STAYS;
	pthread_cond_broadcast(&changed);
	rpma__cq_table_unlock();
}

/* Unlinks the CQ, if the CQ is in the table. */
static void cq_table_unlink_locked(struct rpma_cq *cq)
{
	struct rpma_cq **at = cq_table_bucket_of(cq->cq);

	while (*at && *at != cq)
		at = &(*at)->next;
	if (*at)
		*at = cq->next;
}

void rpma__cq_table_remove(struct rpma_cq *cq)
{
	rpma__cq_table_lock();
	cq_table_unlink_locked(cq);
	cq->life = RPMA__CQ_GONE;
	pthread_cond_broadcast(&changed);
	while (cq->pins)
		pthread_cond_wait(&changed, &lock);
	rpma__cq_table_unlock();
}

void rpma__cq_table_forget(struct rpma_cq *cq)
{
	rpma__cq_table_lock();
	cq_table_unlink_locked(cq);
	rpma__cq_table_unlock();
}

/*
 * Finds the CQ that stays, else the youngest CQ that is leaving: the others
 * with this address are destroyed, and only not removed yet.
 */
static struct rpma_cq *cq_table_find_locked(const struct ibv_cq *ibv_cq)
{
	struct rpma_cq *leaving = NULL;
	struct rpma_cq *cq;

	for (cq = *cq_table_bucket_of(ibv_cq); cq; cq = cq->next) {
		if (cq->cq != ibv_cq)
			continue;
		if (cq->life == RPMA__CQ_STAYS)
			return cq;
		if (leaving == NULL)
			leaving = cq;
	}
	return leaving;
}

struct rpma_cq *rpma__cq_table_find(const struct ibv_cq *ibv_cq)
{
	struct rpma_cq *cq;

	rpma__cq_table_lock();
	cq = cq_table_find_locked(ibv_cq);
	/* the ibv_cq of a leaving CQ may be destroyed already, and ibv_cq a
	 * foreign CQ at the same address */
	if (cq && cq->life == RPMA__CQ_LEAVING && ibv_cq->cq_context != cq)
		cq = NULL;
	rpma__cq_table_unlock();
	return cq;
}

struct rpma_cq *rpma__cq_table_pin(const struct ibv_cq *ibv_cq)
{
	struct rpma_cq *cq;

	rpma__cq_table_lock();
	cq = cq_table_find_locked(ibv_cq);
	if (cq)
		cq->pins++;
	rpma__cq_table_unlock();
	return cq;
}

struct rpma_cq *rpma__cq_table_unpin(struct rpma_cq *cq)
{
	bool is_gone;

	if (cq == NULL)
		return NULL;
	rpma__cq_table_lock();
	while (cq->life == RPMA__CQ_LEAVING)
		pthread_cond_wait(&changed, &lock);
	is_gone = cq->life == RPMA__CQ_GONE;
	if (--cq->pins == 0 && is_gone)
		pthread_cond_broadcast(&changed);
	rpma__cq_table_unlock();
	return is_gone ? NULL : cq;
}
