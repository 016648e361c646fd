/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard.h -- a shard and the set that it is one of, and what the files of this
 * room have for one another. The memory of a shard is written by the thread
 * that runs it, but for the lines that say otherwise. doc/protocols/shard.md.
 */

#ifndef RT_SHARD_SHARD_H
#define RT_SHARD_SHARD_H

#include <assert.h>
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

/* ----------------------------------------------------------------- lane --- */

/*
 * A lane: a ring of messages from one shard to another, single producer, single
 * consumer. And the two ends of it, each in the memory of the shard whose end
 * it is. doc/protocols/shard.md.
 */

/* messages that wait for the turn's end, a lane; a power of two */
#define RT_SHARD_STAGED 32

struct rt_shard_lane {
	uint32_t limit; /* immutable; the ring has twice as many */
	/* the sender's */
	alignas(RT_APART) _Atomic uint32_t tail;
	/* it was refused, and waits for room; a line of its own, which the
	 * receiver reads only when the sender sleeps */
	alignas(RT_APART) _Atomic bool wants;
	/* the receiver's */
	alignas(RT_APART) _Atomic uint32_t head;
	/* the sender's own: messages that are not in their slots yet */
	alignas(RT_APART) struct rpma_rt_shard_message staged[RT_SHARD_STAGED];
	/* the sender's up to tail */
	alignas(RT_APART) struct rpma_rt_shard_message slots[];
};
_Static_assert(sizeof(struct rpma_rt_shard_message) == 32, "two a line");

/* what a sender was refused for: bits */
enum rt_shard_want { RT_SHARD_WANT_ROOM = 1, RT_SHARD_WANT_CREDIT = 2 };

/* the sender's end, in its memory */
struct rt_shard_out {
	struct rt_shard_lane *lane; /* NULL: not made */
	/* where the next message is staged; messages before end, but for
	 * answers, are staged without a look. Answers may be beyond end */
	struct rpma_rt_shard_message *place;
	const struct rpma_rt_shard_message *end;
	uint64_t bit;	    /* immutable: that of the receiver */
	uint32_t room;	    /* the lane's limit; 0: not made, or stopped */
	uint32_t published; /* tail */
	uint32_t head_seen;
	uint32_t credits;    /* requests that may be sent; 0: see paired */
	uint32_t unanswered; /* requests sent whose credits are not back */
	uint32_t owed;	     /* requests of the other, to be answered */
	uint32_t rung;	     /* the last sleep of the other that was rung */
	uint8_t wants;	     /* bits of enum rt_shard_want */
	bool is_paired;	     /* the lane of the answers is made */
};
static_assert(sizeof(struct rt_shard_out) == RT_CACHE_LINE,
	      "one is found by a shift");

/* the receiver's end, in its memory */
struct rt_shard_in {
	struct rt_shard_lane *lane;
	uint32_t head;
	uint32_t from;
};

struct rpma_rt_shard;
struct rpma_rt_shards;

/* Sender: messages that wait for the turn's end. */
static inline uint32_t rt_shard_lane_staged(const struct rt_shard_out *out)
{
	return (uint32_t)(out->place - out->lane->staged);
}

/* Sender: where the next message goes in the lane. */
static inline uint32_t rt_shard_lane_next(const struct rt_shard_out *out)
{
	return out->published + rt_shard_lane_staged(out);
}

/* Sender: may one more message that is no answer be staged at once? */
static inline bool rt_shard_lane_is_free(const struct rt_shard_out *out)
{
	return out->place < out->end;
}

/* Sender: messages in the lane, by what it knows. */
static inline uint32_t rt_shard_lane_used(const struct rt_shard_out *out)
{
	return rt_shard_lane_next(out) - out->head_seen;
}

/* Sender: has the lane room for one, by what it knows? */
static inline bool rt_shard_lane_has_room(const struct rt_shard_out *out)
{
	return rt_shard_lane_used(out) < out->room;
}

/* Sender: after a change of room, head_seen or published. */
static inline void rt_shard_lane_set_free(struct rt_shard_out *out)
{
	uint32_t used = out->published - out->head_seen;
	uint32_t free = used < out->room ? out->room - used : 0;

	out->end = &out->lane->staged[free < RT_SHARD_STAGED ? free
							     : RT_SHARD_STAGED];
}

/* Sender: looks at the room again. */
static inline void rt_shard_lane_look(struct rt_shard_out *out)
{
	/* acquire [SHARD-3]: the receiver is through with the slots */
	out->head_seen =
		atomic_load_explicit(&out->lane->head, memory_order_acquire);
	rt_shard_lane_set_free(out);
}

/* Sender: is enough room back for one that was refused? */
static inline bool rt_shard_lane_is_eased(const struct rt_shard_out *out)
{
	return rt_shard_lane_used(out) <= out->lane->limit / 2;
}

/* Sender: are as many staged as may be? */
static inline bool rt_shard_lane_is_full(const struct rt_shard_out *out)
{
	return rt_shard_lane_staged(out) == RT_SHARD_STAGED;
}

