/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_send.c -- posting work requests of the send side. A call that finds the
 * turn idle takes the right and posts from the caller's own arrays; any other
 * call copies its work requests into slots and publishes them. The usual call,
 * of one that is plain, has a straight way. Any thread.
 * doc/protocols/ledger.md.
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
#include "conn/prepare.h"
#include "conn/reason.h"
#include "pool/pool.h"
#include "poller/poller.h"

#define SIDE RPMA_RT_SEND_SIDE

/* a call of rpma_rt_post_send() */
struct call {
	struct rpma_rt_conn *conn;
	const struct rpma_rt_wr *wr;
	int count;
	int done;	/* those before it were taken */
	int error;	/* of librpma, which has refused a plain one */
	bool is_plain;	/* all are */
	bool goes_line; /* librpma may refuse one of them, and logs then */
	struct rt_post_refusal refusal;
};

/* --------------------------------------------------------- validation --- */

static bool is_part(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_PART;
}

static bool is_silent(const struct rpma_rt_wr *wr)
{
	return is_part(wr) ||
	       (wr->flags & RT_WR_COMPLETIONS) == RPMA_F_COMPLETION_ON_ERROR;
}

/* A valid send, write or read of one piece, without anything special: the usual
 * one, which is looked at once. */
static inline bool is_plain(const struct rpma_rt_conn *conn,
			    const struct rpma_rt_wr *wr)
{
	const uint64_t special = (wr->flags & ~(uint32_t)RT_WR_COMPLETIONS) |
				 wr->piece_count | wr->reserved32 |
				 (uintptr_t)wr->future | (uintptr_t)wr->lease |
				 (wr->context & ~RT_COOKIE_MASK);

	if (unlikely(special || wr->local == NULL ||
		     wr->flags == RT_WR_HALF_OF_ALWAYS ||
		     !rt_post_is_route(conn, wr->route, SIDE)))
		return false;
	return wr->op == RPMA_RT_OP_SEND ||
	       ((wr->op == RPMA_RT_OP_WRITE || wr->op == RPMA_RT_OP_READ) &&
		wr->remote != NULL);
}

/* Looks at those that were not taken: 0, RPMA_E_INVAL, RPMA_RT_E_CLOSED (a
 * route). */
static int check(struct call *call)
{
	const struct rpma_rt_wr *wr;
	int ret = 0;
	int i;

	call->is_plain = true;
	call->goes_line = false;
	for (i = call->done; i < call->count && ret == 0; i++) {
		wr = &call->wr[i];
		if (likely(is_plain(call->conn, wr)))
			continue;
		call->is_plain = false;
		/* also those whose native form only librpma knows */
		call->goes_line |= wr->op > RPMA_RT_OP_READ;
		ret = rt_fault_check_send(call->conn, call->wr, call->count, i);
	}
	return ret;
}

/* The last of the link that begins there, or itself. */
static int last_of_link(const struct call *call, int index)
{
	while (call->wr[index].flags & RPMA_RT_F_LINKED)
		index++;
	return index;
}

/* Returns the end of the links that have no more than count work requests
 * together. */
static int end_of_links(const struct call *call, uint32_t count)
{
	int index = call->done;
	int last;

	while (index < call->count) {
		last = last_of_link(call, index);
		if ((uint32_t)(last + 1 - call->done) > count)
			break;
		index = last + 1;
	}
	return index;
}

/* Those from there on need places; the next one, or its link, is count. */
static void refuse_credit(struct call *call, int from)
{
	call->refusal = (struct rt_post_refusal){
		.reason = RPMA_RT_AGAIN_CREDIT,
		.count = (uint32_t)(last_of_link(call, from) + 1 - from)};
}

/* ------------------------------------------------------ who is behind --- */

/* Where its completion goes; NULL: to a pool. A future is as the connection's
 * own: there goes what is dropped of it. */
