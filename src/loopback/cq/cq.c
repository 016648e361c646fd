/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cq.c -- completion queues. A ring of cache lines; the seq of each line says
 * whether the line is full, so executors and pollers share nothing else.
 * Executors push under cq.push, applications poll under cq.poll.
 *
 * Arming takes cq.push too. So an arm comes either before a completion, which
 * then makes the event, or after the completion, and then the next poll sees
 * the completion.
 */

#include "cq/cq.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/advance.h"
#include "base/base.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/random.h"
#include "base/turn.h"
#include "base/zalloc.h"
#include "cq/channel.h"
#include "cq/due.h"
#include "fault/fault.h"
#include "object/async.h"
#include "object/device.h"
#include "object/limits.h"
#include "object/object.h"
#include "rpma_loopback.h"
#include "wire/nic.h"

#define POISON 0xa5

_Atomic uint32_t lb_cq_no_slot;

static _Atomic uint64_t overruns;

uint64_t lb_cq_overrun_count(void)
{
	/* relaxed: a counter */
	return atomic_load_explicit(&overruns, memory_order_relaxed);
}

int lb_cq_refuse(struct lb_cq *cq)
{
	return cq->magic == LB_INHERITED ? lb_object_refuse(&cq->obj) : EINVAL;
}

/* --- completing */

/* Spoils the undefined fields of a failed completion: only four are valid. */
static void poison(struct ibv_wc *wc)
{
	struct ibv_wc valid = *wc;

	if (lb_fault_knob(LB_KNOB_PLAIN_ERRORS))
		return;
	memset(wc, POISON, sizeof(*wc));
	wc->wr_id = valid.wr_id;
	wc->status = valid.status;
	wc->vendor_err = valid.vendor_err;
	wc->qp_num = valid.qp_num;
}

static bool is_full(struct lb_cq *cq)
{
	if (lb_likely(cq->tail - cq->head_seen < cq->cap))
		return false;
	/* acquire: pairs with the release in lb_cq_poll(): entries are read */
	cq->head_seen = atomic_load_explicit(&cq->head, memory_order_acquire);
	return cq->tail - cq->head_seen >= cq->cap;
}

static void stamp(struct lb_stamp *to)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	to->raw = lb_clock_now();
	to->wall = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
}

static void put(struct lb_cq *cq, const struct ibv_wc *wc,
		_Atomic uint32_t *freed, uint32_t pos)
{
	struct lb_cqe *cqe = &cq->ring[cq->tail & cq->mask];

	cqe->wc = *wc;
	if (wc->status != IBV_WC_SUCCESS)
		poison(&cqe->wc);
	if (!lb_likely(!cq->stamps))
		stamp(&cq->stamps[cq->tail & cq->mask]);
	cqe->pos = pos;
	cqe->freed = freed;
	cq->tail++;
	/* release: pairs with the acquire in peek(); publishes the entry */
	atomic_store_explicit(&cqe->seq, cq->tail, memory_order_release);
}

static void kill(struct lb_cq *cq)
{
	if (cq->dead)
		return;
	cq->dead = true;
	lb_async_add(lb_device_context_of(cq->ibv.context), &cq->asyncs,
		     IBV_EVENT_CQ_ERR, cq);
}

int lb_cq_push(struct lb_due *due, struct lb_cq *cq, const struct ibv_wc *wc,
	       _Atomic uint32_t *freed, uint32_t pos, bool solicited)
{
	bool full;

	lb_lock_get(&cq->push);
	full = is_full(cq);
	if (full)
		kill(cq);
	if (full || (cq->dead && !lb_fault_knob(LB_KNOB_AFTER_CQ_ERR))) {
		lb_lock_put(&cq->push);
		/* relaxed: a counter */
		atomic_fetch_add_explicit(&overruns, 1, memory_order_relaxed);
		return -1;
	}
	put(cq, wc, freed, pos);
	if (cq->armed == LB_ARM_ANY ||
	    (cq->armed == LB_ARM_SOLICITED &&
	     (solicited || wc->status != IBV_WC_SUCCESS))) {
		cq->armed = LB_ARM_NONE;
		if (cq->channel)
			lb_due_add(due, cq);
	}
	lb_lock_put(&cq->push);
	return 0;
}

