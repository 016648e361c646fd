/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting to a shared receive queue from any thread, by turns, as to
 * a connection (poller/post.h). Only the thread that posts a receive knows the
 * receive's number. doc/protocols/srq.md, ledger.md.
 */

#include "srq/srq.h"

#include <infiniband/verbs.h>

#include "base/context.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/wr.h"
#include "poller/poller.h"
#include "poller/post.h"

/* a hold of the right by a thread */
struct hold {
	struct rpma_rt_srq *srq;
	/* error of the device, which refused a receive; or 0 */
	int err;
	bool has_places; /* slots of the line were given back */
};

/* --------------------------------------------------------------- places --- */

/* Returns how many slots may be taken. Called by the holder of the right. */
static uint32_t srq_post_room(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-1]: pairs with the release in srq_post_publish(),
	 * poll.c; the slots are visible, and with their credit the flag that a
	 * lane holds the SRQ up */
	return atomic_load_explicit(&srq->retired, memory_order_acquire) -
	       srq->taken;
}

static bool srq_post_is_behind(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-2]: pairs with the release in srq_poll_let_go_on(),
	 * poll.c; the earlier acquire of the place makes a set flag visible */
	return atomic_load_explicit(&srq->behind, memory_order_acquire);
}

void rt_srq_look_mt(struct rpma_rt_srq *srq)
{
	/* acq_rel: pairs with the exchange in srq_poll_look_message(), poll.c:
	 * either that exchange sees what this thread left, or the message is
	 * sent again */
	if (!atomic_exchange_explicit(&srq->look_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->poller->inbox, &srq->look_msg);
}

/* --------------------------------------------------------------- limits --- */

/* Returns whether at least `limit` receives are out. */
static bool srq_post_is_limit_out(const struct rpma_rt_srq *srq)
{
	/* relaxed, both: receives posted by this thread are counted in any
	 * case */
	return srq->cfg.limit != 0 &&
	       srq->cfg.srq_size -
			       (atomic_load_explicit(&srq->retired,
						     memory_order_relaxed) -
				atomic_load_explicit(&srq->posted,
						     memory_order_relaxed)) >=
		       srq->cfg.limit;
}

/*
 * Publishes how many receives are out, or will be out in a moment. Stored
 * before the device has the receives, so that the poller never counts more
 * receives back than out.
 */
static void srq_post_publish(struct rpma_rt_srq *srq)
{
	/* relaxed: the device's completion, which the poller subtracts from
	 * this count, comes later */
	atomic_store_explicit(&srq->posted, srq->taken, memory_order_relaxed);
}

/* Arms SRQ_LIMIT if it is due after `count` published receives, without a
 * refill function. Called before the device has the receives, too: a completion
 * then finds the flag. */
static void srq_post_watch(struct rpma_rt_srq *srq, uint32_t count)
{
	if (srq->cfg.refill != NULL || srq->cfg.limit == 0)
		return;
	/* either this thread sees that the poller cleared the flag, or the
	 * poller counts what this thread posts [SRQ-3] */
	rt_fence_dekker();
	/* relaxed: the fence orders the look */
	if (atomic_load_explicit(&srq->armed, memory_order_relaxed))
		return;
	srq->since += count;
	if (srq->since < srq->cfg.limit && !srq_post_is_limit_out(srq))
		return;
	srq->since = 0;
	/* release [SRQ-3]: publishes the posted receives to
	 * srq_poll_pass_limit(), poll.c */
	atomic_store_explicit(&srq->armed, true, memory_order_release);
}

/* Arms the device's limit if enough receives are out again: the device passes
 * the limit before the poller sees it; only a hint for the refill. Called by
 * the holder of the right: the SRQ's end waits for the right, and for the
 * message. */
static void srq_post_arm_if_due(struct rpma_rt_srq *srq)
{
	/* relaxed: the poller clears the flag before calling the refill
	 * function */
	if (srq->cfg.refill == NULL || !srq_post_is_limit_out(srq) ||
	    atomic_load_explicit(&srq->armed, memory_order_relaxed))
		return;
	/* relaxed: only the holder sets the flag, only the poller clears it */
	atomic_store_explicit(&srq->armed, true, memory_order_relaxed);
	/* acq_rel: pairs with the exchange in srq_arm_message(), life.c:
	 * finding false means that the message is free again */
	if (!atomic_exchange_explicit(&srq->arm_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->device->control.inbox, &srq->arm_msg);
}

/* ------------------------------------------------------------- the verb --- */

/* Chains n receives whose wr_ids are contexts, and gives each receive the next
 * slot, whose number is the receive's wr_id from here on. */
static void srq_post_take_numbers(struct rpma_rt_srq *srq,
				  struct rpma_recv_wr *chain, uint32_t n)
{
	const uint32_t *returned = srq->returned;
	struct rt_srq_slot *slots = srq->slots;
	const uint32_t number = srq->number;
	const uint32_t taken = srq->taken;
	const uint32_t mask = srq->mask;
	struct rt_srq_slot *slot;
	uint32_t place;
	uint32_t i;

	for (i = 0; i < n; i++) {
		place = returned[(taken + i) & mask];
		slot = &slots[place];
		slot->context = chain[i].wr.wr_id;
		slot->generation++;
		chain[i].wr.wr_id = rt_wr_id(
			number, rt_srq_cookie(place, slot->generation));
		chain[i].wr.next = i + 1 < n ? &chain[i + 1].wr : NULL;
	}
	srq->taken = taken + n;
}

/* Hands the last `count` receives, which the device refused, to the poller,
 * which gives them back. */
__attribute__((cold)) static void srq_post_refuse_last(struct rpma_rt_srq *srq,
						       uint32_t count)
{
	uint32_t head;
	uint32_t place;

	for (; count > 0; count--) {
		place = srq->returned[(srq->taken - count) & srq->mask];
		/* relaxed: the compare-and-swap compares the head */
		head = atomic_load_explicit(&srq->refused,
					    memory_order_relaxed);
		do {
			srq->slots[place].next = head;
			/* release: pairs with the acquire in
			 * srq_poll_return_refused(), poll.c: the slot */
		} while (!atomic_compare_exchange_weak_explicit(
			&srq->refused, &head, place + 1, memory_order_release,
			memory_order_relaxed));
	}
}

/* Gives n receives, whose wr_ids are contexts, to the device. There is room. */
static inline void srq_post_give(struct hold *hold, struct rpma_recv_wr *chain,
				 uint32_t n)
{
	struct rpma_rt_srq *srq = hold->srq;
	struct ibv_recv_wr *bad = NULL;
	uint32_t taken;
	int err;

	srq_post_take_numbers(srq, chain, n);
	srq_post_publish(srq);
	srq_post_watch(srq, n);
	err = rt_verb_post_srq_recv(srq->verb_is_plain, srq->ibv_srq,
				    &chain[0].wr, &bad);
	srq_post_arm_if_due(srq);
	if (likely(err == 0))
		return;
	hold->err = rt_failure_answer(err);
	taken = bad ? (uint32_t)((struct rpma_recv_wr *)bad - chain) : 0;
	srq_post_refuse_last(srq, n - taken);
}

/* ------------------------------------------------------------- the line --- */

static uint32_t post_run(struct rt_turn *turn, void *arg)
{
	struct hold *hold = arg;
	struct rpma_rt_srq *srq = hold->srq;
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	uint32_t most = srq_post_room(srq);
	uint32_t length = rt_turn_length(turn);
	uint32_t n;

	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	if (most > length)
		most = length;
	for (n = 0; n < most; n++)
		rt_line_get_recv(turn, rt_turn_at(turn, n), &chain[n]);
	if (n == 0)
		return 0;
	srq_post_give(hold, chain, n);
	rt_turn_leave_line(turn, (uint16_t)n);
	/* relaxed: see rt_srq_limit() */
	atomic_store_explicit(&srq->shown, srq->taken, memory_order_relaxed);
	/* as in conn/hold.c: the poller may have handled a message before the
	 * slots were given back */
	hold->has_places = true;
	return n;
}

static uint32_t srq_post_needs_one(struct rt_turn *turn, void *arg)
{
	(void)turn;
	(void)arg;
	return 1;
}

static bool srq_post_has_room(struct rt_turn *turn, uint32_t count, void *arg)
{
	const struct hold *hold = arg;
	const struct rpma_rt_srq *srq = hold->srq;

	(void)turn;
	/* acquire [SRQ-1]: pairs with the release in srq_post_publish(),
	 * poll.c; relaxed: this thread sees its own store at least */
	return atomic_load_explicit(&srq->retired, memory_order_acquire) -
		       atomic_load_explicit(&srq->shown,
					    memory_order_relaxed) >=
	       count;
}

static void srq_post_say(struct rt_turn *turn, bool waits, void *arg)
{
	const struct hold *hold = arg;

	(void)turn;
	rt_want_line(&hold->srq->want, waits);
}

static const struct rt_turn_ops ops = {
	.post = post_run,
	.needs = srq_post_needs_one,
	.has_room = srq_post_has_room,
	.say = srq_post_say,
};

/* Returns whether the caller is inside the SRQ's refill function. */
static bool srq_post_is_refilling(const struct rpma_rt_srq *srq)
{
	return rt_self_poller() == srq->poller && srq->refilling;
}

/* Tells the poller that slots were given back: a poster that was refused for
 * want of places may go on. */
static void srq_post_show_places(struct rpma_rt_srq *srq)
{
	/* pairs with the fence in srq_post_refuse() [LEDGER-2] */
	rt_fence_dekker();
	/* relaxed: after the fence */
	if (atomic_load_explicit(&srq->want, memory_order_relaxed) &
	    RT_WANT_CREDIT)
		rt_srq_look_mt(srq);
}

/* Ends a hold, when nothing is held any more. is_left: the poller goes on. */
static void srq_post_finish(const struct hold *hold, bool is_left)
{
	struct rpma_rt_srq *srq = hold->srq;
	char words[RT_FAILURE_WORDS];

	/* otherwise a device that refuses everything would make the poller call
	 * the refill function for ever */
	if (unlikely(hold->err) && srq_post_is_refilling(srq))
		srq->refill_refused = true;
	if (is_left || unlikely(hold->err))
		rt_srq_look_mt(srq);
	else if (hold->has_places)
		srq_post_show_places(srq);
	if (unlikely(hold->err))
		RT_LOG_ERROR("the device refused a receive for the SRQ, which "
			     "comes back by its queue: %s",
			     rt_failure_2str(RT_STEP_POST, hold->err, words));
}

static void srq_post_hold_on(struct hold *hold)
{
	struct rpma_rt_srq *srq = hold->srq;
	uint32_t budget = rt_post_budget(srq->poller->threaded);

	srq_post_finish(hold, rt_turn_hold(&srq->turn, &ops, hold, budget));
}

void rt_srq_hold_poller(struct rpma_rt_srq *srq)
{
	struct hold hold = {.srq = srq};

	if (rt_turn_take_waiting(&srq->turn))
		srq_post_hold_on(&hold);
}

/* ---------------------------------------------------------- the caller --- */

static struct rpma_rt_srq *srq_of(const struct rt_post *post)
{
	return post->object;
}

static int srq_post_fault(const struct rt_post *post, int index)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[index];
	const char *wrong = rt_wr_recv_fault(wr, srq_of(post)->cfg.max_sge);

	if (wr->route != NULL)
		wrong = "names a route: receives of an SRQ have none";
	if (wr->future != NULL)
		wrong = "names a future: receives of an SRQ have none";
	return wrong == NULL ? 0 : rt_wr_refuse(index, wrong);
}

static int srq_post_check(struct rt_post *post)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[post->done];
	const struct rpma_rt_recv_wr *end = &post->recvs[post->count];
	int ret;

	if (unlikely(rt_srq_has_failed(srq_of(post))))
		return RPMA_RT_E_CLOSED;
	for (; wr < end; wr++) {
		if (likely(wr->route == NULL && rt_wr_is_plain_recv(wr)))
			continue;
		ret = srq_post_fault(post, (int)(wr - post->recvs));
		if (ret)
			return ret;
	}
	return 0;
}