static const struct rpma_rt_route *route_of(const struct call *call,
					    const struct rpma_rt_wr *wr)
{
	if (wr->lease != NULL)
		return NULL;
	return rt_post_route(call->conn, wr->future != NULL ? NULL : wr->route,
			     SIDE);
}

static const struct rpma_rt_route *behind(const struct call *call, int from,
					  int to)
{
	const struct rpma_rt_route *route;

	for (; from <= to; from++) {
		route = route_of(call, &call->wr[from]);
		if (route != NULL && rt_post_is_behind(route))
			return route;
	}
	return NULL;
}

/* Returns the end of the links before end whose consumers are not behind; notes
 * why they are not all. */
static int end_of_ready(struct call *call, int end)
{
	const struct rpma_rt_route *route;
	int index = call->done;
	int last;

	for (; index < end; index = last + 1) {
		last = last_of_link(call, index);
		route = behind(call, index, last);
		if (route == NULL)
			continue;
		call->refusal = (struct rt_post_refusal){
			.reason = RPMA_RT_AGAIN_BACKLOG, .route = route};
		return index;
	}
	return end;
}

/* -------------------------------------------------- futures and leases --- */

static bool keeps_lease(const struct rpma_rt_wr *wr)
{
	return wr->flags & RPMA_RT_F_KEEP;
}

/* Gives back the slots of the futures and leases from one to before the
 * other. */
static void return_extras(const struct call *call, int from, int to)
{
	const struct rpma_rt_wr *wr;

	for (; from < to; from++) {
		wr = &call->wr[from];
		if (wr->lease != NULL)
			rt_pool_undo_send(wr->lease, keeps_lease(wr));
		else if (wr->future != NULL)
			rt_post_return_future(wr->future);
	}
}

/* False: it is to be posted later, or never: *ret. */
static bool take_extra(struct call *call, int index, int *ret)
{
	const struct rpma_rt_wr *wr = &call->wr[index];

	if (wr->lease != NULL) {
		if (rt_pool_begin_send(wr->lease, keeps_lease(wr)))
			return true;
		*ret = rt_wr_refuse(index, "has a lease that was given away "
					   "before");
		return false;
	}
	if (wr->future == NULL ||
	    rt_post_take_future(call->conn, SIDE, wr->context, wr->future))
		return true;
	call->refusal =
		(struct rt_post_refusal){.reason = RPMA_RT_AGAIN_FUTURES};
	return false;
}

/* Takes what the links before end need, as far as there is; returns the end of
 * those that have all. *ret: the error of one that is wrong. */
static int take_extras(struct call *call, int end, int *ret)
{
	int index = call->done;
	int last;
	int i;

	for (; index < end; index = last + 1) {
		last = last_of_link(call, index);
		for (i = index; i <= last; i++) {
			if (take_extra(call, i, ret))
				continue;
			return_extras(call, index, i);
			return index;
		}
	}
	return end;
}

/* ------------------------------------------------------------- wr_ids --- */

static uint64_t own_wr_id(const struct call *call, const struct rpma_rt_wr *wr)
{
	if (wr->lease != NULL)
		return rt_wr_id(call->conn->own[SIDE].leases,
				rt_pool_cookie_of(wr->lease));
	return wr->future != NULL
		       ? rt_post_future_wr_id(wr->future)
		       : rt_wr_id(route_of(call, wr)->number, wr->context);
}

/* A part has that of its link's last: with whose route and context it completes
 * when it fails. */
static uint64_t wr_id_of(const struct call *call, int index)
{
	const struct rpma_rt_wr *wr = &call->wr[index];
	int of = is_part(wr) ? last_of_link(call, index) : index;

	return own_wr_id(call, &call->wr[of]) |
	       (is_silent(wr) ? RT_ON_ERROR_ONLY : 0);
}

static uint8_t link_of(const struct rpma_rt_wr *wr)
{
	return (uint8_t)((wr->flags & RPMA_RT_F_LINKED ? RT_LINK_GOES_ON : 0) |
			 (is_part(wr) ? RT_LINK_PART : 0));
}

