/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mw.c -- memory windows, type 1 and 2B. A window has a row of the table
 * indexed by keys, with an rkey only while bound. Binding and invalidating are
 * work requests: both run under an sq.lock, not lb.big, so the row of a window
 * changes under a separate lock, held by an executor as long as bytes move
 * through the window. So a window no longer bound is no longer in use either.
 */

#include "memory/mw.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/lock.h"
#include "base/newer.h"
#include "base/process.h"
#include "fault/fault.h"
#include "memory/barrier.h"
#include "memory/mr.h"
#include "memory/pd.h"
#include "object/object.h"
#include "rpma_loopback.h"

#define KEY_MASK 0xffu /* the part of an rkey chosen by the application */

/* a window opens memory to others: the right of local writes has no effect */
#define WINDOW_RIGHTS                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_ZERO_BASED | LB_ACCESS_FLUSH)
#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* --- the work requests; sq.lock held */

int lb_mw_ask(struct lb_mw_bind *b, struct ibv_mw *ibv, uint32_t rkey,
	      const struct ibv_mw_bind_info *info)
{
	struct lb_mw *mw = (struct lb_mw *)ibv;

	if (!mw || mw->magic != LB_MW || (!info->mr && info->length))
		return EINVAL;
	b->rkey = (ibv->rkey & ~KEY_MASK) | (rkey & KEY_MASK);
	b->lkey = info->length ? info->mr->lkey : 0;
	b->addr = info->addr;
	b->length = info->length;
	b->access = info->mw_access_flags;
	return 0;
}

