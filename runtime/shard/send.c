/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * send.c -- posts, requests and answers: a function's messages are written into
 * the lane, and handed over at the turn's end. On the shard's thread.
 */

#include "shard/shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/stats.h"

/* ----------------------------------------------------------------- lane --- */

/*
 * The memory of a lane belongs to the set; the sender makes the lane, under the
 * lock of the set.
 */

/* Allocates a lane with room for `limit` messages that are no answers. NULL: no
 * memory. */
static struct rt_shard_lane *rt_shard_lane_new(uint32_t limit)
{
	struct rt_shard_lane *lane;
	/* answers have room of their own beside the room of all other
	 * messages */
	size_t size =
		sizeof(*lane) + 2 * (size_t)limit * sizeof(lane->slots[0]);

	lane = aligned_alloc(RT_APART,
			     (size + RT_APART - 1) / RT_APART * RT_APART);
	if (lane == NULL)
		return NULL;
	memset(lane, 0, size);
	lane->limit = limit;
	return lane;
}

/* ----------------------------------------------------------------- ring --- */

/*
 * How a shard wakes another shard: by its eventfd, once for each sleep. And
 * which thread may speak for a shard.
 */

void rt_shard_ring_wake(const struct rpma_rt_shard *shard)
{
	RT_NOT_CANCELLED;
	const uint64_t one = 1;
	ssize_t ret;

	/* a full counter (EAGAIN) is readable too, so nothing is lost */
	ret = write(shard->eventfd, &one, sizeof(one));
	(void)ret;
}

/* Wakes the other shard, whose `asleep` was read before, once for each value of
 * `asleep`. */
static void send_ring_asleep(struct rpma_rt_shard *shard, uint32_t other,
			     uint32_t asleep)
{
	struct rt_shard_out *out = &shard->out[other];

	if (asleep == out->rung)
		return;
	out->rung = asleep;
	rt_shard_ring_wake(&shard->set->shards[other]);
	rt_stat_add(&shard->counters.rings, 1);
}

static uint32_t send_asleep_of(const struct rpma_rt_shard *shard,
			       uint32_t other)
{
	/* acquire: pairs with the release in shard_count_asleep(), run.c:
	 * `wants` was stored before; the caller's fence orders the look behind
	 * everything handed over [SHARD-4] */
	return atomic_load_explicit(&shard->set->shards[other].asleep,
				    memory_order_acquire);
}

void rt_shard_ring(struct rpma_rt_shard *shard, uint32_t other)
{
	uint32_t asleep = send_asleep_of(shard, other);

	if (unlikely((asleep & 1) != 0))
		send_ring_asleep(shard, other, asleep);
}

/* Wakes the other shard if that shard sleeps, and wants room in its lane to
 * this shard. */
static void send_ring_for_room(struct rpma_rt_shard *shard, uint32_t other)
{
	uint32_t asleep = send_asleep_of(shard, other);
	const struct rt_shard_lane *lane;

	if (likely((asleep & 1) == 0))
		return;
	lane = shard->set->lanes[other * shard->count + shard->index];
	/* relaxed: the acquire of `asleep` makes `wants` visible */
	if (atomic_load_explicit(&lane->wants, memory_order_relaxed))
		send_ring_asleep(shard, other, asleep);
}

int rt_shard_refuse_thread(const struct rt_log_place *place,
			   const struct rpma_rt_shard *shard)
{
	int ret = rt_context_check_here(place, shard->rt);

	if (ret || rt_shard_thread(shard) == 0 ||
	    rt_shard_thread(shard) == rt_self_number())
		return ret;
	return rt_refuse(place, RPMA_E_INVAL,
			 "shard %u is run by another thread: only that one "
			 "sends in its name and sets its timers",
			 shard->index);
}

/* ----------------------------------------------------------------- send --- */

/* ----------------------------------------------------------- lanes --- */

/* REQUIRES: the set's lock */
static struct rt_shard_lane *send_make(struct rpma_rt_shards *set,
				       uint32_t from, uint32_t to)
{
	struct rt_shard_lane **lane = &set->lanes[from * set->count + to];

	if (*lane != NULL)
		return *lane;
	*lane = rt_shard_lane_new(set->lane_size);
	if (*lane != NULL)
		/* release [SHARD-1]: pairs with the acquire in
		 * shard_look_for_lanes(): the lane */
		atomic_fetch_or_explicit(&set->shards[to].met,
					 rt_shard_bit(from),
					 memory_order_release);
	return *lane;
}

static void send_open_out(struct rpma_rt_shard *shard, struct rt_shard_out *out,
			  struct rt_shard_lane *lane)
{
	out->lane = lane;
	out->place = lane->staged;
	if (rt_shard_phase_of(shard) == RT_SHARD_RUNS)
		out->room = lane->limit;
	rt_shard_lane_set_free(out);
}