/*
 * Sender: writes a message where it is staged; place: its code, its sender, its
 * kind. What the caller has just written is read in words; a wide load would
 * wait for it.
 */
static inline void
rt_shard_lane_stage(struct rt_shard_out *out,
		    const struct rpma_rt_shard_message *message,
		    uint64_t context, uint64_t place)
{
	const volatile uint64_t *words = message->words;
	rt_two_words *to = (rt_two_words *)out->place;

	to[0] = (rt_two_words){context, words[0]};
	to[1] = (rt_two_words){words[1], place};
	out->place++;
}

/* Receiver: up to where there are messages. */
static inline uint32_t rt_shard_lane_tail(const struct rt_shard_in *in)
{
	/* acquire [SHARD-2]: the messages */
	return atomic_load_explicit(&in->lane->tail, memory_order_acquire);
}

/* Receiver: are there messages? */
static inline bool rt_shard_lane_has_some(const struct rt_shard_in *in)
{
	/* relaxed: rt_shard_lane_tail() follows before a message is read */
	return atomic_load_explicit(&in->lane->tail, memory_order_relaxed) !=
	       in->head;
}

/* Receiver: has taken all up to head. */
static inline void rt_shard_lane_advance(struct rt_shard_in *in, uint32_t head)
{
	in->head = head;
	/* release [SHARD-3]: we have read the slots */
	atomic_store_explicit(&in->lane->head, head, memory_order_release);
}

/* ---------------------------------------------------------------- shard --- */

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
	struct rt_poller *poller;    /* of the same index */
	struct rpma_rt_queue *queue; /* NULL: deleted */
	void *arg;
	/* what stands behind the words of a message, by its kind */
	uint64_t places[RPMA_RT_SHARD_WRITABLE];
	uint32_t index;
	uint32_t count; /* of shards */
	int epfd;	/* of the next, the queue's fd and the poller's */
	int eventfd;

	/* what runs it, see enter() in run.c */
	alignas(RT_APART) _Atomic uint64_t runner; /* inside; 0: none */
	/* the thread that ran it last, by its number; 0: none. Written by that
	 * thread, inside */
	_Atomic uint64_t thread;

	/* turns */
	uint64_t touched;   /* bits: lanes with messages to publish */
	uint64_t published; /* bits: lanes whose receivers were not rung */
	uint64_t drained;   /* bits: senders of the messages taken */
	uint64_t wants;	    /* bits: lanes in which it was refused */
	uint64_t known;	    /* bits of met that in[] has */
	uint32_t in_count;
	bool is_rung;	     /* the eventfd may have been written */
	bool is_poller_over; /* the runtime is stopped */
	bool is_queue_over;
	bool has_ended; /* its phase is ENDED */
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

/* Returns the number of the thread that ran the shard last; 0: none. */
static inline uint64_t rt_shard_thread(const struct rpma_rt_shard *shard)
{
	/* relaxed: compared with the calling thread's own number only, which
	 * that thread alone stores */
	return atomic_load_explicit(&shard->thread, memory_order_relaxed);
}

static inline uint64_t rt_shard_bit(uint32_t index)
{
	return (uint64_t)1 << index;
}

static inline bool rt_shard_is_stopping(const struct rpma_rt_shards *set)
{
	/* acquire: pairs with the release in rt_shard_end_begin() */
	return atomic_load_explicit(&set->stopping, memory_order_acquire);
}

/* The same as a first look, of each turn. */
static inline bool rt_shard_may_be_stopping(const struct rpma_rt_shards *set)
{
	/* relaxed: rt_shard_is_stopping() follows */
	return atomic_load_explicit(&set->stopping, memory_order_relaxed);
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

/* Publishes what was sent; the hand-over follows. */
void rt_shard_send_publish(struct rpma_rt_shard *shard);
/* Publishes what was sent, and wakes shards that sleep on that, or on room. */
void rt_shard_send_hand_over(struct rpma_rt_shard *shard);
/* Tells the shard's function where room came back; how often. */
int rt_shard_send_tell(struct rpma_rt_shard *shard);
/* Is there any such room? */
bool rt_shard_send_is_eased(struct rpma_rt_shard *shard);
/* No posts and requests any more. */
void rt_shard_send_close(struct rpma_rt_shard *shard);

/* The shard goes: its timers are set nowhere, and none is called. */
void rt_shard_timer_end(struct rpma_rt_shard *shard);

/* The set stops; any thread. */
void rt_shard_end_begin(struct rpma_rt_shards *set);

/* ---------------------------------------------------------------- sleep --- */

int rt_shard_sleep_init(struct rpma_rt_shard *shard);
void rt_shard_sleep_fini(struct rpma_rt_shard *shard);

/* ----------------------------------------------------------------- ring --- */

/* Behind the caller's fence: wakes the other if it sleeps and was not rung
 * for that. */
void rt_shard_ring(struct rpma_rt_shard *shard, uint32_t other);
/* Writes the eventfd. */
void rt_shard_ring_wake(const struct rpma_rt_shard *shard);

#endif /* RT_SHARD_SHARD_H */
