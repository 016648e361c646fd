/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * drain.c -- the completions of a connection from its first failure on: they
 * are kept until the ledgers are handed over, finished one by one, and
 * synthesized where none can come any more. Steps that wait, or that are long,
 * are tasks. Runs on the connection's poller only.
 * doc/protocols/connection.md, ledger.md.
 */

#include "conn/drain.h"

#include "base/clock.h"
#include "base/device.h"
#include "base/log.h"
#include "base/runtime.h"
#include "conn/bind.h"
#include "conn/answer.h"
#include "conn/fill.h"
#include "conn/futures.h"
#include "conn/hold.h"
#include "conn/keepalive.h"
#include "conn/conn.h"
#include "pool/pool.h"
#include "poller/cq_pool.h"
#include "poller/poller.h"
#include "poller/cqs.h"

/* The event comes with the markers, of a device that has it; of one that did
 * not raise it, less time is spent. */
#define LAST_WQE_NS	   500000000
#define LAST_WQE_HARDLY_NS 10000000

/* ----------------------------------------------------------- finishing --- */

static bool is_failure(enum ibv_wc_status status)
{
	return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

/* A receive of a pool that brought no message: its slot is free again. */
static void return_slot(struct rpma_rt_conn *conn, uint64_t cookie,
			const struct rt_kept *kept)
{
	if (is_failure(kept->status) &&
	    !(kept->flags & (RPMA_RT_C_SYNTHESIZED | RPMA_RT_C_NOT_POSTED)))
		RT_LOG_ERROR("a receive of %s failed: %s%s", rt_name_of(conn),
			     ibv_wc_status_str(kept->status),
			     kept->status == IBV_WC_LOC_LEN_ERR
				     ? ": the peer's message is longer than "
				       "rpma_rt_pool_cfg.slot_size"
				     : "");
	rt_pool_give_back(rt_fill_pool(conn), cookie);
}

static void write_finished(struct rpma_rt_conn *conn,
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
		return_slot(conn, item.context, kept);
		return;
	}
	rt_deliver_item(conn->poller, route, &item);
}

static void finish_wc(struct rpma_rt_conn *conn, const struct rt_kept *kept)
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
		write_finished(conn, entry, kept);
}

/* Reads only valid fields: on an error there are four. */
static void to_kept(const struct rt_side *side, const struct ibv_wc *wc,
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

static void become_broken(struct rpma_rt_conn *conn)
{
	int i;

	conn->poll.state = RT_PS_BROKEN;
	rt_conn_set_closing(conn);
	for (i = 0; i < 2; i++) {
		rt_side_end_healthy(&conn->side[i]);
		/* the control thread waits for a holder */
		rt_turn_close(&conn->gate[i].turn);
	}
	rt_conn_tell_control(conn, RT_CTL_BROKEN);
}

/* As many as may be posted. */
static uint32_t kept_max(const struct rpma_rt_conn *conn)
{
	return conn->gate[0].ledger.depth + conn->gate[1].ledger.depth;
}

static void failed(struct rt_side *side, const struct ibv_wc *wc)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);
	struct rt_kept kept;

	to_kept(side, wc, &kept);
	conn->poll.failed |= is_failure(wc->status);
	switch (conn->poll.state) {
	case RT_PS_HEALTHY:
		become_broken(conn);
		/* fall through */
	case RT_PS_BROKEN:
		if (conn->poll.kept_count < kept_max(conn))
			conn->poll.kept[conn->poll.kept_count++] = kept;
		else /* more than was posted: the device repeats itself */
			RT_STAT_ADD(conn->poller, stale, 1);
		break;
	case RT_PS_DRAINING:
	case RT_PS_DRAINED:
	case RT_PS_SWEEPING:
		finish_wc(conn, &kept);
		break;
	case RT_PS_SWEPT:
		RT_STAT_ADD(conn->poller, stale, 1);
		break;
	}
}

static void broken(struct rt_side *side, enum ibv_wc_status status)
{
	struct rpma_rt_conn *conn = rt_conn_of_side(side);

	conn->poll.failed |= is_failure(status);
	if (conn->poll.state == RT_PS_HEALTHY)
		become_broken(conn);
}

