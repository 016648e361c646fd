/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting to a shared receive queue from any thread, under its
 * lock; on a poller thread the lock is only tried. doc/protocols/srq.md.
 */

#include "srq/srq.h"

#include <infiniband/verbs.h>

#include "base/chunks.h"
#include "base/context.h"
#include "base/device.h"
#include "base/failure.h"
#include "base/likely.h"
#include "base/refuse.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/verb.h"
#include "base/wr.h"
#include "poller/want.h"
#include "poller/poller.h"

/* --------------------------------------------------------------- credit --- */

/* Slots that may be taken. */
static uint32_t room(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-1]: pairs with rt_srq_retire_poller(); the slots, and
	 * with their credit the flag that a lane holds us */
	return atomic_load_explicit(&srq->retired, memory_order_acquire) -
	       srq->taken;
}

/* In *credit so many slots that the answer is for. */
static enum rpma_rt_again refusal(const struct rpma_rt_srq *srq,
				  uint32_t *credit)
{
	*credit = room(srq);
	if (*credit == 0)
		return RPMA_RT_AGAIN_CREDIT;
	/* acquire [SRQ-2]: pairs with the clear in let_go_on(); that a
	 * set flag is seen comes from the acquire before this */
	if (atomic_load_explicit(&srq->behind, memory_order_acquire))
		return RPMA_RT_AGAIN_BACKLOG;
	return RPMA_RT_AGAIN_NONE;
}

/* Are we inside its refill function? */
static bool is_refilling(const struct rpma_rt_srq *srq)
{
	return rt_self_poller() == srq->poller && srq->refilling;
}

/* As take_credit() of a connection's side; a refill function is called again
 * instead of an event. */
static int take_credit(struct rpma_rt_srq *srq, uint32_t *credit)
{
	enum rpma_rt_again reason;
	uint32_t want;
	uint32_t before;

	while ((reason = refusal(srq, credit)) != RPMA_RT_AGAIN_NONE) {
		if (is_refilling(srq)) {
			srq->refill_waits |= reason == RPMA_RT_AGAIN_BACKLOG;
			return rt_want_again(reason);
		}
		want = reason == RPMA_RT_AGAIN_CREDIT ? RT_WANT_CREDIT
						      : RT_WANT_BACKLOG;
		/* relaxed: the fence orders it */
		before = atomic_fetch_or_explicit(&srq->want, want,
						  memory_order_relaxed);
		/* pairs with flush_once() and the retry of spills [LEDGER-2] */
		rt_fence_dekker();
		if (refusal(srq, credit) == reason ||
		    !rt_want_take_back(&srq->want, want, before))
			return rt_want_again(reason);
	}
	return 0;
}

/* Inside a function that is not its own refill: its queue gets WRITABLE. */
static int refuse_lock(struct rpma_rt_srq *srq)
{
	int ret = RPMA_RT_E_CLOSED;

	/* it ends under this lock, and its poller sees the message before */
	pthread_mutex_lock(&srq->rt->ask_lock);
	if (!srq->closed) {
		/* relaxed: the message orders it */
		atomic_fetch_or_explicit(&srq->want, RT_WANT_LOCK,
					 memory_order_relaxed);
		/* acq_rel: pairs with the exchange in rt_srq_lock_message():
		 * either that sees the want, or the message is sent again */
		if (!atomic_exchange_explicit(&srq->lock_sent, true,
					      memory_order_acq_rel))
			rt_inbox_push_mt(&srq->poller->inbox, &srq->lock_msg);
		ret = rt_want_again(RPMA_RT_AGAIN_LOCK);
	}
	pthread_mutex_unlock(&srq->rt->ask_lock);
	return ret;
}

static int enter(struct rpma_rt_srq *srq)
{
	if (!rt_self_is_poller()) {
		pthread_mutex_lock(&srq->lock);
	} else if (pthread_mutex_trylock(&srq->lock)) {
		if (!is_refilling(srq))
			return refuse_lock(srq);
		srq->refill_again = true;
		return rt_want_again(RPMA_RT_AGAIN_LOCK);
	}
	if (!srq->closed && !rt_srq_has_failed(srq))
		return 0;
	pthread_mutex_unlock(&srq->lock);
	return RPMA_RT_E_CLOSED;
}

/* -------------------------------------------------------------- posting --- */

/* Are as many receives out as the limit, or more? */
static bool is_limit_out(const struct rpma_rt_srq *srq)
{
	return srq->cfg.limit != 0 &&
	       srq->cfg.srq_size - room(srq) >= srq->cfg.limit;
}

/*
 * As many are out now, or will be in a moment: before the device has them, so
 * that the poller never counts more back than out.
 */
