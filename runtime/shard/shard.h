/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * shard.h -- a shard, the set of shards, and what the files of this folder
 * share. The thread that runs a shard writes the shard's memory, but for the
 * lines that say otherwise. doc/protocols/shard.md.
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
 * A lane: a ring of messages from a shard to another shard, single producer,
 * single consumer. Each of the two ends of a lane is in the memory of its
 * shard. doc/protocols/shard.md.
 */

/* most messages of a lane that wait for the turn's end; a power of two */
#define RT_SHARD_STAGED 32

struct rt_shard_lane {
	uint32_t limit; /* immutable; the ring has twice as many slots */
	/* written by the sender */
	alignas(RT_APART) _Atomic uint32_t tail;
	/* written by the sender: a message was refused, and the sender waits
	 * for room. A line of its own, which the receiver reads only when the
	 * sender sleeps */
	alignas(RT_APART) _Atomic bool wants;
	/* written by the receiver */
	alignas(RT_APART) _Atomic uint32_t head;
	/* used by the sender only: messages that are not in their slots yet */
	alignas(RT_APART) struct rpma_rt_shard_message staged[RT_SHARD_STAGED];
	/* written by the sender, up to tail */
	alignas(RT_APART) struct rpma_rt_shard_message slots[];
};
_Static_assert(sizeof(struct rpma_rt_shard_message) == 32, "two a line");

/* bits: what was missing when a message was refused */
enum rt_shard_want { RT_SHARD_WANT_ROOM = 1, RT_SHARD_WANT_CREDIT = 2 };

/* the sender's end of a lane, in the sender's memory */
struct rt_shard_out {
	struct rt_shard_lane *lane; /* NULL: the lane is not made */
	/* place: where the next message is staged. Messages before `end` are
	 * staged without a look at the room; answers may also be staged beyond
	 * `end` */
	struct rpma_rt_shard_message *place;
	const struct rpma_rt_shard_message *end;
	uint64_t bit; /* immutable: the bit of the receiver */
	/* the lane's limit; 0: the lane is not made, or the shard is stopped */
	uint32_t room;
	uint32_t published; /* the value of tail */
	uint32_t head_seen;
	/* requests that may be unanswered; 0: see is_paired */
	uint32_t credits;
	uint32_t unanswered; /* sent requests whose credits are not back */
	/* requests of the other shard that have to be answered */
	uint32_t owed;
	/* the last sleep of the other shard for which this shard rang */
	uint32_t rung;
	uint8_t wants;	/* bits of enum rt_shard_want */
	bool is_paired; /* the lane of the answers is made */
};
static_assert(sizeof(struct rt_shard_out) == RT_CACHE_LINE,
	      "one is found by a shift");

/* the receiver's end of a lane, in the receiver's memory */
struct rt_shard_in {
	struct rt_shard_lane *lane;
	uint32_t head;
	uint32_t from;
};

struct rpma_rt_shard;
struct rpma_rt_shards;

/* Returns the number of messages that wait for the turn's end. Sender. */
static inline uint32_t rt_shard_lane_staged(const struct rt_shard_out *out)
{
	return (uint32_t)(out->place - out->lane->staged);
}

/* Returns the index in the lane of the next message. Sender. */
static inline uint32_t rt_shard_lane_next(const struct rt_shard_out *out)
{
	return out->published + rt_shard_lane_staged(out);
}

/* Returns whether another message that is no answer may be staged at once.
 * Sender. */
static inline bool rt_shard_lane_is_free(const struct rt_shard_out *out)
{
	return out->place < out->end;
}

/* Returns the number of messages in the lane, as far as the sender knows. */
static inline uint32_t rt_shard_lane_used(const struct rt_shard_out *out)
{
	return rt_shard_lane_next(out) - out->head_seen;
}

/* Returns whether the lane has room for a message, as far as the sender
 * knows. */
static inline bool rt_shard_lane_has_room(const struct rt_shard_out *out)
{
	return rt_shard_lane_used(out) < out->room;
}

/* Computes `end` after a change of room, head_seen or published. Sender. */
static inline void rt_shard_lane_set_free(struct rt_shard_out *out)
{
	uint32_t used = out->published - out->head_seen;
	uint32_t free = used < out->room ? out->room - used : 0;

	out->end = &out->lane->staged[free < RT_SHARD_STAGED ? free
							     : RT_SHARD_STAGED];
}

/* Reads the room again. Sender. */
static inline void rt_shard_lane_look(struct rt_shard_out *out)
{
	/* acquire [SHARD-3]: pairs with the release in rt_shard_lane_advance():
	 * the receiver is done with the slots */
	out->head_seen =
		atomic_load_explicit(&out->lane->head, memory_order_acquire);
	rt_shard_lane_set_free(out);
}

