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

int rt_post_recv_any(struct rpma_rt_conn *conn,
		     const struct rpma_rt_recv_wr *wr, int count)
{
	struct rt_post post = {.turn = &conn->gate[SIDE].turn,
			       .object = conn,
			       .recvs = wr,
			       .count = count,
			       .side = SIDE};
	int ret = rt_post_run(&post, &recv_ops);

	return ret == 0 ? post.done : rt_post_answer(post.done, ret);
}
