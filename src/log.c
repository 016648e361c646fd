/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Log control: two thresholds and a function for the whole process. Any thread
 * sets and reads the settings at any time; no lock is taken. The environment
 * may raise the initial settings when the library is loaded.
 */

#include "log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "log_default.h"
#include "log_held.h"

static _Atomic(rpma_log_function *) function = rpma__log_default;

static bool log_is_threshold(enum rpma_log_threshold threshold)
{
	return (unsigned)threshold < RPMA_LOG_THRESHOLD_MAX;
}

rpma__log_function *rpma__log_get_function(void)
{
	if (rpma__log_held_is_open())
		return rpma__log_held_keep;
	/* acquire: the data that the setter prepared; pairs with the release in
	 * the setter */
	return atomic_load_explicit(&function, memory_order_acquire);
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level level)
{
	if (!log_is_threshold(threshold) || (int)level < RPMA_LOG_DISABLED ||
	    (int)level > RPMA_LOG_LEVEL_DEBUG)
		return RPMA_REFUSE(
			RPMA_E_INVAL,
			"threshold or level is not a value of the header");

	rpma__log_threshold_set(threshold, (int)level);
	return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level *level)
{
	if (!log_is_threshold(threshold) || level == NULL)
		return RPMA_REFUSE_NULL(
			RPMA_E_INVAL, "threshold is not a value of the header",
			level);

	*level = (enum rpma_log_level)rpma__log_threshold_get(threshold);
	return 0;
}

int rpma_log_set_function(rpma_log_function *log_function)
{
	if (log_function == RPMA_LOG_USE_DEFAULT_FUNCTION)
		log_function = rpma__log_default;

	/* release: pairs with the acquire in rpma__log_get_function */
	atomic_store_explicit(&function, log_function, memory_order_release);
	return 0;
}

void rpma_log_message(enum rpma_log_level level, const char *file_name,
		      int line_no, const char *function_name,
		      const char *message_format, ...)
{
	rpma__log_function *log_function;
	char message[RPMA__LOG_MESSAGE_MAX];
	int err = errno; /* callers may read errno after logging an error */
	va_list args;
	int len;

	if ((int)level < RPMA_LOG_LEVEL_FATAL ||
	    (int)level > RPMA_LOG_LEVEL_DEBUG || message_format == NULL)
		return;
	log_function = rpma__log_function_for(level);
	if (log_function == NULL)
		return;

	va_start(args, message_format);
	len = vsnprintf(message, sizeof(message), message_format, args);
	va_end(args);
	if (len >= 0) {
		RPMA_NOT_CANCELLED;

		log_function(level, file_name, line_no, function_name, "%s\n",
			     message);
	}
	errno = err;
}

/* ------------------------------------------------------- held messages --- */

void rpma_log_hold(void)
{
	rpma__log_held_begin();
}

static void log_held_message(const struct rpma__log_held *message)
{
	rpma__log_function *log_function =
		rpma__log_function_for(message->level);

	if (log_function)
		log_function(message->level, message->file, message->line,
			     message->function, "%s\n", message->text);
}

void rpma_log_release(void)
{
	RPMA_NOT_CANCELLED;
	struct rpma__log_held *message, *next;
	int err = errno; /* of a call that failed meanwhile */
	unsigned lost;

	/* the log function may log, and hold messages, too */
	message = rpma__log_held_end(&lost);
	for (; message; message = next) {
		next = message->next;
		log_held_message(message);
		free(message);
	}
	if (lost > 0)
		RPMA_LOG_ERROR("no memory for %u messages of the log", lost);
	errno = err;
}

/* ------------------------------------------------------------ refusals --- */

void rpma__log_refuse(const char *file, int line, const char *function,
		      const char *words)
{
	rpma_log_message(RPMA_LOG_LEVEL_ERROR, file, line, function, "%s",
			 words);
}

void rpma__log_refuse_null(const char *file, int line, const char *function,
			   int err, const char *words, const char *names,
			   const void *const *pointers)
{
	int len;

	if (err != RPMA_E_INVAL)
		return;
	for (; *names; names += len + (names[len] ? 2 : 0), pointers++) {
		len = (int)strcspn(names, ",");
		if (*pointers != NULL)
			continue;
		rpma_log_message(RPMA_LOG_LEVEL_ERROR, file, line, function,
				 "%.*s is NULL", len, names);
		return;
	}
	rpma__log_refuse(file, line, function, words);
}

/* --------------------------------------------------------- environment --- */

static const char *const level_names[] = {
	[RPMA_LOG_LEVEL_FATAL] = "fatal",
	[RPMA_LOG_LEVEL_ERROR] = "error",
	[RPMA_LOG_LEVEL_WARNING] = "warning",
	[RPMA_LOG_LEVEL_NOTICE] = "notice",
	[RPMA_LOG_LEVEL_INFO] = "info",
	[RPMA_LOG_LEVEL_DEBUG] = "debug",
};

/* Reads RPMA_LOG=level: messages of at least this level pass, and go to stderr.
 * The program may set other thresholds afterwards. */
__attribute__((constructor)) static void log_read_environment(void)
{
	/* not in a setuid program: the user who starts it must not read its
	 * log */
	const char *value = secure_getenv("RPMA_LOG");
	int level = RPMA_LOG_LEVEL_FATAL;

	if (value == NULL || value[0] == '\0')
		return;
	while (level <= RPMA_LOG_LEVEL_DEBUG &&
	       strcmp(value, level_names[level]) != 0)
		level++;
	if (level > RPMA_LOG_LEVEL_DEBUG) {
		RPMA_LOG_ERROR("RPMA_LOG is \"%s\" and may be fatal, error, "
			       "warning, notice, info or debug",
			       value);
		return;
	}
	rpma__log_threshold_raise(level);
}
