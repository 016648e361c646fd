/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * many.c -- many connections over two pollers to four queues: every work
 * request gets exactly one completion, in the queue its route names, in order.
 *
 * usage: runtime_many [messages [connections]]
 *
 * Each connection sends to its other end; sends complete in queue A, receives
 * in queue B of the connection's own choice, consumed by four threads.
 * A work request's context is (connection, sequence number); a bitmap per
 * connection and direction ticks it off.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "world.h"

#define QUEUES	  4
#define MAX_CONNS 64
#define DEPTH	  32
#define MSG_SIZE  64
#define SEQ_BITS  32
#define EVENTS_IN (QUEUES - 1) /* events also come to a data queue */

struct end {
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *send_route; /* NULL: its own queue */
	struct rpma_rt_route *recv_route;
	int send_queue;
	int recv_queue;
	uint32_t sent; /* by the thread that consumes its send queue */
	uint32_t received;
	uint8_t *sent_bits;
	uint8_t *recv_bits;
};

struct worker {
	struct many *many;
	int index;
	uint64_t items;
};

struct many {
	struct world world;
	struct rpma_rt_queue *queues[QUEUES];
	struct rpma_rt_queue *setup; /* events during set-up */
	struct rpma_mr_local *mr;
	char *memory;
	struct end ends[2 * MAX_CONNS];
	int ends_count;
	uint32_t per_end;
	_Atomic uint64_t left; /* completions still to come */
	_Atomic bool done;
};

static uint64_t context_of(const struct many *m, const struct end *end,
			   uint32_t seq)
{
	return ((uint64_t)(end - m->ends) << SEQ_BITS) | seq;
}

static size_t offset_of(const struct many *m, const struct end *end, bool recv,
			uint32_t seq)
{
	size_t slot = (size_t)(end - m->ends) * 2 * DEPTH + (recv ? DEPTH : 0) +
		      seq % DEPTH;

	return slot * MSG_SIZE;
}

static void post_send(struct many *m, struct end *end, uint32_t seq)
{
	size_t offset = offset_of(m, end, false, seq);
	struct rpma_rt_wr wr = {
		.op = RPMA_RT_OP_SEND,
		.flags = RPMA_F_COMPLETION_ALWAYS,
		.context = context_of(m, end, seq),
		.route = end->send_route,
		.local = m->mr,
		.local_offset = offset,
		.len = MSG_SIZE,
	};

	memcpy(m->memory + offset, &wr.context, sizeof(wr.context));
	MUST(world_post_send(end->conn, &wr));
}

static void post_recv(struct many *m, struct end *end, uint32_t seq)
{
	struct rpma_rt_recv_wr wr = {
		.context = context_of(m, end, seq),
		.route = end->recv_route,
		.dst = m->mr,
		.offset = offset_of(m, end, true, seq),
		.len = MSG_SIZE,
	};

	MUST(world_post_recv(end->conn, &wr));
}

static void tick(uint8_t *bits, uint32_t seq)
{
	CHECK((bits[seq / 8] & (1 << seq % 8)) == 0); /* else twice */
	bits[seq / 8] |= (uint8_t)(1 << seq % 8);
}

static void on_completion(struct many *m, int queue,
			  const struct rpma_rt_completion *c)
{
	struct end *end = &m->ends[c->context >> SEQ_BITS];
	uint32_t seq = (uint32_t)c->context;
	uint64_t received;

	CHECK(c->status == IBV_WC_SUCCESS);
	if (c->opcode == IBV_WC_SEND) {
		CHECK(queue == end->send_queue);
		CHECK(seq == end->sent); /* order kept */
		end->sent++;
		tick(end->sent_bits, seq);
		if (seq + DEPTH / 2 < m->per_end)
			post_send(m, end, seq + DEPTH / 2);
	} else {
		CHECK(c->opcode == IBV_WC_RECV && queue == end->recv_queue);
		CHECK(seq == end->received && c->byte_len == MSG_SIZE);
		end->received++;
		tick(end->recv_bits, seq);
		memcpy(&received, m->memory + offset_of(m, end, true, seq),
		       sizeof(received));
		/* from the other end, the same sequence number */
		CHECK(received ==
		      context_of(m, &m->ends[(end - m->ends) ^ 1], seq));
		if (seq + DEPTH < m->per_end)
			post_recv(m, end, seq + DEPTH);
	}
	/* relaxed: a count; done is what the others look at */
	if (atomic_fetch_sub_explicit(&m->left, 1, memory_order_relaxed) == 1)
		atomic_store_explicit(&m->done, true, memory_order_release);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct many *m = worker->many;
	struct rpma_rt_completion items[64];
	uint64_t last = world_now_ms();
	int got;
	int i;

	/* acquire: pairs with the release in on_completion() */
	while (!atomic_load_explicit(&m->done, memory_order_acquire)) {
		got = rpma_rt_queue_wait(m->queues[worker->index], items, 64,
					 20);
		CHECK(got >= 0);
		if (got == 0) {
			CHECK(world_now_ms() - last < WORLD_PATIENCE_MS);
			continue;
		}
		last = world_now_ms();
		for (i = 0; i < got; i++) {
			CHECK(items[i].kind == RPMA_RT_COMPLETION);
			on_completion(m, worker->index, &items[i]);
		}
		worker->items += (uint64_t)got;
	}
	return NULL;
}

