/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * wrong.c -- what looks wrong in a snapshot: which objects, and for how long;
 * kinds.h has the words. In a runtime that has stopped nothing but the handles
 * that still exist is listed. Pure functions of the snapshot.
 */

#include "dump/dump.h"

#include <assert.h>
#include <string.h>

#include "base/failure.h"
#include "pool/pool.h"

/* after so long a thing at rest looks wrong */
#define WRONG_LONG_MS 5000
/* a finding that has lasted less long than the above, but this long, is listed
 * apart as a younger finding: a dump is often taken soon after a mistake */
#define WRONG_YOUNG_MS 500
/* what happens again and again is reported for so long after the last time */
#define WRONG_RECENT_MS 60000

#define WRONG_EACH 16	/* findings of a kind that are listed */
#define WRONG_NOW  (-1) /* in place of a time: how long does not matter */

enum wrong_kind {
#define KIND(name, text) WRONG_##name,
#include "dump/kinds.h"
	WRONG_KINDS
};
static_assert(WRONG_KINDS == RT_DUMP_KINDS, "a tally for each kind");

static const char *const wrong_names[] = {
#define KIND(name, text) #name,
#include "dump/kinds.h"
};

static const char *const wrong_texts[] = {
#define KIND(name, text) text,
#include "dump/kinds.h"
};

/* an object to judge, and the words of a finding about the object */
struct wrong {
	struct rt_dump_all *dump;
	struct rt_dump_phrase subject;
	struct rt_dump_phrase text; /* .text NULL: the words of the kind */
};

/* Returns whether a finding is too young to look wrong. The time of a
 * listener is how long ago the last refusal was. */
static bool wrong_is_young(enum wrong_kind kind, int64_t ms)
{
	return ms != WRONG_NOW && ms < WRONG_LONG_MS &&
	       kind != WRONG_listener_refuses;
}

/* Adds a finding, unless a moment ago nothing was wrong. */
static void wrong_add(const struct wrong *wrong, enum wrong_kind kind,
		      int64_t ms)
{
	bool is_young = wrong_is_young(kind, ms);
	struct rt_dump_all *dump = wrong->dump;
	struct rt_dump_tally *tally = &dump->wrong_counts[kind];
	struct rt_dump_list *list = &dump->wrong;
	struct rt_dump_finding *finding;

	if (is_young && ms < WRONG_YOUNG_MS)
		return;
	if (is_young) {
		tally = &dump->younger_counts[kind];
		list = &dump->wrong_younger;
	}
	if (tally->count++ >= WRONG_EACH) {
		tally->more++;
		return;
	}
	finding = rt_dump_add(dump, list, sizeof(*finding));
	if (finding == NULL)
		return;
	finding->kind = wrong_names[kind];
	finding->ms = ms == WRONG_NOW ? 0 : ms;
	finding->object = wrong->subject;
	finding->text = wrong->text;
	if (finding->text.text == NULL)
		finding->text.text = wrong_texts[kind];
}

/* Adds a finding about a refused delete. */
static void wrong_add_busy(const struct wrong *wrong, const char *text)
{
	struct wrong busy = *wrong;

	busy.text.text = text;
	wrong_add(&busy, WRONG_delete_busy, WRONG_NOW);
}

/* Judges each object of a list; text: see struct wrong. */
static void wrong_each(struct rt_dump_all *dump, const char *name,
		       void (*judge)(const struct wrong *wrong, void *record),
		       const char *text)
{
	const struct rt_dump_field *field =
		rt_dump_find(rt_dump_fields(), name, strlen(name));
	const struct rt_dump_object *object = field->of();
	const struct rt_dump_list *list = rt_dump_value(field, dump);
	struct wrong wrong = {
		dump, {object->subject, object, NULL}, {text, object, NULL}};
	char *record = list->at;
	uint32_t i;

	for (i = 0; i < list->count; i++, record += object->size) {
		wrong.subject.record = wrong.text.record = record;
		judge(&wrong, record);
	}
}

/* ----------------------------------------------------- pollers, queues --- */

/* Returns whether work waits for a round of a manual poller. */
static bool wrong_has_work(const struct rt_dump_all *dump,
			   const struct rt_dump_poller *poller)
{
	const struct rt_dump_conn *conn;

	if (poller->has_work || poller->asleep)
		return poller->has_work;
	RT_DUMP_FOR(conn, &dump->connections)
	{
		if (conn->poller == poller->poller && conn->waiting != NULL &&
		    conn->waiting_ms >= WRONG_YOUNG_MS)
			return true;
	}
	return false;
}

static void wrong_poller(const struct wrong *wrong, void *record)
{
	const struct rt_dump_poller *poller = record;

	if (poller->in_function)
		wrong_add(wrong, WRONG_function_long, poller->function_ms);
	else if (poller->manual && wrong_has_work(wrong->dump, poller))
		wrong_add(wrong, WRONG_poller_not_run, poller->clock_age_ms);
	else if (!poller->manual && !poller->asleep)
		wrong_add(wrong, WRONG_poller_stuck, poller->clock_age_ms);
}

