/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client ADDRESS PORT [NAME=VALUE...]: load for the key-value store. Writes
 * each key once, then reads, writes and deletes, and judges every value; prints
 * a line each second, and a report, also as JSON. SIGINT ends the load.
 */

#include <inttypes.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../common/clock.h"
#include "../common/peer.h"
#include "../common/words.h"
#include "load.h"

#define THREADS_MAX 64

static struct settings settings = {.threads = 1,
				   .connections = 4,
				   .depth = 8,
				   .seconds = 3,
				   .keys = 10000,
				   .get = 90,
				   .delete = 2,
				   .size_min = 64,
				   .size_max = 64,
				   .patience_s = 10,
				   .foreign = FOREIGN_ANY,
				   .keys_by = "zipf"};
static const char *json;
static uint64_t line_ms = 1000;
static struct load loads[THREADS_MAX];
static atomic_uint running;
static const struct word words[] = {
	{"threads", &settings.threads, NULL, 1, THREADS_MAX, ""},
	{"connections", &settings.connections, NULL, 1, 65536, ""},
	{"depth", &settings.depth, NULL, 1, 32,
	 "closed loop: requests of a connection without an answer"},
	{"rate", &settings.rate, NULL, 0, 100000000,
	 "open loop: requests in a second; 0: closed loop"},
	{"seconds", &settings.seconds, NULL, 1, 86400, ""},
	{"operations", &settings.operations, NULL, 0, UINT64_MAX / 2,
	 "requests, in place of seconds"},
	{"keys", &settings.keys, NULL, 1, 100000000, ""},
	{"get", &settings.get, NULL, 0, 100, "of 100 requests"},
	{"delete", &settings.delete, NULL, 0, 100,
	 "of 100 requests; the rest writes"},
	{"min", &settings.size_min, NULL, VALUE_MIN, KV_VALUE_MAX,
	 "bytes of a value, at least"},
	{"max", &settings.size_max, NULL, VALUE_MIN, KV_VALUE_MAX,
	 "and at most"},
	{"deadline", &settings.deadline_ms, NULL, 0, 3600000,
	 "milliseconds; 0: none"},
	{"patience", &settings.patience_s, NULL, 1, 3600,
	 "seconds without any answer"},
	{"seed", &settings.seed, NULL, 0, UINT32_MAX,
	 "of keys and choices; 0: by chance"},
	{"foreign", &settings.foreign, NULL, 0, FOREIGN_ANY,
	 "of 100 keys, those of another shard than the connection's; 101: as "
	 "keys fall"},
	{"by", NULL, &settings.keys_by, 0, 0, "zipf or uniform"},
	{"line", &line_ms, NULL, 10, 3600000,
	 "milliseconds between lines of progress"},
	{"json", NULL, &json, 0, 0, "a file for the report"},
	{NULL, NULL, NULL, 0, 0, NULL}};

/* ---------------------------------------------------------------- sums --- */

struct sums {
	uint64_t started, wrong, late, expired, full, lost, broken, connects;
};

/* Reads a counter, in relaxed order: a figure for the report. */
static uint64_t read_count(const atomic_ullong *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static struct sums sum_counts(void)
{
	struct sums sums = {0};
	uint64_t i;

	for (i = 0; i < settings.threads; i++) {
		const struct counts *counts = &loads[i].counts;

		sums.started += read_count(&counts->started);
		sums.wrong += read_count(&counts->wrong);
		sums.late += read_count(&counts->late);
		sums.expired += read_count(&counts->expired);
		sums.full += read_count(&counts->full);
		sums.lost += read_count(&counts->lost);
		sums.broken += read_count(&counts->broken);
		sums.connects += read_count(&counts->connects);
	}
	return sums;
}

/* Adds the times of all threads, of the kinds from first to last. */
static void sum_times(struct hist_counts *sum, int first, int last)
{
	uint64_t i;
	int kind;

	*sum = (struct hist_counts){.max = 0};
	for (i = 0; i < settings.threads; i++)
		for (kind = first; kind <= last; kind++)
			hist_read(&loads[i].latency[kind], sum);
}

static uint64_t number_of(const struct hist_counts *counts)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < HIST_BUCKETS; i++)
		sum += counts->count[i];
	return sum;
}

