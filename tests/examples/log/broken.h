/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * broken.h: included ahead of a client of the log, makes a client with an error
 * that a power failure shows. BROKEN_FLUSH: no record and no tail is flushed.
 * BROKEN_ORDER: the tail is written before the records.
 */

#ifndef BROKEN_H
#define BROKEN_H

#include <rpma_rt.h>

static inline int post_broken(struct rpma_rt_conn *conn,
			      const struct rpma_rt_wr *wr, int count)
{
	struct rpma_rt_wr wrs[4] = {0};
	int i, n = 0, ret;

	if (count == 1)
		return rpma_rt_post_send(conn, wr, count);
#ifdef BROKEN_ORDER
	wrs[n++] = wr[count - 2]; /* the tail */
	for (i = 0; i < count; i++)
		if (i != count - 2)
			wrs[n++] = wr[i];
#else
	for (i = 0; i < count; i++)
		if (wr[i].op != RPMA_RT_OP_FLUSH)
			wrs[n++] = wr[i];
	/* the tail becomes the last of the link */
	wrs[n - 1].flags &= ~(RPMA_RT_F_LINKED | RPMA_RT_F_PART);
	wrs[n - 1].future = wr[count - 1].future;
#endif
	ret = rpma_rt_post_send(conn, wrs, n);
	return ret == n ? count : ret;
}

#define rpma_rt_post_send post_broken

#endif /* BROKEN_H */
