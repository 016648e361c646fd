/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * callback ADDRESS: a server that is a function. The poller calls the function
 * with each message of the connection, and the function answers at once: no
 * message crosses a core, no thread is woken. The events of the connection
 * still come to main, which is the client too.
 */

#include <stdio.h>

#include "../common/both.h"

#define ROUNDS 5

static struct both both;
static struct end server, client;
/* the route of the receives of the server */
static struct rpma_rt_route *to_function;

/*
 * Posts a receive that names the route; receives without a route go to the
 * queue of main.
 */
static int receive_by_function(void)
{
	struct rpma_rt_recv_wr wr = {.route = to_function,
				     .dst = both.mr,
				     .offset = server.in,
				     .len = MESSAGE};

	return rpma_rt_post_recv(server.conn, &wr, 1) != 1;
}

/*
 * Answers a message, on the thread of the poller: short, and without waiting.
 */
static void on_server_message(const struct rpma_rt_completion *cmpl, void *arg)
{
	int *answered = arg;
	char text[MESSAGE];

	/* the answer was refused, as before ESTABLISHED, and can be sent now */
	if (cmpl->kind == RPMA_RT_WRITABLE)
		end_send_again(&both, &server);
	/* when the connection closes, posted receives come back; the last call
	 * is for RPMA_RT_EVENT_ROUTE_CLOSED */
	if (!rpma_rt_completion_is_received(cmpl))
		return;
	snprintf(text, sizeof(text), "answer %d to \"%.32s\"", ++*answered,
		 end_heard(&both, &server));
	if (receive_by_function() == 0)
		end_send(&both, &server, text);
}

/*
 * Serves a request: opens the route first, then posts a receive that names the
 * route.
 */
static int serve(struct rpma_rt_conn *conn, int *answered)
{
	if (server.conn != NULL)
		return both_refuse(conn);
	server.conn = conn;
	return TRY(rpma_rt_conn_set_user(conn, &server)) ||
	       TRY(rpma_rt_route_open_callback(conn, RPMA_RT_RECV_SIDE,
					       on_server_message, answered,
					       &to_function)) ||
	       TRY(receive_by_function()) ||
	       TRY(rpma_rt_conn_accept(conn, NULL));
}

static int ask(int round)
{
	char text[MESSAGE];

	snprintf(text, sizeof(text), "question %d", round);
	return end_send(&both, &client, text);
}

static int on_event(const struct rpma_rt_completion *event, int *answered)
{
	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_REQUEST:
		return serve(rpma_rt_completion_conn(event), answered);
	case RPMA_RT_EVENT_ESTABLISHED:
		return event->user == &client ? ask(1) : 0;
	default:
		return end_event(&both, event);
	}
}

static int run(struct rpma_rt_queue *queue, int *answered)
{
	struct rpma_rt_completion cmpl;
	int ret, round = 1;

	end_init(&both, &server, 0);
	end_init(&both, &client, 1);
	ret = both_listen(&both, queue) || both_connect(&both, queue, &client);
	while (!ret && !(server.is_closed && client.is_closed)) {
		if (TRY(rpma_rt_queue_wait(queue, &cmpl, 1, -1)) != 1)
			return 1;
		if (cmpl.kind == RPMA_RT_EVENT) {
			ret = on_event(&cmpl, answered);
		} else if (rpma_rt_completion_is_received(&cmpl)) {
			puts(end_heard(&both, &client));
			ret = round == ROUNDS ? rpma_rt_conn_close(client.conn)
					      : end_receive(&both, &client) ||
							ask(++round);
		}
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_rt_queue *queue = NULL;
	int answered = 0; /* only the function uses the number until both ends
			   * closed */
	int ret;

	ret = both_usage(argc, argv) || both_open(&both, argv[1], NULL) ||
	      rpma_rt_queue_new(both.rt, NULL, &queue) || run(queue, &answered);
	both_stop(&both);
	printf("the function answered %d times\n", answered);
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	return ret;
}
