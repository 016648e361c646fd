/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * straight_recv.c -- the call that posts receives. Usual receives go a straight
 * way (straight.h), any other call goes to post_recv.c. Any thread.
 */

#include "conn/straight.h"

#include <infiniband/verbs.h>

#include "base/wr.h"
#include "poller/poller.h"

/* What a plain receive shares with the receive in front as long as route and
 * region are the same: found once for most calls. */
struct straight_recv_kind {
	const struct rpma_rt_route *route;
	const struct rpma_mr_local *dst;
	uint64_t wr_id; /* without the context */
	uint64_t addr;	/* of the region */
	uint32_t lkey;
};

/* Finds the kind of a receive. Returns false if the receive is not plain. */
static inline bool straight_recv_find_kind(const struct rpma_rt_conn *conn,
					   const struct rpma_rt_recv_wr *wr,
					   struct straight_recv_kind *kind)
{
	const struct rpma_mr_local_head *dst =
		(const struct rpma_mr_local_head *)wr->dst;

	if (unlikely(dst == NULL ||
		     !rt_post_is_route(conn, wr->route, RPMA_RT_RECV_SIDE)))
		return false;
	kind->route = wr->route;
	kind->dst = wr->dst;
	kind->wr_id = rt_wr_id(
		rt_post_route(conn, wr->route, RPMA_RT_RECV_SIDE)->number, 0);
	kind->addr = dst->addr;
	kind->lkey = dst->ibv_mr->lkey;
	return true;
}

/* Returns whether everything is plain that the kind does not say. */
static inline bool straight_recv_is_plain_rest(const struct rpma_rt_recv_wr *wr,
					       bool has_future)
{
	const uint64_t special = wr->piece_count | wr->reserved32 |
				 (has_future ? 0 : (uintptr_t)wr->future) |
				 (wr->context & ~RT_COOKIE_MASK);

	return likely(special == 0) && (!has_future || wr->future != NULL);
}

/* Fills in a receive with a single piece, but for the wr_id, for the verb
 * alone: fields that only librpma uses are not touched. */
static inline void
straight_recv_fill_plain(const struct rpma_rt_recv_wr *wr,
			 const struct straight_recv_kind *kind,
			 struct rpma_recv_wr *out)
{
	out->sge.addr = kind->addr + wr->offset;
	out->sge.length = (uint32_t)wr->len;
	out->sge.lkey = kind->lkey;
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = 1;
}

STRAIGHT bool straight_note_recvs(struct rpma_rt_conn *conn, const void *wrs,
				  int count, void *recvs)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_RECV_SIDE);
	uint32_t tick = rt_poller_date(conn->poller);
	const struct rpma_recv_wr *chain = recvs;
	int i;

	(void)wrs;
	for (i = 0; i < count; i++)
		rt_ledger_append_signaled(&pen, chain[i].wr.wr_id, IBV_WC_RECV,
					  tick);
	rt_ledger_end_signaled(&pen);
	return true;
}

STRAIGHT int straight_give_recvs(struct rpma_rt_conn *conn, void *recvs,
				 int count)
{
	return rt_hold_give_linked_recvs(conn, recvs, count);
}

