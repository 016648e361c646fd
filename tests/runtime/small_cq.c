/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* small_cq.c -- says in the device's place how many entries a CQ has. */

#define _GNU_SOURCE /* RTLD_NEXT */
#include "small_cq.h"

#include <dlfcn.h>
#include <limits.h>

#include <infiniband/verbs.h>

static int limit = INT_MAX;

void small_cq_limit(int entries)
{
	limit = entries;
}

__attribute__((visibility("default"))) int
ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	int (*real)(struct ibv_context *, struct ibv_device_attr *);
	int ret;

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_query_device");
	ret = real(ctx, attr);
	if (ret == 0 && attr->max_cqe > limit)
		attr->max_cqe = limit;
	return ret;
}
