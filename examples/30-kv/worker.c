/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * worker.c: a request is a job of the connection until the answer is posted.
 * The answer is written into the slot of the request, and the send takes the
 * slot. Jobs with something to post are in a line, from which the worker posts
 * after each batch of items. A post that is refused leaves the job there, until
 * WRITABLE: before ESTABLISHED, or while the client does not take its answers.
 * A client has WINDOW jobs, so no line is longer.
 */

#include "server.h"

#include <stdlib.h>

#include "../common/clock.h"
#include "../common/kv_protocol.h"
#include "../common/rendezvous.h"

#define BATCH	 32
#define SWEEP_MS 200

struct job {
	struct client *client;
	STAILQ_ENTRY(job) next; /* free, or in line */
	struct rpma_rt_lease lease;
	struct kv_request request; /* points into the lease */
	struct offer offer;
	struct value *value; /* to be read from, or written into, the offer */
	uint64_t deadline_ns;
	size_t answer_len; /* 0: the value is to be read first */
};

STAILQ_HEAD(jobs, job);

struct client {
	struct worker *worker;
	struct rpma_rt_conn *conn;
	LIST_ENTRY(client) next;
	struct job jobs[WINDOW];
	struct jobs free, line;
	uint64_t heard_ns; /* the last sign of life */
	int busy;	   /* jobs that are not free */
	bool is_up, is_closing, owes_bye;
};

static void client_close(struct client *client)
{
	client->is_closing = true;
	rpma_rt_conn_close(client->conn);
}

/* ---------------------------------------------------------------- jobs --- */

static struct job *job_take(struct client *client,
			    const struct rpma_rt_lease *lease)
{
	struct job *job = STAILQ_FIRST(&client->free);

	if (job == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&client->free, next);
	client->busy++;
	*job = (struct job){.client = client, .lease = *lease};
	return job;
}

/* Frees a job whose lease and value belong to the device, or are released. */
static void job_free(struct job *job)
{
	struct client *client = job->client;

	offer_free(&job->offer);
	STAILQ_INSERT_HEAD(&client->free, job, next);
	client->busy--;
}

static void job_drop(struct job *job)
{
	rpma_rt_lease_release(&job->lease);
	if (job->value != NULL)
		value_unref(job->value);
	job_free(job);
}

/* Prepares what the job needs next; returns how many work requests. The context
 * of a read is the number of the job from 1 on, that of a write the value. */
static int job_prep(const struct job *job, struct rpma_rt_wr *wrs)
{
	struct client *client = job->client;
	struct rpma_mr_local *mr = client->worker->server->arena.mr;
	struct value *value = job->value;

	if (job->answer_len > 0 && value == NULL) {
		rpma_rt_prep_send_lease(wrs, &job->lease, job->answer_len, 0);
		return 1;
	}
	if (job->answer_len == 0) {
		offer_prep_pull(wrs, &job->offer, mr, value->offset, value->len,
				(uint64_t)(job - client->jobs) + 1);
		return 1;
	}
	offer_prep_push(wrs, &job->offer, mr, value->offset, value->len,
			(uintptr_t)value, &job->lease, job->answer_len);
	return 2;
}

/* Posts for the jobs in line, in order, until a post is refused. */
static void go_on(struct client *client)
{
	struct rpma_rt_wr wrs[2 * WINDOW];
	struct job *job;
	int count = 0, taken;

	STAILQ_FOREACH(job, &client->line, next)
	count += job_prep(job, &wrs[count]);
	if (count == 0 || client->is_closing)
		return;
	taken = rpma_rt_post_send(client->conn, wrs, count);
	if (taken < 0 && taken != RPMA_E_AGAIN)
		client_close(client); /* or an offer that the device refuses */
	client->worker->stats.waited += taken < count;
	while (taken > 0) {
		job = STAILQ_FIRST(&client->line);
		STAILQ_REMOVE_HEAD(&client->line, next);
		taken -= job->answer_len > 0 && job->value != NULL ? 2 : 1;
		if (job->answer_len > 0)
			job_free(job);
	}
}