static void set_up_end(struct many *m, struct rpma_rt_conn *conn, int index)
{
	struct end *end = &m->ends[index];
	uint32_t seq;

	end->conn = conn;
	end->send_queue = index % QUEUES;
	end->recv_queue = (index / QUEUES + index) % QUEUES;
	end->sent_bits = calloc(m->per_end / 8 + 1, 1);
	end->recv_bits = calloc(m->per_end / 8 + 1, 1);
	CHECK(end->sent_bits && end->recv_bits);
	MUST(rpma_rt_route_open(conn, RPMA_RT_SEND_SIDE,
				m->queues[end->send_queue], &end->send_route));
	MUST(rpma_rt_route_open(conn, RPMA_RT_RECV_SIDE,
				m->queues[end->recv_queue], &end->recv_route));
	for (seq = 0; seq < DEPTH && seq < m->per_end; seq++)
		post_recv(m, end, seq);
}

static void set_up(struct many *m, int conns)
{
	struct rpma_rt_conn_cfg *cfg = world_cfg(DEPTH, DEPTH);
	struct world_pair pair;
	size_t size = (size_t)conns * 2 * 2 * DEPTH * MSG_SIZE;
	int i;

	m->memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	CHECK(m->memory);
	MUST(rpma_mr_reg(m->world.peer, m->memory, size,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &m->mr));
	for (i = 0; i < QUEUES; i++)
		MUST(rpma_rt_queue_new(m->world.rt, NULL, &m->queues[i]));
	MUST(rpma_rt_queue_new(m->world.rt, NULL, &m->setup));
	for (i = 0; i < conns; i++) {
		world_connect(&m->world, cfg, RPMA_RT_POLLER_ANY, m->setup,
			      m->setup, &pair);
		set_up_end(m, pair.active, 2 * i);
		set_up_end(m, pair.passive, 2 * i + 1);
	}
	m->ends_count = 2 * conns;
	free(cfg);
}

static void run(struct many *m)
{
	struct worker workers[QUEUES];
	pthread_t threads[QUEUES];
	uint32_t seq;
	int i;

	for (i = 0; i < m->ends_count; i++) {
		for (seq = 0; seq < DEPTH / 2 && seq < m->per_end; seq++)
			post_send(m, &m->ends[i], seq);
	}
	for (i = 0; i < QUEUES; i++) {
		workers[i] = (struct worker){.many = m, .index = i};
		CHECK(!pthread_create(&threads[i], NULL, work, &workers[i]));
	}
	for (i = 0; i < QUEUES; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		printf("queue %d: %lu completions\n", i,
		       (unsigned long)workers[i].items);
	}
}

/* Closes every end; what comes is one CLOSED each and nothing else. */
static void tear_down(struct many *m)
{
	struct rpma_rt_completion item;
	int i;

	for (i = 0; i < m->ends_count; i++) {
		CHECK(m->ends[i].sent == m->per_end);
		CHECK(m->ends[i].received == m->per_end);
		MUST(rpma_rt_conn_close(m->ends[i].conn));
	}
	for (i = 0; i < m->ends_count; i++)
		world_event(m->setup, RPMA_RT_EVENT_CLOSED);
	for (i = 0; i < m->ends_count; i++) {
		MUST(rpma_rt_conn_unref(&m->ends[i].conn));
		free(m->ends[i].sent_bits);
		free(m->ends[i].recv_bits);
	}
	MUST(rpma_mr_dereg(&m->mr));
	free(m->memory);
	MUST(rpma_rt_stop(m->world.rt));
	for (i = 0; i < QUEUES; i++) {
		while (rpma_rt_queue_poll(m->queues[i], &item, 1) > 0)
			CHECK(item.kind == RPMA_RT_EVENT &&
			      item.opcode == RPMA_RT_EVENT_ROUTE_CLOSED);
		MUST(rpma_rt_queue_delete(&m->queues[i]));
	}
	MUST(rpma_rt_queue_delete(&m->setup));
}

int main(int argc, char **argv)
{
	static struct many m;
	uint32_t messages = argc > 1 ? (uint32_t)atoi(argv[1]) : 200000;
	int conns = argc > 2 ? atoi(argv[2]) : 16;

	CHECK(conns > 0 && conns <= MAX_CONNS);
	world_open(&m.world);
	world_start(&m.world, 2, RPMA_RT_MODE_ADAPTIVE);
	m.per_end = messages / (uint32_t)(2 * conns);
	CHECK(m.per_end > 0);
	set_up(&m, conns);
	/* relaxed: the workers' creation orders it */
	atomic_store_explicit(&m.left, (uint64_t)m.ends_count * m.per_end * 2,
			      memory_order_relaxed);
	run(&m);
	tear_down(&m);
	world_close(&m.world);
	printf("ok: %d connections, %lu work requests, each exactly once\n",
	       conns, (unsigned long)m.per_end * 4 * (unsigned long)conns);
	return 0;
}
