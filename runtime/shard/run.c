/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.c -- a shard's turns: a round of its poller, what others sent, timers,
 * its queue, what it sends itself; and how long it spins before it sleeps.
 */

#include "shard/shard.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/self.h"
#include "base/stats.h"
#include "queue/impl.h"

#define NS_PER_MS 1000000u

/* ---------------------------------------------------------- a turn --- */

/* A round of the poller, which belongs to the calling thread from here on.
 * Returns how much was done, or an error. */
static int run_poller(struct rpma_rt_shard *shard)
{
	int ret = 0;

	if (unlikely(shard->is_poller_over))
		return 0;
	if (unlikely(!rt_owner_is_self(shard->owned)))
		ret = rpma_rt_poller_attach(shard->rt, shard->index);
	if (likely(ret == 0))
		ret = rpma_rt_poller_run(shard->rt, shard->index,
					 RT_SHARD_BATCH);
	if (likely(ret != RPMA_RT_E_CLOSED))
		return ret;
	shard->is_poller_over = true;
	rt_shard_end_begin(shard->set);
	return 0;
}

static void call_items(struct rpma_rt_shard *shard,
		       const struct rpma_rt_completion *items, int count)
{
	rpma_rt_shard_item_fn *item_fn = shard->set->item_fn;
	RT_NOT_CANCELLED;
	int i;

	for (i = 0; i < count; i++)
		item_fn(shard, &items[i], shard->arg);
}

/* Returns how many items were taken, 0.., or an error. */
static int take_items(struct rpma_rt_shard *shard)
{
	struct rpma_rt_completion items[RT_SHARD_BATCH];
	int count;

	if (unlikely(shard->is_queue_over))
		return 0;
	count = rpma_rt_queue_poll(shard->queue, items, RT_SHARD_BATCH);
	if (likely(count == 0))
		return 0;
	if (unlikely(count < 0)) {
		if (count != RPMA_RT_E_CLOSED)
			return count;
		shard->is_queue_over = true;
		return 0;
	}
	call_items(shard, items, count);
	rt_stat_add(&shard->counters.items, (uint64_t)count);
	return count;
}

/* The shard has ended: its poller is anybody's, for rpma_rt_stop(). */
static int finish(struct rpma_rt_shard *shard)
{
	if (!shard->is_poller_over)
		(void)rpma_rt_poller_release(shard->rt, shard->index);
	return RPMA_RT_E_CLOSED;
}

/* How much was done; RPMA_RT_E_CLOSED: that was all; or another error. */
static int turn(struct rpma_rt_shard *shard)
{
	int handled = run_poller(shard);
	int messages;
	int items;

	if (unlikely(handled < 0))
		return handled;
	messages = rt_shard_take(shard);
	handled += messages + rt_shard_timer_call(shard);
	if (unlikely(shard->wants != 0))
		handled += rt_shard_send_tell(shard);
	items = take_items(shard);
	rt_shard_send_hand_over(shard);
	if (unlikely(items < 0))
		return items;
	if (unlikely(rt_shard_is_stopping(shard->set)) &&
	    rt_shard_end_step(shard, messages))
		return finish(shard);
	return handled + items;
}

/* --------------------------------------------------------- no work --- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A wake of its queue has come, which a turn does not look at. */
static bool is_woken(const struct rpma_rt_shard *shard)
{
	return !shard->is_queue_over && rt_wake_is_due(shard->queue);
}

/* Turns until one does something, or the queue was woken, or for so long;
 * timeout_ms: not 0. Gives the CPU up as a poller does. */
