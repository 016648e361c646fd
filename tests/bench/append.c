/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_append_writer log|bare DEPTH SECONDS ADDRESS PORT: thousands of records
 * of 64 bytes a second that a writer appends to three replicas of
 * examples/32-log, and that two of the replicas have in persistent memory;
 * DEPTH records without an acknowledgement at most. The writer is the one of
 * the example, or verbs. See append.h.
 */

#include "append.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librpma.h>

#include "../../examples/32-log/log.h"
#include "bench.h"

#define RECORD	   64
#define TIMEOUT_MS 10000

/* ------------------------------------------------------- the example --- */

static struct log *the_log;

static void open_log_at(const char *address, int port)
{
	static char ports[REPLICAS][16];
	struct log_cfg cfg = {.replicas = REPLICAS};
	int i;

	for (i = 0; i < REPLICAS; i++) {
		snprintf(ports[i], sizeof(ports[i]), "%d", port + i);
		cfg.addresses[i] = address;
		cfg.ports[i] = ports[i];
	}
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL);
	if (log_open(&cfg, TIMEOUT_MS, &the_log) != LOG_OK)
		bench_fail("log_open");
}

static bool append_log(const void *data, uint32_t len)
{
	int ret = log_append(the_log, data, len);

	if (ret != LOG_OK && ret != LOG_FULL)
		bench_fail("log_append");
	return ret == LOG_OK;
}

static uint64_t end_of_log(void)
{
	return log_end(the_log);
}

static uint64_t acknowledged_of_log(void)
{
	return log_acknowledged(the_log);
}

static void turn_log(void)
{
	if (log_wait(the_log, log_acknowledged(the_log) + 1, TIMEOUT_MS) !=
	    LOG_OK)
		bench_fail("log_wait");
}

static const struct append_way append_log_way = {
	open_log_at, append_log, end_of_log, acknowledged_of_log, turn_log};

/* -------------------------------------------------------------- both --- */

int main(int argc, char **argv)
{
	const struct append_way *way = &append_log_way;
	uint64_t first, size = 0, depth;
	char record[RECORD];
	double begin, seconds;
	bool is_full = false;

	if (argc != 6)
		return 2;
	if (strcmp(argv[1], "bare") == 0)
		way = &append_bare;
	depth = strtoull(argv[2], NULL, 10);
	if (depth < 1 || depth > DEPTH_MAX)
		return 2;
	seconds = atof(argv[3]);
	way->open(argv[4], atoi(argv[5]));
	memset(record, 'x', sizeof(record));
	begin = bench_now();
	first = way->end();
	while (!is_full && bench_now() < begin + seconds) {
		is_full = !way->append(record, sizeof(record));
		if (size == 0)
			size = way->end() - first;
		while (way->end() - way->acknowledged() >= depth * size)
			way->turn();
	}
	while (way->acknowledged() < way->end())
		way->turn();
	bench_report("append",
		     (double)((way->acknowledged() - first) / size) /
			     (bench_now() - begin) / 1e3,
		     "kops/s");
	return 0;
}