/* Fills a chain with the receives before `end`, with contexts in place of
 * numbers; returns their number. */
static uint32_t srq_post_fill_chain(struct rt_post *post, int end,
				    struct rpma_recv_wr *chain,
				    struct ibv_sge *sge)
{
	const struct rpma_rt_recv_wr *wr = &post->recvs[post->done];
	uint32_t most = (uint32_t)(end - post->done);
	uint32_t pieces = 0;
	uint32_t n;
	int ret = 0;

	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	for (n = 0; n < most; n++, wr++) {
		if (likely(wr->piece_count == 0 && wr->dst != NULL)) {
			rt_wr_fill_recv(wr->dst, wr->offset, wr->len,
					wr->context, &chain[n]);
			continue;
		}
		if (unlikely(pieces + wr->piece_count > RT_WR_MAX_SGE))
			break;
		ret = rt_wr_prepare_recv(wr, wr->context, &sge[pieces],
					 &chain[n]);
		if (unlikely(ret))
			break;
		pieces += wr->piece_count;
	}
	post->error = ret;
	return n;
}

/* Gives the receives before `end` to the device, and gives the right back. */
static void srq_post_give_alone(struct rt_post *post, uint64_t seen, int end)
{
	struct rpma_rt_srq *srq = srq_of(post);
	struct hold hold = {.srq = srq};
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	uint32_t n;

	while (post->done < end) {
		n = srq_post_fill_chain(post, end, chain, sge);
		if (n == 0)
			break;
		srq_post_give(&hold, chain, n);
		post->done += (int)n;
		if (unlikely(post->error))
			break;
	}
	/* relaxed: see rt_srq_limit() */
	atomic_store_explicit(&srq->shown, srq->taken, memory_order_relaxed);
	if (likely(rt_turn_leave_alone(&srq->turn, seen)))
		srq_post_finish(&hold, false);
	else
		srq_post_hold_on(&hold);
}

