/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* log.c -- see log.h. Any thread, without a lock. */

#include "base/log.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/limit.h"

#define MESSAGE_MAX 1024

void rt_log_at(uint64_t now_ns, const struct rt_log_place *place,
	       enum rpma_log_level level, const char *format, va_list args)
{
	enum rpma_log_level threshold = RPMA_LOG_DISABLED;
	char message[MESSAGE_MAX];
	char count[64] = "";
	uint32_t left_out;
	bool is_last;

	/* what nobody sees is not counted */
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
