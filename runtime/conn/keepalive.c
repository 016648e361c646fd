/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* alive.c -- keep-alive; see alive.h. */

#include "conn/keepalive.h"

#include "base/clock.h"
#include "poller/poller.h"
#include "conn/drain.h"

/* All are looked at together: this many times in the shortest period at most,
 * or thousands with deadlines of their own would be looked at all the time. */
#define LOOKS 8

void rt_keepalive_begin(struct rpma_rt_conn *conn)
{
	struct rt_poller *poller = conn->poller;
	struct rt_keepalive *alive = &conn->poll.keepalive;

	if (alive->period_ns == 0 || conn->poll.state != RT_PS_HEALTHY)
		return;
	alive->seen = conn->side[RPMA_RT_SEND_SIDE].count;
	alive->due_ns = rt_now_ns() + alive->period_ns;
	if (poller->keepalive == NULL ||
	    alive->due_ns < poller->keepalive_next_ns)
		poller->keepalive_next_ns = alive->due_ns;
	alive->listed = true;
	alive->prev = NULL;
	alive->next = poller->keepalive;
	if (poller->keepalive != NULL)
		poller->keepalive->poll.keepalive.prev = conn;
	poller->keepalive = conn;
}

void rt_keepalive_end(struct rpma_rt_conn *conn)
{
	struct rt_keepalive *alive = &conn->poll.keepalive;

	if (!alive->listed)
		return;
	alive->listed = false;
	if (alive->prev != NULL)
		alive->prev->poll.keepalive.next = alive->next;
	else
		conn->poller->keepalive = alive->next;
	if (alive->next != NULL)
		alive->next->poll.keepalive.prev = alive->prev;
}

void rt_keepalive_completed(struct rpma_rt_conn *conn,
			    enum ibv_wc_status status)
{
	conn->poll.keepalive.out = false;
	conn->poll.keepalive.answered = true;
	if (status != IBV_WC_SUCCESS)
		rt_conn_break_poller(conn, status);
}

/*
 * A write of no bytes: no address or key is looked at, the peer's program does
 * not notice. Without the side's lock: from ESTABLISHED on the queue pair is
 * destroyed only after this poller has said that it is drained, and a slot of
 * the send queue and an entry of the CQ are ours alone.
 */
static bool post(struct rpma_rt_conn *conn)
{
	struct ibv_send_wr wr = {
		.wr_id = rt_wr_id_internal(RT_KEEPALIVE, conn->slot),
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(conn->qp, &wr, &bad))
		return false; /* again after a period */
	conn->poll.keepalive.out = true;
	RT_STAT_ADD(conn->poller, keepalives, 1);
	return true;
}

/* Looks at one; posted? */
static bool tend(struct rpma_rt_conn *conn, uint64_t now)
{
	struct rt_keepalive *alive = &conn->poll.keepalive;
	uint32_t count = conn->side[RPMA_RT_SEND_SIDE].count;
	bool moved = alive->answered || alive->seen != count;
	bool is_due = now >= alive->due_ns;

	alive->answered = false;
	alive->seen = count;
	if (moved || is_due)
		alive->due_ns = now + alive->period_ns;
	return !moved && is_due && !alive->out &&
	       conn->poll.state == RT_PS_HEALTHY && post(conn);
}

int rt_keepalive_run(struct rt_poller *poller)
{
	struct rpma_rt_conn *conn;
	uint64_t shortest = UINT64_MAX;
	uint64_t next = UINT64_MAX;
	uint64_t now = rt_now_ns();
	int posted = 0;

	if (now < poller->keepalive_next_ns)
		return 0;
	for (conn = poller->keepalive; conn != NULL;
	     conn = conn->poll.keepalive.next) {
		posted += tend(conn, now);
		if (conn->poll.keepalive.period_ns < shortest)
			shortest = conn->poll.keepalive.period_ns;
		if (conn->poll.keepalive.due_ns < next)
			next = conn->poll.keepalive.due_ns;
	}
	if (next < now + shortest / LOOKS)
		next = now + shortest / LOOKS;
	poller->keepalive_next_ns = next;
	return posted;
}
