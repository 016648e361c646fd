/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq.c -- shared receive queues: a ring of receives that many QPs take from.
 * A slot is free again as soon as its receive was taken, for completions of
 * several QPs come back in any order.
 */

#include "qp/srq.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/advance.h"
#include "base/base.h"
#include "base/cancel.h"
#include "base/hook.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/zalloc.h"
#include "fault/fault.h"
#include "memory/pd.h"
#include "object/async.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"
#include "qp/resp.h"
#include "qp/rq.h"
#include "rpma_loopback.h"

/* --- the data path */

/* Fire the limit if it is armed and passed; rq.pop held. */
static void check_limit(struct lb_srq *srq)
{
	uint32_t left;

	if (!srq->limit)
		return;
	lb_lock_get(&srq->rq.post);
	left = lb_rq_count(&srq->rq);
	lb_lock_put(&srq->rq.post);
	if (left >= srq->limit)
		return;
	srq->limit = 0;
	lb_async_add(lb_device_context_of(srq->ibv.context), &srq->asyncs,
		     IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

bool lb_srq_take(struct lb_srq *srq, struct lb_resp *resp)
{
	struct lb_rqe *rqe;
	uint32_t pos;

	lb_lock_get(&srq->rq.pop);
	rqe = lb_rq_pop(&srq->rq, &pos);
	if (rqe) {
		lb_resp_set(resp, rqe, pos);
		lb_advance(&srq->rq.freed, pos + 1);
		check_limit(srq);
	}
	lb_lock_put(&srq->rq.pop);
	return rqe;
}

int lb_srq_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct lb_srq *srq = (struct lb_srq *)ibv;
	int err = lb_fault_errno("ibv_post_srq_recv");

	if (srq->magic == LB_INHERITED)
		err = lb_object_refuse(&srq->obj);
	else if (srq->magic != LB_SRQ)
		err = EINVAL;
	if (err) {
		*bad = wr;
		return err;
	}
	lb_hook(RPMA_LOOPBACK_POST_RECV, ibv);
	lb_lock_get(&srq->rq.post);
	for (; wr && !err; wr = wr->next) {
		err = lb_rq_post(&srq->rq, wr);
		if (err)
			*bad = wr;
	}
	lb_lock_put(&srq->rq.post);
	lb_hook(RPMA_LOOPBACK_POST_RECV_DONE, ibv);
	return err;
}

/* --- the objects */

static int attach(struct lb_srq *srq, struct ibv_pd *ibv_pd)
{
	struct lb_obj *pd = lb_object_find(ibv_pd, LB_PD);
	int err;

	if (!pd)
		return EINVAL;
	srq->ibv.context = ibv_pd->context;
	err = lb_object_add(&srq->obj, &srq->ibv, LB_SRQ, pd->dev,
			    &srq->ibv.handle);
	if (err)
		return err;
	pd->refs++;
	srq->ibv.pd = ibv_pd;
	srq->pd = (struct lb_pd *)lb_pd_root(ibv_pd);
	return 0;
}

static int make_slots(struct lb_srq *srq, const struct ibv_srq_attr *attr)
{
	void *slots = lb_zalloc(lb_rq_bytes(attr->max_wr, attr->max_sge));

	if (!slots)
		return ENOMEM;
	lb_rq_init(&srq->rq, attr->max_wr, attr->max_sge, slots);
	return 0;
}

LB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					 struct ibv_srq_init_attr *init)
{
	struct ibv_srq_attr *attr = &init->attr;
	struct lb_srq *srq = NULL;
	int err = lb_fault_errno("ibv_create_srq");

	if (!err && (!attr->max_wr || attr->max_wr > LB_MAX_SRQ_WR ||
		     attr->max_sge > LB_MAX_SGE))
		err = EINVAL;
	if (!err && !(srq = lb_zalloc(sizeof(*srq))))
		err = ENOMEM;
	if (!err)
		err = make_slots(srq, attr);
	if (!err) {
		lb_async_init(&srq->asyncs);
		srq->magic = LB_SRQ;
		srq->ibv.srq_context = init->srq_context;
		pthread_mutex_init(&srq->ibv.mutex, NULL);
		pthread_cond_init(&srq->ibv.cond, NULL);
		pthread_mutex_lock(&lb.big);
		err = attach(srq, pd);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err)
		return &srq->ibv;
	if (srq)
		free(srq->rq.slots);
	free(srq);
	lb_error_of("ibv_create_srq", err);
	return NULL;
}

