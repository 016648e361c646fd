/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* try.h: error messages of examples of the runtime. */

#ifndef EXAMPLES_TRY_H
#define EXAMPLES_TRY_H

#include <stdio.h>

#include <rpma_rt.h>

/*
 * Prints the name of the failed call on stderr if ret is negative; returns ret.
 */
static inline int rt_check(const char *what, int ret)
{
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", what, rpma_rt_err_2str(ret));
	return ret;
}
#define TRY(call) rt_check(#call, call)

#endif /* EXAMPLES_TRY_H */
