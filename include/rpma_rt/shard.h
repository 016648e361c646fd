/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* shard.h: one thread per core: each runs a shard, which has a poller of manual
 * mode, a queue, timers, and messages to and from the other shards. */

#ifndef RPMA_RT_SHARD_H
#define RPMA_RT_SHARD_H

#include <rpma_rt/connection.h>

RPMA_RT_BEGIN

struct rpma_rt_shards;
struct rpma_rt_shard;
struct rpma_rt_timer;

enum rpma_rt_shard_kind {
	RPMA_RT_SHARD_POST = 1,
	RPMA_RT_SHARD_REQUEST = 2, /* to be answered once */
	RPMA_RT_SHARD_ANSWER = 3,
	RPMA_RT_SHARD_WRITABLE = 4 /* shard `from` has room after an AGAIN */
};

/* A message between shards: 32 bytes of plain data. */
struct rpma_rt_shard_message {
	uint64_t context; /* the sender's; of an answer: of the request */
	uint64_t words[2];
	uint32_t code;
	uint16_t from; /* index of the sender; written by the library */
	uint8_t kind;  /* enum rpma_rt_shard_kind; written by the library */
	uint8_t reserved8;
};

/* Functions that rpma_rt_shard_run() calls on the thread that runs the shard:
 * may make any call, also calls that wait, but no run of the same shard.
 * message and item are valid inside the call only. */
typedef void
rpma_rt_shard_message_fn(struct rpma_rt_shard *shard,
			 const struct rpma_rt_shard_message *message,
			 void *arg);
typedef void rpma_rt_shard_item_fn(struct rpma_rt_shard *shard,
				   const struct rpma_rt_completion *item,
				   void *arg);
typedef void rpma_rt_timer_fn(struct rpma_rt_shard *shard,
			      struct rpma_rt_timer *timer);

#define RPMA_RT_DEFAULT_SHARD_LANE_SIZE 256
#define RPMA_RT_DEFAULT_SHARD_SPIN_US	50

struct rpma_rt_shards_cfg {
	uint32_t size;
	/* unread messages from one shard to another, and requests without an
	 * answer: a power of two, 2..65536; default 256 */
	uint32_t lane_size;
	uint32_t spin_us;   /* without work before a sleep, 0..1000000; 50 */
	uint32_t arg_count; /* pollers, or 0 if args is NULL */
	rpma_rt_shard_item_fn *item_fn;	      /* required: called for items */
	rpma_rt_shard_message_fn *message_fn; /* required: for messages */
	void *const *args; /* the arg of each shard; NULL (default): NULL */
	/* settings of the queues; NULL: defaults, with the name "shard N" */
	const struct rpma_rt_queue_cfg *queue;
	uint64_t reserved[4];
};

/* clang-format off */
#define RPMA_RT_SHARDS_CFG_INIT { sizeof(struct rpma_rt_shards_cfg), \
	RPMA_RT_DEFAULT_SHARD_LANE_SIZE, RPMA_RT_DEFAULT_SHARD_SPIN_US, 0, \
	NULL, NULL, NULL, NULL, {0, 0, 0, 0} }
/* clang-format on */

/* Writes size bytes of RPMA_RT_SHARDS_CFG_INIT. Returns 0. Thread: any. */
int rpma_rt_shards_cfg_init(struct rpma_rt_shards_cfg *cfg, size_t size);

/* Makes a shard for each poller of a runtime in manual mode. Returns 0.
 * Errors: NOSUPP (another mode), NOMEM, PROVIDER, CLOSED. Thread: waits. */
int rpma_rt_shards_new(struct rpma_rt *rt, const struct rpma_rt_shards_cfg *cfg,
		       struct rpma_rt_shards **shards_ptr) RPMA_RT_MUST_CHECK;

/* Ends the exchange of messages and never blocks; taken messages are still
 * delivered, then rpma_rt_shard_run() fails with CLOSED on each shard.
 * Returns 0. Thread: any. */
int rpma_rt_shards_stop(struct rpma_rt_shards *shards);

/* Stops and frees the set with its queues, and cancels timers.
 * Returns 0. Errors: BUSY (a thread runs a shard, or a queue is BUSY). Thread:
 * owner, waits. */
int rpma_rt_shards_delete(struct rpma_rt_shards **shards_ptr);

/* Writes the shard of an index, 0..pollers - 1, which lives as long as the set.
 * Returns 0. Thread: any. */
int rpma_rt_shards_get(const struct rpma_rt_shards *shards, uint32_t index,
		       struct rpma_rt_shard **shard_ptr);

/* Writes poller, queue, queues and queue_count of a listener's *cfg, so that
 * connections go to the shards in turn; *cfg then names memory of the set.
 * Returns 0. Thread: any. */
int rpma_rt_shards_deal(const struct rpma_rt_shards *shards,
			struct rpma_rt_conn_cfg *cfg);

/* Writes the shard's queue, which only the shard may poll until
 * rpma_rt_shard_run() has returned CLOSED.
 * Returns 0. Thread: any. */
int rpma_rt_shard_get_queue(const struct rpma_rt_shard *shard,
			    struct rpma_rt_queue **queue_ptr);

/* Runs the shard until something was done, and sleeps up to timeout_ms
 * milliseconds (-1: no limit); the thread becomes the owner of the poller.
 * Returns how much was done, 0 if the time passed or the queue was woken.
 * Errors: CLOSED (stopped, nothing follows), BUSY (the shard or poller is run).
 * Thread: one at a time, waits. */
int rpma_rt_shard_run(struct rpma_rt_shard *shard,
		      int timeout_ms) RPMA_RT_MUST_CHECK;

/* Sends a copy of the message to shard `to`, when the current callback returns
 * or at the next run. Returns 0. Errors: AGAIN (the lane is full; WRITABLE
 * follows), CLOSED, NOMEM. Thread: runs the shard. */
int rpma_rt_shard_post(struct rpma_rt_shard *shard, uint32_t to,
		       const struct rpma_rt_shard_message *message)
	RPMA_RT_MUST_CHECK;

/* Sends a message that is answered once. Returns 0. Errors: as for a post, and
 * AGAIN (lane_size requests have no answer). Thread: runs the shard. */
int rpma_rt_shard_request(struct rpma_rt_shard *shard, uint32_t to,
			  const struct rpma_rt_shard_message *message)
	RPMA_RT_MUST_CHECK;

/* Answers a request, or a copy, once, at any time; there is always room.
 * Returns 0. Errors: INVAL (no request), CLOSED. Thread: runs the shard. */
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

/* Writes size bytes of the counters. Returns 0. Thread: any. */
int rpma_rt_shard_get_stats(const struct rpma_rt_shard *shard,
			    struct rpma_rt_shard_stats *stats, size_t size);

/* A timer: zeroed, then fn set. Memory of the program, which belongs to the
 * shard from start until fn is called or the timer is cancelled. */
struct rpma_rt_timer {
	rpma_rt_timer_fn *fn;
	void *arg; /* for the program */
	uint64_t opaque[6];
};

/* Has fn called once, delay_us microseconds from now or a little later; moves a
 * pending timer. Returns 0. Thread: runs the shard. */
int rpma_rt_timer_start(struct rpma_rt_shard *shard,
			struct rpma_rt_timer *timer, uint64_t delay_us);

/* Cancels a timer. Returns 1 if the timer was pending, otherwise 0.
 * Thread: runs the shard. */
int rpma_rt_timer_cancel(struct rpma_rt_shard *shard,
			 struct rpma_rt_timer *timer);

RPMA_RT_END

#endif /* RPMA_RT_SHARD_H */