/* Returns whether enough room is back after a refusal. Sender. */
static inline bool rt_shard_lane_is_eased(const struct rt_shard_out *out)
{
	return rt_shard_lane_used(out) <= out->lane->limit / 2;
}

/* Returns whether the largest number of messages is staged. Sender. */
static inline bool rt_shard_lane_is_full(const struct rt_shard_out *out)
{
	return rt_shard_lane_staged(out) == RT_SHARD_STAGED;
}

/*
 * Stages a message. Sender. place: code, sender and kind. The message, which
 * the caller has just written, is read word by word, because a wide load would
 * wait for the caller's stores.
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

/* Returns up to where there are messages. Receiver. */
static inline uint32_t rt_shard_lane_tail(const struct rt_shard_in *in)
{
	/* acquire [SHARD-2]: pairs with the release in send_copy_staged(): the
	 * messages */
	return atomic_load_explicit(&in->lane->tail, memory_order_acquire);
}

/* Returns whether there are messages. Receiver. */
static inline bool rt_shard_lane_has_some(const struct rt_shard_in *in)
{
	/* relaxed: rt_shard_lane_tail() follows before a message is read */
	return atomic_load_explicit(&in->lane->tail, memory_order_relaxed) !=
	       in->head;
}

/* Takes all messages up to `head`. Receiver. */
static inline void rt_shard_lane_advance(struct rt_shard_in *in, uint32_t head)
{
	in->head = head;
	/* release [SHARD-3]: pairs with the acquire in rt_shard_lane_look():
	 * the receiver has read the slots */
	atomic_store_explicit(&in->lane->head, head, memory_order_release);
}

/* ---------------------------------------------------------------- shard --- */

/* the most of each in a turn: completions of a round, messages of a lane,
 * items, timers */
#define RT_SHARD_BATCH 64

/* the phases of a shard in a stop */
enum rt_shard_phase {
	RT_SHARD_RUNS = 0,
	RT_SHARD_QUIET = 1,   /* the shard sends nothing by itself */
	RT_SHARD_DRAINED = 2, /* no post and no request comes to the shard */
	RT_SHARD_ENDED = 3    /* nothing comes to the shard */
};

struct rt_shard_counters {
	_Atomic uint64_t items;
	_Atomic uint64_t messages;
	_Atomic uint64_t sent;
	_Atomic uint64_t refused;
	_Atomic uint64_t timers;
	_Atomic uint64_t sleeps;
	_Atomic uint64_t rings;
	/* answers that came to the shard's requests */
	_Atomic uint64_t answered;
	_Atomic uint64_t requested;  /* requests that the shard sent */
	_Atomic uint64_t asked;	     /* requests that came to the shard */
	_Atomic uint64_t replied;    /* answers that the shard sent */
	_Atomic uint64_t timers_set; /* timers that are set now */
};

struct rpma_rt_shard {
	/* immutable after new */
	alignas(RT_APART) struct rpma_rt_shards *set;
	struct rpma_rt *rt;
	/* the poller with the index of the shard */
	struct rt_poller *poller;
	struct rpma_rt_queue *queue; /* NULL: deleted */
	void *arg;
	/* the word behind the words of a message, without the code, by the
	 * message's kind */
	uint64_t places[RPMA_RT_SHARD_WRITABLE];
	uint32_t index;
	uint32_t count; /* number of shards */
	/* epoll set of the eventfd, the queue's fd and the poller's fd */
	int epfd;
	int eventfd;

	/* the thread that runs the shard, see shard_enter() in run.c */
	/* number of the thread inside; 0: no thread */
	alignas(RT_APART) _Atomic uint64_t runner;
	/* number of the thread that ran the shard last; 0: no thread. Written
	 * by that thread, inside */
	_Atomic uint64_t thread;

	/* used in turns: */
	uint64_t touched;   /* bits: lanes with messages to publish */
	uint64_t published; /* bits: lanes whose receivers were not rung */
	uint64_t drained;   /* bits: senders of the taken messages */
	uint64_t wants;	    /* bits: lanes that refused a message */
	uint64_t known;	    /* bits of `met` that are in in[] */
	uint32_t in_count;
	bool is_rung;	     /* the eventfd may have been written */
	bool is_poller_over; /* the runtime is stopped */
	bool is_queue_over;
	bool has_ended; /* the phase is ENDED */
	/* the least phase of all other shards, seen before the turn's look at
	 * the lanes */
	enum rt_shard_phase others;
	struct rt_heap timers;
	struct rt_shard_counters counters;
	struct rt_shard_in in[RPMA_RT_MAX_POLLERS];
	struct rt_shard_out out[RPMA_RT_MAX_POLLERS];

