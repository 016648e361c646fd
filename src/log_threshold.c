/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The thresholds of the log. This file only keeps the values, and logs nothing;
 * log.c checks the values that a program sets. Any thread; no lock is taken.
 */

#include "log_threshold.h"

#include <stdbool.h>

#ifdef DEBUG
#define DEFAULT_THRESHOLD     RPMA_LOG_LEVEL_DEBUG
#define DEFAULT_THRESHOLD_AUX RPMA_LOG_LEVEL_WARNING
#else
#define DEFAULT_THRESHOLD     RPMA_LOG_LEVEL_WARNING
#define DEFAULT_THRESHOLD_AUX RPMA_LOG_DISABLED
#endif

/* relaxed everywhere: a filter, no other memory depends on the thresholds */
_Atomic int rpma__log_thresholds[RPMA_LOG_THRESHOLD_MAX] = {
	[RPMA_LOG_THRESHOLD] = DEFAULT_THRESHOLD,
	[RPMA_LOG_THRESHOLD_AUX] = DEFAULT_THRESHOLD_AUX,
};

/* the program has set the auxiliary threshold, which then rules */
static atomic_bool is_aux_set;
/* the level named by RPMA_LOG, for stderr; written before main() */
static int stderr_level = RPMA_LOG_DISABLED;

void rpma__log_threshold_set(enum rpma_log_threshold threshold, int level)
{
	/* relaxed: see rpma__log_thresholds */
	atomic_store_explicit(&rpma__log_thresholds[threshold], level,
			      memory_order_relaxed);
	if (threshold == RPMA_LOG_THRESHOLD_AUX)
		/* release: pairs with the acquire in
		 * rpma__log_threshold_get_aux() */
		atomic_store_explicit(&is_aux_set, true, memory_order_release);
}

int rpma__log_threshold_get(enum rpma_log_threshold threshold)
{
	/* relaxed: see rpma__log_thresholds */
	return atomic_load_explicit(&rpma__log_thresholds[threshold],
				    memory_order_relaxed);
}

bool rpma__log_threshold_get_aux(int *level)
{
	/* acquire: the threshold set before; pairs with the release in the
	 * setter */
	bool is_set = atomic_load_explicit(&is_aux_set, memory_order_acquire);
	int aux = rpma__log_threshold_get(RPMA_LOG_THRESHOLD_AUX);

	*level = is_set || aux > stderr_level ? aux : stderr_level;
	return is_set;
}

void rpma__log_threshold_raise(int level)
{
	stderr_level = level;
	if (level > rpma__log_threshold_get(RPMA_LOG_THRESHOLD))
		rpma__log_threshold_set(RPMA_LOG_THRESHOLD, level);
}
