/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_json.c -- a dump as one JSON object. No string in it needs quoting.
 * Pure functions.
 */

#include "dump_printers.h"

#include <inttypes.h>

#include "dump_names.h"

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

static void json_poller(const struct rt_dump_poller *poller, FILE *out)
{
	fprintf(out,
		"{\"poller\":%d,\"cpu\":%d,\"asleep\":%s,\"stopping\":%s,"
		"\"clock_age_ms\":%" PRIu32 ",\"channels\":%" PRIu32
		",\"unacknowledged\":%" PRIu32,
		poller->index, poller->cpu, yes(poller->asleep),
		yes(poller->stopping), poller->clock_age_ms, poller->channels,
		poller->unacked);
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
	json_fields(&queue->stats, rt_dump_queue_fields, RT_DUMP_QUEUE_FIELDS,
		    out);
	json_histogram("dispatch", &queue->stats.dispatch, out);
	json_histogram("wakeup", &queue->stats.wakeup, out);
	fputc('}', out);
}

static void json_count(const struct rt_dump_side *side, FILE *out)
{
	if (side->counted)
		fprintf(out, ",\"outstanding\":%" PRIu32, side->outstanding);
	else
		fputs(",\"outstanding\":null", out);
}

static void json_side(const struct rt_dump_side *side, FILE *out)
{
	const struct rt_dump_wr *wr;
	uint32_t i;

	fprintf(out, "{\"gate\":\"%s\",\"depth\":%" PRIu32,
		rt_dump_gate(side->gate), side->depth);
	json_count(side, out);
	fprintf(out,
		",\"refused_credit\":%s,\"refused_backlog\":%s,"
		"\"ledger\":\"%s\",\"oldest\":[",
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
		",\"poller\":%d,\"queue\":%" PRIu32
		",\"passive\":%s,\"state\":\"%s\",\"reason\":",
		conn->handle, conn->slot, conn->qp_num, conn->poller,
		conn->queue, yes(conn->passive), rt_dump_state(conn->state));
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

void rt_dump_json(const struct rt_dump *dump, FILE *out)
{
	uint32_t i;

	fprintf(out,
		"{\"stopped\":%s,\"requests_refused\":%" PRIu64
		",\n\"pollers\":[",
		yes(dump->stopped), dump->requests_refused);
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
	fputs("]}\n", out);
}
