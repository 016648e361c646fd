/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fill.c -- receives that a pool supplies, see fill.h. The poller is the
 * receive side's only poster; another thread may have paused the side, or have
 * the right for a dump.
 */

#include "conn/fill.h"

#include <stdlib.h>

#include "base/failure.h"
#include "base/log.h"
#include "conn/hold.h"
#include "conn/post.h"
#include "conn/route.h"
#include "pool/feed.h"
#include "pool/pool.h"
#include "poller/poller.h"
#include "poller/source.h"
#include "queue/lane.h"

/* batches that are filled at once, after a fill was deferred in vain */
#define FILL_UNDEFERRED 64

/* how a fill ended */
enum fill_end {
	FILL_DONE,    /* the receive queue is full, or will be filled later */
	FILL_EMPTY,   /* the pool has no slot */
	FILL_REFUSED, /* the device refuses receives */
};

/* --------------------------------------------------------------- memory --- */

int rt_fill_new(struct rpma_rt_conn *conn, struct rpma_rt_pool *pool,
		uint32_t base)
{
	struct rt_conn_fed *fed;

	if (pool == NULL)
		return 0;
	fed = calloc(1, sizeof(*fed));
	if (fed == NULL)
		return RPMA_E_NOMEM;
	fed->conn = conn;
	fed->pool = pool;
	fed->base = base;
	conn->from.fed = fed;
	conn->receives = RT_RECEIVES_POOL;
	return 0;
}

/* ------------------------------------------------------------- receives --- */

static struct rt_gate *fill_gate_of(struct rpma_rt_conn *conn)
{
	return &conn->gate[RPMA_RT_RECV_SIDE];
}

/* Posts n receives with a single doorbell, into slots that were taken from the
 * list, with leases that begin here. Returns false if the device refused
 * a receive: the slots of refused receives come back at the connection's
 * end. */
static bool fill_post(struct rpma_rt_conn *conn, const uint64_t *numbers,
		      uint32_t n)
{
	uint32_t tick = rt_poller_date(conn->poller);
	struct rt_ledger *ledger = &fill_gate_of(conn)->ledger;
	const struct rpma_rt_pool *pool = conn->from.fed->pool;
	const uint64_t of_pool = rt_wr_id(conn->own[RPMA_RT_RECV_SIDE].number,
					  rt_pool_cookie(pool, 0, 0));
	struct rt_ledger_pen pen = rt_hold_begin_row(conn, RPMA_RT_RECV_SIDE);
	struct rpma_recv_wr chain[RT_FEED_CHUNK + 1];
	/* read once: the stores below may not change these words */
	const uint64_t stride = pool->stride;
	_Atomic uint64_t *const leases = pool->leases;
	struct ibv_sge first;
	uint64_t number;
	uint64_t wr_id;
	uint32_t taken;
	uint32_t i;

	rt_wr_fill_piece(pool->mr, 0, pool->slot_size, &first);
	for (i = 0; i < n; i++) {
		number = numbers[i];
		wr_id = rt_pool_begin_lease(leases, of_pool, number);
		chain[i].wr.wr_id = wr_id;
		chain[i].wr.next = &chain[i + 1].wr;
		chain[i].wr.sg_list = &chain[i].sge;
		chain[i].wr.num_sge = 1;
		chain[i].sge.addr = first.addr + (number - 1) * stride;
		chain[i].sge.length = first.length;
		chain[i].sge.lkey = first.lkey;
		/* each receive has a completion */
		rt_ledger_append_signaled(&pen, wr_id, IBV_WC_RECV, tick);
	}
	chain[n - 1].wr.next = NULL;
	rt_ledger_end_signaled(&pen);
	taken = (uint32_t)rt_hold_give_linked_recvs(conn, chain, (int)n);
	if (taken == n)
		return true;
	rt_ledger_refuse(ledger, n - taken);
	rt_turn_close(&fill_gate_of(conn)->turn);
	return false;
}

/* Returns how many more receives may be posted; `out` are out. Listed messages
 * count as receives that are out: at most that many messages wait, then the
 * peer waits. */
static uint32_t fill_room_of(struct rpma_rt_conn *conn, uint32_t out)
{
	uint32_t room = rt_ledger_room(&fill_gate_of(conn)->ledger);
	const struct rt_futures *messages = conn->from.fed->messages;
	uint32_t waiting = 0;

	if (messages != NULL)
		waiting = rt_source_count(messages->source);
	return rt_feed_room(&conn->from.fed->feed, out,
			    room > waiting ? room - waiting : 0);
}

/* Returns how many receives are out. With the right to post. */
static uint32_t fill_out_of(struct rpma_rt_conn *conn)
{
	const struct rt_ledger *ledger = &fill_gate_of(conn)->ledger;

	return ledger->depth - rt_ledger_room(ledger);
}

/* Fills the receive queue, as far as there are slots for the queue. With the
 * right to post. */
