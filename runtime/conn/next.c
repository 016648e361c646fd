/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* next.c -- rpma_rt_next_future(): the next request, message, free slot. */

#include "base/context.h"
#include "base/refuse.h"
#include "conn/fill.h"
#include "conn/listener.h"
#include "future/future.h"
#include "pool/pool.h"
#include "srq/srq.h"

static const char *why_not_of_conn(const struct rpma_rt_conn *conn)
{
	if (rt_conn_srq(conn) != NULL)
		return "receives of the connection are an SRQ's: name the SRQ";
	if (rt_conn_fed(conn) == NULL)
		return "the connection was made without a pool: post receives "
		       "that name a future";
	return "the connection was made with a queue, to which its messages "
	       "come: set rpma_rt_conn_cfg.futures and no queue";
}

/* Finds the runtime and the block of the object that source names; without a
 * block, why there is none. False: source does not name one object. */
static bool find(const struct rpma_rt_source *source, const struct rpma_rt **rt,
		 struct rt_futures **futures, const char **why)
{
	if ((source->listener != NULL) + (source->conn != NULL) +
		    (source->srq != NULL) + (source->pool != NULL) !=
	    1)
		return false;
	if (source->listener != NULL) {
		*rt = source->listener->rt;
		*futures = source->listener->requests;
		*why = "the listener was made with a queue, to which its "
		       "requests come";
	} else if (source->conn != NULL) {
		*rt = source->conn->rt;
		*futures = rt_fill_messages(source->conn);
		*why = why_not_of_conn(source->conn);
	} else if (source->pool != NULL) {
		*rt = source->pool->rt;
		*futures = source->pool->waits;
	} else {
		*rt = source->srq->rt;
		*futures = source->srq->messages;
		*why = "the SRQ was made without futures: set "
		       "rpma_rt_srq_cfg.futures, and pool";
	}
	return true;
}

int rpma_rt_next_future(const struct rpma_rt_source *source,
			struct rpma_rt_future *future)
{
	struct rt_futures *futures;
	const struct rpma_rt *rt;
	const char *why = ""; /* a pool has futures */
	int ret = RT_REFUSE_NULL(source, future);

	if (ret)
		return ret;
	if (!find(source, &rt, &futures, &why))
		return RT_REFUSE(RPMA_E_INVAL,
				 "source names no object, or more than one: "
				 "set listener, conn, srq or pool");
	ret = rt_context_check_here(RT_LOG_HERE, rt);
	if (ret)
		return ret;
	if (futures == NULL)
		return RT_REFUSE(RPMA_E_INVAL, "%s", why);
	ret = rt_source_next(futures, future);
	if (ret)
		return RT_REFUSE(ret,
				 "%u futures of the next item are held: drop "
				 "some, or set futures of the configuration",
				 futures->count - 1);
	return 0;
}
