/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* In the place of e2e_coroutine.cc where there is no compiler of C++. */

#include "e2e.h"

static void open_none(struct e2e *e2e)
{
	(void)e2e;
	bench_missing("compiler of C++", "g++");
}

const struct e2e_form e2e_coroutine = {
	.name = "coroutine",
	.open = open_none,
};
