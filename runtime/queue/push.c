/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * push.c -- the calls that any thread may make on a queue: push a message,
 * close. Both are inside the gate while they touch the queue, so that a delete
 * sees them. Labels in brackets: doc/protocols/lane.md.
 */

#include "queue/push.h"

#include "base/context.h"
#include "queue/impl.h"
#include "queue/queue.h"

#include <stdlib.h>

struct message {
	struct cds_wfcq_node node;
	struct rpma_rt_completion item;
};

static void leave_gate(struct rpma_rt_queue *queue)
{
	/* release [QUEUE-1]: our message, and our last touch of the queue */
	atomic_fetch_sub_explicit(&queue->gate, RT_QUEUE_PUSHER,
				  memory_order_release);
}

/* True: inside, and the queue cannot be deleted until we left. */
static bool enter_gate(struct rpma_rt_queue *queue)
{
	uint32_t gate;

	if (rt_queue_is_closed(queue))
		return false;
	/* acquire [QUEUE-1]: we come after all that left, or closed, before */
	gate = atomic_fetch_add_explicit(&queue->gate, RT_QUEUE_PUSHER,
					 memory_order_acquire);
	if ((gate & RT_QUEUE_CLOSED) == 0)
		return true;
	leave_gate(queue);
	return false;
}

uint32_t rt_queue_take_messages_consumer(struct rpma_rt_queue *queue,
					 struct rpma_rt_completion *cmpl,
					 uint32_t max)
{
	struct cds_wfcq_node *node;
	struct message *msg;
	uint32_t count = 0;

	while (count < max) {
		node = rt_mpsc_pop_owner(&queue->messages);
		if (node == NULL)
			break;
		msg = caa_container_of(node, struct message, node);
		cmpl[count++] = msg->item;
		free(msg);
	}
	if (count > 0)
		rt_stat_add(&queue->stats.messages_taken, count);
	return count;
}

void rt_queue_free_messages(struct rpma_rt_queue *queue)
{
	struct cds_wfcq_node *node;

	while ((node = rt_mpsc_pop_owner(&queue->messages)) != NULL)
		free(caa_container_of(node, struct message, node));
}

/* --------------------------------------------------------------- public --- */

int rpma_rt_queue_push(struct rpma_rt_queue *queue, uint64_t context,
		       void *user, uint32_t byte_len, uint32_t imm)
{
	struct message *msg;
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	msg = malloc(sizeof(*msg));
	if (msg == NULL)
		return RPMA_E_NOMEM;
	msg->item = (struct rpma_rt_completion){
		.context = context,
		.user = user,
		.byte_len = byte_len,
		.imm = imm,
		.kind = RPMA_RT_MESSAGE,
	};
	if (!enter_gate(queue)) {
		free(msg);
		return RPMA_RT_E_CLOSED;
	}
	rt_stat_add_mt(&queue->stats.messages, 1);
	rt_mpsc_push_mt(&queue->messages, &msg->node);
	rt_queue_ring(queue);
	leave_gate(queue);
	return 0;
}

int rpma_rt_queue_close(struct rpma_rt_queue *queue)
{
	int ret;

	if (queue == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(queue->rt);
	if (ret)
		return ret;
	if (!enter_gate(queue))
		return 0; /* another has closed it */
	rt_queue_close_gate(queue);
	rt_queue_ring(queue);
	/* until here no call answers CLOSED, after which it may be deleted */
	leave_gate(queue);
	return 0;
}
