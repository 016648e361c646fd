/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* thousands_worker.c -- one worker and its connections; see thousands.h. */

#include "thousands.h"

#include <string.h>

#define AT_ONCE	 32 /* connections of a worker that are being made */
#define RECEIVES 2
#define ROUNDS	 8

/* ------------------------------------------------------------- messages --- */

static void post_recv(struct soak *soak, struct end *end)
{
	size_t slot = (size_t)end->index * DEPTH + end->posted % RECEIVES;
	size_t at = slot * SIZE;

	if (rpma_rt_recv(end->conn, soak->mr, at, SIZE, at) == 0)
		end->posted++;
	else
		CHECK(end->pair->is_closing);
}

/* The next number of the active end, or the answer to the last one. */
static void post_send(struct soak *soak, struct end *end)
{
	size_t at = ((size_t)end->index * DEPTH + DEPTH - 1) * SIZE;
	uint64_t number = end->sent + 1;
	int ret;

	memcpy(soak->memory + at, &number, SIZE);
	ret = rpma_rt_send(end->conn, soak->mr, at, SIZE,
			   RPMA_F_COMPLETION_ALWAYS, number);
	if (ret) {
		CHECK(end->pair->is_closing);
		return;
	}
	end->sent++;
	end->posted++;
}

static void close_pair(struct pair *pair)
{
	pair->is_closing = true;
	MUST(rpma_rt_conn_close(pair->end[0].conn));
}

static void set_idle(struct worker *w, struct pair *pair, bool is_idle)
{
	if (pair->is_idle == is_idle)
		return;
	pair->is_idle = is_idle;
	if (is_idle)
		w->under_way--;
	else
		w->under_way++;
}

/* The active end has its number back. */
static void end_round(struct worker *w, struct pair *pair)
{
	w->messages++;
	if (pair->end[0].received % ROUNDS != 0)
		post_send(w->soak, &pair->end[0]);
	else if (pair->lives > 0)
		close_pair(pair);
	else
		set_idle(w, pair, true);
}

static void on_receive(struct worker *w, struct end *end,
		       const struct rpma_rt_completion *item)
{
	uint64_t number;

	CHECK(item->byte_len == SIZE);
	memcpy(&number, w->soak->memory + item->context, SIZE);
	CHECK(number == ++end->received);
	post_recv(w->soak, end);
	if (end == &end->pair->end[0])
		end_round(w, end->pair);
	else if (end->is_up)
		post_send(w->soak, end);
	else
		end->owes = true;
}

static void on_completion(struct worker *w,
			  const struct rpma_rt_completion *item)
{
	struct end *end = item->user;

	end->completed++;
	if (item->status != IBV_WC_SUCCESS)
		CHECK(end->pair->is_closing);
	else if (item->opcode == IBV_WC_RECV)
		on_receive(w, end, item);
}

/* --------------------------------------------------------------- events --- */

static void begin_life(struct worker *w, struct pair *pair)
{
	struct soak *soak = w->soak;
	struct end *end = &pair->end[0];

	pair->lives--;
	pair->is_closing = false;
	pair->alive = 2;
	w->making++;
	MUST(world_conn_new(soak->world.rt, soak->world.peer, soak->world.addr,
			    w->port, soak->cfg, RPMA_RT_POLLER_ANY, w->queue,
			    end, &end->conn));
}

static void begin_end(struct worker *w, struct end *end)
{
	int i;

	end->posted = 0;
	end->completed = 0;
	end->received = 0;
	end->sent = 0;
	end->is_up = false;
	end->owes = false;
	for (i = 0; i < RECEIVES; i++)
		post_recv(w->soak, end);
}

/* Its private data says whose other end it is. */
static void on_request(struct worker *w, struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata;
	struct end *end;
	uint32_t index;

	MUST(rpma_rt_conn_get_private_data(conn, &pdata));
	CHECK(pdata.len >= sizeof(index)); /* rdma_cm pads it */
	memcpy(&index, pdata.ptr, sizeof(index));
	CHECK(index < w->soak->count);
	end = &w->soak->pairs[index].end[1];
	end->conn = conn;
	MUST(rpma_rt_conn_set_user(conn, end));
	begin_end(w, end);
	MUST(rpma_rt_conn_accept(conn, NULL));
}

