/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mw.c -- memory windows, type 1 and 2B. A window has a row of the table that
 * keys index, with an rkey only, and that only while it is bound. Binding and
 * invalidating are work requests: they run under an sq.lock, not lb.big, so
 * the row of a window changes under a lock of its own, which an executor holds
 * for as long as it moves bytes through the window. A window that is no longer
 * bound is thus no longer in use either.
 */

#include "exec/exec.h"
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

#define KEY_MASK 0xffu /* what of an rkey the application chooses */

#define WINDOW_RIGHTS                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)
#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* What a bind work request asks for. */
struct bind {
	uint32_t rkey; /* the new one */
	uint32_t lkey;
	uint32_t access;
	uint64_t addr;
	uint64_t length;
	struct lb_mr_row *region; /* NULL: length is 0 */
};

/* --- the work requests; sq.lock held */

int lb_mw_set_bind(struct lb_wqe *wqe, struct ibv_mw *ibv, uint32_t rkey,
		   const struct ibv_mw_bind_info *info)
{
	struct lb_mw *mw = (struct lb_mw *)ibv;

	if (!mw || mw->magic != LB_MW || (!info->mr && info->length))
		return EINVAL;
	wqe->rkey = (ibv->rkey & ~KEY_MASK) | (rkey & KEY_MASK);
	wqe->imm = info->length ? info->mr->lkey : 0;
	wqe->remote_addr = info->addr;
	wqe->compare_add = info->length;
	wqe->swap = info->mw_access_flags;
	return 0;
}