static enum fill_end fill_inside(struct rpma_rt_conn *conn)
{
	struct rpma_rt_pool *pool = conn->from.fed->pool;
	struct rt_feed *feed = &conn->from.fed->feed;
	uint64_t numbers[RT_FEED_CHUNK];
	uint32_t out = fill_out_of(conn);
	uint32_t room;
	uint32_t n;

	rt_feed_begin(feed, out);
	for (; (room = fill_room_of(conn, out)) > 0; out += n) {
		if (rt_feed_leaves_slots(feed, rt_feed_is_low(feed, out)))
			return FILL_EMPTY;
		n = rt_pool_list_take(
			&pool->head, pool->next, numbers,
			room < RT_FEED_CHUNK ? room : RT_FEED_CHUNK, 0);
		if (n == 0)
			return FILL_EMPTY;
		if (!fill_post(conn, numbers, n))
			return FILL_REFUSED;
	}
	return FILL_DONE;
}

/* ------------------------------------------------------------ a filling --- */

/* Returns whether the connection's queue is over its limit, so that no more is
 * promised to the queue. The lane's waiter fills again later, or the change to
 * another queue does. */
static bool fill_is_behind(struct rpma_rt_conn *conn)
{
	const struct rpma_rt_route *own = &conn->own[RPMA_RT_RECV_SIDE];
	struct rt_lane *lane = rt_route_lane(own);
	_Atomic uint32_t *want = &conn->side[RPMA_RT_RECV_SIDE].want;

	if (lane == NULL)
		return false;
	if (!rt_lane_is_backlogged(lane)) {
		/* relaxed, all: only this thread uses the bit */
		if (atomic_load_explicit(want, memory_order_relaxed) &
		    RT_WANT_BACKLOG)
			atomic_fetch_and_explicit(want,
						  ~(uint32_t)RT_WANT_BACKLOG,
						  memory_order_relaxed);
		return false;
	}
	/* relaxed: only this thread uses the bit */
	atomic_fetch_or_explicit(want, RT_WANT_BACKLOG, memory_order_relaxed);
	rt_lane_wait_poller(lane, own->waiter);
	return true;
}

static enum fill_end fill_once(struct rpma_rt_conn *conn, uint32_t *out)
{
	struct rt_gate *gate = fill_gate_of(conn);
	uint64_t seen = rt_turn_look(&gate->turn);
	enum fill_end end;

	if (fill_is_behind(conn) || rt_post_check_word(seen))
		return FILL_DONE;
	/* a thread has paused the side for a moment: tried again in the next
	 * round */
	if (!rt_turn_take_alone(&gate->turn, seen)) {
		rt_hold_answer_recall(conn, RPMA_RT_RECV_SIDE, seen);
		/* kept for a thread that ran the poller before, and that posts
		 * here no more */
		if ((seen & RT_TURN_KEPT) && rt_turn_let_keeper_go(&gate->turn))
			rt_look_send(conn);
		rt_schedule_ready(conn->poller, &conn->from.fed->again);
		return FILL_DONE;
	}
	/* entries that this thread has retired */
	rt_ledger_reap(&gate->ledger, conn->side[RPMA_RT_RECV_SIDE].count);
	end = fill_inside(conn);
	*out = fill_out_of(conn);
	conn->from.fed->feed.was_full = *out == conn->from.fed->feed.share;
	rt_hold_leave(conn, RPMA_RT_RECV_SIDE, seen);
	return end;
}

/* Cancels the task of the fill, deferred or ready. */
static void fill_cancel_again(struct rpma_rt_conn *conn)
{
	/* relaxed: see rt_fill_is_deferred() */
	atomic_store_explicit(&conn->fill_deferred, false,
			      memory_order_relaxed);
	rt_schedule_cancel(conn->poller, &conn->from.fed->again);
}

void rt_fill_poller(struct rpma_rt_conn *conn)
{
	struct rt_feed *feed = &conn->from.fed->feed;
	char words[RT_FAILURE_WORDS];
	enum fill_end end;
	uint32_t out = 0;

	if (rt_fill_is_deferred(conn))
		fill_cancel_again(conn);
	do {
		end = fill_once(conn, &out);
	} while (!rt_feed_end_poller(feed, end == FILL_EMPTY &&
						   rt_feed_is_low(feed, out)));
	if (end != FILL_REFUSED)
		return;
	RT_LOG_ERROR(
		"the device refused a receive from pool \"%s\" for %s, "
		"which closes: %s",
		conn->from.fed->pool->name, rt_name_of(conn),
		rt_failure_2str(RT_STEP_POST, rt_reason_refusal(conn), words));
	rt_conn_tell_control(conn, RT_CTL_REFUSED);
}

/* Returns how many receives are out, as far as the poller has counted. */
static inline uint32_t fill_counted_out(const struct rpma_rt_conn *conn)
{
	return conn->gate[RPMA_RT_RECV_SIDE].ledger.tail -
	       conn->side[RPMA_RT_RECV_SIDE].count;
}

