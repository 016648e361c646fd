/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.c -- a connection on its poller: messages from the control thread,
 * keep-alive, and completions from the first failure on. Such completions are
 * kept until the ledgers are handed over, then finished in order; completions
 * that cannot come any more are synthesized. Steps that wait, or that are long,
 * are tasks. doc/protocols/connection.md, ledger.md.
 */

#include "conn/conn.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/wr.h"
#include "conn/fill.h"
#include "conn/futures.h"
#include "conn/hold.h"
#include "conn/slots.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "pool/pool.h"

/* Times for LAST_WQE_REACHED. A device with the event raises it together with
 * the markers; the shorter time is for a device that did not raise the event
 * before. */
#define LAST_WQE_NS	   500000000
#define LAST_WQE_HARDLY_NS 10000000

/* Looks are at multiples of this part of the period, so that thousands of
 * connections share a few wake-ups of their poller. */
#define PARTS 8

/* ----------------------------------------------------------- finishing --- */

static bool drain_is_failure(enum ibv_wc_status status)
{
	return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

/* Logs the failure of a work request that has no completion. */
static void drain_log_failure(struct rpma_rt_conn *conn, const char *what,
			      const struct rt_kept *kept, const char *advice)
{
	if (drain_is_failure(kept->status) &&
	    !(kept->flags & (RPMA_RT_C_SYNTHESIZED | RPMA_RT_C_NOT_POSTED)))
		RT_LOG_ERROR("%s of %s failed: %s%s", what, rt_name_of(conn),
			     rpma_rt_status_2str(kept->status), advice);
}

/* Gives back the slot of a pool's receive that brought no message. */
static void drain_return_slot(struct rpma_rt_conn *conn, uint64_t cookie,
			      const struct rt_kept *kept)
{
	drain_log_failure(conn, "a receive", kept,
			  kept->status == IBV_WC_LOC_LEN_ERR
				  ? ": the peer's message is longer than "
				    "rpma_rt_pool_cfg.slot_size"
				  : "");
	rt_pool_give_back(rt_fill_pool(conn), cookie);
}

static void drain_write_finished(struct rpma_rt_conn *conn,
				 const struct rt_ledger_entry *entry,
				 const struct rt_kept *kept)
{
	struct rt_route_entry *route =
		&conn->cq->routes[rt_wr_id_route(entry->wr_id)];
	struct rpma_rt_completion item = {
		.context = rt_wr_id_cookie(entry->wr_id),
		.user = route->user,
		.byte_len = kept->byte_len,
		.imm = kept->imm,
		.qp_num = conn->qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = kept->status,
		.opcode = kept->status == IBV_WC_SUCCESS ? kept->opcode
							 : entry->opcode,
		.flags = kept->flags | (uint8_t)route->flags,
	};

	if ((route->flags & RPMA_RT_C_LEASE) &&
	    kept->status != IBV_WC_SUCCESS) {
		drain_return_slot(conn, item.context, kept);
		return;
	}
	if (route->leads_to == RT_TO_SINK)
		drain_log_failure(conn, "a send of a lease", kept, "");
	rt_deliver_item(conn->poller, route, &item);
}

static void drain_finish_wc(struct rpma_rt_conn *conn,
			    const struct rt_kept *kept)
{
	struct rt_ledger *ledger = &conn->gate[kept->side].ledger;
	const struct rt_ledger_entry *entry;
	bool success = kept->status == IBV_WC_SUCCESS;

	entry = rt_ledger_finish(ledger, kept->wr_id, success);
	if (entry == NULL) {
		RT_STAT_ADD(conn->poller, stale, 1);
		return;
	}
	entry = rt_ledger_due(ledger, entry, success);
	if (entry != NULL)
		drain_write_finished(conn, entry, kept);
}

/* Copies the valid fields: on an error four fields are valid. */
static void drain_to_kept(const struct rt_side *side, const struct ibv_wc *wc,
			  struct rt_kept *kept)
{
	*kept = (struct rt_kept){
		.wr_id = wc->wr_id,
		.status = (uint8_t)wc->status,
		.side = side->which,
	};
	if (wc->status != IBV_WC_SUCCESS) {
		kept->imm = wc->vendor_err;
		return;
	}
	kept->byte_len = wc->byte_len;
	kept->imm = wc->imm_data;
	kept->opcode = (uint8_t)wc->opcode;
	kept->flags = (uint8_t)wc->wc_flags &
		      (RPMA_RT_C_WITH_IMM | RPMA_RT_C_WITH_INV);
}

static void drain_become_broken(struct rpma_rt_conn *conn)
{
	int i;

	conn->poll.state = RT_PS_BROKEN;
	rt_conn_set_closing(conn);
	for (i = 0; i < 2; i++) {
		rt_side_end_healthy(&conn->side[i]);
		/* the control thread waits for a holder of the right */
		rt_turn_close(&conn->gate[i].turn);
	}
	rt_conn_tell_control(conn, RT_CTL_BROKEN);
}

/* Returns how many completions may be kept: as many as may be posted. */
static uint32_t drain_kept_max(const struct rpma_rt_conn *conn)
{
	return conn->gate[0].ledger.depth + conn->gate[1].ledger.depth;
}

static void drain_failed(struct rt_side *side, const struct ibv_wc *wc)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	struct rt_kept kept;

	drain_to_kept(side, wc, &kept);
	conn->poll.failed |= drain_is_failure(wc->status);
	switch (conn->poll.state) {
	case RT_PS_HEALTHY:
		drain_become_broken(conn);
		/* fall through */
	case RT_PS_BROKEN:
		if (conn->poll.kept_count < drain_kept_max(conn))
			conn->poll.kept[conn->poll.kept_count++] = kept;
		else /* more than was posted: the device repeats completions */
			RT_STAT_ADD(conn->poller, stale, 1);
		break;
	case RT_PS_DRAINING:
	case RT_PS_DRAINED:
	case RT_PS_SWEEPING:
		drain_finish_wc(conn, &kept);
		break;
	case RT_PS_SWEPT:
		RT_STAT_ADD(conn->poller, stale, 1);
		break;
	}
}

