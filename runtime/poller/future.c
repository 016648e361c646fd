/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * future.c -- slots of futures: taken by posters, completed and published by
 * the poller, given back. The poller stores a result, and publishes the result
 * with a release store at the batch's end, when the credit is back.
 * doc/protocols/future.md.
 */

#include "poller/future.h"

#include <assert.h>

#include "base/context.h"
#include "poller/poller.h"

/* ---------------------------------------------------------- the poster --- */

/* Returns whether the slot is free, when the bit of the slot was is_odd. A slot
 * that was taken after the bit was read may seem free. */
static inline bool future_is_free(const struct rt_future *slot, bool is_odd)
{
	/* acquire [FUTURE-3]: pairs with the release in
	 * rt_future_set_free_at() */
	return rt_load_unseen(&slot->state, memory_order_acquire) ==
	       RT_FUTURE_FREE + is_odd;
}

/* Returns the number of slots from `at` on, `most` at most, that are free and
 * of the same group, whose word is `word`. */
static inline uint32_t future_count_row(const struct rt_futures *futures,
					uint32_t at, uint32_t most,
					uint64_t word)
{
	const struct rt_future *slot = &futures->slots[at];
	uint32_t end = futures->count - at;
	uint32_t n;

	if (end > most)
		end = most;
	if (end > RT_FUTURE_GROUP - at % RT_FUTURE_GROUP)
		end = RT_FUTURE_GROUP - at % RT_FUTURE_GROUP;
	word >>= at % RT_FUTURE_GROUP;
	for (n = 0; n < end && future_is_free(&slot[n], word & 1); n++)
		word >>= 1;
	return n;
}

/* Takes slots from `at` on. Returns their number. */
static inline uint32_t future_take_at(struct rt_futures *futures, uint32_t at,
				      uint32_t most)
{
	_Atomic uint64_t *taken = &futures->taken[at / RT_FUTURE_GROUP];
	/* acquire [FUTURE-3]: pairs with the exchange below: each state that
	 * is read afterwards is not older than the word */
	uint64_t word = rt_load_unseen(taken, memory_order_acquire);
	uint64_t row;
	uint32_t n;

	do {
		n = future_count_row(futures, at, most, word);
		if (n == 0)
			return 0;
		row = (UINT64_C(1) << n) - 1;
		/* acq_rel, acquire [FUTURE-3]: as above. The count makes the
		 * word differ from every former word: no slot of the group was
		 * taken since the word was read */
	} while (unlikely(!atomic_compare_exchange_weak_explicit(
		taken, &word,
		(word ^ row << at % RT_FUTURE_GROUP) +
			(UINT64_C(1) << RT_FUTURE_GROUP),
		memory_order_acq_rel, memory_order_acquire)));
	return n;
}

static inline bool future_seems_free(const struct rt_future *slot)
{
	/* relaxed: a hint */
	return rt_future_is_free_state(
		(enum rt_future_state)atomic_load_explicit(
			&slot->state, memory_order_relaxed));
}

/* Takes slots from the first free slot behind *at on. Returns their number, and
 * in *at the first slot. Not inlined: mostly the slot at the cursor is free. */
__attribute__((noinline)) static uint32_t
future_take_behind(struct rt_futures *futures, uint32_t *at, uint32_t most)
{
	uint32_t n = 0;
	uint32_t i;

	for (i = 1; i < futures->count && n == 0; i++) {
		if (++*at == futures->count)
			*at = 0;
		if (future_seems_free(&futures->slots[*at]))
			n = future_take_at(futures, *at, most);
	}
	return n;
}

/* Slots are used in order, and given back mostly in the same order, so mostly
 * the slots at the cursor are free. When the first slot is free, the search
 * begins there: the fewer slots are used, the fewer cache lines. */
uint32_t rt_future_take_row(struct rt_futures *futures, uint32_t most,
			    struct rt_future **first)
{
	/* relaxed: a hint */
	uint32_t at =
		atomic_load_explicit(&futures->cursor, memory_order_relaxed);
	uint32_t n;