/* Returns whether the fill would post a single receive, or none: deferring
 * costs more than that. */
static inline bool fill_is_single(const struct rpma_rt_conn *conn)
{
	return fill_counted_out(conn) + 1 >= conn->from.fed->feed.share;
}

/* Returns whether the receive queue can do without the receives of a fill until
 * the consumer posts. A size that the program has set is for all messages that
 * the consumer has not answered; any other queue grows with the messages that
 * come before an answer. */
static inline bool fill_can_wait(const struct rpma_rt_conn *conn)
{
	const struct rt_feed *feed = &conn->from.fed->feed;

	return rt_feed_is_set(feed) ||
	       (!feed->is_short && fill_counted_out(conn) > feed->share / 2);
}

/* Returns whether the messages are for the consumer who runs the round, and the
 * consumer is the only thread that posts to the send side. */
static inline bool fill_is_for_poster(const struct rpma_rt_conn *conn)
{
	return rt_route_lane(&conn->own[RPMA_RT_RECV_SIDE]) ==
		       conn->poller->taking &&
	       rt_turn_is_kept_here(&conn->gate[RPMA_RT_SEND_SIDE].turn);
}

/* Returns whether the fill is not deferred because a former fill was overdue,
 * or waits for a further attempt in the next round. */
static inline bool fill_is_at_once(struct rt_conn_fed *fed)
{
	if (fed->undeferred == 0)
		return !cds_list_empty(&fed->again.link);
	fed->undeferred--;
	return true;
}

void rt_fill_answer_poller(struct rpma_rt_conn *conn)
{
	struct rt_conn_fed *fed = conn->from.fed;
	const bool is_deferred = rt_fill_is_deferred(conn);

	if (conn->poller->taking == NULL || fill_is_single(conn) ||
	    !fill_is_for_poster(conn) || !fill_can_wait(conn) ||
	    (!is_deferred && fill_is_at_once(fed))) {
		rt_fill_poller(conn);
		return;
	}
	if (is_deferred)
		return;
	/* relaxed: see rt_fill_is_deferred() */
	atomic_store_explicit(&conn->fill_deferred, true, memory_order_relaxed);
	rt_schedule_defer(conn->poller, &fed->again);
}

void rt_fill_deferred(struct rpma_rt_conn *conn)
{
	/* not NULL in a function of another poller of the thread */
	struct rt_poller *caller = rt_self_poller();

	if (rt_context_check(conn->rt) ||
	    !rt_owner_enter_own(&conn->poller->owned))
		return;
	rt_self_set_poller(conn->poller);
	if (rt_fill_is_deferred(conn))
		rt_fill_poller(conn);
	rt_self_set_poller(caller);
	rt_owner_leave_own(&conn->poller->owned);
}

static void fill_hungry(struct rt_feed *feed)
{
	rt_fill_poller(RT_FROM(struct rt_conn_fed, feed, feed)->conn);
}

static int fill_again(struct rt_task *task, struct rt_poller *poller)
{
	struct rt_conn_fed *fed = RT_FROM(struct rt_conn_fed, again, task);

	if (rt_fill_is_deferred(fed->conn) && poller->schedule.is_overdue)
		fed->undeferred = FILL_UNDEFERRED;
	rt_fill_poller(fed->conn);
	return 1;
}

void rt_fill_join(struct rpma_rt_conn *conn)
{
	struct rt_conn_fed *fed = rt_conn_fed(conn);

	if (fed == NULL)
		return;
	rt_feed_init(&fed->feed, fed->pool, conn->poller, fill_hungry,
		     fill_gate_of(conn)->ledger.depth, fed->base);
	rt_feed_join(&fed->feed);
	rt_pool_use(fed->pool, fed->base);
}

void rt_fill_leave(struct rpma_rt_conn *conn)
{
	struct rt_conn_fed *fed = rt_conn_fed(conn);

	if (fed == NULL)
		return;
	rt_feed_leave(&fed->feed);
	rt_pool_disuse(fed->pool, fed->base);
}

void rt_fill_begin_poller(struct rpma_rt_conn *conn)
{
	if (rt_conn_fed(conn) == NULL)
		return;
	rt_task_init(&conn->from.fed->again, fill_again);
	conn->from.fed->is_fed = true;
	/* relaxed: only this thread reads the bit; no poster waits on this
	 * side, so each batch that has taken receives comes to
	 * rt_answer_poller() */
	atomic_fetch_or_explicit(&conn->side[RPMA_RT_RECV_SIDE].want,
				 RT_WANT_POOL, memory_order_relaxed);
	rt_fill_poller(conn);
}

void rt_fill_end_poller(struct rpma_rt_conn *conn)
{
	if (rt_conn_fed(conn) == NULL || !conn->from.fed->is_fed)
		return;
	conn->from.fed->is_fed = false;
	fill_cancel_again(conn);
	rt_feed_end_poller(&conn->from.fed->feed, false);
}
