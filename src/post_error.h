/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post_error.h -- the error of a post that the device refused, and a line in
 * the log with all that the work request says, as 1.3 logs it.
 */

#ifndef RPMA_POST_ERROR_H
#define RPMA_POST_ERROR_H 1

#include "librpma.h"

/* E_PROVIDER, logged. ret: the errno that verbs answered; wr: the refused. */
__attribute__((cold)) int rpma__send_refused(const struct rpma_send_wr *wr,
					     int ret);
__attribute__((cold)) int
rpma__recv_refused(const char *call, const struct ibv_recv_wr *wr, int ret);

/* The same of a chain, but E_AGAIN, not logged, if the queue is full. */
__attribute__((cold)) int
rpma__send_chain_refused(const struct rpma_send_wr *wr, int ret);
__attribute__((cold)) int
rpma__recv_chain_refused(const char *call, const struct rpma_recv_wr *wr,
			 int ret);

#endif /* RPMA_POST_ERROR_H */
