/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * prometheus.c -- a dump in the text exposition of Prometheus, where all
 * samples of one metric stand together. Pure functions.
 */

#include "dump/printers.h"

#include <inttypes.h>

#include "dump/names.h"
#include "dump/wrong.h"

static void prom_head(const char *object, const struct rt_dump_field *field,
		      FILE *out)
{
	const char *total = field->is_gauge ? "" : "_total";

	fprintf(out, "# HELP rpma_rt_%s_%s%s %s\n# TYPE rpma_rt_%s_%s%s %s\n",
		object, field->name, total, field->help, object, field->name,
		total, field->is_gauge ? "gauge" : "counter");
}

static void prom_sample(const char *object, const struct rt_dump_field *field,
			uint32_t id, uint64_t sample, FILE *out)
{
	fprintf(out, "rpma_rt_%s_%s%s{%s=\"%" PRIu32 "\"} %" PRIu64 "\n",
		object, field->name, field->is_gauge ? "" : "_total", object,
		id, sample);
}

static void prom_pollers(const struct rt_dump *dump, FILE *out)
{
	static const struct rt_dump_field unacked = {
		"unacknowledged_events", 0, true, "Events to acknowledge."};
	static const struct rt_dump_field asleep = {"asleep", 0, true,
						    "Whether it sleeps."};
	uint32_t i;
	size_t f;

	for (f = 0; f < RT_DUMP_POLLER_FIELDS; f++) {
		prom_head("poller", &rt_dump_poller_fields[f], out);
		for (i = 0; i < (uint32_t)dump->pollers_count; i++)
			prom_sample("poller", &rt_dump_poller_fields[f], i,
				    rt_dump_value(&dump->pollers[i].stats,
						  &rt_dump_poller_fields[f]),
				    out);
	}
	prom_head("poller", &unacked, out);
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		prom_sample("poller", &unacked, i, dump->pollers[i].unacked,
			    out);
	prom_head("poller", &asleep, out);
	for (i = 0; i < (uint32_t)dump->pollers_count; i++)
		prom_sample("poller", &asleep, i, dump->pollers[i].asleep, out);
}

/* Seconds; by hand, for printf would ask the locale for the point. */
static void prom_seconds(uint64_t ns, FILE *out)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
		ns % 1000000000);
}

static void prom_histogram(const char *name, uint32_t id,
			   const struct rpma_rt_histogram *histogram, FILE *out)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++) {
		seen += histogram->buckets[i];
		fprintf(out,
			"rpma_rt_queue_%s_seconds_bucket{queue=\"%" PRIu32
			"\",le=\"",
			name, id);
		if (i + 1 < RPMA_RT_HISTOGRAM)
			prom_seconds(UINT64_C(2) << i, out);
		else
			fputs("+Inf", out);
		fprintf(out, "\"} %" PRIu64 "\n", seen);
	}
	fprintf(out, "rpma_rt_queue_%s_seconds_sum{queue=\"%" PRIu32 "\"} ",
		name, id);
	prom_seconds(histogram->sum_ns, out);
	fprintf(out,
		"\nrpma_rt_queue_%s_seconds_count{queue=\"%" PRIu32
		"\"} %" PRIu64 "\n",
		name, id, seen);
}

/* The object's name, printable ASCII, labels a sample that is always 1. */
static void prom_name(const struct rt_queue_state *view, FILE *out)
{
	fprintf(out,
		"rpma_rt_queue_info{queue=\"%" PRIu32 "\",name=", view->id);
	rt_dump_text(view->name, out);
	fputs("} 1\n", out);
}

static void prom_queues(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_queue *queue;
	uint32_t i;
	size_t f;

	for (f = 0; f < RT_DUMP_QUEUE_FIELDS; f++) {
		prom_head("queue", &rt_dump_queue_fields[f], out);
		for (i = 0; i < dump->queues_count; i++) {
			queue = &dump->queues[i];
			prom_sample("queue", &rt_dump_queue_fields[f],
				    queue->view.id,
				    rt_dump_value(&queue->stats,
						  &rt_dump_queue_fields[f]),
				    out);
		}
	}
	fputs("# HELP rpma_rt_queue_info Its name.\n"
	      "# TYPE rpma_rt_queue_info gauge\n",
	      out);
	for (i = 0; i < dump->queues_count; i++)
		prom_name(&dump->queues[i].view, out);
	fputs("# HELP rpma_rt_queue_dispatch_seconds From poll to taken.\n"
	      "# TYPE rpma_rt_queue_dispatch_seconds histogram\n",
	      out);
	for (i = 0; i < dump->queues_count; i++)
		prom_histogram("dispatch", dump->queues[i].view.id,
			       &dump->queues[i].stats.dispatch, out);
	fputs("# HELP rpma_rt_queue_wakeup_seconds From the call to awake.\n"
	      "# TYPE rpma_rt_queue_wakeup_seconds histogram\n",
	      out);
	for (i = 0; i < dump->queues_count; i++)
		prom_histogram("wakeup", dump->queues[i].view.id,
			       &dump->queues[i].stats.wakeup, out);
}

