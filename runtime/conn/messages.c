/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * messages.c -- see messages.h. Runs on the connection's poller.
 */

#include "conn/messages.h"

#include "conn/bind.h"
#include "conn/conn.h"
#include "conn/drain.h"
#include "conn/end.h"
#include "conn/fill.h"
#include "conn/keepalive.h"

void rt_messages_poll(struct rt_msg *msg, void *owner)
{
	struct rpma_rt_conn *conn = RT_FROM(struct rpma_rt_conn, poll_msg, msg);
	uint32_t bits;

	(void)owner;
	/* acquire: pairs with the release in rt_conn_tell_poller() */
	bits = atomic_exchange_explicit(&conn->poll_bits, 0,
					memory_order_acquire);
	if (bits & RT_POLL_LAST_WQE) /* first: it came before GONE */
		rt_drain_last_wqe_poller(conn);
	if (bits & RT_POLL_OPEN)
		rt_bind_open_poller(conn);
	if (bits & RT_POLL_BIND)
		rt_bind_qp_poller(conn);
	if (bits & RT_POLL_READY) {
		rt_fill_begin_poller(conn); /* whoever connects then finds it */
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
