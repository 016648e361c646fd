/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * target.h -- which file a command starts: found in PATH as execvp() does, and
 * for a script the interpreter behind it.
 */

#ifndef LAUNCH_TARGET_H
#define LAUNCH_TARGET_H

#include <limits.h>

enum target_kind {
	TARGET_FILE,	       /* an executable file */
	TARGET_NOT_FOUND,      /* there is none */
	TARGET_NOT_EXECUTABLE, /* there is one, which cannot be executed */
};

/* The file of cmd, in path unless there is none of that name at all. */
enum target_kind target_find(const char *cmd, char path[PATH_MAX]);

/*
 * If the file is executed by another one, the command that does, into
 * interpreter: of "#!/bin/sh" /bin/sh, of "#!/usr/bin/env prog" prog, of what
 * is neither ELF nor a script /bin/sh, for execvp() starts that. Returns 1
 * then, 0 if the file is ELF, -1 with errno if it cannot be read.
 */
int target_interpreter(const char *path, char interpreter[PATH_MAX]);

#endif /* LAUNCH_TARGET_H */