static void drain_broken(struct rt_side *side, enum ibv_wc_status status)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);

	conn->poll.failed |= drain_is_failure(status);
	if (conn->poll.state == RT_PS_HEALTHY)
		drain_become_broken(conn);
}

static void drain_retire_group(struct rt_side *side)
{
	side->count += rt_ledger_group(
		&rt_conn_of_side(side)->gate[side->which].ledger, side->count);
}

const struct rt_side_ops rt_drain_side_ops = {
	.failed = drain_failed,
	.retire_group = drain_retire_group,
	.broken = drain_broken,
	.answer = rt_answer_poller,
	.lead = rt_futures_lead_poller,
};

static enum rpma_rt_side drain_side_of(int i)
{
	return (enum rpma_rt_side)i;
}

/* Returns how many work requests stand in line, on a side that is handed
 * over. */
static uint32_t drain_count_unposted(struct rpma_rt_conn *conn,
				     enum rpma_rt_side side)
{
	struct rt_turn *turn = &conn->gate[side].turn;

	rt_turn_gather(turn);
	return rt_turn_length(turn);
}

/* Publishes what the connection owes, for the directory: only the poller may
 * read what was handed over. */
static void drain_publish_owed(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++)
		/* relaxed: statistic, which orders nothing */
		atomic_store_explicit(
			&conn->side[i].owed,
			rt_ledger_unfinished(&conn->gate[i].ledger) +
				drain_count_unposted(conn, drain_side_of(i)),
			memory_order_relaxed);
}

/* ------------------------------------------------------------ keepalive --- */

/* Returns the last multiple of a part of the period up to ns. */
static uint64_t keepalive_round_down(uint64_t ns, uint64_t period_ns)
{
	return ns - ns % (period_ns / PARTS);
}

/* Handles the completion of a keep-alive. */
static void rt_keepalive_completed(struct rpma_rt_conn *conn,
				   enum ibv_wc_status status)
{
	if (conn->poll.keepalive == NULL)
		return;
	conn->poll.keepalive->out = false;
	conn->poll.keepalive->answered = true;
	if (status != IBV_WC_SUCCESS)
		conn->side[RPMA_RT_SEND_SIDE].ops->broken(
			&conn->side[RPMA_RT_SEND_SIDE], status);
}

