/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * liburcu's way: the completion is written into the operation itself, a node;
 * a batch is chained in a local queue and spliced to its destination once.
 */

#include "handoff.h"

#include <stdlib.h>

#include <urcu/wfcqueue.h>

#include "bench.h"

/* Twice what can be in flight: an operation is used again when its last use
 * has been paid for. */
#define OPS (2 * IN_FLIGHT)

struct op {
	struct cds_wfcq_node node;
	struct rpma_rt_completion cmpl;
};

struct chain {
	_Alignas(64) struct __cds_wfcq_head head;
	_Alignas(64) struct cds_wfcq_tail tail;
};

struct chains {
	struct chain shared[MAX_FANOUT];
	struct chain local[MAX_FANOUT]; /* the poller's */
	struct chain taken[MAX_FANOUT]; /* the consumer's */
	struct op ops[OPS];
	uint32_t next_op;
};

static void init(struct handoff *handoff)
{
	struct chains *chains = aligned_alloc(64, sizeof(*chains));
	uint32_t i;

	if (chains == NULL)
		bench_fail("no memory");
	for (i = 0; i < handoff->fanout; i++) {
		__cds_wfcq_init(&chains->shared[i].head,
				&chains->shared[i].tail);
		__cds_wfcq_init(&chains->local[i].head, &chains->local[i].tail);
		__cds_wfcq_init(&chains->taken[i].head, &chains->taken[i].tail);
	}
	chains->next_op = 0;
	handoff->state = chains;
}

static void send_all(struct handoff *handoff, const struct ibv_wc *wcs,
		     uint32_t count)
{
	struct chains *chains = handoff->state;
	struct handoff_route *route;
	struct chain *local;
	struct op *op;
	uint32_t i;

	for (i = 0; i < count; i++) {
		route = handoff_look_up(handoff, &wcs[i]);
		if (route == NULL)
			continue;
		local = &chains->local[route->destination];
		op = &chains->ops[chains->next_op++ % OPS];
		handoff_convert(route, &wcs[i], &op->cmpl);
		cds_wfcq_node_init(&op->node);
		cds_wfcq_enqueue(&local->head, &local->tail, &op->node);
	}
	for (i = 0; i < handoff->fanout; i++)
		__cds_wfcq_splice_blocking(
			&chains->shared[i].head, &chains->shared[i].tail,
			&chains->local[i].head, &chains->local[i].tail);
}

static uint32_t take(struct handoff *handoff, uint32_t destination,
		     uint64_t *sum)
{
	struct chains *chains = handoff->state;
	struct chain *taken = &chains->taken[destination];
	struct chain *shared = &chains->shared[destination];
	struct cds_wfcq_node *node;
	uint32_t count = 0;

	__cds_wfcq_splice_blocking(&taken->head, &taken->tail, &shared->head,
				   &shared->tail);
	while (count < BATCH) {
		node = __cds_wfcq_dequeue_blocking(&taken->head, &taken->tail);
		if (node == NULL)
			break;
		if (node->next != NULL)
			__builtin_prefetch(
				caa_container_of(node->next, struct op, node));
		*sum += handoff_handle(
			&caa_container_of(node, struct op, node)->cmpl);
		count++;
	}
	return count;
}

const struct handoff_way handoff_wfcq = {
	.name = "wfcq",
	.init = init,
	.send = send_all,
	.take = take,
};
