/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wrong.c -- see wrong.h: pollers, queues, SRQs, pools, listeners,
 * deletes that are refused. A runtime that has stopped has no more than the
 * last.
 */

#include "dump/wrong.h"

#include "pool/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"

/* ------------------------------------------------------------- threads --- */

struct thread_text {
	char text[48];
};

/* "thread 12 (name)", of one that has ended "thread 12, which has ended". 0: it
 * went in and has not said its number yet. */
static struct thread_text thread_of(uint32_t tid, const char *name)
{
	struct thread_text thread;

	if (tid == 0)
		snprintf(thread.text, sizeof(thread.text), "a thread");
	else if (name[0] == '\0')
		snprintf(thread.text, sizeof(thread.text),
			 "thread %u, which has ended,", tid);
	else
		snprintf(thread.text, sizeof(thread.text), "thread %u (%s)",
			 tid, name);
	return thread;
}

/* ------------------------------------------------------------- pollers --- */

/* Manual: something waits that only its rounds can do. */
static bool has_work(const struct rt_dump *dump,
		     const struct rt_dump_poller *poller)
{
	const struct rt_dump_side *side;
	uint32_t i;

	if (poller->has_work || poller->asleep)
		return poller->has_work;
	for (i = 0; i < dump->conns_count; i++) {
		side = &dump->conns[i].side[RPMA_RT_SEND_SIDE];
		if (dump->conns[i].poller == poller->index &&
		    side->has_waiting && side->waiting_ms >= RT_DUMP_YOUNG_MS)
			return true;
	}
	return false;
}

static void judge_manual(struct rt_dump *dump,
			 const struct rt_dump_poller *poller,
			 const char *object)
{
	uint32_t ms = poller->clock_age_ms;

	if (ms < RT_DUMP_YOUNG_MS || !has_work(dump, poller))
		return;
	if (poller->known == RT_OWNER_KNOWN)
		rt_dump_wrong_add(
			dump, RT_DUMP_POLLER_NOT_RUN, object, ms,
			"it has work, and thread %d (%s), which it belongs "
			"to, has not run it for %u.%u s: call "
			"rpma_rt_poller_run() there, or "
			"rpma_rt_poller_release()",
			(int)poller->owner_tid, poller->owner_name,
			RT_DUMP_SECONDS(ms));
	else
		rt_dump_wrong_add(dump, RT_DUMP_POLLER_NOT_RUN, object, ms,
				  "it has work, belongs to no thread, and was "
				  "not run for %u.%u s: call "
				  "rpma_rt_poller_run()",
				  RT_DUMP_SECONDS(ms));
}

static void judge_poller(struct rt_dump *dump,
			 const struct rt_dump_poller *poller)
{
	char object[RT_DUMP_LABEL];

	snprintf(object, sizeof(object), "poller %d", poller->index);
	if (poller->function != NULL) {
		if (poller->function_ms >= RT_DUMP_YOUNG_MS)
			rt_dump_wrong_add(
				dump, RT_DUMP_FUNCTION_LONG, object,
				poller->function_ms,
				"it has been inside a function of %s for "
				"%u.%u s, and all its connections wait: a "
				"function returns at once, a thread of the "
				"program does what takes long",
				poller->function_of[0] != '\0'
					? poller->function_of
					: "the program",
				RT_DUMP_SECONDS(poller->function_ms));
	} else if (poller->manual) {
		judge_manual(dump, poller, object);
	} else if (!poller->asleep &&
		   poller->clock_age_ms >= RT_DUMP_YOUNG_MS) {
		rt_dump_wrong_add(
			dump, RT_DUMP_POLLER_STUCK, object,
			poller->clock_age_ms,
			"its thread has not gone on for %u.%u s: it is stopped "
			"in a debugger, gets no time on its CPU, or is in a "
			"call of the device that does not return: look at its "
			"stack",
			RT_DUMP_SECONDS(poller->clock_age_ms));
	}
}

/* -------------------------------------------------------------- queues --- */

