/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * push.c -- the calls that any thread may make on a queue: push a message,
 * close. Both are inside the gate while they touch the queue, so that a delete
 * sees them. Labels in brackets: doc/protocols/lane.md.
 */

#include "queue/push.h"

#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
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

/* False: there are as many as may be. Pushed before it is counted as taken, so
 * never more, and a few less while others are refused. */
static bool count_message(struct rpma_rt_queue *queue)
{
	uint32_t ms = rt_now_ms();
	bool is_due = rt_mark_date(&queue->waits, ms);
	/* relaxed, but for one: counts; what was taken was counted before.
	 * Release: the date, to rt_queue_snapshot() */
	uint64_t taken = atomic_load_explicit(&queue->stats.messages_taken,
					      memory_order_relaxed);
	uint64_t before = atomic_fetch_add_explicit(&queue->stats.messages, 1,
						    memory_order_release);

	if (is_due)
		rt_mark_put(&queue->waits, (uint32_t)before, ms,
			    (uint32_t)taken);
	if (before - taken < RPMA_RT_MAX_MESSAGES)
		return true;
	/* relaxed: likewise */
	atomic_fetch_sub_explicit(&queue->stats.messages, 1,
				  memory_order_relaxed);
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

int rpma_rt_queue_push(struct rpma_rt_queue *queue,
		       const struct rpma_rt_completion *item)
{
	struct message *msg;
	int ret;

	ret = RT_REFUSE_NULL(queue, item);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
	if (ret)
		return ret;
	msg = malloc(sizeof(*msg));
	if (msg == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "the message is not pushed");
	msg->item = (struct rpma_rt_completion){
		.context = item->context,
		.user = item->user,
		.byte_len = item->byte_len,
		.imm = item->imm,
		.kind = RPMA_RT_MESSAGE,
	};
	if (!enter_gate(queue)) {
		free(msg);
		return RT_REFUSE(RPMA_RT_E_CLOSED,
				 "queue %u (%s) is closed: the message is not "
				 "pushed",
				 queue->id, queue->name);
	}
	if (!count_message(queue)) {
		leave_gate(queue);
		free(msg);
		return RT_REFUSE(RPMA_RT_E_BUSY,
				 "queue %u (%s) has as many messages as it "
				 "holds: poll it; the message is not pushed",
				 queue->id, queue->name);
	}
	rt_mpsc_push_mt(&queue->messages, &msg->node);
	rt_queue_ring(queue);
	leave_gate(queue);
	return 0;
}

int rpma_rt_queue_close(struct rpma_rt_queue *queue)
{
	int ret;

	ret = RT_REFUSE_NULL(queue);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(queue->rt);
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
