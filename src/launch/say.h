/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * say.h -- what the launcher writes to stderr, one line a call.
 */

#ifndef LAUNCH_SAY_H
#define LAUNCH_SAY_H

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same, with the words of errno behind it. */
void say_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LAUNCH_SAY_H */
