/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The number of forks. See fork.h; fork_handlers.c counts. */

#include "fork.h"

#include "log.h"

atomic_uint rpma__forks;

void rpma__log_not_here(void)
{
	RPMA_LOG_ERROR(
		"an object was made before a fork, in another process: fork "
		"first (daemon() forks too), or make a new object here");
}
