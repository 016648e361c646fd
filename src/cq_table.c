/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* A hash table of all CQs, linked through the CQs: adding needs no memory. */

#include "cq_table.h"

#include <pthread.h>

#include "cq.h"

#define BUCKET_BITS 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

void rpma__cq_table_remove(struct rpma_cq *cq)
{
	struct rpma_cq **at = cq_table_bucket_of(cq->cq);

	rpma__cq_table_lock();
	while (*at != cq)
		at = &(*at)->next;
	*at = cq->next;
	rpma__cq_table_unlock();
}

struct rpma_cq *rpma__cq_table_find(const struct ibv_cq *ibv_cq)
{
	struct rpma_cq *cq;

	rpma__cq_table_lock();
	cq = *cq_table_bucket_of(ibv_cq);
	while (cq && cq->cq != ibv_cq)
		cq = cq->next;
	rpma__cq_table_unlock();
	return cq;
}
