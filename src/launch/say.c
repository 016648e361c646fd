/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* say.c -- see say.h. */

#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say_line(const char *fmt, va_list ap, const char *why)
{
	fputs("rpma-loopback: ", stderr);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "%s%s\n", why ? ": " : "", why ? why : "");
}

void say_text(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(fmt, ap, NULL);
	va_end(ap);
}

void say_errno(const char *fmt, ...)
{
	const char *why = strerror(errno);
	va_list ap;

	va_start(ap, fmt);
	say_line(fmt, ap, why);
	va_end(ap);
}
