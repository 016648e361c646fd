/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Log control: two thresholds and a function, process-wide. They are set and
 * read by any thread at any time; no lock is taken.
 */

#include "log.h"

#include <stdarg.h>

#include "log_default.h"

#define MESSAGE_MAX 1024

#ifdef DEBUG
#define DEFAULT_THRESHOLD     RPMA_LOG_LEVEL_DEBUG
#define DEFAULT_THRESHOLD_AUX RPMA_LOG_LEVEL_WARNING
#else
#define DEFAULT_THRESHOLD     RPMA_LOG_LEVEL_WARNING
#define DEFAULT_THRESHOLD_AUX RPMA_LOG_DISABLED
#endif

/* relaxed everywhere: a filter, no other memory depends on it */
_Atomic int rpma__log_thresholds[RPMA_LOG_THRESHOLD_MAX] = {
	[RPMA_LOG_THRESHOLD] = DEFAULT_THRESHOLD,
	[RPMA_LOG_THRESHOLD_AUX] = DEFAULT_THRESHOLD_AUX,
};

static _Atomic(rpma_log_function *) function = rpma__log_default;

static bool is_threshold(enum rpma_log_threshold threshold)
{
	return (unsigned)threshold < RPMA_LOG_THRESHOLD_MAX;
}

rpma__log_function *rpma__log_get_function(void)
{
	/* acquire: what its setter prepared; pairs with its release there */
	return atomic_load_explicit(&function, memory_order_acquire);
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level level)
{
	if (!is_threshold(threshold) || (int)level < RPMA_LOG_DISABLED ||
	    (int)level > RPMA_LOG_LEVEL_DEBUG)
		return RPMA_E_INVAL;

	/* relaxed: see rpma__log_thresholds */
	atomic_store_explicit(&rpma__log_thresholds[threshold], (int)level,
			      memory_order_relaxed);
	return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level *level)
{
	if (!is_threshold(threshold) || level == NULL)
		return RPMA_E_INVAL;

	/* relaxed: see rpma__log_thresholds */
	*level = atomic_load_explicit(&rpma__log_thresholds[threshold],
				      memory_order_relaxed);
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
	char message[MESSAGE_MAX];
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
	if (len >= 0)
		log_function(level, file_name, line_no, function_name, "%s\n",
			     message);
}
