/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.c -- posting to a shared receive queue from any thread, by turns, as to
 * a connection (conn/post_recv.c): alone from the caller's array, or through
 * the line. The number of a receive is known to the thread that posts it only.
 * doc/protocols/srq.md, ledger.md.
 */

#include "srq/srq.h"

#include <infiniband/verbs.h>

#include "base/chunks.h"
#include "base/context.h"
#include "base/failure.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/self.h"
#include "base/verb.h"
#include "base/wr.h"
#include "poller/want.h"
#include "poller/poller.h"

/* most receives of other threads that one hold posts */
#define BUDGET 64

/* a call of rpma_rt_srq_post_recv() */
struct call {
	struct rpma_rt_srq *srq;
	const struct rpma_rt_recv_wr *wr;
	int count;
	int done;  /* those before it were taken */
	int error; /* of librpma, which has refused one */
	enum rpma_rt_again reason;
};

/* a thread's hold of the right */
struct hold {
	struct rpma_rt_srq *srq;
	int err; /* of the device, which refused a receive; 0 */
};

/* --------------------------------------------------------------- places --- */

/* The holder: slots that may be taken. */
static uint32_t room(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-1]: pairs with publish() in poll.c; the slots, and with
	 * their credit the flag that a lane holds us */
	return atomic_load_explicit(&srq->retired, memory_order_acquire) -
	       srq->taken;
}

/* Slots of the line that may be in use. */
static uint32_t limit_of(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-1]: as above */
	uint32_t retired =
		atomic_load_explicit(&srq->retired, memory_order_acquire) -
		srq->cfg.srq_size;

	/* relaxed: too old a count makes a thread count too few that are out */
	return rt_line_limit(
		&srq->turn,
		atomic_load_explicit(&srq->shown, memory_order_relaxed),
		retired);
}

uint32_t rt_srq_places(const struct rpma_rt_srq *srq)
{
	uint32_t limit = limit_of(srq);
	uint32_t used = rt_freelist_used(&srq->turn.free);

	return limit > used ? limit - used : 0;
}

static bool is_behind(const struct rpma_rt_srq *srq)
{
	/* acquire [SRQ-2]: pairs with the clear in let_go_on(); that a set flag
	 * is seen comes from the acquire of the place before this */
	return atomic_load_explicit(&srq->behind, memory_order_acquire);
}

