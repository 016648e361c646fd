/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kinds.c -- see wrong.h: the kinds by name, and the list that the
 * judgement fills.
 */

#include "dump/wrong.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const names[RT_DUMP_KINDS] = {
	[RT_DUMP_QUEUE_NOT_POLLED] = "queue_not_polled",
	[RT_DUMP_WORKER_STUCK] = "worker_stuck",
	[RT_DUMP_FUNCTION_LONG] = "function_long",
	[RT_DUMP_POLLER_STUCK] = "poller_stuck",
	[RT_DUMP_POLLER_NOT_RUN] = "poller_not_run",
	[RT_DUMP_REQUEST_IGNORED] = "request_ignored",
	[RT_DUMP_CONNECT_MISSING] = "connect_missing",
	[RT_DUMP_NO_ANSWER] = "no_answer",
	[RT_DUMP_SEND_WAITS] = "send_waits",
	[RT_DUMP_RECEIVES_MISSING] = "receives_missing",
	[RT_DUMP_CREDIT_USED_UP] = "credit_used_up",
	[RT_DUMP_CLOSING_LONG] = "closing_long",
	[RT_DUMP_DELETE_BUSY] = "delete_busy",
	[RT_DUMP_SRQ_DRY] = "srq_dry",
	[RT_DUMP_POOL_DRY] = "pool_dry",
	[RT_DUMP_POOL_SHORT] = "pool_short",
	[RT_DUMP_LISTENER_REFUSES] = "listener_refuses",
	[RT_DUMP_CM_DEAF] = "cm_deaf",
};

const char *rt_dump_wrong_name(enum rt_dump_kind kind)
{
	return names[kind];
}

/* 0 is the time of a finding that needs no time. The time of a listener that
 * refuses is how long ago the listener did. */
static bool is_young(enum rt_dump_kind kind, uint32_t for_ms)
{
	return for_ms != 0 && for_ms < RT_DUMP_LONG_MS &&
	       kind != RT_DUMP_LISTENER_REFUSES;
}

void rt_dump_wrong_add(struct rt_dump *dump, enum rt_dump_kind kind,
		       const char *object, uint32_t for_ms, const char *format,
		       ...)
{
	struct rt_dump_findings *findings = is_young(kind, for_ms)
						    ? &dump->wrongs->young
						    : &dump->wrongs->old;
	struct rt_dump_wrong *wrong;
	va_list args;

	if (findings->counts[kind]++ >= RT_DUMP_EACH)
		return;
	wrong = &findings->list[findings->count++];
	wrong->kind = kind;
	wrong->for_ms = for_ms;
	snprintf(wrong->object, sizeof(wrong->object), "%s", object);
	va_start(args, format);
	vsnprintf(wrong->text, sizeof(wrong->text), format, args);
	va_end(args);
}
