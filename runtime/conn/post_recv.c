/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_recv.c -- posting receives of a connection, as post_send.c posts sends.
 * Those of a connection on a shared receive queue are posted to that. Any
 * thread. doc/protocols/ledger.md, wr_id.md.
 */

#include <infiniband/verbs.h>

#include "base/chunks.h"
#include "base/lang.h"
#include "base/line.h"
#include "base/log.h"
#include "base/verb.h"
#include "base/wr.h"
#include "conn/post.h"
#include "conn/hold.h"
#include "conn/reason.h"
#include "poller/poller.h"

#define SIDE RPMA_RT_RECV_SIDE

/* a call of rpma_rt_post_recv() */
struct call {
	struct rpma_rt_conn *conn;
	const struct rpma_rt_recv_wr *wr;
	int count;
	int done;  /* those before it were taken */
	int error; /* of librpma, which has refused one */
	struct rt_post_refusal refusal;
};

/* One piece, or none, and a route of this side: the usual one, which is looked
 * at once. */
static inline bool is_plain(const struct rpma_rt_conn *conn,
			    const struct rpma_rt_recv_wr *wr)
{
	return rt_wr_is_plain_recv(wr) &&
	       rt_post_is_route(conn, wr->route, SIDE);
}

/* Looks at those that were not taken: 0, RPMA_E_INVAL, RPMA_RT_E_CLOSED (a
 * route). */
static int check(const struct call *call)
{
	int ret = 0;
	int i;

	for (i = call->done; i < call->count && ret == 0; i++) {
		if (unlikely(!is_plain(call->conn, &call->wr[i])))
			ret = rt_fault_check_recv(call->conn, &call->wr[i], i);
	}
	return ret;
}

/* A future is as the connection's own: there goes its message when it is
 * dropped. */
static inline const struct rpma_rt_route *
route_of(const struct call *call, const struct rpma_rt_recv_wr *wr)
{
	return rt_post_route(call->conn, wr->future != NULL ? NULL : wr->route,
			     SIDE);
}

/* May that one be posted? Else why not is in the refusal. Takes the slot of its
 * future. */
static inline bool is_ready(struct call *call, int index)
{
	const struct rpma_rt_recv_wr *wr = &call->wr[index];
	const struct rpma_rt_route *route = route_of(call, wr);

	if (unlikely(rt_post_is_behind(route))) {
		call->refusal = (struct rt_post_refusal){
			.reason = RPMA_RT_AGAIN_BACKLOG, .route = route};
		return false;
	}
	if (likely(wr->future == NULL) ||
	    rt_post_take_future(call->conn, SIDE, wr->context, wr->future))
		return true;
	call->refusal =
		(struct rt_post_refusal){.reason = RPMA_RT_AGAIN_FUTURES};
	return false;
}

static uint64_t wr_id_of(const struct call *call,
			 const struct rpma_rt_recv_wr *wr)
{
	return unlikely(wr->future != NULL)
		       ? rt_post_future_wr_id(wr->future)
		       : rt_wr_id(route_of(call, wr)->number, wr->context);
}

static void return_futures(const struct call *call, int from, int to)
{
	for (; from < to; from++) {
		if (call->wr[from].future != NULL)
			rt_post_return_future(call->wr[from].future);
	}
}

/* -------------------------------------------------------------- alone --- */

/* Gives a chain to the device; returns how many it took. */
static inline int give(struct rpma_rt_conn *conn, struct rpma_recv_wr *chain,
		       int n)
{
	struct ibv_recv_wr *bad = NULL;
	int err;

	chain[n - 1].wr.next = NULL;
	/* by the queue pair: the request becomes a connection meanwhile */
	err = rt_verb_post_recv(conn->enters_kernel, conn->qp, &chain[0].wr,
				&bad);
	if (likely(err == 0))
		return n;
	rt_reason_refused(conn, err);
	return bad != NULL ? (int)((struct rpma_recv_wr *)bad - chain) : 0;
}

/* Fills a chain with those before end, and notes them; returns how many there
 * are. */
static int fill(struct call *call, int end, uint32_t tick,
		struct rpma_recv_wr *chain, struct ibv_sge *sge)
{
	const struct rpma_rt_recv_wr *wr;
	uint32_t pieces = 0;
	uint64_t wr_id;
	int n;

