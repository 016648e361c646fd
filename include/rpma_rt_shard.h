/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shards: one object per core, and one thread that runs it: a poller of manual
 * mode, a queue, timers, messages to and from the other shards. Included by
 * rpma_rt.h; the page of rpma_rt_shard_run has an example.
 */

#ifndef RPMA_RT_SHARD_H
#define RPMA_RT_SHARD_H

#include <rpma_rt.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rpma_rt_shards;
struct rpma_rt_shard;
struct rpma_rt_timer;

/* ------------------------------------------------------------- messages --- */

enum rpma_rt_shard_kind {
	RPMA_RT_SHARD_POST = 1,
	RPMA_RT_SHARD_REQUEST = 2, /* rpma_rt_shard_answer() is called once */
	RPMA_RT_SHARD_ANSWER = 3,
	/* a message that was refused with RPMA_E_AGAIN may be taken now; from
	 * is the shard that it was for */
	RPMA_RT_SHARD_WRITABLE = 4
};

/*
 * What shards send to one another: 32 bytes, two a cache line. Plain data.
 *   context   the sender's; of an answer: that of its request
 *   words, code  the program's
 *   from      index of the sender; written by the library, as kind is
 *   kind      enum rpma_rt_shard_kind
 *   reserved8 not looked at
 */
struct rpma_rt_shard_message {
	uint64_t context;
	uint64_t words[2];
	uint32_t code;
	uint16_t from;
	uint8_t kind;
	uint8_t reserved8;
};

/*
 * Functions that rpma_rt_shard_run() calls, on the thread that runs the shard
 * and outside of the poller's rounds: they may make any call, also those that
 * wait, but no run of the same shard. What they get is valid inside only.
 */
typedef void
rpma_rt_shard_message_fn(struct rpma_rt_shard *shard,
			 const struct rpma_rt_shard_message *message,
			 void *arg);
typedef void rpma_rt_shard_item_fn(struct rpma_rt_shard *shard,
				   const struct rpma_rt_completion *item,
				   void *arg);
typedef void rpma_rt_timer_fn(struct rpma_rt_shard *shard,
			      struct rpma_rt_timer *timer);

/* ---------------------------------------------------------- set of them --- */

#define RPMA_RT_DEFAULT_SHARD_LANE_SIZE 256
#define RPMA_RT_DEFAULT_SHARD_SPIN_US	50

/*
 * Required: item_fn, message_fn.
 *   lane_size  messages that one shard has sent to another and that it has not
 *              taken, answers apart, a power of two, 2..65536, default 256; and
 *              requests that are not answered. A lane takes 64 bytes for each,
 *              and is made at its first use
 *   spin_us    microseconds without work before a shard sleeps, 0..1000000,
 *              default 50
 *   item_fn    called with each item of the shard's queue
 *   message_fn called with each message to the shard, and WRITABLE
 *   args, arg_count  the last argument of both, one for each shard, arg_count =
 *              pollers. NULL, 0, the default: NULL for all
 *   queue      settings of the shards' queues; NULL, the default: the defaults,
 *              and the name "shard N"
 */
struct rpma_rt_shards_cfg {
	uint32_t size;
	uint32_t lane_size;
	uint32_t spin_us;
	uint32_t arg_count;
	rpma_rt_shard_item_fn *item_fn;
	rpma_rt_shard_message_fn *message_fn;
	void *const *args;
	const struct rpma_rt_queue_cfg *queue;
	uint64_t reserved[4];
};

/* clang-format off */
#define RPMA_RT_SHARDS_CFG_INIT { sizeof(struct rpma_rt_shards_cfg), \
	RPMA_RT_DEFAULT_SHARD_LANE_SIZE, RPMA_RT_DEFAULT_SHARD_SPIN_US, 0, \
	NULL, NULL, NULL, NULL, {0, 0, 0, 0} }
/* clang-format on */
int rpma_rt_shards_cfg_init(struct rpma_rt_shards_cfg *cfg, size_t size);

/* A shard for each poller of a runtime in RPMA_RT_MODE_MANUAL (else
 * RPMA_E_NOSUPP), with the same index. Thread: any that may wait. */
RPMA_RT_MUST_CHECK int rpma_rt_shards_new(struct rpma_rt *rt,
					  const struct rpma_rt_shards_cfg *cfg,
					  struct rpma_rt_shards **shards_ptr);
/*
 * Ends the exchange of messages: posts and requests are RPMA_RT_E_CLOSED, all
 * that were taken are still delivered, and when all shards have got to that,
 * rpma_rt_shard_run() is RPMA_RT_E_CLOSED on each. Waits for nothing.
 * rpma_rt_stop() does it, too. Thread: any, also in functions.
 */
