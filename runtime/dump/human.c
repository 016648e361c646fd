/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * human.c -- a dump for people: a line for each thing, its counters and
 * work requests below it. Pure functions.
 */

#include "dump/printers.h"

#include <inttypes.h>
#include <string.h>

#include "dump/names.h"
#include "dump/wrong.h"

/* The upper bound of the bucket in which the quantile lies; 0: none counted. */
static uint64_t quantile(const struct rpma_rt_histogram *histogram,
			 unsigned percent)
{
	uint64_t total = 0;
	uint64_t seen = 0;
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++)
		total += histogram->buckets[i];
	if (total == 0)
		return 0;
	for (i = 0; i < RPMA_RT_HISTOGRAM - 1; i++) {
		seen += histogram->buckets[i];
		if (seen * 100 >= total * percent)
			break;
	}
	return UINT64_C(2) << i;
}

static void human_fields(const void *stats, const struct rt_dump_field *fields,
			 size_t count, FILE *out)
{
	size_t i;

	fputs("   ", out);
	for (i = 0; i < count; i++)
		fprintf(out, " %s %" PRIu64, fields[i].name,
			rt_dump_value(stats, &fields[i]));
	fputc('\n', out);
}

static void human_histogram(const char *name,
			    const struct rpma_rt_histogram *histogram,
			    FILE *out)
{
	if (quantile(histogram, 50) != 0)
		fprintf(out,
			"    %s: half below %" PRIu64
			" ns, 99 %% below %" PRIu64 " ns\n",
			name, quantile(histogram, 50), quantile(histogram, 99));
}

/* Whose it is, and the function that it is inside. */
static void human_runs(const struct rt_dump_poller *poller, FILE *out)
{
	if (poller->known == RT_OWNER_KNOWN)
		fprintf(out, "    belongs to thread %d (%s)\n",
			(int)poller->owner_tid, poller->owner_name);
	else if (poller->manual && poller->known == RT_OWNER_NONE)
		fputs("    belongs to no thread\n", out);
	if (poller->function != NULL)
		fprintf(out, "    inside a function of %s for %" PRIu32 " ms\n",
			poller->function_of[0] != '\0' ? poller->function_of
						       : "the program",
			poller->function_ms);
}

static void human_poller(const struct rt_dump_poller *poller, FILE *out)
{
	fprintf(out,
		"poller %d: cpu %d, %s%s%s, clock read %" PRIu32
		" ms ago, %" PRIu32 " channels, %" PRIu32
		" events unacknowledged\n",
		poller->index, poller->cpu, poller->asleep ? "asleep" : "awake",
		poller->manual ? ", manual" : "",
		poller->stopping ? ", stopping" : "", poller->clock_age_ms,
		poller->channels, poller->unacked);
	human_runs(poller, out);
	human_fields(&poller->stats, rt_dump_poller_fields,
		     RT_DUMP_POLLER_FIELDS, out);
}

static void human_cq(const struct rt_dump_cq *cq, FILE *out)
{
	fprintf(out,
		"cq of poller %d, channel %" PRIu32 ": room %" PRIu32
		" of %" PRIu32 ", %" PRIu32 " events unacknowledged%s\n",
		cq->poller, cq->channel, cq->room, cq->size, cq->unacked,
		cq->failed ? ", failed" : "");
}

/* What it did last: a thread, and how long ago. */
static void human_date(const char *what, const struct rt_queue_date *date,
		       const char *name, FILE *out)
{
	if (date->tid == 0)
		return;
	fprintf(out, "    %s %" PRIu32 " ms ago by thread %" PRIu32, what,
		date->ago_ms, date->tid);
	if (name != NULL)
		fprintf(out, " (%s)", name[0] != '\0' ? name : "it has ended");
	fputc('\n', out);
}

static void human_queue(const struct rt_dump_queue *queue, FILE *out)
{
	const struct rt_queue_state *view = &queue->view;
	char preset[sizeof(view->name)];

	snprintf(preset, sizeof(preset), "queue %" PRIu32, view->id);
	fprintf(out, "queue %" PRIu32, view->id);
	if (strcmp(preset, view->name) != 0)
		fprintf(out, " \"%s\"", view->name);
	fprintf(out,
		":%s%s%s%s%s %" PRIu32 " lanes, %" PRIu32 " spilled, %" PRIu32
		" lanes over the limit",
		view->shared ? " shared" : "", view->closed ? " closed" : "",
		view->finished ? " finished" : "",
		view->inside ? " consumer inside" : "",
		view->asleep ? " asleep" : "", view->lanes, view->spilled,
		view->backlogged);
	if (view->shared)
		fprintf(out, ", %" PRIu32 " waiters", view->waiters);
	if (view->has_waiting)
		fprintf(out, ", items wait for %" PRIu32 " ms",
			view->waiting_ms);
	fputc('\n', out);
	human_date("taken from", &view->take, queue->take_name, out);
	human_date("looked at in vain", &view->look, NULL, out);
	human_fields(&queue->stats, rt_dump_queue_fields, RT_DUMP_QUEUE_FIELDS,
		     out);
	human_histogram("dispatch", &queue->stats.dispatch, out);
	human_histogram("wake-up", &queue->stats.wakeup, out);
}

