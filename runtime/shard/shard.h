/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard.h -- a shard and the set that it is one of, and what the files of this
 * room have for one another. The memory of a shard is written by the thread
 * that runs it, but for the lines that say otherwise. doc/protocols/shard.md.
 */

#ifndef RT_SHARD_SHARD_H
#define RT_SHARD_SHARD_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/heap.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/order.h"
#include "base/self.h"
#include "shard/lane.h"

/* in a turn, at most: completions of a round, messages of a lane, items, timers
 */
#define RT_SHARD_BATCH 64

/* how far a shard has got in a stop */
enum rt_shard_phase {
	RT_SHARD_RUNS = 0,
	RT_SHARD_QUIET = 1,   /* it sends nothing by itself */
	RT_SHARD_DRAINED = 2, /* no post and no request comes to it */
	RT_SHARD_ENDED = 3    /* nothing does */
};

struct rt_shard_counters {
	_Atomic uint64_t items;
	_Atomic uint64_t messages;
	_Atomic uint64_t sent;
	_Atomic uint64_t refused;
	_Atomic uint64_t timers;
	_Atomic uint64_t sleeps;
	_Atomic uint64_t rings;
	_Atomic uint64_t answered;   /* answers that came to its requests */
	_Atomic uint64_t requested;  /* requests that it sent */
	_Atomic uint64_t asked;	     /* requests that came */
	_Atomic uint64_t replied;    /* answers that it sent */
	_Atomic uint64_t timers_set; /* now */
};

struct rpma_rt_shard {
	/* immutable after new */
	alignas(RT_APART) struct rpma_rt_shards *set;
	struct rpma_rt *rt;
	struct rt_owned *owned;	     /* the owner of the shard's poller */
	struct rpma_rt_queue *queue; /* NULL: deleted */
	void *arg;
	uint32_t index;
	uint32_t count; /* of shards */
	int epfd;	/* of the next, the queue's fd and the poller's */
	int eventfd;

	/* what runs it, see enter() in run.c */
	alignas(RT_APART) _Atomic uint64_t runner; /* inside; 0: none */
	uint64_t thread; /* that ran it last, by its number; 0: none */

	/* turns */
	uint64_t touched; /* bits: lanes with messages to hand over */
	uint64_t drained; /* bits: senders of the messages taken */
	uint64_t wants;	  /* bits: lanes in which it was refused */
	uint64_t known;	  /* bits of met that in[] has */
	uint32_t in_count;
	bool is_rung;	     /* the eventfd may have been written */
	bool is_poller_over; /* the runtime is stopped */
	bool is_queue_over;
	/* the least phase of all others, seen before the turn's look at the
	 * lanes */
	enum rt_shard_phase others;
	struct rt_heap timers;
	struct rt_shard_counters counters;
	struct rt_shard_in in[RPMA_RT_MAX_POLLERS];
	struct rt_shard_out out[RPMA_RT_MAX_POLLERS];

	/* written by the shard, read by all */
	alignas(RT_APART) _Atomic uint32_t asleep; /* odd: it is, or may be */
	_Atomic uint32_t phase;			   /* enum rt_shard_phase */

	/* written by senders under the set's lock, once each */
	alignas(RT_APART) _Atomic uint64_t met; /* bits: lanes to this one */
};

struct rpma_rt_shards {
	/* immutable after new */
	struct rpma_rt *rt;
	uint32_t count;
	uint32_t lane_size;
	uint64_t spin_ns;
	rpma_rt_shard_item_fn *item_fn;
	rpma_rt_shard_message_fn *message_fn;
	struct rpma_rt_queue **queues;
	struct rpma_rt_shard *shards;

	alignas(RT_APART) _Atomic bool stopping; /* set once */

	/* in the runtime's list, for its dump */
	struct cds_list_head listed;

	/* for the lanes, each made once: by from * count + to; NULL: not yet */
	alignas(RT_APART) pthread_mutex_t lock;
	struct rt_shard_lane **lanes;
};

static inline uint64_t rt_shard_bit(uint32_t index)
{
	return (uint64_t)1 << index;
}

static inline bool rt_shard_is_stopping(const struct rpma_rt_shards *set)
{
	/* acquire: pairs with the release in rt_shard_end_begin() */
	return atomic_load_explicit(&set->stopping, memory_order_acquire);
}

static inline enum rt_shard_phase
rt_shard_phase_of(const struct rpma_rt_shard *shard)
{
	/* acquire [SHARD-5]: what it sent before */
	return (enum rt_shard_phase)atomic_load_explicit(&shard->phase,
							 memory_order_acquire);
}

/* May the calling thread make this call of the shard? Before its first run any
 * may. ERRORS, logged: RPMA_E_INVAL, RPMA_RT_E_FORKED */
int rt_shard_refuse_thread(const struct rt_log_place *place,
			   const struct rpma_rt_shard *shard);

/* ------------------------------------------------------- in a turn --- */

/* send.c: publishes what was sent, and wakes those that sleep on it. */
void rt_shard_send_hand_over(struct rpma_rt_shard *shard);
/* Tells the shard's function where room came back; how often. */
int rt_shard_send_tell(struct rpma_rt_shard *shard);
/* Is there any such room? */
bool rt_shard_send_is_eased(struct rpma_rt_shard *shard);
/* No posts and requests any more. */
void rt_shard_send_close(struct rpma_rt_shard *shard);

/* take.c: calls the functions of messages; how many. */
int rt_shard_take(struct rpma_rt_shard *shard);
/* Are there any? */
bool rt_shard_take_has_some(struct rpma_rt_shard *shard);

/* timer.c: calls those that are due; how many. */
int rt_shard_timer_call(struct rpma_rt_shard *shard);
/* When the first is due; UINT64_MAX: there is none. */
uint64_t rt_shard_timer_next(const struct rpma_rt_shard *shard);

/* The shard goes: its timers are set nowhere, and none is called. */
void rt_shard_timer_end(struct rpma_rt_shard *shard);

/* end.c: what a stop is due for, behind the turn's look at the lanes, which
 * found so many messages. True: the shard has ended. */
bool rt_shard_end_step(struct rpma_rt_shard *shard, int messages);
/* Would a turn bring the stop on? */
bool rt_shard_end_is_due(const struct rpma_rt_shard *shard);
/* The set stops; any thread. */
void rt_shard_end_begin(struct rpma_rt_shards *set);

/* --------------------------------------------------------- sleep.c --- */

int rt_shard_sleep_init(struct rpma_rt_shard *shard);
void rt_shard_sleep_fini(struct rpma_rt_shard *shard);
/* Sleeps until there is something, or that time of the monotonic clock, or for
 * no reason. 0; 1: the queue said that there is something, or was woken; or an
 * error of the calls that arm. */
int rt_shard_sleep(struct rpma_rt_shard *shard, uint64_t until_ns);

/* ---------------------------------------------------------- ring.c --- */

/* Behind the caller's fence: wakes the other if it sleeps and was not rung
 * for that; wanted: only if it wants room in that lane of its own, NULL: in any
 * case. */
void rt_shard_ring(struct rpma_rt_shard *shard, uint32_t other,
		   const struct rt_shard_lane *wanted);
/* Writes the eventfd. */
void rt_shard_ring_wake(const struct rpma_rt_shard *shard);

#endif /* RT_SHARD_SHARD_H */
