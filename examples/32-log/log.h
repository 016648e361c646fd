/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.h: the writer of a replicated log. Thread: one at a time; the log works
 * only inside these calls.
 *
 * A position is a number of bytes: the end of a record says how much of the
 * log is needed for the record.
 */

#ifndef LOG_H
#define LOG_H

#include <stdint.h>

#define LOG_MAX_REPLICAS 9

enum log_status {
	LOG_OK = 0,
	LOG_LATE = -1,	/* the time passed; the records may be there later */
	LOG_FULL = -2,	/* no room for the record */
	LOG_TAKEN = -3, /* the log has another writer */
	LOG_FAILED = -4 /* stderr says why */
};

struct log_cfg {
	int replicas; /* the quorum is more than half */
	const char *addresses[LOG_MAX_REPLICAS];
	const char *ports[LOG_MAX_REPLICAS];
};

struct log;

/* Takes the log over from any earlier writer. Returns when a quorum has every
 * record of the log, or LATE, FAILED. */
int log_open(const struct log_cfg *cfg, int timeout_ms, struct log **log_ptr);
void log_close(struct log **log_ptr);
/* Copies a record to the end of the log, and posts what can be posted. Never
 * waits. Returns OK, FULL or TAKEN. */
int log_append(struct log *log, const void *data, uint32_t len);
/* Waits until all before the position is acknowledged, and connects again and
 * catches up on the way: with a position of 0 only that, once. Returns OK, LATE
 * or TAKEN. */
int log_wait(struct log *log, uint64_t position, int timeout_ms);
/* Returns the position behind the last record, or acknowledged record. */
uint64_t log_end(const struct log *log);
uint64_t log_acknowledged(const struct log *log);
/* Returns the data of the record at a position below log_end(), and moves the
 * position behind the record. */
const char *log_read(const struct log *log, uint64_t *position, uint32_t *len);

#endif /* LOG_H */