/*
 * Posts a write of no bytes: the device looks at no address or key, and the
 * peer's program does not notice. Posted without the right of the side: from
 * ESTABLISHED on the queue pair is destroyed only after this poller has
 * reported that the connection is drained, and a slot of the send queue and an
 * entry of the CQ are reserved for this purpose.
 */
static void keepalive_post(struct rpma_rt_conn *conn)
{
	struct ibv_send_wr wr = {
		.wr_id = rt_wr_id_internal(RT_KEEPALIVE, conn->slot),
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (rt_verb_post_send(conn->verb_is_plain, conn->qp, &wr, &bad))
		return; /* tried again after a period */
	conn->poll.keepalive->out = true;
	RT_STAT_ADD(conn->poller, keepalives, 1);
}

/* Looks at a connection: has a send completed since the last look? */
static int keepalive_look(struct rt_task *task, struct rt_poller *poller)
{
	struct rt_keepalive *alive = RT_FROM(struct rt_keepalive, task, task);
	struct rpma_rt_conn *conn = alive->conn;
	uint32_t count = conn->side[RPMA_RT_SEND_SIDE].count;
	bool moved = alive->answered || alive->seen != count;

	alive->answered = false;
	alive->seen = count;
	/* a period after the time of this look */
	rt_schedule_at(poller, task,
		       keepalive_round_down(rt_now_ns() + alive->period_ns,
					    alive->period_ns));
	if (!moved && !alive->out && conn->poll.state == RT_PS_HEALTHY)
		keepalive_post(conn);
	return 1;
}

int rt_keepalive_new(struct rpma_rt_conn *conn, uint32_t period_ms)
{
	struct rt_keepalive *alive;

	if (period_ms == 0)
		return 0;
	alive = calloc(1, sizeof(*alive));
	if (alive == NULL)
		return RPMA_E_NOMEM;
	alive->conn = conn;
	alive->period_ns = (uint64_t)period_ms * UINT64_C(1000000);
	rt_task_init(&alive->task, keepalive_look);
	conn->poll.keepalive = alive;
	return 0;
}

/* Begins the looks, when the connection is established; does nothing without a
 * keep-alive. */
static void rt_keepalive_begin(struct rpma_rt_conn *conn)
{
	struct rt_keepalive *alive = conn->poll.keepalive;

	if (alive == NULL || conn->poll.state != RT_PS_HEALTHY)
		return;
	alive->answered = true; /* the first look only counts */
	rt_schedule_at(conn->poller, &alive->task,
		       keepalive_round_down(rt_now_ns(), alive->period_ns) +
			       alive->period_ns / PARTS);
}

/* Ends the looks: the connection dies. */
static void rt_keepalive_end(struct rpma_rt_conn *conn)
{
	if (conn->poll.keepalive != NULL)
		rt_schedule_cancel(conn->poller, &conn->poll.keepalive->task);
}

/* ------------------------------------------------------------- draining --- */

/* Returns the markers that have not come yet. */
static uint32_t drain_missing(const struct rpma_rt_conn *conn)
{
	return conn->ctl.markers_due & ~conn->poll.markers_seen;
}

/* Returns whether only LAST_WQE_REACHED is missing, which should have come with
 * the markers. */
static bool drain_waits_for_last_wqe(struct rpma_rt_conn *conn)
{
	/* relaxed: a guess, from earlier behaviour of the device */
	bool hardly = atomic_load_explicit(&conn->device->no_last_wqe,
					   memory_order_relaxed);
	uint64_t until =
		rt_now_ns() + (hardly ? LAST_WQE_HARDLY_NS : LAST_WQE_NS);

	if (drain_missing(conn) != RT_MARK_LAST_WQE)
		return false;
	if (!conn->poll.awaits_last_wqe && until < conn->poll.deadline_ns)
		conn->poll.deadline_ns = until;
	conn->poll.awaits_last_wqe = true;
	return true;
}

static bool drain_is_drained(struct rpma_rt_conn *conn)
{
	if (conn->cq->dead || rt_now_ns() >= conn->poll.deadline_ns)
		return true;
	return (drain_missing(conn) & ~RT_MARK_LAST_WQE) == 0 &&
	       !drain_waits_for_last_wqe(conn);
}

/* Counts a missing LAST_WQE_REACHED: receives of the SRQ that the queue pair
 * took may be lost until the SRQ ends. */
static void drain_count_last_wqe(struct rpma_rt_conn *conn)
{
	if (!(drain_missing(conn) & RT_MARK_LAST_WQE) || conn->cq->dead)
		return;
	RT_STAT_ADD(conn->poller, last_wqe_missing, 1);
	/* relaxed: a guess, as in drain_waits_for_last_wqe() */
	atomic_store_explicit(&conn->device->no_last_wqe, true,
			      memory_order_relaxed);
}

/* Waits until the connection is drained: for the markers, the CQ's death, or
 * the deadline. */
static int drain_wait(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int i;

	if (!drain_is_drained(conn)) {
		rt_schedule_at(poller, task, conn->poll.deadline_ns);
		rt_schedule_wait(task, &conn->cq->draining);
		return 0;
	}
	conn->poll.state = RT_PS_DRAINED;
	drain_count_last_wqe(conn);
	for (i = 0; i < 2; i++) {
		if (conn->poll.markers_seen & (1u << i))
			rt_ledger_finish_marker(&conn->gate[i].ledger);
	}
	drain_publish_owed(conn);
	rt_conn_tell_control(conn, RT_CTL_DRAINED);
	return 0;
}

/* Finishes kept completions, the oldest first; later completions are kept
 * behind. */
static int drain_finish_kept(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int n;

	for (n = 0; n < RT_SCHEDULE_UNITS &&
		    conn->poll.kept_finished < conn->poll.kept_count;
	     n++)
		drain_finish_wc(conn,
				&conn->poll.kept[conn->poll.kept_finished++]);
	if (conn->poll.kept_finished == conn->poll.kept_count) {
		conn->poll.state = RT_PS_DRAINING;
		drain_publish_owed(conn);
		rt_task_init(task, drain_wait);
	}
	rt_schedule_ready(poller, task);
	return n;
}

/* Handles HANDOVER: the ledgers belong to the poller. Ends with
 * RT_CTL_DRAINED. */
static void rt_drain_begin_poller(struct rpma_rt_conn *conn)
{
	int i;

	rt_keepalive_end(conn);
	rt_fill_end_poller(conn);
	if (conn->poll.is_draining)
		rt_schedule_cancel(conn->poller, &conn->poll.dying);
	rt_bind_give_up_poller(conn);
	for (i = 0; i < 2; i++) {
		rt_side_end_healthy(&conn->side[i]);
		rt_ledger_reap(&conn->gate[i].ledger, conn->side[i].count);
	}
	conn->poll.state = RT_PS_BROKEN;
	conn->poll.deadline_ns =
		rt_now_ns() +
		(uint64_t)conn->poller->rt->cfg.teardown_ms * 1000000u;
	rt_task_init(&conn->poll.dying, drain_finish_kept);
	drain_finish_kept(&conn->poll.dying, conn->poller);
}

static int drain_time_over(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);

	(void)poller;
	rt_conn_tell_control(conn, RT_CTL_EMPTY);
	return 1;
}