void rt_srq_look_mt(struct rpma_rt_srq *srq)
{
	/* acq_rel: pairs with the exchange in rt_srq_look_message(): either
	 * that sees what this thread left, or the message is sent again */
	if (!atomic_exchange_explicit(&srq->look_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->poller->inbox, &srq->look_msg);
}

/* Slots were given back unposted. */
static void tell_places(struct rpma_rt_srq *srq)
{
	/* pairs with the one in refuse() [LEDGER-2] */
	rt_fence_dekker();
	/* relaxed: behind the fence */
	if (atomic_load_explicit(&srq->want, memory_order_relaxed) &
	    RT_WANT_CREDIT)
		rt_srq_look_mt(srq);
}

/* --------------------------------------------------------------- limits --- */

/* Are as many receives out as the limit, or more? */
static bool is_limit_out(const struct rpma_rt_srq *srq)
{
	/* relaxed, both: what this thread posted is among them */
	return srq->cfg.limit != 0 &&
	       srq->cfg.srq_size -
			       (atomic_load_explicit(&srq->retired,
						     memory_order_relaxed) -
				atomic_load_explicit(&srq->posted,
						     memory_order_relaxed)) >=
		       srq->cfg.limit;
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

/* Enough is out again: arms the device's limit, which is passed sooner than
 * the poller sees it; a hint for the refill, no more. The holder: the SRQ's end
 * waits for that, and for the message. */
static void arm_if_due(struct rpma_rt_srq *srq)
{
	/* relaxed: the poller clears it before it calls the refill */
	if (srq->cfg.refill == NULL || !is_limit_out(srq) ||
	    atomic_load_explicit(&srq->armed, memory_order_relaxed))
		return;
	/* relaxed: the holder's, but for the poller */
	atomic_store_explicit(&srq->armed, true, memory_order_relaxed);
	/* acq_rel: pairs with the exchange of the receiver: the message is
	 * free again */
	if (!atomic_exchange_explicit(&srq->arm_sent, true,
				      memory_order_acq_rel))
		rt_inbox_push_mt(&srq->device->control.inbox, &srq->arm_msg);
}

/* ------------------------------------------------------------- the verb --- */

/* The next slot: the wr_id of a receive with that context. */
static uint64_t take_number(struct rpma_rt_srq *srq, uint64_t context)
{
	uint32_t place = srq->returned[srq->taken++ & srq->mask];
	struct rt_srq_slot *slot = &srq->slots[place];

	slot->context = context;
	slot->generation++;
	return rt_wr_id(srq->number, rt_srq_cookie(place, slot->generation));
}

/* The last so many were refused: the poller gives them back. */
__attribute__((cold)) static void refuse_last(struct rpma_rt_srq *srq,
					      uint32_t count)
{
	uint32_t head;
	uint32_t place;

	for (; count > 0; count--) {
		place = srq->returned[(srq->taken - count) & srq->mask];
		/* relaxed: the exchange compares it */
		head = atomic_load_explicit(&srq->refused,
					    memory_order_relaxed);
		do {
			srq->slots[place].next = head;
			/* release: the slot, to return_refused() */
		} while (!atomic_compare_exchange_weak_explicit(
			&srq->refused, &head, place + 1, memory_order_release,
			memory_order_relaxed));
	}
}

/* Gives a chain to the device, whose numbers are taken. */
static inline void give(struct hold *hold, struct rpma_recv_wr *chain, int n)
{
	struct rpma_rt_srq *srq = hold->srq;
	struct ibv_recv_wr *bad = NULL;
	int taken;
	int err;

	chain[n - 1].wr.next = NULL;
	publish(srq);
	watch(srq, (uint32_t)n);
	err = rt_verb_post_srq_recv(srq->enters_kernel, srq->ibv_srq,
				    &chain[0].wr, &bad);
	arm_if_due(srq);
	if (likely(err == 0))
		return;
	hold->err = rt_failure_answer(err);
	taken = bad ? (int)((struct rpma_recv_wr *)bad - chain) : 0;
	refuse_last(srq, (uint32_t)(n - taken));
}

/* ------------------------------------------------------------- the line --- */

static uint32_t post_run(struct rt_turn *turn, void *arg)
{
	struct hold *hold = arg;
	struct rpma_rt_srq *srq = hold->srq;
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	uint32_t most = room(srq);
	uint16_t at = rt_turn_front(turn);
	uint32_t n = 0;

	if (most > RT_POST_CHUNK)
		most = RT_POST_CHUNK;
	for (; n < most && at != 0; at = rt_turn_behind(turn, at)) {
		rt_line_get_recv(turn, at, &chain[n]);
		chain[n].wr.wr_id = take_number(srq, chain[n].wr.wr_id);
		if (n > 0)
			chain[n - 1].wr.next = &chain[n].wr;
		n++;
	}
	if (n == 0)
		return 0;
	give(hold, chain, (int)n);
	rt_turn_leave_line(turn, (uint16_t)n);
	/* relaxed: see limit_of() */
	atomic_store_explicit(&srq->shown, srq->taken, memory_order_relaxed);
	return n;
}

static uint32_t needs_one(struct rt_turn *turn, void *arg)
{
	(void)turn;
	(void)arg;
	return 1;
}

static bool has_room(struct rt_turn *turn, uint32_t count, void *arg)
{
	const struct hold *hold = arg;
	const struct rpma_rt_srq *srq = hold->srq;

	(void)turn;
	/* acquire [SRQ-1]; relaxed: at least what this thread stored */
	return atomic_load_explicit(&srq->retired, memory_order_acquire) -
		       atomic_load_explicit(&srq->shown,
					    memory_order_relaxed) >=
	       count;
}

static void say(struct rt_turn *turn, bool waits, void *arg)
{
	const struct hold *hold = arg;

	(void)turn;
	/* relaxed, both: the giving back orders it [TURN-2] */
	if (waits)
		atomic_fetch_or_explicit(&hold->srq->want, RT_WANT_LINE,
					 memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&hold->srq->want,
					  ~(uint32_t)RT_WANT_LINE,
					  memory_order_relaxed);
}

static const struct rt_turn_ops ops = {
	.post = post_run,
	.needs = needs_one,
	.has_room = has_room,
	.say = say,
};

/* Are we inside its refill function? */
static bool is_refilling(const struct rpma_rt_srq *srq)
{
	return rt_self_poller() == srq->poller && srq->refilling;
}

/* Nothing is held any more; is_left: the poller goes on. */
static void finish(const struct hold *hold, bool is_left)
{
	struct rpma_rt_srq *srq = hold->srq;
	char words[RT_FAILURE_WORDS];

	/* else a device that refuses all would have it called for ever */
	if (unlikely(hold->err) && is_refilling(srq))
		srq->refill_refused = true;
	if (is_left || unlikely(hold->err))
		rt_srq_look_mt(srq);
	if (unlikely(hold->err))
		RT_LOG_ERROR("the device refused a receive for the SRQ, which "
			     "comes back by its queue: %s",
			     rt_failure_2str(RT_STEP_POST, hold->err, words));
}

static void hold_on(struct hold *hold)
{
	struct rpma_rt_srq *srq = hold->srq;
	uint32_t budget = srq->poller->threaded ? BUDGET : UINT32_MAX;

	finish(hold, rt_turn_hold(&srq->turn, &ops, hold, budget));
}

void rt_srq_hold_poller(struct rpma_rt_srq *srq)
{
	struct hold hold = {.srq = srq};

	if (rt_turn_take_waiting(&srq->turn))
		hold_on(&hold);
}

bool rt_srq_take_unposted(struct rpma_rt_srq *srq, uint64_t *context)
{
	const struct rt_line_recv *slot;
	uint16_t at;

	rt_turn_gather(&srq->turn);
	at = rt_turn_front(&srq->turn);
	if (at == 0)
		return false;
	slot = rt_line_slot(&srq->turn, at);
	*context = slot->wr_id;
	rt_turn_leave_line(&srq->turn, 1);
	return true;
}

/* ----------------------------------------------------------- validation --- */

static int fault(const struct call *call, int index)
{
	const struct rpma_rt_recv_wr *wr = &call->wr[index];
	const char *wrong = rt_wr_recv_fault(wr, call->srq->cfg.max_sge);

	if (wr->route != NULL)
		wrong = "names a route: receives of an SRQ have none";
	if (wr->future != NULL)
		wrong = "names a future: receives of an SRQ have none";
	return wrong == NULL ? 0 : rt_wr_refuse(index, wrong);
}

/* 0, RPMA_E_INVAL. */
static int check(const struct call *call)
{
	int ret = 0;
	int i;

	for (i = call->done; i < call->count && ret == 0; i++) {
		if (unlikely(call->wr[i].route != NULL ||
			     !rt_wr_is_plain_recv(&call->wr[i])))
			ret = fault(call, i);
	}
	return ret;
}

/* -------------------------------------------------------------- posting --- */

/* Fills a chain with those before end; returns how many there are. */
static int fill(struct call *call, int end, struct rpma_recv_wr *chain,
		struct ibv_sge *sge)
{
	const struct rpma_rt_recv_wr *wr;
	uint32_t pieces = 0;
	int n;

	for (n = 0; n < RT_POST_CHUNK && call->done + n < end; n++) {
		wr = &call->wr[call->done + n];
		if (unlikely(pieces + wr->piece_count > RT_WR_MAX_SGE))
			break;
		call->error =
			rt_wr_prepare_recv(wr, 0, &sge[pieces], &chain[n]);
		if (unlikely(call->error))
			break;
		pieces += wr->piece_count;
		chain[n].wr.wr_id = take_number(call->srq, wr->context);
		if (n > 0)
			chain[n - 1].wr.next = &chain[n].wr;
	}
	return n;
}

/* With the right, having seen that word: posts those before end, and gives the
 * right back. */
static void post_alone(struct call *call, uint64_t seen, int end)
{
	struct rpma_rt_srq *srq = call->srq;
	struct hold hold = {.srq = srq};
	struct rpma_recv_wr chain[RT_POST_CHUNK];
	struct ibv_sge sge[RT_WR_MAX_SGE];
	int n;

	while (call->done < end) {
		n = fill(call, end, chain, sge);
		if (n == 0)
			break;
		give(&hold, chain, n);
		call->done += n;
		if (unlikely(call->error))
			break;
	}
	/* relaxed: see limit_of() */
	atomic_store_explicit(&srq->shown, srq->taken, memory_order_relaxed);
	if (likely(rt_turn_leave_alone(&srq->turn, seen)))
		finish(&hold, false);
	else
		hold_on(&hold);
}

/* The end of those that a thread alone posts: all, or, where nothing may stand
 * in line, as many as there is room for. */
static int end_of_room(struct call *call)
{
	struct rpma_rt_srq *srq = call->srq;
	uint32_t count = (uint32_t)(call->count - call->done);
	uint32_t most = room(srq);
	bool waits = rt_line_waits(&srq->turn, srq->cfg.srq_size);

	if (count > most && waits)
		return call->done;
	if (unlikely(most > 0 && is_behind(srq))) {
		call->reason = RPMA_RT_AGAIN_BACKLOG;
		return call->done;
	}
	if (count <= most)
		return call->count;
	call->reason = RPMA_RT_AGAIN_CREDIT;
	return call->done + (int)most;
}

static void give_slots(struct rpma_rt_srq *srq, uint16_t first, uint32_t count)
{
	uint16_t last = first;
	uint32_t i;

	for (i = 1; i < count; i++)
		last = rt_freelist_next(&srq->turn.free, last);
	rt_freelist_give(&srq->turn.free, first, last, (uint16_t)count);
	tell_places(srq);
}

/* Takes slots for as many as there are places for; returns the first of the
 * chain. */
static uint16_t take_slots(struct call *call, uint32_t *count)
{
	struct rpma_rt_srq *srq = call->srq;
	uint16_t slots = 0;
	uint32_t places;

	*count = (uint32_t)(call->count - call->done);
	if (*count > RT_FREELIST_MAX)
		*count = RT_FREELIST_MAX;
	while (*count > 0) {
		slots = rt_line_take(&srq->turn, *count, limit_of(srq));
		if (slots != 0)
			break;
		/* another thread may have been faster */
		places = rt_srq_places(srq);
		*count = places < *count ? places : *count - 1;
	}
	if (call->done + (int)*count < call->count)
		call->reason = RPMA_RT_AGAIN_CREDIT;
	return slots;
}

/* Through the line. 0. ERRORS: RPMA_E_INVAL, RPMA_RT_E_CLOSED */
static int post_by_line(struct call *call, uint64_t seen)
{
	struct rpma_rt_srq *srq = call->srq;
	struct ibv_sge sge[RT_WR_MAX_SGE];
	struct hold hold = {.srq = srq};
	const struct rpma_rt_recv_wr *wr;
	enum rt_turn_answer answer = RT_TURN_REFUSED;
	struct rpma_recv_wr out;
	uint16_t last = 0;
	uint16_t first;
	uint16_t slot;
	uint32_t count;
	int ret = 0;

	call->reason = RPMA_RT_AGAIN_NONE;
	first = take_slots(call, &count);
	if (first == 0)
		return 0;
	if (is_behind(srq)) {
		give_slots(srq, first, count);
		call->reason = RPMA_RT_AGAIN_BACKLOG;
		return 0;
	}
	/* the first of the chain is for the last one */
	wr = &call->wr[call->done + (int)count - 1];
	for (slot = first; slot != 0 && ret == 0; wr--) {
		ret = rt_wr_prepare_recv(wr, 0, sge, &out);
		out.wr.wr_id = wr->context;
		if (ret == 0)
			rt_line_put_recv(&srq->turn, slot, &out);
		last = slot;
		slot = rt_freelist_next(&srq->turn.free, slot);
	}
	if (ret == 0)
		answer = rt_turn_publish(&srq->turn, seen, first, last);
	if (answer == RT_TURN_HOLDS)
		hold_on(&hold);
	if (answer == RT_TURN_HOLDS || answer == RT_TURN_LEFT) {
		call->done += (int)count;
		return 0;
	}
	give_slots(srq, first, count);
	return ret ? ret : RPMA_RT_E_CLOSED;
}

/* As rt_post_refuse() of a connection's side; a refill function is called again
 * instead of an event. */
static int refuse(struct rpma_rt_srq *srq, enum rpma_rt_again reason)
{
	uint32_t want = reason == RPMA_RT_AGAIN_CREDIT ? RT_WANT_CREDIT
						       : RT_WANT_BACKLOG;

	if (is_refilling(srq)) {
		srq->refill_waits |= reason == RPMA_RT_AGAIN_BACKLOG;
		return rt_want_again(reason);
	}
	/* relaxed: the fence orders it */
	atomic_fetch_or_explicit(&srq->want, want, memory_order_relaxed);
	/* pairs with flush_once() and the retry of spills [LEDGER-2]: either
	 * those see want, or this look what they have published */
	rt_fence_dekker();
	if (reason == RPMA_RT_AGAIN_CREDIT ? rt_srq_places(srq) > 0
					   : !is_behind(srq))
		rt_srq_look_mt(srq);
	return rt_want_again(reason);
}

/* One try of the rest of the call. 0, with a reason if not all were taken.
 * ERRORS: of the call */
static int try(struct call *call)
{
	struct rpma_rt_srq *srq = call->srq;
	uint64_t seen = rt_turn_look(&srq->turn);
	int begin = call->done;
	int end;
	int ret;

	call->reason = RPMA_RT_AGAIN_NONE;
	if (unlikely(!(seen & RT_TURN_OPEN) || seen & RT_TURN_CLOSED ||
		     rt_srq_has_failed(srq)))
		return RPMA_RT_E_CLOSED;
	ret = check(call);
	if (ret || !rt_turn_take_alone(&srq->turn, seen))
		return ret ? ret : post_by_line(call, seen);
	end = end_of_room(call);
	post_alone(call, seen, end);
	return end == begin && call->reason == RPMA_RT_AGAIN_NONE
		       ? post_by_line(call, seen)
		       : call->error;
}

static int answer(int done, int ret)
{
	if (done > 0)
		rt_refuse_forget();
	if (done > 0 || ret == RPMA_E_AGAIN)
		return done > 0 ? done : ret;
	if (ret == RPMA_RT_E_CLOSED)
		return RT_REFUSE(ret,
				 "nothing is posted: the SRQ is being "
				 "deleted, its device has reported an "
				 "error of it, or its runtime was stopped");
	return RT_REFUSED(ret, "nothing is posted");
}

int rt_srq_post(struct rpma_rt_srq *srq, const struct rpma_rt_recv_wr *wr,
		int count)
{
	struct call call = {.srq = srq, .wr = wr, .count = count};
	int ret;

	rt_want_none();
	if (unlikely(srq == NULL || count < 0 || (wr == NULL && count > 0)))
		return rt_wr_refuse_call("srq", srq, count);
	ret = RT_REFUSE_FORKED(srq->rt);
	if (unlikely(ret || count == 0))
		return ret;
	do {
		ret = try(&call);
		if (unlikely(ret == 0 && call.reason != RPMA_RT_AGAIN_NONE))
			ret = refuse(srq, call.reason);
	} while (unlikely(ret == 0 && call.done < count));
	return likely(ret == 0) ? count : answer(call.done, ret);
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
