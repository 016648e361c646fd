/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pd.c -- protection domains, and parent domains, which are names for one.
 * Under lb.big.
 */

#include "memory/pd.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/process.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/object.h"
#include "rpma_loopback.h"

/* parent: of a parent domain, else NULL */
static struct lb_pd *pd_new(struct ibv_context *context, struct ibv_pd *parent,
			    const char *verb)
{
	struct lb_pd *pd = NULL;
	struct lb_obj *ctx, *up = NULL;
	int err = lb_fault_errno(verb);

	if (!err)
		pd = calloc(1, sizeof(*pd));
	if (!pd) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lb.big);
	ctx = lb_object_find(context, LB_CONTEXT);
	if (parent)
		up = lb_object_find(parent, LB_PD);
	err = ctx && (up || !parent) ? 0 : EINVAL;
	pd->ibv.context = context;
	if (!err)
		err = lb_object_add(&pd->obj, &pd->ibv, LB_PD, ctx->dev,
				    &pd->ibv.handle);
	if (!err) {
		ctx->refs++;
		pd->parent = (struct lb_pd *)parent;
		if (up)
			up->refs++;
	}
	pthread_mutex_unlock(&lb.big);
	if (!err)
		return pd;
	free(pd);
	lb_error_of("ibv_alloc_pd", err);
	return NULL;
}

LB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct lb_pd *pd = pd_new(context, NULL, "ibv_alloc_pd");

	return pd ? &pd->ibv : NULL;
}

LB_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct lb_pd *pd = (struct lb_pd *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_dealloc_pd", ibv, LB_PD, &obj);
	if (err)
		return err;
	lb_device_context_of(ibv->context)->obj.refs--;
	if (pd->parent)
		pd->parent->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	free(pd);
	return 0;
}

struct ibv_pd *lb_pd_alloc_parent(struct ibv_context *context,
				  struct ibv_parent_domain_init_attr *attr)
{
	struct lb_pd *pd;

	if (attr->comp_mask &
	    ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = pd_new(context, attr->pd, "ibv_alloc_parent_domain");
	return pd ? &pd->ibv : NULL;
}

struct ibv_pd *lb_pd_root(struct ibv_pd *pd)
{
	struct lb_pd *parent = ((struct lb_pd *)pd)->parent;

	return parent ? &parent->ibv : pd;
}
