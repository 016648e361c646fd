/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * json.c -- a dump as one JSON object. Strings of the program, and those
 * with such in them, are quoted by rt_dump_text(). Pure functions.
 */

#include "dump/printers.h"

#include <inttypes.h>

#include "dump/names.h"
#include "dump/wrong.h"

static const char *yes(bool is)
{
	return is ? "true" : "false";
}

static void json_fields(const void *stats, const struct rt_dump_field *fields,
			size_t count, FILE *out)
{
	size_t i;

	for (i = 0; i < count; i++)
		fprintf(out, ",\"%s\":%" PRIu64, fields[i].name,
			rt_dump_value(stats, &fields[i]));
}

static void json_histogram(const char *name,
			   const struct rpma_rt_histogram *histogram, FILE *out)
{
	int i;

	fprintf(out, ",\"%s\":{\"sum_ns\":%" PRIu64 ",\"buckets\":[", name,
		histogram->sum_ns);
	for (i = 0; i < RPMA_RT_HISTOGRAM; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", histogram->buckets[i]);
	fputs("]}", out);
}

static void json_text(const char *name, const char *text, FILE *out)
{
	fprintf(out, ",\"%s\":", name);
	rt_dump_text(text, out);
}

static void json_user(const void *user, FILE *out)
{
	fprintf(out, ",\"user\":%" PRIuPTR, (uintptr_t)user);
}

static void json_runs(const struct rt_dump_poller *poller, FILE *out)
{
	fprintf(out, ",\"manual\":%s,\"owner_tid\":%d", yes(poller->manual),
		(int)poller->owner_tid);
	json_text("owner", poller->owner_name, out);
	fprintf(out, ",\"in_function\":%s,\"function_ms\":%" PRIu32,
		yes(poller->function != NULL),
		poller->function != NULL ? poller->function_ms : 0);
	json_text("function_of", poller->function_of, out);
}

static void json_poller(const struct rt_dump_poller *poller, FILE *out)
{
	fprintf(out,
		"{\"poller\":%d,\"cpu\":%d,\"asleep\":%s,\"stopping\":%s,"
		"\"clock_age_ms\":%" PRIu32 ",\"channels\":%" PRIu32
		",\"unacknowledged\":%" PRIu32,
		poller->index, poller->cpu, yes(poller->asleep),
		yes(poller->stopping), poller->clock_age_ms, poller->channels,
		poller->unacked);
	json_runs(poller, out);
	json_fields(&poller->stats, rt_dump_poller_fields,
		    RT_DUMP_POLLER_FIELDS, out);
	fputc('}', out);
}

static void json_cq(const struct rt_dump_cq *cq, FILE *out)
{
	fprintf(out,
		"{\"poller\":%d,\"channel\":%" PRIu32 ",\"size\":%" PRIu32
		",\"room\":%" PRIu32 ",\"unacknowledged\":%" PRIu32
		",\"failed\":%s}",
		cq->poller, cq->channel, cq->size, cq->room, cq->unacked,
		yes(cq->failed));
}

static void json_date(const char *what, const struct rt_queue_date *date,
		      FILE *out)
{
	if (date->tid == 0)
		fprintf(out, ",\"%s_tid\":null,\"%s_ms\":null", what, what);
	else
		fprintf(out, ",\"%s_tid\":%" PRIu32 ",\"%s_ms\":%" PRIu32, what,
			date->tid, what, date->ago_ms);
}

static void json_queue(const struct rt_dump_queue *queue, FILE *out)
{
	const struct rt_queue_state *view = &queue->view;

	fprintf(out, "{\"queue\":%" PRIu32 ",\"name\":", view->id);
	rt_dump_text(view->name, out);
	fprintf(out,
		",\"shared\":%s,\"closed\":%s,"
		"\"finished\":%s,\"consumer_inside\":%s,\"asleep\":%s,"
		"\"waiters\":%" PRIu32 ",\"lanes\":%" PRIu32
		",\"spilled\":%" PRIu32 ",\"backlogged\":%" PRIu32,
		yes(view->shared), yes(view->closed), yes(view->finished),
		yes(view->inside), yes(view->asleep), view->waiters,
		view->lanes, view->spilled, view->backlogged);
	json_text("inside_thread", queue->inside_name, out);
	json_date("take", &view->take, out);
	json_text("take_thread", queue->take_name, out);
	json_date("look", &view->look, out);
	if (view->has_waiting)
		fprintf(out, ",\"waiting_ms\":%" PRIu32, view->waiting_ms);
	else
		fputs(",\"waiting_ms\":null", out);
	json_fields(&queue->stats, rt_dump_queue_fields, RT_DUMP_QUEUE_FIELDS,
		    out);
	json_histogram("dispatch", &queue->stats.dispatch, out);
	json_histogram("wakeup", &queue->stats.wakeup, out);
	fputc('}', out);
}

static void json_side(const struct rt_dump_side *side, FILE *out)
{
	const struct rt_dump_wr *wr;
	uint32_t i;

	fprintf(out,
		"{\"gate\":\"%s\",\"depth\":%" PRIu32
		",\"outstanding\":%" PRIu32 ",\"in_line\":%" PRIu32,
		rt_dump_gate(side->gate), side->depth, side->outstanding,
		side->in_line);
	fprintf(out,
		",\"retired_ms\":%" PRId64
		",\"refused_credit\":%s,\"refused_backlog\":%s,"
		"\"ledger\":\"%s\",\"oldest\":[",
		side->retired != 0 ? (int64_t)side->retired_ms : -1,
		yes(side->want & RT_WANT_CREDIT),
		yes(side->want & RT_WANT_BACKLOG),
		side->unread ? side->unread : "read");
	for (i = 0; i < side->shown; i++) {
		wr = &side->wrs[i];
		fprintf(out,
			"%s{\"operation\":\"%s\",\"context\":%" PRIu64
			",\"age_ms\":%" PRIu32 ",\"queue\":%" PRIu32
			",\"on_error_only\":%s}",
			i ? "," : "", rt_dump_opcode(wr->opcode), wr->context,
			wr->age_ms, wr->queue, yes(wr->on_error_only));
	}
	fputs("]}", out);
}

static void json_conn(const struct rt_dump_conn *conn, FILE *out)
{
	fputs("{\"name\":", out);
	rt_dump_text(conn->name, out);
	fprintf(out,
		",\"handle\":\"%p\",\"slot\":%" PRIu32 ",\"qp_num\":%" PRIu32
		",\"poller\":%d,\"queue\":%" PRIu32 ",\"passive\":%s",
		conn->handle, conn->slot, conn->qp_num, conn->poller,
		conn->queue, yes(conn->passive));
	json_text("peer", conn->peer, out);
	json_user(conn->user, out);
	fprintf(out,
		",\"state\":\"%s\",\"state_ms\":%" PRIu32 ",\"held\":%" PRIu32
		",\"reason\":",
		conn->is_ended ? "ended" : rt_dump_state(conn->state),
		conn->state_ms, conn->held);
	if (conn->state >= RT_CONN_DRAINING)
		fprintf(out, "\"%s\"", rt_dump_reason(conn->reason));
	else
		fputs("null", out);
	fprintf(out, ",\"holders\":%" PRIu32 ",\"backlogged\":%s,\"send\":",
		conn->holders, yes(conn->is_backlogged));
	json_side(&conn->side[RPMA_RT_SEND_SIDE], out);
	fputs(",\"recv\":", out);
	json_side(&conn->side[RPMA_RT_RECV_SIDE], out);
	fputc('}', out);
}

static void comma(uint32_t i, FILE *out)
{
	fputs(i ? ",\n" : "\n", out);
}

static void json_listener(const struct rt_dump_listener *listener, FILE *out)
{
	fprintf(out,
		"{\"listener\":%" PRIu32 ",\"port\":%u,\"over\":%s,"
		"\"queue\":%" PRIu32 ",\"refused\":%" PRIu32,
		listener->number, listener->port, yes(listener->is_over),
		listener->queue, listener->refused);
	json_user(listener->user, out);
	fputc('}', out);
}

static void json_srq(const struct rt_dump_srq *srq, FILE *out)
{
	fprintf(out,
		"{\"srq\":%" PRIu32 ",\"poller\":%d,\"queue\":%" PRIu32
		",\"size\":%" PRIu32 ",\"out\":%" PRIu32
		",\"messages\":%" PRIu32 ",\"retired_ms\":%" PRIu32
		",\"connections\":%" PRIu32 ",\"behind\":%s,\"over\":%s",
		srq->number, srq->poller, srq->queue, srq->size, srq->out,
		srq->messages, srq->retired_ms, srq->users, yes(srq->is_behind),
		yes(srq->is_over));
	json_user(srq->user, out);
	fputc('}', out);
}

static void json_adopted(const struct rt_dump_adopted *adopted, FILE *out)
{
	fprintf(out,
		"{\"handle\":\"%p\",\"poller\":%d,\"queue\":%" PRIu32
		",\"over\":%s",
		adopted->handle, adopted->poller, adopted->queue,
		yes(adopted->is_over));
	json_user(adopted->user, out);
	fputc('}', out);
}

static void json_pool(const struct rt_dump_pool *pool, FILE *out)
{
	fputs("{\"pool\":", out);
	rt_dump_text(pool->name, out);
	fprintf(out,
		",\"slots\":%" PRIu32 ",\"slot_size\":%" PRIu32
		",\"out\":%" PRIu32 ",\"sends\":%" PRIu32
		",\"sends_out\":%" PRIu32 ",\"low\":%s,\"times_low\":%" PRIu64
		"}",
		pool->count, pool->slot_size, pool->out,
		pool->count - pool->receives, pool->out - pool->receives_out,
		yes(pool->lows > 0), pool->times_low);
}

static void json_shard(const struct rt_dump_shard *shard, FILE *out)
{
	uint32_t i;

	fprintf(out,
		"{\"set\":%" PRIu32 ",\"shard\":%" PRIu32 ",\"queue\":%" PRIu32
		",\"asleep\":%s,\"run\":%s,\"phase\":%" PRIu32
		",\"timers\":%" PRIu32 ",\"unanswered\":%" PRIu64
		",\"owed\":%" PRIu64 ",\"refused\":%" PRIu64
		",\"waiting\":%" PRIu32 ",\"lanes\":[",
		shard->set, shard->index, shard->queue, yes(shard->asleep),
		yes(shard->is_run), shard->phase, shard->timers,
		shard->stats.unanswered, shard->stats.owed,
		shard->stats.refused, shard->waiting);
	for (i = 0; i < shard->lanes_count; i++) {
		comma(i, out);
		fprintf(out,
			"{\"from\":%" PRIu32 ",\"waiting\":%" PRIu32
			",\"wants_room\":%s}",
			shard->lanes[i].from, shard->lanes[i].waiting,
			yes(shard->lanes[i].wants_room));
	}
	fputs("]}", out);
}

static void json_others(const struct rt_dump *dump, FILE *out)
{
	uint32_t i;

	fputs("],\n\"listeners\":[", out);
	for (i = 0; i < dump->listeners_count; i++) {
		comma(i, out);
		json_listener(&dump->listeners[i], out);
	}
	fputs("],\n\"srqs\":[", out);
	for (i = 0; i < dump->srqs_count; i++) {
		comma(i, out);
		json_srq(&dump->srqs[i], out);
	}
	fputs("],\n\"adopted\":[", out);
	for (i = 0; i < dump->adopted_count; i++) {
		comma(i, out);
		json_adopted(&dump->adopted[i], out);
	}
	fputs("],\n\"pools\":[", out);
	for (i = 0; i < dump->pools_count; i++) {
		comma(i, out);
		json_pool(&dump->pools[i], out);
	}
	fputs("],\n\"shards\":[", out);
	for (i = 0; i < dump->shards_count; i++) {
		comma(i, out);
		json_shard(&dump->shards[i], out);
	}
}

static void json_findings(const char *name,
			  const struct rt_dump_findings *findings, FILE *out)
{
	const struct rt_dump_wrong *wrong;
	uint32_t i;

	fprintf(out, "],\n\"%s\":[", name);
	for (i = 0; i < findings->count; i++) {
		wrong = &findings->list[i];
		comma(i, out);
		fprintf(out, "{\"kind\":\"%s\",\"ms\":%" PRIu32,
			rt_dump_wrong_name(wrong->kind), wrong->for_ms);
		json_text("object", wrong->object, out);
		json_text("text", wrong->text, out);
		fputc('}', out);
	}
}

static void json_wrongs(const struct rt_dump_wrongs *wrongs, FILE *out)
{
	uint32_t i;

	json_findings("wrong", &wrongs->old, out);
	json_findings("wrong_younger", &wrongs->young, out);
	fputs("],\n\"wrong_counts\":{", out);
	for (i = 0; i < RT_DUMP_KINDS; i++)
		fprintf(out, "%s\"%s\":%" PRIu32, i ? "," : "",
			rt_dump_wrong_name((enum rt_dump_kind)i),
			wrongs->old.counts[i]);
	fputs("}}\n", out);
}

void rt_dump_json(const struct rt_dump *dump, FILE *out)
{
	uint32_t i;

	fprintf(out,
		"{\"stopped\":%s,\"requests_refused\":%" PRIu64
		",\"cm_errno\":%d,\n\"pollers\":[",
		yes(dump->stopped), dump->requests_refused, dump->cm_errno);
	for (i = 0; i < (uint32_t)dump->pollers_count; i++) {
		comma(i, out);
		json_poller(&dump->pollers[i], out);
	}
	fputs("],\n\"cqs\":[", out);
	for (i = 0; i < dump->cqs_count; i++) {
		comma(i, out);
		json_cq(&dump->cqs[i], out);
	}
	fputs("],\n\"queues\":[", out);
	for (i = 0; i < dump->queues_count; i++) {
		comma(i, out);
		json_queue(&dump->queues[i], out);
	}
	fputs("],\n\"connections\":[", out);
	for (i = 0; i < dump->conns_count; i++) {
		comma(i, out);
		json_conn(&dump->conns[i], out);
	}
	json_others(dump, out);
	json_wrongs(dump->wrongs, out);
}