static void human_count(const struct rt_dump_side *side, FILE *out)
{
	fprintf(out, "%" PRIu32 " of %" PRIu32 " outstanding",
		side->outstanding, side->depth);
	if (side->in_line > 0)
		fprintf(out, ", %" PRIu32 " in line", side->in_line);
	if (side->unread != NULL)
		fprintf(out, ", ledger not read: %s", side->unread);
}

static void human_side(const char *name, const struct rt_dump_side *side,
		       FILE *out)
{
	const struct rt_dump_wr *wr;
	uint32_t i;

	fprintf(out, "    %s: %s, ", name, rt_dump_gate(side->gate));
	human_count(side, out);
	fprintf(out, "%s%s\n",
		side->want & RT_WANT_CREDIT ? ", refused for credit" : "",
		side->want & RT_WANT_BACKLOG ? ", refused for backlog" : "");
	for (i = 0; i < side->shown; i++) {
		wr = &side->wrs[i];
		fprintf(out, "      %s 0x%" PRIx64 " %" PRIu32 " ms to ",
			rt_dump_opcode(wr->opcode), wr->context, wr->age_ms);
		if (wr->queue != 0)
			fprintf(out, "queue %" PRIu32 "%s\n", wr->queue,
				wr->on_error_only ? ", on error only" : "");
		else
			fputs(wr->has_future ? "a future\n" : "a function\n",
			      out);
	}
	if (side->outstanding > side->shown && side->unread == NULL)
		fprintf(out, "      and %" PRIu32 " more\n",
			side->outstanding - side->shown);
}

/* Its peer, the program's pointer, how long it has done nothing. */
static void human_peer(const struct rt_dump_conn *conn, FILE *out)
{
	uint32_t idle = conn->state_ms;
	int i;

	for (i = 0; i < 2; i++) {
		if (conn->side[i].retired != 0 &&
		    conn->side[i].retired_ms < idle)
			idle = conn->side[i].retired_ms;
	}
	fprintf(out, "    peer %s, user %p, idle for %" PRIu32 " ms\n",
		conn->peer[0] != '\0' ? conn->peer : "not known yet",
		conn->user, idle);
}

static void human_ended(const struct rt_dump_conn *conn, FILE *out)
{
	fprintf(out,
		"connection %p \"%s\": ended (%s), held %" PRIu32
		" times by the program\n",
		conn->handle, conn->name, rt_dump_reason(conn->reason),
		conn->held);
}

static void human_conn(const struct rt_dump_conn *conn, FILE *out)
{
	if (conn->is_ended) {
		human_ended(conn, out);
		return;
	}
	fprintf(out,
		"connection %p \"%s\": slot %" PRIu32 ", QP 0x%" PRIx32
		", poller %d, ",
		conn->handle, conn->name, conn->slot, conn->qp_num,
		conn->poller);
	if (conn->queue != 0)
		fprintf(out, "queue %" PRIu32, conn->queue);
	else
		fputs("no queue", out);
	fprintf(out, ", %s, %s", conn->passive ? "passive" : "active",
		rt_dump_state(conn->state));
	if (conn->state >= RT_CONN_DRAINING)
		fprintf(out, " (%s)", rt_dump_reason(conn->reason));
	fprintf(out, ", %" PRIu32 " holders%s\n", conn->holders,
		conn->is_backlogged ? ", a queue over its limit" : "");
	human_peer(conn, out);
	human_side("send", &conn->side[RPMA_RT_SEND_SIDE], out);
	human_side("recv", &conn->side[RPMA_RT_RECV_SIDE], out);
}

static void human_pools(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_pool *pool;
	uint32_t i;

	for (i = 0; i < dump->pools_count; i++) {
		pool = &dump->pools[i];
		fprintf(out,
			"pool \"%s\": %" PRIu32 " of %" PRIu32
			" slots out (%" PRIu32 " of %" PRIu32
			" for sends), %" PRIu32 " bytes each, %" PRIu64
			" times low%s\n",
			pool->name, pool->out, pool->count,
			pool->out - pool->receives_out,
			pool->count - pool->receives, pool->slot_size,
			pool->times_low,
			pool->lows > 0 ? ", low: a receive queue waits for "
					 "leases"
				       : "");
	}
}

static const char *phase_of(const struct rt_dump_shard *shard)
{
	static const char *const texts[] = {"", ", stopping: sends nothing",
					    ", stopping: answers nothing",
					    ", stopped"};

	return texts[shard->phase];
}