int rpma_rt_shards_stop(struct rpma_rt_shards *shards);
/* Deletes the shards' queues, too, and cancels their timers. RPMA_RT_E_BUSY: a
 * thread runs a shard, or a queue cannot be deleted, see
 * rpma_rt_queue_delete(); the set is stopped. Thread: owner, no other inside a
 * call on it, not a poller. */
int rpma_rt_shards_delete(struct rpma_rt_shards **shards_ptr);

/* The shard of an index, 0..pollers - 1; lives as long as the set. Thread:
 * any. */
int rpma_rt_shards_get(const struct rpma_rt_shards *shards, uint32_t index,
		       struct rpma_rt_shard **shard_ptr);
/* Has a listener deal its connections to the shards in turn: writes poller,
 * queue, queues and queue_count of *cfg, which names memory of the set. Thread:
 * any. */
int rpma_rt_shards_deal(const struct rpma_rt_shards *shards,
			struct rpma_rt_conn_cfg *cfg);
/* The shard's queue: what is pushed into it wakes the shard and comes to
 * item_fn. Items are the shard's to take until its run is RPMA_RT_E_CLOSED.
 * Thread: any. */
int rpma_rt_shard_get_queue(const struct rpma_rt_shard *shard,
			    struct rpma_rt_queue **queue_ptr);

/* -------------------------------------------------------------- a shard --- */

/*
 * Runs the shard until something was done: a round of its poller, messages,
 * timers that are due, items, each with its function; sleeps when there is
 * nothing. Answers how much was done, 0 = timeout_ms (-1 = without end) passed,
 * or the queue was woken: rpma_rt_queue_wake(), from any thread. The poller
 * belongs to the caller from then on. RPMA_RT_E_CLOSED: stopped, nothing more
 * comes, the poller belongs to no thread. RPMA_RT_E_BUSY: another thread runs
 * the shard or its poller, or the call is in a function of it.
 * Thread: one at a time, not a poller.
 */
RPMA_RT_MUST_CHECK int rpma_rt_shard_run(struct rpma_rt_shard *shard,
					 int timeout_ms);

/*
 * Sends a message to the shard of that index, which may be the same. It is
 * copied, and on its way when the function in which it was sent is back, or
 * when rpma_rt_shard_run() is called next. RPMA_E_AGAIN: no room, and WRITABLE
 * follows. RPMA_RT_E_CLOSED: the set is stopped. RPMA_E_NOMEM: the first to
 * that shard. Thread: the one that runs the shard.
 */
RPMA_RT_MUST_CHECK int
rpma_rt_shard_post(struct rpma_rt_shard *shard, uint32_t to,
		   const struct rpma_rt_shard_message *message);
/* The same, and it is answered. */
RPMA_RT_MUST_CHECK int
rpma_rt_shard_request(struct rpma_rt_shard *shard, uint32_t to,
		      const struct rpma_rt_shard_message *message);
/* Answers a request, of which from and context are looked at, once, then or
 * later. There is room for it. RPMA_RT_E_CLOSED: the set is stopped, and the
 * shard had no messages left. Thread: likewise. */
int rpma_rt_shard_answer(struct rpma_rt_shard *shard,
			 const struct rpma_rt_shard_message *request,
			 const struct rpma_rt_shard_message *answer);

/* Counters since the set was made. */
struct rpma_rt_shard_stats {
	uint64_t items;	   /* given to item_fn */
	uint64_t messages; /* given to message_fn, WRITABLE apart */
	uint64_t sent;	   /* posts, requests and answers, handed over */
	uint64_t refused;  /* RPMA_E_AGAIN */
	uint64_t timers;   /* called */
	uint64_t sleeps;
	uint64_t rings;	     /* other shards woken */
	uint64_t unanswered; /* requests sent, without an answer now */
	uint64_t owed;	     /* requests taken, to be answered now */
};
/* Writes the first size bytes, as rpma_rt_poller_get_stats(). Thread: any. */
int rpma_rt_shard_get_stats(const struct rpma_rt_shard *shard,
			    struct rpma_rt_shard_stats *stats, size_t size);

/* --------------------------------------------------------------- timers --- */

/* A timer of a shard: zeroed, then fn (and arg, which the library does not look
 * at) set. It is the shard's from start until it is called, or cancelled. */
struct rpma_rt_timer {
	rpma_rt_timer_fn *fn;
	void *arg;
	uint64_t opaque[6];
};

/* Has fn called once, delay_us microseconds from now or a little later, and
 * never before. One that is set is moved. Takes no memory. Thread: the one that
 * runs the shard. */
int rpma_rt_timer_start(struct rpma_rt_shard *shard,
			struct rpma_rt_timer *timer, uint64_t delay_us);
/* 1: it was set, and is not called; 0: it was not. Thread: likewise. */
int rpma_rt_timer_cancel(struct rpma_rt_shard *shard,
			 struct rpma_rt_timer *timer);

#ifdef __cplusplus
}
#endif

#endif /* RPMA_RT_SHARD_H */