static uint32_t srq_post_limit(const struct rt_post *post)
{
	return rt_srq_limit(srq_of(post));
}

/* Checks the backlog. Receives of an SRQ have no links, routes or futures. */
static int srq_post_take(struct rt_post *post, uint64_t seen, int end, int *ret)
{
	(void)seen;
	(void)ret;
	if (!srq_post_is_behind(srq_of(post)))
		return end;
	rt_post_refuse_backlog(post, NULL);
	return post->done;
}

static uint64_t srq_post_context_at(const struct rt_post *post, int index)
{
	return post->recvs[index].context;
}

static int srq_post_fill(const struct rt_post *post, int end, uint16_t slot)
{
	return rt_post_fill_recvs(post, end, slot, srq_post_context_at);
}

static void srq_post_hold_published(const struct rt_post *post)
{
	struct hold hold = {.srq = srq_of(post)};

	srq_post_hold_on(&hold);
}

static void srq_post_tell_places(const struct rt_post *post)
{
	srq_post_show_places(srq_of(post));
}

/* Refuses a post. A refill function is called again in place of an event. */
static int srq_post_refuse(const struct rt_post *post)
{
	struct rpma_rt_srq *srq = srq_of(post);
	enum rpma_rt_again reason = post->refusal.reason;

	if (srq_post_is_refilling(srq)) {
		srq->refill_waits |= reason == RPMA_RT_AGAIN_BACKLOG;
		return rt_want_again(reason);
	}
	/* relaxed: the fence orders the bit */
	atomic_fetch_or_explicit(&srq->want, rt_want_of(reason),
				 memory_order_relaxed);
	/* pairs with the fences in srq_post_publish() of deliver.c and in
	 * deliver_retry_spill() [LEDGER-2]: either the poller sees `want`, or
	 * this look sees what the poller published */
	rt_fence_dekker();
	if (reason == RPMA_RT_AGAIN_CREDIT ? rt_srq_places(srq) > 0
					   : !srq_post_is_behind(srq))
		rt_srq_look_mt(srq);
	return rt_want_again(reason);
}

