/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * qp.c -- queue pairs as objects: slots, creation, destruction. A slot (struct
 * lb_qp) is used again and again and never freed; a slot is in use while qpn is
 * not 0. doc/protocols/loopback.md explains why so a QP can be destroyed safely
 * while others execute towards the QP. Slots are made on demand, at most
 * LB_MAX_QP.
 */

#include "qp/qp.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/advance.h"
#include "base/base.h"
#include "base/cancel.h"
#include "base/hook.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/zalloc.h"
#include "cq/channel.h"
#include "cq/cq.h"
#include "fault/fault.h"
#include "memory/pd.h"
#include "object/async.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"
#include "qp/number.h"
#include "qp/rq.h"
#include "qp/srq.h"
#include "qp/wqe.h"
#include "rpma_loopback.h"
#include "wire/link.h"

/* under lb.big */
static struct lb_qp *slots;	 /* all slots */
static struct lb_qp *free_slots; /* slots without a QP */
static uint32_t nslots;
static uint64_t created; /* QPs so far */

/* --- locks */

void lb_qp_lock(struct lb_qp *qp)
{
	lb_lock_get(&qp->sq_lock);
	lb_lock_get(&qp->rq.pop);
	lb_lock_get(&qp->rq.post);
}

void lb_qp_unlock(struct lb_qp *qp)
{
	lb_lock_put(&qp->rq.post);
	lb_lock_put(&qp->rq.pop);
	lb_lock_put(&qp->sq_lock);
}

void lb_qp_event(struct lb_qp *qp, enum ibv_event_type type)
{
	lb_async_add(qp->ctx, &qp->handle->asyncs, type, qp->handle);
}

struct lb_qp *lb_qp_slots(void)
{
	return slots;
}

/* --- slots; all under lb.big */

static struct lb_qp *slot_new(void)
{
	struct lb_qp *qp = lb_zalloc(sizeof(*qp));

	if (!qp)
		return NULL;
	lb_link_waiter_init(&qp->remote.waiter);
	qp->tally = &qp->own_tally;
	nslots++;
	qp->next = slots;
	slots = qp;
	return qp;
}

/* NULL: no memory, or all slots are in use. */
static struct lb_qp *slot_take(void)
{
	struct lb_qp *qp = free_slots;

	if (!qp)
		return nslots < LB_MAX_QP ? slot_new() : NULL;
	free_slots = qp->free_next;
	return qp;
}

static void slot_give(struct lb_qp *qp)
{
	qp->free_next = free_slots;
	free_slots = qp;
}

/* --- creation */

static bool is_too_much(const char *what, uint32_t asked, uint32_t limit)
{
	if (asked <= limit)
		return false;
	lb_log_refuse(EINVAL, "ibv_create_qp(): %s %u: the device has %u", what,
		      asked, limit);
	return true;
}

static int check_caps(const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;

	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UC &&
	    init->qp_type != IBV_QPT_UD)
		return lb_log_refuse(EOPNOTSUPP,
				     "ibv_create_qp(): type %d: the device has "
				     "RC, UC and UD",
				     init->qp_type);
	/* with an SRQ there are no receives of its own */
	if (is_too_much("max_send_wr", cap->max_send_wr, LB_MAX_QP_WR) ||
	    is_too_much("max_send_sge", cap->max_send_sge, LB_MAX_SGE) ||
	    (!init->srq &&
	     (is_too_much("max_recv_wr", cap->max_recv_wr, LB_MAX_QP_WR) ||
	      is_too_much("max_recv_sge", cap->max_recv_sge, LB_MAX_SGE))) ||
	    is_too_much("max_inline_data", cap->max_inline_data, LB_MAX_INLINE))
		return EINVAL;
	return 0;
}

static uint32_t sq_stride_of(const struct ibv_qp_cap *cap)
{
	size_t tail = cap->max_send_sge * sizeof(struct ibv_sge);
	size_t stride;

	if (tail < cap->max_inline_data)
		tail = cap->max_inline_data;
	stride = offsetof(struct lb_wqe, sge) + tail;
	if (stride < sizeof(struct lb_wqe))
		stride = sizeof(struct lb_wqe);
	return (uint32_t)((stride + LB_CACHE_LINE - 1) &
			  ~(size_t)(LB_CACHE_LINE - 1));
}

/* Returns how many bytes of inline data fit where the pieces stand. */
static uint32_t inline_room(const struct ibv_qp_cap *cap)
{
	size_t room = sq_stride_of(cap) - offsetof(struct lb_wqe, sge);

	return room < LB_MAX_INLINE ? (uint32_t)room : LB_MAX_INLINE;
}

