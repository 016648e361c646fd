/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_recv.c -- posting receives of a connection, in the ways of post_send.c.
 * Receives of a connection on a shared receive queue are posted to that queue.
 * Any thread. doc/protocols/ledger.md.
 */

#include "base/lang.h"
#include "base/wr.h"
#include "conn/post.h"
#include "poller/poller.h"

#define SIDE RPMA_RT_RECV_SIDE

static int post_recv_check(struct rt_post *post)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[post->done];
	const struct rpma_rt_recv_wr *end = &post->recvs[post->count];
	struct rpma_rt_conn *conn = rt_post_conn(post);
	int ret;

	for (; wr < end; wr++) {
		/* a usual receive: a piece or no piece, and a route of this
		 * side; looked at once */
		if (likely(rt_wr_is_plain_recv(wr) &&
			   rt_post_is_route(conn, wr->route, SIDE)))
			continue;
		ret = rt_fault_check(post, (int)(wr - post->recvs));
		if (ret)
			return ret;
	}
	return 0;
}

/* Returns the route of a receive. A receive with a future has the connection's
 * own route, which gets the message of a dropped future. */
static inline const struct rpma_rt_route *
post_recv_route_of(const struct rt_post *post, const struct rpma_rt_recv_wr *wr)
{
	return rt_post_route(rt_post_conn(post),
			     wr->future != NULL ? NULL : wr->route, SIDE);
}

/* Returns whether the receive may be posted; otherwise notes the refusal. Takes
 * the slot of the receive's future. */
static inline bool post_recv_is_ready(struct rt_post *post,
				      const struct rpma_rt_recv_wr *wr,
				      const struct rpma_rt_route *route)
{
	if (unlikely(rt_post_is_behind(route))) {
		rt_post_refuse_backlog(post, route);
		return false;
	}
	return likely(wr->future == NULL) ||
	       rt_post_take_future(post, wr->context, wr->future);
}

static inline uint64_t post_recv_wr_id_of(const struct rpma_rt_recv_wr *wr,
					  const struct rpma_rt_route *route)
{
	return unlikely(wr->future != NULL)
		       ? rt_post_future_wr_id(wr->future)
		       : rt_wr_id(route->number, wr->context);
}

static void post_recv_undo(const struct rt_post *post, int from, int to)
{
	for (; from < to; from++) {
		if (post->recvs[from].future != NULL)
			rt_post_return_future(post->recvs[from].future);
	}
}

/* Fills a chain with the receives before *end, and appends entries, as far as
 * the receives are ready: otherwise stores their end in *end. Returns the
 * number of receives. */
static int post_recv_fill_chain(struct rt_post *post, int *end, uint32_t tick,
				struct rpma_recv_wr *chain, struct ibv_sge *sge)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[post->done];
	int most = *end - post->done;
	const struct rpma_rt_route *route;
	uint32_t pieces = 0;
	uint64_t wr_id;
	int n;

	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	for (n = 0; n < most; n++, wr++) {
		if (unlikely(pieces + wr->piece_count > RT_WR_MAX_SGE))
			return n;
		route = post_recv_route_of(post, wr);
		if (unlikely(!post_recv_is_ready(post, wr, route)))
			break;
		wr_id = post_recv_wr_id_of(wr, route);
		post->error =
			rt_wr_prepare_recv(wr, wr_id, &sge[pieces], &chain[n]);
		if (unlikely(post->error)) {
			post_recv_undo(post, post->done + n,
				       post->done + n + 1);
			break;
		}
		pieces += wr->piece_count;
		rt_hold_append_one(rt_post_conn(post), SIDE, wr_id, IBV_WC_RECV,
				   tick);
	}
	if (unlikely(n < most))
		*end = post->done + n;
	return n;
}

static bool post_recv_give(struct rt_post *post, int end)
{
	struct rt_ledger *ledger = &rt_post_conn(post)->gate[SIDE].ledger;
	uint32_t tick = rt_poller_date(rt_post_conn(post)->poller);
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	int taken;
	int n;

	while (post->done < end) {
		n = post_recv_fill_chain(post, &end, tick, chain, sge);
		if (n == 0)
			break;
		taken = rt_hold_give_recvs(rt_post_conn(post), chain, n);
		post->done += n;
		if (unlikely(taken < n)) {
			rt_ledger_refuse(ledger, (uint32_t)(n - taken));
			return false;
		}
	}
	return true;
}

static int post_recv_take(struct rt_post *post, uint64_t seen, int end,
			  int *ret)
{
	const struct rpma_rt_recv_wr *wr;
	int i = post->done;

	*ret = rt_post_look_again(post, seen);
	for (; *ret == 0 && i < end; i++) {
		wr = &post->recvs[i];
		if (!post_recv_is_ready(post, wr, post_recv_route_of(post, wr)))
			break;
	}
	return i;
}

