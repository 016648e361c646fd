/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * report.c: sums over the workers, and their presentation.
 */

#include "report.h"

#include <inttypes.h>
#include <stdio.h>

struct totals {
	uint64_t posted, delivered, failed, lost, duplicated, misrouted;
	uint64_t verify_errors, messages, unanswered, links;
	uint64_t first_ns, last_ns;
	struct hist_counts latency;
};

static void sum(const struct end *end, struct totals *t)
{
	*t = (struct totals){0};
	for (unsigned i = 0; i < end->worker_count; i++) {
		const struct stats *s = &end->workers[i].stats;
		uint64_t first = counted(&s->first_ns);
		uint64_t last = counted(&s->last_ns);

		/* delivered before posted: a snapshot never shows more
		 * delivered than posted, which would look like a fault */
		t->delivered += counted(&s->delivered);
		t->posted += counted(&s->posted);
		t->failed += counted(&s->failed);
		t->lost += counted(&s->lost);
		t->duplicated += counted(&s->duplicated);
		t->misrouted += counted(&s->misrouted);
		t->verify_errors += counted(&s->verify_errors);
		t->messages += counted(&s->messages);
		t->unanswered += counted(&s->unanswered);
		t->links += counted(&s->links);
		if (first && (!t->first_ns || first < t->first_ns))
			t->first_ns = first;
		if (last > t->last_ns)
			t->last_ns = last;
		hist_read(&s->latency, &t->latency);
	}
}

/* Formats three digits and a unit; text has 16 bytes. */
static const char *duration(uint64_t ns, char *text)
{
	static const char *const UNITS[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	unsigned unit = 0;

	while (value >= 1000 && unit < 3) {
		value /= 1000;
		unit++;
	}
	int digits = value >= 100 || unit == 0 ? 0 : value >= 10 ? 1 : 2;
	snprintf(text, 16, "%.*f %s", digits, value, UNITS[unit]);
	return text;
}

static void print_latency(const struct hist_counts *latency)
{
	char p50[16], p99[16], p999[16], max[16];

	printf("p50 %-8s p99 %-8s p99.9 %-8s max %s",
	       duration(hist_percentile(latency, 500), p50),
	       duration(hist_percentile(latency, 990), p99),
	       duration(hist_percentile(latency, 999), p999),
	       duration(latency->max, max));
}

static double per_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * 1e9 / (double)ns : 0;
}

void report_interval(struct end *end)
{
	struct totals t;
	uint64_t now = now_ns();

	sum(end, &t);
	if (t.delivered == end->reported_delivered) {
		end->reported_ns = now;
		return;
	}
	struct hist_counts latency = t.latency;
	hist_subtract(&latency, end->reported);
	printf("%s: %9.0f messages/s  ", end->name,
	       per_second(t.messages - end->reported_messages,
			  now - end->reported_ns));
	print_latency(&latency);
	printf("  posted %" PRIu64 " delivered %" PRIu64 "\n", t.posted,
	       t.delivered);
	fflush(stdout);
	*end->reported = t.latency;
	end->reported_messages = t.messages;
	end->reported_delivered = t.delivered;
	end->reported_ns = now;
}

static void print_queues(const struct end *end)
{
	printf("  %-8s %12s %14s %14s %14s\n", "queue", "connections",
	       "messages", "posted", "delivered");
	for (unsigned i = 0; i < end->worker_count; i++) {
		const struct stats *s = &end->workers[i].stats;

		printf("  %-8u %12" PRIu64 " %14" PRIu64 " %14" PRIu64
		       " %14" PRIu64 "\n",
		       i, counted(&s->links), counted(&s->messages),
		       counted(&s->posted), counted(&s->delivered));
	}
}

static void print_table(const struct end *end, const struct totals *t)
{
	uint64_t ns = t->last_ns > t->first_ns ? t->last_ns - t->first_ns : 0;

	printf("\n%s\n", end->name);
	printf("  messages       %" PRIu64 " in %.2f s: %.0f a second\n",
	       t->messages, (double)ns / 1e9, per_second(t->messages, ns));
	printf("  latency        ");
	print_latency(&t->latency);
	printf("\n  work requests  posted %" PRIu64 ", delivered %" PRIu64
	       " (%" PRIu64 " of them flushed or failed)\n",
	       t->posted, t->delivered, t->failed);
	printf("  faults         lost %" PRIu64 ", duplicated %" PRIu64
	       ", misrouted %" PRIu64 ", verify errors %" PRIu64
	       ", unanswered %" PRIu64 "\n",
	       t->lost, t->duplicated, t->misrouted, t->verify_errors,
	       t->unanswered);
	print_queues(end);
	printf("posted=%" PRIu64 " delivered=%" PRIu64 " lost=%" PRIu64
	       " duplicated=%" PRIu64 " misrouted=%" PRIu64
	       " verify_errors=%" PRIu64
	       " messages_per_second=%.0f p50_ns=%" PRIu64 " p99_ns=%" PRIu64
	       "\n",
	       t->posted, t->delivered, t->lost, t->duplicated, t->misrouted,
	       t->verify_errors, per_second(t->messages, ns),
	       hist_percentile(&t->latency, 500),
	       hist_percentile(&t->latency, 990));
	fflush(stdout);
}

void report_end(const struct end *end)
{
	struct totals t;

	sum(end, &t);
	print_table(end, &t);
}

bool report_is_bad(const struct end *end)
{
	struct totals t;

	sum(end, &t);
	/* relaxed: the threads that set is_failed were joined */
	return atomic_load_explicit(&end->is_failed, memory_order_relaxed) ||
	       t.lost || t.duplicated || t.misrouted || t.verify_errors ||
	       t.posted != t.delivered;
}
