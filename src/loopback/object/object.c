/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * object.c -- the registry of live handles. A verb off the data path looks its
 * handle up here before following the handle, so that a freed or damaged handle
 * is an error and not a crash. The table has about as many buckets as objects:
 * with each new or removed object there is a bucket more or less, so no call
 * walks the table (linear hashing). Everything under lb.big.
 */

#include "object/object.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "base/process.h"
#include "base/random.h"
#include "fault/fault.h"
#include "object/device.h"
#include "object/limits.h"

#define FIRST	 64u /* permanent buckets, a power of 2 */
#define SEGMENTS 16u /* of buckets, each as large as all before together */

static struct lb_obj *first_segment[FIRST];
static struct lb_obj **segments[SEGMENTS] = {first_segment};
static uint32_t nbuckets = FIRST;
static uint32_t nobjs;

static const int limits[] = {
	[LB_CONTEXT - LB_CONTEXT] = 1024, [LB_PD - LB_CONTEXT] = LB_MAX_PD,
	[LB_MR - LB_CONTEXT] = LB_MAX_MR, [LB_CHANNEL - LB_CONTEXT] = LB_MAX_CQ,
	[LB_CQ - LB_CONTEXT] = LB_MAX_CQ, [LB_SRQ - LB_CONTEXT] = LB_MAX_SRQ,
	[LB_QP - LB_CONTEXT] = LB_MAX_QP, [LB_AH - LB_CONTEXT] = LB_MAX_AH,
	[LB_MW - LB_CONTEXT] = LB_MAX_MW, [LB_TD - LB_CONTEXT] = LB_MAX_PD,
};

/* --- the table */

/* Returns the segment of a bucket other than the first buckets. */
static uint32_t segment_of(uint32_t i)
{
	return 32 - (uint32_t)__builtin_clz(i / FIRST);
}

static uint32_t segment_start(uint32_t segment)
{
	return FIRST << (segment - 1);
}

static struct lb_obj **bucket_at(uint32_t i)
{
	uint32_t segment;

	if (i < FIRST)
		return &first_segment[i];
	segment = segment_of(i);
	return &segments[segment][i - segment_start(segment)];
}

/* Returns the bucket from which bucket i, the last, was divided. */
static uint32_t parent_of(uint32_t i)
{
	return i - lb_pow2(i + 1) / 2;
}

static struct lb_obj **bucket_of(const void *handle)
{
	uint32_t i = (uint32_t)lb_random_mix((uintptr_t)handle) &
		     (lb_pow2(nbuckets) - 1);

	return bucket_at(i < nbuckets ? i : parent_of(i));
}

/* Moves all objects of the list to their present buckets. */
static void distribute(struct lb_obj *list)
{
	while (list) {
		struct lb_obj *obj = list;
		struct lb_obj **bucket = bucket_of(obj->handle);

		list = obj->next;
		obj->next = *bucket;
		*bucket = obj;
	}
}

static struct lb_obj *take_all(uint32_t i)
{
	struct lb_obj *list = *bucket_at(i);

	*bucket_at(i) = NULL;
	return list;
}

/* Adds a bucket; without memory the lists get longer instead. */
static void grow(void)
{
	uint32_t segment = segment_of(nbuckets);
	uint32_t start = segment_start(segment);
	struct lb_obj *list;

	if (nobjs <= nbuckets || segment >= SEGMENTS)
		return;
	if (!segments[segment])
		segments[segment] = calloc(start, sizeof(*segments[segment]));
	if (!segments[segment])
		return;
	list = take_all(parent_of(nbuckets));
	nbuckets++;
	distribute(list);
}

/* Removes a bucket, and the segment with its first bucket. */
static void shrink(void)
{
	uint32_t last = nbuckets - 1;
	struct lb_obj *list;

	if (nobjs >= nbuckets / 2 || nbuckets == FIRST)
		return;
	list = take_all(last);
	nbuckets = last;
	distribute(list);
	if (last != segment_start(segment_of(last)))
		return;
	free(segments[segment_of(last)]);
	segments[segment_of(last)] = NULL;
}

