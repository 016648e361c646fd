/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See sweep.h. */

#include "sweep.h"

#include <stdio.h>
#include <string.h>

#define POISON	  0xa5
#define NAMES_MAX 512

/* literals, as the macros pass them */
static const char *called[NAMES_MAX];
static size_t called_count;

static bool was_called(const char *function)
{
	size_t i;

	for (i = 0; i < called_count; i++) {
		if (strcmp(called[i], function) == 0)
			return true;
	}
	return false;
}

void sweep_begin(const char *function)
{
	if (!was_called(function)) {
		assert_true(called_count < NAMES_MAX);
		called[called_count++] = function;
	}
	memset(sweep_ground.out, POISON, sweep_ground.out_size);
	sweep_ground.forget();
}

static bool is_untouched(void)
{
	const unsigned char *bytes = sweep_ground.out;
	size_t i;

	for (i = 0; i < sweep_ground.out_size; i++) {
		if (bytes[i] != POISON)
			return false;
	}
	return true;
}

void sweep_end(const char *function, int line, int ret, int expected)
{
	if (ret != expected)
		fail_msg("line %d: %s answers %s", line, function,
			 sweep_ground.text(ret));
	if (!is_untouched())
		fail_msg("line %d: %s refuses and writes", line, function);
	if (sweep_ground.trace()[0])
		fail_msg("line %d: %s refuses and calls %s", line, function,
			 sweep_ground.trace());
}

void sweep_expect_all(void)
{
	FILE *file = fopen(sweep_ground.map, "r");
	size_t names = 0;
	int missing = 0;
	char line[256];
	char name[128];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " %127[a-z0-9_];", name) != 1 ||
		    strncmp(name, "rpma_", 5) != 0)
			continue;
		names++;
		if (was_called(name))
			continue;
		print_error("%s is not swept\n", name);
		missing++;
	}
	fclose(file);
	assert_true(names >= sweep_ground.least);
	assert_int_equal(missing, 0);
}
