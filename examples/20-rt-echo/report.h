/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * report.h: prints the report on stdout. Thread: main.
 */

#ifndef ECHO_REPORT_H
#define ECHO_REPORT_H

#include "end.h"

/*
 * Prints the changes since the last call, if there are any; called once a
 * second.
 */
void report_interval(struct end *end);
/* Prints the table, and the line for scripts. After end_join() and before
 * end_fini(). */
void report_end(const struct end *end);
/*
 * Returns true if a counter that must be zero is not zero, or if the end
 * failed.
 */
bool report_is_bad(const struct end *end);

#endif /* ECHO_REPORT_H */
