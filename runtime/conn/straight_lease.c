/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight_lease.c -- the call that posts a row of messages, one of each lease.
 * A row of leases that only the program holds, all of a single pool, goes
 * a straight way (straight.h); any other row is posted as work requests
 * (straight_send.c). Any thread.
 */

#include "conn/straight.h"

#include <infiniband/verbs.h>

#include "base/wr.h"
#include "pool/pool.h"
#include "poller/poller.h"

/* A row of messages. */
struct straight_row {
	const struct rpma_rt_lease *const *leases;
	uint64_t context;
	bool is_silent; /* the last message completes only if it fails */
};

/* Returns whether only the program holds the lease, and the bytes of the lease
 * are in the slot. words: pool->leases */
static inline bool straight_is_sole(const struct rpma_rt_pool *pool,
				    const _Atomic uint64_t *words,
				    const struct rpma_rt_lease *lease)
{
	/* relaxed: the program holds the lease, so no other thread makes a work
	 * request a holder during the call */
	return likely(lease != NULL) && likely(lease->mr == pool->mr) &&
	       likely(lease->slot < pool->count) &&
	       likely(rt_pool_is_in_slot(pool, lease->slot, lease->offset,
					 lease->len)) &&
	       likely(atomic_load_explicit(&words[lease->slot],
					   memory_order_relaxed) ==
		      rt_pool_word_of(lease->generation));
}

STRAIGHT int straight_fill_leases(const struct rpma_rt_conn *conn,
				  const void *wrs, int count, void *sends)
{
	const struct straight_row *row = wrs;
	const struct rpma_rt_lease *const *leases = row->leases;
	const struct rpma_rt_pool *pool = leases[0]->pool;
	struct rpma_send_wr *chain = sends;
	const uint64_t wr_id =
		rt_wr_id(conn->own[RPMA_RT_SEND_SIDE].number, row->context) |
		RT_ON_ERROR_ONLY;
	const struct rpma_mr_local_head *mr =
		(const struct rpma_mr_local_head *)pool->mr;
	const uint32_t lkey = mr->ibv_mr->lkey;
	const uint64_t addr = mr->addr;
	/* read once: the stores below may not change this word */
	const _Atomic uint64_t *const words = pool->leases;
	int i;

	for (i = 0; i < count; i++) {
		if (unlikely(!straight_is_sole(pool, words, leases[i])))
			return 0;
		chain[i].wr.wr_id = wr_id;
		chain[i].wr.next = &chain[i + 1].wr;
		chain[i].wr.sg_list = &chain[i].sge;
		chain[i].wr.num_sge = 1;
		chain[i].wr.opcode = IBV_WR_SEND;
		chain[i].wr.send_flags = 0;
		chain[i].wr.imm_data = 0;
		chain[i].sge.addr = addr + leases[i]->offset;
		chain[i].sge.length = leases[i]->len;
		chain[i].sge.lkey = lkey;
	}
	if (!row->is_silent)
		chain[count - 1].wr.wr_id = wr_id & ~RT_ON_ERROR_ONLY;
	chain[count - 1].wr.next = NULL;
	return 1;
}

STRAIGHT bool straight_note_leases(struct rpma_rt_conn *conn, const void *wrs,
				   int count, void *sends)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_SEND_SIDE);
	uint32_t tick = rt_poller_date(conn->poller);
	const struct straight_row *row = wrs;
	struct rpma_send_wr *chain = sends;
	const int silent = row->is_silent ? count : count - 1;
	int i = rt_ledger_append_silent(&pen, chain[0].wr.wr_id, IBV_WC_SEND,
					silent, tick);

	for (; i < count; i++) {
		if (rt_hold_append(&pen, chain[i].wr.wr_id, IBV_WC_SEND, tick))
			chain[i].wr.send_flags = IBV_SEND_SIGNALED;
	}
	rt_hold_end_row(conn, RPMA_RT_SEND_SIDE, &pen);
	return true;
}

static const struct straight_way leases_to_own = {
	.fill = straight_fill_leases,
	.is_ready = straight_own_ready,
	.note = straight_note_leases,
	.give = straight_give_sends,
	.side = RPMA_RT_SEND_SIDE,
};

/* Not inlined, because the chain is large. */
__attribute__((noinline)) static bool
straight_post_leases(struct rpma_rt_conn *conn, const struct straight_row *row,
		     int count)
{
	struct rpma_send_wr chain[RT_POST_CHUNK];

	return straight_post(conn, row, count, chain, &leases_to_own);
}

