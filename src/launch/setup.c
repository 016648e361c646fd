/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* setup.c -- see setup.h. */

#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

#define FAULT "RPMA_LOOPBACK_FAULT"
#define PMEM  "RPMA_LOOPBACK_PMEM"

/* Runtimes that must come before every other library. */
static const char *const sanitizers[] = {"libasan.so.", "libhwasan.so.",
					 "liblsan.so.", "libtsan.so."};

void setup_set(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return;
	say_errno("cannot set %s", name);
	exit(125);
}

static char *setup_join(const char *a, const char *b, char between)
{
	char *text;

	if (asprintf(&text, "%s%c%s", a, between, b) >= 0)
		return text;
	say_text("no memory");
	exit(125);
}

/*
 * Sets name=value, or adds value to the list in name: before:value, or
 * value:behind.
 */
static void setup_set_list(const char *name, const char *value, bool ahead)
{
	const char *now = getenv(name);
	char *list;

	if (!now || !*now) {
		setup_set(name, value);
		return;
	}
	list = ahead ? setup_join(value, now, ':')
		     : setup_join(now, value, ':');
	setup_set(name, list);
	free(list);
}

/*
 * Returns true if the list in name, split at the bytes of between, has value.
 */
static bool setup_is_listed(const char *name, const char *value,
			    const char *between)
{
	const char *list = getenv(name);
	size_t len = strlen(value);

	while (list && *list) {
		size_t n = strcspn(list, between);

		if (n == len && !memcmp(list, value, len))
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

static void setup_preload_sanitizer(const struct elf_file *program)
{
	const char *needed;
	size_t i;

	for (i = 0; i < sizeof(sanitizers) / sizeof(*sanitizers); i++) {
		needed = elf_file_needs(program, sanitizers[i]);
		if (needed && !setup_is_listed("LD_PRELOAD", needed, ": "))
			setup_set_list("LD_PRELOAD", needed, true);
	}
}

int setup_environment(const struct setup *setup, const struct place *place,
		      const struct elf_file *program)
{
	bool has_blank = strchr(place->device, ' ');
	const char *device = has_blank ? PLACE_DEVICE : place->device;
	const char *files = has_blank ? PLACE_FILES : place->files;

	if (strpbrk(place->device, ":;$\n")) {
		say_text("%s: the dynamic loader takes no path with : ; $ or a "
			 "newline; move the installation",
			 place->device);
		return -1;
	}
	if (program)
		setup_preload_sanitizer(program);
	/* a blank ends a name in LD_PRELOAD, but not in LD_LIBRARY_PATH */
	if (has_blank && !setup_is_listed("LD_LIBRARY_PATH", place->dir, ":;"))
		setup_set_list("LD_LIBRARY_PATH", place->dir, true);
	if (!setup_is_listed("LD_PRELOAD", device, ": "))
		setup_set_list("LD_PRELOAD", device, false);
	if (!setup_is_listed("LD_PRELOAD", files, ": "))
		setup_set_list("LD_PRELOAD", files, false);
	if (setup->replace)
		setup_set_list("LD_LIBRARY_PATH", place->replacements, true);
	return 0;
}

/* Adds to the values of earlier options; the initial value of the variable does
 * not count. */
static void setup_add(const char *name, const char *value, char between,
		      bool *is_begun)
{
	char *list;

	if (!*is_begun) {
		setup_set(name, value);
	} else {
		list = setup_join(getenv(name), value, between);
		setup_set(name, list);
		free(list);
	}
	*is_begun = true;
}

void setup_add_fault(const char *rules)
{
	static bool is_begun;

	setup_add(FAULT, rules, ';', &is_begun);
}

void setup_add_pmem(const char *path)
{
	static bool is_begun;
	char *here, *full;

	if (strchr(path, ':')) {
		say_text("--pmem %s: a colon separates paths", path);
		exit(125);
	}
	if (*path == '/') {
		setup_add(PMEM, path, ':', &is_begun);
		return;
	}
	here = getcwd(NULL, 0);
	if (!here) {
		say_errno("cannot find the working directory");
		exit(125);
	}
	full = setup_join(here, path, '/');
	setup_add(PMEM, full, ':', &is_begun);
	free(full);
	free(here);
}