/* -------------------------------------------------------------- alone --- */

static void sign(struct rpma_send_wr *out, bool signaled)
{
	if (signaled)
		out->wr.send_flags |= IBV_SEND_SIGNALED;
}

/* Gives a chain to the device; returns how many it took. */
static inline int give(struct rpma_rt_conn *conn, struct rpma_send_wr *chain,
		       int n)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	chain[n - 1].wr.next = NULL;
	err = rt_verb_post_send(conn->enters_kernel, conn->qp, &chain[0].wr,
				&bad);
	if (likely(err == 0))
		return n;
	rt_reason_refused(conn, err);
	return bad != NULL ? (int)((struct rpma_send_wr *)bad - chain) : 0;
}

/* One that librpma does not refuse. */
static void prepare(const struct call *call, int index, uint64_t wr_id,
		    bool signaled, struct ibv_sge *sge,
		    struct rpma_send_wr *out)
{
	const struct rpma_rt_wr *wr = &call->wr[index];
	int ret = rt_prepare_send(call->conn, wr, wr_id, signaled, sge, out);

	assert(ret == 0);
	(void)ret;
}

/* Notes those before end, and gives them to the device. False: the device
 * refused one. */
static bool post_noted(struct call *call, int end)
{
	struct rt_ledger *ledger = &call->conn->gate[SIDE].ledger;
	uint32_t tick = rt_poller_date(call->conn->poller);
	uint32_t entry = ledger->tail;
	struct rpma_send_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	uint32_t pieces;
	int i;
	int n;

	for (i = call->done; i < end; i++) {
		rt_hold_append(call->conn, SIDE, wr_id_of(call, i),
			       rt_prepare_opcode(call->wr[i].op, false), tick);
		if (link_of(&call->wr[i]) != 0)
			rt_ledger_link(ledger, link_of(&call->wr[i]));
	}
	while (call->done < end) {
		pieces = 0;
		for (n = 0; n < RT_POST_CHUNK && call->done + n < end; n++) {
			i = call->done + n;
			if (pieces + call->wr[i].piece_count > RT_WR_MAX_SGE)
				break;
			prepare(call, i, wr_id_of(call, i),
				ledger->entries[(entry + (uint32_t)n) &
						ledger->mask]
					.signaled,
				&sge[pieces], &chain[n]);
			pieces += call->wr[i].piece_count;
			if (n > 0)
				chain[n - 1].wr.next = &chain[n].wr;
		}
		i = give(call->conn, chain, n);
		call->done += i;
		entry += (uint32_t)i;
		if (i < n)
			return false;
	}
	return true;
}

/* As many of those before end as are ready. False: as above. */
static bool post_any_alone(struct call *call, int end, int *ret)
{
	struct rt_ledger *ledger = &call->conn->gate[SIDE].ledger;

	end = take_extras(call, end_of_ready(call, end), ret);
	if (*ret) {
		return_extras(call, call->done, end);
		return true;
	}
	if (post_noted(call, end))
		return true;
	rt_ledger_refuse(ledger, (uint32_t)(end - call->done));
	call->done = end; /* the refused ones are taken, too */
	return false;
}

/* Puts a plain one into the ledger and the chain; silent: of a success it says
 * nothing. */
__attribute__((always_inline)) static inline int
append_as(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
	  const struct rpma_rt_route *route, uint32_t tick, bool silent,
	  struct rpma_send_wr *out)
{
	uint64_t wr_id = rt_wr_id(route->number, wr->context) |
			 (silent ? RT_ON_ERROR_ONLY : 0);
	int ret = rt_prepare_plain(conn->conn, wr, wr_id, !silent, out);
	bool signaled;