struct ibv_srq *lb_srq_create_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr init = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
	};
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	(void)context;
	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	     attr->srq_type != IBV_SRQT_BASIC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	return ibv_create_srq(attr->pd, &init);
}

int lb_srq_get_num(struct ibv_srq *srq, uint32_t *num)
{
	(void)srq, (void)num;
	return lb_error(EOPNOTSUPP); /* only XRC SRQs have one */
}

/* Checks the new size and limit in attr. Both locks held. */
static int check_modify(const struct lb_srq *srq,
			const struct ibv_srq_attr *attr, int mask)
{
	uint32_t size = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.cap;
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;

	return !size || size > LB_MAX_SRQ_WR || limit > size ||
			       size < lb_rq_count(&srq->rq)
		       ? EINVAL
		       : 0;
}

LB_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr,
			     int mask)
{
	struct lb_srq *srq = (struct lb_srq *)ibv;
	int err = lb_fault_errno("ibv_modify_srq");

	if (!err && !lb_object_check(ibv, LB_SRQ))
		err = ENOENT;
	if (!err && (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)))
		err = EINVAL;
	if (err)
		return lb_error(err);
	lb_lock_get(&srq->rq.pop);
	lb_lock_get(&srq->rq.post);
	err = check_modify(srq, attr, mask);
	if (!err && (mask & IBV_SRQ_MAX_WR))
		err = lb_rq_resize(&srq->rq, attr->max_wr);
	lb_lock_put(&srq->rq.post);
	if (!err && (mask & IBV_SRQ_LIMIT)) {
		srq->limit = attr->srq_limit;
		check_limit(srq);
	}
	lb_lock_put(&srq->rq.pop);
	return lb_error(err);
}

LB_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct lb_srq *srq = (struct lb_srq *)ibv;
	int err = lb_fault_errno("ibv_query_srq");

	if (!err && !lb_object_check(ibv, LB_SRQ))
		err = ENOENT;
	if (err)
		return lb_error(err);
	lb_lock_get(&srq->rq.pop);
	attr->max_wr = srq->rq.cap;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->limit;
	lb_lock_put(&srq->rq.pop);
	return 0;
}

static bool is_acked(void *arg)
{
	struct lb_srq *srq = arg;
	bool acked;

	pthread_mutex_lock(&srq->ibv.mutex);
	acked = srq->ibv.events_completed == srq->asyncs.reported;
	pthread_mutex_unlock(&srq->ibv.mutex);
	return acked;
}

static void wait_acks(struct lb_srq *srq)
{
	LB_NOT_CANCELLED;

	if (lb_hook_block(is_acked, srq))
		return;
	pthread_mutex_lock(&srq->ibv.mutex);
	while (srq->ibv.events_completed != srq->asyncs.reported)
		pthread_cond_wait(&srq->ibv.cond, &srq->ibv.mutex);
	pthread_mutex_unlock(&srq->ibv.mutex);
}

LB_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct lb_srq *srq = (struct lb_srq *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_destroy_srq", ibv, LB_SRQ, &obj);
	if (err)
		return err;
	pthread_mutex_unlock(&lb.big);
	lb_async_forget(lb_device_context_of(ibv->context), &srq->asyncs);
	wait_acks(srq);
	pthread_mutex_lock(&lb.big);
	((struct lb_pd *)ibv->pd)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	srq->magic = 0;
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(srq->rq.slots);
	lb_rq_fini(&srq->rq);
	free(srq);
	return 0;
}

/* --- fork */

static void inherit(struct lb_obj *obj)
{
	struct lb_srq *srq = obj->handle;

	srq->magic = LB_INHERITED;
	lb_lock_init(&srq->rq.post);
	lb_lock_init(&srq->rq.pop);
	lb_list_init(&srq->asyncs.queued);
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->asyncs.reported = srq->ibv.events_completed;
}

void lb_srq_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_CHILD)
		lb_object_inherit(LB_SRQ, inherit);
}
