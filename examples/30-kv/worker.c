/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * worker.c: an answer goes to the outbox of the connection, which the worker
 * posts after each batch of items. What a post refuses goes on at WRITABLE:
 * before ESTABLISHED, or while the client does not take its answers. A client
 * has WINDOW requests without an answer, so no outbox is longer.
 */

#include "server.h"

#include <stdlib.h>

#include "../common/clock.h"
#include "../common/kv_protocol.h"
#include "../common/rendezvous.h"

#define BATCH	 32
#define SWEEP_MS 200

/* A request with an offer, until the value is stored, or the write posted. */
struct job {
	struct value *value; /* NULL: the job is free */
	struct offer offer;
	struct kv_request request; /* of a PUT, points to the key below */
	uint64_t deadline_ns;
	uint8_t key[KV_KEY_MAX];
};

struct client {
	struct worker *worker;
	struct rpma_rt_conn *conn;
	LIST_ENTRY(client) next;
	uint64_t heard_ns; /* the last sign of life */
	int busy;	   /* requests whose answers are not posted */
	bool is_up, is_closing, owes_bye;
	struct outbox outbox;
	struct job jobs[WINDOW];
};

static void client_close(struct client *client)
{
	client->is_closing = true;
	rpma_rt_conn_close(client->conn);
}

/* Closes the connection of a client that breaks the protocol. */
static void broken(struct client *client)
{
	client->worker->stats.broken++;
	client_close(client);
}

/* ---------------------------------------------------------------- jobs --- */

/* Takes a job for the value, whose reference the call takes, with the offer of
 * the request. Bytes that are no offer: returns NULL. */
static struct job *job_take(struct client *client, struct kv_request *request,
			    struct value *value)
{
	struct job *job = client->jobs;

	while (job->value != NULL) /* a client has a job for each request */
		job++;
	if (offer_read(&request->value, request->value_len, &job->offer)) {
		job->value = value;
		return job;
	}
	value_unref(value);
	broken(client);
	return NULL;
}

static void job_free(struct job *job)
{
	offer_free(&job->offer);
	job->value = NULL;
}

/* Ends the job whose write was posted: the completion drops the value. */
static void job_posted(struct client *client, const struct rpma_rt_wr *write)
{
	struct job *job = client->jobs;

	while (job->value == NULL || job->offer.mr != write->remote)
		job++;
	job_free(job);
}

/* Posts what the outbox has, in order, until a post is refused. */
static void go_on(struct client *client)
{
	struct outbox *outbox = &client->outbox;
	int taken, i;

	if (outbox->waiting == 0 || client->is_closing)
		return;
	taken = rpma_rt_post_send(client->conn, outbox->line, outbox->waiting);
	if (taken < 0 && taken != RPMA_E_AGAIN)
		client_close(client); /* or an offer that the device refuses */
	client->worker->stats.waited += taken < outbox->waiting;
	for (i = 0; i < taken; i++) {
		client->busy -= outbox->line[i].op == RPMA_RT_OP_SEND;
		if (outbox->line[i].op == RPMA_RT_OP_WRITE)
			job_posted(client, &outbox->line[i]);
	}
	outbox_posted(outbox, i);
}

/* Sends KV_BYE, the same bytes to all; with an error the connection ends. */
static void say_bye(struct client *client)
{
	const struct server *server = client->worker->server;

	client->owes_bye =
		rpma_rt_send(client->conn, server->arena.mr, server->bye,
			     FRAME_HEAD + KV_BODY, RPMA_F_COMPLETION_ON_ERROR,
			     0) == RPMA_E_AGAIN;
}

/* ------------------------------------------------------------ requests --- */

/* Answers: with the bytes of a value that has room, or with the length. */
static void answer(struct client *client, const struct kv_request *request,
		   enum kv_status status, const struct value *value)
{
	uint64_t value_len = value ? value->len : 0;
	bool has_room = value_len <= KV_ANSWER_MAX;
	const struct kv_answer answer = {
		{KV_ANSWER, (uint8_t)status, 0, request->frame.id, NULL, 0},
		has_room || status != KV_OK ? KV_IN_MESSAGE : KV_BY_OFFER,
		value_len,
		NULL};
	uint8_t *place;
	size_t len =
		kv_answer_write(&answer, outbox_place(&client->outbox), &place);

	if (value != NULL && has_room)
		memcpy(place, value_bytes(value), value_len);
	outbox_answer(&client->outbox, len);
}

/* Writes a large value into the offer, with the answer behind, as one link. */
static void push(struct client *client, struct kv_request *request,
		 struct value *value)
{
	const struct job *job = job_take(client, request, value_ref(value));

