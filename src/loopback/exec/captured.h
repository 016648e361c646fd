/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * captured.h -- what a request would be on a wire.
 */

#ifndef LB_EXEC_CAPTURED_H
#define LB_EXEC_CAPTURED_H

#include "exec/work.h"
#include "wire/record.h"

/*
 * The request of w, which was executed with this result, as packets in the
 * file, with its answer; nothing if the wire would have carried nothing. Its
 * sq.lock held, its completion not pushed, so its buffers are as they were.
 */
void lb_captured_request(struct lb_work *w, int result);

/*
 * A part of the request of w, which is in the ring of a link, from the place
 * `sent` of its queue pair. Its sq.lock held.
 */
void lb_captured_part(struct lb_work *w, const struct lb_record *part);

/*
 * What a connected queue pair answers to a part of another process, with the
 * bytes of a READ. Its rq.pop held.
 */
void lb_captured_answer(struct lb_qp *qp, const struct lb_record *part,
			const struct lb_record *answer,
			const struct lb_span *bytes);

#endif /* LB_EXEC_CAPTURED_H */
