/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pool ADDRESS: messages in slots of a pool. No end posts a receive: the
 * runtime keeps the slots posted, a message arrives as a lease, and the server
 * sends the message back from its slot. The send takes the lease: the slot is
 * free when the device has completed the send.
 */

#include <stdio.h>
#include <string.h>

#include "../common/both.h"

#define MESSAGES 1000
#define WINDOW	 32  /* the most echoes that the client waits for */
#define SLOTS	 512 /* more than both ends have posted or leased */

static struct both both;
static struct end client;
static struct end server;
static struct rpma_rt_lease owed[WINDOW]; /* echoes to be sent */
static int said, heard, echoed, received;

static int pool_open(struct rpma_rt_pool **pool_ptr)
{
	struct rpma_rt_pool_cfg cfg = RPMA_RT_POOL_CFG_INIT;

	cfg.peer = both.peer;
	cfg.count = SLOTS;
	cfg.slot_size = MESSAGE;
	cfg.sends = WINDOW; /* for the client; echoes are sent from their
			     * receive slots */
	return TRY(rpma_rt_pool_new(both.rt, &cfg, pool_ptr));
}

/* Sends the message in the slot. On failure the caller keeps the lease. */
static int send_slot(const struct end *end, const struct rpma_rt_lease *lease)
{
	return rpma_rt_send_lease(end->conn, lease, lease->len, 0);
}

/* Sends messages until the window is full; after a post that is refused for
 * now, WRITABLE follows. */
static int say_more(void)
{
	struct rpma_rt_lease lease;
	int ret = 0;

	while (!ret && said < MESSAGES && said - heard < WINDOW) {
		ret = rpma_rt_pool_take(both.pool, &lease);
		if (ret)
			break;
		lease.len = (uint32_t)snprintf(lease.data, MESSAGE,
					       "message %d", said + 1);
		ret = send_slot(&client, &lease);
		if (ret)
			rpma_rt_lease_release(&lease);
		else
			said++;
	}
	return ret == RPMA_E_AGAIN ? 0 : rt_check("sending", ret);
}

/* Checks an echo: the echoes arrive in the order of the messages. */
static int on_echo(const struct rpma_rt_lease *lease)
{
	char expected[MESSAGE];
	int len = snprintf(expected, sizeof(expected), "message %d", ++heard);
	bool is_it = lease->len == (uint32_t)len &&
		     memcmp(lease->data, expected, lease->len) == 0;

	rpma_rt_lease_release(lease);
	if (!is_it)
		return fprintf(stderr, "expected %s\n", expected);
	return heard == MESSAGES ? TRY(rpma_rt_conn_close(client.conn))
				 : say_more();
}

/* Sends echoes. A message may arrive before the server is ESTABLISHED, and
 * before ESTABLISHED nothing can be sent. */
static int echo_more(void)
{
	int ret = 0;

	while (!ret && echoed < received) {
		ret = send_slot(&server, &owed[echoed % WINDOW]);
		echoed += ret == 0;
	}
	return ret == RPMA_E_AGAIN ? 0 : rt_check("echo", ret);
}

static int on_message(const struct end *end, const struct rpma_rt_lease *lease)
{
	if (end == &client)
		return on_echo(lease);
	owed[received++ % WINDOW] = *lease;
	return echo_more();
}

static int on_event(const struct rpma_rt_completion *event)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(event);

	if (rpma_rt_completion_event(event) == RPMA_RT_EVENT_REQUEST)
		return server.conn ? both_refuse(conn)
				   : end_accept(&both, &server, conn);
	if (rpma_rt_completion_event(event) == RPMA_RT_EVENT_ESTABLISHED &&
	    event->user == &client)
		return say_more();
	return end_event(&both, event);
}

static int on_item(const struct rpma_rt_completion *item)
{
	struct rpma_rt_lease lease;

	if (rpma_rt_completion_lease(item, &lease))
		return on_message(item->user, &lease);
	if (item->kind == RPMA_RT_WRITABLE)
		return item->user == &client ? say_more() : echo_more();
	return on_event(item);
}

static int run(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	int ret = pool_open(&both.pool) || both_listen(&both, queue) ||
		  both_connect(&both, queue, &client);

	while (!ret && !(client.is_closed && server.is_closed)) {
		if (TRY(rpma_rt_queue_wait(queue, &item, 1, 10000)) != 1)
			return 1;
		ret = on_item(&item);
	}
	printf("%d messages there and back, %d slots\n", heard, SLOTS);
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_rt_queue *queue = NULL;
	int ret = both_usage(argc, argv) || both_open(&both, argv[1], NULL) ||
		  TRY(rpma_rt_queue_new(both.rt, NULL, &queue)) || run(queue);

	both_stop(&both);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	return ret;
}
