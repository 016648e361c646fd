/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * proxy ADDRESS: messages of a client go through a proxy to a server, and back.
 * The proxy is two functions: the first function gets messages received by a
 * connection and posts each message on the other connection, the second
 * function gets completed sends and posts a receive on the first connection.
 * The connections have different pollers, so a function may post while another
 * thread posts on the same connection: no post waits for the other thread. A
 * post refused because the line is full is due, and is posted after WRITABLE.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/both.h"

#define MESSAGES 50

/*
 * A direction of the proxy, from one connection to the other, a message at a
 * time.
 */
struct direction {
	struct end *from, *to;
	struct rpma_rt_route *received,
		*sent;	      /* routes of from and of to, which lead to
			       * functions */
	pthread_mutex_t lock; /* for two pollers and main: protects the flags */
	bool send_is_due, receive_is_due;
};

static struct both both;
static struct end client, front, back, server;
static struct direction there = {&front, &back,
				 .lock = PTHREAD_MUTEX_INITIALIZER};
static struct direction here = {&back, &front,
				.lock = PTHREAD_MUTEX_INITIALIZER};
static struct rpma_rt_queue *queue;
static int heard; /* by the client */

/* Posts everything due. A post that stays due was refused: WRITABLE or CLOSED
 * follows in the queue of the connection. */
static void go_on(struct direction *d)
{
	const struct rpma_rt_wr message = {.op = RPMA_RT_OP_SEND,
					   .route = d->sent,
					   .local = both.mr,
					   .local_offset = d->from->in,
					   .len = MESSAGE};
	const struct rpma_rt_recv_wr receive = {.route = d->received,
						.dst = both.mr,
						.offset = d->from->in,
						.len = MESSAGE};

	if (d->send_is_due && rpma_rt_post_send(d->to->conn, &message, 1) == 1)
		d->send_is_due = false;
	if (d->receive_is_due &&
	    rpma_rt_post_recv(d->from->conn, &receive, 1) == 1)
		d->receive_is_due = false;
}

/* Marks a message to be sent; runs on the poller of from. Receives flushed at
 * the end of the connection are ignored. */
static void on_received(const struct rpma_rt_completion *item, void *arg)
{
	struct direction *d = arg;

	pthread_mutex_lock(&d->lock);
	d->send_is_due |= rpma_rt_completion_is_received(item);
	go_on(d);
	pthread_mutex_unlock(&d->lock);
}

/*
 * Marks a receive to be posted, for the memory is free again; runs on the
 * poller of to.
 */
static void on_sent(const struct rpma_rt_completion *item, void *arg)
{
	struct direction *d = arg;

	pthread_mutex_lock(&d->lock);
	d->receive_is_due |= rpma_rt_completion_is_ok(item);
	go_on(d);
	pthread_mutex_unlock(&d->lock);
}

static void on_writable(struct direction *d)
{
	pthread_mutex_lock(&d->lock);
	go_on(d);
	pthread_mutex_unlock(&d->lock);
}

/*
 * Opens the routes and posts the first receive; then from and to may be
 * connected.
 */
static int open_direction(struct direction *d)
{
	int ret =
		TRY(rpma_rt_route_open_callback(d->from->conn,
						RPMA_RT_RECV_SIDE, on_received,
						d, &d->received)) ||
		TRY(rpma_rt_route_open_callback(d->to->conn, RPMA_RT_SEND_SIDE,
						on_sent, d, &d->sent));

	d->receive_is_due = true;
	if (!ret)
		on_writable(d);
	return ret;
}

/* Handles a request. The first request is from the client; the proxy accepts
 * the client when the proxy has a connection to the server. The second request
 * is the request of the proxy to the server. */
static int on_request(struct rpma_rt_conn *conn)
{
	if (front.conn == NULL) {
		front.conn = conn;
		return TRY(rpma_rt_conn_set_user(conn, &front)) ||
		       both_connect(&both, queue, &back);
	}
	return server.conn ? both_refuse(conn)
			   : end_accept(&both, &server, conn);
}

static int on_ready(const struct rpma_rt_completion *event)
{
	if (event->user != &back)
		return end_event(&both, event);
	return open_direction(&there) || open_direction(&here) ||
	       TRY(rpma_rt_conn_connect(back.conn, NULL)) ||
	       TRY(rpma_rt_conn_accept(front.conn, NULL));
}

static int say(struct end *end, int number)
{
	char text[MESSAGE];

	snprintf(text, sizeof(text), "%d", number);
	return end_send(&both, end, text);
}

static int on_event(const struct rpma_rt_completion *event)
{
	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_REQUEST:
		return on_request(rpma_rt_completion_conn(event));
	case RPMA_RT_EVENT_READY:
		return on_ready(event);
	case RPMA_RT_EVENT_ESTABLISHED:
		return event->user == &client ? say(&client, 1) : 0;
	case RPMA_RT_EVENT_CLOSED:
		if (event->user == &front) /* the client left: the proxy leaves
					    * too */
			rpma_rt_conn_close(back.conn);
		return end_event(&both, event);
	default:
		return end_event(&both, event);
	}
}

/*
 * Handles a message: the server sends each number back; the client counts on.
 */
static int on_message(struct end *end)
{
	int number = atoi(end_heard(&both, end));

	if (end == &server)
		return end_receive(&both, end) || say(end, number);
	if (number != heard + 1)
		return fprintf(stderr, "%d in place of %d\n", number,
			       heard + 1);
	if (++heard == MESSAGES)
		return rpma_rt_conn_close(end->conn);
	return end_receive(&both, end) || say(end, heard + 1);
}

static int on_item(const struct rpma_rt_completion *item)
{
	struct end *end = item->user;

	if (item->kind == RPMA_RT_EVENT)
		return on_event(item);
	if (rpma_rt_completion_is_received(item))
		return on_message(end);
	if (item->kind != RPMA_RT_WRITABLE)
		return 0;
	if (end == &client || end == &server)
		return end_send_again(&both, end);
	/* WRITABLE of either side: only posts that are due are posted */
	on_writable(&there);
	on_writable(&here);
	return 0;
}

static int run(void)
{
	struct end *ends[] = {&client, &front, &back, &server};
	struct rpma_rt_completion item;
	int i, ret;

	for (i = 0; i < 4; i++)
		end_init(&both, ends[i], i);
	ret = both_listen(&both, queue) || both_connect(&both, queue, &client);
	while (!ret && !(client.is_closed && front.is_closed &&
			 back.is_closed && server.is_closed)) {
		ret = TRY(rpma_rt_queue_wait(queue, &item, 1, -1)) != 1 ||
		      on_item(&item);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	int ret;

	cfg.pollers = 2; /* assigned to connections in turn */
	ret = both_usage(argc, argv) || both_open(&both, argv[1], &cfg) ||
	      TRY(rpma_rt_queue_new(both.rt, NULL, &queue)) || run();
	both_stop(&both);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_conn_unref(&front.conn);
	rpma_rt_conn_unref(&back.conn);
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	printf("the client heard %d answers, in order\n", heard);
	return ret;
}
