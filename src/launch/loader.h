/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loader.h -- asks the dynamic loader of a program which libraries would be
 * loaded in the present environment; no code of the program is executed.
 */

#ifndef LAUNCH_LOADER_H
#define LAUNCH_LOADER_H

#include <limits.h>
#include <stdbool.h>

#define LOADER_TEXT 65536

struct loader_answer {
	bool is_good;		/* everything can be loaded */
	char text[LOADER_TEXT]; /* the output of the loader */
};

/* Runs the loader. Returns 0, or -1 with errno. */
int loader_ask(const char *loader, const char *program,
	       struct loader_answer *answer);

/*
 * Copies the first line with the text into line; returns false without such a
 * line.
 */
bool loader_line(const struct loader_answer *answer, const char *text,
		 char line[PATH_MAX]);

/*
 * Finds the file that the loader takes for a library; returns false if there is
 * none.
 */
bool loader_file(const struct loader_answer *answer, const char *library,
		 char path[PATH_MAX]);

#endif /* LAUNCH_LOADER_H */
