/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * place.h -- where the device and the replacements lie: beside the launcher, in
 * the build tree or installed, wherever the installation was moved to.
 */

#ifndef LAUNCH_PLACE_H
#define LAUNCH_PLACE_H

#include <limits.h>

#define PLACE_DEVICE "librpma_loopback.so"

struct place {
	char dir[PATH_MAX];    /* of the device, absolute */
	char device[PATH_MAX]; /* the device itself */
	/* of libibverbs.so.1 and librdmacm.so.1 */
	char replacements[PATH_MAX];
};

/* Returns 0, or -1 after it has said what is missing. */
int place_find(struct place *place);

#endif /* LAUNCH_PLACE_H */