/* Opens the lane to the shard and, for requests, makes the lane of the answers.
 * ERRORS: RPMA_E_NOMEM */
static int send_open_lanes(struct rpma_rt_shard *shard, uint32_t to, bool both)
{
	struct rt_shard_out *out = &shard->out[to];
	struct rpma_rt_shards *set = shard->set;
	struct rt_shard_lane *back = NULL;
	struct rt_shard_lane *lane;

	pthread_mutex_lock(&set->lock);
	lane = send_make(set, shard->index, to);
	if (both)
		back = send_make(set, to, shard->index);
	pthread_mutex_unlock(&set->lock);
	if (lane == NULL || (both && back == NULL))
		return RPMA_E_NOMEM;
	if (out->lane == NULL)
		send_open_out(shard, out, lane);
	if (both && !out->is_paired) {
		out->is_paired = true;
		out->credits = set->lane_size;
	}
	return 0;
}

/* --------------------------------------------------------- sending --- */

/* Returns the word behind the words of a message. */
static inline uint64_t send_place_of(const struct rpma_rt_shard *shard,
				     uint32_t code,
				     enum rpma_rt_shard_kind kind)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return code | shard->places[kind];
#else
	return (uint64_t)code << 32 | shard->places[kind];
#endif
}

/* least number of messages in a batch for which fetching lines pays */
#define FETCHED 8

/* Fetches the lines to which the next batch will be written, if that batch has
 * as many messages: the receiver has the lines, and the stores of a batch, and
 * the fence, would wait for the lines. */
static void send_fetch(const struct rt_shard_out *out, uint32_t count)
{
	const struct rt_shard_lane *lane = out->lane;
	uint32_t size = 2 * lane->limit;
	uint32_t at = out->published;
	uint32_t room = out->head_seen + size - at;
	uint32_t end = at + (count < room ? count : room);

	for (; (int32_t)(end - at) > 0; at += 2)
		rt_fetch_to_write(&lane->slots[at & (size - 1)]);
}

/* Copies messages to slots that follow one another. */
static inline void shard_send_copy(struct rpma_rt_shard_message *slots,
				   const struct rpma_rt_shard_message *from,
				   uint32_t count)
{
	rt_two_words *to = (rt_two_words *)slots;
	const rt_two_words *words = (const rt_two_words *)from;
	const rt_two_words *end = words + 2 * (size_t)count;

	for (; words != end; words += 2, to += 2) {
		to[0] = words[0];
		to[1] = words[1];
		/* keeps the compiler from turning the loop into a call of
		 * memcpy() */
		__asm__ __volatile__("" ::: "memory");
	}
}

/*
 * Copies the staged messages into the slots and publishes the messages; returns
 * their number. Sender. All copies are made at once: the receiver has the lines
 * of the slots, and the processor fetches several lines at a time as long as
 * little else is written between.
 */
static inline uint32_t send_copy_staged(struct rt_shard_out *out)
{
	struct rt_shard_lane *lane = out->lane;
	uint32_t count = rt_shard_lane_staged(out);
	uint32_t size = 2 * lane->limit;
	uint32_t at = out->published & (size - 1);
	uint32_t straight = size - at;

	/* nothing is stored without messages, because the receiver has the
	 * line */
	if (count == 0)
		return 0;
	if (straight > count)
		straight = count;
	shard_send_copy(&lane->slots[at], lane->staged, straight);
	shard_send_copy(lane->slots, &lane->staged[straight], count - straight);
	out->published += count;
	out->place = lane->staged;
	rt_shard_lane_set_free(out);
	/* release [SHARD-2]: pairs with the acquire in rt_shard_lane_tail():
	 * the messages */
	atomic_store_explicit(&lane->tail, out->published,
			      memory_order_release);
	if (count >= FETCHED)
		send_fetch(out, count);
	return count;
}

static inline void send_publish(struct rpma_rt_shard *shard,
				struct rt_shard_out *out)
{
	rt_stat_add(&shard->counters.sent, send_copy_staged(out));
}

static inline void send_put(struct rpma_rt_shard *shard, uint32_t to,
			    const struct rpma_rt_shard_message *message,
			    uint64_t context, enum rpma_rt_shard_kind kind)
{
	struct rt_shard_out *out = &shard->out[to];

	rt_shard_lane_stage(out, message, context,
			    send_place_of(shard, message->code, kind));
	shard->touched |= out->bit;
}

/* Takes a credit for a request. */
static inline void shard_send_ask(struct rpma_rt_shard *shard, uint32_t to)
{
	shard->out[to].unanswered++;
	rt_stat_add(&shard->counters.requested, 1);
}

/* Refuses a message for want of room, as far as the sender knows. want: what is
 * missing. */
static int send_refuse(struct rpma_rt_shard *shard, uint32_t to,
		       enum rt_shard_want want)
{
	struct rt_shard_out *out = &shard->out[to];

