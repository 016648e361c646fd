/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* process.c -- see process.h. */

#include "base/process.h"

#include <pthread.h>

struct lb_globals lb = {
	.big = PTHREAD_MUTEX_INITIALIZER,
};