	for (n = 0; n < RT_POST_CHUNK && call->done + n < end; n++) {
		wr = &call->wr[call->done + n];
		if (unlikely(pieces + wr->piece_count > RT_WR_MAX_SGE) ||
		    unlikely(!is_ready(call, call->done + n)))
			break;
		wr_id = wr_id_of(call, wr);
		call->error =
			rt_wr_prepare_recv(wr, wr_id, &sge[pieces], &chain[n]);
		if (unlikely(call->error)) {
			return_futures(call, call->done + n,
				       call->done + n + 1);
			break;
		}
		pieces += wr->piece_count;
		rt_hold_append(call->conn, SIDE, wr_id, IBV_WC_RECV, tick);
		if (n > 0)
			chain[n - 1].wr.next = &chain[n].wr;
	}
	return n;
}

/* Posts those before end, as far as they are ready. False: the device refused
 * one. */
static bool post_ready(struct call *call, int end)
{
	struct rt_ledger *ledger = &call->conn->gate[SIDE].ledger;
	uint32_t tick = rt_poller_date(call->conn->poller);
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	int taken;
	int n;

	while (call->done < end) {
		n = fill(call, end, tick, chain, sge);
		if (n == 0)
			return true;
		taken = give(call->conn, chain, n);
		call->done += n;
		if (unlikely(taken < n)) {
			rt_ledger_refuse(ledger, (uint32_t)(n - taken));
			return false;
		}
		if (call->error || call->refusal.reason != RPMA_RT_AGAIN_NONE)
			return true;
	}
	return true;
}

static void refuse_credit(struct call *call)
{
	call->refusal = (struct rt_post_refusal){.reason = RPMA_RT_AGAIN_CREDIT,
						 .count = 1};
}

/* As in post_send.c. */
static int end_of_room(struct call *call)
{
	struct rpma_rt_conn *conn = call->conn;
	const struct rt_ledger *ledger = &conn->gate[SIDE].ledger;

	if (likely(rt_hold_has_room(conn, SIDE,
				    (uint32_t)(call->count - call->done))))
		return call->count;
	if (rt_line_waits(&conn->gate[SIDE].turn, ledger->depth))
		return call->done;
	return call->done + (int)rt_ledger_room(ledger);
}

/* The caller has the right, having seen that word: posts from its own arrays,
 * and gives the right back. 0; RT_POST_NO_ROOM. */
static int post_alone(struct call *call, uint64_t seen)
{
	struct rpma_rt_conn *conn = call->conn;
	struct rt_hold hold = {.conn = conn, .side = SIDE, .is_refused = true};
	int end = end_of_room(call);

	if (end == call->done) {
		rt_hold_leave(conn, SIDE, seen);
		return RT_POST_NO_ROOM;
	}
	if (unlikely(!post_ready(call, end))) {
		rt_turn_close(&conn->gate[SIDE].turn);
		rt_hold_show_posted(conn, SIDE);
		rt_hold_end(&hold, seen);
		return 0;
	}
	rt_hold_show_posted(conn, SIDE);
	rt_hold_leave(conn, SIDE, seen);
	if (call->done == end && end < call->count)
		refuse_credit(call);
	if (unlikely(call->error)) /* another thread may miss its future */
		rt_hold_tell_places(conn, SIDE);
	return call->error;
}

/* ------------------------------------------------------------- in line --- */

/* Slots for as many as there are places for; *end: those before it have one. 0:
 * there are no places. */
static uint16_t take_slots(struct call *call, int *end)
{
	uint32_t count = (uint32_t)(call->count - call->done);
	uint16_t slots = 0;
	uint32_t places;

	if (count > RT_FREELIST_MAX)
		count = RT_FREELIST_MAX;
	while (count > 0) {
		slots = rt_post_take_slots(call->conn, SIDE, count);
		if (slots != 0)
			break;
		/* another thread may have been faster */
		places = rt_hold_places(call->conn, SIDE);
		count = places < count ? places : count - 1;
	}
	*end = call->done + (int)count;
	if (*end < call->count)
		refuse_credit(call);
	return slots;
}

