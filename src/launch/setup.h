/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * setup.h -- the options of the launcher, and the environment for the program.
 */

#ifndef LAUNCH_SETUP_H
#define LAUNCH_SETUP_H

#include <stdbool.h>

#include "elf_file.h"
#include "place.h"

struct setup {
	bool check;	/* only say whether the device applies */
	bool stats;	/* stay beside the program, and print */
	bool replace;	/* libibverbs.so.1 and librdmacm.so.1 too */
	char **command; /* with arguments */
};

/*
 * Sets LD_PRELOAD and, with replace, LD_LIBRARY_PATH for the program; program
 * may be NULL. Libraries that were preloaded before stay, ahead of the device;
 * the runtime of a sanitizer that the program links to comes first. Returns 0,
 * or -1 after an error message.
 */
int setup_environment(const struct setup *setup, const struct place *place,
		      const struct elf_file *program);

/* Sets a variable of the device; exits if there is no memory. */
void setup_set(const char *name, const char *value);

/* Adds rules to the rules added before, with a semicolon between. */
void setup_add_fault(const char *rules);

/* Adds a path to the paths added before, behind the working directory. */
void setup_add_pmem(const char *path);

#endif /* LAUNCH_SETUP_H */
