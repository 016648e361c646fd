/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT: stores values by key until a signal or KV_SHUTDOWN. Each
 * answer is sent from the slot of the request, and the send releases the slot.
 */

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "kv.h"

#define WORKERS 2
#define KEYS	4096

static struct kv_message table[KEYS]; /* by key; op 0: no value */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kv kv;

/* Turns a request into its answer; an invalid request has no value. */
static void serve(const struct rpma_rt_lease *lease)
{
	struct kv_message *message = lease->data;
	struct kv_message *entry = &table[message->key % KEYS];
	enum kv_op op = kv_is_whole(lease) ? message->op : KV_NONE;

	if (op == KV_SHUTDOWN)
		kill(getpid(), SIGTERM);
	pthread_mutex_lock(&table_lock);
	if (op == KV_SET) {
		memcpy(entry, message, kv_size(message));
		kv_fill(message, KV_STORED, message->key, 0);
	} else if (op == KV_GET && entry->key == message->key) {
		memcpy(message, entry, kv_size(entry));
		message->op = entry->op == KV_SET ? KV_VALUE : KV_NONE;
	} else {
		kv_fill(message, KV_NONE, message->key, 0);
	}
	pthread_mutex_unlock(&table_lock);
}

/*
 * Sends an answer; there is room for KV_WINDOW answers. After a refused send
 * the lease still belongs to the caller.
 */
static void answer(struct rpma_rt_conn *conn, const struct rpma_rt_lease *lease)
{
	if (!rpma_rt_send_lease(conn, lease, kv_size(lease->data), 0))
		return;
	rpma_rt_lease_release(lease);
	rpma_rt_conn_close(conn);
}

static void on_event(struct rpma_rt_conn *conn, unsigned event)
{
	struct rpma_rt_lease lease;

	if (event == RPMA_RT_EVENT_REQUEST &&
	    (rpma_rt_conn_set_user(conn, conn) ||
	     rpma_rt_conn_accept(conn, NULL))) {
		rpma_rt_conn_reject(conn, NULL);
	} else if (event == RPMA_RT_EVENT_CLOSED) {
		rpma_rt_conn_unref(&conn);
	} else if (event == RPMA_RT_EVENT_ESTABLISHED &&
		   !rpma_rt_pool_take(kv.pool, &lease)) {
		kv_fill(lease.data, KV_READY, 0, 0);
		answer(conn, &lease);
	}
}

static void *work(void *queue)
{
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;

	while (rpma_rt_queue_wait(queue, &item, 1, -1) >= 0) {
		if (rpma_rt_completion_lease(&item, &lease)) {
			serve(&lease);
			answer(item.user, &lease);
		} else {
			on_event(rpma_rt_completion_conn(&item),
				 rpma_rt_completion_event(&item));
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_queue *queues[WORKERS];
	struct rpma_rt_listener *listener;
	pthread_t workers[WORKERS];
	sigset_t signals;
	int i;

	if (argc != 3)
		return 2;
	sigfillset(&signals); /* only main gets signals */
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	kv_open(&kv, argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, WORKERS);
	for (i = 0; i < WORKERS; i++) {
		MUST(rpma_rt_queue_new(kv.rt, NULL, &queues[i]));
		pthread_create(&workers[i], NULL, work, queues[i]);
	}
	cfg.peer = kv.peer;
	cfg.pool = kv.pool;
	cfg.queues = queues;
	cfg.queue_count = WORKERS;
	MUST(rpma_rt_listen(kv.rt, argv[1], argv[2], &cfg, &listener));
	sigwait(&signals, &i);
	MUST(rpma_rt_listener_delete(&listener));
	MUST(rpma_rt_stop(kv.rt));
	for (i = 0; i < WORKERS; i++) {
		pthread_join(workers[i], NULL);
		MUST(rpma_rt_queue_delete(&queues[i]));
	}
	kv_close(&kv);
	printf("ended cleanly\n");
	return 0;
}