	if (unlikely(ret))
		return ret;
	signaled = rt_hold_append(conn, SIDE, wr_id,
				  rt_prepare_opcode(wr->op, false), tick);
	if (silent)
		sign(out, signaled);
	return 0;
}

__attribute__((always_inline)) static inline int
append_plain(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
	     const struct rpma_rt_route *route, uint32_t tick,
	     struct rpma_send_wr *out)
{
	return is_silent(wr) ? append_as(conn, wr, route, tick, true, out)
			     : append_as(conn, wr, route, tick, false, out);
}

/* Fills a chain of plain ones before end; returns how many there are. */
static int fill_plain(struct call *call, int end, uint32_t tick,
		      struct rpma_send_wr *chain)
{
	const struct rpma_rt_route *route;
	const struct rpma_rt_wr *wr;
	int n;

	for (n = 0; n < RT_POST_CHUNK && call->done + n < end; n++) {
		wr = &call->wr[call->done + n];
		route = rt_post_route(call->conn, wr->route, SIDE);
		if (unlikely(rt_post_is_behind(route))) {
			call->refusal = (struct rt_post_refusal){
				.reason = RPMA_RT_AGAIN_BACKLOG,
				.route = route};
			break;
		}
		call->error =
			append_plain(call->conn, wr, route, tick, &chain[n]);
		if (unlikely(call->error))
			break;
		if (n > 0)
			chain[n - 1].wr.next = &chain[n].wr;
	}
	return n;
}

/* Likewise of plain ones. */
static bool post_plain_alone(struct call *call, int end)
{
	struct rt_ledger *ledger = &call->conn->gate[SIDE].ledger;
	uint32_t tick = rt_poller_date(call->conn->poller);
	struct rpma_send_wr chain[RT_POST_CHUNK];
	int taken;
	int n;

	while (call->done < end) {
		n = fill_plain(call, end, tick, chain);
		if (n == 0)
			return true;
		taken = give(call->conn, chain, n);
		call->done += n;
		if (unlikely(taken < n)) {
			rt_ledger_refuse(ledger, (uint32_t)(n - taken));
			return false;
		}
		if (n < RT_POST_CHUNK)
			break;
	}
	return true;
}

/* The device refused what the caller, alone, gave to it. */
__attribute__((cold)) static void refuse_alone(struct rpma_rt_conn *conn,
					       uint64_t seen)
{
	struct rt_hold hold = {.conn = conn, .side = SIDE, .is_refused = true};

	rt_turn_close(&conn->gate[SIDE].turn);
	rt_hold_show_posted(conn, SIDE);
	rt_hold_end(&hold, seen);
}

/* Returns the end of those that a caller alone posts: all, or, where nothing
 * may stand in line, as many as there is room for. None: another way. */
static int end_of_room(struct call *call)
{
	struct rpma_rt_conn *conn = call->conn;
	uint32_t count = (uint32_t)(call->count - call->done);
	int end;

	if (likely(rt_hold_has_room(conn, SIDE, count)))
		return call->count;
	if (rt_line_waits(&conn->gate[SIDE].turn,
			  conn->gate[SIDE].ledger.depth))
		return call->done;
	end = end_of_links(call, rt_ledger_room(&conn->gate[SIDE].ledger));
	refuse_credit(call, end);
	return end;
}

/* The caller has the right, having seen that word: posts from its own arrays,
 * and gives the right back. 0; RT_POST_NO_ROOM. ERRORS: RPMA_E_INVAL */
static int post_alone(struct call *call, uint64_t seen)
{
	struct rpma_rt_conn *conn = call->conn;
	int end = end_of_room(call);
	bool is_given;
	int ret = 0;

	if (end == call->done) {
		rt_hold_leave(conn, SIDE, seen);
		return RT_POST_NO_ROOM;
	}
	is_given = call->is_plain ? post_plain_alone(call, end)
				  : post_any_alone(call, end, &ret);
	if (unlikely(!is_given)) {
		refuse_alone(conn, seen);
		return 0;
	}
	rt_hold_show_posted(conn, SIDE);
	rt_hold_leave(conn, SIDE, seen);
	if (unlikely(ret)) /* another thread may have missed its futures */
		rt_hold_tell_places(conn, SIDE);
	return ret ? ret : call->error;
}

