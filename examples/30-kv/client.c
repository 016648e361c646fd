/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* client.c: see client.h. */

#include "client.h"

#include "../common/rendezvous.h"

void kv_client_init(struct kv_client *client)
{
	const struct kv_hello hello = {0};

	kv_hello_write(&hello, client->hello);
	client->link.cfg.user = client;
	client->link.cfg.pool = client->pool;
	client->link.pdata.ptr = client->hello;
	client->link.pdata.len = sizeof(client->hello);
	calls_init(&client->calls, 0);
}

/* Writes the message of a request; returns the bytes, 0 without room. */
static size_t write_request(const struct kv_client *client,
			    const struct kv_op *op, uint64_t id, void *bytes)
{
	bool is_put = op->kind == KV_PUT;
	bool is_offer = is_put ? op->len > KV_SMALL_MAX : op->bytes != NULL;
	struct kv_request request = {
		.frame = {.kind = (uint8_t)op->kind, .id = id},
		.key = op->key,
		.key_len = op->key_len,
		.how = is_offer ? KV_BY_OFFER : KV_IN_MESSAGE,
		.value_len = is_put || is_offer ? op->len : 0};
	uint64_t left_us = (op->deadline_ns - client->now_ns) / 1000;
	struct writer writer;

	if (op->deadline_ns != CALLS_NONE)
		request.frame.left_us = left_us < UINT32_MAX
						? (uint32_t)left_us + 1
						: UINT32_MAX;
	writer = kv_request_begin(&request, bytes, KV_MESSAGE);
	if (is_offer)
		offer_write(
			&writer, client->arena->mr,
			(uint64_t)((char *)op->bytes - client->arena->memory));
	else if (is_put)
		write_bytes(&writer, op->bytes, op->len);
	return kv_request_end(&request, &writer, bytes);
}

int kv_client_start(struct kv_client *client, struct kv_op *op)
{
	struct rpma_rt_lease lease;
	struct call *call;
	size_t len;
	int ret;

	if (!client->link.is_up || client->is_leaving)
		return RPMA_E_AGAIN;
	call = calls_open(&client->calls, op, op->deadline_ns);
	if (call == NULL)
		return RPMA_E_AGAIN;
	op->is_late = false;
	ret = rpma_rt_pool_take(client->pool, &lease);
	if (ret == 0) {
		len = write_request(client, op, call->id, lease.data);
		ret = len ? rpma_rt_send_lease(client->link.conn, &lease, len,
					       0)
			  : RPMA_E_INVAL;
		if (ret)
			rpma_rt_lease_release(&lease);
	}
	if (ret)
		calls_close(&client->calls, call);
	/* closed: CLOSED is on its way, and a connection after it */
	return ret == RPMA_RT_E_CLOSED ? RPMA_E_AGAIN : ret;
}

/* Closes when the server waits for that, and no answer is missing. */
static void leave(struct kv_client *client)
{
	if (client->is_leaving && client->calls.open == 0 && client->link.is_up)
		rpma_rt_conn_close(client->link.conn);
}

/* Finishes a call; a value that came by the offer is in the memory of the
 * request. */
static void finish(struct kv_client *client, struct call *call,
		   const struct kv_answer *answer)
{
	struct kv_op *op = call->user;
	bool is_offer = answer->how == KV_BY_OFFER;

	calls_close(&client->calls, call);
	client->done(client, op, answer, is_offer ? op->bytes : answer->value);
	leave(client);
}

static void on_message(struct kv_client *client,
		       const struct rpma_rt_lease *lease)
{
	struct kv_answer answer;
	struct call *call = NULL;

	if (kv_answer_read(&answer, lease->data, lease->len)) {
		if (answer.frame.kind == KV_BYE) {
			client->is_leaving = true;
			leave(client);
			return;
		}
		call = calls_find(&client->calls, answer.frame.id);
	}
	if (call != NULL) {
		finish(client, call, &answer);
	} else {
		client->broken++;
		rpma_rt_conn_close(client->link.conn);
	}
}

/* Opens the window that the server grants. */
static void on_up(struct kv_client *client)
{
	struct rpma_conn_private_data pdata = {NULL, 0};
	struct kv_hello hello;

	client->connects++;
	rpma_rt_conn_get_private_data(client->link.conn, &pdata);
	if (kv_hello_read(&hello, pdata.ptr, pdata.len) && hello.window > 0)
		calls_init(&client->calls,
			   hello.window < CALLS_MAX ? hello.window : CALLS_MAX);
	else
		rpma_rt_conn_close(client->link.conn);
	client->shard = hello.shard;
	client->shards = hello.shards;
	leave(client); /* KV_BYE can come before ESTABLISHED */
}

static void on_down(struct kv_client *client)
{
	const struct kv_answer lost = {.frame = {.status = KV_LOST}};
	struct call *call;

	while ((call = calls_any(&client->calls)) != NULL)
		finish(client, call, &lost);
	calls_init(&client->calls, 0);
}

void kv_client_item(struct kv_client *client,
		    const struct rpma_rt_completion *item, uint64_t now_ns)
{
	struct rpma_rt_lease lease;

	client->now_ns = now_ns;
	if (rpma_rt_completion_lease(item, &lease)) {
		on_message(client, &lease);
		rpma_rt_lease_release(&lease);
		return;
	}
	switch (reconnect_event(&client->link, item, now_ns)) {
	case RECONNECT_UP:
		on_up(client);
		break;
	case RECONNECT_DOWN:
		on_down(client);
		break;
	case RECONNECT_NOTHING:
		break;
	}
	if (client->link.conn == NULL)
		client->is_leaving = false; /* another server follows */
}

uint64_t kv_client_tick(struct kv_client *client, uint64_t now_ns)
{
	uint64_t again_ns = reconnect_tick(&client->link, now_ns);
	struct call *call;

	client->now_ns = now_ns;
	while ((call = calls_expire(&client->calls, now_ns)) != NULL) {
		((struct kv_op *)call->user)->is_late = true;
		client->late(client, call->user);
	}
	return again_ns < client->calls.earliest_ns ? again_ns
						    : client->calls.earliest_ns;
}
