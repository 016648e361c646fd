/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The atomic write from before 0.13: the eight bytes come from a region. */

#include "legacy.h"
#include "log.h"

int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst,
		      size_t dst_offset, const struct rpma_mr_local *src,
		      size_t src_offset, int flags, const void *op_context)
{
	struct rpma_send_wr wr;
	int ret;

	if (dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return RPMA_REFUSE(RPMA_E_INVAL,
				   "dst_offset is no multiple of 8");
	ret = rpma_wr_write(conn, dst, dst_offset, src, src_offset,
			    RPMA_ATOMIC_WRITE_ALIGNMENT, flags,
			    (uintptr_t)op_context, &wr);
	if (ret)
		return ret;

	/* after the reads that flush; release 0.9 had no fence */
	wr.wr.send_flags |= IBV_SEND_FENCE;
	return rpma__conn_send(conn, &wr);
}
