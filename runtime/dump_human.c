/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_human.c -- a dump for people: a line for each thing, its counters and
 * work requests below it. Pure functions.
 */

#include "dump_printers.h"

#include <inttypes.h>

#include "dump_names.h"

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

static void human_poller(const struct rt_dump_poller *poller, FILE *out)
{
	fprintf(out,
		"poller %d: cpu %d, %s%s, clock read %" PRIu32
		" ms ago, %" PRIu32 " channels, %" PRIu32
		" events unacknowledged\n",
		poller->index, poller->cpu, poller->asleep ? "asleep" : "awake",
		poller->stopping ? ", stopping" : "", poller->clock_age_ms,
		poller->channels, poller->unacked);
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
	fputc('\n', out);
	human_fields(&queue->stats, rt_dump_queue_fields, RT_DUMP_QUEUE_FIELDS,
		     out);
	human_histogram("dispatch", &queue->stats.dispatch, out);
	human_histogram("wake-up", &queue->stats.wakeup, out);
}

static void human_count(const struct rt_dump_side *side, FILE *out)
{
	if (side->counted)
		fprintf(out, "%" PRIu32 " of %" PRIu32 " outstanding",
			side->outstanding, side->depth);
	else
		fprintf(out, "depth %" PRIu32, side->depth);
	if (side->unread != NULL)
		fprintf(out, ", ledger not read: %s", side->unread);
}

static void human_side(const char *name, const struct rt_dump_side *side,
		       FILE *out)
{
	const struct rt_dump_wr *wr;
	uint32_t i;

	fprintf(out, "    %s: gate %s, ", name, rt_dump_gate(side->gate));
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
			fputs("a function\n", out);
	}
	if (side->outstanding > side->shown && side->unread == NULL)
		fprintf(out, "      and %" PRIu32 " more\n",
			side->outstanding - side->shown);
}

static void human_conn(const struct rt_dump_conn *conn, FILE *out)
{
	fprintf(out,
		"connection %p \"%s\": slot %" PRIu32 ", QP 0x%" PRIx32
		", poller %d, queue %" PRIu32 ", %s, %s",
		conn->handle, conn->name, conn->slot, conn->qp_num,
		conn->poller, conn->queue, conn->passive ? "passive" : "active",
		rt_dump_state(conn->state));
	if (conn->state >= RT_CONN_DRAINING)
		fprintf(out, " (%s)", rt_dump_reason(conn->reason));
	fprintf(out, ", %" PRIu32 " holders%s\n", conn->holders,
		conn->is_backlogged ? ", a queue over its limit" : "");
	human_side("send", &conn->side[RPMA_RT_SEND_SIDE], out);
	human_side("recv", &conn->side[RPMA_RT_RECV_SIDE], out);
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
			"requests refused, every queue over its limit: %" PRIu64
			"\n",
			dump->requests_refused);
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		human_poller(&dump->pollers[i], out);
	for (i = 0; i < dump->cqs_count; i++)
		human_cq(&dump->cqs[i], out);
	for (i = 0; i < dump->queues_count; i++)
		human_queue(&dump->queues[i], out);
	for (i = 0; i < dump->conns_count; i++)
		human_conn(&dump->conns[i], out);
}
