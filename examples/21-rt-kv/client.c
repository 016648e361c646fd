/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client ADDRESS PORT: makes CONNECTIONS connections to a key-value server,
 * with KV_WINDOW keys each. The client stores and reads back the value of a
 * key, round after round. When all rounds are done, the client makes the server
 * end.
 */

#include "kv.h"

#define CONNECTIONS 64
#define KEYS	    (CONNECTIONS * KV_WINDOW)
#define ROUNDS	    50

static struct kv kv;
static struct rpma_rt_conn *conns[CONNECTIONS];
static uint32_t steps[KEYS]; /* completed steps: even steps store, odd steps
			      * read */
static int left = KEYS;	     /* keys with rounds to do */
static int values, wrong, closed;

static uint32_t len_of(uint64_t key)
{
	return (uint32_t)(key + steps[key] / 2) % KV_VALUE_MAX;
}

/* The bytes of a value depend on the key and the round. */
static int byte_of(uint64_t key)
{
	return (int)(key * 31 + steps[key] / 2) & 0x7f;
}

static void request(enum kv_op op, uint64_t key)
{
	struct kv_message *message;
	struct rpma_rt_lease lease;

	MUST(rpma_rt_pool_take(kv.pool, &lease));
	message = lease.data;
	kv_fill(message, op, key, op == KV_SET ? len_of(key) : 0);
	memset(message->value, byte_of(key), message->len);
	MUST(rpma_rt_send_lease(conns[key / KV_WINDOW], &lease,
				kv_size(message), 0));
}

static void step(uint64_t key)
{
	if (steps[key] < 2 * ROUNDS)
		request(steps[key] % 2 ? KV_GET : KV_SET, key);
	else if (--left == 0)
		request(KV_SHUTDOWN, 0);
}

static void check_value(const struct kv_message *answer)
{
	int byte = byte_of(answer->key);
	uint32_t i;

	values++;
	wrong += answer->op != KV_VALUE || answer->len != len_of(answer->key);
	for (i = 0; i < answer->len; i++)
		wrong += answer->value[i] != byte;
}

/* Handles an answer on the connection of the number. */
static void on_answer(uint64_t number, const struct rpma_rt_lease *lease)
{
	const struct kv_message *answer = lease->data;
	uint64_t key = number * KV_WINDOW;

	if (!kv_is_whole(lease) || answer->key >= KEYS) {
		wrong++;
	} else if (answer->op == KV_READY) {
		for (; key < (number + 1) * KV_WINDOW; key++)
			step(key);
	} else if (left > 0) {
		if (steps[answer->key] % 2)
			check_value(answer);
		steps[answer->key]++;
		step(answer->key);
	}
	rpma_rt_lease_release(lease);
}

static void on_event(const struct rpma_rt_completion *item)
{
	unsigned event = rpma_rt_completion_event(item);

	if (event == RPMA_RT_EVENT_READY)
		MUST(rpma_rt_conn_connect(rpma_rt_completion_conn(item), NULL));
	if (event != RPMA_RT_EVENT_CLOSED)
		return;
	closed++;
	if (left == 0)
		return;
	fprintf(stderr, "closed: %s\n", rpma_rt_reason_2str(item->status));
	exit(1);
}

static void take_all(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	struct rpma_rt_lease lease;

	while (closed < CONNECTIONS) {
		MUST(rpma_rt_queue_wait(queue, &item, 1, -1));
		if (rpma_rt_completion_lease(&item, &lease))
			on_answer((uintptr_t)item.user, &lease);
		else
			on_event(&item);
	}
}

int main(int argc, char **argv)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_queue *queue;
	uintptr_t i;

	if (argc != 3)
		return 2;
	kv_open(&kv, argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, 1);
	MUST(rpma_rt_queue_new(kv.rt, NULL, &queue));
	cfg.peer = kv.peer;
	cfg.pool = kv.pool;
	cfg.queue = queue;
	for (i = 0; i < CONNECTIONS; i++) {
		cfg.user = (void *)i;
		MUST(rpma_rt_conn_new(kv.rt, argv[1], argv[2], &cfg,
				      &conns[i]));
	}
	take_all(queue);
	for (i = 0; i < CONNECTIONS; i++)
		rpma_rt_conn_unref(&conns[i]);
	MUST(rpma_rt_stop(kv.rt));
	MUST(rpma_rt_queue_delete(&queue));
	kv_close(&kv);
	printf("%d values read by %d connections, %d wrong\n", values,
	       CONNECTIONS, wrong);
	return left > 0 || wrong > 0;
}