static int idle(struct rpma_rt_shard *shard, int timeout_ms)
{
	uint64_t now = rt_now_ns();
	uint64_t spin_end = now + shard->set->spin_ns;
	uint64_t end = timeout_ms < 0 ? UINT64_MAX
				      : now + (uint64_t)timeout_ms * NS_PER_MS;
	enum rt_share share;
	uint64_t before;
	int woken = 0;
	int ret;

	while (now < end) {
		before = now;
		share = rt_share_yield(&now);
		/* the time of other threads is no spinning */
		spin_end += now - before;
		/* the sleep takes the wake, and does not begin */
		if (now >= spin_end || share == RT_SHARE_BUSY ||
		    is_woken(shard)) {
			woken = rt_shard_sleep(
				shard, least(end, rt_shard_timer_next(shard)));
			if (woken < 0)
				return woken;
		} else {
			rt_cpu_relax();
		}
		ret = turn(shard);
		if (ret != 0 || woken > 0)
			return ret;
		now = rt_now_ns();
	}
	return 0;
}

/* -------------------------------------------------------- the call --- */

/* 0: the calling thread is inside. */
static int enter(const struct rt_log_place *place, struct rpma_rt_shard *shard,
		 int timeout_ms)
{
	uint64_t nobody = 0;
	int ret = rt_context_check_wait(place, shard->rt);

	if (ret)
		return ret;
	if (unlikely(timeout_ms < -1))
		return rt_refuse(place, RPMA_E_INVAL,
				 "timeout_ms is %d, it may be -1 (without end) "
				 "or more",
				 timeout_ms);
	/* acquire: pairs with leave(), the former thread's shard; failure:
	 * nothing is looked at */
	if (unlikely(!atomic_compare_exchange_strong_explicit(
		    &shard->runner, &nobody, rt_self_number(),
		    memory_order_acquire, memory_order_relaxed)))
		return rt_refuse(
			place, RPMA_RT_E_BUSY,
			"shard %u is run already, by another thread or "
			"by the function that makes this call",
			shard->index);
	shard->thread = rt_self_number();
	return 0;
}

static void leave(struct rpma_rt_shard *shard)
{
	/* release: pairs with enter() */
	atomic_store_explicit(&shard->runner, 0, memory_order_release);
}

int rpma_rt_shard_run(struct rpma_rt_shard *shard, int timeout_ms)
{
	int ret = RT_REFUSE_NULL(shard);

	if (ret == 0)
		ret = enter(RT_LOG_HERE, shard, timeout_ms);
	if (ret)
		return ret;
	/* what was sent outside of a run */
	rt_shard_send_hand_over(shard);
	if (unlikely(rt_shard_phase_of(shard) == RT_SHARD_ENDED))
		ret = RPMA_RT_E_CLOSED;
	else
		ret = turn(shard);
	if (ret == 0 && timeout_ms != 0)
		ret = idle(shard, timeout_ms);
	leave(shard);
	if (unlikely(ret == RPMA_RT_E_CLOSED))
		return RT_REFUSE(ret,
				 "the shards are stopped: shard %u has "
				 "nothing to do any more",
				 shard->index);
	return ret;
}

int rpma_rt_shard_get_stats(const struct rpma_rt_shard *shard,
			    struct rpma_rt_shard_stats *stats, size_t size)
{
	struct rpma_rt_shard_stats known;
	int ret = RT_REFUSE_NULL(shard, stats);

	if (ret == 0)
		ret = RT_REFUSE_FORKED(shard->rt);
	if (ret)
		return ret;
#define READ(name) known.name = rt_stat_read(&shard->counters.name)
	READ(items);
	READ(messages);
	READ(sent);
	READ(refused);
	READ(timers);
	READ(sleeps);
	READ(rings);
	/* what is subtracted first: it never counts more */
	known.unanswered = rt_stat_read(&shard->counters.answered);
	known.unanswered =
		rt_stat_read(&shard->counters.requested) - known.unanswered;
	known.owed = rt_stat_read(&shard->counters.replied);
	known.owed = rt_stat_read(&shard->counters.asked) - known.owed;
#undef READ
	rt_stats_give(stats, size, &known, sizeof(known));
	return 0;
}