static void human_shards(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_shard *shard;
	uint32_t i;
	uint32_t j;

	for (i = 0; i < dump->shards_count; i++) {
		shard = &dump->shards[i];
		fprintf(out,
			"shard %" PRIu32 " of set %" PRIu32
			": %s, queue %" PRIu32 ", %" PRIu32
			" messages wait, %" PRIu32 " timers, %" PRIu64
			" requests without an answer, %" PRIu64
			" to answer%s\n",
			shard->index, shard->set,
			shard->asleep	? "asleep"
			: shard->is_run ? "awake"
					: "not run",
			shard->queue, shard->waiting, shard->timers,
			shard->stats.unanswered, shard->stats.owed,
			phase_of(shard));
		for (j = 0; j < shard->lanes_count; j++) {
			if (shard->lanes[j].waiting == 0)
				continue;
			fprintf(out,
				"    from shard %" PRIu32 ": %" PRIu32
				" messages wait%s\n",
				shard->lanes[j].from, shard->lanes[j].waiting,
				shard->lanes[j].wants_room
					? ", and it was refused"
					: "");
		}
	}
}

static void human_others(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_listener *listener;
	const struct rt_dump_srq *srq;
	uint32_t i;

	for (i = 0; i < dump->listeners_count; i++) {
		listener = &dump->listeners[i];
		fprintf(out,
			"listener %" PRIu32 ": port %u, %s, user %p, %" PRIu32
			" requests refused\n",
			listener->number, listener->port,
			listener->is_over ? "over" : "listens", listener->user,
			listener->refused);
	}
	for (i = 0; i < dump->srqs_count; i++) {
		srq = &dump->srqs[i];
		fprintf(out,
			"SRQ %" PRIu32 " of poller %d: %" PRIu32 " of %" PRIu32
			" receives out, %" PRIu32 " connections, queue %" PRIu32
			", %" PRIu32 " messages wait, user %p%s%s\n",
			srq->number, srq->poller, srq->out, srq->size,
			srq->users, srq->queue, srq->messages, srq->user,
			srq->is_behind ? ", a queue over its limit" : "",
			srq->is_over ? ", over" : "");
	}
	for (i = 0; i < dump->adopted_count; i++)
		fprintf(out,
			"adopted %p: poller %d, queue %" PRIu32 ", user %p%s\n",
			dump->adopted[i].handle, dump->adopted[i].poller,
			dump->adopted[i].queue, dump->adopted[i].user,
			dump->adopted[i].is_over ? ", given back" : "");
	human_pools(dump, out);
	human_shards(dump, out);
}

static void human_findings(const struct rt_dump_findings *findings, FILE *out)
{
	uint32_t i;

	for (i = 0; i < findings->count; i++)
		fprintf(out, "    %s: %s\n", findings->list[i].object,
			findings->list[i].text);
	for (i = 0; i < RT_DUMP_KINDS; i++) {
		if (findings->counts[i] > RT_DUMP_EACH)
			fprintf(out, "    and %" PRIu32 " more: %s\n",
				findings->counts[i] - RT_DUMP_EACH,
				rt_dump_wrong_name((enum rt_dump_kind)i));
	}
}

static void human_wrong(const struct rt_dump_wrongs *wrongs, FILE *out)
{
	bool has_old = wrongs->old.count > 0;
	bool has_young = wrongs->young.count > 0;

	fprintf(out, "what looks wrong:%s\n",
		has_old	    ? ""
		: has_young ? " nothing older than 5 s; younger:"
			    : " nothing");
	human_findings(&wrongs->old, out);
	if (has_old && has_young)
		fputs("younger than 5 s:\n", out);
	human_findings(&wrongs->young, out);
}

void rt_dump_human(const struct rt_dump *dump, FILE *out)
{
	uint32_t i;

	fprintf(out,
		"runtime: %d pollers, %" PRIu32 " queues, %" PRIu32
		" connections%s\n",
		dump->pollers_count, dump->queues_count, dump->conns_count,
		dump->stopped ? ", stopped" : "");
	if (dump->requests_refused > 0)
		fprintf(out,
			"requests of peers that became no connection: %" PRIu64
			"\n",
			dump->requests_refused);
	if (dump->cm_errno != 0)
		fprintf(out,
			"CM events can be read no more: %s. No connection "
			"begins, and none notices that its peer leaves\n",
			strerror(dump->cm_errno));
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		human_poller(&dump->pollers[i], out);
	for (i = 0; i < dump->cqs_count; i++)
		human_cq(&dump->cqs[i], out);
	for (i = 0; i < dump->queues_count; i++)
		human_queue(&dump->queues[i], out);
	for (i = 0; i < dump->conns_count; i++)
		human_conn(&dump->conns[i], out);
	human_others(dump, out);
	human_wrong(dump->wrongs, out);
}