/* Begins the time after which a draining connection is closed. */
static void rt_drain_time_poller(struct rpma_rt_conn *conn)
{
	/* relaxed: the message published the time */
	uint64_t ms =
		atomic_load_explicit(&conn->drain_ms, memory_order_relaxed) - 1;

	if (ms == 0 || conn->poll.state != RT_PS_HEALTHY)
		return;
	conn->poll.is_draining = true;
	rt_task_init(&conn->poll.dying, drain_time_over);
	rt_schedule_at(conn->poller, &conn->poll.dying,
		       rt_now_ns() + ms * 1000000u);
}

/* Handles a marker of the side. Before HANDOVER a success means that everything
 * on the side has completed, and RT_CTL_EMPTY is sent; a failure breaks the
 * connection. */
static void rt_drain_marker_poller(struct rpma_rt_conn *conn,
				   enum rpma_rt_side side,
				   enum ibv_wc_status status)
{
	conn->poll.markers_seen |= 1u << side;
	if (conn->poll.state == RT_PS_HEALTHY) {
		if (status == IBV_WC_SUCCESS)
			rt_conn_tell_control(conn, RT_CTL_EMPTY);
		else
			drain_broken(&conn->side[side], status);
	}
	if (conn->poll.state == RT_PS_DRAINING)
		rt_schedule_ready(conn->poller, &conn->poll.dying);
}

