/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_error.h -- the error of a post that the device refused, and a log line
 * with all fields of the work request, as in release 1.3.
 */

#ifndef RPMA_POST_ERROR_H
#define RPMA_POST_ERROR_H 1

#include "librpma.h"

/*
 * Returns E_PROVIDER, logged. ret: the result of the verb; wr: the refused work
 * request.
 */
__attribute__((cold)) int rpma__send_refused(const struct rpma_send_wr *wr,
					     int ret);
__attribute__((cold)) int
rpma__recv_refused(const char *call, const struct ibv_recv_wr *wr, int ret);

/*
 * Returns E_AGAIN, not logged, if the queue is full, else E_PROVIDER, logged.
 * wr: the refused work request of a chain.
 */
__attribute__((cold)) int
rpma__send_chain_refused(const struct rpma_send_wr *wr, int ret);
__attribute__((cold)) int
rpma__recv_chain_refused(const char *call, const struct rpma_recv_wr *wr,
			 int ret);

#endif /* RPMA_POST_ERROR_H */
