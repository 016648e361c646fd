/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * talk.c: the client sends a text with every tick, the server answers.
 */

#include "talk.h"

#include <stdio.h>

#include "../common/both.h"

#define TICKS  3
#define BUDGET 64 /* completions per round, so that other work has its turn */
#define BATCH  16

static struct both both;
static struct end server, client;
static struct rpma_rt_queue *queue;
static bool may_say; /* connected, and the last text was answered */
static int ticks;

static int say(void)
{
	char text[MESSAGE];

	if (!may_say)
		return 0;
	if (++ticks > TICKS)
		return TRY(rpma_rt_conn_close(client.conn));
	may_say = false;
	snprintf(text, sizeof(text), "tick %d", ticks);
	return end_send(&both, &client, text);
}

enum talk talk_tick(void)
{
	/* the post needs a round */
	return say() ? TALK_FAILED : TALK_AGAIN;
}

static int on_event(const struct rpma_rt_completion *event)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(event);

	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_REQUEST:
		return server.conn ? both_refuse(conn)
				   : end_accept(&both, &server, conn);
	case RPMA_RT_EVENT_ESTABLISHED:
		may_say |= event->user == &client;
		return 0;
	default:
		return end_event(&both, event);
	}
}

static int on_message(struct end *end)
{
	printf("%s: %s\n", end == &server ? "server" : "client",
	       end_heard(&both, end));
	may_say = end == &client;
	return end_receive(&both, end) ||
	       (end == &server && end_send(&both, end, "heard"));
}

static int on_item(const struct rpma_rt_completion *cmpl)
{
	if (cmpl->kind == RPMA_RT_EVENT)
		return on_event(cmpl);
	if (cmpl->kind == RPMA_RT_WRITABLE)
		return end_send_again(&both, cmpl->user);
	return rpma_rt_completion_is_received(cmpl) && on_message(cmpl->user);
}

/*
 * Takes everything from the queue; returns the number of items, or -1 after a
 * failure.
 */
static int take(void)
{
	struct rpma_rt_completion cmpl[BATCH];
	int got, i, taken = 0;

	while ((got = rpma_rt_queue_poll(queue, cmpl, BATCH)) > 0) {
		taken += got;
		for (i = 0; i < got; i++)
			if (on_item(&cmpl[i]))
				return -1;
	}
	return taken;
}

/*
 * The loop sleeps only when neither the round nor the queue had work, and both
 * queue and poller are armed, in this order: then a descriptor becomes readable
 * as soon as there is work again.
 */
enum talk talk_turn(void)
{
	int done = TRY(rpma_rt_poller_run(both.rt, 0, BUDGET));
	int taken = done < 0 ? done : take();

	if (taken < 0)
		return TALK_FAILED;
	if (server.is_closed && client.is_closed)
		return TALK_OVER;
	if (done || taken || rpma_rt_queue_arm(queue) ||
	    rpma_rt_poller_arm(both.rt, 0))
		return TALK_AGAIN;
	return TALK_SLEEP;
}

int talk_get_fds(int *poller, int *queue_fd)
{
	return TRY(rpma_rt_poller_get_fd(both.rt, 0, poller)) ||
	       TRY(rpma_rt_queue_get_fd(queue, queue_fd));
}

int talk_open(int argc, char **argv)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	end_init(&both, &server, 0);
	end_init(&both, &client, 1);
	return both_usage(argc, argv) || both_open(&both, argv[1], &cfg) ||
	       TRY(rpma_rt_queue_new(both.rt, NULL, &queue)) ||
	       both_listen(&both, queue) || both_connect(&both, queue, &client);
}

void talk_close(void)
{
	both_stop(&both); /* runs the poller */
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
}
