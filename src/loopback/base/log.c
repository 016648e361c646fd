/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.c -- what the device writes to stderr: what happened, as far as the log
 * level wants to know, and what the application did wrong. Any thread, with
 * locks held or without: a line never waits for a reader of stderr for long.
 */

#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cancel.h"
#include "base/process.h"
#include "rpma_loopback.h"

#define PATIENCE_MS 1000

static _Atomic uint64_t misuses;

/*
 * Returns true if stderr, perhaps a pipe, has room for a line. A reader has a
 * second to make room; the lines after are lost at once, until there is room: a
 * process whose stderr nobody reads goes on.
 */
static bool log_has_room(void)
{
	static _Atomic bool was_full;
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	bool is_full;

	/* relaxed, both: a hint, how long to wait */
	is_full = !poll(&room, 1,
			atomic_load_explicit(&was_full, memory_order_relaxed)
				? 0
				: PATIENCE_MS);
	atomic_store_explicit(&was_full, is_full, memory_order_relaxed);
	return !is_full;
}

static void say(const char *what, const char *fmt, va_list ap)
{
	LB_NOT_CANCELLED;
	char text[512];
	size_t most = sizeof(text) - 1; /* leaves room for the newline */
	size_t n = (size_t)snprintf(text, most, "loopback: %s", what);

	n += (size_t)vsnprintf(text + n, most - n, fmt, ap);
	if (n > most - 1)
		n = most - 1;
	text[n++] = '\n';
	/* one write, so that lines of several threads do not mix; without the
	 * lock of stderr, which a waiting thread of the program may hold; and
	 * without memory, because a signal handler prints, too */
	if (log_has_room())
		(void)!write(STDERR_FILENO, text, n);
}

void lb_log(int level, const char *fmt, ...)
{
	va_list ap;

	/* relaxed: an option */
	if (level > atomic_load_explicit(&lb.log, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

int lb_log_refuse(int err, const char *fmt, ...)
{
	va_list ap;

	/* relaxed: an option */
	if (atomic_load_explicit(&lb.log, memory_order_relaxed) < 2)
		return err;
	va_start(ap, fmt);
	say("refused: ", fmt, ap);
	va_end(ap);
	return err;
}

void lb_log_failure(const char *verb, int err)
{
	if (err != EAGAIN) /* nothing is there yet */
		lb_log(2, "%s() fails: %s", verb, strerror(err));
}

int lb_log_refuse_verb(const char *verb)
{
	return lb_error(
		lb_log_refuse(EOPNOTSUPP, "%s(): not on this device", verb));
}

void lb_log_misuse(const char *fmt, ...)
{
	va_list ap;
	/* relaxed: an option, and a counter */
	int strict = atomic_load_explicit(&lb.strict, memory_order_relaxed);

	if (strict == RPMA_LOOPBACK_STRICT_OFF)
		return;
	atomic_fetch_add_explicit(&misuses, 1, memory_order_relaxed);
	va_start(ap, fmt);
	say("misuse: ", fmt, ap);
	va_end(ap);
	if (strict == RPMA_LOOPBACK_STRICT_ABORT)
		abort();
}

uint64_t lb_log_misuse_count(void)
{
	/* relaxed: a counter */
	return atomic_load_explicit(&misuses, memory_order_relaxed);
}