static int srq_post_alone(struct rt_post *post, uint64_t seen);

static const struct rt_post_ops post_ops = {
	.object =
		&(const struct rt_post_object_ops){
			.limit = srq_post_limit,
			.hold = srq_post_hold_published,
			.tell_places = srq_post_tell_places,
			.refuse = srq_post_refuse,
		},
	.check = srq_post_check,
	.alone = srq_post_alone,
	.take = srq_post_take,
	.fill = srq_post_fill,
};

static int srq_post_alone(struct rt_post *post, uint64_t seen)
{
	struct rpma_rt_srq *srq = srq_of(post);
	int begin = post->done;
	int end = post->count;
	uint32_t most = srq_post_room(srq);

	if (unlikely((uint32_t)(end - begin) > most))
		end = rt_post_end_of_room(post, &post_ops, srq->cfg.srq_size,
					  most);
	/* after the look at the room [SRQ-2] */
	if (unlikely(end > begin && srq_post_is_behind(srq))) {
		rt_post_refuse_backlog(post, NULL);
		end = begin;
	}
	srq_post_give_alone(post, seen, end);
	return unlikely(end == begin &&
			post->refusal.reason == RPMA_RT_AGAIN_NONE)
		       ? RT_POST_NO_ROOM
		       : post->error;
}

int rt_srq_post(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		int count)
{
	struct rt_post post = {.object = srq, .recvs = wr, .count = count};
	int ret;

	rt_want_none();
	if (unlikely(srq == NULL || count < 0 || (wr == NULL && count > 0)))
		return rt_wr_refuse_call("srq", srq, count);
	ret = RT_REFUSE_FORKED(srq->rt);
	if (unlikely(ret || count == 0))
		return ret;
	post.turn = &srq->turn;
	ret = rt_post_run(&post, &post_ops);
	if (likely(ret == 0))
		return count;
	if (post.done == 0 && ret == RPMA_RT_E_CLOSED)
		return RT_REFUSE(ret,
				 "nothing is posted: the SRQ is being "
				 "deleted, its device has reported an "
				 "error of it, or its runtime was stopped");
	return rt_post_answer(post.done, ret);
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
