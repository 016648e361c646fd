/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak_item.c -- handles an item: leads connections from their creation to
 * CLOSED. Runs on the consumer of the queue.
 */

#include "soak.h"

#include <string.h>

struct note {
	uint32_t pair;
	uint32_t gen;
};

/* --- in_use */

static struct rpma_rt_queue *queue_of(const struct soak_end *end)
{
	return end->epoch->sites[end->site].queues[end->own_queue].queue;
}

static const char *where_to(const struct soak_epoch *epoch,
			    const struct soak_end *end, int site)
{
	return end->cause == SOAK_NOBODY ? "9" : epoch->sites[site].port;
}

static struct soak_pair *take_pair(struct soak_epoch *epoch)
{
	struct soak_pair *pair = NULL;
	int i;

	pthread_mutex_lock(&epoch->lock);
	for (i = 0; i < SOAK_PAIRS && pair == NULL; i++) {
		if (epoch->pairs[i].used)
			continue;
		pair = &epoch->pairs[i];
		pair->used = true;
		pair->gen++;
	}
	pthread_mutex_unlock(&epoch->lock);
	return pair;
}

void soak_create(struct soak_epoch *epoch, uint64_t *random)
{
	struct soak_pair *pair = take_pair(epoch);
	struct rpma_rt_conn *conn;
	struct soak_end *end;
	int to;
	int ret;

	if (pair == NULL)
		return;
	end = soak_end_new(
		epoch, (int)soak_random(random, (uint32_t)epoch->sites_count),
		pair, pair->gen, false);
	CHECK(end);
	to = (int)soak_random(random, (uint32_t)epoch->sites_count);
	ret = world_conn_new(epoch->sites[end->site].rt, epoch->peer,
			     getenv("RPMA_TEST_ADDR") ? getenv("RPMA_TEST_ADDR")
						      : "127.0.0.1",
			     where_to(epoch, end, to),
			     epoch->conn_cfg[end->pair_gen % 2],
			     RPMA_RT_POLLER_ANY, queue_of(end), end, &conn);
	if (ret == RPMA_RT_E_BUSY || ret == RPMA_E_NOMEM ||
	    (ret == RPMA_E_PROVIDER && epoch->trouble != SOAK_NONE)) {
		soak_end_undo(end);
		return;
	}
	MUST(ret);
	soak_learn(end, conn);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&epoch->sum->in_use, 1, memory_order_relaxed);
	if (end->cause == SOAK_CLOSE_EARLY && soak_random(random, 2))
		soak_end_close(end);
	soak_end_put(end);
}

static struct soak_end *passive_new(struct soak_epoch *epoch, int site,
				    const struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata;
	struct note note;

	MUST(rpma_rt_conn_get_private_data(conn, &pdata));
	CHECK(pdata.ptr != NULL && pdata.len >= sizeof(note));
	memcpy(&note, pdata.ptr, sizeof(note));
	CHECK(note.pair < SOAK_PAIRS);
	return soak_end_new(epoch, site, &epoch->pairs[note.pair], note.gen,
			    true);
}

/* What both ends do once their queue pair exists. */
static void register_locked(struct soak_end *end, uint64_t *random)
{
	int n = (int)soak_random(random, 5);

	while (n-- > 0)
		soak_end_open_route(end, n % 2, random);
	soak_pump(end, RPMA_RT_RECV_SIDE, random);
}

static void connect_or_not(struct soak_end *end, struct rpma_rt_conn *conn,
			   uint64_t *random)
{
	struct note note = {.gen = end->pair_gen};
	struct rpma_conn_private_data pdata = {&note, sizeof(note)};
	int ret;

	if (end->pair != NULL)
		note.pair = (uint32_t)(end->pair - end->epoch->pairs);
	if (end->cause == SOAK_CLOSE_EARLY) {
		soak_end_close(end);
		return;
	}
	if (end->passive && end->cause == SOAK_REJECT && soak_random(random, 2))
		ret = rpma_rt_conn_reject(conn, NULL);
	else
		ret = end->passive ? rpma_rt_conn_accept(conn, &pdata)
				   : rpma_rt_conn_connect(conn, &pdata);
	if (ret && ret != RPMA_RT_E_CLOSED)
		soak_wrong(end, -1, 0, -1, rpma_rt_err_2str(ret));
}

static void on_ready(struct soak_queue *queue, struct rpma_rt_conn *conn,
		     struct soak_end *end)
{
	/* the caller of conn_new may not have come so far */
	soak_learn(end, conn);
	register_locked(end, &queue->random);
	connect_or_not(end, conn, &queue->random);
}

/* Sets the end's user pointer and its queue before any other item can come: an
 * end that belongs to another queue moves there. False: it stays, and dies. */
