/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * raise.c -- an asynchronous event on behalf of a test, of any object that can
 * have one. Any thread.
 */

#include <errno.h>
#include <pthread.h>

#include "base/base.h"
#include "base/process.h"
#include "cq/cq.h"
#include "object/async.h"
#include "object/device.h"
#include "object/object.h"
#include "qp/qp.h"
#include "qp/srq.h"
#include "rpma_loopback.h"

static const enum lb_type types[] = {
	[LB_ASYNC_CONTEXT] = LB_CONTEXT,
	[LB_ASYNC_QP] = LB_QP,
	[LB_ASYNC_CQ] = LB_CQ,
	[LB_ASYNC_SRQ] = LB_SRQ,
};

static struct lb_asyncs *asyncs_of(enum lb_async_target target, void *object)
{
	switch (target) {
	case LB_ASYNC_QP:
		return &((struct lb_qp_handle *)object)->asyncs;
	case LB_ASYNC_CQ:
		return &((struct lb_cq *)object)->asyncs;
	case LB_ASYNC_SRQ:
		return &((struct lb_srq *)object)->asyncs;
	default:
		return NULL;
	}
}

LB_EXPORT int rpma_loopback_raise(int event_type, void *object)
{
	enum ibv_event_type type = (enum ibv_event_type)event_type;
	enum lb_async_target target = lb_async_target(type);
	struct ibv_context *context;

	if (event_type < 0 || event_type > IBV_EVENT_WQ_FATAL)
		return -EINVAL;
	pthread_mutex_lock(&lb.big);
	if (!lb_object_find(object, types[target])) {
		pthread_mutex_unlock(&lb.big);
		return -EINVAL;
	}
	/* the context is the first field of qp, cq and srq alike */
	context = target == LB_ASYNC_CONTEXT
			  ? object
			  : ((struct ibv_qp *)object)->context;
	lb_async_add(lb_device_context_of(context), asyncs_of(target, object),
		     type, object);
	pthread_mutex_unlock(&lb.big);
	return 0;
}