/* Sends KV_BYE: all clients get the same bytes. */
static void say_bye(struct client *client)
{
	const struct server *server = client->worker->server;

	/* any other error: the connection ends without */
	client->owes_bye =
		rpma_rt_send(client->conn, server->arena.mr, server->bye,
			     FRAME_HEAD + KV_BODY, RPMA_F_COMPLETION_ON_ERROR,
			     0) == RPMA_E_AGAIN;
}

/* ------------------------------------------------------------ requests --- */

/* Answers with a value, whose reference the call takes, or without. */
static void answer(struct job *job, enum kv_status status, struct value *value)
{
	struct kv_answer answer = {.frame = {.kind = KV_ANSWER,
					     .status = (uint8_t)status,
					     .id = job->request.frame.id}};
	uint8_t *place;

	if (value != NULL) {
		answer.value_len = value->len;
		if (value->len <= KV_ANSWER_MAX)
			answer.how = KV_IN_MESSAGE;
		else if (job->request.how == KV_BY_OFFER &&
			 job->request.value_len >= value->len)
			answer.how = KV_BY_OFFER;
		else
			answer.frame.status = KV_LARGE;
	}
	job->answer_len = kv_answer_write(&answer, job->lease.data, &place);
	job->value = answer.how == KV_BY_OFFER ? value : NULL;
	if (value != NULL && job->value == NULL) {
		if (answer.frame.status == KV_OK)
			memcpy(place, value_bytes(value), value->len);
		value_unref(value);
	}
	job->client->worker->stats.pushed += job->value != NULL;
	STAILQ_INSERT_TAIL(&job->client->line, job, next);
}

/* Stores the value of a job, with the reference of the job. */
static void put(struct job *job)
{
	struct worker *worker = job->client->worker;
	struct value *value = job->value;
	enum kv_status status = KV_OK;

	job->value = NULL;
	if (job->deadline_ns < worker->now_ns)
		status = KV_EXPIRED;
	else if (!store_put(&worker->server->store, job->request.key,
			    job->request.key_len, value))
		status = KV_FULL;
	worker->stats.stored += status == KV_OK;
	worker->stats.expired += status == KV_EXPIRED;
	if (status != KV_OK)
		value_unref(value);
	answer(job, status, NULL);
}

static void on_put(struct job *job)
{
	struct worker *worker = job->client->worker;
	struct kv_request *request = &job->request;
	bool is_offer = request->how == KV_BY_OFFER;

	worker->stats.puts++;
	if (request->value_len > KV_VALUE_MAX ||
	    (is_offer && request->value_len == 0)) {
		answer(job, KV_INVALID, NULL);
		return;
	}
	job->value =
		value_new(&worker->server->arena, (uint32_t)request->value_len);
	if (job->value == NULL) {
		worker->stats.full++;
		answer(job, KV_FULL, NULL);
	} else if (is_offer) {
		worker->stats.pulled++;
		/* put() when the read is over */
		STAILQ_INSERT_TAIL(&job->client->line, job, next);
	} else {
		memcpy(value_bytes(job->value), request->value.at,
		       request->value_len);
		put(job);
	}
}

static void on_job(struct job *job)
{
	struct worker *worker = job->client->worker;
	const struct kv_request *request = &job->request;
	struct store *store = &worker->server->store;
	struct value *value;
	bool was_there;

	switch (request->frame.kind) {
	case KV_GET:
		worker->stats.gets++;
		value = store_get(store, request->key, request->key_len);
		answer(job, value ? KV_OK : KV_NONE, value);
		return;
	case KV_PUT:
		on_put(job);
		return;
	default: /* no other kind passes kv_request_read() */
		worker->stats.deletes++;
		was_there = store_delete(store, request->key, request->key_len);
		answer(job, was_there ? KV_OK : KV_NONE, NULL);
	}
}