/* ------------------------------------------------------------- in line --- */

/* Slots for as many as there are places for; *end: those before it have one. 0:
 * there are no places. */
static uint16_t take_slots(struct call *call, int *end)
{
	uint16_t slots = 0;

	*end = end_of_links(call, RT_FREELIST_MAX);
	while (*end > call->done) {
		slots = rt_post_take_slots(call->conn, SIDE,
					   (uint32_t)(*end - call->done));
		if (slots != 0)
			break;
		/* another thread may have been faster: one link less, then */
		*end = end_of_links(call, rt_hold_places(call->conn, SIDE));
	}
	if (*end < call->count)
		refuse_credit(call, *end);
	return slots;
}

/* May the future of that link be taken back while it is in line? Where others
 * of the link complete by themselves it may not. */
static bool may_take_back(const struct call *call, int first, int last)
{
	for (; first < last; first++) {
		if (!is_part(&call->wr[first]))
			return false;
	}
	return call->wr[last].future != NULL;
}

static int fill_slot(const struct call *call, int index, uint16_t slot)
{
	struct rt_turn *turn = &call->conn->gate[SIDE].turn;
	const struct rpma_rt_wr *wr = &call->wr[index];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	struct rpma_send_wr out = {0};
	struct rt_line_send *send;
	int ret = rt_prepare_send(call->conn, wr, wr_id_of(call, index), false,
				  sge, &out);

	if (ret)
		return rt_wr_refuse_for(index, ret);
	rt_line_put_send(turn, slot, &out);
	send = rt_line_slot(turn, slot);
	send->completes = rt_prepare_opcode(wr->op, out.native != 0);
	send->link = link_of(wr);
	return 0;
}

/* Those before end into the slots, the last one first; and those behind, which
 * have no place yet, are looked at by librpma. */
static int fill_slots(const struct call *call, int end, uint16_t slot)
{
	struct rt_turn *turn = &call->conn->gate[SIDE].turn;
	int ret = 0;
	int i;

	for (i = end - 1; i >= call->done && ret == 0; i--) {
		ret = fill_slot(call, i, slot);
		slot = rt_freelist_next(&turn->free, slot);
	}
	for (i = end; i < call->count && ret == 0; i++) {
		if (rt_prepare_may_refuse(&call->wr[i]))
			ret = rt_prepare_check(call->conn, &call->wr[i], i);
	}
	return ret;
}

/* The futures of those before end may be taken back from here on. */
static void show_futures(const struct call *call, int end, uint16_t slot)
{
	struct rt_turn *turn = &call->conn->gate[SIDE].turn;
	struct rt_line_send *send;
	int first;
	int i;

	for (i = end - 1; i >= call->done; i--) {
		send = rt_line_slot(turn, slot);
		slot = rt_freelist_next(&turn->free, slot);
		if (call->wr[i].flags & RPMA_RT_F_LINKED)
			continue; /* the link's last has the future */
		first = i;
		while (first > call->done &&
		       (call->wr[first - 1].flags & RPMA_RT_F_LINKED))
			first--;
		if (!may_take_back(call, first, i))
			continue;
		rt_future_stand_in_line(
			rt_future_slot(call->wr[i].future),
			rt_prepare_opcode(call->wr[i].op, false),
			call->conn->qp_num);
		send->is_waited = 1;
	}
}

/* Publishes those before end, whose slots are the caller's. */
static int publish(struct call *call, uint64_t seen, int end, uint16_t slots)
{
	int ret = fill_slots(call, end, slots);

	if (ret)
		return ret;
	show_futures(call, end, slots);
	ret = rt_post_publish(call->conn, SIDE, seen, slots);
	if (ret == 0)
		call->done = end;
	return ret;
}

