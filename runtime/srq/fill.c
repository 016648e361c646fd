/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fill.c -- the refill of a shared receive queue that has a pool: the runtime's
 * own function in place of the program's. Runs on the SRQ's poller.
 * doc/protocols/pool.md, srq.md.
 */

#include "srq/srq.h"

#include "poller/poller.h"
#include "pool/pool.h"

/* Posts slots; how many were posted. Those that were not go back. */
static uint32_t post(struct rpma_rt_srq *srq, const uint64_t *cookies,
		     uint32_t n)
{
	struct rpma_rt_pool *pool = srq->cfg.pool;
	struct rpma_rt_recv_wr wr[RT_FEED_CHUNK];
	uint32_t posted;
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		wr[i] = (struct rpma_rt_recv_wr){
			.context = cookies[i],
			.dst = pool->mr,
			.offset = rt_pool_offset(pool, rt_pool_at(cookies[i])),
			.len = pool->slot_size,
		};
	ret = rt_srq_post(srq, wr, (int)n);
	posted = ret > 0 ? (uint32_t)ret : 0;
	for (i = posted; i < n; i++)
		rt_pool_give_back(pool, cookies[i]);
	return posted;
}

/* True: there was no slot left before there were so many. */
static bool post_room(struct rpma_rt_srq *srq, uint32_t room, uint32_t *posted)
{
	uint64_t cookies[RT_FEED_CHUNK];
	uint32_t done;
	uint32_t n;

	while (*posted < room) {
		n = room - *posted;
		n = rt_pool_take(srq->cfg.pool, cookies,
				 n < RT_FEED_CHUNK ? n : RT_FEED_CHUNK);
		if (n == 0)
			return true;
		done = post(srq, cookies, n);
		*posted += done;
		if (done < n) /* what was in the way has the refill called */
			return false;
	}
	return false;
}

void rt_srq_fill_poller(struct rpma_rt_srq *srq, uint32_t room, void *arg)
{
	uint32_t size = srq->cfg.srq_size;
	uint32_t out = size - room - rt_srq_listed_poller(srq);
	uint32_t posted = 0;
	bool is_empty;

	(void)arg;
	do {
		is_empty = post_room(srq, room, &posted);
	} while (!rt_feed_end_poller(
		&srq->feed, is_empty && rt_feed_is_low(out + posted, size)));
}
