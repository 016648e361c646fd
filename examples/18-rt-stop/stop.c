/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stop ADDRESS: client and server talk until SIGINT or SIGTERM. The handler
 * wakes the thread that waits for completions; then the program takes the
 * remaining items and frees everything.
 */

#include <signal.h>
#include <stdio.h>

#include "../common/both.h"

#define BATCH 16

static struct both both;
static struct end server, client;
static struct rpma_rt_queue *queue;
static volatile sig_atomic_t stop;
static unsigned long messages;

/*
 * Handles a signal. The only call of the library that a handler may make is
 * rpma_rt_queue_wake().
 */
static void on_signal(int number)
{
	(void)number;
	stop = 1;
	rpma_rt_queue_wake(queue);
}

static int on_event(const struct rpma_rt_completion *event)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(event);

	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_REQUEST:
		return server.conn ? both_refuse(conn)
				   : end_accept(&both, &server, conn);
	case RPMA_RT_EVENT_ESTABLISHED:
		return event->user == &client &&
		       end_send(&both, &client, "hello");
	default:
		return end_event(&both, event);
	}
}

/* Answers a message; both ends answer for ever. */
static int on_message(struct end *end)
{
	if (messages++ == 0)
		printf("waiting for SIGINT\n");
	return end_receive(&both, end) || end_send(&both, end, "hello");
}

static int take(const struct rpma_rt_completion *items, int count)
{
	int ret = 0;
	int i;

	for (i = 0; i < count && !ret; i++) {
		if (items[i].kind == RPMA_RT_EVENT)
			ret = on_event(&items[i]);
		else if (items[i].kind == RPMA_RT_WRITABLE)
			ret = end_send_again(&both, items[i].user);
		else if (rpma_rt_completion_is_received(&items[i]))
			ret = on_message(items[i].user);
	}
	return ret;
}

/*
 * Serves until the handler has set stop. A wait ended by the handler returns 0.
 */
static int serve(void)
{
	struct rpma_rt_completion items[BATCH];
	int count;
	int ret = 0;

	while (!ret && !stop) {
		count = TRY(rpma_rt_queue_wait(queue, items, BATCH, -1));
		ret = count < 0 ? count : take(items, count);
	}
	return ret;
}

/* Takes the remaining items after the stop. */
static void take_the_rest(void)
{
	struct rpma_rt_completion items[BATCH];
	struct rpma_rt_conn *conn; /* of a request that was never taken */
	int count, i;

	while ((count = rpma_rt_queue_poll(queue, items, BATCH)) > 0) {
		for (i = 0; i < count; i++) {
			if (rpma_rt_completion_event(&items[i]) !=
			    RPMA_RT_EVENT_REQUEST)
				continue;
			conn = rpma_rt_completion_conn(&items[i]);
			rpma_rt_conn_unref(&conn);
		}
	}
}

static int run(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	end_init(&both, &server, 0);
	end_init(&both, &client, 1);
	/* the handler uses the queue, so the queue is made first */
	return sigaction(SIGINT, &action, NULL) ||
	       sigaction(SIGTERM, &action, NULL) || both_listen(&both, queue) ||
	       both_connect(&both, queue, &client) || serve();
}

int main(int argc, char **argv)
{
	int ret = both_usage(argc, argv) || both_open(&both, argv[1], NULL) ||
		  TRY(rpma_rt_queue_new(both.rt, NULL, &queue)) || run();

	both_stop(&both);
	if (queue != NULL)
		take_the_rest();
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	/* the handler must not use a deleted queue */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	if (!ret)
		printf("stopped after %lu messages\n", messages);
	return ret;
}
