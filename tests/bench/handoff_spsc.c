/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A bare ring for each destination, single producer and single consumer: each
 * side looks at the index of the other only where the own copy of the index is
 * used up, and nothing is fenced. A completion alone is put together in the
 * ring; several are copied there, which is faster: wide stores are fewer.
 */

#include "handoff.h"

#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/order.h"

#define SLOTS (2 * IN_FLIGHT)

struct ring {
	/* the producer's own, apart from tail, which the consumer polls */
	_Alignas(RT_APART) uint32_t next; /* the value of tail */
	uint32_t head_seen;
	_Alignas(RT_APART) uint32_t tail_seen; /* the consumer's own */
	_Alignas(RT_APART) _Atomic uint32_t tail;
	_Alignas(RT_APART) _Atomic uint32_t head;
	_Alignas(RT_APART) struct rpma_rt_completion slots[SLOTS];
};

struct rings {
	struct ring rings[MAX_FANOUT];
	struct handoff_group groups[MAX_FANOUT];
};

static void init(struct handoff *handoff)
{
	handoff->state = aligned_alloc(RT_APART, sizeof(struct rings));
	if (handoff->state == NULL)
		bench_fail("no memory");
	memset(handoff->state, 0, sizeof(struct rings));
}

static inline void need_room(struct ring *ring, uint32_t count)
{
	if (ring->next + count - ring->head_seen <= SLOTS)
		return;
	/* acquire: the consumer has read the slots */
	ring->head_seen =
		atomic_load_explicit(&ring->head, memory_order_acquire);
	if (ring->next + count - ring->head_seen > SLOTS)
		bench_fail("a ring is full");
}

static inline void publish(struct ring *ring, uint32_t count)
{
	ring->next += count;
	/* release: the completions */
	atomic_store_explicit(&ring->tail, ring->next, memory_order_release);
}

static inline void copy_in(struct ring *ring, const struct handoff_group *group)
{
	uint32_t at = ring->next % SLOTS;
	uint32_t first = SLOTS - at < group->count ? SLOTS - at : group->count;

	need_room(ring, group->count);
	memcpy(&ring->slots[at], group->items, first * sizeof(group->items[0]));
	memcpy(ring->slots, &group->items[first],
	       (group->count - first) * sizeof(group->items[0]));
	publish(ring, group->count);
}

static void send_one(struct handoff *handoff, const struct ibv_wc *wc)
{
	struct rings *all = handoff->state;
	struct handoff_route *route = handoff_look_up(handoff, wc);
	struct ring *ring;

	if (route == NULL)
		return;
	ring = &all->rings[route->destination];
	need_room(ring, 1);
	handoff_convert(route, wc, &ring->slots[ring->next % SLOTS]);
	publish(ring, 1);
}

static void send_all(struct handoff *handoff, const struct ibv_wc *wcs,
		     uint32_t count)
{
	struct rings *all = handoff->state;
	uint32_t i;

	if (count == 1) {
		send_one(handoff, wcs);
		return;
	}
	handoff_group(handoff, all->groups, wcs, count);
	for (i = 0; i < handoff->fanout; i++) {
		if (all->groups[i].count == 0)
			continue;
		copy_in(&all->rings[i], &all->groups[i]);
		all->groups[i].count = 0;
	}
}

static uint32_t take(struct handoff *handoff, uint32_t destination,
		     uint64_t *sum)
{
	struct rings *all = handoff->state;
	struct ring *ring = &all->rings[destination];
	struct rpma_rt_completion cmpl[BATCH];
	/* relaxed: this thread writes it */
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t count;
	uint32_t i;

	if (ring->tail_seen == head)
		/* acquire: the completions */
		ring->tail_seen =
			atomic_load_explicit(&ring->tail, memory_order_acquire);
	count = ring->tail_seen - head;
	if (count == 0)
		return 0;
	if (count > BATCH)
		count = BATCH;
	for (i = 0; i < count; i++)
		cmpl[i] = ring->slots[(head + i) % SLOTS];
	/* release: the slots are read */
	atomic_store_explicit(&ring->head, head + count, memory_order_release);
	*sum += handoff_handle_all(cmpl, count);
	return count;
}

const struct handoff_way handoff_spsc = {
	.name = "spsc",
	.init = init,
	.send = send_all,
	.take = take,
};