static void on_established(struct worker *w, struct end *end)
{
	struct pair *pair = end->pair;

	end->is_up = true;
	if (end->owes)
		post_send(w->soak, end);
	if (++pair->up < 2)
		return;
	w->making--;
	w->up++;
	set_idle(w, pair, true);
}

static void on_closed(struct worker *w, struct end *end)
{
	struct pair *pair = end->pair;

	CHECK(pair->is_closing && end->completed == end->posted);
	MUST(rpma_rt_conn_unref(&end->conn));
	pair->up--;
	if (--pair->alive > 0)
		return;
	w->up--;
	if (w->is_running) {
		w->churning--;
		begin_life(w, pair);
	}
}

static void on_event(struct worker *w, const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn =
		(struct rpma_rt_conn *)(uintptr_t)item->context;
	struct end *end = item->user;
	struct rpma_conn_private_data pdata;

	switch (item->opcode) {
	case RPMA_RT_EVENT_READY:
		pdata.ptr = &end->pair->index;
		pdata.len = sizeof(end->pair->index);
		begin_end(w, end);
		MUST(rpma_rt_conn_connect(end->conn, &pdata));
		break;
	case RPMA_RT_EVENT_REQUEST:
		on_request(w, conn);
		break;
	case RPMA_RT_EVENT_ESTABLISHED:
		on_established(w, end);
		break;
	default:
		CHECK(item->opcode == RPMA_RT_EVENT_CLOSED);
		on_closed(w, end);
	}
}

static void step(struct worker *w)
{
	struct rpma_rt_completion items[64];
	int got = rpma_rt_queue_wait(w->queue, items, 64, WORLD_PATIENCE_MS);
	int i;

	CHECK(got > 0);
	for (i = 0; i < got; i++) {
		if (items[i].kind == RPMA_RT_COMPLETION)
			on_completion(w, &items[i]);
		else
			on_event(w, &items[i]);
	}
}

/* --------------------------------------------------------------- phases --- */

static uint32_t share(const struct worker *w)
{
	return w->soak->count / WORKERS;
}

static struct pair *pair_of(const struct worker *w, uint32_t i)
{
	return &w->soak->pairs[w->first + WORKERS * i];
}

static void connect_until(struct worker *w, uint32_t count)
{
	while (w->up < count) {
		if (w->begun < count && w->making < AT_ONCE)
			begin_life(w, pair_of(w, w->begun++));
		else
			step(w);
	}
}

/* Pairs that are idle get something to do, each in its turn. */
static void feed(struct worker *w)
{
	struct pair *pair;
	uint32_t i;

	for (i = 0; i < share(w) && w->under_way < WINDOW; i++) {
		pair = pair_of(w, w->next++ % share(w));
		if (!pair->is_idle)
			continue;
		set_idle(w, pair, false);
		w->turns++;
		post_send(w->soak, &pair->end[0]);
	}
}

static void run(struct worker *w)
{
	uint32_t i;

	w->is_running = true;
	w->under_way = 0;
	for (i = 0; i < share(w); i++)
		w->churning += pair_of(w, i)->lives;
	while (w->churning > 0 || w->turns < 2 * share(w)) {
		feed(w);
		step(w);
	}
	while (w->under_way > 0)
		step(w);
	w->is_running = false;
}

static void close_all(struct worker *w)
{
	uint32_t i;

	for (i = 0; i < share(w); i++)
		close_pair(pair_of(w, i));
	while (w->up > 0)
		step(w);
}

/* The main thread counts between the phases, when nothing is under way. */
void *worker_main(void *arg)
{
	struct worker *w = arg;

	connect_until(w, WARM);
	pthread_barrier_wait(&w->soak->barrier);
	pthread_barrier_wait(&w->soak->barrier);
	connect_until(w, share(w));
	pthread_barrier_wait(&w->soak->barrier);
	pthread_barrier_wait(&w->soak->barrier);
	run(w);
	close_all(w);
	return NULL;
}