static void publish(struct rpma_rt_srq *srq)
{
	/* relaxed: the device's completion, which the poller counts against
	 * it, comes after */
	atomic_store_explicit(&srq->posted, srq->taken, memory_order_relaxed);
}

/* Without a function: so many were published; is SRQ_LIMIT to follow? Before
 * the device has them, too: what completes then finds the flag. */
static void watch(struct rpma_rt_srq *srq, uint32_t count)
{
	if (srq->cfg.refill != NULL || srq->cfg.limit == 0)
		return;
	/* either we see that the poller cleared the flag, or it counts what
	 * we post [SRQ-3] */
	rt_fence_dekker();
	/* relaxed: ordered by the fence */
	if (atomic_load_explicit(&srq->armed, memory_order_relaxed))
		return;
	srq->since += count;
	if (srq->since < srq->cfg.limit && !is_limit_out(srq))
		return;
	srq->since = 0;
	/* release [SRQ-3]: what is posted, to pass_limit() */
	atomic_store_explicit(&srq->armed, true, memory_order_release);
}

/* The poller counted with what the device then refused: it shall look again.
 * Not for its own refill, which would be called for ever. */
static void look_again(struct rpma_rt_srq *srq)
{
	/* acq_rel: pairs with the exchange in rt_srq_look_message(): the
	 * message is free again */
	if (!is_refilling(srq) &&
	    !atomic_exchange_explicit(&srq->look_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->poller->inbox, &srq->look_msg);
}

/* A call of rpma_rt_srq_post_recv(), under the lock. */
struct batch {
	struct rt_chunks chunks; /* first */
	struct rpma_rt_srq *srq;
	const struct rpma_rt_recv_wr *wr;
	uint32_t credit; /* slots that need no further look */
	int err;	 /* of the device, where the call is RPMA_E_PROVIDER */
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
};

static inline struct batch *batch_of(struct rt_chunks *chunks)
{
	return (struct batch *)chunks;
}

static int fault(const struct batch *b, int index)
{
	const char *wrong =
		rt_wr_recv_fault(&b->wr[index], b->srq->cfg.max_sge);

	if (b->wr[index].route != NULL)
		wrong = "names a route: receives of an SRQ have none";
	if (b->wr[index].future != NULL)
		wrong = "names a future: receives of an SRQ have none";
	return wrong == NULL ? 0 : rt_wr_refuse(index, wrong);
}

static inline bool is_plain(const struct rpma_rt_recv_wr *wr)
{
	return wr->route == NULL && rt_wr_is_plain_recv(wr);
}

/* 0, RPMA_E_INVAL. */
static int check(struct rt_chunks *chunks, int index)
{
	const struct batch *b = batch_of(chunks);

	return is_plain(&b->wr[index]) ? 0 : fault(b, index);
}

/* Credit, as long as it lasts: the flag was looked at after all of it was
 * acquired [SRQ-2]. An error of a later receive comes before the lack of it. */
__attribute__((noinline)) static int get_credit(struct batch *b, int index)
{
	int ret;

	if (refusal(b->srq, &b->credit) == RPMA_RT_AGAIN_NONE)
		return 0;
	ret = rt_chunks_check_rest(&b->chunks, check, index);
	if (ret == 0)
		ret = take_credit(b->srq, &b->credit);
	if (ret)
		b->credit = 0;
	return ret;
}

/* One that is not plain. */
__attribute__((noinline)) static int prepare_any(struct batch *b, int index,
						 uint64_t wr_id,
						 struct rpma_recv_wr *out)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	int ret = rt_wr_prepare_recv(wr, wr_id, &b->sge[b->chunks.pieces], out);

	if (ret)
		return rt_wr_refuse_for(index, ret);
	b->chunks.pieces += wr->piece_count;
	return 0;
}

/* It is not plain: does it fit, and is it valid? */
static int check_any(struct batch *b, int index)
{
	if (rt_chunks_is_full(&b->chunks, b->wr[index].piece_count))
		return RT_CHUNKS_FULL;
	return index < b->chunks.checked ? 0 : fault(b, index);
}

/* Puts the next receive into the chain and a slot. */
static inline int append(struct rt_chunks *chunks, int index, int n)
{
	struct batch *b = batch_of(chunks);
	struct rpma_recv_wr *out = &b->chain[n];
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	struct rpma_rt_srq *srq = b->srq;
	bool plain = is_plain(wr);
	struct rt_srq_slot *slot;
	uint32_t place;
	uint64_t wr_id;
	int ret = 0;

	/* of the one before; this one's is NULL from its preparation on */
	if (n > 0)
		out[-1].wr.next = &out->wr;
	if (unlikely(!plain))
		ret = check_any(b, index);
	if (unlikely(ret == 0 && b->credit == 0))
		ret = get_credit(b, index);
	if (unlikely(ret))
		return ret;
	place = srq->returned[srq->taken & srq->mask];
	slot = &srq->slots[place];
	wr_id = rt_wr_id(srq->number,
			 rt_srq_cookie(place, slot->generation + 1));
	ret = likely(plain)
		      ? rpma_wr_recv(wr->dst, wr->offset, wr->len, wr_id, out)
		      : prepare_any(b, index, wr_id, out);
	if (unlikely(ret))
		return ret;
	slot->context = wr->context;
	slot->generation++;
	srq->taken++;
	b->credit--;
	return 0;
}

