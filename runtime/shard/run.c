/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * run.c -- the turns of a shard: a round of the poller, whose completions go
 * straight to a function, messages of other shards, timers, the queue, sent
 * messages; and how long a shard spins before a sleep.
 */

#define _GNU_SOURCE
#include "shard/shard.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/self.h"
#include "base/stats.h"
#include "base/wait.h"
#include "poller/round.h"
#include "poller/take.h"
#include "queue/take.h"

/* ----------------------------------------------------------------- take --- */

/*
 * Messages that come to a shard: the shard's function reads each message in its
 * slot; then the room goes back to the sender. On the shard's thread.
 */

/* Adds the lanes that were made since the last look. */
__attribute__((noinline)) static void shard_meet(struct rpma_rt_shard *shard,
						 uint64_t met)
{
	struct rpma_rt_shards *set = shard->set;
	struct rt_shard_lane *lane;
	uint32_t from;

	for (from = 0; from < shard->count; from++) {
		if (!(met & ~shard->known & rt_shard_bit(from)))
			continue;
		lane = set->lanes[from * set->count + shard->index];
		shard->in[shard->in_count++] = (struct rt_shard_in){
			.lane = lane,
			.from = from,
		};
	}
	shard->known = met;
}

static inline void shard_look_for_lanes(struct rpma_rt_shard *shard)
{
	/* acquire [SHARD-1]: pairs with the release in send_make(), send.c: the
	 * lane behind a bit. Unseen by the sanitizer: the tail of a lane hands
	 * over data of the program */
	uint64_t met = rt_load_unseen(&shard->met, memory_order_acquire);

	if (unlikely(met != shard->known))
		shard_meet(shard, met);
}

/* Counts a message that is no post. */
static void shard_note_kind(struct rpma_rt_shard *shard,
			    struct rt_shard_out *out, uint8_t kind,
			    uint32_t *answers)
{
	if (kind == RPMA_RT_SHARD_REQUEST) {
		out->owed++;
		rt_stat_add(&shard->counters.asked, 1);
	} else {
		(*answers)++;
	}
}

/* Calls the function for `count` messages in a row; adds the number of answers
 * to *answers. */
static void shard_call_messages(struct rpma_rt_shard *shard,
				const struct rpma_rt_shard_message *message,
				uint32_t count, struct rt_shard_out *out,
				uint32_t *answers)
{
	rpma_rt_shard_message_fn *message_fn = shard->set->message_fn;
	const struct rpma_rt_shard_message *end = message + count;

	for (; message != end; message++) {
		if (unlikely(message->kind != RPMA_RT_SHARD_POST))
			shard_note_kind(shard, out, message->kind, answers);
		message_fn(shard, message, shard->arg);
	}
}

/* Calls the function for `count` messages from the lane's head on; returns the
 * number of answers. */
static uint32_t shard_call_lane(struct rpma_rt_shard *shard,
				const struct rt_shard_in *in, uint32_t count)
{
	RT_NOT_CANCELLED;
	const struct rt_shard_lane *lane = in->lane;
	struct rt_shard_out *out = &shard->out[in->from];
	uint32_t size = 2 * lane->limit;
	uint32_t at = in->head & (size - 1);
	uint32_t straight = size - at;
	uint32_t answers = 0;

	if (straight > count)
		straight = count;
	shard_call_messages(shard, &lane->slots[at], straight, out, &answers);
	shard_call_messages(shard, lane->slots, count - straight, out,
			    &answers);
	return answers;
}

static uint32_t shard_take_lane(struct rpma_rt_shard *shard,
				struct rt_shard_in *in)
{
	uint32_t count = rt_shard_lane_tail(in) - in->head;
	uint32_t answers;

	if (count == 0)
		return 0;
	if (count > RT_SHARD_BATCH)
		count = RT_SHARD_BATCH;
	answers = shard_call_lane(shard, in, count);
	rt_shard_lane_advance(in, in->head + count);
	/* after the store of head: a request that is sent for this credit is
	 * answered into the room that was just given back */
	shard->out[in->from].unanswered -= answers;
	if (answers > 0)
		rt_stat_add(&shard->counters.answered, answers);
	shard->drained |= rt_shard_bit(in->from);
	return count;
}

