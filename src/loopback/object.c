/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * object.c -- the registry of live handles. A verb that is not on the data
 * path looks its handle up here before it follows it, so that a freed or
 * damaged handle is an error and not a crash. Everything under lb.big.
 */

#include "loopback.h"
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 16384 /* a power of 2 */

static struct lb_obj *buckets[BUCKETS];

static const int limits[] = {
	[LB_CONTEXT - LB_CONTEXT] = 1024, [LB_PD - LB_CONTEXT] = LB_MAX_PD,
	[LB_MR - LB_CONTEXT] = LB_MAX_MR, [LB_CHANNEL - LB_CONTEXT] = LB_MAX_CQ,
	[LB_CQ - LB_CONTEXT] = LB_MAX_CQ, [LB_SRQ - LB_CONTEXT] = LB_MAX_SRQ,
	[LB_QP - LB_CONTEXT] = LB_MAX_QP, [LB_AH - LB_CONTEXT] = LB_MAX_AH,
	[LB_MW - LB_CONTEXT] = LB_MAX_MW, [LB_TD - LB_CONTEXT] = LB_MAX_PD,
};

void *lb_zalloc(size_t size)
{
	void *mem;

	size = (size + LB_CACHE_LINE - 1) & ~(size_t)(LB_CACHE_LINE - 1);
	mem = aligned_alloc(LB_CACHE_LINE, size ? size : LB_CACHE_LINE);
	if (mem)
		memset(mem, 0, size);
	return mem;
}

static struct lb_obj **bucket_of(const void *handle)
{
	return &buckets[lb_mix((uintptr_t)handle) & (BUCKETS - 1)];
}

/* Every handle but a context begins with the pointer to its context. */
static struct ibv_context *context_in(const struct lb_obj *obj)
{
	struct ibv_context *context = NULL;

	if (obj->type != LB_CONTEXT)
		memcpy(&context, obj->handle, sizeof(context));
	return context;
}

int lb_obj_add(struct lb_obj *obj, void *handle, enum lb_type type,
	       struct lb_device *dev, uint32_t *word)
{
	static uint32_t last;
	struct lb_obj **bucket = bucket_of(handle);

	if (dev->counts[type - LB_CONTEXT] >= limits[type - LB_CONTEXT])
		return ENOMEM;
	dev->counts[type - LB_CONTEXT]++;
	obj->handle = handle;
	obj->type = type;
	obj->dev = dev;
	obj->refs = 0;
	obj->number = ++last;
	obj->word = word;
	if (word)
		*word = obj->number;
	obj->context = context_in(obj);
	obj->next = *bucket;
	*bucket = obj;
	return 0;
}

struct lb_obj *lb_obj_find(const void *handle, enum lb_type type)
{
	struct lb_obj *obj = *bucket_of(handle);

	while (obj && (obj->handle != handle || obj->type != type))
		obj = obj->next;
	if (obj && ((obj->word && *obj->word != obj->number) ||
		    context_in(obj) != obj->context))
		return NULL;
	return obj;
}

void lb_obj_del(struct lb_obj *obj)
{
	struct lb_obj **at = bucket_of(obj->handle);

	while (*at != obj)
		at = &(*at)->next;
	*at = obj->next;
	obj->dev->counts[obj->type - LB_CONTEXT]--;
	obj->was = obj->type;
	obj->type = LB_NONE;
}

void lb_obj_put_back(struct lb_obj *obj)
{
	struct lb_obj **bucket = bucket_of(obj->handle);

	obj->type = obj->was;
	obj->dev->counts[obj->type - LB_CONTEXT]++;
	obj->next = *bucket;
	*bucket = obj;
}

struct lb_obj *lb_obj_check(const void *handle, enum lb_type type)
{
	struct lb_obj *obj;

	pthread_mutex_lock(&lb.big);
	obj = lb_obj_find(handle, type);
	pthread_mutex_unlock(&lb.big);
	if (!obj)
		errno = ENOENT;
	return obj;
}

int lb_obj_retire(const char *verb, const void *handle, enum lb_type type,
		  struct lb_obj **obj)
{
	struct lb_obj *found;
	int ret = lb_fail(verb);

	if (ret)
		return lb_error(ret);
	pthread_mutex_lock(&lb.big);
	found = lb_obj_find(handle, type);
	if (found && !found->refs) {
		lb_obj_del(found);
		*obj = found;
		return 0;
	}
	ret = found ? EBUSY : ENOENT;
	pthread_mutex_unlock(&lb.big);
	lb_misuse("%s(%p): %s", verb, handle,
		  found ? "others refer to it" : "no such object");
	return lb_error(ret);
}
