/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * report.h: prints the report on stdout. Thread: main.
 */

#ifndef ECHO_REPORT_H
#define ECHO_REPORT_H

#include "end.h"

/* Once a second: what happened since the last time, if anything did. */
void report_interval(struct end *end);
/* The table, and the line for scripts. After end_join() and before
 * end_fini(). */
void report_end(const struct end *end);
/* Whether any of what must be zero is not, or the end failed. */
bool report_is_bad(const struct end *end);

#endif /* ECHO_REPORT_H */
