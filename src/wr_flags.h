/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Which of the flags that 1.4 added an operation takes. Inline: one branch for
 * a call without them.
 */

#ifndef RPMA_WR_FLAGS_H
#define RPMA_WR_FLAGS_H 1

#include "conn.h"
#include "librpma.h"

/* What an operation refuses. */
enum rpma__wr_refused {
	RPMA__WR_REFUSED_SEND = 0,
	RPMA__WR_REFUSED_WRITE = RPMA_F_SOLICITED,
	/* it sends no bytes of the caller's region */
	RPMA__WR_REFUSED_OTHER = RPMA_F_SOLICITED | RPMA_F_INLINE,
};

/* Logs what is wrong with them, which the call below has found out. */
void rpma__wr_flags_refuse(const struct rpma_conn *conn, int flags,
			   enum rpma__wr_refused refused, size_t len);

/*
 * E_INVAL, logged: a flag that is refused, or too many bytes to be inline. That
 * the error is a constant here keeps what follows it out of the usual way.
 */
static inline int rpma__wr_flags_check(const struct rpma_conn *conn, int flags,
				       enum rpma__wr_refused refused,
				       size_t len)
{
	if (!(flags & ((int)refused | RPMA_F_INLINE)))
		return 0;
	if (!(flags & (int)refused) && (uint32_t)len <= conn->max_inline_data)
		return 0;
	rpma__wr_flags_refuse(conn, flags, refused, len);
	return RPMA_E_INVAL;
}

#endif /* RPMA_WR_FLAGS_H */