static void insert(struct lb_obj *obj)
{
	struct lb_obj **bucket;

	nobjs++;
	grow();
	bucket = bucket_of(obj->handle);
	obj->next = *bucket;
	*bucket = obj;
}

/* --- the objects */

/*
 * Returns the context of a handle: every handle except a context begins with
 * the pointer to the context.
 */
static struct ibv_context *context_in(const struct lb_obj *obj)
{
	struct ibv_context *context = NULL;

	if (obj->type != LB_CONTEXT)
		memcpy(&context, obj->handle, sizeof(context));
	return context;
}

int lb_object_add(struct lb_obj *obj, void *handle, enum lb_type type,
		  struct lb_device *dev, uint32_t *word)
{
	static uint32_t last;

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
	insert(obj);
	return 0;
}

static struct lb_obj *find(const void *handle, enum lb_type type)
{
	struct lb_obj *obj = *bucket_of(handle);

	while (obj && (obj->handle != handle || obj->type != type))
		obj = obj->next;
	if (obj && ((obj->word && *obj->word != obj->number) ||
		    context_in(obj) != obj->context))
		return NULL;
	return obj;
}

struct lb_obj *lb_object_find(const void *handle, enum lb_type type)
{
	struct lb_obj *obj = find(handle, type);

	if (!obj || !obj->is_inherited)
		return obj;
	lb_object_refuse(obj);
	return NULL;
}

void lb_object_del(struct lb_obj *obj)
{
	struct lb_obj **at = bucket_of(obj->handle);

	while (*at != obj)
		at = &(*at)->next;
	*at = obj->next;
	nobjs--;
	shrink();
	shrink(); /* keeps up, though the limit is half of the buckets */
	obj->dev->counts[obj->type - LB_CONTEXT]--;
	obj->was = obj->type;
	obj->type = LB_NONE;
}

void lb_object_put_back(struct lb_obj *obj)
{
	obj->type = obj->was;
	obj->dev->counts[obj->type - LB_CONTEXT]++;
	insert(obj);
}

struct lb_obj *lb_object_check(const void *handle, enum lb_type type)
{
	struct lb_obj *obj;

	pthread_mutex_lock(&lb.big);
	obj = lb_object_find(handle, type);
	pthread_mutex_unlock(&lb.big);
	if (!obj)
		errno = ENOENT;
	return obj;
}

int lb_object_retire(const char *verb, const void *handle, enum lb_type type,
		     struct lb_obj **obj)
{
	struct lb_obj *found;
	int ret = lb_fault_errno(verb);

	if (ret)
		return lb_error(ret);
	pthread_mutex_lock(&lb.big);
	found = find(handle, type);
	if (found && !found->refs) {
		lb_object_del(found);
		*obj = found;
		return 0;
	}
	ret = found ? EBUSY : ENOENT;
	pthread_mutex_unlock(&lb.big);
	lb_log_misuse("%s(%p): %s", verb, handle,
		      found ? "others refer to it" : "no such object");
	return lb_error(ret);
}

/* --- what a child of fork() has of its parent */

void lb_object_inherit(enum lb_type type, void (*fn)(struct lb_obj *obj))
{
	struct lb_obj *obj;
	uint32_t i;

	for (i = 0; i < nbuckets; i++) {
		for (obj = *bucket_at(i); obj; obj = obj->next) {
			if (obj->type != type)
				continue;
			obj->is_inherited = true;
			fn(obj);
		}
	}
}

int lb_object_refuse(struct lb_obj *obj)
{
	static const char *const names[] = {
		[LB_CHANNEL - LB_CHANNEL] = "completion channel",
		[LB_CQ - LB_CHANNEL] = "completion queue",
		[LB_SRQ - LB_CHANNEL] = "shared receive queue",
		[LB_QP - LB_CHANNEL] = "queue pair",
	};

	/* relaxed: whoever is first says it */
	if (!atomic_exchange_explicit(&obj->is_said, true,
				      memory_order_relaxed))
		lb_log(0,
		       "%s %p was made before fork() and is the parent "
		       "process's: this process can only destroy the %s, and "
		       "has to make one of its own",
		       names[obj->type - LB_CHANNEL], obj->handle,
		       names[obj->type - LB_CHANNEL]);
	return EINVAL;
}