/* --- polling */

/* Returns the entry at position head, or NULL if the entry is not full yet. */
static struct lb_cqe *peek(struct lb_cq *cq, uint32_t head)
{
	struct lb_cqe *cqe = &cq->ring[head & cq->mask];

	/* acquire: pairs with the release in put() */
	if (atomic_load_explicit(&cqe->seq, memory_order_acquire) != head + 1)
		return NULL;
	return cqe;
}

/* Frees the slot of the request. */
static void give_back(const struct lb_cqe *cqe)
{
	if (cqe->freed != &lb_cq_no_slot)
		lb_advance(cqe->freed, cqe->pos + 1);
}

bool lb_cq_take(struct lb_cq *cq, struct lb_cqe *out)
{
	/* relaxed: head changes under cq.poll only, which we hold */
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	struct lb_cqe *cqe;
	bool found = false;

	while (!found && (cqe = peek(cq, head))) {
		found = cqe->freed != NULL;
		if (found) {
			out->wc = cqe->wc;
			if (cq->stamps)
				cq->cur_stamp = cq->stamps[head & cq->mask];
			give_back(cqe);
		}
		head++;
	}
	/* release: pairs with the acquire in is_full() */
	atomic_store_explicit(&cq->head, head, memory_order_release);
	return found;
}

/* Polls; inline in both callers, because the path of an empty poll is short. */
static inline __attribute__((always_inline)) int
poll_alone(struct lb_cq *cq, int n, struct ibv_wc *wc)
{
	struct lb_cqe *cqe;
	uint32_t head;
	int got = 0;

	lb_lock_get(&cq->poll);
	/* relaxed: head changes under cq.poll only, which we hold */
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	while (got < n && (cqe = peek(cq, head))) {
		if (lb_likely(cqe->freed != NULL)) {
			wc[got++] = cqe->wc;
			give_back(cqe);
		}
		head++;
	}
	/* release: pairs with the acquire in is_full() */
	atomic_store_explicit(&cq->head, head, memory_order_release);
	lb_lock_put(&cq->poll);
	return got;
}

/* Takes earlier messages of other processes, and offers the CPU if there are no
 * completions. */
static __attribute__((noinline)) int poll_beside_others(struct lb_cq *cq, int n,
							struct ibv_wc *wc)
{
	int got;

	if (lb_nic_has_links())
		lb_nic_poll();
	got = poll_alone(cq, n, wc);
	lb_turn_polled(&lb_turn_mine, got);
	return got;
}

static void spurious(struct lb_cq *cq)
{
	uint32_t every = lb_fault_knob(LB_KNOB_SPURIOUS);

	if (every && cq->channel && lb_random() % every == 0)
		rpma_loopback_spurious_event(&cq->ibv);
}

int lb_cq_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct lb_cq *cq = (struct lb_cq *)ibv;
	int got = -lb_fault_errno("ibv_poll_cq");

	if (!lb_likely(cq->magic == LB_CQ))
		return -lb_cq_refuse(cq);
	if (got)
		return got;
	lb_hook(RPMA_LOOPBACK_POLL, ibv);
	if (lb_turn_has_others())
		got = poll_beside_others(cq, n, wc);
	else
		got = poll_alone(cq, n, wc);
	spurious(cq);
	lb_hook(RPMA_LOOPBACK_POLL_DONE, ibv);
	return got;
}