	if (job == NULL)
		return;
	client->worker->stats.pushed++;
	offer_prep_push(outbox_add(&client->outbox), &job->offer,
			value->arena->mr, value->offset, value->len,
			(uintptr_t)value);
	answer(client, request, KV_OK, value);
}

static void on_get(struct client *client, struct kv_request *request)
{
	struct store *store = &client->worker->server->store;
	pthread_mutex_t *lock;
	struct value *value =
		store_look(store, request->key, request->key_len, &lock);

	client->worker->stats.gets++;
	if (value == NULL) {
		answer(client, request, KV_NONE, NULL);
		return;
	}
	if (value->len > KV_ANSWER_MAX && request->how == KV_BY_OFFER &&
	    request->value_len >= value->len)
		push(client, request, value);
	else
		answer(client, request,
		       value->len > KV_ANSWER_MAX ? KV_LARGE : KV_OK, value);
	store_unlock(store, lock);
}

/* Stores the value, with the reference of the caller. */
static void put(struct client *client, const struct kv_request *request,
		struct value *value)
{
	struct worker *worker = client->worker;
	bool is_stored = store_put(&worker->server->store, request->key,
				   request->key_len, value);

	if (!is_stored)
		value_unref(value);
	worker->stats.stored += is_stored;
	answer(client, request, is_stored ? KV_OK : KV_FULL, NULL);
}

/* Reads a value from the offer; pulled() follows. */
static void pull(struct client *client, struct kv_request *request,
		 struct value *value)
{
	struct worker *worker = client->worker;
	struct job *job = job_take(client, request, value);

	if (job == NULL)
		return;
	worker->stats.pulled++;
	job->deadline_ns = worker->now_ns + request->frame.left_us * 1000ull;
	job->request = *request;
	job->request.key = memcpy(job->key, request->key, request->key_len);
	/* the context is the number of the job, from 1 on */
	offer_prep_pull(outbox_add(&client->outbox), &job->offer,
			value->arena->mr, value->offset, value->len,
			(uint64_t)(job - client->jobs) + 1);
}

static void pulled(struct client *client, struct job *job, bool is_read)
{
	bool is_late = job->request.frame.left_us > 0 &&
		       job->deadline_ns < client->worker->now_ns;

	if (is_read && !is_late)
		put(client, &job->request, job->value);
	else
		value_unref(job->value);
	if (is_read && is_late)
		answer(client, &job->request, KV_EXPIRED, NULL);
	client->worker->stats.expired += is_read && is_late;
	job_free(job);
}

static void on_put(struct client *client, struct kv_request *request)
{
	struct worker *worker = client->worker;
	bool is_offer = request->how == KV_BY_OFFER;
	struct value *value;

	worker->stats.puts++;
	if (request->value_len > KV_VALUE_MAX ||
	    (is_offer && request->value_len == 0)) {
		answer(client, request, KV_INVALID, NULL);
		return;
	}
	value = value_new(&worker->server->arena, (uint32_t)request->value_len);
	if (value == NULL) {
		worker->stats.full++;
		answer(client, request, KV_FULL, NULL);
	} else if (is_offer) {
		pull(client, request, value);
	} else {
		memcpy(value_bytes(value), request->value.at,
		       request->value_len);
		put(client, request, value);
	}
}

/* Closes, too, a client that sends more requests than the window has. */
static void on_request(struct client *client, const struct rpma_rt_lease *lease)
{
	struct worker *worker = client->worker;
	struct kv_request request;
	bool was_there;

	if (client->is_closing)
		return;
	if (client->busy == WINDOW ||
	    !kv_request_read(&request, lease->data, lease->len)) {
		broken(client);
		return;
	}
	client->busy++;
	if (request.frame.kind == KV_GET) {
		on_get(client, &request);
	} else if (request.frame.kind == KV_PUT) {
		on_put(client, &request);
	} else { /* KV_DELETE: no other kind passes kv_request_read() */
		worker->stats.deletes++;
		was_there = store_delete(&worker->server->store, request.key,
					 request.key_len);
		answer(client, &request, was_there ? KV_OK : KV_NONE, NULL);
	}
}

/* Ends a read: the value is stored. Ends a write: the answer is on its way. */
static void on_completion(struct client *client,
			  const struct rpma_rt_completion *item)
{
	uint64_t number = item->context;

	if (number > WINDOW)
		value_unref(rpma_rt_completion_ptr(item));
	else if (number > 0)
		pulled(client, &client->jobs[number - 1],
		       rpma_rt_completion_is_ok(item));
}

/* -------------------------------------------------------------- clients --- */