/* Calls the functions of messages; returns the number of messages. */
static int rt_shard_take(struct rpma_rt_shard *shard)
{
	uint32_t total = 0;
	uint32_t i;

	shard_look_for_lanes(shard);
	for (i = 0; i < shard->in_count; i++)
		total += shard_take_lane(shard, &shard->in[i]);
	if (total > 0)
		rt_stat_add(&shard->counters.messages, total);
	return (int)total;
}

/* Returns whether there are messages, or new lanes. */
static inline bool rt_shard_take_has_some(const struct rpma_rt_shard *shard)
{
	uint32_t i;

	/* relaxed: rt_shard_take() looks again */
	if (unlikely(atomic_load_explicit(&shard->met, memory_order_relaxed) !=
		     shard->known))
		return true;
	for (i = 0; i < shard->in_count; i++) {
		if (rt_shard_lane_has_some(&shard->in[i]))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- sleep --- */

/*
 * The sleep of a shard: a word that only the shard writes, an eventfd that
 * other shards write (send.c), and an epoll set of everything that wakes the
 * shard.
 */

#define NS_PER_S 1000000000u
/* length of a nap when there is no descriptor to sleep on */
#define NAP_NS 10000000

/* Reads the eventfd. Late writes make the eventfd readable again, once for
 * nothing. */
static void shard_read_rings(struct rpma_rt_shard *shard)
{
	uint64_t writes;
	ssize_t ret;

	if (!shard->is_rung)
		return;
	shard->is_rung = false;
	ret = read(shard->eventfd, &writes, sizeof(writes));
	(void)ret; /* an eventfd with nothing to read is quiet, too */
}

/* Sets `asleep` to the next number: odd means that the shard sleeps. */
static void shard_count_asleep(struct rpma_rt_shard *shard)
{
	/* relaxed: only the shard writes */
	uint32_t asleep =
		atomic_load_explicit(&shard->asleep, memory_order_relaxed);

	/* release: pairs with the acquire in send_asleep_of(), send.c: `wants`
	 * of the lanes was stored before */
	atomic_store_explicit(&shard->asleep, asleep + 1, memory_order_release);
}

static bool shard_has_work(struct rpma_rt_shard *shard)
{
	return rt_shard_take_has_some(shard) || rt_shard_send_is_eased(shard) ||
	       rt_shard_end_is_due(shard);
}

/* Arms the queue. Returns 0: armed; 1: there is something, or a wake; or an
 * error. */
static int shard_arm_queue(struct rpma_rt_shard *shard)
{
	int ret;

	if (shard->is_queue_over)
		return 0;
	ret = rpma_rt_queue_arm(shard->queue);
	/* the next turn finds that the queue is closed */
	return ret == RPMA_RT_E_CLOSED ? 1 : ret;
}

/* Arms the poller. Returns 0: armed; 1: there is work; or an error. */
static int shard_arm_poller(struct rpma_rt_shard *shard)
{
	int ret;

	if (shard->is_poller_over)
		return 0;
	ret = rpma_rt_poller_arm(shard->rt, shard->index);
	return ret == RPMA_RT_E_CLOSED ? 1 : ret;
}

static void shard_sleep_on_fd(struct rpma_rt_shard *shard, uint64_t until_ns)
{
	struct pollfd fd = {.fd = shard->epfd, .events = POLLIN};
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct timespec timeout = {0, 0};
	uint64_t now;

	if (until_ns != UINT64_MAX) {
		now = rt_now_ns();
		if (until_ns <= now)
			return;
		timeout.tv_sec = (time_t)((until_ns - now) / NS_PER_S);
		timeout.tv_nsec = (long)((until_ns - now) % NS_PER_S);
	}
	rt_stat_add(&shard->counters.sleeps, 1);
	/* on a signal the shard looks again, too */
	if (ppoll(&fd, 1, until_ns == UINT64_MAX ? NULL : &timeout, NULL) != 0)
		shard->is_rung = true;
	/* the program closed the descriptor: no ring comes, so turns go on
	 * after naps */
	if (fd.revents & POLLNVAL)
		nanosleep(&nap, NULL);
}

/* Sleeps until something comes, until that time of the monotonic clock, or for
 * no reason. Returns 0; 1: the queue has something or was woken; or an error of
 * arming. */
static int rt_shard_sleep(struct rpma_rt_shard *shard, uint64_t until_ns)
{
	RT_NOT_CANCELLED;
	int armed = 0;
	int ret = 0;

	/* before `asleep` is stored: a ring that this read takes away announced
	 * something that the look below finds */
	shard_read_rings(shard);
	shard_count_asleep(shard);
	/* [SHARD-4]: `asleep` is stored before the look */
	rt_fence_dekker();
	if (!shard_has_work(shard)) {
		ret = shard_arm_queue(shard);
		if (ret == 0)
			armed = shard_arm_poller(shard);
		if (ret == 0 && armed == 0)
			shard_sleep_on_fd(shard, until_ns);
	}
	shard_count_asleep(shard);
	if (armed < 0)
		return armed;
	return ret;
}

/* ------------------------------------------------------------------ run --- */

#define NS_PER_MS 1000000u

/* ---------------------------------------------------------- a turn --- */

/* Notes that the runtime is stopped, and stops the set. */
static int shard_end_poller(struct rpma_rt_shard *shard)
{
	shard->is_poller_over = true;
	(void)rpma_rt_shards_stop(shard->set);
	return 0;
}

/* Runs a round of the poller, which belongs to the calling thread. Returns how
 * much was done, or an error. */
static int run_poller(struct rpma_rt_shard *shard)
{
	int ret;

	if (unlikely(shard->is_poller_over))
		return 0;
	ret = rpma_rt_poller_run(shard->rt, shard->index, RT_SHARD_BATCH);
	return unlikely(ret == RPMA_RT_E_CLOSED) ? shard_end_poller(shard)
						 : ret;
}

static void shard_call_items(struct rpma_rt_shard *shard,
			     const struct rpma_rt_completion *items, int count)
{
	rpma_rt_shard_item_fn *item_fn = shard->set->item_fn;
	RT_NOT_CANCELLED;
	int i;

	for (i = 0; i < count; i++)
		item_fn(shard, &items[i], shard->arg);
	rt_stat_add(&shard->counters.items, (uint64_t)count);
}

/* Hands messages over that were sent outside of a turn: before any function of
 * the turn, which may wait for their effect. */
static inline void shard_hand_over_early(struct rpma_rt_shard *shard)
{
	if (unlikely(shard->published != 0))
		rt_shard_send_hand_over(shard);
}

/* Runs a round of the poller whose completions for the queue go straight to
 * item_fn. Returns how much was done, or RT_TAKE_NO_ROUND. */
__attribute__((always_inline)) static inline int
shard_run_straight(struct rpma_rt_shard *shard)
{
	struct rpma_rt_completion items[RT_SHARD_BATCH];
	int count = rt_take_own(shard->queue, &shard->poller->owned, items,
				RT_SHARD_BATCH);

	if (count <= 0)
		return unlikely(count == RT_TAKE_OTHERS) ? 1 : count;
	shard_hand_over_early(shard);
	shard_call_items(shard, items, count);
	return count;
}

/* Takes items from the queue. Returns the number of items, or an error. */
static int shard_take_items(struct rpma_rt_shard *shard)
{
	struct rpma_rt_completion items[RT_SHARD_BATCH];
	int count;

	count = rpma_rt_queue_poll(shard->queue, items, RT_SHARD_BATCH);
	if (likely(count == 0))
		return 0;
	if (unlikely(count < 0)) {
		if (count != RPMA_RT_E_CLOSED)
			return count;
		shard->is_queue_over = true;
		return 0;
	}
	shard_call_items(shard, items, count);
	return count;
}

static int shard_refuse_ended(const struct rt_log_place *place,
			      const struct rpma_rt_shard *shard)
{
	return rt_refuse(place, RPMA_RT_E_CLOSED,
			 "the shards are stopped: shard %u has nothing to do "
			 "any more",
			 shard->index);
}

/* Ends the shard: the poller belongs to no thread, so that rpma_rt_stop(), and
 * waits for other queues, can run the poller. */
static int shard_finish(struct rpma_rt_shard *shard)
{
	if (!shard->is_poller_over)
		(void)rpma_rt_poller_release(shard->rt, shard->index);
	shard->has_ended = true;
	/* relaxed: see rt_shard_show_pollers() */
	atomic_fetch_and_explicit(&shard->set->running,
				  ~rt_shard_bit(shard->index),
				  memory_order_relaxed);
	rt_shard_show_pollers(shard->rt);
	return shard_refuse_ended(RT_LOG_HERE, shard);
}

/* Returns whether the queue has nothing for the shard. */
static inline bool shard_is_queue_idle(struct rpma_rt_shard *shard)
{
	return unlikely(shard->is_queue_over) ||
	       rt_queue_poll_idle_consumer(shard->queue);
}

/* Returns whether there is anything for a turn besides the poller's round.
 * found: what shard_run_straight() returned; 0: the queue is empty. */
static inline bool shard_has_any(struct rpma_rt_shard *shard, int found)
{
	if ((shard->touched | shard->published | shard->wants) != 0 ||
	    shard->timers.first != NULL || rt_shard_take_has_some(shard) ||
	    rt_shard_may_be_stopping(shard->set))
		return true;
	if (unlikely(found != 0))
		return !shard_is_queue_idle(shard);
	rt_queue_count_idle(shard->queue);
	return false;
}

/* Does the part of a turn for a stop, after the turn's look at the lanes. done
 * and result as in shard_end_turn(). */
__attribute__((noinline)) static int
shard_stop_step(struct rpma_rt_shard *shard, int done, bool has_taken)
{
	if (shard->has_ended)
		return shard_refuse_ended(RT_LOG_HERE, shard);
	if (rt_shard_end_step(shard, has_taken))
		return shard_finish(shard);
	return done;
}

/* Calls the functions for everything besides the poller's round; returns how
 * much was done. ERRORS: errors of the queue */
static int shard_call_all(struct rpma_rt_shard *shard, bool *has_taken)
{
	int done = rt_shard_take(shard);
	int items;

	*has_taken = done > 0;
	if (unlikely(shard->timers.first != NULL))
		done += rt_shard_timer_call(shard);
	if (unlikely(shard->wants != 0))
		done += rt_shard_send_tell(shard);
	if (shard_is_queue_idle(shard))
		return done;
	items = shard_take_items(shard);
	return unlikely(items < 0) ? items : done + items;
}

/* Does the rest of a turn after the poller's round; `done` is how much the
 * round did, or an error. Returns how much was done; RPMA_RT_E_CLOSED: the
 * shard has ended; or another error. */
__attribute__((noinline)) static int shard_end_turn(struct rpma_rt_shard *shard,
						    int done)
{
	bool has_taken = false;
	int called = 0;

	shard_hand_over_early(shard);
	if (likely(done >= 0))
		called = shard_call_all(shard, &has_taken);
	rt_shard_send_hand_over(shard);
	if (unlikely(done < 0 || called < 0))
		return done < 0 ? done : called;
	if (unlikely(rt_shard_is_stopping(shard->set)))
		return shard_stop_step(shard, done + called, has_taken);
	return done + called;
}

static int shard_run_turn(struct rpma_rt_shard *shard)
{
	int done;

	/* messages sent outside of a turn. During the round the stores arrive
	 * for which the fence would wait otherwise */
	rt_shard_send_publish(shard);
	done = shard_run_straight(shard);
	if (done == RT_TAKE_NO_ROUND)
		done = run_poller(shard);
	return shard_end_turn(shard, done);
}

/* --------------------------------------------------------- no work --- */

static uint64_t shard_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns whether the queue was woken; a turn does not look at wakes. */
static bool shard_is_woken(const struct rpma_rt_shard *shard)
{
	return !shard->is_queue_over && rt_wake_is_due(shard->queue);
}

/* Runs all pollers of the thread, if the shard's poller is not the only one: a
 * thread runs its pollers in each call that may wait. Returns until when the
 * shard may sleep. */
static uint64_t shard_run_others(struct rpma_rt_shard *shard)
{
	if (likely(rt_owner_is_only(&shard->poller->owned)))
		return UINT64_MAX;
	rt_owner_run_all();
	return rt_now_ns() + RT_WAIT_NS;
}

/* Makes turns until a turn does something, the queue was woken, or the time is
 * over; timeout_ms: not 0. Yields the CPU as a poller does. */
static int shard_idle(struct rpma_rt_shard *shard, int timeout_ms)
{
	uint64_t now = rt_now_ns();
	uint64_t spin_end = now + shard->set->spin_ns;
	uint64_t end = timeout_ms < 0 ? UINT64_MAX
				      : now + (uint64_t)timeout_ms * NS_PER_MS;
	enum rt_share share;
	uint64_t before;
	uint64_t until;
	int woken = 0;
	int ret;

	while (now < end) {
		until = shard_least(end, shard_run_others(shard));
		before = now;
		share = rt_share_yield(&now);
		/* the time of other threads does not count as spinning */
		spin_end += now - before;
		/* the sleep takes the wake and ends at once */
		if (now >= spin_end || share == RT_SHARE_BUSY ||
		    shard_is_woken(shard)) {
			woken = rt_shard_sleep(
				shard,
				shard_least(until, rt_shard_timer_next(shard)));
			if (woken < 0)
				return woken;
		} else {
			rt_cpu_relax();
		}
		ret = shard_run_turn(shard);
		if (ret != 0 || woken > 0)
			return ret;
		now = rt_now_ns();
	}
	return 0;
}

/* -------------------------------------------------------- the call --- */

/* Logs that another thread, or a function of the shard, is inside. */
static int shard_refuse_busy(const struct rt_log_place *place,
			     const struct rpma_rt_shard *shard)
{
	return rt_refuse(place, RPMA_RT_E_BUSY,
			 "shard %u is run already, by another thread or "
			 "by the function that makes this call",
			 shard->index);
}

static void shard_leave(struct rpma_rt_shard *shard)
{
	/* release: pairs with the acquire in shard_go_in() */
	atomic_store_explicit(&shard->runner, 0, memory_order_release);
}

/* Goes inside. Returns false if a thread is inside. */
static bool shard_go_in(struct rpma_rt_shard *shard)
{
	uint64_t nobody = 0;

	/* acquire: pairs with the release in shard_leave(): the state of the
	 * shard as the former thread left the shard. Failure is relaxed:
	 * nothing is read */
	return atomic_compare_exchange_strong_explicit(
		&shard->runner, &nobody, rt_self_number(), memory_order_acquire,
		memory_order_relaxed);
}

/* Returns whether the poller belongs to another thread. */
static bool shard_is_others(struct rpma_rt_shard *shard)
{
	char name[RT_THREAD_NAME];
	pid_t tid;

	return rt_owner_is_other(&shard->poller->owned, name, &tid);
}

/* Makes the poller the calling thread's. Inside. */
static int shard_own_poller(const struct rt_log_place *place,
			    struct rpma_rt_shard *shard)
{
	int ret;

	if (shard->has_ended)
		return shard_refuse_ended(place, shard);
	if (shard->is_poller_over)
		return 0;
	ret = rpma_rt_poller_attach(shard->rt, shard->index);
	return ret == RPMA_RT_E_CLOSED ? shard_end_poller(shard) : ret;
}

/* Enters. Returns 0 if the calling thread is inside and owns the poller. A
 * refused thread has changed nothing. */
static int shard_enter(const struct rt_log_place *place,
		       struct rpma_rt_shard *shard, int timeout_ms)
{
	const void *const pointers[] = {shard};
	int ret = rt_refuse_null(place, "shard", pointers, sizeof(pointers));

	if (ret == 0)
		ret = rt_context_check_wait(place, shard->rt);
	if (ret)
		return ret;
	if (timeout_ms < -1)
		return rt_refuse(place, RPMA_E_INVAL,
				 "timeout_ms is %d, it may be -1 (without end) "
				 "or more",
				 timeout_ms);
	/* not inside for a moment: the owner would be refused in this moment.
	 * The attach refuses, or the owner has let the poller go meanwhile */
	if (shard_is_others(shard)) {
		ret = rpma_rt_poller_attach(shard->rt, shard->index);
		if (ret)
			return ret;
	}
	if (!shard_go_in(shard))
		return shard_refuse_busy(place, shard);
	ret = shard_own_poller(place, shard);
	if (ret)
		shard_leave(shard);
	else
		/* relaxed: see rt_shard_thread() */
		atomic_store_explicit(&shard->thread, rt_self_number(),
				      memory_order_relaxed);
	return ret;
}

/* Enters a shard that the calling thread ran last. Returns false if run_first()
 * has to find the reason. */
static inline bool shard_enter_own(struct rpma_rt_shard *shard, int timeout_ms)
{
	uint64_t number = rt_self_known_number();
	uint64_t nobody = 0;

	if (unlikely(shard == NULL || timeout_ms < -1 ||
		     rt_shard_thread(shard) != number || rt_self_is_poller() ||
		     rt_context_check(shard->rt)))
		return false;
	/* relaxed: the former thread is the calling thread */
	return likely(atomic_compare_exchange_strong_explicit(
		&shard->runner, &nobody, number, memory_order_relaxed,
		memory_order_relaxed));
}

/* Finishes a run after the first turn, which returned `ret`. Inside. */
__attribute__((noinline)) static int shard_end_run(struct rpma_rt_shard *shard,
						   int timeout_ms, int ret)
{
	if (ret == 0 && timeout_ms != 0)
		ret = shard_idle(shard, timeout_ms);
	else if (timeout_ms != 0)
		(void)shard_run_others(shard);
	shard_leave(shard);
	return ret;
}

/* Runs a shard for the first time on this thread. Not inlined: a loop that ran
 * the shard before does not come here. */
__attribute__((noinline)) static int run_first(const struct rt_log_place *place,
					       struct rpma_rt_shard *shard,
					       int timeout_ms)
{
	int ret = shard_enter(place, shard, timeout_ms);

	return ret ? ret
		   : shard_end_run(shard, timeout_ms, shard_run_turn(shard));
}

/* Runs a turn whose round is no usual one. Inside. Returns how much was done;
 * RT_TAKE_NO_ROUND: the thread does not own the poller. */
__attribute__((noinline)) static int run_round(struct rpma_rt_shard *shard)
{
	int done;

	if (unlikely(!rt_poller_enter_own(shard->poller)))
		return RT_TAKE_NO_ROUND;
	done = rt_round_run_entered(shard->poller, RT_SHARD_BATCH);
	rt_poller_leave_own(shard->poller);
	return done;
}

int rpma_rt_shard_run(struct rpma_rt_shard *shard, int timeout_ms)
{
	int found;
	int done;

	if (unlikely(!shard_enter_own(shard, timeout_ms)))
		return run_first(RT_LOG_HERE, shard, timeout_ms);
	if (shard->touched != 0)
		rt_shard_send_publish(shard);
	found = shard_run_straight(shard);
	done = found;
	if (unlikely(found == RT_TAKE_NO_ROUND))
		done = run_round(shard);
	if (unlikely(done == RT_TAKE_NO_ROUND)) {
		shard_leave(shard);
		return run_first(RT_LOG_HERE, shard, timeout_ms);
	}
	if (shard_has_any(shard, found))
		done = shard_end_turn(shard, done);
	if (timeout_ms != 0)
		return shard_end_run(shard, timeout_ms, done);
	shard_leave(shard);
	return done;
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
	/* the subtracted count is read first, so the difference is never
	 * negative */
	known.unanswered = rt_stat_read(&shard->counters.answered);
	known.unanswered =
		rt_stat_read(&shard->counters.requested) - known.unanswered;
	known.owed = rt_stat_read(&shard->counters.replied);
	known.owed = rt_stat_read(&shard->counters.asked) - known.owed;
#undef READ
	rt_stats_give(stats, size, &known, sizeof(known));
	return 0;
}