static void judge_queue(struct rt_dump *dump, const struct rt_dump_queue *queue)
{
	const struct rt_queue_state *view = &queue->view;
	char object[RT_DUMP_LABEL];

	if (!view->has_waiting || view->waiting_ms < RT_DUMP_YOUNG_MS)
		return;
	snprintf(object, sizeof(object), "queue \"%s\"", view->name);
	if (view->inside && !view->asleep)
		rt_dump_wrong_add(
			dump, RT_DUMP_WORKER_STUCK, object, view->waiting_ms,
			"items wait for %u.%u s, and %s is inside a call that "
			"takes from it and does not go on: it is stopped in a "
			"debugger or in a handler of a signal",
			RT_DUMP_SECONDS(view->waiting_ms),
			thread_of(view->inside_tid, queue->inside_name).text);
	else if (view->take.tid != 0)
		rt_dump_wrong_add(
			dump, RT_DUMP_QUEUE_NOT_POLLED, object,
			view->waiting_ms,
			"items wait for %u.%u s and no thread takes them; %s "
			"was the last to take some, %u.%u s ago: see what it "
			"does, and have it poll",
			RT_DUMP_SECONDS(view->waiting_ms),
			thread_of(view->take.tid, queue->take_name).text,
			RT_DUMP_SECONDS(view->take.ago_ms));
	else
		rt_dump_wrong_add(
			dump, RT_DUMP_QUEUE_NOT_POLLED, object,
			view->waiting_ms,
			"items wait for %u.%u s and no thread has ever taken "
			"any: call rpma_rt_queue_poll() or "
			"rpma_rt_queue_wait()",
			RT_DUMP_SECONDS(view->waiting_ms));
}

/* ---------------------------------------------- SRQs, pools, listeners --- */

static const char *why_dry(const struct rt_dump_srq *srq)
{
	if (srq->messages > 0)
		return ", and messages wait in their place: ask for those with "
		       "rpma_rt_next_future()";
	if (srq->is_behind)
		return ", and none can be posted as a queue that gets its "
		       "messages is over its backlog_limit: take from that "
		       "queue";
	return ": the peers of its connections wait until some are posted";
}

static void judge_srq(struct rt_dump *dump, const struct rt_dump_srq *srq)
{
	char object[RT_DUMP_LABEL];

	if (srq->is_over || srq->out > 0 || srq->users == 0 ||
	    srq->retired_ms < RT_DUMP_YOUNG_MS)
		return;
	snprintf(object, sizeof(object), "SRQ %u of poller %d", srq->number,
		 srq->poller);
	rt_dump_wrong_add(dump, RT_DUMP_SRQ_DRY, object, srq->retired_ms,
			  "it has had no receive for %u.%u s%s",
			  RT_DUMP_SECONDS(srq->retired_ms), why_dry(srq));
}

/* A lease given back meanwhile went to another, or was not enough. */
static void judge_pool(struct rt_dump *dump, const struct rt_dump_pool *pool)
{
	char object[RT_DUMP_LABEL];

	if (pool->low_for_ms < RT_DUMP_YOUNG_MS ||
	    pool->receives_out < pool->receives)
		return;
	snprintf(object, sizeof(object), "pool \"%s\"", pool->name);
	rt_dump_wrong_add(
		dump, RT_DUMP_POOL_DRY, object, pool->low_for_ms,
		"none of its %u slots for receives is free, and a receive "
		"queue that takes from it has been less than a quarter full "
		"for %u.%u s: the "
		"peers wait. Give leases back, or make rpma_rt_pool_cfg.count "
		"larger",
		pool->receives, RT_DUMP_SECONDS(pool->low_for_ms));
}

/* A pool with fewer slots for receives than its receive queues hold. */
static void judge_pool_size(struct rt_dump *dump,
			    const struct rt_dump_pool *pool)
{
	char object[RT_DUMP_LABEL];

	if (pool->fills <= pool->receives)
		return;
	snprintf(object, sizeof(object), "pool \"%s\"", pool->name);
	rt_dump_wrong_add(
		dump, RT_DUMP_POOL_SHORT, object, 0, "the pool %s",
		rt_pool_short_words(pool->receives, pool->fills).text);
}