static uint64_t post_recv_wr_id_at(const struct rt_post *post, int index)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[index];

	return post_recv_wr_id_of(wr, post_recv_route_of(post, wr));
}

static int post_recv_fill(const struct rt_post *post, int end, uint16_t slot)
{
	int ret = rt_post_fill_recvs(post, end, slot, post_recv_wr_id_at);
	struct rt_line_recv *recv;
	int i;

	for (i = end - 1; i >= post->done && ret == 0; i--) {
		recv = rt_line_slot(post->turn, slot);
		slot = rt_freelist_next(&post->turn->free, slot);
		if (post->recvs[i].future == NULL)
			continue;
		rt_future_stand_in_line(rt_future_slot(post->recvs[i].future),
					IBV_WC_RECV,
					rt_post_conn(post)->qp_num);
		recv->is_waited = 1;
	}
	return ret;
}

static int post_recv_alone(struct rt_post *post, uint64_t seen);

static const struct rt_post_ops recv_ops = {
	.object = &rt_post_side_ops,
	.check = post_recv_check,
	.alone = post_recv_alone,
	.take = post_recv_take,
	.undo = post_recv_undo,
	.fill = post_recv_fill,
};

static int post_recv_alone(struct rt_post *post, uint64_t seen)
{
	return rt_post_alone(post, &recv_ops, SIDE, seen, post_recv_give);
}

/* ------------------------------------------------------ the usual call --- */

/* What a plain receive shares with the receive in front as long as route and
 * region are the same: found once for most calls. */
struct post_recv_kind {
	const struct rpma_rt_route *route;
	const struct rpma_mr_local *dst;
	uint64_t wr_id; /* without the context */
	uint64_t addr;	/* of the region */
	uint32_t lkey;
};

/* Finds the kind of a receive that goes to a route or, has_future, to a future.
 * Returns false if the receive is not plain. */
static inline bool post_recv_find_kind(const struct rpma_rt_conn *conn,
				       const struct rpma_rt_recv_wr *wr,
				       bool has_future,
				       struct post_recv_kind *kind)
{
	const struct rpma_mr_local_head *dst =
		(const struct rpma_mr_local_head *)wr->dst;

	if (unlikely(dst == NULL ||
		     (has_future ? wr->route != NULL
				 : !rt_post_is_route(conn, wr->route, SIDE))))
		return false;
	kind->route = wr->route;
	kind->dst = wr->dst;
	kind->wr_id = has_future ? 0
				 : rt_wr_id((wr->route == NULL ? &conn->own[SIDE]
							       : wr->route)
						    ->number,
					    0);
	kind->addr = dst->addr;
	kind->lkey = dst->ibv_mr->lkey;
	return true;
}

/* Returns whether everything is plain that the kind does not say. */
static inline bool post_recv_is_plain_rest(const struct rpma_rt_recv_wr *wr,
					   bool has_future)
{
	const uint64_t special = wr->piece_count | wr->reserved32 |
				 (has_future ? 0 : (uintptr_t)wr->future) |
				 (wr->context & ~RT_COOKIE_MASK);

	return likely(special == 0) && (!has_future || wr->future != NULL);
}

/* Fills in a receive with a single piece, for the verb alone: fields that only
 * librpma uses are not touched. */
static inline void post_recv_fill_plain(const struct rpma_rt_recv_wr *wr,
					const struct post_recv_kind *kind,
					struct rpma_recv_wr *out)
{
	out->wr.wr_id = kind->wr_id | wr->context;
	out->sge.addr = kind->addr + wr->offset;
	out->sge.length = (uint32_t)wr->len;
	out->sge.lkey = kind->lkey;
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = 1;
}

/* functions of the straight ways; see struct rt_straight */
#define STRAIGHT __attribute__((always_inline)) static inline

STRAIGHT void note_recvs(struct rpma_rt_conn *conn, const void *wrs, int count,
			 void *recvs)
{
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, SIDE);
	uint32_t tick = rt_poller_date(conn->poller);
	const struct rpma_recv_wr *chain = recvs;
	int i;

	(void)wrs;
	for (i = 0; i < count; i++)
		rt_hold_append(&pen, chain[i].wr.wr_id, IBV_WC_RECV, tick);
	rt_hold_end_row(conn, SIDE, &pen);
}

STRAIGHT int give_linked(struct rpma_rt_conn *conn, void *recvs, int count)
{
	return rt_hold_give_linked_recvs(conn, recvs, count);
}

/* Fills in a chain whose receives all go to routes, or all to futures. Returns
 * how many routes there are; 0: a receive is not plain. */