/* Closes the connection of a client that breaks the protocol: with bytes that
 * are no request, or with more requests than the window has. */
static void on_request(struct client *client, const struct rpma_rt_lease *lease)
{
	struct worker *worker = client->worker;
	struct job *job = client->is_closing ? NULL : job_take(client, lease);
	struct kv_request *request;

	if (job == NULL) {
		rpma_rt_lease_release(lease);
		worker->stats.broken += !client->is_closing;
		client_close(client);
		return;
	}
	request = &job->request;
	if (!kv_request_read(request, lease->data, lease->len) ||
	    (request->how == KV_BY_OFFER &&
	     !offer_read(&request->value, request->value_len, &job->offer))) {
		worker->stats.broken++;
		job_drop(job);
		client_close(client);
		return;
	}
	job->deadline_ns =
		request->frame.left_us
			? worker->now_ns + request->frame.left_us * 1000ull
			: UINT64_MAX;
	on_job(job);
}

/* Ends a read: the value is stored. Ends a write: the answer is on its way. */
static void on_completion(struct client *client,
			  const struct rpma_rt_completion *item)
{
	uint64_t number = item->context;

	if (number > WINDOW)
		value_unref(rpma_rt_completion_ptr(item));
	else if (number > 0 && rpma_rt_completion_is_ok(item))
		put(&client->jobs[number - 1]);
	else if (number > 0)
		job_drop(&client->jobs[number - 1]);
}

/* -------------------------------------------------------------- clients --- */

static bool client_new(struct worker *worker, struct rpma_rt_conn *conn)
{
	struct client *client = calloc(1, sizeof(*client));
	int i;

	if (client == NULL || rpma_rt_conn_set_user(conn, client)) {
		free(client);
		return false;
	}
	client->worker = worker;
	client->conn = conn;
	client->heard_ns = worker->now_ns;
	STAILQ_INIT(&client->line);
	STAILQ_INIT(&client->free);
	for (i = 0; i < WINDOW; i++)
		STAILQ_INSERT_TAIL(&client->free, &client->jobs[i], next);
	LIST_INSERT_HEAD(&worker->clients, client, next);
	worker->client_count++;
	worker->stats.clients++;
	return true;
}

/* CLOSED is the last item: no job is in the device's hands. */
static void client_delete(struct client *client)
{
	struct worker *worker = client->worker;
	struct job *job;

	while ((job = STAILQ_FIRST(&client->line)) != NULL) {
		STAILQ_REMOVE_HEAD(&client->line, next);
		job_drop(job);
	}
	LIST_REMOVE(client, next);
	rpma_rt_conn_unref(&client->conn);
	free(client);
	if (--worker->client_count == 0 && worker->is_draining)
		sem_post(&worker->drained);
}

static void on_connect(struct worker *worker, struct rpma_rt_conn *conn)
{
	struct kv_hello hello = {WINDOW, KV_VALUE_MAX, 0, 0}, theirs;
	struct rpma_conn_private_data pdata = {NULL, 0};
	uint8_t bytes[KV_HELLO];

	rpma_rt_conn_get_private_data(conn, &pdata);
	if (worker->is_draining ||
	    worker->client_count == worker->server->clients_max ||
	    !kv_hello_read(&theirs, pdata.ptr, pdata.len))
		hello.window = 0;
	kv_hello_write(&hello, bytes);
	pdata = (struct rpma_conn_private_data){bytes, sizeof(bytes)};
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
		bool owes = client->busy > 0 || !client->is_up;

		limit_ms = owes ? worker->server->patience_ms
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
		if (rpma_rt_completion_lease(item, &lease))
			on_request(client, &lease);
		else if (event == 0 && item->kind != RPMA_RT_WRITABLE)
			on_completion(client, item);
		if (client->owes_bye)
			say_bye(client);
	}
}

/* Follows on_item() for all items of a batch: a client has one post for all its
 * jobs, and is deleted when no item of the client is left. */
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
