/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Messages held back until their thread has released its locks: each thread has
 * a list. A held message costs an allocation; messages without memory are
 * counted.
 */

#include "log_held.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static _Thread_local struct {
	unsigned depth; /* of open pairs of hold and release */
	unsigned lost;
	struct rpma__log_held *first;
	struct rpma__log_held *last;
} held;

bool rpma__log_held_is_open(void)
{
	return held.depth != 0;
}

static void log_held_append(struct rpma__log_held *message)
{
	message->next = NULL;
	if (held.first == NULL)
		held.first = message;
	else
		held.last->next = message;
	held.last = message;
}

void rpma__log_held_keep(enum rpma_log_level level, const char *file_name,
			 const int line_no, const char *function_name,
			 const char *message_format, ...)
{
	struct rpma__log_held *message = NULL;
	char text[RPMA__LOG_MESSAGE_MAX + 1]; /* with the newline */
	va_list args;
	size_t size;

	va_start(args, message_format);
	if (vsnprintf(text, sizeof(text), message_format, args) > 0) {
		size = strlen(text);
		text[size - 1] = '\0'; /* the newline, or the end of a cut */
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
	log_held_append(message);
}

void rpma__log_held_begin(void)
{
	held.depth++;
}

struct rpma__log_held *rpma__log_held_end(unsigned *lost)
{
	struct rpma__log_held *first = held.first;

	*lost = 0;
	if (held.depth == 0 || --held.depth > 0)
		return NULL;
	*lost = held.lost;
	held.first = NULL;
	held.lost = 0;
	return first;
}
