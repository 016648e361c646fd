/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote.h -- the requester of a peer in another process. sq.lock held.
 */

#ifndef LB_EXEC_REMOTE_H
#define LB_EXEC_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "exec/exec.h"

struct lb_qp;
struct lb_record;
struct lb_run;

/* As lb_exec_run(), of a queue pair that has a link. */
enum lb_step lb_remote_run(struct lb_run *run, struct lb_qp *qp,
			   uint64_t budget);
/* Returns true if the answer is the next answer for qp, in this life. */
bool lb_remote_awaits(const struct lb_qp *qp, const struct lb_record *answer);
/* Take it; bytes are those of a READ. */
void lb_remote_take(struct lb_run *run, struct lb_qp *qp,
		    const struct lb_record *answer,
		    const struct lb_span *bytes);

#endif /* LB_EXEC_REMOTE_H */