STRAIGHT int fill_chain(const struct rpma_rt_conn *conn,
			const struct rpma_rt_recv_wr *wr, int count,
			bool has_future, struct rpma_recv_wr *chain)
{
	struct post_recv_kind kind = {.dst = NULL};
	int routes = 0;
	int i;

	for (i = 0; i < count; i++) {
		if (i == 0 || unlikely(wr[i].route != kind.route ||
				       wr[i].dst != kind.dst)) {
			routes += i == 0 || wr[i].route != kind.route;
			if (unlikely(!post_recv_find_kind(conn, &wr[i],
							  has_future, &kind)))
				return 0;
		}
		if (unlikely(!post_recv_is_plain_rest(&wr[i], has_future)))
			return 0;
		post_recv_fill_plain(&wr[i], &kind, &chain[i]);
		chain[i].wr.next = &chain[i + 1].wr;
	}
	chain[count - 1].wr.next = NULL;
	return routes;
}

STRAIGHT int fill_to_routes(const struct rpma_rt_conn *conn, const void *wrs,
			    int count, void *recvs)
{
	return fill_chain(conn, wrs, count, false, recvs);
}

/* Returns whether no consumer is behind. */
STRAIGHT bool are_routes_ready(const struct rpma_rt_conn *conn, const void *wrs,
			       int count, int routes, void *recvs)
{
	const struct rpma_rt_recv_wr *wr = wrs;
	int i;

	(void)recvs;
	for (i = 0; i < count; i++) {
		if (unlikely(rt_post_is_behind(
			    rt_post_route(conn, wr[i].route, SIDE))))
			return false;
		if (likely(routes == 1))
			break; /* all receives have this route */
	}
	return true;
}

static const struct rt_straight to_routes = {
	.fill = fill_to_routes,
	.is_ready = are_routes_ready,
	.note = note_recvs,
	.give = give_linked,
};

STRAIGHT int fill_to_futures(const struct rpma_rt_conn *conn, const void *wrs,
			     int count, void *recvs)
{
	if (unlikely(conn->side[SIDE].futures == NULL))
		return 0;
	return fill_chain(conn, wrs, count, true, recvs);
}

/* Takes the slots of the futures of the call, and puts the wr_ids into the
 * chain. */
STRAIGHT bool are_futures_ready(const struct rpma_rt_conn *conn,
				const void *wrs, int count, int routes,
				void *recvs)
{
	const struct rpma_rt_recv_wr *wr = wrs;
	struct rpma_recv_wr *chain = recvs;
	struct rt_futures *futures = conn->side[SIDE].futures;
	const uint64_t number = rt_wr_id(futures->number, 0);
	struct rt_future *row = NULL;
	struct rt_future *slot;
	uint32_t n = 1;
	int end;
	int i;

	(void)routes;
	if (unlikely(rt_post_is_behind(&conn->own[SIDE])))
		return false;
	for (i = 0; i < count && n > 0;) {
		n = rt_future_take_row(futures, (uint32_t)(count - i), &row);
		slot = row;
		for (end = i + (int)n; i < end; i++)
			chain[i].wr.wr_id = rt_post_name_future(
				slot++, number, wr[i].context, wr[i].future);
	}
	if (likely(i == count))
		return true;
	while (i-- > 0)
		rt_post_return_future(wr[i].future);
	return false;
}

static const struct rt_straight to_futures = {
	.fill = fill_to_futures,
	.is_ready = are_futures_ready,
	.note = note_recvs,
	.give = give_linked,
};

static bool post_one_recv(struct rpma_rt_conn *conn,
			  const struct rpma_rt_recv_wr *wr)
{
	struct rpma_recv_wr out;

	return rt_post_straight(conn, SIDE, wr, 1, &out, &to_routes);
}

/* Not inlined, because the chain is large. */

__attribute__((noinline)) static bool
post_some_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
		int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       rt_post_straight(conn, SIDE, wr, count, chain, &to_routes);
}

__attribute__((noinline)) static bool
post_futures(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
	     int count)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];

	return count <= RT_POST_CHUNK &&
	       rt_post_straight(conn, SIDE, wr, count, chain, &to_futures);
}

/* Posts any number of receives of any kind. */
__attribute__((noinline)) static int
post_any_recvs(struct rpma_rt_conn *conn, const struct rpma_rt_recv_wr *wr,
	       int count)
{
	struct rt_post post = {.turn = &conn->gate[SIDE].turn,
			       .object = conn,
			       .recvs = wr,
			       .count = count,
			       .side = SIDE};
	int ret = rt_post_run(&post, &recv_ops);

	return ret == 0 ? post.done : rt_post_answer(post.done, ret);
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, SIDE);
	ret = rt_post_check(conn, SIDE);
	if (unlikely(ret))
		return ret;
	if (wr->future != NULL ? likely(post_futures(conn, wr, count))
	    : count == 1       ? likely(post_one_recv(conn, wr))
			       : likely(post_some_recvs(conn, wr, count)))
		return count;
	return post_any_recvs(conn, wr, count);
}