/* Fills in a chain whose receives go to any routes. */
STRAIGHT int straight_fill_recvs(const struct rpma_rt_conn *conn,
				 const void *wrs, int count, void *recvs)
{
	struct straight_recv_kind kind = {.dst = NULL};
	const struct rpma_rt_recv_wr *wr = wrs;
	struct rpma_recv_wr *chain = recvs;
	int routes = 0;
	int i;

	for (i = 0; i < count; i++) {
		/* first, because the pieces of a receive are no region */
		if (unlikely(!straight_recv_is_plain_rest(&wr[i], false)))
			return 0;
		if (i == 0 || unlikely(wr[i].route != kind.route ||
				       wr[i].dst != kind.dst)) {
			routes += i == 0 || wr[i].route != kind.route;
			if (unlikely(!straight_recv_find_kind(conn, &wr[i],
							      &kind)))
				return 0;
		}
		straight_recv_fill_plain(&wr[i], &kind, &chain[i]);
		chain[i].wr.wr_id = kind.wr_id | wr[i].context;
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	return routes;
}

STRAIGHT struct straight_target straight_recv_target(const void *wrs, int index)
{
	const struct rpma_rt_recv_wr *wr =
		(const struct rpma_rt_recv_wr *)wrs + index;

	return (struct straight_target){wr->context, wr->route, wr->future};
}

STRAIGHT uint64_t *straight_recv_wr_id(void *recvs, int index)
{
	return &((struct rpma_recv_wr *)recvs)[index].wr.wr_id;
}

static const struct straight_way recvs_to_routes = {
	.fill = straight_fill_recvs,
	.is_ready = straight_routes_ready,
	.note = straight_note_recvs,
	.give = straight_give_recvs,
	.target = straight_recv_target,
	.side = RPMA_RT_RECV_SIDE,
};

/* Fills in a receive that names no route, but for the wr_id: of the
 * connection's own route or, has_future, of a future. Returns false if the
 * receive is not plain. */
static inline bool straight_fill_routeless(const struct rpma_rt_recv_wr *wr,
					   bool has_future,
					   struct rpma_recv_wr *out)
{
	const struct rpma_mr_local_head *dst =
		(const struct rpma_mr_local_head *)wr->dst;
	struct straight_recv_kind kind = {.dst = wr->dst};

	/* first, because the pieces of a receive are no region */
	if (unlikely(!straight_recv_is_plain_rest(wr, has_future) ||
		     wr->route != NULL || dst == NULL))
		return false;
	kind.addr = dst->addr;
	kind.lkey = dst->ibv_mr->lkey;
	straight_recv_fill_plain(wr, &kind, out);
	return true;
}

/* Fills in and notes receives of the connection's own route. */
STRAIGHT bool straight_note_own(struct rpma_rt_conn *conn, const void *wrs,
				int count, void *recvs)
{
	const uint64_t own = rt_wr_id(conn->own[RPMA_RT_RECV_SIDE].number, 0);
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_RECV_SIDE);
	uint32_t tick = rt_poller_date(conn->poller);
	const struct rpma_rt_recv_wr *wr = wrs;
	struct rpma_recv_wr *chain = recvs;
	uint64_t wr_id;
	int i;

	for (i = 0; i < count; i++) {
		if (unlikely(
			    !straight_fill_routeless(&wr[i], false, &chain[i])))
			return false;
		wr_id = own | wr[i].context;
		chain[i].wr.wr_id = wr_id;
		chain[i].wr.next = &chain[i + 1].wr;
		rt_ledger_append_signaled(&pen, wr_id, IBV_WC_RECV, tick);
	}
	chain[count - 1].wr.next = NULL;
	rt_ledger_end_signaled(&pen);
	return true;
}

static const struct straight_way recvs_to_own = {
	.fill = straight_fill_later,
	.is_ready = straight_own_ready,
	.note = straight_note_own,
	.give = straight_give_recvs,
	.side = RPMA_RT_RECV_SIDE,
};

/* note() writes the wr_ids. */
STRAIGHT int straight_fill_to_futures(const struct rpma_rt_conn *conn,
				      const void *wrs, int count, void *recvs)
{
	const struct rt_futures *futures =
		conn->side[RPMA_RT_RECV_SIDE].futures;
	const struct rpma_rt_recv_wr *wr = wrs;
	struct rpma_recv_wr *chain = recvs;
	int i;

	if (unlikely(futures == NULL))
		return 0;
	rt_future_foresee_row(futures);
	for (i = 0; i < count; i++) {
		if (unlikely(!straight_fill_routeless(&wr[i], true, &chain[i])))
			return 0;
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	return 1;
}

static const struct straight_way recvs_to_futures; /* below */

STRAIGHT bool straight_note_recv_futures(struct rpma_rt_conn *conn,
					 const void *wrs, int count,
					 void *recvs)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_RECV_SIDE);
	uint32_t tick = rt_poller_date(conn->poller);

	if (unlikely(!straight_name_futures(conn, &recvs_to_futures, wrs, count,
					    recvs, &pen, tick)))
		return false;
	rt_ledger_end_signaled(&pen);
	return true;
}

