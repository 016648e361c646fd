/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* next.c -- rpma_rt_next_future(): the next request, the next message. */

#include "base/context.h"
#include "base/refuse.h"
#include "conn/fill.h"
#include "conn/listener.h"
#include "conn/name.h"
#include "future/future.h"
#include "srq/srq.h"

/* Where the futures come from: block, or why there is none. */
struct next {
	const struct rpma_rt *rt;
	struct rt_futures *futures;
	const void *owner;
	const char *what;    /* of which too many are held */
	const char *refused; /* futures is NULL: why, and what to do */
};

static struct next next_of_listener(const struct rpma_rt_listener *listener)
{
	return (struct next){
		.rt = listener->rt,
		.futures = listener->requests,
		.owner = listener,
		.what = "requests of the listener are held: drop some",
		.refused = "the listener was made with a queue, to which its "
			   "requests come",
	};
}

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

static struct next next_of_conn(const struct rpma_rt_conn *conn)
{
	return (struct next){
		.rt = conn->rt,
		.futures = rt_fill_messages(conn),
		.owner = conn,
		.what = "messages of the connection are held: drop some, or "
			"set rpma_rt_conn_cfg.futures",
		.refused = why_not_of_conn(conn),
	};
}

static struct next next_of_srq(const struct rpma_rt_srq *srq)
{
	return (struct next){
		.rt = srq->rt,
		.futures = srq->messages,
		.owner = srq,
		.what = "messages of the SRQ are held: drop some, or set "
			"rpma_rt_srq_cfg.futures",
		.refused = "the SRQ was made without futures: set "
			   "rpma_rt_srq_cfg.futures, and pool",
	};
}

static int check_source(const struct rt_log_place *place,
			const struct rpma_rt_source *source)
{
	if ((source->listener != NULL) + (source->conn != NULL) +
		    (source->srq != NULL) ==
	    1)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL,
			 "source names no object, or more than one: set "
			 "listener, conn or srq");
}

int rpma_rt_next_future(const struct rpma_rt_source *source,
			struct rpma_rt_future *future)
{
	struct next next;
	int ret = RT_REFUSE_NULL(source, future);

	if (ret == 0)
		ret = check_source(RT_LOG_HERE, source);
	if (ret)
		return ret;
	next = source->listener != NULL ? next_of_listener(source->listener)
	       : source->conn != NULL	? next_of_conn(source->conn)
					: next_of_srq(source->srq);
	ret = rt_context_check_here(RT_LOG_HERE, next.rt);
	if (ret)
		return ret;
	if (next.futures == NULL)
		return RT_REFUSE(RPMA_E_INVAL, "%s", next.refused);
	ret = rt_source_next(next.futures, next.owner, future);
	if (ret)
		return RT_REFUSE(ret, "%u futures of %s",
				 next.futures->count - 1, next.what);
	return 0;
}