	if (future_seems_free(&futures->slots[0]))
		at = 0;
	n = future_take_at(futures, at, most);
	if (unlikely(n == 0))
		n = future_take_behind(futures, &at, most);
	if (unlikely(n == 0))
		return 0;
	*first = &futures->slots[at];
	at += n;
	/* relaxed: a hint */
	atomic_store_explicit(&futures->cursor, at == futures->count ? 0 : at,
			      memory_order_relaxed);
	return n;
}

struct rt_future *rt_future_take(struct rt_futures *futures, uint64_t context)
{
	struct rt_future *slot = NULL;
	uint32_t generation;

	if (rt_future_take_row(futures, 1, &slot) > 0)
		rt_future_begin(slot, context, &generation);
	return slot;
}

bool rt_future_has_free(const struct rt_futures *futures)
{
	uint64_t word;
	uint32_t i;

	for (i = 0; i < futures->count; i++) {
		/* acquire [FUTURE-3]: as in future_take_at() */
		word = atomic_load_explicit(
			&futures->taken[i / RT_FUTURE_GROUP],
			memory_order_acquire);
		if (future_is_free(&futures->slots[i],
				   word >> i % RT_FUTURE_GROUP & 1))
			return true;
	}
	return false;
}

void rt_future_set_free_line(struct rt_future *slot)
{
	uint8_t in_line = RT_FUTURE_IN_LINE;

	/* acquire [FUTURE-10]: pairs with the exchange in
	 * rt_future_leave_line(): the thread that took the slot off the line
	 * for good has looked at the state. release: the slot's content, for
	 * the thread that takes the slot off the line */
	if (!atomic_compare_exchange_strong_explicit(
		    &slot->line, &in_line, RT_FUTURE_LET_GO,
		    memory_order_acq_rel, memory_order_acquire))
		rt_future_set_free_now(slot);
}

void rt_future_return(struct rt_future *slot)
{
	rt_future_end_generation(slot);
	/* relaxed: no other thread knows of the slot */
	atomic_store_explicit(&slot->line, RT_FUTURE_OFF_LINE,
			      memory_order_relaxed);
	rt_future_set_free_now(slot);
}

/* ------------------------------------------------------------ in line --- */

void rt_future_stand_in_line(struct rt_future *slot, uint8_t opcode,
			     uint32_t qp_num)
{
	slot->result.opcode = opcode;
	slot->result.qp_num = qp_num;
	/* relaxed: the release below and the publication order the store */
	atomic_store_explicit(&slot->line, RT_FUTURE_IN_LINE,
			      memory_order_relaxed);
	/* release [FUTURE-8]: the slot's content, for the thread that changes
	 * WAITING next */
	atomic_store_explicit(&slot->state, RT_FUTURE_WAITING,
			      memory_order_release);
}

static bool future_change_waiting(struct rt_future *slot, uint8_t state)
{
	uint8_t waiting = RT_FUTURE_WAITING;

	/* acq_rel [FUTURE-8]: exactly one of the poster and the holder wins;
	 * OUT publishes to the poller as in [FUTURE-1] */
	return atomic_compare_exchange_strong_explicit(
		&slot->state, &waiting, state, memory_order_acq_rel,
		memory_order_relaxed);
}

bool rt_future_leave_line(struct rt_future *slot)
{
	bool is_posted = future_change_waiting(slot, RT_FUTURE_OUT);

	if (!is_posted)
		/* relaxed: a count, which orders nothing */
		atomic_fetch_sub_explicit(&slot->of->cancelled, 1,
					  memory_order_relaxed);
	/* acquire [FUTURE-10]: pairs with the release in
	 * rt_future_set_free_line() of a thread that freed the slot before;
	 * release: this thread's look at the state comes before. Until this
	 * exchange the slot is not used again */
	if (atomic_exchange_explicit(&slot->line, RT_FUTURE_OFF_LINE,
				     memory_order_acq_rel) == RT_FUTURE_LET_GO)
		rt_future_set_free_now(slot);
	return is_posted;
}

