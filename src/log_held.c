/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Messages held back until their thread has released its locks: each thread has
 * a list. A held message costs an allocation; messages without memory are
 * counted.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

struct message {
	struct message *next;
	enum rpma_log_level level;
	int line;
	const char *file;
	const char *function;
	char text[];
};

static _Thread_local struct {
	unsigned depth; /* of open pairs of hold and release */
	unsigned lost;
	struct message *first;
	struct message *last;
} held;

bool rpma__log_is_held(void)
{
	return held.depth != 0;
}

static void append(struct message *message)
{
	message->next = NULL;
	if (held.first == NULL)
		held.first = message;
	else
		held.last->next = message;
	held.last = message;
}

void rpma__log_keep(enum rpma_log_level level, const char *file_name,
		    const int line_no, const char *function_name,
		    const char *message_format, ...)
{
	struct message *message = NULL;
	char text[RPMA__LOG_MESSAGE_MAX + 1]; /* with the newline */
	va_list args;
	size_t size;

	va_start(args, message_format);
	if (vsnprintf(text, sizeof(text), message_format, args) >= 0) {
		size = strlen(text) + 1;
		message = malloc(sizeof(*message) + size);
	}
	va_end(args);
	if (message == NULL) {
		held.lost++;
		return;
	}
	message->level = level;
	message->line = line_no;
	message->file = file_name;
	message->function = function_name;
	memcpy(message->text, text, size);
	append(message);
}

void rpma_log_hold(void)
{
	held.depth++;
}

static void say(const struct message *message)
{
	rpma__log_function *log_function =
		rpma__log_function_for(message->level);

	if (log_function)
		log_function(message->level, message->file, message->line,
			     message->function, "%s", message->text);
}

void rpma_log_release(void)
{
	RPMA_NOT_CANCELLED;
	struct message *message = held.first;
	unsigned lost = held.lost;
	int err = errno; /* of a call that failed meanwhile */
	struct message *next;

	if (held.depth == 0 || --held.depth > 0)
		return;
	/* the log function may log, and hold messages, too */
	held.first = NULL;
	held.lost = 0;
	for (; message; message = next) {
		next = message->next;
		say(message);
		free(message);
	}
	if (lost > 0)
		RPMA_LOG_ERROR("no memory for %u messages of the log", lost);
	errno = err;
}
