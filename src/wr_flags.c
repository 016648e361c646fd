/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Flags of an operation that it does not take. */

#include "wr_flags.h"

#include "log.h"

void rpma__wr_flags_refuse(const struct rpma_conn *conn, int flags,
			   enum rpma__wr_refused refused, size_t len)
{
	if (flags & (int)refused & RPMA_F_SOLICITED)
		RPMA_LOG_ERROR("RPMA_F_SOLICITED: only sends and writes with "
			       "immediate data complete at the other side");
	else if (flags & (int)refused)
		RPMA_LOG_ERROR("RPMA_F_INLINE: only sends and writes have "
			       "bytes of a region to copy");
	else
		RPMA_LOG_ERROR("RPMA_F_INLINE: %zu bytes, the connection takes "
			       "%u; rpma_conn_cfg_set_max_inline_data() asks "
			       "for more",
			       len, conn->max_inline_data);
}
