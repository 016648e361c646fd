/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The thresholds of the log: the main threshold selects the messages for the
 * log function, the auxiliary threshold the messages for stderr.
 */

#ifndef RPMA_LOG_THRESHOLD_H
#define RPMA_LOG_THRESHOLD_H 1

#include <stdatomic.h>
#include <stdbool.h>

#include "librpma.h"

/* The thresholds. Hidden: read without the GOT. */
__attribute__((visibility("hidden"))) extern _Atomic int
	rpma__log_thresholds[RPMA_LOG_THRESHOLD_MAX];

/* Sets a threshold, as the program wants. */
void rpma__log_threshold_set(enum rpma_log_threshold threshold, int level);
int rpma__log_threshold_get(enum rpma_log_threshold threshold);

/* Sets *level to the threshold of stderr: the auxiliary threshold, or the level
 * named by RPMA_LOG where the program has not set the auxiliary threshold.
 * Returns true if the program has set the auxiliary threshold. */
bool rpma__log_threshold_get_aux(int *level);

/*
 * Raises the main threshold to the level named by RPMA_LOG, and sends messages
 * of the level to stderr. Called before main().
 */
void rpma__log_threshold_raise(int level);

#endif /* RPMA_LOG_THRESHOLD_H */