/* Notes the report of the device that the queue pair takes no receive of its
 * SRQ any more. */
static void rt_drain_last_wqe_poller(struct rpma_rt_conn *conn)
{
	/* relaxed: a guess, as in drain_waits_for_last_wqe() */
	atomic_store_explicit(&conn->device->no_last_wqe, false,
			      memory_order_relaxed);
	conn->poll.markers_seen |= RT_MARK_LAST_WQE;
	if (conn->poll.state == RT_PS_DRAINING)
		rt_schedule_ready(conn->poller, &conn->poll.dying);
}

/* Notes that the handshake of an accepted connection is over. */
static void rt_drain_handshake_poller(struct rpma_rt_conn *conn)
{
	conn->poll.markers_seen |= RT_MARK_HANDSHAKE;
	if (conn->poll.state == RT_PS_DRAINING)
		rt_schedule_ready(conn->poller, &conn->poll.dying);
}

/* ------------------------------------------------------------- sweeping --- */

/* Completes the next work request in line on the side as not posted. Returns
 * false if the line is empty. */
static bool drain_end_unposted(struct rpma_rt_conn *conn,
			       enum rpma_rt_side side)
{
	static const struct rt_kept unposted = {.status = IBV_WC_GENERAL_ERR,
						.flags = RPMA_RT_C_NOT_POSTED};
	struct rt_ledger_entry entry;

	if (!rt_hold_take_unposted(conn, side, &entry))
		return false;
	drain_write_finished(conn, &entry, &unposted);
	return true;
}

/* Synthesizes completions for the entries of the ledgers, in order, and
 * completes work requests in line as not posted, up to max items; returns the
 * number of items. */
static int drain_synthesize(struct rpma_rt_conn *conn, int max)
{
	static const struct rt_kept unknown = {.status = IBV_WC_GENERAL_ERR,
					       .flags = RPMA_RT_C_SYNTHESIZED};
	static const struct rt_kept refused = {.status = IBV_WC_GENERAL_ERR,
					       .flags = RPMA_RT_C_NOT_POSTED};
	const struct rt_ledger_entry *entry;
	int side = RPMA_RT_SEND_SIDE;
	int n = 0;

	while (n < max) {
		entry = rt_ledger_take_unfinished(&conn->gate[side].ledger);
		if (entry != NULL) {
			drain_write_finished(conn, entry,
					     rt_ledger_is_not_posted(entry)
						     ? &refused
						     : &unknown);
			n++;
		} else if (drain_end_unposted(conn, (enum rpma_rt_side)side)) {
			n++;
		} else if (side++ == RPMA_RT_RECV_SIDE) {
			break;
		}
	}
	return n;
}

static int drain_finish(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int n = drain_synthesize(conn, RT_SCHEDULE_UNITS);

	if (n == RT_SCHEDULE_UNITS) {
		rt_schedule_ready(poller, task);
		return n;
	}
	drain_publish_owed(conn);
	rt_conn_tell_control(conn, RT_CTL_SWEPT);
	return n;
}

/* Goes on after the sweep: the CQ has no completions of the connection any
 * more. */
static int drain_swept(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);

	conn->poll.state = RT_PS_SWEPT;
	rt_bind_leave_poller(conn);
	rt_task_init(task, drain_finish);
	return drain_finish(task, poller);
}

/* Handles GONE: the queue pair is destroyed. Ends with RT_CTL_SWEPT. */
static void rt_drain_sweep_poller(struct rpma_rt_conn *conn)
{
	conn->poll.state = RT_PS_SWEEPING;
	rt_task_init(&conn->poll.dying, drain_swept);
	rt_cqs_await_sweep_poller(conn->poller, conn->cq, &conn->poll.dying);
}

/* ------------------------------------------------------------- internal --- */