bool rt_future_take_post_back(struct rt_future *slot)
{
	if (!future_change_waiting(slot, RT_FUTURE_UNPOSTED))
		return false;
	/* relaxed: a hint for posters that find no place */
	atomic_fetch_add_explicit(&slot->of->cancelled, 1,
				  memory_order_relaxed);
	return true;
}

/* ------------------------------------------------------------- freeing --- */

/* Frees the slot, on the poller: a poster that found no free slot may go on. */
static void future_set_free_poller(struct rt_poller *poller,
				   struct rt_future *slot)
{
	struct rt_futures *futures = slot->of;

	rt_future_set_free(slot);
	if (futures->own != NULL)
		rt_deliver_touch_side(poller, futures->side);
}

/* ----------------------------------------------------------- finishing --- */

/* Claims the call of the continuation. Returns false if a drop was faster. */
static bool future_claim_call(struct rt_future *slot)
{
	uint8_t armed = RT_FUTURE_ARMED;

	/* acq_rel [FUTURE-4]: exactly one of the poller and the holder wins */
	return atomic_compare_exchange_strong_explicit(
		&slot->claim, &armed, RT_FUTURE_CALLED, memory_order_acq_rel,
		memory_order_acquire);
}

static bool future_was_called(const struct rt_future *slot)
{
	/* relaxed: only the poller stores CALLED */
	return atomic_load_explicit(&slot->claim, memory_order_relaxed) ==
	       RT_FUTURE_CALLED;
}

static void future_add_call(struct rt_poller *poller,
			    const struct rt_future_then *then,
			    const struct rpma_rt_completion *item)
{
	struct rt_future_batch *batch = &poller->futures;

	batch->calls[batch->calls_count].then = *then;
	batch->calls[batch->calls_count].item = *item;
	batch->calls_count++;
	rt_deliver_touch_number(poller, RT_ROUTE_FUTURES);
}

/* Detaches the future: the holder gets no result of the work request. */
static void future_detach(struct rt_future *slot)
{
	const uint8_t not_posted = slot->result.flags & RPMA_RT_C_NOT_POSTED;

	slot->told |= RT_FUTURE_DETACHED;
	slot->result = (struct rpma_rt_completion){
		.context = slot->result.context,
		.user = slot->result.user,
		.qp_num = slot->result.qp_num,
		.kind = RPMA_RT_COMPLETION,
		.status = IBV_WC_GENERAL_ERR,
		.opcode = slot->result.opcode,
		.flags = RPMA_RT_C_DETACHED | not_posted,
	};
}

/* Returns where the slot's message goes if no holder has the message; NULL:
 * there is no queue, or no queue any more. */
static const struct rt_route_entry *
future_queue_of(const struct rt_future *slot)
{
	const struct rt_route_entry *own = slot->of->own;

	return own != NULL && own->leads_to == RT_TO_LANE ? own : NULL;
}

/* Ends a cancelled future whose result no queue has taken. A message stays in
 * the slot, because it would be lost otherwise. */
static void future_give_up(struct rt_future *slot)
{
	if (!rt_future_is_message(slot))
		future_detach(slot);
	slot->told |= RT_FUTURE_DETACHED;
}

static void future_add_complete(struct rt_poller *poller,
				struct rt_future *slot)
{
	poller->futures.complete[poller->futures.count] = slot;
	if (unlikely(slot->told & RT_FUTURE_DETACHED))
		poller->futures.has_detached = true;
	rt_future_add_batch(&poller->futures, slot->of, 1);
	rt_deliver_touch_number(poller, RT_ROUTE_FUTURES);
}

/* Returns whether the result is led to a route, or to the connection's
 * queue. */
static bool future_is_led(const struct rt_future *slot, uint32_t asked)
{
	return (asked & RT_FUTURE_THEN) &&
	       slot->of->then[slot - slot->of->slots].fn == NULL;
}

/*
 * Runs the continuation of a stored result. Copies the result, then claims the
 * call: after the claim the holder may give the slot back. Returns where *left
 * has to be delivered, or NULL.
 */
static const struct rt_route_entry *
future_run_then(struct rt_poller *poller, struct rt_future *slot,
		struct rpma_rt_completion *left, bool *is_called)
{
	struct rt_futures *futures = slot->of;
	struct rt_future_then then = futures->then[slot - futures->slots];
	struct rpma_rt_completion item = slot->result;

