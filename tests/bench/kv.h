/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kv.h -- what bench_kv_server and bench_kv_client share: the messages of
 * examples/common/kv_protocol.h as structures, connections by verbs and
 * rdma_cm, chains of work requests. Each program has a single thread, and is
 * made as fast as possible:
 *
 *	a single CQ, polled for 32 completions; after a batch a chain for each
 *	queue pair with something to send, and a chain of receives
 *	work requests and pieces are made once, and differ in the address
 *	a send of 16 is signaled
 *
 * Failures end the program.
 */

#ifndef BENCH_KV_H
#define BENCH_KV_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "../../examples/common/kv_protocol.h"

#define KV_BATCH       32
#define KV_SIGNAL_EACH 16
#define KV_SENDS       64 /* of a queue pair */
#define KV_RESOLVE_MS  10000
/* from a message to the next: not all in the same sets of a cache */
#define KV_STRIDE (KV_MESSAGE + 64)

/* A request or an answer; all numbers are little-endian. */
struct kv_message {
	uint32_t body_len;
	uint8_t version, kind, status, zero;
	uint64_t id;
	uint32_t left_us, zeros;
	union {
		struct {
			uint16_t key_len;
			uint8_t how, zero;
			uint32_t value_len;
		} request;
		struct {
			uint8_t how, zeros[3];
			uint32_t value_len;
		} answer;
	};
	uint8_t bytes[]; /* key and value, or value */
};

#define KV_HEAD sizeof(struct kv_message)

/* A queue pair with its sends: a ring of places to send from. */
struct kv_end {
	struct rdma_cm_id *id;
	struct kv_end *next; /* in the list of ends with something to send */
	uint32_t sent, unposted;
	uint32_t lens[KV_SENDS];
	uint8_t *places; /* KV_SENDS of KV_STRIDE bytes */
};

/* The parts of a program. */
struct kv_device {
	struct rdma_event_channel *events;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t used, size;
	struct kv_end *touched;
	struct ibv_send_wr sends[KV_BATCH];
	struct ibv_sge send_sges[KV_BATCH];
};

static inline void kv_die(const char *what)
{
	fprintf(stderr, "bench_kv: %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline void *kv_take(struct kv_device *device, size_t size)
{
	void *place = device->memory + device->used;

	device->used += size;
	if (device->used > device->size)
		kv_die("too little memory");
	return place;
}

static inline void kv_open(struct kv_device *device, struct ibv_context *verbs,
			   size_t memory)
{
	int i;

	device->size = memory;
	device->memory = aligned_alloc(4096, memory);
	device->pd = ibv_alloc_pd(verbs);
	device->cq = ibv_create_cq(verbs, 16384, NULL, NULL, 0);
	if (!device->memory || !device->pd || !device->cq)
		kv_die("device");
	memset(device->memory, 0, memory);
	device->mr = ibv_reg_mr(device->pd, device->memory, memory,
				IBV_ACCESS_LOCAL_WRITE);
	if (!device->mr)
		kv_die("ibv_reg_mr");
	for (i = 0; i < KV_BATCH; i++) {
		device->send_sges[i].lkey = device->mr->lkey;
		device->sends[i].sg_list = &device->send_sges[i];
		device->sends[i].num_sge = 1;
		device->sends[i].opcode = IBV_WR_SEND;
		device->sends[i].next = &device->sends[i + 1];
	}
}

static inline void kv_end_open(struct kv_device *device, struct kv_end *end,
			       struct rdma_cm_id *id, struct ibv_srq *srq,
			       uint32_t receives)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = device->cq,
		.recv_cq = device->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {KV_SENDS, srq ? 0 : receives, 1, 1, 0},
	};

	if (rdma_create_qp(id, device->pd, &attr))
		kv_die("rdma_create_qp");
	id->context = end;
	end->id = id;
	end->places = kv_take(device, (size_t)KV_SENDS * KV_STRIDE);
}

/* Returns the place of the next message to send: free, because the queue holds
 * KV_SENDS sends and the sends before have completed. */
static inline void *kv_place(const struct kv_end *end)
{
	return end->places +
	       (size_t)((end->sent + end->unposted) % KV_SENDS) * KV_STRIDE;
}

/* Takes the message in the place, to be posted by kv_post(). */
static inline void kv_send(struct kv_device *device, struct kv_end *end,
			   uint32_t len)
{
	end->lens[(end->sent + end->unposted) % KV_SENDS] = len;
	if (end->unposted++ > 0)
		return;
	end->next = device->touched;
	device->touched = end;
}

static inline void kv_post_chain(struct kv_device *device, struct kv_end *end,
				 uint32_t count)
{
	struct ibv_send_wr *bad;
	uint32_t i, at;

	for (i = 0; i < count; i++) {
		at = end->sent % KV_SENDS;
		device->send_sges[i].addr =
			(uintptr_t)(end->places + (size_t)at * KV_STRIDE);
		device->send_sges[i].length = end->lens[at];
		device->sends[i].send_flags =
			at % KV_SIGNAL_EACH == 0 ? IBV_SEND_SIGNALED : 0;
		end->sent++;
	}
	device->sends[count - 1].next = NULL;
	if (ibv_post_send(end->id->qp, device->sends, &bad))
		kv_die("ibv_post_send");
	if (count < KV_BATCH)
		device->sends[count - 1].next = &device->sends[count];
	end->unposted -= count;
}

/* Posts all messages: one chain for each end. */
static inline void kv_post(struct kv_device *device)
{
	struct kv_end *end;

	while ((end = device->touched) != NULL) {
		device->touched = end->next;
		while (end->unposted > 0)
			kv_post_chain(device, end,
				      end->unposted < KV_BATCH ? end->unposted
							       : KV_BATCH);
	}
}

/* Returns the next event's identifier; the event has to be of the type. */
static inline struct rdma_cm_id *kv_expect(struct kv_device *device,
					   enum rdma_cm_event_type type,
					   struct kv_hello *hello)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(device->events, &event))
		kv_die("rdma_get_cm_event");
	if (event->event != type)
		kv_die(rdma_event_str(event->event));
	if (hello != NULL &&
	    !kv_hello_read(hello, event->param.conn.private_data,
			   event->param.conn.private_data_len))
		kv_die("no key-value store");
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

#endif /* BENCH_KV_H */