/* Completions of work requests that the runtime posts for its connections
 * (marker, keep-alive), by the reserved route 0. doc/protocols/wr_id.md. */

/* Returns the bound connection that posted the work request; NULL: no such
 * connection. */
static struct rpma_rt_conn *internal_find(const struct rt_slots *slots,
					  const struct rt_cq *cq,
					  const struct ibv_wc *wc)
{
	uint64_t cookie = rt_wr_id_cookie(wc->wr_id);
	uint32_t slot = (uint32_t)(cookie & RT_SLOT_MASK);
	struct rpma_rt_conn *conn;

	if (slot == 0 || slot >= RT_MAX_SLOTS)
		return NULL;
	conn = slots->conns[slot];
	if (conn == NULL || conn->cq != cq || conn->poll.bind == RT_BIND_NONE ||
	    conn->qp_num != wc->qp_num)
		return NULL;
	return conn;
}

/* Handles a marker or a keep-alive, or a completion without an open
 * connection. */
static void internal_completion(struct rt_poller *poller, struct rt_cq *cq,
				const struct ibv_wc *wc)
{
	uint32_t kind = (uint32_t)(rt_wr_id_cookie(wc->wr_id) >> RT_KIND_SHIFT);
	struct rpma_rt_conn *conn = internal_find(rt_slots_of(poller), cq, wc);

	if (conn == NULL) {
		/* the message that binds the connection was sent before the
		 * post, and may still be in the inbox */
		rt_inbox_run_owner(&poller->inbox, poller);
		conn = internal_find(rt_slots_of(poller), cq, wc);
	}
	if (conn == NULL || wc->wr_id != rt_wr_id_internal(kind, conn->slot))
		RT_STAT_ADD(poller, stale, 1);
	else if (kind == RT_SQ_MARKER)
		rt_drain_marker_poller(conn, RPMA_RT_SEND_SIDE, wc->status);
	else if (kind == RT_RQ_MARKER)
		rt_drain_marker_poller(conn, RPMA_RT_RECV_SIDE, wc->status);
	else if (kind == RT_KEEPALIVE)
		rt_keepalive_completed(conn, wc->status);
	else
		RT_STAT_ADD(poller, stale, 1);
}

static const struct rt_reserved_ops internal_ops = {
	.completion = internal_completion,
};

int rt_internal_new(struct rt_poller *poller)
{
	int ret = rt_slots_new(poller);

	if (ret == 0)
		poller->reserved[RT_ROUTE_INTERNAL].ops = &internal_ops;
	return ret;
}

void rt_internal_delete(struct rt_poller *poller)
{
	poller->reserved[RT_ROUTE_INTERNAL].ops = NULL;
	rt_slots_delete(poller);
}

/* ------------------------------------------------------------- messages --- */

void rt_messages_poll(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, poll_msg, msg);
	uint32_t bits;

	(void)owner;
	/* acquire: pairs with the release in rt_conn_tell_poller(), conn.c */
	bits = atomic_exchange_explicit(&conn->poll_bits, 0,
					memory_order_acquire);
	/* first, because the event came before GONE */
	if (bits & RT_POLL_HANDSHAKE)
		rt_drain_handshake_poller(conn);
	if (bits & RT_POLL_LAST_WQE)
		rt_drain_last_wqe_poller(conn);
	if (bits & RT_POLL_OPEN)
		rt_bind_open_poller(conn);
	if (bits & RT_POLL_BIND)
		rt_bind_qp_poller(conn);
	if (bits & RT_POLL_READY) {
		/* a thread that connects finds posted receives */
		rt_fill_begin_poller(conn);
		rt_bind_ready_poller(conn);
	}
	if (bits & RT_POLL_ESTABLISHED) {
		rt_bind_established_poller(conn);
		rt_keepalive_begin(conn);
	}
	if (bits & RT_POLL_DRAIN)
		rt_drain_time_poller(conn);
	if (bits & RT_POLL_HANDOVER)
		rt_drain_begin_poller(conn);
	if (bits & RT_POLL_GONE)
		rt_drain_sweep_poller(conn);
	if (bits & RT_POLL_LAST)
		rt_end_begin_poller(conn);
}