	*is_called = future_claim_call(slot);
	if (!*is_called)
		return NULL;
	if (then.fn != NULL) {
		future_add_call(poller, &then, &item);
		return NULL;
	}
	*left = item;
	return then.arg == NULL
		       ? futures->own
		       : futures->side->ops->lead(futures->side, then.arg);
}

/* Gives an item that no holder has to the next future, for kinds without a
 * queue. */
static void future_put_back(struct rt_future *slot, uint32_t asked)
{
	if (slot->of->kind->put_back == NULL || !rt_future_is_message(slot) ||
	    future_was_called(slot) || (asked & RT_FUTURE_TAKEN))
		return;
	slot->of->kind->put_back(slot);
	future_detach(slot);
}

const struct rt_route_entry *
rt_future_finish_poller(struct rt_poller *poller, struct rt_future *slot,
			struct rpma_rt_completion *left)
{
	const struct rt_route_entry *to = NULL;
	bool is_called = false;

	if (slot->told & RT_FUTURE_THEN)
		to = future_run_then(poller, slot, left, &is_called);
	if ((slot->told & (RT_FUTURE_DROP | RT_FUTURE_CANCEL)) && !is_called &&
	    rt_future_is_message(slot)) {
		*left = slot->result;
		to = future_queue_of(slot);
	}
	if (slot->told & RT_FUTURE_DROP) {
		future_set_free_poller(poller, slot);
		return to;
	}
	if (to != NULL)
		future_detach(slot);
	else if (slot->told & RT_FUTURE_CANCEL)
		future_give_up(slot);
	future_add_complete(poller, slot);
	return to;
}

const struct rt_route_entry *rt_future_complete_poller(
	struct rt_poller *poller, const struct rt_futures *futures,
	const struct rpma_rt_completion *item, struct rpma_rt_completion *left)
{
	struct rt_future *slot = rt_future_of_cookie(item->context);

	assert(slot >= futures->slots &&
	       slot < futures->slots + futures->count);
	(void)futures;
	if (unlikely(!rt_future_is_expected(slot, item->context))) {
		/* the device repeats a completion */
		RT_STAT_ADD(poller, stale, 1);
		return NULL;
	}
	rt_future_fill(slot, *item);
	poller->written++;
	if (likely(slot->told == RT_FUTURE_FILLED)) {
		future_add_complete(poller, slot);
		return NULL;
	}
	return rt_future_finish_poller(poller, slot, left);
}

/* -------------------------------------------------------- what is asked --- */

/* Does what was asked of a slot whose result is published. The holder does not
 * look at the slot any more, unless the holder asked only for the
 * continuation. */
static const struct rt_route_entry *
future_ask_after(struct rt_poller *poller, struct rt_future *slot,
		 uint32_t asked, struct rpma_rt_completion *left)
{
	bool is_called =
		(slot->told & RT_FUTURE_DETACHED) || future_was_called(slot);
	/* the connection has ended: the result stays in the slot */
	bool stays = slot->of->own == NULL && future_is_led(slot, asked);
	const struct rt_route_entry *to = NULL;

	if ((asked & RT_FUTURE_THEN) && !stays && !is_called)
		to = future_run_then(poller, slot, left, &is_called);
	if (!(asked & (RT_FUTURE_DROP | RT_FUTURE_CANCEL)) && !stays &&
	    to == NULL)
		return NULL; /* another thread may have the slot by now */
	future_put_back(slot, asked);
	if (!is_called && rt_future_is_message(slot) &&
	    !(asked & RT_FUTURE_TAKEN) && future_queue_of(slot) != NULL) {
		*left = slot->result;
		to = future_queue_of(slot);
	}
	if (asked & RT_FUTURE_DROP) {
		future_set_free_poller(poller, slot);
		return to;
	}
	if (to != NULL)
		future_detach(slot);
	else if (asked & RT_FUTURE_CANCEL)
		future_give_up(slot);
	slot->told |= RT_FUTURE_DETACHED;
	future_add_complete(poller, slot);
	return to;
}

