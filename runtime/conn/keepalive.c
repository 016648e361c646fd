/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* keepalive.c -- keep-alive, a task of the connection's poller. */

#include "conn/conn.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/verb.h"
#include "poller/poller.h"

/* Connections are checked at multiples of this part of the period, so that
 * thousands of them share a few wake-ups of their poller. */
#define PARTS 8

/* The last multiple up to ns. */
static uint64_t round_down(uint64_t ns, uint64_t period_ns)
{
	return ns - ns % (period_ns / PARTS);
}

void rt_keepalive_completed(struct rpma_rt_conn *conn,
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
 * A write of no bytes: no address or key is looked at, the peer's program does
 * not notice. Without the side's lock: from ESTABLISHED on the queue pair is
 * destroyed only after this poller has said that it is drained, and a slot of
 * the send queue and an entry of the CQ are ours alone.
 */
static void post(struct rpma_rt_conn *conn)
{
	struct ibv_send_wr wr = {
		.wr_id = rt_wr_id_internal(RT_KEEPALIVE, conn->slot),
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (rt_verb_post_send(conn->enters_kernel, conn->qp, &wr, &bad))
		return; /* again after a period */
	conn->poll.keepalive->out = true;
	RT_STAT_ADD(conn->poller, keepalives, 1);
}

/* A look at a connection: has a send completed since the last look? */
static int look(struct rt_task *task, struct rt_poller *poller)
{
	struct rt_keepalive *alive = RT_FROM(struct rt_keepalive, task, task);
	struct rpma_rt_conn *conn = alive->conn;
	uint32_t count = conn->side[RPMA_RT_SEND_SIDE].count;
	bool moved = alive->answered || alive->seen != count;

	alive->answered = false;
	alive->seen = count;
	/* a period after this look was due */
	rt_schedule_at(
		poller, task,
		round_down(rt_now_ns() + alive->period_ns, alive->period_ns));
	if (!moved && !alive->out && conn->poll.state == RT_PS_HEALTHY)
		post(conn);
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
	rt_task_init(&alive->task, look);
	conn->poll.keepalive = alive;
	return 0;
}

void rt_keepalive_begin(struct rpma_rt_conn *conn)
{
	struct rt_keepalive *alive = conn->poll.keepalive;

	if (alive == NULL || conn->poll.state != RT_PS_HEALTHY)
		return;
	alive->answered = true; /* the first look only counts */
	rt_schedule_at(conn->poller, &alive->task,
		       round_down(rt_now_ns(), alive->period_ns) +
			       alive->period_ns / PARTS);
}

void rt_keepalive_end(struct rpma_rt_conn *conn)
{
	if (conn->poll.keepalive != NULL)
		rt_schedule_cancel(conn->poller, &conn->poll.keepalive->task);
}