	out->wants |= (uint8_t)want;
	shard->wants |= rt_shard_bit(to);
	if (want == RT_SHARD_WANT_ROOM)
		/* relaxed: the release of `asleep`, stored later, publishes the
		 * wish */
		atomic_store_explicit(&out->lane->wants, true,
				      memory_order_relaxed);
	rt_stat_add(&shard->counters.refused, 1);
	return RPMA_E_AGAIN;
}

/* Finds out why a message found no room, and makes the lanes if needed. Returns
 * 0 if there is room, otherwise the error. */
__attribute__((noinline)) static int
send_find_room(struct rpma_rt_shard *shard, uint32_t to, bool is_request)
{
	struct rt_shard_out *out = &shard->out[to];
	int ret;

	if (rt_shard_phase_of(shard) != RT_SHARD_RUNS)
		return RT_REFUSE(RPMA_RT_E_CLOSED,
				 "the shards are stopped: shard %u sends no "
				 "message to shard %u",
				 shard->index, to);
	if (out->lane == NULL || (is_request && !out->is_paired)) {
		ret = send_open_lanes(shard, to, is_request);
		if (ret)
			return RT_REFUSED(ret, "no message is sent");
	}
	if (rt_shard_lane_is_full(out))
		send_publish(shard, out);
	if (!rt_shard_lane_has_room(out))
		rt_shard_lane_look(out);
	if (!rt_shard_lane_has_room(out))
		return send_refuse(shard, to, RT_SHARD_WANT_ROOM);
	if (is_request && out->unanswered >= out->credits)
		return send_refuse(shard, to, RT_SHARD_WANT_CREDIT);
	return 0;
}

/* Checks that the shard's thread calls, and that the other shard exists. */
static inline int send_check(const struct rt_log_place *place,
			     const struct rpma_rt_shard *shard, uint32_t to)
{
	int ret = rt_shard_refuse_thread(place, shard);

	if (ret)
		return ret;
	if (to >= shard->count)
		return rt_refuse(place, RPMA_E_INVAL,
				 "the message is to shard %u, there are 0..%u",
				 to, shard->count - 1);
	return 0;
}

/* Returns whether send_check() will find nothing wrong. A function that asks
 * this question, and leaves all other cases to another function, saves no
 * registers. */
static inline bool send_is_right(const struct rpma_rt_shard *shard, uint32_t to)
{
	return shard != NULL &&
	       rt_shard_thread(shard) == rt_self_known_number() &&
	       rt_context_check(shard->rt) == 0 && to < shard->count;
}

/* Sends a post or a request that needs other steps first, or finds out why the
 * message is refused. */
__attribute__((noinline)) static int
send_slowly(const struct rt_log_place *place, struct rpma_rt_shard *shard,
	    uint32_t to, const struct rpma_rt_shard_message *message,
	    enum rpma_rt_shard_kind kind)
{
	const void *const pointers[] = {shard, message};
	int ret = rt_refuse_null(place, "shard, message", pointers,
				 sizeof(pointers));

	if (ret == 0)
		ret = send_check(place, shard, to);
	if (ret == 0)
		ret = send_find_room(shard, to, kind == RPMA_RT_SHARD_REQUEST);
	if (ret)
		return ret;
	if (kind == RPMA_RT_SHARD_REQUEST)
		shard_send_ask(shard, to);
	send_put(shard, to, message, message->context, kind);
	return 0;
}

int rpma_rt_shard_post(struct rpma_rt_shard *shard, uint32_t to,
		       const struct rpma_rt_shard_message *message)
{
	if (unlikely(!send_is_right(shard, to) || message == NULL ||
		     !rt_shard_lane_is_free(&shard->out[to])))
		return send_slowly(RT_LOG_HERE, shard, to, message,
				   RPMA_RT_SHARD_POST);
	send_put(shard, to, message, message->context, RPMA_RT_SHARD_POST);
	return 0;
}

int rpma_rt_shard_request(struct rpma_rt_shard *shard, uint32_t to,
			  const struct rpma_rt_shard_message *message)
{
	if (unlikely(!send_is_right(shard, to) || message == NULL ||
		     !rt_shard_lane_is_free(&shard->out[to]) ||
		     shard->out[to].unanswered >= shard->out[to].credits))
		return send_slowly(RT_LOG_HERE, shard, to, message,
				   RPMA_RT_SHARD_REQUEST);
	shard_send_ask(shard, to);
	send_put(shard, to, message, message->context, RPMA_RT_SHARD_REQUEST);
	return 0;
}

