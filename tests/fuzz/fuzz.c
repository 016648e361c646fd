/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See fuzz.h. */

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

void fuzz_found(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

/* A wrong argument of a message is a finding too. */
static void format(enum rpma_log_level level, const char *file_name,
		   const int line_no, const char *function_name,
		   const char *message_format, ...)
{
	char text[1024];
	va_list args;

	(void)level;
	(void)line_no;
	expect(file_name && function_name);
	va_start(args, message_format);
	expect(vsnprintf(text, sizeof(text), message_format, args) >= 0);
	va_end(args);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	expect(rpma_log_set_function(format) == 0);
	expect(rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
				      RPMA_LOG_LEVEL_DEBUG) == 0);
	return 0;
}
