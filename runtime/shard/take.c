/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * take.c -- what comes to a shard: each message is read where it lies, by the
 * shard's function; then the room goes back to the sender. The shard's thread.
 */

#include "shard/shard.h"

#include "base/cancel.h"
#include "base/stats.h"

/* Lanes that were made since the last look. */
__attribute__((noinline)) static void meet(struct rpma_rt_shard *shard,
					   uint64_t met)
{
	struct rpma_rt_shards *set = shard->set;
	struct rt_shard_lane *lane;
	uint32_t from;

	for (from = 0; from < shard->count; from++) {
		if (!(met & ~shard->known & rt_shard_bit(from)))
			continue;
		lane = set->lanes[from * set->count + shard->index];
		shard->out[from].back = lane;
		shard->in[shard->in_count++] = (struct rt_shard_in){
			.lane = lane,
			.from = from,
		};
	}
	shard->known = met;
}

static inline void look_for_lanes(struct rpma_rt_shard *shard)
{
	/* acquire [SHARD-1]: the lane behind a bit */
	uint64_t met = atomic_load_explicit(&shard->met, memory_order_acquire);

	if (unlikely(met != shard->known))
		meet(shard, met);
}

/* Up to there; answers: how many of them were. */
static void call(struct rpma_rt_shard *shard, const struct rt_shard_in *in,
		 uint32_t end, uint32_t *answers)
{
	RT_NOT_CANCELLED;
	rpma_rt_shard_message_fn *message_fn = shard->set->message_fn;
	const struct rt_shard_lane *lane = in->lane;
	uint32_t mask = 2 * lane->limit - 1;
	const struct rpma_rt_shard_message *message;
	uint32_t at;

	for (at = in->head; at != end; at++) {
		message = &lane->slots[at & mask];
		if (message->kind == RPMA_RT_SHARD_REQUEST) {
			shard->out[in->from].owed++;
			rt_stat_add(&shard->counters.asked, 1);
		} else if (message->kind == RPMA_RT_SHARD_ANSWER) {
			(*answers)++;
		}
		message_fn(shard, message, shard->arg);
	}
}

static uint32_t take_lane(struct rpma_rt_shard *shard, struct rt_shard_in *in)
{
	uint32_t tail = rt_shard_lane_tail(in);
	uint32_t count = tail - in->head;
	uint32_t answers = 0;

	if (count == 0)
		return 0;
	if (count > RT_SHARD_BATCH) {
		count = RT_SHARD_BATCH;
		tail = in->head + count;
	}
	call(shard, in, tail, &answers);
	rt_shard_lane_advance(in, tail);
	/* behind head: a request sent for this credit is answered into the room
	 * that we have just given back */
	shard->out[in->from].unanswered -= answers;
	if (answers > 0)
		rt_stat_add(&shard->counters.answered, answers);
	shard->drained |= rt_shard_bit(in->from);
	return count;
}

int rt_shard_take(struct rpma_rt_shard *shard)
{
	uint32_t total = 0;
	uint32_t i;

	look_for_lanes(shard);
	for (i = 0; i < shard->in_count; i++)
		total += take_lane(shard, &shard->in[i]);
	if (total > 0)
		rt_stat_add(&shard->counters.messages, total);
	return (int)total;
}

bool rt_shard_take_has_some(struct rpma_rt_shard *shard)
{
	uint32_t i;

	look_for_lanes(shard);
	for (i = 0; i < shard->in_count; i++) {
		if (rt_shard_lane_tail(&shard->in[i]) != shard->in[i].head)
			return true;
	}
	return false;
}