/* The last so many: their slots were never out. */
static void take_back(struct rpma_rt_srq *srq, int count)
{
	while (count-- > 0) {
		srq->taken--;
		srq->slots[srq->returned[srq->taken & srq->mask]].generation--;
	}
}

static inline int ring(struct rt_chunks *chunks)
{
	struct batch *b = batch_of(chunks);
	struct rpma_rt_srq *srq = b->srq;
	struct ibv_recv_wr *bad = NULL;
	int taken;
	int err;

	b->chain[chunks->n - 1].wr.next = NULL;
	publish(srq);
	watch(srq, (uint32_t)chunks->n);
	err = rt_verb_post_srq_recv(srq->enters_kernel, srq->ibv_srq,
				    &b->chain[0].wr, &bad);
	if (likely(err == 0))
		return chunks->n;
	b->err = rt_failure_answer(err);
	taken = bad ? (int)((struct rpma_recv_wr *)bad - b->chain) : 0;
	take_back(srq, chunks->n - taken);
	publish(srq);
	look_again(srq);
	return taken;
}

static void drop(struct rt_chunks *chunks)
{
	take_back(batch_of(chunks)->srq, chunks->n);
}

/* Enough is out again: arms the device's limit, which is passed sooner than
 * the poller sees it; a hint for the refill, no more. */
static void arm_if_due(struct rpma_rt_srq *srq)
{
	/* relaxed: the poller clears it before it calls the refill */
	if (srq->cfg.refill == NULL || !is_limit_out(srq) ||
	    atomic_load_explicit(&srq->armed, memory_order_relaxed))
		return;
	/* relaxed: set under the lock */
	atomic_store_explicit(&srq->armed, true, memory_order_relaxed);
	/* acq_rel: pairs with the exchange of the receiver: the message is
	 * free again */
	if (!atomic_exchange_explicit(&srq->arm_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->device->control.inbox, &srq->arm_msg);
}

/* err: with which the device refused a receive. */
static int refused(int ret, int err)
{
	char words[RT_FAILURE_WORDS];

	if (ret == 0 || ret == RPMA_E_AGAIN)
		return ret;
	if (ret == RPMA_RT_E_CLOSED)
		return RT_REFUSE(ret,
				 "nothing is posted: the SRQ is being "
				 "deleted, its device has reported an "
				 "error of it, or its runtime was stopped");
	if (ret == RPMA_E_PROVIDER)
		return RT_REFUSE(ret,
				 "nothing is posted: the device refused a "
				 "receive for the SRQ: %s",
				 rt_failure_2str(RT_STEP_POST, err, words));
	return RT_REFUSED(ret, "nothing is posted");
}

int rt_srq_post(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		int count)
{
	static const struct rt_chunks_ops ops = {
		.check = check,
		.append = append,
		.ring = ring,
		.drop = drop,
	};
	struct batch b;
	int posted;
	int ret;

	rt_want_none();
	if (unlikely(srq == NULL || count < 0 || (wr == NULL && count > 0)))
		return rt_wr_refuse_call("srq", srq, count);
	ret = RT_REFUSE_FORKED(srq->rt);
	if (unlikely(ret || count == 0))
		return ret;
	ret = enter(srq);
	if (unlikely(ret))
		return refused(ret, 0);
	rt_chunks_begin(&b.chunks, count);
	b.srq = srq;
	b.wr = wr;
	b.credit = 0;
	ret = rt_chunks_post(&b.chunks, &ops);
	posted = b.chunks.posted;
	if (posted > 0)
		arm_if_due(srq);
	pthread_mutex_unlock(&srq->lock);
	if (unlikely(ret == RPMA_E_PROVIDER))
		rt_want_none();
	return posted > 0 ? posted
			  : refused(ret, ret == RPMA_E_PROVIDER ? b.err : 0);
}

int rpma_rt_srq_post_recv(struct rpma_rt_srq *srq,
			  const struct rpma_rt_recv_wr *wr, int count)
{
	if (unlikely(srq != NULL && srq->cfg.pool != NULL))
		return RT_REFUSE(RPMA_E_INVAL,
				 "srq takes receives from a pool, which keeps "
				 "them posted: give leases back instead");
	return rt_srq_post(srq, wr, count);
}
