/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * target.h -- finds the file that a command starts: in PATH, like execvp(), and
 * the interpreter of a script.
 */

#ifndef LAUNCH_TARGET_H
#define LAUNCH_TARGET_H

#include <limits.h>

enum target_kind {
	TARGET_FILE,	       /* an executable file */
	TARGET_NOT_FOUND,      /* no file of the name */
	TARGET_NOT_EXECUTABLE, /* a file that cannot be executed */
};

/* Finds the file of cmd; path is set unless no file of the name exists. */
enum target_kind target_find(const char *cmd, char path[PATH_MAX]);

/*
 * Finds the command that executes a file, if the file needs an interpreter:
 * /bin/sh for "#!/bin/sh", prog for "#!/usr/bin/env prog", and /bin/sh for a
 * file that is neither ELF nor a script, like execvp(). Returns 1 with
 * interpreter set, 0 for an ELF file, or -1 with errno if the file cannot be
 * read.
 */
int target_interpreter(const char *path, char interpreter[PATH_MAX]);

#endif /* LAUNCH_TARGET_H */
