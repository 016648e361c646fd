/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * check.h -- finds out whether the device applies to a command, and says why
 * not.
 */

#ifndef LAUNCH_CHECK_H
#define LAUNCH_CHECK_H

#include <stdio.h>

#include "elf_file.h"
#include "place.h"
#include "setup.h"

/* The exit status of --check. */
enum check_verdict {
	CHECK_APPLIES = 0,
	CHECK_DOES_NOT = 1,
	CHECK_NEEDS_NONE = 2, /* the device would apply, but the program loads
			       * no RDMA library */
	CHECK_FAILED = 125,   /* the launcher itself failed */
	CHECK_NOT_EXECUTABLE = 126,
	CHECK_NOT_FOUND = 127,
};

/* The command under examination, and the results so far. */
struct check {
	const struct setup *setup;
	const struct place *place;
	struct elf_file device;
	struct elf_file program; /* the last file examined */
	char path[PATH_MAX];	 /* path of the last file examined */
	/* where the reason goes; NULL: to stderr, and only if the device does
	 * not apply */
	FILE *out;
};

/*
 * Checks the files only. Returns CHECK_APPLIES unless a file shows that the
 * device cannot apply. For a script, check->program and ->path are set to the
 * interpreter.
 */
enum check_verdict check_files(struct check *check, const char *command);

/* Asks the dynamic loader, after setup_environment(): the rest of the check. */
enum check_verdict check_loading(struct check *check);

#endif /* LAUNCH_CHECK_H */
