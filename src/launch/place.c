/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* place.c -- see place.h. */

#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

/*
 * Paths of the device and of the replacements, from the directory of the
 * launcher.
 */
static const char *const places[][2] = {
	{"../loopback", "replace"},			 /* built */
	{LAUNCH_LIBDIR, LAUNCH_LIBDIR "/rpma-loopback"}, /* installed */
};

static int place_own_directory(char dir[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	char *slash;

	if (len < 0) {
		say_errno("cannot read /proc/self/exe, so the device is not "
			  "found");
		return -1;
	}
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

/* Resolves dir/relative; returns -1 if the file does not exist. */
static int place_resolve(const char *dir, const char *relative,
			 char out[PATH_MAX])
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, relative);
	return realpath(path, out) ? 0 : -1;
}

int place_find(struct place *place)
{
	char own[PATH_MAX];
	size_t i;

	if (place_own_directory(own))
		return -1;
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (place_resolve(own, places[i][0], place->dir) ||
		    place_resolve(place->dir, PLACE_DEVICE, place->device) ||
		    place_resolve(place->dir, PLACE_FILES, place->files))
			continue;
		if (!place_resolve(own, places[i][1], place->replacements))
			return 0;
	}
	say_text("there is no " PLACE_DEVICE " with " PLACE_FILES
		 " in %s/%s: install the package "
		 "rpma-loopback as a whole",
		 own, LAUNCH_LIBDIR);
	return -1;
}