/*
 * Makes both rings and their arrays, in one block: the heap of a thread other
 * than the first thread of the program grows by a system call for each block of
 * some pages.
 */
static int queues_init(struct lb_qp *qp, uint32_t recvs, uint32_t recv_sge)
{
	size_t sends = lb_pow2(qp->cap.max_send_wr);
	size_t sq_bytes, rq_bytes;
	uint8_t *at;

	qp->sq_stride = sq_stride_of(&qp->cap);
	qp->sq_mask = (uint32_t)sends - 1;
	sq_bytes = sends * qp->sq_stride;
	rq_bytes = lb_rq_bytes(recvs, recv_sge);
	at = lb_zalloc(sq_bytes + rq_bytes + sends * sizeof(*qp->sq_checks));
	if (!at)
		return ENOMEM;
	qp->sq = at;
	lb_rq_init(&qp->rq, recvs, recv_sge, at + sq_bytes);
	qp->sq_checks = (uint64_t *)(void *)(at + sq_bytes + rq_bytes);
	return 0;
}

static void queues_fini(struct lb_qp *qp)
{
	lb_rq_fini(&qp->rq);
	free(qp->sq);
	qp->sq = NULL;
	qp->sq_checks = NULL;
}

static void leave(struct lb_link **link, struct lb_waiter *waiter)
{
	if (!*link)
		return;
	lb_link_leave(*link, waiter);
	lb_link_put(*link);
	*link = NULL;
}

/*
 * Resets the remote half: answers to earlier requests come too late, and find
 * another life.
 */
static void remote_reset(struct lb_qp *qp)
{
	struct lb_remote *r = &qp->remote;

	r->life++;
	r->acked.pos = qp->sq_exec;
	r->acked.offset = 0;
	r->sent = r->acked;
	r->reads = 0;
	r->fan = 0;
	leave(&r->link, &r->waiter);
	leave(&r->way, &r->waiter);
	lb_remote_look_at(r, NULL);
}

void lb_qp_reset(struct lb_qp *qp)
{
	qp->sq_exec = qp->sq_tail;
	qp->sq_batch = NULL;
	qp->sq_freed_seen = qp->sq_tail;
	lb_advance(&qp->sq_freed, qp->sq_tail);
	memset(&qp->exec, 0, sizeof(qp->exec));
	remote_reset(qp);
	qp->sq_drained_wanted = false;
	qp->sent_packets = 0;
	qp->sent_messages = 0;
	qp->answered_messages = 0;
	lb_rq_reset(&qp->rq);
	qp->resp.is_working = false;
	qp->resp.busy = false;
	qp->resp.is_late = false;
	qp->resp.comm_est = false;
	qp->resp.last_wqe = false;
	/* relaxed: ordered by the locks */
	atomic_store_explicit(&qp->state, IBV_QPS_RESET, memory_order_relaxed);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->peer_qpn = 0;
	qp->peer_home = NULL;
	qp->access = 0;
}

/* Counts where the launcher looks, if there is room, and in the slot else. */
static void tally_choose(struct lb_qp *qp)
{
	struct lb_tally *tally = NULL;

	if (qp->tally == &qp->own_tally)
		tally = lb_tally_claim();
	if (tally)
		qp->tally = tally;
}

/* Fills the slot for the handle; all locks of the slot held. */
static int slot_fill(struct lb_qp *qp, struct lb_qp_handle *handle)
{
	const struct ibv_qp_init_attr *init = &handle->init;
	int err;

	qp->cap = init->cap;
	err = queues_init(qp, init->srq ? 0 : qp->cap.max_recv_wr,
			  init->srq ? 0 : qp->cap.max_recv_sge);
	if (err)
		return err;
	qp->send_cq = (struct lb_cq *)init->send_cq;
	qp->recv_cq = (struct lb_cq *)init->recv_cq;
	qp->srq = (struct lb_srq *)init->srq;
	qp->pd = lb_pd_root(handle->ibv.pd);
	qp->ctx = lb_device_context_of(handle->ibv.context);
	qp->dev = lb_device_of(handle->ibv.context);
	qp->handle = handle;
	qp->sig_all = init->sq_sig_all;
	qp->type = init->qp_type;
	qp->home = lb_home(qp->dev, qp->type);
	lb_qp_reset(qp);
	tally_choose(qp);
	qp->order = ++created;
	handle->qpn = lb_qp_number_new(qp);
	/* relaxed: a comparing thread holds one of the locks */
	atomic_store_explicit(&qp->qpn, handle->qpn, memory_order_relaxed);
	return 0;
}

