/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * place.h -- where the device and the replacements lie: beside the launcher, in
 * the build tree or installed, also after the installation was moved.
 */

#ifndef LAUNCH_PLACE_H
#define LAUNCH_PLACE_H

#include <limits.h>

#define PLACE_DEVICE "librpma_loopback.so"
#define PLACE_FILES  "librpma_loopback_files.so"

struct place {
	char dir[PATH_MAX];    /* of the device, absolute */
	char device[PATH_MAX]; /* the device itself */
	char files
		[PATH_MAX]; /* the library that shows files in /dev and /sys */
	/* of libibverbs.so.1 and librdmacm.so.1 */
	char replacements[PATH_MAX];
};

/* Finds all files. Returns 0, or -1 after an error message. */
int place_find(struct place *place);

#endif /* LAUNCH_PLACE_H */