/* A series for each that the program named, and so asked for. */
static void prom_named(const struct rt_dump *dump, FILE *out)
{
	static const char *const names[] = {"send", "recv"};
	const struct rt_dump_conn *conn;
	uint32_t i;
	int side;

	fputs("# HELP rpma_rt_connection_outstanding Work requests outstanding "
	      "on a connection that was given a name.\n"
	      "# TYPE rpma_rt_connection_outstanding gauge\n",
	      out);
	for (i = 0; i < dump->conns_count; i++) {
		conn = &dump->conns[i];
		for (side = 0; conn->is_named && !conn->is_ended && side < 2;
		     side++) {
			fprintf(out,
				"rpma_rt_connection_outstanding{connection="
				"\"%" PRIu32 "\",name=",
				conn->number);
			rt_dump_text(conn->name, out);
			fprintf(out, ",side=\"%s\"} %" PRIu32 "\n", names[side],
				conn->side[side].outstanding);
		}
	}
}

/* Sums: a series for each connection would be more than a server keeps. */
static void prom_conns(const struct rt_dump *dump, FILE *out)
{
	uint64_t in_state[RT_DUMP_STATES] = {0};
	uint64_t outstanding[2] = {0};
	uint32_t oldest_ms = 0;
	const struct rt_dump_side *side;
	uint32_t i;
	size_t n;

	for (i = 0; i < dump->conns_count; i++) {
		if (dump->conns[i].is_ended)
			continue;
		if (dump->conns[i].state < RT_DUMP_STATES)
			in_state[dump->conns[i].state]++;
		for (n = 0; n < 2; n++) {
			side = &dump->conns[i].side[n];
			outstanding[n] += side->outstanding;
			/* receives wait for the peer, however long */
			if (n == RPMA_RT_SEND_SIDE && side->shown > 0 &&
			    side->wrs[0].age_ms > oldest_ms)
				oldest_ms = side->wrs[0].age_ms;
		}
	}
	fputs("# HELP rpma_rt_connections Connections by state.\n"
	      "# TYPE rpma_rt_connections gauge\n",
	      out);
	for (n = 0; n < RT_DUMP_STATES; n++)
		fprintf(out, "rpma_rt_connections{state=\"%s\"} %" PRIu64 "\n",
			rt_dump_state((uint32_t)n), in_state[n]);
	fprintf(out,
		"# HELP rpma_rt_outstanding Work requests outstanding.\n"
		"# TYPE rpma_rt_outstanding gauge\n"
		"rpma_rt_outstanding{side=\"send\"} %" PRIu64 "\n"
		"rpma_rt_outstanding{side=\"recv\"} %" PRIu64 "\n"
		"# HELP rpma_rt_oldest_send_seconds Age of the oldest one "
		"sent.\n"
		"# TYPE rpma_rt_oldest_send_seconds gauge\n"
		"rpma_rt_oldest_send_seconds ",
		outstanding[0], outstanding[1]);
	prom_seconds((uint64_t)oldest_ms * 1000000, out);
	fputc('\n', out);
}

static void prom_wrongs(const struct rt_dump_wrongs *wrongs, FILE *out)
{
	int i;

	fputs("# HELP rpma_rt_wrong What looks wrong, by kind.\n"
	      "# TYPE rpma_rt_wrong gauge\n",
	      out);
	for (i = 0; i < RT_DUMP_KINDS; i++)
		fprintf(out, "rpma_rt_wrong{kind=\"%s\"} %" PRIu32 "\n",
			rt_dump_wrong_name((enum rt_dump_kind)i),
			wrongs->old.counts[i]);
}

static void prom_srqs(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_srq *srq;
	uint32_t i;

	fputs("# HELP rpma_rt_srq_receives Receives out.\n"
	      "# TYPE rpma_rt_srq_receives gauge\n",
	      out);
	for (i = 0; i < dump->srqs_count; i++) {
		srq = &dump->srqs[i];
		fprintf(out,
			"rpma_rt_srq_receives{poller=\"%d\",srq=\"%" PRIu32
			"\"} %" PRIu32 "\n",
			srq->poller, srq->number, srq->out);
	}
}