static void retire_group(struct rt_side *side)
{
	side->count += rt_ledger_group(
		&rt_conn_of_side(side)->gate[side->which].ledger, side->count);
}

const struct rt_side_ops rt_drain_side_ops = {
	.failed = failed,
	.retire_group = retire_group,
	.broken = broken,
	.answer = rt_answer_poller,
	.lead = rt_futures_lead_poller,
};

static enum rpma_rt_side side_of(int i)
{
	return (enum rpma_rt_side)i;
}

/* For the directory: only the poller may read what was handed over. */
static void publish_owed(struct rpma_rt_conn *conn)
{
	int i;

	for (i = 0; i < 2; i++)
		/* relaxed: statistic, orders nothing */
		atomic_store_explicit(
			&conn->side[i].owed,
			rt_ledger_unfinished(&conn->gate[i].ledger) +
				rt_hold_count_unposted(conn, side_of(i)),
			memory_order_relaxed);
}

/* ------------------------------------------------------------- draining --- */

/* What has not come yet. */
static uint32_t missing(const struct rpma_rt_conn *conn)
{
	return conn->ctl.markers_due & ~conn->poll.markers_seen;
}

/* Nothing else is missing: it should have come with the markers. */
static bool waits_for_last_wqe(struct rpma_rt_conn *conn)
{
	/* relaxed: a guess from what the device did before */
	bool hardly = atomic_load_explicit(&conn->device->no_last_wqe,
					   memory_order_relaxed);
	uint64_t until =
		rt_now_ns() + (hardly ? LAST_WQE_HARDLY_NS : LAST_WQE_NS);

	if (missing(conn) != RT_MARK_LAST_WQE)
		return false;
	if (!conn->poll.awaits_last_wqe && until < conn->poll.deadline_ns)
		conn->poll.deadline_ns = until;
	conn->poll.awaits_last_wqe = true;
	return true;
}

static bool is_drained(struct rpma_rt_conn *conn)
{
	if (conn->cq->dead || rt_now_ns() >= conn->poll.deadline_ns)
		return true;
	return (missing(conn) & ~RT_MARK_LAST_WQE) == 0 &&
	       !waits_for_last_wqe(conn);
}

/* Receives of the SRQ that it took may be lost until that ends. */
static void count_last_wqe(struct rpma_rt_conn *conn)
{
	if (!(missing(conn) & RT_MARK_LAST_WQE) || conn->cq->dead)
		return;
	RT_STAT_ADD(conn->poller, last_wqe_missing, 1);
	/* relaxed: as above */
	atomic_store_explicit(&conn->device->no_last_wqe, true,
			      memory_order_relaxed);
}

/* Waits until conn is drained: a marker, the CQ's death, or the deadline. */
static int drain(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int i;

	if (!is_drained(conn)) {
		rt_schedule_at(poller, task, conn->poll.deadline_ns);
		rt_schedule_wait(task, &conn->cq->draining);
		return 0;
	}
	conn->poll.state = RT_PS_DRAINED;
	count_last_wqe(conn);
	for (i = 0; i < 2; i++) {
		if (conn->poll.markers_seen & (1u << i))
			rt_ledger_finish_marker(&conn->gate[i].ledger);
	}
	publish_owed(conn);
	rt_conn_tell_control(conn, RT_CTL_DRAINED);
	return 0;
}

/* Finishes kept completions, oldest first; later ones are kept behind them. */
static int finish_kept(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int n;

	for (n = 0; n < RT_SCHEDULE_UNITS &&
		    conn->poll.kept_finished < conn->poll.kept_count;
	     n++)
		finish_wc(conn, &conn->poll.kept[conn->poll.kept_finished++]);
	if (conn->poll.kept_finished == conn->poll.kept_count) {
		conn->poll.state = RT_PS_DRAINING;
		publish_owed(conn);
		rt_task_init(task, drain);
	}
	rt_schedule_ready(poller, task);
	return n;
}