/* Returns whether the holder has taken the work request back: then no
 * completion comes. */
static bool future_is_unposted(const struct rt_future *slot)
{
	/* acquire [FUTURE-8]: pairs with the exchange in
	 * future_change_waiting() */
	return atomic_load_explicit(&slot->state, memory_order_acquire) ==
	       RT_FUTURE_UNPOSTED;
}

/* Completes a future whose work request was taken back, when the holder asks
 * for more. */
static bool future_ask_post(struct rt_future *slot, uint32_t asked)
{
	const struct rt_route_entry *own = slot->of->own;

	if (!(asked & (RT_FUTURE_CANCEL | RT_FUTURE_DROP)) ||
	    !future_is_unposted(slot))
		return false;
	rt_future_fill(slot, (struct rpma_rt_completion){
				     .user = own != NULL ? own->user : NULL,
				     .qp_num = slot->result.qp_num,
				     .kind = RPMA_RT_COMPLETION,
				     .status = IBV_WC_GENERAL_ERR,
				     .opcode = slot->result.opcode,
				     .flags = RPMA_RT_C_NOT_POSTED,
			     });
	return true;
}

#define NO_QUEUE \
	"the future's connection was made without a queue: name a route"

const struct rt_future_kind rt_future_posts[2][2] = {
	{{.ask = future_ask_post, .not_to_queue = NO_QUEUE},
	 {.ask = future_ask_post}},
	{{.is_kept = true, .ask = future_ask_post, .not_to_queue = NO_QUEUE},
	 {.is_kept = true, .ask = future_ask_post}},
};
_Static_assert(RPMA_RT_COMPLETION == 0, "what futures of work requests get");

/* --------------------------------------------------------- each request --- */

const struct rt_route_entry *
rt_future_ask_poller(struct rt_poller *poller, struct rt_future *slot,
		     uint32_t asked, struct rpma_rt_completion *left)
{
	assert(!rt_future_is_full(&poller->futures));
	if (slot->told & RT_FUTURE_FILLED)
		return future_ask_after(poller, slot, asked, left);
	slot->told |= (uint8_t)(asked & (RT_FUTURE_THEN | RT_FUTURE_CANCEL |
					 RT_FUTURE_DROP));
	if (!slot->of->kind->ask(slot, asked))
		return NULL;
	return rt_future_finish_poller(poller, slot, left);
}

/* ------------------------------------------------------- a batch's end --- */

static inline void future_publish_as(struct rt_future *slot,
				     enum rt_future_state state)
{
	/* release [FUTURE-2]: pairs with the acquire in rt_future_state(); the
	 * holder may give the slot back from here on */
	atomic_store_explicit(&slot->state, (uint8_t)state,
			      memory_order_release);
}

static void future_publish_slot(struct rt_future *slot)
{
	enum rt_future_state state = slot->told & RT_FUTURE_DETACHED
					     ? RT_FUTURE_ENDED
					     : RT_FUTURE_DONE;

	future_publish_as(slot, state);
}

static bool future_has_sleepers(const struct rt_futures *futures)
{
	/* relaxed: the batch's fence orders the look [FUTURE-5] */
	return unlikely(atomic_load_explicit(&futures->sleepers,
					     memory_order_relaxed) != 0);
}

/* Pushes the slot to the place where the holder waits, after the fence, if the
 * block has sleepers. Slots are never freed: a slot that was given back, and is
 * waited for again, is pushed too early, at worst. */
static void future_wake(struct rt_future *slot)
{
	struct rt_future_place *place;
	struct rt_future *head;

	/* relaxed: only a look; the fence orders it [FUTURE-5] */
	if (atomic_load_explicit(&slot->waiter, memory_order_relaxed) == NULL)
		return;
	/* acquire [FUTURE-9]: pairs with the release in future_wait_point(),
	 * future/wait.c: the place is visible. Either the poller or the holder
	 * gets the token */
	place = atomic_exchange_explicit(&slot->waiter, NULL,
					 memory_order_acquire);
	if (place == NULL)
		return;
	/* relaxed: the compare-and-swap decides */
	head = atomic_load_explicit(&place->pushed, memory_order_relaxed);
	do {
		rt_future_waited(slot)->next = head;
		/* release [FUTURE-9]: pairs with the acquire in
		 * future_wait_take_pushed(), future/wait.c: the link is
		 * visible, and this thread does not touch the slot any more */
	} while (!atomic_compare_exchange_weak_explicit(
		&place->pushed, &head, slot, memory_order_release,
		memory_order_relaxed));
	/* otherwise the poller that pushed the first slot rings */
	if (head == NULL)
		rt_bell_ring(&place->bell);
}