static double us(const struct hist_counts *counts, unsigned per_mille)
{
	return (double)hist_percentile(counts, per_mille) / 1000;
}

/* -------------------------------------------------------------- report --- */

static void print_times(const char *name, const struct hist_counts *counts,
			double seconds)
{
	printf("client: %-6s %10" PRIu64 ", %9.0f/s, us: p50 %.1f p99 %.1f "
	       "p99.9 %.1f max %.1f\n",
	       name, number_of(counts), (double)number_of(counts) / seconds,
	       us(counts, 500), us(counts, 990), us(counts, 999),
	       (double)counts->max / 1000);
}

static void json_times(FILE *out, const char *name,
		       const struct hist_counts *counts)
{
	const char *comma = "";
	unsigned i;

	fprintf(out,
		" \"%s\": {\"count\": %" PRIu64
		", \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, "
		"\"p999_us\": %.1f, \"max_us\": %.1f,\n  \"histogram\": [",
		name, number_of(counts), us(counts, 500), us(counts, 900),
		us(counts, 990), us(counts, 999), (double)counts->max / 1000);
	for (i = 0; i < HIST_BUCKETS; i++) {
		if (counts->count[i] == 0)
			continue;
		fprintf(out, "%s[%.3f, %" PRIu64 "]", comma,
			(double)hist_top(i) / 1000, counts->count[i]);
		comma = ", ";
	}
	fprintf(out, "]}");
}

static bool write_json(const struct sums *sums, double seconds)
{
	FILE *out = fopen(json, "w");
	struct hist_counts times;

	if (out == NULL)
		return false;
	fprintf(out,
		"{\"loop\": \"%s\", \"rate\": %" PRIu64
		", \"threads\": %" PRIu64 ", \"connections\": %" PRIu64
		", \"depth\": %" PRIu64 ", \"keys\": %" PRIu64
		", \"by\": \"%s\", \"get\": %" PRIu64 ", \"delete\": %" PRIu64
		", \"min\": %" PRIu64 ", \"max\": %" PRIu64
		", \"seed\": %" PRIu64 ",\n \"seconds\": %.3f, ",
		settings.rate ? "open" : "closed", settings.rate,
		settings.threads, settings.connections, settings.depth,
		settings.keys, settings.keys_by, settings.get, settings.delete,
		settings.size_min, settings.size_max, settings.seed, seconds);
	fprintf(out,
		"\"started\": %" PRIu64 ", \"wrong\": %" PRIu64
		", \"late\": %" PRIu64 ", \"expired\": %" PRIu64
		", \"full\": %" PRIu64 ", \"lost\": %" PRIu64
		", \"broken\": %" PRIu64 ", \"connects\": %" PRIu64 ",\n",
		sums->started, sums->wrong, sums->late, sums->expired,
		sums->full, sums->lost, sums->broken, sums->connects);
	sum_times(&times, LOAD_READS, LOAD_READS);
	json_times(out, "reads", &times);
	fprintf(out, ",\n");
	sum_times(&times, LOAD_WRITES, LOAD_WRITES);
	json_times(out, "writes", &times);
	fprintf(out, "}\n");
	return fclose(out) == 0;
}

/* Prints the report; returns the status of the program. */
static int report(void)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0, i;
	struct sums sums = sum_counts();
	struct hist_counts times;
	const char *failed = NULL;
	double seconds;

	for (i = 0; i < settings.threads; i++) {
		if (loads[i].failed)
			failed = loads[i].failed;
		if (loads[i].begin_ns && loads[i].begin_ns < begin_ns)
			begin_ns = loads[i].begin_ns;
		if (loads[i].end_ns > end_ns)
			end_ns = loads[i].end_ns;
	}
	seconds = end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e9 : 1;
	sum_times(&times, LOAD_READS, LOAD_READS);
	print_times("reads", &times, seconds);
	sum_times(&times, LOAD_WRITES, LOAD_WRITES);
	print_times("writes", &times, seconds);
	printf("client: wrong=%" PRIu64 " lost=%" PRIu64 " late=%" PRIu64
	       " expired=%" PRIu64 " full=%" PRIu64 " broken=%" PRIu64
	       " connects=%" PRIu64 "\n",
	       sums.wrong, sums.lost, sums.late, sums.expired, sums.full,
	       sums.broken, sums.connects);
	if (json && !write_json(&sums, seconds))
		failed = "the report cannot be written";
	if (failed)
		fprintf(stderr, "client: %s\n", failed);
	return failed || sums.wrong || sums.broken;
}