/* error: of the runtime, or a positive errno of the device */
static const char *refusal_2str(int error, char words[static RT_FAILURE_WORDS])
{
	if (error > 0)
		return rt_failure_2str(RT_STEP_QP, error, words);
	if (error == RPMA_RT_E_BUSY)
		return "each of its queues is over its backlog_limit or "
		       "closed: take from them faster";
	return rpma_rt_err_2str(error);
}

static void judge_listener(struct rt_dump *dump,
			   const struct rt_dump_listener *listener)
{
	char object[RT_DUMP_LABEL];
	char words[RT_FAILURE_WORDS];

	if (listener->is_over || listener->refused == 0 ||
	    listener->refused_ms >= RT_DUMP_RECENT_MS)
		return;
	snprintf(object, sizeof(object), "listener %u at port %u",
		 listener->number, listener->port);
	rt_dump_wrong_add(
		dump, RT_DUMP_LISTENER_REFUSES, object, listener->refused_ms,
		"it has refused %u requests, the last %u.%u s ago: %s",
		listener->refused, RT_DUMP_SECONDS(listener->refused_ms),
		refusal_2str(listener->refused_for, words));
}

/* ------------------------------------------------------------- deletes --- */

static void judge_held_queue(struct rt_dump *dump,
			     const struct rt_dump_queue *queue)
{
	uint32_t count = dump->holds_count;
	char object[RT_DUMP_LABEL];
	bool is_held = false;
	uint32_t i;

	if (count > RT_DUMP_HOLDS)
		count = RT_DUMP_HOLDS;
	snprintf(object, sizeof(object), "queue \"%s\"", queue->view.name);
	for (i = 0; i < count; i++) {
		if (dump->holds[i].queue != queue->view.id)
			continue;
		is_held = true;
		/* both routes of a connection that lead to it: once */
		if (i > 0 && dump->holds[i - 1].queue == queue->view.id &&
		    strcmp(dump->holds[i - 1].by, dump->holds[i].by) == 0)
			continue;
		rt_dump_wrong_add(
			dump, RT_DUMP_DELETE_BUSY, object, 0,
			"rpma_rt_queue_delete() was refused, and %s still uses "
			"it: delete only when the last item of that was taken",
			dump->holds[i].by);
	}
	if (!is_held)
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0,
				  "rpma_rt_queue_delete() was refused, and "
				  "%s: delete it now",
				  queue->view.inside
					  ? "a thread is inside a call on it"
					  : "nothing uses it any more");
}

static void judge_held_conn(struct rt_dump *dump,
			    const struct rt_dump_conn *conn)
{
	char object[RT_DUMP_LABEL];

	snprintf(object, sizeof(object), "connection \"%s\"", conn->name);
	rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0,
			  "it keeps rpma_rt_delete() from going on: it has "
			  "ended, and the program holds it %u times: call "
			  "rpma_rt_conn_unref()",
			  conn->held);
}

/* A shard's queue goes with its set. */
static const char *delete_of(const struct rt_dump *dump,
			     const struct rt_dump_queue *queue)
{
	uint32_t i;

	for (i = 0; i < dump->shards_count; i++) {
		if (dump->shards[i].queue == queue->view.id)
			return "rpma_rt_shards_delete";
	}
	return "rpma_rt_queue_delete";
}