void rt_drain_begin_poller(struct rpma_rt_conn *conn)
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
	rt_task_init(&conn->poll.dying, finish_kept);
	finish_kept(&conn->poll.dying, conn->poller);
}

static int time_over(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);

	(void)poller;
	rt_conn_tell_control(conn, RT_CTL_EMPTY);
	return 1;
}

void rt_drain_time_poller(struct rpma_rt_conn *conn)
{
	/* relaxed: the messages published it */
	uint64_t ms =
		atomic_load_explicit(&conn->drain_ms, memory_order_relaxed) - 1;

	if (ms == 0 || conn->poll.state != RT_PS_HEALTHY)
		return;
	conn->poll.is_draining = true;
	rt_task_init(&conn->poll.dying, time_over);
	rt_schedule_at(conn->poller, &conn->poll.dying,
		       rt_now_ns() + ms * 1000000u);
}

void rt_drain_marker_poller(struct rpma_rt_conn *conn, enum rpma_rt_side side,
			    enum ibv_wc_status status)
{
	conn->poll.markers_seen |= 1u << side;
	if (conn->poll.state == RT_PS_HEALTHY) {
		if (status == IBV_WC_SUCCESS)
			rt_conn_tell_control(conn, RT_CTL_EMPTY);
		else
			broken(&conn->side[side], status);
	}
	if (conn->poll.state == RT_PS_DRAINING)
		rt_schedule_ready(conn->poller, &conn->poll.dying);
}

void rt_drain_last_wqe_poller(struct rpma_rt_conn *conn)
{
	/* relaxed: as in waits_for_last_wqe() */
	atomic_store_explicit(&conn->device->no_last_wqe, false,
			      memory_order_relaxed);
	conn->poll.markers_seen |= RT_MARK_LAST_WQE;
	if (conn->poll.state == RT_PS_DRAINING)
		rt_schedule_ready(conn->poller, &conn->poll.dying);
}

/* ------------------------------------------------------------- sweeping --- */

/* Ends the next one in line of that side; false: none is left. */
static bool end_unposted(struct rpma_rt_conn *conn, enum rpma_rt_side side)
{
	static const struct rt_kept unposted = {.status = IBV_WC_GENERAL_ERR,
						.flags = RPMA_RT_C_NOT_POSTED};
	struct rt_ledger_entry entry;

	if (!rt_hold_take_unposted(conn, side, &entry))
		return false;
	write_finished(conn, &entry, &unposted);
	return true;
}

/* Synthesizes completions for the entries of the ledgers, in order, and ends
 * what was not posted, up to max items; how many. */
static int synthesize(struct rpma_rt_conn *conn, int max)
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
			write_finished(conn, entry,
				       rt_ledger_is_not_posted(entry)
					       ? &refused
					       : &unknown);
			n++;
		} else if (end_unposted(conn, (enum rpma_rt_side)side)) {
			n++;
		} else if (side++ == RPMA_RT_RECV_SIDE) {
			break;
		}
	}
	return n;
}

static int finish(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);
	int n = synthesize(conn, RT_SCHEDULE_UNITS);

	if (n == RT_SCHEDULE_UNITS) {
		rt_schedule_ready(poller, task);
		return n;
	}
	publish_owed(conn);
	rt_conn_tell_control(conn, RT_CTL_SWEPT);
	return n;
}

/* The CQ has no completions of conn any more. */
static int swept(struct rt_task *task, struct rt_poller *poller)
{
	struct rpma_rt_conn *conn =
		RT_FROM(struct rpma_rt_conn, poll.dying, task);

	conn->poll.state = RT_PS_SWEPT;
	rt_bind_leave_poller(conn);
	rt_task_init(task, finish);
	return finish(task, poller);
}

void rt_drain_sweep_poller(struct rpma_rt_conn *conn)
{
	conn->poll.state = RT_PS_SWEEPING;
	rt_task_init(&conn->poll.dying, swept);
	rt_cqs_await_sweep_poller(conn->poller, conn->cq, &conn->poll.dying);
}
