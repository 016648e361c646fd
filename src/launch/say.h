/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * say.h -- prints messages of the launcher to stderr, a line per call.
 */

#ifndef LAUNCH_SAY_H
#define LAUNCH_SAY_H

void say_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints a message, followed by the text of errno. */
void say_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCH_SAY_H */
