/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * captured.h -- what a request would be on a wire.
 */

#ifndef LB_EXEC_CAPTURED_H
#define LB_EXEC_CAPTURED_H

#include "exec/work.h"

/*
 * The request of w, which was executed with this result, as packets in the
 * file, with its answer; nothing if the wire would have carried nothing. Its
 * sq.lock held, its completion not pushed, so its buffers are as they were.
 */
void lb_captured_request(struct lb_work *w, int result);

#endif /* LB_EXEC_CAPTURED_H */
