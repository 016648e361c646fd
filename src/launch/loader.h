/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loader.h -- asks the dynamic loader of a program what it would load, with the
 * environment as it is; nothing of the program is executed.
 */

#ifndef LAUNCH_LOADER_H
#define LAUNCH_LOADER_H

#include <limits.h>
#include <stdbool.h>

#define LOADER_TEXT 65536

struct loader_answer {
	bool is_good;		/* it would load everything */
	char text[LOADER_TEXT]; /* all that it said */
};

/* Returns 0, or -1 with errno. */
int loader_ask(const char *loader, const char *program,
	       struct loader_answer *answer);

/* The first line with this text, into line; false if there is none. */
bool loader_line(const struct loader_answer *answer, const char *text,
		 char line[PATH_MAX]);

/* Which file it takes for a library; false if for none. */
bool loader_file(const struct loader_answer *answer, const char *library,
		 char path[PATH_MAX]);

#endif /* LAUNCH_LOADER_H */