static bool client_new(struct worker *worker, struct rpma_rt_conn *conn)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client == NULL ||
	    !outbox_open(&client->outbox, worker->server->threads.pool) ||
	    rpma_rt_conn_set_user(conn, client)) {
		if (client != NULL)
			outbox_close(&client->outbox);
		free(client);
		return false;
	}
	client->worker = worker;
	client->conn = conn;
	client->heard_ns = worker->now_ns;
	LIST_INSERT_HEAD(&worker->clients, client, next);
	worker->client_count++;
	worker->stats.clients++;
	return true;
}

/* CLOSED is the last item: the device has done with places and jobs. */
static void client_delete(struct client *client)
{
	struct worker *worker = client->worker;
	int i;

	for (i = 0; i < WINDOW; i++)
		if (client->jobs[i].value != NULL) {
			value_unref(client->jobs[i].value);
			job_free(&client->jobs[i]);
		}
	LIST_REMOVE(client, next);
	rpma_rt_conn_unref(&client->conn);
	outbox_close(&client->outbox);
	free(client);
	if (--worker->client_count == 0 && worker->is_draining)
		sem_post(&worker->drained);
}

static void on_connect(struct worker *worker, struct rpma_rt_conn *conn)
{
	struct kv_hello hello = {WINDOW, KV_VALUE_MAX, 0, 0}, theirs;
	struct rpma_conn_private_data asked = {NULL, 0};
	uint8_t bytes[KV_HELLO];
	const struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};

	rpma_rt_conn_get_private_data(conn, &asked);
	if (worker->is_draining ||
	    worker->client_count == worker->server->clients_max ||
	    !kv_hello_read(&theirs, asked.ptr, asked.len))
		hello.window = 0;
	kv_hello_write(&hello, bytes);
	if (hello.window > 0 && client_new(worker, conn)) {
		rpma_rt_conn_accept(conn, &pdata);
	} else {
		worker->stats.refused++;
		rpma_rt_conn_reject(conn, &pdata);
		rpma_rt_conn_unref(&conn);
	}
}

/* Closes clients that are silent for too long. */
static void sweep(struct worker *worker)
{
	struct client *client;
	uint64_t limit_ms;

	worker->swept_ns = worker->now_ns;
	LIST_FOREACH(client, &worker->clients, next)
	{
		limit_ms = client->busy > 0 || !client->is_up
				   ? worker->server->patience_ms
				   : worker->server->idle_ms;
		if (limit_ms == 0 || client->is_closing ||
		    worker->now_ns - client->heard_ns < limit_ms * CLOCK_MS)
			continue;
		worker->stats.stuck++;
		client_close(client);
	}
}

static void drain(struct worker *worker)
{
	struct client *client;

	worker->is_draining = true;
	LIST_FOREACH(client, &worker->clients, next)
	say_bye(client);
	if (worker->client_count == 0)
		sem_post(&worker->drained);
}

static void on_item(struct worker *worker,
		    const struct rpma_rt_completion *item)
{
	unsigned event = rpma_rt_completion_event(item);
	struct client *client = item->user; /* NULL: of no client */
	struct rpma_rt_lease lease;

	if (item->kind == RPMA_RT_MESSAGE) {
		drain(worker);
	} else if (event == RPMA_RT_EVENT_REQUEST) {
		on_connect(worker, rpma_rt_completion_conn(item));
	} else if (client != NULL) {
		client->heard_ns = worker->now_ns;
		client->is_up |= event == RPMA_RT_EVENT_ESTABLISHED;
		if (rpma_rt_completion_lease(item, &lease)) {
			on_request(client, &lease);
			rpma_rt_lease_release(&lease);
		} else if (event == 0 && item->kind != RPMA_RT_WRITABLE) {
			on_completion(client, item);
		}
		if (client->owes_bye)
			say_bye(client);
	}
}

/* Follows on_item() for all items of a batch: one post for each client. */
static void after_item(const struct rpma_rt_completion *item)
{
	struct client *client = item->user;

	if (client != NULL &&
	    rpma_rt_completion_event(item) == RPMA_RT_EVENT_CLOSED)
		client_delete(client);
	else if (client != NULL)
		go_on(client);
}

void *worker_run(void *arg)
{
	struct rpma_rt_completion items[BATCH];
	struct worker *worker = arg;
	int got, i;

	while ((got = rpma_rt_queue_wait(worker->queue, items, BATCH,
					 SWEEP_MS)) >= 0) {
		worker->now_ns = clock_now();
		for (i = 0; i < got; i++)
			on_item(worker, &items[i]);
		for (i = 0; i < got; i++)
			after_item(&items[i]);
		if (worker->now_ns - worker->swept_ns > SWEEP_MS * CLOCK_MS)
			sweep(worker);
	}
	return NULL; /* the runtime has stopped, and the queue is empty */
}