static void count_refs(const struct lb_qp_handle *handle, int n)
{
	((struct lb_pd *)handle->ibv.pd)->obj.refs += n;
	((struct lb_cq *)handle->ibv.send_cq)->obj.refs += n;
	((struct lb_cq *)handle->ibv.recv_cq)->obj.refs += n;
	if (handle->ibv.srq)
		((struct lb_srq *)handle->ibv.srq)->obj.refs += n;
}

static void handle_fill(struct lb_qp_handle *handle, struct ibv_pd *pd)
{
	const struct ibv_qp_init_attr *init = &handle->init;

	handle->magic = LB_QP;
	lb_async_init(&handle->asyncs);
	handle->ibv.context = pd->context;
	handle->ibv.qp_context = init->qp_context;
	handle->ibv.pd = pd;
	handle->ibv.send_cq = init->send_cq;
	handle->ibv.recv_cq = init->recv_cq;
	handle->ibv.srq = init->srq;
	handle->ibv.state = IBV_QPS_RESET;
	handle->ibv.qp_type = init->qp_type;
}

static bool are_live(const struct ibv_qp_init_attr *init,
		     const struct ibv_pd *pd)
{
	return lb_object_find(pd, LB_PD) &&
	       lb_object_find(init->send_cq, LB_CQ) &&
	       lb_object_find(init->recv_cq, LB_CQ) &&
	       (!init->srq || lb_object_find(init->srq, LB_SRQ)) &&
	       init->send_cq->context == pd->context &&
	       init->recv_cq->context == pd->context &&
	       (!init->srq || init->srq->context == pd->context);
}

/* Give the handle a slot; lb.big held. */
static int attach(struct lb_qp_handle *handle, struct ibv_pd *pd)
{
	struct lb_device *dev;
	struct lb_qp *qp;
	int err;

	if (!are_live(&handle->init, pd))
		return EINVAL;
	dev = lb_device_of(pd->context);
	if (!lb_device_at(dev->index))
		return EIO;
	qp = slot_take();
	if (!qp)
		return ENOMEM;
	handle_fill(handle, pd);
	lb_qp_lock(qp);
	err = slot_fill(qp, handle);
	lb_qp_unlock(qp);
	if (!err)
		err = lb_object_add(&handle->obj, &handle->ibv, LB_QP, dev,
				    &handle->ibv.handle);
	if (err) { /* only ENOMEM of slot_fill(): QPs have a single table */
		slot_give(qp);
		return err;
	}
	count_refs(handle, 1);
	handle->qp = qp;
	handle->ibv.qp_num = handle->qpn;
	return 0;
}

struct lb_qp_handle *lb_qp_new(struct ibv_pd *pd,
			       const struct ibv_qp_init_attr *init)
{
	struct lb_qp_handle *handle = NULL;
	int err = lb_fault_errno("ibv_create_qp");

	if (!err)
		err = check_caps(init);
	if (!err && !(handle = lb_zalloc(sizeof(*handle))))
		err = ENOMEM;
	if (!err) {
		handle->init = *init;
		if (!init->cap.max_send_sge)
			handle->init.cap.max_send_sge = 1;
		handle->init.cap.max_inline_data =
			inline_room(&handle->init.cap);
		pthread_mutex_init(&handle->ibv.mutex, NULL);
		pthread_cond_init(&handle->ibv.cond, NULL);
		pthread_mutex_lock(&lb.big);
		err = attach(handle, pd);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err)
		return handle;
	free(handle);
	lb_error_of("ibv_create_qp", err);
	return NULL;
}

LB_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *init)
{
	struct lb_qp_handle *handle = lb_qp_new(pd, init);

	if (!handle)
		return NULL;
	init->cap = handle->init.cap;
	return &handle->ibv;
}

/* --- destruction */

static void check_destroy(const struct lb_qp_handle *handle)
{
	const struct lb_qp *qp = handle->qp;
	/* relaxed: constant while the locks are held */
	uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	if (state == IBV_QPS_RTS && qp->sq_exec != qp->sq_tail)
		lb_log_misuse("ibv_destroy_qp(%#x): %u sends are still posted",
			      handle->qpn, qp->sq_tail - qp->sq_exec);
}

/*
 * Removes the completions of a QP. Without lb.big, because a thread holding
 * cq.poll may wait for lb.big. The number is not given out again before the CQs
 * are clean.
 */
static void clean_cqs(const struct lb_qp_handle *handle)
{
	pthread_mutex_unlock(&lb.big);
	lb_cq_clean((struct lb_cq *)handle->ibv.send_cq, handle->qpn);
	lb_cq_clean((struct lb_cq *)handle->ibv.recv_cq, handle->qpn);
	pthread_mutex_lock(&lb.big);
}

