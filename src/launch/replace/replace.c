/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* replace.c -- see replace.h. */

#include "replace.h"

#include <dlfcn.h>
#include <stdio.h>

#define DEVICE "librpma_loopback.so"

/* Replaces a function that an older device lacks. */
static long replace_missing(long a, long b, long c, long d, long e, long f)
{
	static _Atomic int is_said;

	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return replace_refuse(&is_said, "a call",
			      DEVICE " is of another release than this library",
			      EOPNOTSUPP);
}

void replace_bind(const struct replace_call *calls)
{
	/* the device is loaded: this library links to the device */
	void *device = dlopen(DEVICE, RTLD_NOW | RTLD_NOLOAD);

	for (; calls->name; calls++) {
		void *to = device ? dlsym(device, calls->name) : NULL;

		*calls->to = to ? (replace_fn *)to : replace_missing;
	}
}

long replace_refuse(_Atomic int *is_said, const char *name, const char *why,
		    long result)
{
	/* relaxed: only decides which call is the first */
	if (!atomic_exchange_explicit(is_said, 1, memory_order_relaxed))
		fprintf(stderr, "loopback: %s() fails: %s\n", name, why);
	errno = EOPNOTSUPP;
	return result;
}
