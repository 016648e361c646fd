/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mail.c -- messages between the threads of a connection: bits in a word of the
 * receiver's; the thread that makes it non-zero sends the one message. Any
 * thread. Messages of connections that end wait for those of connections that
 * begin: thousands may end at once. doc/protocols/connection.md.
 */

#include "conn/conn.h"

#include "base/device.h"
#include "base/runtime.h"
#include "poller/poller.h"

void rt_conn_tell_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	struct rt_thread *control = &conn->device->control;
	struct rt_inbox *inbox =
		bits & RT_CTL_CONNECT ? &control->inbox : &control->later;

	/* release: pairs with the exchange in rt_conn_control_message() */
	if (atomic_fetch_or_explicit(&conn->ctl_bits, bits,
				     memory_order_release) != 0)
		return;
	/* relaxed: the caller holds the connection */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	rt_inbox_push_mt(inbox, &conn->ctl_msg);
}

void rt_conn_tell_poller(struct rpma_rt_conn *conn, uint32_t bits)
{
	/* release: pairs with the exchange in rt_messages_poll() */
	if (atomic_fetch_or_explicit(&conn->poll_bits, bits,
				     memory_order_release) == 0)
		rt_inbox_push_mt(&conn->poller->inbox, &conn->poll_msg);
}

void rt_conn_ask_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	/* a connection that is not DONE keeps the control thread going, and
	 * it becomes DONE under this lock */
	pthread_mutex_lock(&conn->rt->ask_lock);
	if (!conn->is_done)
		rt_conn_tell_control(conn, bits);
	pthread_mutex_unlock(&conn->rt->ask_lock);
}

void rt_conn_close_for(struct rpma_rt_conn *conn, uint32_t bit)
{
	int i;

	rt_conn_set_closing(conn);
	for (i = 0; i < 2; i++) /* the control thread waits for a holder */
		rt_turn_close(&conn->gate[i].turn);
	rt_conn_ask_control(conn, bit);
}