/* After a stop every handle but the runtime's has to go, and every future. */
static void judge_handles(struct rt_dump *dump)
{
	static const char *const text =
		"it keeps rpma_rt_delete() from going on: call %s()";
	char object[RT_DUMP_LABEL];
	uint32_t i;

	if (dump->futures_held > 0)
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, "runtime", 0,
				  "%u futures that are held keep "
				  "rpma_rt_delete() from going on: call "
				  "rpma_rt_future_drop()",
				  dump->futures_held);
	for (i = 0; i < dump->conns_count; i++)
		judge_held_conn(dump, &dump->conns[i]);
	for (i = 0; i < dump->queues_count; i++) {
		snprintf(object, sizeof(object), "queue \"%s\"",
			 dump->queues[i].view.name);
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0, text,
				  delete_of(dump, &dump->queues[i]));
	}
	for (i = 0; i < dump->listeners_count; i++) {
		snprintf(object, sizeof(object), "listener %u at port %u",
			 dump->listeners[i].number, dump->listeners[i].port);
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0, text,
				  "rpma_rt_listener_delete");
	}
	for (i = 0; i < dump->srqs_count; i++) {
		snprintf(object, sizeof(object), "SRQ %u of poller %d",
			 dump->srqs[i].number, dump->srqs[i].poller);
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0, text,
				  "rpma_rt_srq_delete");
	}
	for (i = 0; i < dump->adopted_count; i++)
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY,
				  "an adopted connection", 0, text,
				  "rpma_rt_adopted_release");
	for (i = 0; i < dump->pools_count; i++) {
		snprintf(object, sizeof(object), "pool \"%s\"",
			 dump->pools[i].name);
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0, text,
				  "rpma_rt_pool_delete");
	}
}

static void judge_deletes(struct rt_dump *dump)
{
	char object[RT_DUMP_LABEL];
	uint32_t i;

	for (i = 0; i < dump->queues_count; i++) {
		if (dump->queues[i].view.delete_refused)
			judge_held_queue(dump, &dump->queues[i]);
	}
	for (i = 0; i < dump->srqs_count; i++) {
		if (!dump->srqs[i].delete_refused)
			continue;
		snprintf(object, sizeof(object), "SRQ %u of poller %d",
			 dump->srqs[i].number, dump->srqs[i].poller);
		rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0,
				  "rpma_rt_srq_delete() was refused: %u "
				  "connections, or a listener, use it",
				  dump->srqs[i].users);
	}
}

static void judge_pool_delete(struct rt_dump *dump,
			      const struct rt_dump_pool *pool)
{
	char object[RT_DUMP_LABEL];

	if (!pool->delete_refused)
		return;
	snprintf(object, sizeof(object), "pool \"%s\"", pool->name);
	rt_dump_wrong_add(dump, RT_DUMP_DELETE_BUSY, object, 0,
			  "rpma_rt_pool_delete() was refused: connections, "
			  "listeners or SRQs use it, or leases are out (%u "
			  "slots of %u are)",
			  pool->out, pool->count);
}

int rt_dump_wrong_judge(struct rt_dump *dump)
{
	uint32_t i;

	dump->wrongs = calloc(1, sizeof(*dump->wrongs));
	if (dump->wrongs == NULL)
		return RPMA_E_NOMEM;
	if (dump->stopped) {
		if (dump->delete_refused)
			judge_handles(dump);
		return 0;
	}
	if (dump->cm_errno != 0)
		rt_dump_wrong_add(
			dump, RT_DUMP_CM_DEAF, "runtime", 0,
			"events of rdma_cm can be read no more (errno "
			"%d): no connection can be made; stop the "
			"runtime and make another one",
			dump->cm_errno);
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		judge_poller(dump, &dump->pollers[i]);
	for (i = 0; i < dump->queues_count; i++)
		judge_queue(dump, &dump->queues[i]);
	for (i = 0; i < dump->conns_count; i++)
		rt_dump_wrong_conn(dump, &dump->conns[i]);
	for (i = 0; i < dump->srqs_count; i++)
		judge_srq(dump, &dump->srqs[i]);
	for (i = 0; i < dump->listeners_count; i++)
		judge_listener(dump, &dump->listeners[i]);
	judge_deletes(dump);
	for (i = 0; i < dump->pools_count; i++) {
		judge_pool(dump, &dump->pools[i]);
		judge_pool_size(dump, &dump->pools[i]);
		judge_pool_delete(dump, &dump->pools[i]);
	}
	return 0;
}