/* As many as there are places for, through the line. 0; RT_POST_STALE; ERRORS:
 * RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_RT_E_CLOSED */
static int post_by_line(struct call *call, uint64_t seen)
{
	int begin = call->done;
	uint16_t slots;
	int ready;
	int end;
	int ret;

	/* what kept the call from posting alone */
	call->refusal.reason = RPMA_RT_AGAIN_NONE;
	slots = take_slots(call, &end);
	if (slots == 0)
		return 0;
	ready = begin;
	ret = rt_post_look_again(call->conn, SIDE, seen);
	if (ret == 0)
		ready = take_extras(call, end_of_ready(call, end), &ret);
	slots = rt_post_give_surplus(call->conn, SIDE, slots,
				     (uint32_t)(end - ready));
	if (ret == 0 && ready > begin)
		ret = publish(call, seen, ready, slots);
	if (ret == 0)
		return 0;
	return_extras(call, begin, ready);
	if (ready > begin)
		rt_post_give_slots(call->conn, SIDE, slots,
				   (uint32_t)(ready - begin));
	return ret;
}

/* ------------------------------------------------------------ the call --- */

/* One try of the rest of the call: 0, with a reason in the refusal if not all
 * were taken; RT_POST_STALE. ERRORS: of the call */
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
	if (!call->goes_line && rt_turn_take_alone(turn, seen))
		ret = post_alone(call, seen);
	return ret == RT_POST_NO_ROOM ? post_by_line(call, seen) : ret;
}

/* Any number of any kind. */
__attribute__((noinline)) static int
post_any(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr, int count)
{
	struct call call = {.conn = conn, .wr = wr, .count = count};
	int ret;

	do {
		ret = try(&call);
		if (ret == 0 && call.refusal.reason != RPMA_RT_AGAIN_NONE)
			ret = rt_post_refuse(conn, SIDE, &call.refusal);
	} while (ret == RT_POST_STALE || (ret == 0 && call.done < count));
	return ret == 0 ? call.done : rt_post_answer(call.done, ret);
}

/* A plain one alone, in a straight line. 1: posted; 0: it is to be posted
 * another way. ERRORS: librpma's */
static inline int post_plain(struct rpma_rt_conn *conn,
			     const struct rpma_rt_wr *wr)
{
	struct rt_gate *gate = &conn->gate[SIDE];
	/* before the route is looked at */
	uint64_t seen = rt_turn_look(&gate->turn);
	const struct rpma_rt_route *route;
	struct rpma_send_wr out;
	int ret = 0;

	if (unlikely(!is_plain(conn, wr) ||
		     !rt_turn_take_alone(&gate->turn, seen)))
		return 0;
	route = rt_post_route(conn, wr->route, SIDE);
	if (unlikely(!rt_hold_has_room(conn, SIDE, 1) ||
		     rt_post_is_behind(route)))
		goto leave;
	ret = append_plain(conn, wr, route, rt_poller_date(conn->poller), &out);
	if (unlikely(ret))
		goto leave;
	ret = 1;
	if (unlikely(give(conn, &out, 1) == 0)) {
		rt_ledger_refuse(&gate->ledger, 1);
		refuse_alone(conn, seen);
		return ret;
	}
	rt_hold_show_posted(conn, SIDE);
leave:
	rt_hold_leave(conn, SIDE, seen);
	return ret;
}

int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count)
{
	int ret;

	if (!rt_post_has_some(conn, wr, count))
		return rt_post_nothing(conn, wr, count, SIDE);
	ret = rt_post_check(conn, SIDE);
	if (unlikely(ret))
		return ret;
	if (likely(count == 1))
		ret = post_plain(conn, wr);
	if (likely(ret == 1))
		return ret;
	return ret == 0 ? post_any(conn, wr, count) : rt_post_answer(0, ret);
}
