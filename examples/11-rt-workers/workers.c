/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * workers ADDRESS: a pool of workers, each asleep on a separate queue. main
 * distributes the connections to the workers; from then on a worker sees all
 * items of its connections, in order, and needs no lock.
 */

#include <pthread.h>
#include <stdio.h>

#include "../common/both.h"

#define WORKERS 3
#define CLIENTS 6
#define BATCH	16

struct worker {
	pthread_t thread;
	struct rpma_rt_queue *queue;
	bool is_started;
};
static struct both both;
static struct worker workers[WORKERS];
static struct end servers[CLIENTS]; /* distributed in turn */
static struct end clients[CLIENTS]; /* belong to main */
static int served;

/* ------------------------------------------------------------ workers --- */

static void answer(const struct worker *worker, struct end *end)
{
	char text[MESSAGE];

	snprintf(text, sizeof(text), "worker %d: hello, %.32s",
		 (int)(worker - workers), end_heard(&both, end));
	end_send(&both, end, text);
}

static void *work(void *arg)
{
	struct rpma_rt_completion cmpl[BATCH];
	struct worker *worker = arg;
	int got, i;

	/* until the runtime has stopped and the queue is empty */
	while ((got = rpma_rt_queue_wait(worker->queue, cmpl, BATCH, -1)) > 0)
		for (i = 0; i < got; i++)
			if (rpma_rt_completion_is_received(&cmpl[i]))
				answer(worker, cmpl[i].user);
			else if (cmpl[i].kind == RPMA_RT_WRITABLE)
				end_send_again(&both, cmpl[i].user);
	return NULL;
}

static int start_worker(struct worker *worker)
{
	if (TRY(rpma_rt_queue_new(both.rt, NULL, &worker->queue)))
		return 1;
	worker->is_started =
		pthread_create(&worker->thread, NULL, work, worker) == 0;
	return !worker->is_started;
}

static void end_worker(struct worker *worker)
{
	if (worker->is_started)
		pthread_join(worker->thread, NULL);
	rpma_rt_queue_delete(&worker->queue);
}

/* --------------------------------------------------------------- main --- */

/* Gives a request, with all later events, to a worker. */
static int deal_out(struct rpma_rt_conn *conn)
{
	struct worker *worker = &workers[served % WORKERS];

	return TRY(rpma_rt_conn_set_queue(conn, worker->queue)) ||
	       end_accept(&both, &servers[served++], conn);
}

static int on_event(const struct rpma_rt_completion *event, int *closed)
{
	struct rpma_rt_conn *conn = rpma_rt_completion_conn(event);
	struct end *client = event->user;
	char name[MESSAGE];

	switch (rpma_rt_completion_event(event)) {
	case RPMA_RT_EVENT_REQUEST:
		return served < CLIENTS ? deal_out(conn) : both_refuse(conn);
	case RPMA_RT_EVENT_READY:
		return end_connect(&both, client);
	case RPMA_RT_EVENT_ESTABLISHED:
		snprintf(name, sizeof(name), "client %d", client->number);
		return end_send(&both, client, name);
	default: /* CLOSED; without an end if the connection was refused */
		*closed += client != NULL;
		return 0;
	}
}

static int run(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion cmpl;
	int i, closed = 0, ret = both_listen(&both, queue);

	for (i = 0; i < CLIENTS && !ret; i++) {
		end_init(&both, &servers[i], i);
		end_init(&both, &clients[i], i);
		ret = both_connect(&both, queue, &clients[i]);
	}
	while (!ret && closed < CLIENTS) {
		if (TRY(rpma_rt_queue_wait(queue, &cmpl, 1, -1)) != 1)
			return 1;
		if (cmpl.kind == RPMA_RT_EVENT) {
			ret = on_event(&cmpl, &closed);
		} else if (rpma_rt_completion_is_received(&cmpl)) {
			puts(end_heard(&both, cmpl.user));
			rpma_rt_conn_close(((struct end *)cmpl.user)->conn);
		}
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct rpma_rt_queue *queue = NULL;
	int ret, i;

	ret = both_usage(argc, argv) || both_open(&both, argv[1], NULL) ||
	      TRY(rpma_rt_queue_new(both.rt, NULL, &queue));
	for (i = 0; i < WORKERS && !ret; i++)
		ret = start_worker(&workers[i]);
	ret = ret || run(queue);
	both_stop(&both);
	for (i = 0; i < WORKERS; i++)
		end_worker(&workers[i]);
	for (i = 0; i < CLIENTS; i++) {
		rpma_rt_conn_unref(&clients[i].conn);
		rpma_rt_conn_unref(&servers[i].conn);
	}
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	return ret;
}