static bool move_in(struct soak_queue *queue, struct soak_end *end,
		    struct rpma_rt_conn *conn)
{
	int ret;

	/* no route is opened meanwhile */
	pthread_mutex_lock(&end->lock);
	soak_learn(end, conn);
	ret = rpma_rt_conn_set_user(conn, end);
	if (ret == 0 && end->own_queue != queue->index)
		ret = rpma_rt_conn_set_queue(conn, queue_of(end));
	if (ret) {
		end->own_queue = queue->index;
		end->lasts = 1u << queue->index;
		end->side[0].routes[0].queue = queue->index;
		end->side[1].routes[0].queue = queue->index;
	}
	pthread_mutex_unlock(&end->lock);
	return ret == 0;
}

static void on_request(struct soak_queue *queue, struct rpma_rt_conn *conn)
{
	struct soak_end *end = passive_new(queue->epoch, queue->site, conn);

	CHECK(end);
	if (move_in(queue, end, conn)) {
		register_locked(end, &queue->random);
		connect_or_not(end, conn, &queue->random);
	} else {
		soak_end_close(end);
	}
	soak_end_put(end);
}

/* --- events */

static void on_established(struct soak_queue *queue, struct soak_end *end)
{
	/* release: pairs with the acquire in soak_pump() */
	atomic_store_explicit(&end->established, true, memory_order_release);
	soak_pump(end, RPMA_RT_SEND_SIDE, &queue->random);
}

static void on_last(struct soak_queue *queue, struct soak_end *end,
		    const struct rpma_rt_completion *item)
{
	uint32_t bit = 1u << queue->index;
	struct soak_end *peer;
	bool closed = item->opcode == RPMA_RT_EVENT_CLOSED;

	/* relaxed, both: the last one to unref sees them all */
	if (atomic_fetch_or_explicit(&end->lasts_seen, bit,
				     memory_order_relaxed) &
	    bit)
		soak_wrong(end, -1, 0, queue->index, "two last items");
	if (closed != (queue->index == end->own_queue))
		soak_wrong(end, -1, 0, queue->index, "not its last item");
	if (closed) {
		/* relaxed, both: as above; a count */
		atomic_store_explicit(&end->reason, item->status,
				      memory_order_relaxed);
		atomic_fetch_add_explicit(
			&end->epoch->sum->reasons[item->status % 8], 1,
			memory_order_relaxed);
	}
	peer = end->epoch->deaf ? soak_end_peer(end) : NULL;
	if (peer != NULL) {
		soak_end_close(peer);
		soak_end_put(peer);
	}
	soak_end_put(end); /* of this item */
}

static void on_event(struct soak_queue *queue,
		     const struct rpma_rt_completion *item)
{
	struct rpma_rt_conn *conn =
		(struct rpma_rt_conn *)(uintptr_t)item->context;
	struct soak_end *end;

	soak_alive();
	if (item->opcode == RPMA_RT_EVENT_REQUEST) {
		on_request(queue, conn);
		return;
	}
	if (item->opcode == RPMA_RT_EVENT_LISTENER_CLOSED)
		return;
	end = soak_end_of(queue->epoch, conn);
	if (end == NULL) { /* conn_new has not returned yet */
		end = item->user;
		CHECK(end >= queue->epoch->ends &&
		      end < queue->epoch->ends + SOAK_ENDS && end->used);
		/* relaxed: its CLOSED holds it */
		atomic_fetch_add_explicit(&end->refs, 1, memory_order_relaxed);
		soak_learn(end, conn);
	}
	if (item->opcode == RPMA_RT_EVENT_READY)
		on_ready(queue, conn, end);
	else if (item->opcode == RPMA_RT_EVENT_ESTABLISHED)
		on_established(queue, end);
	else
		on_last(queue, end, item);
	soak_end_put(end);
}

static void on_writable(struct soak_queue *queue,
			const struct rpma_rt_completion *item)
{
	struct soak_end *end = soak_end_of(
		queue->epoch, (struct rpma_rt_conn *)(uintptr_t)item->context);

	CHECK(end != NULL && item->opcode < 2);
	/* relaxed: a count */
	atomic_fetch_add_explicit(&queue->epoch->sum->writables, 1,
				  memory_order_relaxed);
	soak_pump(end, item->opcode, &queue->random);
	soak_end_put(end);
}

void soak_item(struct soak_queue *queue, const struct rpma_rt_completion *item)
{
	switch (item->kind) {
	case RPMA_RT_COMPLETION:
		soak_completion(queue, item);
		return;
	case RPMA_RT_EVENT:
		on_event(queue, item);
		return;
	case RPMA_RT_WRITABLE:
		on_writable(queue, item);
		return;
	default:
		CHECK(item->kind == RPMA_RT_MESSAGE);
		CHECK(item->context == queue->messages);
		queue->messages++;
	}
}
