/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * must.h: MUST(call) ends the program if the call fails, for calls without
 * which the program has no work. Meant to be copied: needs nothing but this
 * file.
 */

#ifndef EXAMPLES_MUST_H
#define EXAMPLES_MUST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpma_rt.h>

#define MUST(call) must(#call, call)

/* Prints the call and the error, and ends the program, if the result is not 0:
 * -1 of the C library, or an error of librpma or librpma_rt. */
static inline void must(const char *call, int ret)
{
	if (ret == 0)
		return;
	fprintf(stderr, "%s: %s\n", call,
		ret == -1 ? strerror(errno) : rpma_rt_err_2str(ret));
	exit(1);
}

#endif /* EXAMPLES_MUST_H */
