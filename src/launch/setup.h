/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * setup.h -- what the options ask for, and the environment that follows from
 * it.
 */

#ifndef LAUNCH_SETUP_H
#define LAUNCH_SETUP_H

#include <stdbool.h>

#include "elf_file.h"
#include "place.h"

struct setup {
	bool check;	/* only say whether the device applies */
	bool replace;	/* libibverbs.so.1 and librdmacm.so.1 too */
	char **command; /* with its arguments */
};

/*
 * Set LD_PRELOAD and, with replace, LD_LIBRARY_PATH for the program, which may
 * be NULL. What was preloaded stays, ahead of the device; a sanitizer's runtime
 * that the program links to comes first of all. Returns 0, or -1 after it has
 * said what is wrong.
 */
int setup_environment(const struct setup *setup, const struct place *place,
		      const struct elf_file *program);

/* The same for a variable of the device; it exits if there is no memory. */
void setup_set(const char *name, const char *value);

/* Add rules to those that were given before, with a semicolon. */
void setup_add_fault(const char *rules);

#endif /* LAUNCH_SETUP_H */
