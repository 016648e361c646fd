/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.c -- messages, and reasons of refused calls; see log.h. Any thread,
 * without a lock.
 */

#include "base/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rpma_rt.h"
#include "base/clock.h"

/* ------------------------------------------------------------------ log --- */

#define MESSAGE_MAX 1024

void rt_log_at(uint64_t now_ns, const struct rt_log_place *place,
	       enum rpma_log_level level, const char *format, va_list args)
{
	enum rpma_log_level threshold = RPMA_LOG_DISABLED;
	char message[MESSAGE_MAX];
	char count[64] = "";
	uint32_t left_out;
	bool is_last;

	/* messages below the threshold do not count */
	rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &threshold);
	if ((int)level > (int)threshold ||
	    !rt_limit_pass(now_ns, place->file, place->line, &left_out,
			   &is_last))
		return;
	if (left_out > 0)
		snprintf(count, sizeof(count),
			 " (%u like it were left out before)", left_out);
	else if (is_last)
		snprintf(count, sizeof(count),
			 " (others within this second are counted only)");
	if (vsnprintf(message, sizeof(message), format, args) >= 0)
		rpma_log_message(level, place->file, place->line,
				 place->function, "%s%s", message, count);
}

void rt_log(const struct rt_log_place *place, enum rpma_log_level level,
	    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	rt_log_at(rt_now_ns(), place, level, format, args);
	va_end(args);
}

/* --------------------------------------------------------------- refuse --- */

/* reason why the calling thread's call will be refused; words NULL: no note */
static _Thread_local struct {
	const char *words;
	const char *more; /* text behind the words, or NULL */
	long number;
	int err;
	bool is_system; /* words: name of a system call; number: the errno */
} note;

static enum rpma_log_level refuse_level_of(int err)
{
	return err == RPMA_RT_E_CLOSED ? RPMA_LOG_LEVEL_INFO
				       : RPMA_LOG_LEVEL_ERROR;
}

int rt_refuse(const struct rt_log_place *place, int err, const char *format,
	      ...)
{
	va_list args;

	va_start(args, format);
	rt_log_at(rt_now_ns(), place, refuse_level_of(err), format, args);
	va_end(args);
	return err;
}

/* Finds the nth name of a list "a, b, c". */
static const char *refuse_name_of(const char *names, size_t nth, int *len)
{
	while (nth-- > 0)
		names = strchr(names, ',') + 2;
	*len = (int)strcspn(names, ",");
	return names;
}

int rt_refuse_null_at(const struct rt_log_place *place, const char *names,
		      size_t nth)
{
	int len;
	const char *name = refuse_name_of(names, nth, &len);
	bool is_conn = len == (int)strlen("conn") &&
		       strncmp(name, "conn", (size_t)len) == 0;

	return rt_refuse(
		place, RPMA_E_INVAL, "%.*s is NULL%s", len, name,
		is_conn ? ": rpma_rt_completion_conn() has the "
			  "connection of an event and of WRITABLE, but "
			  "the completion of a work request has none; "
			  "there user names the connection, if the "
			  "program set user "
			  "(rpma_rt_conn_set_user())"
			: "");
}

/* ---------------------------------------------------- noted, then said --- */

int rt_refuse_later(int err, const char *words, long number)
{
	note.words = words;
	note.more = NULL;
	note.number = number;
	note.err = err;
	note.is_system = false;
	return err;
}

int rt_refuse_wr(int err, int index, const char *fault)
{
	rt_refuse_later(err, "work request %ld of the call ", index);
	note.more = fault;
	return err;
}

int rt_refuse_system(const char *name)
{
	rt_refuse_later(RPMA_E_PROVIDER, name, errno);
	note.is_system = true;
	return RPMA_E_PROVIDER;
}

void rt_refuse_forget(void)
{
	note.words = NULL;
}

static void log_note(const struct rt_log_place *place, const char *what)
{
	char words[256];

	errno = (int)note.number;
	if (note.is_system)
		snprintf(words, sizeof(words), "%s() failed: %m", note.words);
	else
		snprintf(words, sizeof(words), note.words, note.number);
	rt_refuse(place, note.err, "%s: %s%s", what, words,
		  note.more ? note.more : "");
}

int rt_refuse_finish_at(const struct rt_log_place *place, int ret,
			const char *what)
{
	if (note.words != NULL && note.err == ret)
		log_note(place, what);
	else if (ret == RPMA_E_NOMEM)
		rt_refuse(place, ret, "%s: no memory, or no room is left",
			  what);
	else if (ret == RPMA_RT_E_BUSY)
		rt_refuse(place, ret,
			  "%s: the queue's consumer is behind: poll the queue, "
			  "then call again",
			  what);
	else if (ret == RPMA_RT_E_CLOSED)
		rt_refuse(place, ret,
			  "%s: the connection, the queue or the runtime is "
			  "closed or closing",
			  what);
	rt_refuse_forget();
	return ret;
}

/* ----------------------------------------------------------------- want --- */

_Thread_local enum rpma_rt_again rt_want_reason;

enum rpma_rt_again rpma_rt_again_reason(void)
{
	return rt_want_reason;
}