/* Separates the handle from its slot; lb.big held, and released meanwhile. */
static void detach(struct lb_qp_handle *handle)
{
	struct lb_qp *qp = handle->qp;

	lb_qp_lock(qp);
	check_destroy(handle);
	/* relaxed: a comparing thread holds one of the locks */
	atomic_store_explicit(&qp->qpn, 0, memory_order_relaxed);
	lb_qp_reset(qp);
	queues_fini(qp);
	lb_qp_unlock(qp);
	if (lb_fault_knob(LB_KNOB_DESTROY_CLEANS))
		clean_cqs(handle);
	lb_qp_number_drop(handle->qpn);
	slot_give(qp);
	count_refs(handle, -1);
}

static bool is_acked(void *arg)
{
	struct lb_qp_handle *handle = arg;
	bool acked;

	pthread_mutex_lock(&handle->ibv.mutex);
	acked = handle->ibv.events_completed == handle->asyncs.reported;
	pthread_mutex_unlock(&handle->ibv.mutex);
	return acked;
}

static void wait_acks(struct lb_qp_handle *handle)
{
	LB_NOT_CANCELLED;

	if (lb_hook_block(is_acked, handle))
		return;
	pthread_mutex_lock(&handle->ibv.mutex);
	while (handle->ibv.events_completed != handle->asyncs.reported)
		pthread_cond_wait(&handle->ibv.cond, &handle->ibv.mutex);
	pthread_mutex_unlock(&handle->ibv.mutex);
}

LB_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_destroy_qp", ibv, LB_QP, &obj);
	if (err)
		return err;
	detach(handle);
	pthread_mutex_unlock(&lb.big);
	lb_async_forget(lb_device_context_of(ibv->context), &handle->asyncs);
	wait_acks(handle);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	handle->magic = 0;
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(handle);
	return 0;
}

/* --- fork */

int lb_qp_refuse(struct lb_qp_handle *handle)
{
	return handle->magic == LB_INHERITED ? lb_object_refuse(&handle->obj)
					     : EINVAL;
}

static void inherit(struct lb_obj *obj)
{
	struct lb_qp_handle *handle = lb_entry(obj, struct lb_qp_handle, obj);

	handle->magic = LB_INHERITED;
	lb_list_init(&handle->asyncs.queued);
	pthread_mutex_init(&handle->ibv.mutex, NULL);
	pthread_cond_init(&handle->ibv.cond, NULL);
	handle->asyncs.reported = handle->ibv.events_completed;
}

void lb_qp_fork(enum lb_fork_step step)
{
	struct lb_qp *qp;

	if (step != LB_FORK_CHILD)
		return;
	lb_tally_forked();
	/* threads of the parent may have had locks at the fork, and the counts
	 * so far are the counts of the parent */
	for (qp = slots; qp; qp = qp->next) {
		qp->tally = &qp->own_tally;
		memset(qp->tally, 0, sizeof(*qp->tally));
		qp->sq_batch = NULL;
		lb_link_waiter_init(&qp->remote.waiter);
		lb_lock_init(&qp->sq_lock);
		lb_lock_init(&qp->rq.post);
		lb_lock_init(&qp->rq.pop);
	}
	lb_object_inherit(LB_QP, inherit);
}

/* --- counters */

void lb_qp_tally(struct lb_tally *sum)
{
	bool has_big = lb_lock_get_mutex_soon(&lb.big), has_sq, has_pop;
	struct lb_qp *qp;

	memset(sum, 0, sizeof(*sum));
	for (qp = slots; qp; qp = qp->next) {
		has_sq = lb_lock_get_soon(&qp->sq_lock);
		has_pop = lb_lock_get_soon(&qp->rq.pop);
		lb_tally_add(sum, qp->tally);
		if (has_pop)
			lb_lock_put(&qp->rq.pop);
		if (has_sq)
			lb_lock_put(&qp->sq_lock);
	}
	if (has_big)
		pthread_mutex_unlock(&lb.big);
}

LB_EXPORT void rpma_loopback_get_stats(struct rpma_loopback_stats *stats)
{
	struct lb_tally sum;

	lb_qp_tally(&sum);
	stats->executed = sum.executed;
	stats->failed = sum.failed;
	stats->flushed = sum.flushed + sum.flushed_receives;
	stats->bytes = sum.bytes;
	stats->received = sum.received;
	stats->rnr = sum.rnr;
	stats->retries = sum.retries;
	stats->lost = sum.lost;
	stats->events = lb_channel_event_count();
	stats->async_events = lb_async_count();
	stats->overruns = lb_cq_overrun_count();
	stats->misuses = lb_log_misuse_count();
}
