/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * messages.c -- the stream of a shared receive queue that has a pool and
 * futures: messages of its connections without a queue, each for the next
 * future. Where it says nothing else: on the SRQ's poller.
 * doc/protocols/future.md, srq.md.
 */

#include "srq/srq.h"

#include "base/context.h"
#include "base/refuse.h"
#include "base/runtime.h"
#include "future/future.h"
#include "future/stream.h"
#include "poller/poller.h"

int rt_srq_stream_new(struct rpma_rt_srq *srq)
{
	if (srq->cfg.futures == 0)
		return 0;
	srq->stream = rt_stream_new(srq->poller, srq->cfg.futures,
				    srq->cfg.srq_size, srq);
	if (srq->stream == NULL)
		return RPMA_E_NOMEM;
	srq->messages = srq->stream->futures;
	return 0;
}

void rt_srq_stream_undo(struct rpma_rt_srq *srq)
{
	rt_stream_undo(srq->stream);
	srq->stream = NULL;
	srq->messages = NULL;
}

uint32_t rt_srq_listed_poller(const struct rpma_rt_srq *srq)
{
	return srq->stream != NULL ? rt_stream_waiting_poller(srq->stream) : 0;
}

/* A receive may be posted in the place of a message that somebody has. */
static void taken(void *arg)
{
	struct rpma_rt_srq *srq = arg;

	rt_deliver_touch_number(srq->poller, srq->number);
}

void rt_srq_stream_begin_poller(struct rpma_rt_srq *srq)
{
	if (srq->stream == NULL)
		return;
	srq->stream->arg = srq;
	srq->stream->taken = taken;
}

void rt_srq_stream_end_poller(struct rpma_rt_srq *srq,
			      const struct rpma_rt_completion *last)
{
	if (srq->stream != NULL)
		rt_stream_end_poller(srq->stream, last);
}

void rt_srq_stream_drop(struct rpma_rt_srq *srq)
{
	rt_stream_drop_mt(srq->stream);
	srq->stream = NULL;
}

void rt_srq_stream_free(struct rpma_rt_srq *srq)
{
	if (srq->messages == NULL)
		return;
	pthread_mutex_lock(&srq->rt->lock);
	rt_future_block_return(srq->messages);
	pthread_mutex_unlock(&srq->rt->lock);
}

int rpma_rt_srq_recv_future(struct rpma_rt_srq *srq,
			    struct rpma_rt_future *future)
{
	int ret = RT_REFUSE_NULL(srq, future);

	if (ret == 0)
		ret = rt_context_check_here(RT_LOG_HERE, srq->rt);
	if (ret)
		return ret;
	if (srq->messages == NULL)
		return RT_REFUSE(RPMA_E_INVAL,
				 "srq was made without futures: set "
				 "rpma_rt_srq_cfg.futures, and pool");
	ret = rt_stream_future(srq->messages, srq, future);
	if (ret == 0)
		return 0;
	return RT_REFUSE(ret,
			 "%u futures of messages of srq are held: drop some, "
			 "or set rpma_rt_srq_cfg.futures",
			 srq->cfg.futures);
}
