/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The errors of librpma and their texts, in one list, from which the texts of
 * err.c and the checks of the tests are made.
 */

#ifndef RPMA_ERR_H
#define RPMA_ERR_H 1

#include "librpma.h"

#define RPMA__ERRORS(X)                                               \
	X(RPMA_E_UNKNOWN, "Unknown error")                            \
	X(RPMA_E_NOSUPP, "Not supported")                             \
	X(RPMA_E_PROVIDER, "Provider error occurred")                 \
	X(RPMA_E_NOMEM, "Out of memory")                              \
	X(RPMA_E_INVAL, "Invalid argument")                           \
	X(RPMA_E_NO_COMPLETION, "No next completion available")       \
	X(RPMA_E_NO_EVENT, "No next event available")                 \
	X(RPMA_E_AGAIN, "Temporary error, try again")                 \
	X(RPMA_E_SHARED_CHANNEL, "Completion channel is shared")      \
	X(RPMA_E_NOT_SHARED_CHNL, "Completion channel is not shared") \
	X(RPMA_E_CLAIMED, "Claimed by another")                       \
	X(RPMA_E_FORKED, "Made before a fork, in another process")

/*
 * The text of what a verbs or rdma_cm call answered: an errno, or anything
 * else after it has set errno. Leaves errno alone.
 */
const char *rpma__errno_2str(int ret);

/* Where errno says that rdma_cm cannot be used here: what to look for, as the
 * end of a message; else "". */
const char *rpma__cm_advice(void);

/* Likewise of a call of rdma_cm with an address. */
const char *rpma__addr_advice(void);

/* The first of several errors is the one reported. */
static inline void rpma__err_first(int *first, int ret)
{
	if (*first == 0)
		*first = ret;
}

#endif /* RPMA_ERR_H */