int rpma_rt_shard_answer(struct rpma_rt_shard *shard,
			 const struct rpma_rt_shard_message *request,
			 const struct rpma_rt_shard_message *answer)
{
	struct rt_shard_out *out;
	uint32_t to;
	int ret = RT_REFUSE_NULL(shard, request, answer);

	if (ret)
		return ret;
	to = request->from;
	if (unlikely(!send_is_right(shard, to))) {
		ret = send_check(RT_LOG_HERE, shard, to);
		if (ret)
			return ret;
	}
	out = &shard->out[to];
	if (unlikely(request->kind != RPMA_RT_SHARD_REQUEST || out->owed == 0))
		return RT_REFUSE(RPMA_E_INVAL,
				 "shard %u owes no answer to shard %u: it is "
				 "no request, or was answered before",
				 shard->index, to);
	if (unlikely(rt_shard_phase_of(shard) >= RT_SHARD_DRAINED))
		return RT_REFUSE(RPMA_RT_E_CLOSED,
				 "the shards are stopped: shard %u answers too "
				 "late",
				 shard->index);
	if (unlikely(out->lane == NULL))
		/* cannot fail: the request made the lane */
		send_open_lanes(shard, to, false);
	/* looked at also in a shard that sends only answers: the known head is
	 * never older than the ring is long */
	if (unlikely(rt_shard_lane_used(out) >= 2 * out->lane->limit))
		rt_shard_lane_look(out);
	/* reserved by the request */
	assert(rt_shard_lane_used(out) < 2 * out->lane->limit);
	if (unlikely(rt_shard_lane_is_full(out)))
		send_publish(shard, out);
	out->owed--;
	rt_stat_add(&shard->counters.replied, 1);
	send_put(shard, to, answer, request->context, RPMA_RT_SHARD_ANSWER);
	return 0;
}

/* ------------------------------------------------- at a turn's end --- */

/* Takes the lowest bit out of a word that is not 0; returns the index of the
 * bit. */
static inline uint32_t send_take_bit(uint64_t *bits)
{
	uint32_t index = (uint32_t)__builtin_ctzll(*bits);

	*bits &= *bits - 1;
	return index;
}

void rt_shard_send_publish(struct rpma_rt_shard *shard)
{
	uint64_t touched = shard->touched;

	shard->published |= touched;
	shard->touched = 0;
	while (touched != 0)
		send_publish(shard, &shard->out[send_take_bit(&touched)]);
}

void rt_shard_send_hand_over(struct rpma_rt_shard *shard)
{
	uint64_t published;
	uint64_t drained;

	rt_shard_send_publish(shard);
	published = shard->published;
	drained = shard->drained & ~published;
	if ((published | drained) == 0)
		return;
	/* [SHARD-4]: tails and heads are stored before the look at `asleep`;
	 * without the fence both this shard and the sleeper might read old
	 * values */
	rt_fence_dekker();
	while (published != 0)
		rt_shard_ring(shard, send_take_bit(&published));
	while (drained != 0)
		send_ring_for_room(shard, send_take_bit(&drained));
	shard->published = 0;
	shard->drained = 0;
}

/* --------------------------------------------------------- refused --- */

/* Returns whether the room or credit is there again for which the shard was
 * refused. */
static bool send_is_eased(struct rt_shard_out *out)
{
	if (out->wants & RT_SHARD_WANT_ROOM) {
		rt_shard_lane_look(out);
		if (!rt_shard_lane_is_eased(out))
			return false;
	}
	return !(out->wants & RT_SHARD_WANT_CREDIT) ||
	       out->unanswered <= out->credits / 2;
}

bool rt_shard_send_is_eased(struct rpma_rt_shard *shard)
{
	uint64_t bits = shard->wants;

	while (bits != 0) {
		if (send_is_eased(&shard->out[send_take_bit(&bits)]))
			return true;
	}
	return false;
}

int rt_shard_send_tell(struct rpma_rt_shard *shard)
{
	struct rpma_rt_shard_message message = {
		.kind = RPMA_RT_SHARD_WRITABLE,
	};
	uint64_t bits = shard->wants;
	int told = 0;

	while (bits != 0) {
		RT_NOT_CANCELLED;
		uint32_t to = send_take_bit(&bits);
		struct rt_shard_out *out = &shard->out[to];

		if (!send_is_eased(out))
			continue;
		/* relaxed: a needless ring does no harm */
		if (out->wants & RT_SHARD_WANT_ROOM)
			atomic_store_explicit(&out->lane->wants, false,
					      memory_order_relaxed);
		out->wants = 0;
		shard->wants &= ~rt_shard_bit(to);
		message.from = (uint16_t)to;
		shard->set->message_fn(shard, &message, shard->arg);
		told++;
	}
	return told;
}

void rt_shard_send_close(struct rpma_rt_shard *shard)
{
	uint32_t i;

	for (i = 0; i < shard->count; i++) {
		shard->out[i].room = 0;
		shard->out[i].end = NULL;
		shard->out[i].wants = 0;
	}
	shard->wants = 0;
}