	/* written by the shard, read by all shards */
	/* odd: the shard sleeps, or may sleep */
	alignas(RT_APART) _Atomic uint32_t asleep;
	_Atomic uint32_t phase; /* enum rt_shard_phase */

	/* written by senders under the set's lock, once by each sender */
	alignas(RT_APART) _Atomic uint64_t met; /* bits: lanes to this shard */
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
	/* the shards that have not ended; each shard takes its bit */
	_Atomic uint64_t running;

	/* in the runtime's list */
	struct cds_list_head listed;

	/* for the lanes, each made once; index from * count + to; NULL: not
	 * made yet */
	alignas(RT_APART) pthread_mutex_t lock;
	struct rt_shard_lane **lanes;
};

/* Returns the number of the thread that ran the shard last; 0: no thread. */
static inline uint64_t rt_shard_thread(const struct rpma_rt_shard *shard)
{
	/* relaxed: compared only with the number of the calling thread, which
	 * only that thread stores */
	return atomic_load_explicit(&shard->thread, memory_order_relaxed);
}

static inline uint64_t rt_shard_bit(uint32_t index)
{
	return (uint64_t)1 << index;
}

/* Leaves the pollers of the runtime's shards that have not ended to the
 * shards. */
void rt_shard_show_pollers(struct rpma_rt *rt);

static inline bool rt_shard_is_stopping(const struct rpma_rt_shards *set)
{
	/* acquire: pairs with the release in rpma_rt_shards_stop() */
	return atomic_load_explicit(&set->stopping, memory_order_acquire);
}

/* Returns rt_shard_is_stopping() as a hint, for each turn. */
static inline bool rt_shard_may_be_stopping(const struct rpma_rt_shards *set)
{
	/* relaxed: rt_shard_is_stopping() follows */
	return atomic_load_explicit(&set->stopping, memory_order_relaxed);
}

static inline enum rt_shard_phase
rt_shard_phase_of(const struct rpma_rt_shard *shard)
{
	/* acquire [SHARD-5]: pairs with the release in end_enter_phase():
	 * messages that the shard sent before are visible */
	return (enum rt_shard_phase)atomic_load_explicit(&shard->phase,
							 memory_order_acquire);
}

/* Checks that the calling thread may make this call of the shard. Before the
 * shard's first run any thread may. ERRORS, logged: RPMA_E_INVAL,
 * RPMA_RT_E_FORKED */
int rt_shard_refuse_thread(const struct rt_log_place *place,
			   const struct rpma_rt_shard *shard);

/* ------------------------------------------------------- in a turn --- */

/* Publishes the sent messages; the hand-over follows. */
void rt_shard_send_publish(struct rpma_rt_shard *shard);
/* Publishes the sent messages, and wakes sleeping shards that wait for messages
 * or for room. */
void rt_shard_send_hand_over(struct rpma_rt_shard *shard);
/* Reports to the shard's function where room came back; returns how often. */
int rt_shard_send_tell(struct rpma_rt_shard *shard);
/* Returns whether there is room to report. */
bool rt_shard_send_is_eased(struct rpma_rt_shard *shard);
/* Refuses posts and requests from here on. */
void rt_shard_send_close(struct rpma_rt_shard *shard);

/* ---------------------------------------------------------------- timer --- */

/* Ends the timers of a shard that is deleted: no timer is set, or called, any
 * more. */
void rt_shard_timer_end(struct rpma_rt_shard *shard);
/* Calls the due timers; returns their number. */
int rt_shard_timer_call(struct rpma_rt_shard *shard);

/* Returns when the first timer is due; UINT64_MAX: no timer is set. */
static inline uint64_t rt_shard_timer_next(const struct rpma_rt_shard *shard)
{
	return shard->timers.first == NULL ? UINT64_MAX
					   : shard->timers.first->key;
}

/* ------------------------------------------------------------------ end --- */

/* Does the steps of a stop that are due, after the turn's look at the lanes;
 * has_taken: the look found messages. Returns whether the shard has ended. */
bool rt_shard_end_step(struct rpma_rt_shard *shard, bool has_taken);
/* Returns whether a turn would bring the stop on. */
bool rt_shard_end_is_due(const struct rpma_rt_shard *shard);

/* ----------------------------------------------------------------- ring --- */

/* Wakes the other shard if that shard sleeps and was not rung for this sleep.
 * Behind the caller's fence. */
void rt_shard_ring(struct rpma_rt_shard *shard, uint32_t other);
/* Writes the eventfd. */
void rt_shard_ring_wake(const struct rpma_rt_shard *shard);

#endif /* RT_SHARD_SHARD_H */