int lb_cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	struct lb_cq *cq = (struct lb_cq *)ibv;
	struct lb_due due = {0};
	int err = lb_fault_errno("ibv_req_notify_cq");

	if (cq->magic != LB_CQ)
		err = lb_cq_refuse(cq);
	else if (ibv->handle != cq->obj.number ||
		 ibv->context != cq->obj.context)
		err = ENOENT;
	if (err)
		return lb_error(err);
	lb_hook(RPMA_LOOPBACK_ARM, ibv);
	lb_lock_get(&cq->push);
	if (!solicited_only)
		cq->armed = LB_ARM_ANY;
	else if (cq->armed == LB_ARM_NONE)
		cq->armed = LB_ARM_SOLICITED;
	if (lb_fault_knob(LB_KNOB_ARM_PENDING) && cq->channel &&
	    /* relaxed: a poll at the same time may go either way */
	    cq->tail != atomic_load_explicit(&cq->head, memory_order_relaxed)) {
		cq->armed = LB_ARM_NONE;
		lb_due_add(&due, cq);
	}
	lb_lock_put(&cq->push);
	lb_due_pay(&due);
	if (lb_nic_has_links())
		lb_nic_poll_arm();
	lb_hook(RPMA_LOOPBACK_ARM_DONE, ibv);
	return 0;
}

void lb_cq_clean(struct lb_cq *cq, uint32_t qpn)
{
	uint32_t i;

	lb_lock_get(&cq->poll); /* first, as in ibv_resize_cq() */
	lb_lock_get(&cq->push);
	/* relaxed: head changes under cq.poll only, which we hold */
	for (i = atomic_load_explicit(&cq->head, memory_order_relaxed);
	     i != cq->tail; i++) {
		struct lb_cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->wc.qp_num == qpn)
			cqe->freed = NULL;
	}
	lb_lock_put(&cq->push);
	lb_lock_put(&cq->poll);
}

/* --- the objects */

static struct lb_cqe *ring_new(uint32_t cap, uint32_t head)
{
	uint32_t i, n = lb_pow2(cap);
	struct lb_cqe *ring = lb_zalloc_pages(n * sizeof(*ring));

	/* full would be head + 1..; zeroed already: a new ring stays
	 * untouched */
	for (i = 0; ring && head && i < n; i++)
		atomic_init(&ring[i].seq, head);
	return ring;
}

static void ring_free(struct lb_cqe *ring, uint32_t cap)
{
	lb_zalloc_free_pages(ring, lb_pow2(cap) * sizeof(*ring));
}

int lb_cq_keep_times(struct lb_cq *cq)
{
	cq->stamps = calloc(cq->mask + 1, sizeof(*cq->stamps));
	return cq->stamps ? 0 : ENOMEM;
}

/* References of a new CQ; lb.big held. */
static int attach(struct lb_cq *cq, struct ibv_context *context,
		  struct ibv_comp_channel *channel)
{
	struct lb_obj *ctx = lb_object_find(context, LB_CONTEXT);
	struct lb_obj *ch = NULL;
	int err;

	if (channel)
		ch = lb_object_find(channel, LB_CHANNEL);
	if (!ctx || (channel && (!ch || channel->context != context)))
		return EINVAL;
	err = lb_object_add(&cq->obj, &cq->ibv, LB_CQ, ctx->dev,
			    &cq->ibv.handle);
	if (err)
		return err;
	ctx->refs++;
	if (ch) {
		ch->refs++;
		channel->refcnt++;
	}
	return 0;
}

struct lb_cq *lb_cq_new(struct ibv_context *context, int cqe, void *cq_context,
			struct ibv_comp_channel *channel, int vector)
{
	struct lb_cq *cq = NULL;
	int err = lb_fault_errno("ibv_create_cq");

	if (!err && (cqe < 1 || cqe > LB_MAX_CQE))
		err = lb_log_refuse(EINVAL,
				    "ibv_create_cq(): cqe %d: the device has 1 "
				    "to %d",
				    cqe, LB_MAX_CQE);
	if (!err && (vector < 0 || vector >= LB_COMP_VECTORS))
		err = lb_log_refuse(EINVAL,
				    "ibv_create_cq(): comp_vector %d: the "
				    "device has %d vectors",
				    vector, LB_COMP_VECTORS);
	if (!err && !(cq = lb_zalloc(sizeof(*cq))))
		err = ENOMEM;
	if (!err && !(cq->ring = ring_new((uint32_t)cqe, 0)))
		err = ENOMEM;
	if (!err) {
		lb_async_init(&cq->asyncs);
		lb_list_init(&cq->node);
		cq->magic = LB_CQ;
		cq->cap = (uint32_t)cqe;
		cq->mask = lb_pow2(cq->cap) - 1;
		cq->channel = (struct lb_channel *)channel;
		cq->ibv.context = context;
		cq->ibv.channel = channel;
		cq->ibv.cq_context = cq_context;
		cq->ibv.cqe = cqe;
		pthread_mutex_init(&cq->ibv.mutex, NULL);
		pthread_cond_init(&cq->ibv.cond, NULL);
		pthread_mutex_lock(&lb.big);
		err = attach(cq, context, channel);
		pthread_mutex_unlock(&lb.big);
	}
	if (!err)
		return cq;
	if (cq)
		ring_free(cq->ring, (uint32_t)cqe);
	free(cq);
	lb_error_of("ibv_create_cq", err);
	return NULL;
}

