/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting to a shared receive queue from any thread, under its
 * lock; on a poller thread the lock is only tried. doc/protocols/srq.md.
 */

#include "srq/srq.h"

#include <infiniband/verbs.h>

#include "base/context.h"
#include "base/device.h"
#include "base/runtime.h"
#include "base/self.h"
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

static enum rpma_rt_again refusal(const struct rpma_rt_srq *srq)
{
	if (room(srq) == 0)
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
static int take_credit(struct rpma_rt_srq *srq)
{
	enum rpma_rt_again reason;
	uint32_t want;
	uint32_t before;

	while ((reason = refusal(srq)) != RPMA_RT_AGAIN_NONE) {
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
		if (refusal(srq) == reason ||
		    !rt_want_take_back(&srq->want, want, before))
			return rt_want_again(reason);
	}
	return 0;
}

static int enter(struct rpma_rt_srq *srq)
{
	if (!rt_self_is_poller()) {
		pthread_mutex_lock(&srq->lock);
	} else if (pthread_mutex_trylock(&srq->lock)) {
		if (is_refilling(srq))
			srq->refill_again = true;
		return rt_want_again(RPMA_RT_AGAIN_LOCK);
	}
	if (!srq->closed)
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
	struct rpma_rt_srq *srq;
	const struct rpma_rt_recv_wr *wr;
	int count;
	int checked; /* those before it were validated ahead */
	int posted;  /* those before it are the device's */
	int n;	     /* so many after these are in the chain */
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct rt_wr_pieces pieces;
};

static int fault(const struct batch *b, int index)
{
	const char *wrong =
		rt_wr_recv_fault(&b->wr[index], b->srq->cfg.max_sge);

	if (b->wr[index].route != NULL)
		wrong = "names a route: receives of an SRQ have none";
	return wrong == NULL ? 0 : rt_wr_refuse(index, wrong);
}

static inline bool is_plain(const struct rpma_rt_recv_wr *wr)
{
	return wr->route == NULL && rt_wr_is_plain_recv(wr);
}

/* 0, RPMA_E_INVAL. */
static int check(const struct batch *b, int index)
{
	return is_plain(&b->wr[index]) ? 0 : fault(b, index);
}

/* Checks the receives from index on, ahead of the chain. */
static int check_from(struct batch *b, int index)
{
	for (; index < b->count; index++) {
		if (check(b, index))
			return RPMA_E_INVAL;
	}
	b->checked = b->count;
	return 0;
}

/* An error of a later receive comes before the lack of credit. */
static int await_credit(struct batch *b, int index)
{
	int ret = 0;

	if (b->checked < b->count)
		ret = check_from(b, index);
	return ret ? ret : take_credit(b->srq);
}

/* Puts the next receive into the chain and a slot. */
static int append(struct batch *b, int index, struct rpma_recv_wr *out)
{
	const struct rpma_rt_recv_wr *wr = &b->wr[index];
	struct rpma_rt_srq *srq = b->srq;
	struct rt_srq_slot *slot;
	uint32_t place;
	bool plain = is_plain(wr);
	uint64_t wr_id;
	int ret = 0;

	if (!plain && index >= b->checked && fault(b, index))
		return RPMA_E_INVAL;
	if (refusal(srq) != RPMA_RT_AGAIN_NONE)
		ret = await_credit(b, index);
	if (ret)
		return ret;
	place = srq->returned[srq->taken & srq->mask];
	slot = &srq->slots[place];
	wr_id = rt_wr_id(srq->number,
			 rt_srq_cookie(place, slot->generation + 1));
	ret = plain ? rpma_wr_recv(wr->dst, wr->offset, wr->len, wr_id, out)
		    : rt_wr_prepare_recv(wr, wr_id, &b->pieces, out);
	if (ret)
		return ret;
	slot->context = wr->context;
	slot->generation++;
	srq->taken++;
	return 0;
}

static int fill(struct batch *b)
{
	int most = b->count - b->posted;
	uint32_t count;
	int ret = 0;
	int n = 0;

	b->pieces.used = 0;
	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	while (n < most) {
		count = b->wr[b->posted + n].piece_count;
		if (count != 0 && !rt_wr_has_pieces(&b->pieces, count)) {
			if (b->checked < b->count)
				ret = check_from(b, b->posted + n);
			break;
		}
		ret = append(b, b->posted + n, &b->chain[n]);
		if (ret)
			break;
		n++;
	}
	b->n = n;
	return ret;
}

/* The last so many: their slots were never out. */
static void take_back(struct rpma_rt_srq *srq, uint32_t count)
{
	while (count-- > 0) {
		srq->taken--;
		srq->slots[srq->returned[srq->taken & srq->mask]].generation--;
	}
}

static int ring(struct batch *b)
{
	struct rpma_rt_srq *srq = b->srq;
	struct ibv_recv_wr *bad = NULL;
	int taken = b->n;
	int ret;
	int i;

	for (i = 0; i < b->n; i++)
		b->chain[i].wr.next = i + 1 < b->n ? &b->chain[i + 1].wr : NULL;
	publish(srq);
	watch(srq, (uint32_t)b->n);
	ret = ibv_post_srq_recv(srq->ibv_srq, &b->chain[0].wr, &bad);
	if (ret) {
		taken = bad ? (int)((struct rpma_recv_wr *)bad - b->chain) : 0;
		take_back(srq, (uint32_t)(b->n - taken));
		publish(srq);
		look_again(srq);
	}
	b->posted += taken;
	/* there was a slot: a full queue here is the provider's fault */
	return ret ? RPMA_E_PROVIDER : 0;
}

/* As post() of conn/post_send.c. */
static int post(struct batch *b)
{
	int refused = 0;
	int ret = 0;

	if (b->count > RT_POST_CHUNK)
		ret = check_from(b, 0);
	while (ret == 0 && refused == 0 && b->posted < b->count) {
		refused = fill(b);
		if (refused != 0 && refused != RPMA_E_AGAIN && b->posted == 0) {
			take_back(b->srq, (uint32_t)b->n);
			break;
		}
		if (b->n > 0)
			ret = ring(b);
	}
	return ret ? ret : refused;
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

int rpma_rt_srq_post_recv(struct rpma_rt_srq *srq,
			  const struct rpma_rt_recv_wr *wr, int count)
{
	struct batch b;
	int ret;

	rt_want_none();
	if (srq == NULL || count < 0 || (wr == NULL && count > 0))
		return RPMA_E_INVAL;
	ret = rt_context_check(srq->rt);
	if (ret || count == 0)
		return ret;
	ret = enter(srq);
	if (ret)
		return ret;
	b.srq = srq;
	b.wr = wr;
	b.count = count;
	b.checked = 0;
	b.posted = 0;
	ret = post(&b);
	if (b.posted > 0)
		arm_if_due(srq);
	pthread_mutex_unlock(&srq->lock);
	if (ret == RPMA_E_PROVIDER)
		rt_want_none();
	return b.posted > 0 ? b.posted : ret;
}
