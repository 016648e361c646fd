/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * append.h -- a writer of the replicated log for bench_append: REPLICAS
 * replicas of examples/32-log at the ports PORT, PORT + 1, and so on.
 */

#ifndef BENCH_APPEND_H
#define BENCH_APPEND_H

#include <stdbool.h>
#include <stdint.h>

#define REPLICAS  3
#define DEPTH_MAX 32

struct append_way {
	void (*open)(const char *address, int port);
	/* Appends a record; returns false when the log is full. */
	bool (*append)(const void *data, uint32_t len);
	/* Returns the position behind the last record, and behind the last
	 * record that two replicas have in persistent memory. */
	uint64_t (*end)(void);
	uint64_t (*acknowledged)(void);
	/* Takes what is complete; waits a while if nothing is. */
	void (*turn)(void);
};

extern const struct append_way append_bare; /* append_bare.c */

#endif /* BENCH_APPEND_H */