/* Returns true if the region allows the bind. The lock of the row is held. */
static bool may_bind(const struct lb_mr_row *row, const struct lb_mw_bind *b,
		     const struct ibv_pd *pd)
{
	uint64_t offset = b->addr - row->iova;

	/* relaxed: dereg changes the key under the lock of the row, which is
	 * held */
	if (atomic_load_explicit(&row->lkey, memory_order_relaxed) != b->lkey)
		return false;
	if (row->pd != pd || !(row->access & IBV_ACCESS_MW_BIND) ||
	    (row->access & IBV_ACCESS_ZERO_BASED))
		return false;
	if ((b->access & REMOTE_WRITES) &&
	    !(row->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return b->addr >= row->iova && b->length <= row->length &&
	       offset <= row->length - b->length;
}

/*
 * Holds the region of a bind, by counting a window more, which keeps the region
 * registered. Returns NULL if the region does not allow the bind.
 */
static struct lb_mr_row *region_hold(const struct lb_mw_bind *b,
				     const struct ibv_pd *pd)
{
	struct lb_mr_row *row = lb_mr_row_of(b->lkey);
	bool ok;

	lb_lock_get(&row->lock);
	ok = b->lkey && may_bind(row, b, pd);
	if (ok)
		row->windows++;
	lb_lock_put(&row->lock);
	return ok ? row : NULL;
}

static void region_drop(struct lb_mr_row *row)
{
	if (!row)
		return;
	lb_lock_get(&row->lock);
	row->windows--;
	lb_lock_put(&row->lock);
}

/*
 * Returns the window of row if the key belongs to the window; row->lock held.
 */
static struct lb_mw *window_of(const struct lb_mr_row *row, uint32_t key)
{
	struct lb_mw *mw = row->window;

	return mw && !((mw->key ^ key) & ~KEY_MASK) ? mw : NULL;
}

/* Unbinds a window; returns the region bound before. */
static struct lb_mr_row *unbind(struct lb_mw *mw)
{
	struct lb_mr_row *region = mw->region;

	/* release: pairs with the acquire in lb_mr_remote() */
	atomic_store_explicit(&mw->row->rkey, 0, memory_order_release);
	mw->region = NULL;
	mw->qp_order = 0;
	return region;
}

/* Binds the window anew as in b; the lock of the row is held. */
static void rebind(struct lb_mw *mw, const struct lb_mw_bind *b,
		   struct lb_mr_row *region, uint64_t order)
{
	struct lb_mr_row *row = mw->row;

	mw->key = b->rkey;
	if (!region)
		return;
	mw->region = region;
	mw->qp_order = mw->ibv.type == IBV_MW_TYPE_2 ? order : 0;
	row->access = b->access;
	row->length = b->length;
	row->iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
	/* nothing in the row of a region changes while windows are bound to the
	 * region */
	row->base = region->base + (b->addr - region->iova);
	/* release: pairs with the acquire in lb_mr_remote() */
	atomic_store_explicit(&row->rkey, mw->key, memory_order_release);
}

static bool is_bindable(const struct lb_mw *mw, const struct lb_mw_bind *b,
			const struct ibv_pd *pd)
{
	if (!mw || mw->row->pd != pd || (b->access & ~WINDOW_RIGHTS))
		return false;
	if (mw->ibv.type == IBV_MW_TYPE_1)
		return !(b->access & IBV_ACCESS_ZERO_BASED);
	return b->length && !mw->region;
}

bool lb_mw_bind(const struct lb_mw_bind *b, const struct lb_mr_user *user)
{
	struct lb_mr_row *row = lb_mr_row_of(b->rkey);
	struct lb_mr_row *region = NULL, *old = NULL;
	struct lb_mw *mw;
	bool ok;

	if (b->length && !(region = region_hold(b, user->pd)))
		return false;
	lb_lock_get(&row->lock);
	mw = window_of(row, b->rkey);
	ok = is_bindable(mw, b, user->pd);
	if (ok) {
		old = unbind(mw);
		rebind(mw, b, region, user->order);
	}
	lb_lock_put(&row->lock);
	region_drop(ok ? old : region);
	return ok;
}

bool lb_mw_invalidate(uint32_t rkey, const struct ibv_pd *pd)
{
	struct lb_mr_row *row = lb_mr_row_of(rkey), *old = NULL;
	struct lb_mw *mw;
	bool ok;

	lb_lock_get(&row->lock);
	mw = window_of(row, rkey);
	ok = mw && mw->key == rkey && mw->ibv.type == IBV_MW_TYPE_2 &&
	     row->pd == pd;
	if (ok)
		old = unbind(mw);
	lb_lock_put(&row->lock);
	region_drop(old);
	return ok;
}

/* --- the objects */

/* lb.big held. */
static int attach(struct lb_mw *mw, struct ibv_pd *ibv_pd)
{
	struct lb_obj *pd = lb_object_find(ibv_pd, LB_PD);
	struct lb_mr_row *row = pd ? lb_mr_row_new() : NULL;
	int err;

	if (!row)
		return pd ? ENOMEM : EINVAL;
	mw->ibv.context = ibv_pd->context;
	mw->ibv.pd = ibv_pd;
	err = lb_object_add(&mw->obj, &mw->ibv, LB_MW, pd->dev,
			    &mw->ibv.handle);
	if (err) {
		lb_mr_row_free(row);
		return err;
	}
	pd->refs++;
	mw->row = row;
	mw->key = lb_mr_row_key(row);
	mw->ibv.rkey = mw->key;
	lb_lock_get(&row->lock);
	row->pd = lb_pd_root(ibv_pd);
	row->window = mw;
	lb_lock_put(&row->lock);
	return 0;
}

struct ibv_mw *lb_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct lb_mw *mw = NULL;
	int err = lb_fault_errno("ibv_alloc_mw");

	if (!err && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		err = EINVAL;
	if (!err && !(mw = calloc(1, sizeof(*mw))))
		err = ENOMEM;
	if (!err) {
		mw->magic = LB_MW;
		mw->ibv.type = type;
		pthread_mutex_lock(&lb.big);
		err = attach(mw, pd);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err)
		return &mw->ibv;
	free(mw);
	lb_error_of("ibv_alloc_mw", err);
	return NULL;
}

int lb_mw_dealloc(struct ibv_mw *ibv)
{
	struct lb_mw *mw = (struct lb_mw *)ibv;
	struct lb_mr_row *row, *region;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_dealloc_mw", ibv, LB_MW, &obj);
	if (err)
		return err;
	row = mw->row;
	lb_lock_get(&row->lock);
	region = unbind(mw);
	lb_lock_put(&row->lock);
	region_drop(region);
	/* whoever saw the rkey may still look whether a window is in the row */
	lb_barrier_wait();
	lb_lock_get(&row->lock);
	row->window = NULL;
	lb_lock_put(&row->lock);
	lb_mr_row_free(row);
	((struct lb_pd *)ibv->pd)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	mw->magic = 0;
	free(mw);
	return 0;
}