static void future_publish(void *arg)
{
	struct rt_poller *poller = arg;
	struct rt_future_batch *batch = &poller->futures;
	const uint32_t count = batch->count;
	uint32_t i;

	if (likely(!batch->has_detached)) {
		for (i = 0; i < count; i++)
			future_publish_as(batch->complete[i], RT_FUTURE_DONE);
		return;
	}
	batch->has_detached = false;
	for (i = 0; i < count; i++)
		future_publish_slot(batch->complete[i]);
}

/* Wakes the holders that wait for slots of the batch. */
static inline void future_wake_holders(const struct rt_future_batch *batch)
{
	uint32_t end = batch->count;
	uint32_t i = batch->runs_count;
	uint32_t at;

	while (i-- > 0) {
		at = batch->runs[i].first;
		if (future_has_sleepers(batch->runs[i].of)) {
			while (at < end)
				future_wake(batch->complete[at++]);
		}
		end = batch->runs[i].first;
	}
}

static void future_answer(void *arg)
{
	struct rt_poller *poller = arg;
	struct rt_future_batch *batch = &poller->futures;
	uint32_t i;
	int cancel;

	future_wake_holders(batch);
	batch->count = 0;
	batch->runs_count = 0;
	if (likely(batch->calls_count == 0))
		return;
	cancel = rt_poller_begin_functions(poller);
	rt_callback_show(&poller->calls, batch);
	for (i = 0; i < batch->calls_count; i++)
		batch->calls[i].then.fn(&batch->calls[i].item,
					batch->calls[i].then.arg);
	rt_callback_show(&poller->calls, NULL);
	batch->calls_count = 0;
	rt_poller_end_functions(poller, cancel);
}

void rt_future_ask_ended(struct rt_future *slot, uint32_t asked)
{
	/* connections and listeners have ended: everything that futures ask for
	 * has come */
	if (!(slot->told & RT_FUTURE_FILLED))
		slot->of->kind->ask(slot, asked);
	else if (asked & (RT_FUTURE_DROP | RT_FUTURE_CANCEL))
		future_put_back(slot, asked);
	if (asked & RT_FUTURE_DROP) {
		rt_future_set_free(slot);
		return;
	}
	/* a keeper or a watching slot, without a result */
	if (!(slot->told & RT_FUTURE_FILLED))
		return;
	if (!(asked & (RT_FUTURE_CANCEL | RT_FUTURE_WATCH)) &&
	    !future_is_led(slot, asked))
		return;
	if (asked & RT_FUTURE_CANCEL)
		future_give_up(slot);
	else if (future_is_led(slot, asked))
		slot->told |= RT_FUTURE_DETACHED;
	future_publish_slot(slot);
	/* pairs with the fence of a holder before a sleep [FUTURE-5] */
	rt_fence_dekker();
	if (future_has_sleepers(slot->of))
		future_wake(slot);
}

/* Counts a completion with the reserved number as stale: no work request has
 * this number, so the device invented the completion. */
static void future_completion(struct rt_poller *poller, struct rt_cq *cq,
			      const struct ibv_wc *wc)
{
	(void)cq;
	(void)wc;
	RT_STAT_ADD(poller, stale, 1);
}

static const struct rt_reserved_ops future_ops = {
	.completion = future_completion,
	.publish = future_publish,
	.answer = future_answer,
};

void rt_future_init_poller(struct rt_poller *poller)
{
	poller->reserved[RT_ROUTE_FUTURES] =
		(struct rt_reserved){.ops = &future_ops, .arg = poller};
}