/* May the region be bound so? Its row's lock held. */
static bool may_bind(const struct lb_mr_row *row, const struct bind *b,
		     const struct lb_qp *qp)
{
	uint64_t offset = b->addr - row->iova;

	/* relaxed: dereg changes it under the row's lock, which is held */
	if (atomic_load_explicit(&row->lkey, memory_order_relaxed) != b->lkey)
		return false;
	if (row->pd != qp->pd || !(row->access & IBV_ACCESS_MW_BIND) ||
	    (row->access & IBV_ACCESS_ZERO_BASED))
		return false;
	if ((b->access & REMOTE_WRITES) &&
	    !(row->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return b->addr >= row->iova && b->length <= row->length &&
	       offset <= row->length - b->length;
}

/* The region of a bind counts one window more, which keeps it registered. */
static bool region_hold(struct bind *b, const struct lb_qp *qp)
{
	struct lb_mr_row *row = lb_mr_row_of(b->lkey);
	bool ok;

	lb_lock_get(&row->lock);
	ok = b->lkey && may_bind(row, b, qp);
	if (ok)
		row->windows++;
	lb_lock_put(&row->lock);
	b->region = ok ? row : NULL;
	return ok;
}

static void region_drop(struct lb_mr_row *row)
{
	if (!row)
		return;
	lb_lock_get(&row->lock);
	row->windows--;
	lb_lock_put(&row->lock);
}

/* The window of row if it is the one that key is of; row->lock held. */
static struct lb_mw *window_of(const struct lb_mr_row *row, uint32_t key)
{
	struct lb_mw *mw = row->window;

	return mw && !((mw->key ^ key) & ~KEY_MASK) ? mw : NULL;
}

/* Bound to nothing; returns the region that it was bound to. */
static struct lb_mr_row *unbind(struct lb_mw *mw)
{
	struct lb_mr_row *region = mw->region;

	/* release: pairs with the acquire in lb_mr_remote() */
	atomic_store_explicit(&mw->row->rkey, 0, memory_order_release);
	mw->region = NULL;
	mw->qp_order = 0;
	return region;
}

/* The window changes over to what b says; its row's lock held. */
static void rebind(struct lb_mw *mw, const struct bind *b,
		   const struct lb_qp *qp)
{
	struct lb_mr_row *row = mw->row;

	mw->key = b->rkey;
	if (!b->region)
		return;
	mw->region = b->region;
	mw->qp_order = mw->ibv.type == IBV_MW_TYPE_2 ? qp->order : 0;
	row->access = b->access;
	row->length = b->length;
	row->iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
	/* nothing of the region's row changes while windows are bound to it */
	row->base = b->region->base + (b->addr - b->region->iova);
	/* release: pairs with the acquire in lb_mr_remote() */
	atomic_store_explicit(&row->rkey, mw->key, memory_order_release);
}

static bool is_bindable(const struct lb_mw *mw, const struct bind *b,
			const struct lb_qp *qp)
{
	if (!mw || mw->row->pd != qp->pd || (b->access & ~WINDOW_RIGHTS))
		return false;
	if (mw->ibv.type == IBV_MW_TYPE_1)
		return !(b->access & IBV_ACCESS_ZERO_BASED);
	return b->length && !mw->region;
}

static int bind_window(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	struct lb_mr_row *row = lb_mr_row_of(wqe->rkey), *old = NULL;
	struct bind b = {
		.rkey = wqe->rkey,
		.lkey = wqe->imm,
		.access = (uint32_t)wqe->swap,
		.addr = wqe->remote_addr,
		.length = wqe->compare_add,
	};
	struct lb_mw *mw;
	bool ok;

	if (b.length && !region_hold(&b, qp))
		return IBV_WC_MW_BIND_ERR;
	lb_lock_get(&row->lock);
	mw = window_of(row, b.rkey);
	ok = is_bindable(mw, &b, qp);
	if (ok) {
		old = unbind(mw);
		rebind(mw, &b, qp);
	}
	lb_lock_put(&row->lock);
	region_drop(ok ? old : b.region);
	return ok ? 0 : IBV_WC_MW_BIND_ERR;
}

bool lb_mw_invalidate(const struct lb_qp *qp, uint32_t rkey)
{
	struct lb_mr_row *row = lb_mr_row_of(rkey), *old = NULL;
	struct lb_mw *mw;
	bool ok;

	lb_lock_get(&row->lock);
	mw = window_of(row, rkey);
	ok = mw && mw->key == rkey && mw->ibv.type == IBV_MW_TYPE_2 &&
	     row->pd == qp->pd;
	if (ok)
		old = unbind(mw);
	lb_lock_put(&row->lock);
	region_drop(old);
	return ok;
}

int lb_mw_execute(const struct lb_qp *qp, const struct lb_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_BIND_MW)
		return bind_window(qp, wqe);
	return lb_mw_invalidate(qp, wqe->imm) ? 0 : IBV_WC_LOC_QP_OP_ERR;
}

/* --- the objects */

/* lb.big held. */
static int attach(struct lb_mw *mw, struct ibv_pd *ibv_pd)
{
	struct lb_obj *pd = lb_obj_find(ibv_pd, LB_PD);
	struct lb_mr_row *row = pd ? lb_mr_row_new() : NULL;
	int err = !pd ? EINVAL : !row ? ENOMEM : 0;

	if (!err)
		err = lb_obj_add(&mw->obj, &mw->ibv, LB_MW, pd->dev,
				 &mw->ibv.handle);
	if (err) {
		if (row)
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

struct ibv_mw *lb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct lb_mw *mw = NULL;
	int err = lb_fail("ibv_alloc_mw");

	if (!err && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		err = EINVAL;
	if (!err && !(mw = calloc(1, sizeof(*mw))))
		err = ENOMEM;
	if (!err) {
		mw->magic = LB_MW;
		mw->ibv.context = pd->context;
		mw->ibv.pd = pd;
		mw->ibv.type = type;
		pthread_mutex_lock(&lb.big);
		err = attach(mw, pd);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err)
		return &mw->ibv;
	free(mw);
	errno = err;
	return NULL;
}

int lb_dealloc_mw(struct ibv_mw *ibv)
{
	struct lb_mw *mw = (struct lb_mw *)ibv;
	struct lb_mr_row *row, *region;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_obj_retire("ibv_dealloc_mw", ibv, LB_MW, &obj);
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

int lb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *ask)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = ask->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = ask->send_flags,
			.bind_mw =
				{
					.mw = mw,
					.rkey = ibv_inc_rkey(mw->rkey),
					.bind_info = ask->bind_info,
				},
		};
	int err = lb_fail("ibv_bind_mw");

	if (!err && (ask->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED))
		err = EINVAL; /* of a type 1 window */
	if (!err)
		err = lb_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return lb_error(err);
}