static void wrong_queue(const struct wrong *wrong, void *record)
{
	const struct rt_dump_queue *queue = record;

	if (queue->waiting_ms == RT_DUMP_NONE)
		return;
	if (queue->consumer_inside && !queue->asleep)
		wrong_add(wrong, WRONG_worker_stuck, queue->waiting_ms);
	else
		wrong_add(wrong, WRONG_queue_not_polled, queue->waiting_ms);
}

/* ---------------------------------------------- SRQs, pools, listeners --- */

static void wrong_srq(const struct wrong *wrong, void *record)
{
	const struct rt_dump_srq *srq = record;

	if (!srq->over && srq->out <= 0 && srq->connections > 0)
		wrong_add(wrong, WRONG_srq_dry, srq->retired_ms);
}

static void wrong_pool(const struct wrong *wrong, void *record)
{
	struct rt_dump_pool *pool = record;

	/* a lease given back meanwhile went to another queue, or was not
	 * enough */
	if (pool->receives_out >= pool->receives)
		wrong_add(wrong, WRONG_pool_dry, pool->low_for_ms);
	if (pool->fills > pool->receives) {
		strcpy(pool->why.at,
		       rt_pool_short_words((uint32_t)pool->receives,
					   (uint32_t)pool->fills)
			       .text);
		wrong_add(wrong, WRONG_pool_short, WRONG_NOW);
	}
	if (pool->delete_refused)
		wrong_add_busy(wrong,
			       "rpma_rt_pool_delete() was refused: "
			       "connections, listeners or SRQs use it, or "
			       "leases are out ({out} slots of {slots} are)");
}

static void wrong_listener(const struct wrong *wrong, void *record)
{
	struct rt_dump_listener *listener = record;
	int error = (int)listener->refused_for;
	const char *why = rpma_rt_err_2str(error);
	char words[RT_FAILURE_WORDS];

	if (listener->over || listener->refused == 0 ||
	    listener->refused_ms >= WRONG_RECENT_MS)
		return;
	if (error > 0) /* an errno of the device */
		why = rt_failure_2str(RT_STEP_QP, error, words);
	else if (error == RPMA_RT_E_BUSY)
		why = "each of its queues is over its backlog_limit or "
		      "closed: take from them faster";
	snprintf(listener->why.at, sizeof(listener->why.at), "%s", why);
	wrong_add(wrong, WRONG_listener_refuses, listener->refused_ms);
}

/* --------------------------------------------------------- connections --- */

static void wrong_handshake(const struct wrong *wrong,
			    const struct rt_dump_conn *conn)
{
	if (conn->phase != RT_CONN_READY || conn->is_decided)
		wrong_add(wrong, WRONG_no_answer, conn->state_ms);
	else if (conn->passive)
		wrong_add(wrong, WRONG_request_ignored, conn->state_ms);
	else
		wrong_add(wrong, WRONG_connect_missing, conn->state_ms);
}

static bool wrong_is_untouched(const struct rt_dump_side *side)
{
	return side->outstanding == 0 && side->in_line == 0 &&
	       side->retired == 0;
}

/* Returns whether a sending peer would wait for a receive. Where as many have
 * completed as the queue holds, messages come in a stream, and not only to
 * begin with. */
static bool wrong_is_missed(const struct rt_dump_conn *conn)
{
	const struct rt_dump_side *side = &conn->recv;

	if (conn->has_srq || side->outstanding > 0 || side->in_line > 0)
		return false;
	if (side->depth <= 1)
		return side->retired > side->depth;
	return side->retired >= side->depth ||
	       (wrong_is_untouched(side) && wrong_is_untouched(&conn->send));
}

/* Judges a connection whose work requests come and go. A send waits for the
 * peer only if the poller would have taken its completion. */
static void wrong_established(const struct wrong *wrong,
			      const struct rt_dump_conn *conn)
{
	const struct rt_dump_poller *poller = wrong->dump->pollers.at;
	bool is_taken = !conn->backlogged;

	poller += conn->poller;
	is_taken &= !poller->in_function &&
		    (poller->asleep || poller->clock_age_ms < WRONG_LONG_MS);
	if (is_taken && conn->waiting != NULL)
		wrong_add(wrong, WRONG_send_waits, conn->waiting_ms);
	if (wrong_is_missed(conn))
		wrong_add(wrong, WRONG_receives_missing, conn->recv.idle_ms);
	if (is_taken && conn->send.refused_credit)
		wrong_add(wrong, WRONG_credit_used_up, conn->send.idle_ms);
}

static const char *wrong_why_closing(const struct rt_dump_conn *conn)
{
	if (conn->phase < RT_CONN_SWEEPING &&
	    (conn->send.is_inside || conn->recv.is_inside))
		return "a thread is inside a post on it and does not come out: "
		       "look at the stacks of those that post";
	if (conn->phase == RT_CONN_DRAINING)
		return "its work requests do not come back: they are given up "
		       "after teardown_ms";
	if (conn->phase == RT_CONN_SWEEPING)
		return "the device has not destroyed its queue pair yet";
	if (conn->phase == RT_CONN_DELETING)
		return "the device has not destroyed its id yet, or its poller "
		       "does not run";
	if (conn->is_drained)
		return "it is drained, and what was posted does not complete: "
		       "call rpma_rt_conn_close(), or give the drain a time";
	return "the control thread of its device has not come to it: a call of "
	       "the device blocks";
}