/* Prints what has happened since the last line. */
static void progress(double second)
{
	static struct hist_counts before;
	struct hist_counts all, since;
	struct sums sums = sum_counts();

	sum_times(&all, LOAD_READS, LOAD_WRITES);
	since = all;
	hist_subtract(&since, &before);
	before = all;
	printf("client: %5.1f s: %9" PRIu64 "/s, us: p50 %.1f p99 %.1f "
	       "p99.9 %.1f; %" PRIu64 " wrong, %" PRIu64 " lost, %" PRIu64
	       " connects\n",
	       second, number_of(&since) * 1000 / line_ms, us(&since, 500),
	       us(&since, 990), us(&since, 999), sums.wrong, sums.lost,
	       sums.connects);
	fflush(stdout);
}

/* ---------------------------------------------------------------- main --- */

static void *run_one(void *load)
{
	load_run(load);
	/* relaxed: pthread_join() orders what the thread wrote */
	atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
	return NULL;
}

/* Runs the threads; prints a line each second. SIGINT and SIGTERM end the
 * load. */
static void run_all(struct rpma_peer *peer)
{
	const struct timespec while_ns = {0, 20000000};
	uint64_t begin_ns, line_ns, i;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	pthread_barrier_init(&load_barrier, NULL,
			     (unsigned)settings.threads + 1);
	atomic_init(&running, (unsigned)settings.threads);
	for (i = 0; i < settings.threads; i++) {
		loads[i].settings = &settings;
		loads[i].peer = peer;
		loads[i].number = (uint32_t)i;
		loads[i].client_count = (uint32_t)((settings.connections +
						    settings.threads - 1 - i) /
						   settings.threads);
		if (pthread_create(&loads[i].thread, NULL, run_one,
				   &loads[i])) {
			perror("pthread_create");
			exit(1);
		}
	}
	pthread_barrier_wait(&load_barrier);
	begin_ns = clock_now();
	line_ns = begin_ns + line_ms * CLOCK_MS;
	/* relaxed: see run_one() */
	while (atomic_load_explicit(&running, memory_order_relaxed) > 0) {
		if (sigtimedwait(&signals, NULL, &while_ns) > 0)
			/* relaxed: a flag alone */
			atomic_store_explicit(&load_is_interrupted, true,
					      memory_order_relaxed);
		if (clock_now() < line_ns)
			continue;
		progress((double)(clock_now() - begin_ns) / 1e9);
		line_ns += line_ms * CLOCK_MS;
	}
	for (i = 0; i < settings.threads; i++)
		pthread_join(loads[i].thread, NULL);
}

static bool are_settings_good(void)
{
	const char *fault = NULL;

	if (settings.get + settings.delete > 100)
		fault = "get and delete: more than 100 of 100";
	else if (settings.size_min > settings.size_max)
		fault = "min: more than max";
	else if (settings.connections < settings.threads ||
		 settings.keys < settings.threads)
		fault = "threads: more than connections, or than keys";
	else if (strcmp(settings.keys_by, "zipf") != 0 &&
		 strcmp(settings.keys_by, "uniform") != 0)
		fault = "by: zipf or uniform";
	if (fault)
		fprintf(stderr, "client: %s\n", fault);
	return fault == NULL;
}

int main(int argc, char **argv)
{
	struct rpma_peer *peer = NULL;
	int status = 1;

	if (!words_read(words, argc, argv) || !are_settings_good())
		return 2;
	settings.address = argv[1];
	settings.port = argv[2];
	if (settings.seed == 0)
		settings.seed =
			(clock_now() ^ (uint64_t)getpid() << 16) & UINT32_MAX;
	if (open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &peer) == 0) {
		/* a server that ends and comes back is no error here */
		rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
				       RPMA_LOG_LEVEL_FATAL);
		run_all(peer);
		status = report();
		rpma_peer_delete(&peer);
	}
	return status;
}
