/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* behind.c: loaded into the echo server. The first connection that the server
 * hands over finds that the worker is behind. */

#include <dlfcn.h>
#include <stdbool.h>

#include <rpma_rt.h>

typedef int set_queue_fn(struct rpma_rt_conn *conn,
			 struct rpma_rt_queue *queue);

/* main alone hands connections over */
int rpma_rt_conn_set_queue(struct rpma_rt_conn *conn,
			   struct rpma_rt_queue *queue)
{
	static bool was_called;
	set_queue_fn *set_queue =
		(set_queue_fn *)dlsym(RTLD_NEXT, "rpma_rt_conn_set_queue");

	if (was_called)
		return set_queue(conn, queue);
	was_called = true;
	return RPMA_RT_E_BUSY;
}
