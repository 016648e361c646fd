/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * work.h -- a request under execution, by the requester and the responder.
 */

#ifndef LB_EXEC_WORK_H
#define LB_EXEC_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/copy.h"
#include "memory/mr.h"
#include "object/limits.h"
#include "qp/kick.h"
#include "qp/qp.h"

/* What became of an attempt; a positive value is an ibv_wc_status. */
enum {
	LB_EXEC_OK = 0,
	LB_EXEC_AGAIN = -1,  /* the budget is used up */
	LB_EXEC_SILENT = -2, /* the peer did not answer */
	LB_EXEC_RNR = -3,    /* the peer has no receive */
	LB_EXEC_WAIT = -4,   /* a timer runs */
};

/* A request under execution. */
struct lb_work {
	struct lb_run *run;
	struct lb_qp *qp;   /* sq.lock held; NULL: another process's */
	struct lb_qp *peer; /* rq.pop held once it answers */
	struct lb_wqe *wqe;
	uint32_t from; /* the number of the requester */
	uint64_t budget;
	uint64_t moved; /* bytes, so far */
	bool has_put;	/* requests of another process's */
	uint8_t sl;	/* of the completion of a datagram */
	struct lb_span local[LB_MAX_SGE + 1]; /* ends with a length of 0 */
	struct lb_mr_row *window;	      /* held: see lb_mr_remote() */
};

#endif /* LB_EXEC_WORK_H */
