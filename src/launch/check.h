/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * check.h -- does the device apply to a command? Said in words.
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
	CHECK_NEEDS_NONE = 2, /* it would apply, but nothing asks for it */
	CHECK_FAILED = 125,   /* of the launcher itself */
	CHECK_NOT_EXECUTABLE = 126,
	CHECK_NOT_FOUND = 127,
};

/* What is being looked at, and what was found out. */
struct check {
	const struct setup *setup;
	const struct place *place;
	struct elf_file device;
	struct elf_file program; /* of the last file that was looked at */
	char path[PATH_MAX];	 /* this file */
	/* where the words go; NULL: to stderr, and only if it does not apply */
	FILE *out;
};

/*
 * What can be told from files alone: CHECK_APPLIES unless something is against
 * it. check->program and ->path are those of the interpreter if it is a script.
 */
enum check_verdict check_files(struct check *check, const char *command);

/* The rest, behind setup_environment(): what the dynamic loader says. */
enum check_verdict check_loading(struct check *check);

#endif /* LAUNCH_CHECK_H */