LB_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				       void *cq_context,
				       struct ibv_comp_channel *channel,
				       int comp_vector)
{
	struct lb_cq *cq =
		lb_cq_new(context, cqe, cq_context, channel, comp_vector);

	return cq ? &cq->ibv : NULL;
}

/* The parts of a CQ that depend on its size. */
struct entries {
	struct lb_cqe *ring;
	struct lb_stamp *stamps;
	uint32_t cap;
	uint32_t mask;
};

static int entries_new(struct entries *e, const struct lb_cq *cq, uint32_t cap,
		       uint32_t head)
{
	e->cap = cap;
	e->mask = lb_pow2(cap) - 1;
	e->ring = ring_new(cap, head);
	e->stamps = cq->stamps ? calloc(e->mask + 1, sizeof(*e->stamps)) : NULL;
	return e->ring && (e->stamps || !cq->stamps) ? 0 : ENOMEM;
}

/* Replaces the entries of a CQ, moving present completions; both locks held. */
static void entries_change(struct lb_cq *cq, struct entries *e, uint32_t head)
{
	struct entries old = {cq->ring, cq->stamps, cq->cap, cq->mask};
	uint32_t i;

	for (i = head; i != cq->tail; i++) {
		memcpy(&e->ring[i & e->mask], &old.ring[i & old.mask],
		       sizeof(*e->ring));
		if (e->stamps)
			e->stamps[i & e->mask] = old.stamps[i & old.mask];
	}
	cq->ring = e->ring;
	cq->stamps = e->stamps;
	cq->cap = e->cap;
	cq->mask = e->mask;
	cq->ibv.cqe = (int)e->cap;
	*e = old;
}

LB_EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct lb_cq *cq = (struct lb_cq *)ibv;
	struct entries e = {0};
	uint32_t head;
	int err = lb_fault_errno("ibv_resize_cq");

	if (!err && !lb_object_check(ibv, LB_CQ))
		err = ENOENT;
	if (!err && (cqe < 1 || cqe > LB_MAX_CQE))
		err = EINVAL;
	if (err)
		return lb_error(err);
	/*
	 * cq.poll first: a program holds cq.poll from ibv_start_poll() to
	 * ibv_end_poll(), and posts meanwhile need cq.push.
	 */
	lb_lock_get(&cq->poll);
	lb_lock_get(&cq->push);
	/* relaxed: head changes under cq.poll only, which we hold */
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	if (cq->tail - head > (uint32_t)cqe)
		err = EINVAL;
	else
		err = entries_new(&e, cq, (uint32_t)cqe, head);
	if (!err)
		entries_change(cq, &e, head);
	lb_lock_put(&cq->push);
	lb_lock_put(&cq->poll);
	ring_free(e.ring, e.cap);
	free(e.stamps);
	return lb_error(err);
}

static bool is_quiet(void *arg)
{
	struct lb_cq *cq = arg;
	bool quiet;

	lb_lock_get(&cq->push);
	quiet = !cq->due && !cq->delivering;
	lb_lock_put(&cq->push);
	return quiet;
}

