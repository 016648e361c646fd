/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting to a shared receive queue from any thread, under its
 * lock; on a poller thread the lock is only tried. doc/protocols/srq.md.
 */

#include "srq/srq.h"

#include "base/context.h"
#include "base/device.h"
#include "base/runtime.h"
#include "base/self.h"
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
 * instead of told. */
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

/* Are as many out as the limit, or more? */
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

/* One receive into the chain's next place and a slot. */
static int append(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		  struct rpma_recv_wr *out)
{
	struct rt_srq_slot *slot;
	uint32_t index;
	int ret;

	ret = take_credit(srq);
	if (ret)
		return ret;
	index = srq->returned[srq->taken & srq->mask];
	slot = &srq->slots[index];
	ret = rpma_wr_recv(wr->dst, wr->offset, wr->len,
			   rt_wr_id(srq->number,
				    rt_srq_cookie(index, slot->generation + 1)),
			   out);
	if (ret)
		return ret;
	slot->context = wr->context;
	slot->generation++;
	srq->taken++;
	return 0;
}

/* The device refused the last so many: their slots were never out. */
static void take_back(struct rpma_rt_srq *srq, uint32_t count)
{
	while (count-- > 0) {
		srq->taken--;
		srq->slots[srq->returned[srq->taken & srq->mask]].generation--;
	}
	publish(srq);
	look_again(srq);
}

static int ring(struct rpma_rt_srq *srq, struct rpma_recv_wr *chain, int count,
		int *posted)
{
	struct rpma_recv_wr *bad = NULL;
	int taken = count;
	int ret;
	int i;

	for (i = 0; i < count; i++)
		chain[i].wr.next = i + 1 < count ? &chain[i + 1].wr : NULL;
	publish(srq);
	watch(srq, (uint32_t)count);
	ret = rpma_srq_post_recv(srq->srq, chain, &bad);
	if (ret) {
		taken = bad ? (int)(bad - chain) : 0;
		take_back(srq, (uint32_t)(count - taken));
	}
	*posted += taken;
	/* there was a slot: a full queue here is the provider's fault */
	return ret ? RPMA_E_PROVIDER : 0;
}

/* All of them, before the first is posted or waits for credit. */
static int check_wrs(const struct rpma_rt_recv_wr *wr, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (wr[i].route != NULL || wr[i].context > RT_COOKIE_MASK)
			return RPMA_E_INVAL;
		if (wr[i].dst == NULL && (wr[i].offset != 0 || wr[i].len != 0))
			return RPMA_E_INVAL;
	}
	return 0;
}

static int post(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		int count, int *posted)
{
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	int refused = 0;
	int ret = 0;
	int n;

	while (*posted < count && refused == 0 && ret == 0) {
		for (n = 0; n < RT_POST_CHUNK && *posted + n < count; n++) {
			refused = append(srq, &wr[*posted + n], &chain[n]);
			if (refused)
				break;
		}
		if (n > 0)
			ret = ring(srq, chain, n, posted);
	}
	return ret ? ret : refused;
}

/* Enough is out again: the device shall tell when it is not, which it knows
 * sooner than the poller; a hint for the refill, no more. */
static void arm_if_due(struct rpma_rt_srq *srq)
{
	/* relaxed: the poller clears it before it calls the refill */
	if (srq->cfg.refill == NULL || !is_limit_out(srq) ||
	    atomic_load_explicit(&srq->armed, memory_order_relaxed))
		return;
	/* relaxed: set under the lock */
	atomic_store_explicit(&srq->armed, true, memory_order_relaxed);
	/* acq_rel: pairs with the exchange of who received it: the message is
	 * free again */
	if (!atomic_exchange_explicit(&srq->arm_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->device->control.inbox, &srq->arm_msg);
}

int rpma_rt_srq_post_recv(struct rpma_rt_srq *srq,
			  const struct rpma_rt_recv_wr *wr, int count)
{
	int taken = 0;
	int ret;

	rt_want_none();
	if (srq == NULL || count < 0 || (wr == NULL && count > 0))
		return RPMA_E_INVAL;
	ret = rt_context_check(srq->rt);
	if (ret == 0)
		ret = check_wrs(wr, count);
	if (ret || count == 0)
		return ret;
	ret = enter(srq);
	if (ret)
		return ret;
	ret = post(srq, wr, count, &taken);
	if (taken > 0)
		arm_if_due(srq);
	pthread_mutex_unlock(&srq->lock);
	if (ret == RPMA_E_PROVIDER)
		rt_want_none();
	return taken > 0 ? taken : ret;
}

int rpma_rt_srq_recv(struct rpma_rt_srq *srq, struct rpma_mr_local *dst,
		     size_t offset, size_t len, uint64_t context)
{
	struct rpma_rt_recv_wr wr = {
		.context = context, .dst = dst, .offset = offset, .len = len};
	int ret = rpma_rt_srq_post_recv(srq, &wr, 1);

	return ret < 0 ? ret : 0;
}