static void prom_pools(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_pool *pool;
	uint32_t i;

	fputs("# HELP rpma_rt_pool_slots_out Slots of a pool that are not "
	      "free.\n"
	      "# TYPE rpma_rt_pool_slots_out gauge\n",
	      out);
	for (i = 0; i < dump->pools_count; i++) {
		pool = &dump->pools[i];
		fputs("rpma_rt_pool_slots_out{pool=", out);
		rt_dump_text(pool->name, out);
		fprintf(out, "} %" PRIu32 "\n", pool->out);
	}
	fputs("# HELP rpma_rt_pool_low_total Times that a pool became low.\n"
	      "# TYPE rpma_rt_pool_low_total counter\n",
	      out);
	for (i = 0; i < dump->pools_count; i++) {
		pool = &dump->pools[i];
		fputs("rpma_rt_pool_low_total{pool=", out);
		rt_dump_text(pool->name, out);
		fprintf(out, "} %" PRIu64 "\n", pool->times_low);
	}
}

static void prom_shards(const struct rt_dump *dump, FILE *out)
{
	const struct rt_dump_shard *shard;
	uint32_t i;

	fputs("# HELP rpma_rt_shard_waiting Messages to a shard that it has "
	      "not taken.\n"
	      "# TYPE rpma_rt_shard_waiting gauge\n",
	      out);
	for (i = 0; i < dump->shards_count; i++) {
		shard = &dump->shards[i];
		fprintf(out,
			"rpma_rt_shard_waiting{set=\"%" PRIu32
			"\",shard=\"%" PRIu32 "\"} %" PRIu32 "\n",
			shard->set, shard->index, shard->waiting);
	}
	fputs("# HELP rpma_rt_shard_asleep 1: it sleeps, or is about to.\n"
	      "# TYPE rpma_rt_shard_asleep gauge\n",
	      out);
	for (i = 0; i < dump->shards_count; i++) {
		shard = &dump->shards[i];
		fprintf(out,
			"rpma_rt_shard_asleep{set=\"%" PRIu32
			"\",shard=\"%" PRIu32 "\"} %d\n",
			shard->set, shard->index, shard->asleep);
	}
}

static void prom_listeners(const struct rt_dump *dump, FILE *out)
{
	uint32_t i;

	fputs("# HELP rpma_rt_listener_refused_total Requests refused.\n"
	      "# TYPE rpma_rt_listener_refused_total counter\n",
	      out);
	for (i = 0; i < dump->listeners_count; i++)
		fprintf(out,
			"rpma_rt_listener_refused_total{listener=\"%" PRIu32
			"\",port=\"%u\"} %" PRIu32 "\n",
			dump->listeners[i].number, dump->listeners[i].port,
			dump->listeners[i].refused);
}

/* How long the oldest item waits, 0: none does. */
static void prom_waiting(const struct rt_dump *dump, FILE *out)
{
	const struct rt_queue_state *view;
	uint32_t i;

	fputs("# HELP rpma_rt_queue_waiting_seconds For how long at least an "
	      "item waits to be taken.\n"
	      "# TYPE rpma_rt_queue_waiting_seconds gauge\n",
	      out);
	for (i = 0; i < dump->queues_count; i++) {
		view = &dump->queues[i].view;
		fprintf(out,
			"rpma_rt_queue_waiting_seconds{queue=\"%" PRIu32 "\"} ",
			view->id);
		prom_seconds(view->has_waiting
				     ? (uint64_t)view->waiting_ms * 1000000
				     : 0,
			     out);
		fputc('\n', out);
	}
}

void rt_dump_prometheus(const struct rt_dump *dump, FILE *out)
{
	prom_pollers(dump, out);
	prom_queues(dump, out);
	fprintf(out,
		"# HELP rpma_rt_requests_refused_total Requests of peers that "
		"became no connection.\n"
		"# TYPE rpma_rt_requests_refused_total counter\n"
		"rpma_rt_requests_refused_total %" PRIu64 "\n",
		dump->requests_refused);
	fprintf(out,
		"# HELP rpma_rt_cm_errno CM events are read no more for this "
		"errno; 0: they are.\n"
		"# TYPE rpma_rt_cm_errno gauge\n"
		"rpma_rt_cm_errno %d\n",
		dump->cm_errno);
	prom_conns(dump, out);
	prom_named(dump, out);
	prom_waiting(dump, out);
	prom_srqs(dump, out);
	prom_pools(dump, out);
	prom_shards(dump, out);
	prom_listeners(dump, out);
	prom_wrongs(dump->wrongs, out);
}