static void wrong_conn(const struct wrong *wrong, void *record)
{
	struct rt_dump_conn *conn = record;

	if (conn->is_ended)
		return;
	if (conn->is_closing) {
		conn->why = wrong_why_closing(conn);
		wrong_add(wrong, WRONG_closing_long, conn->closing_ms);
	} else if (conn->phase == RT_CONN_ESTABLISHED) {
		wrong_established(wrong, conn);
	} else {
		wrong_handshake(wrong, conn);
	}
}

/* ------------------------------------------------------------- deletes --- */

/* Lists the holders of a queue whose delete was refused. */
static void wrong_held_queue(const struct wrong *wrong, void *record)
{
	static const char text[] =
		"rpma_rt_queue_delete() was refused, and {by} still uses it: "
		"delete only when the last item of that was taken";
	const struct rt_dump_field *holds =
		rt_dump_find(rt_dump_fields(), "holds", 5);
	const struct rt_dump_queue *queue = record;
	struct wrong holder = *wrong;
	const struct rt_dump_hold *before = NULL;
	const struct rt_dump_hold *hold;
	bool is_held = false;

	RT_DUMP_FOR(hold, &wrong->dump->holds)
	{
		if (hold->queue != queue->queue)
			continue;
		/* both routes of a connection lead to the queue: once */
		if (before == NULL || strcmp(before->by.at, hold->by.at) != 0) {
			holder.text = (struct rt_dump_phrase){text, holds->of(),
							      hold};
			wrong_add(&holder, WRONG_delete_busy, WRONG_NOW);
		}
		before = hold;
		is_held = true;
	}
	if (queue->delete_refused && !is_held)
		wrong_add_busy(wrong,
			       "rpma_rt_queue_delete() was refused, and "
			       "{consumer_inside?a thread is inside a call on "
			       "it|nothing uses it any more}: delete it now");
}

static void wrong_held_srq(const struct wrong *wrong, void *record)
{
	const struct rt_dump_srq *srq = record;

	if (srq->delete_refused)
		wrong_add_busy(wrong,
			       "rpma_rt_srq_delete() was refused: "
			       "{connections} connections, or a listener, use "
			       "it");
}

static void wrong_handle(const struct wrong *wrong, void *record)
{
	(void)record;
	wrong_add(wrong, WRONG_delete_busy, WRONG_NOW);
}

/* Lists every handle but the runtime's, and every future: rpma_rt_delete()
 * waits for them. */
static void wrong_handles(const struct wrong *wrong)
{
#define KEEPS "it keeps rpma_rt_delete() from going on: "
	static const char *const handles[][2] = {
		{"connections",
		 KEEPS "it has ended, and the program holds it "
		       "{held} times: call rpma_rt_conn_unref()"},
		{"queues", KEEPS "call {is_of_shard?rpma_rt_shards_delete|"
				 "rpma_rt_queue_delete}()"},
		{"listeners", KEEPS "call rpma_rt_listener_delete()"},
		{"srqs", KEEPS "call rpma_rt_srq_delete()"},
		{"adopted", KEEPS "call rpma_rt_adopted_release()"},
		{"pools", KEEPS "call rpma_rt_pool_delete()"}};
	size_t i;

	if (wrong->dump->futures_held > 0)
		wrong_add_busy(wrong, "{futures_held} futures that are held "
				      "keep rpma_rt_delete() from going on: "
				      "call rpma_rt_future_drop()");
	for (i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
		wrong_each(wrong->dump, handles[i][0], wrong_handle,
			   handles[i][1]);
}

void rt_dump_wrong_judge(struct rt_dump_all *dump)
{
	const struct rt_dump_phrase all = {rt_dump_fields()->subject,
					   rt_dump_fields(), dump};
	const struct wrong wrong = {dump, all, {NULL, all.object, dump}};
	uint32_t i;

	dump->wrong_counts_count = dump->younger_counts_count = RT_DUMP_KINDS;
	for (i = 0; i < RT_DUMP_KINDS; i++)
		dump->wrong_counts[i].kind = dump->younger_counts[i].kind =
			wrong_names[i];
	if (dump->stopped) {
		if (dump->delete_refused)
			wrong_handles(&wrong);
		return;
	}
	if (dump->cm_errno != 0)
		wrong_add(&wrong, WRONG_cm_deaf, WRONG_NOW);
	wrong_each(dump, "pollers", wrong_poller, NULL);
	wrong_each(dump, "queues", wrong_queue, NULL);
	wrong_each(dump, "connections", wrong_conn, NULL);
	wrong_each(dump, "srqs", wrong_srq, NULL);
	wrong_each(dump, "listeners", wrong_listener, NULL);
	wrong_each(dump, "queues", wrong_held_queue, NULL);
	wrong_each(dump, "srqs", wrong_held_srq, NULL);
	wrong_each(dump, "pools", wrong_pool, NULL);
}