static const struct straight_way recvs_to_futures = {
	.fill = straight_fill_to_futures,
	.is_ready = straight_futures_ready,
	.note = straight_note_recv_futures,
	.give = straight_give_recvs,
	.target = straight_recv_target,
	.wr_id = straight_recv_wr_id,
	.side = RPMA_RT_RECV_SIDE,
};

/* Not inlined, so that a call saves only the registers of its way. */

__attribute__((noinline)) static int
straight_post_own_recv(struct rpma_rt_conn *conn,
		       const struct rpma_rt_recv_wr *wr, uint64_t seen)
{
	struct rpma_recv_wr out;

	return likely(straight_post_at(conn, wr, 1, &out, &recvs_to_own, seen,
				       true))
		       ? 1
		       : rt_post_recv_any(conn, wr, 1);
}

__attribute__((noinline)) static int
straight_post_recv(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr)
{
	struct rpma_recv_wr out;

	return likely(straight_post(conn, wr, 1, &out, &recvs_to_routes))
		       ? 1
		       : rt_post_recv_any(conn, wr, 1);
}

static int straight_post_one_recv(struct rpma_rt_conn *conn,
				  const struct rpma_rt_recv_wr *wr)
{
	struct rt_turn *turn = &conn->gate[RPMA_RT_RECV_SIDE].turn;
	uint64_t seen = rt_turn_look(turn);

	return likely(rt_turn_is_kept_idle(turn, seen)) && wr->route == NULL
		       ? straight_post_own_recv(conn, wr, seen)
		       : straight_post_recv(conn, wr);
}

/* Not inlined, because the chain is large. The functions post in any way. */

__attribute__((noinline)) static int
straight_post_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
		    int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return likely(straight_post(conn, wr, count, chain, &recvs_to_routes))
		       ? count
		       : rt_post_recv_any(conn, wr, count);
}

__attribute__((noinline)) static int
straight_post_own_recvs(struct rpma_rt_conn *conn,
			const struct rpma_rt_recv_wr *wr, int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return likely(straight_post(conn, wr, count, chain, &recvs_to_own))
		       ? count
		       : straight_post_recvs(conn, wr, count);
}

__attribute__((noinline)) static int
straight_post_recv_futures(struct rpma_rt_conn *conn,
			   const struct rpma_rt_recv_wr *wr, int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return likely(straight_post(conn, wr, count, chain, &recvs_to_futures))
		       ? count
		       : rt_post_recv_any(conn, wr, count);
}

/* REQUIRES: count is 1 or more, and rt_post_check() has returned 0 */
static inline int straight_recv_some(struct rpma_rt_conn *conn,
				     const struct rpma_rt_recv_wr *wr,
				     int count)
{
	if (unlikely(wr->future != NULL))
		return straight_post_recv_futures(conn, wr, count);
	if (count == 1)
		return straight_post_one_recv(conn, wr);
	return likely(wr->route == NULL)
		       ? straight_post_own_recvs(conn, wr, count)
		       : straight_post_recvs(conn, wr, count);
}

/* Posts in any way; checks the arguments. */
__attribute__((noinline)) static int
straight_recv_checked(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, RPMA_RT_RECV_SIDE);
	ret = rt_post_check(conn, RPMA_RT_RECV_SIDE);
	return unlikely(ret) ? ret : straight_recv_some(conn, wr, count);
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	rt_want_none();
	/* without a call besides the last, so that no register is saved */
	return likely(conn != NULL && wr != NULL) && likely(count > 0) &&
			       likely(rt_post_is_checked(conn,
							 RPMA_RT_RECV_SIDE))
		       ? straight_recv_some(conn, wr, count)
		       : straight_recv_checked(conn, wr, count);
}