static int fill_slot(const struct call *call, int index, uint16_t slot)
{
	struct rt_turn *turn = &call->conn->gate[SIDE].turn;
	const struct rpma_rt_recv_wr *wr = &call->wr[index];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	struct rpma_recv_wr out;
	struct rt_line_recv *recv;
	int ret = rt_wr_prepare_recv(wr, wr_id_of(call, wr), sge, &out);

	if (ret)
		return rt_wr_refuse_for(index, ret);
	rt_line_put_recv(turn, slot, &out);
	recv = rt_line_slot(turn, slot);
	if (wr->future == NULL)
		return 0;
	rt_future_stand_in_line(rt_future_slot(wr->future), IBV_WC_RECV,
				call->conn->qp_num);
	recv->is_waited = 1;
	return 0;
}

/* Publishes those before end, whose slots are the caller's. */
static int publish(struct call *call, uint64_t seen, int end, uint16_t slots)
{
	const struct rt_turn *turn = &call->conn->gate[SIDE].turn;
	uint16_t slot = slots;
	int ret = 0;
	int i;

	/* the first of the chain is for the last one */
	for (i = end - 1; i >= call->done && ret == 0; i--) {
		ret = fill_slot(call, i, slot);
		slot = rt_freelist_next(&turn->free, slot);
	}
	if (ret == 0)
		ret = rt_post_publish(call->conn, SIDE, seen, slots);
	if (ret == 0)
		call->done = end;
	return ret;
}

static int count_ready(struct call *call, int end)
{
	int i = call->done;

	while (i < end && is_ready(call, i))
		i++;
	return i;
}

/* As many as there are places for, through the line. 0; RT_POST_STALE; ERRORS:
 * RPMA_RT_E_CLOSED */
static int post_by_line(struct call *call, uint64_t seen)
{
	int begin = call->done;
	uint16_t slots;
	int ready;
	int end;
	int ret;

	call->refusal.reason = RPMA_RT_AGAIN_NONE;
	slots = take_slots(call, &end);
	if (slots == 0)
		return 0;
	ready = begin;
	ret = rt_post_look_again(call->conn, SIDE, seen);
	if (ret == 0)
		ready = count_ready(call, end);
	slots = rt_post_give_surplus(call->conn, SIDE, slots,
				     (uint32_t)(end - ready));
	if (ret == 0 && ready > begin)
		ret = publish(call, seen, ready, slots);
	if (ret == 0)
		return 0;
	return_futures(call, begin, ready);
	if (ready > begin)
		rt_post_give_slots(call->conn, SIDE, slots,
				   (uint32_t)(ready - begin));
	return ret;
}

/* ------------------------------------------------------------ the call --- */

/* One try of the rest of the call, as in post_send.c. */
static int try(struct call *call)
{
	struct rt_turn *turn = &call->conn->gate[SIDE].turn;
	/* before routes are looked at */
	uint64_t seen = rt_turn_look(turn);
	int ret = rt_post_check_word(seen);

	call->refusal = (struct rt_post_refusal){RPMA_RT_AGAIN_NONE, NULL, 0};
	if (ret == RPMA_E_AGAIN) {
		call->refusal.reason = RPMA_RT_AGAIN_NOT_YET;
		return 0;
	}
	if (ret == 0)
		ret = check(call);
	if (ret)
		return ret;
	ret = RT_POST_NO_ROOM;
	if (likely(rt_turn_take_alone(turn, seen)))
		ret = post_alone(call, seen);
	return ret == RT_POST_NO_ROOM ? post_by_line(call, seen) : ret;
}

int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr, int count)
{
	struct call call = {.conn = conn, .wr = wr, .count = count};
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, SIDE);
	ret = rt_post_check(conn, SIDE);
	if (unlikely(ret))
		return ret;
	do {
		ret = try(&call);
		if (ret == 0 && call.refusal.reason != RPMA_RT_AGAIN_NONE)
			ret = rt_post_refuse(conn, SIDE, &call.refusal);
	} while (ret == RT_POST_STALE || (ret == 0 && call.done < count));
	return ret == 0 ? call.done : rt_post_answer(call.done, ret);
}