/* Posts a row of which every lease was checked. */
__attribute__((noinline)) static int
straight_post_as_sends(struct rpma_rt_conn *conn,
		       const struct straight_row *row, int count)
{
	struct rpma_rt_wr wrs[RT_POST_CHUNK];
	const struct rpma_rt_lease *lease;
	int done = 0;
	int ret;
	int n;

	while (done < count) {
		for (n = 0; n < RT_POST_CHUNK && done + n < count; n++) {
			lease = row->leases[done + n];
			rpma_rt_prep_send(
				&wrs[n], lease->mr, lease->offset, lease->len,
				RPMA_F_COMPLETION_ON_ERROR, row->context);
		}
		if (done + n == count && !row->is_silent)
			wrs[n - 1].flags = RPMA_F_COMPLETION_ALWAYS;
		ret = rpma_rt_post_send(conn, wrs, n);
		if (ret < 0)
			return done > 0 ? done : ret;
		done += ret;
		if (ret < n)
			break;
	}
	return done;
}

/* Logs that the bytes of a lease are not all in the slot. */
static int straight_refuse_bytes(const struct rpma_rt_lease *lease, int index)
{
	const struct rpma_rt_pool *pool = lease->pool;

	return RT_REFUSE(
		RPMA_E_INVAL,
		"leases[%d] leaves the slot: %u bytes from byte %lld, "
		"and a slot of pool \"%s\" has %u bytes. A length of "
		"snprintf() may be above the slot's",
		index, lease->len,
		(long long)(lease->offset - rt_pool_offset(pool, lease->slot)),
		pool->name, pool->slot_size);
}

/* Checks a row, and posts the row as work requests. */
__attribute__((noinline)) static int
straight_post_checked_row(struct rpma_rt_conn *conn,
			  const struct straight_row *row, int count)
{
	const struct rpma_rt_lease *const *const leases = row->leases;
	int ret;
	int i;

	if (conn == NULL || (leases == NULL && count > 0))
		return RT_REFUSE_NULL(conn, leases);
	if (count <= 0)
		return rt_post_nothing(conn, leases, count, RPMA_RT_SEND_SIDE);
	ret = rt_post_check(conn, RPMA_RT_SEND_SIDE);
	if (ret)
		return ret;
	/* a post that is refused anyway says why, whatever the leases are */
	ret = rt_post_check_word(
		rt_turn_look(&conn->gate[RPMA_RT_SEND_SIDE].turn));
	for (i = 0; i < count; i++) {
		if (leases[i] == NULL)
			return RT_REFUSE(RPMA_E_INVAL, "leases[%d] is NULL", i);
		if (ret == 0 && !rt_pool_is_held(leases[i]))
			return RT_REFUSE(RPMA_E_INVAL,
					 "leases[%d] is not held: the lease "
					 "was given back, or away with a work "
					 "request, or never filled",
					 i);
		if (ret == 0 &&
		    rt_pool_leaves_slot(leases[i], leases[i]->mr,
					leases[i]->offset, leases[i]->len))
			return straight_refuse_bytes(leases[i], i);
	}
	return straight_post_as_sends(conn, row, count);
}

int rpma_rt_post_leases(struct rpma_rt_conn *conn,
			const struct rpma_rt_lease *const *leases, int count,
			uint32_t flags, uint64_t context)
{
	const struct straight_row row = {
		.leases = leases,
		.context = context,
		.is_silent = flags == RPMA_F_COMPLETION_ON_ERROR};

	rt_want_none();
	if (unlikely(flags != 0 && flags != RPMA_F_COMPLETION_ALWAYS &&
		     flags != RPMA_F_COMPLETION_ON_ERROR))
		return RT_REFUSE(RPMA_E_INVAL,
				 "flags is 0x%x: say when the last message "
				 "completes, RPMA_F_COMPLETION_ALWAYS or "
				 "RPMA_F_COMPLETION_ON_ERROR",
				 flags);
	if (likely(conn != NULL))
		rt_fill_before_send(conn);
	if (likely(conn != NULL && leases != NULL) && likely(count > 0) &&
	    likely(rt_post_is_checked(conn, RPMA_RT_SEND_SIDE)) &&
	    likely(leases[0] != NULL && leases[0]->pool != NULL) &&
	    likely(context <= RT_COOKIE_MASK) &&
	    likely(straight_post_leases(conn, &row, count)))
		return count;
	return straight_post_checked_row(conn, &row, count);
}
