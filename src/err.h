/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The errors of librpma and their texts, in a single list, from which the texts
 * of err.c and the checks of the tests are made.
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
 * Returns the errno behind the result of a failed call of verbs or rdma_cm: the
 * errno itself, the negated errno, as some providers return, or -1 after the
 * call has set errno.
 */
int rpma__err_errno(int ret);
/* Returns the text for rpma__err_errno(ret). Leaves errno alone. */
const char *rpma__errno_2str(int ret);

/* Returns advice for the end of a message if errno says that rdma_cm cannot be
 * used on this machine; otherwise "". */
const char *rpma__cm_advice(void);

/*
 * Returns advice for a failed call of rdma_cm with an address, from errno;
 * otherwise "".
 */
const char *rpma__addr_advice(void);

/* Keeps the first of several errors, which is reported. */
static inline void rpma__err_first(int *first, int ret)
{
	if (*first == 0)
		*first = ret;
}

#endif /* RPMA_ERR_H */
