/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Messages held back until their thread has released its locks. The list
 * belongs to the calling thread.
 */

#ifndef RPMA_LOG_HELD_H
#define RPMA_LOG_HELD_H 1

#include <stdbool.h>

#include "librpma.h"

struct rpma__log_held {
	struct rpma__log_held *next;
	enum rpma_log_level level;
	int line;
	const char *file;
	const char *function;
	char text[]; /* without the newline */
};

/* Holds messages until the matching end; pairs may be nested. */
void rpma__log_held_begin(void);

/*
 * Ends holding. Returns the list of held messages, to be freed by the caller,
 * and sets *lost to the number of messages that had no memory. Returns NULL
 * while an outer pair is open.
 */
struct rpma__log_held *rpma__log_held_end(unsigned *lost);

/* Returns true between begin and end. */
bool rpma__log_held_is_open(void);

/* Keeps the message in the list; a log function. */
void rpma__log_held_keep(enum rpma_log_level level, const char *file_name,
			 const int line_no, const char *function_name,
			 const char *message_format, ...)
	__attribute__((format(printf, 5, 6)));

#endif /* RPMA_LOG_HELD_H */
