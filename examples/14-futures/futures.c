/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * futures ADDRESS: questions and answers by futures. The client posts a receive
 * and a send, each with a future, and waits for both, with a time limit; the
 * receive of the server has a function, which answers. There is no queue: the
 * request and the events of the connection are futures too.
 */

#include <stdio.h>

#include "../common/both.h"

#define ROUNDS 5
#define LIMIT  5000 /* ms */

static struct both both;
static struct end server, client;
static struct rpma_rt_future question; /* the next question for the server */

/* Posts a receive: the next message of the end is the result of the future. */
static int receive(struct end *end, struct rpma_rt_future *future)
{
	struct rpma_rt_recv_wr wr;

	rpma_rt_prep_recv(&wr, both.mr, end->in, MESSAGE, 0);
	wr.future = future;
	return TRY(rpma_rt_post_recv(end->conn, &wr, 1)) != 1;
}

static int send_text(struct end *end, const char *text,
		     struct rpma_rt_future *future)
{
	struct rpma_rt_wr wr;

	snprintf(both.page + end->out, MESSAGE, "%s", text);
	rpma_rt_prep_send(&wr, both.mr, end->out, MESSAGE, 0, 0);
	wr.future = future;
	return TRY(rpma_rt_post_send(end->conn, &wr, 1)) != 1;
}

static int hear(void);

/*
 * Answers a question, on the thread of the poller: short, and without waiting.
 */
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
	/* the buffer of the answer is used again after the next question has
	 * arrived, which is after the answer was sent: no check is needed */
	if (hear() == 0 && send_text(&server, text, &sent) == 0)
		rpma_rt_future_drop(&sent);
}

static int hear(void)
{
	return receive(&server, &question) ||
	       TRY(rpma_rt_future_then(&question, on_question, NULL));
}

/* Asks, and waits until the question was sent and the answer has arrived. */
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

/* Takes the result of the future, drops the future, and checks the event. */
static int await(struct rpma_rt_future *future, enum rpma_rt_event event,
		 struct rpma_rt_completion *cmpl)
{
	int ret = TRY(rpma_rt_future_wait(future, cmpl, LIMIT));

	rpma_rt_future_drop(future);
	return ret != 1 || rpma_rt_completion_event(cmpl) != (uint32_t)event;
}

static int await_end(struct end *end, enum rpma_rt_event event)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future future;

	return TRY(rpma_rt_conn_future(end->conn, event, &future)) ||
	       await(&future, event, &cmpl);
}

static int serve(void)
{
	struct rpma_rt_completion cmpl;
	struct rpma_rt_future request;

	if (TRY(rpma_rt_next_future(
		    &(struct rpma_rt_source){.listener = both.listener},
		    &request)) ||
	    await(&request, RPMA_RT_EVENT_REQUEST, &cmpl))
		return 1;
	server.conn = rpma_rt_completion_conn(&cmpl);
	return hear() || TRY(rpma_rt_conn_accept(server.conn, NULL));
}

static int run(void)
{
	int ret, round;

	end_init(&both, &server, 0);
	end_init(&both, &client, 1);
	both.futures = 4;
	ret = both_listen(&both, NULL) || both_connect(&both, NULL, &client) ||
	      await_end(&client, RPMA_RT_EVENT_READY) ||
	      TRY(rpma_rt_conn_connect(client.conn, NULL)) || serve() ||
	      await_end(&client, RPMA_RT_EVENT_ESTABLISHED) ||
	      await_end(&server, RPMA_RT_EVENT_ESTABLISHED);
	for (round = 1; round <= ROUNDS && ret == 0; round++)
		ret = ask(round);
	return ret || TRY(rpma_rt_conn_close(client.conn)) ||
	       await_end(&client, RPMA_RT_EVENT_CLOSED) ||
	       await_end(&server, RPMA_RT_EVENT_CLOSED);
}

int main(int argc, char **argv)
{
	int ret;

	ret = both_usage(argc, argv) || both_open(&both, argv[1], NULL) ||
	      run();
	both_stop(&both);
	rpma_rt_future_drop(&question);
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	both_close(&both);
	return ret;
}
