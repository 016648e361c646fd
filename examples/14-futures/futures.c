/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures ADDRESS: questions and answers by futures. The client posts a receive
 * and a send, each with a future, and waits for both, with a limit of time; the
 * server's receive has a function, which answers. No completion is in a queue;
 * the connection's events are.
 */

#include <stdio.h>

#include "../common/both.h"

#define ROUNDS 5
#define LIMIT  5000 /* ms */

static struct both both;
static struct end server, client;
static struct rpma_rt_future question; /* the server's next one */

/* The next message of that end is the result of the future. */
static int receive(struct end *end, struct rpma_rt_future *future)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, both.mr, end->in, MESSAGE, 0);
	wr.flags = RPMA_RT_F_FUTURE;
	wr.future = future;
	return TRY(rpma_rt_post_recv(end->conn, &wr, 1)) != 1;
}

static int send_text(struct end *end, const char *text,
		     struct rpma_rt_future *future)
{
	struct rpma_rt_wr wr;

	snprintf(both.page + end->out, MESSAGE, "%s", text);
	rpma_rt_prep_send(&wr, both.mr, end->out, MESSAGE, RPMA_RT_F_FUTURE, 0);
	wr.future = future;
	return TRY(rpma_rt_post_send(end->conn, &wr, 1)) != 1;
}

static int hear(void);

/* On the poller's thread, once for each question: short, nothing that waits. */
static void on_question(const struct rpma_rt_completion *cmpl, void *arg)
{
	struct rpma_rt_future sent;
	char text[MESSAGE];

	(void)arg;
	rpma_rt_future_drop(&question);
	if (!rpma_rt_completion_is_received(cmpl))
		return; /* the connection closes */
	snprintf(text, sizeof(text), "answer to \"%.32s\"",
		 end_heard(&both, &server));
	/* the answer's buffer is used again when the next question has come,
	 * and that is behind the answer: nobody needs to know that it is out */
	if (hear() == 0 && send_text(&server, text, &sent) == 0)
		rpma_rt_future_drop(&sent);
}

static int hear(void)
{
	return receive(&server, &question) ||
	       TRY(rpma_rt_future_then(&question, on_question, NULL));
}

/* Asks, and waits until the question is out and the answer is here. */
static int ask(int round)
{
	struct rpma_rt_future futures[2] = {{{0, 0}}, {{0, 0}}};
	char text[MESSAGE];
	int ret;

	snprintf(text, sizeof(text), "question %d", round);
	ret = receive(&client, &futures[0]) ||
	      send_text(&client, text, &futures[1]);
	if (ret == 0)
		ret = TRY(rpma_rt_future_wait_some(futures, 2, 2, LIMIT)) != 2;
	if (ret == 0)
		puts(end_heard(&both, &client));
	rpma_rt_future_drop(&futures[0]);
	rpma_rt_future_drop(&futures[1]);
	return ret;
}

static int serve(struct rpma_rt_conn *conn)
{
	if (server.conn != NULL)
		return both_refuse(conn);
	server.conn = conn;
	return TRY(rpma_rt_conn_set_user(conn, &server)) || hear() ||
	       TRY(rpma_rt_conn_connect(conn, NULL));
}

/* Handles events until both ends are established, or, at the end, closed. */
static int until(struct rpma_rt_queue *queue, bool is_end)
{
	struct rpma_rt_completion event;
	struct rpma_rt_conn *conn;
	int ret = 0, left = 2;

	while (ret == 0 && left > 0) {
		if (TRY(rpma_rt_queue_wait(queue, &event, 1, -1)) != 1)
			return 1;
		conn = rpma_rt_completion_conn(&event);
		switch (rpma_rt_completion_event(&event)) {
		case RPMA_RT_EVENT_REQUEST:
			ret = serve(conn);
			break;
		case RPMA_RT_EVENT_READY:
			ret = TRY(rpma_rt_conn_connect(conn, NULL));
			break;
		case RPMA_RT_EVENT_ESTABLISHED:
			left--;
			break;
		case RPMA_RT_EVENT_CLOSED:
			left = is_end ? left - 1 : 0;
			ret = !is_end;
			break;
		}
	}
	return ret;
}

static int run(struct rpma_rt_queue *queue)
{
	int ret, round;

	end_init(&both, &server, 0);
	end_init(&both, &client, 1);
	both.futures = 4;
	ret = both_listen(&both, queue) ||
	      both_connect(&both, queue, &client) || until(queue, false);
	for (round = 1; round <= ROUNDS && ret == 0; round++)
		ret = ask(round);
	return ret || TRY(rpma_rt_conn_close(client.conn)) ||
	       until(queue, true);
}

int main(int argc, char **argv)
{
	struct rpma_rt_queue *queue = NULL;
	int ret;

	ret = both_usage(argc, argv) || both_open(&both, argv[1], NULL) ||
	      rpma_rt_queue_new(both.rt, NULL, &queue) || run(queue);
	both_stop(&both);
	rpma_rt_future_drop(&question);
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	return ret;
}