static bool is_acked(void *arg)
{
	struct lb_cq *cq = arg;
	bool acked;

	pthread_mutex_lock(&cq->ibv.mutex);
	acked = cq->ibv.comp_events_completed == cq->reported &&
		cq->ibv.async_events_completed == cq->asyncs.reported;
	pthread_mutex_unlock(&cq->ibv.mutex);
	return acked;
}

/* Waits until every delivered event was acknowledged, before the CQ goes. */
static void wait_acks(struct lb_cq *cq)
{
	LB_NOT_CANCELLED;

	if (!is_acked(cq) && cq->reported &&
	    pthread_equal(cq->reader, pthread_self()))
		lb_log_misuse(
			"ibv_destroy_cq(%p): its events are not acknowledged "
			"by the thread that got them, which now waits for "
			"itself",
			(void *)cq);
	if (lb_hook_block(is_acked, cq))
		return;
	pthread_mutex_lock(&cq->ibv.mutex);
	while (cq->ibv.comp_events_completed != cq->reported ||
	       cq->ibv.async_events_completed != cq->asyncs.reported)
		pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
	pthread_mutex_unlock(&cq->ibv.mutex);
}

static void detach(struct lb_cq *cq)
{
	pthread_mutex_lock(&lb.big);
	if (cq->channel) {
		cq->channel->obj.refs--;
		cq->channel->ibv.refcnt--;
	}
	lb_device_context_of(cq->ibv.context)->obj.refs--;
	pthread_mutex_unlock(&lb.big);
}

LB_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct lb_cq *cq = (struct lb_cq *)ibv;
	struct lb_obj *obj;
	int err;

	lb_hook(RPMA_LOOPBACK_DESTROY, ibv);
	err = lb_object_retire("ibv_destroy_cq", ibv, LB_CQ, &obj);
	if (err)
		return err;
	pthread_mutex_unlock(&lb.big);
	/* no QP completes here any more, but a thread may still deliver */
	if (!lb_hook_block(is_quiet, cq)) {
		while (!is_quiet(cq))
			sched_yield();
	}
	if (cq->channel)
		lb_channel_forget(cq);
	lb_async_forget(lb_device_context_of(ibv->context), &cq->asyncs);
	wait_acks(cq);
	detach(cq);
	lb_hook(RPMA_LOOPBACK_DESTROY_DONE, ibv);
	cq->magic = 0;
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(cq->stamps);
	ring_free(cq->ring, cq->cap);
	free(cq);
	return 0;
}

LB_EXPORT int rpma_loopback_break_cq(struct ibv_cq *ibv)
{
	struct lb_cq *cq = (struct lb_cq *)ibv;
	int err = -EINVAL;

	pthread_mutex_lock(&lb.big);
	if (lb_object_find(ibv, LB_CQ)) {
		lb_lock_get(&cq->push);
		kill(cq);
		lb_lock_put(&cq->push);
		err = 0;
	}
	pthread_mutex_unlock(&lb.big);
	return err;
}

LB_EXPORT int rpma_loopback_spurious_event(struct ibv_cq *ibv)
{
	struct lb_cq *cq = (struct lb_cq *)ibv;
	struct lb_due due = {0};
	int err = -EINVAL;

	pthread_mutex_lock(&lb.big);
	if (lb_object_find(ibv, LB_CQ) && cq->channel) {
		lb_lock_get(&cq->push);
		lb_due_add(&due, cq);
		lb_lock_put(&cq->push);
		err = 0;
	}
	pthread_mutex_unlock(&lb.big);
	lb_due_pay(&due);
	return err;
}

/* --- fork */

/* Nobody delivers, reads or acknowledges its events any more. */
static void inherit(struct lb_obj *obj)
{
	struct lb_cq *cq = obj->handle;

	cq->magic = LB_INHERITED;
	lb_lock_init(&cq->push);
	lb_lock_init(&cq->poll);
	lb_list_init(&cq->node);
	lb_list_init(&cq->asyncs.queued);
	cq->due = cq->delivering = cq->pending = 0;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq->reported = cq->ibv.comp_events_completed;
	cq->asyncs.reported = cq->ibv.async_events_completed;
}

void lb_cq_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_CHILD)
		lb_object_inherit(LB_CQ, inherit);
}
