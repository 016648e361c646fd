/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * self.h -- the calling thread: its role, a poller, or inside one of its
 * rounds, the event thread, or any other; and whether other threads want its
 * CPU.
 */

#ifndef RT_BASE_SELF_H
#define RT_BASE_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----------------------------------------------------------------- self --- */

struct rt_poller;

/* One object, and inline: each round and each call asks. */
struct rt_self {
	void *poller;	 /* of a room above; NULL: none */
	uint64_t number; /* 0: not asked for yet */
	uint32_t tid;	 /* likewise */
	bool is_events;
};
extern _Thread_local struct rt_self rt_self;

/* The poller whose thread, or round, the caller is in; NULL: none. */
static inline struct rt_poller *rt_self_poller(void)
{
	return rt_self.poller;
}

static inline void rt_self_set_poller(struct rt_poller *poller)
{
	rt_self.poller = poller;
}

static inline bool rt_self_is_poller(void)
{
	return rt_self.poller != NULL;
}

uint64_t rt_self_new_number(void);

/* The calling thread's number in this process: not 0, never used again. */
static inline uint64_t rt_self_number(void)
{
	return rt_self.number != 0 ? rt_self.number : rt_self_new_number();
}

/* The same without a call; 0: it was not asked for on this thread. */
static inline uint64_t rt_self_known_number(void)
{
	return rt_self.number;
}

uint32_t rt_self_ask_tid(void);

/* The kernel's number of the calling thread, for the dump. */
static inline uint32_t rt_self_tid(void)
{
	return rt_self.tid != 0 ? rt_self.tid : rt_self_ask_tid();
}

/* The same without a call; 0: it was not asked for on this thread. */
static inline uint32_t rt_self_known_tid(void)
{
	return rt_self.tid;
}

static inline bool rt_self_is_events(void)
{
	return rt_self.is_events;
}

void rt_self_set_events(void);

/* In the child of a fork: its one thread is neither, even if it was. */
void rt_self_forked(void);

/* ---------------------------------------------------------------- share --- */

/*
 * Whether other threads want the CPU of the calling thread, for threads that
 * spin before they sleep. A thread learns by a sched_yield(): the call returns
 * within a microsecond where no other thread runs in between. The answer holds
 * for a millisecond, and after long calls in a row for up to 32 times the call,
 * so that questions cost a few percent of the time at most.
 * doc/protocols/threads.md.
 */

enum rt_share {
	/* no other thread wanted the CPU: spinning costs other threads nothing
	 */
	RT_SHARE_ALONE = 0,
	/* threads with little to do, as those that the caller waits for: the
	 * CPU comes back within microseconds */
	RT_SHARE_SOME = 1,
	/* threads that compute: a sleep ends sooner than a yield */
	RT_SHARE_BUSY = 2
};

struct rt_share_known {
	uint64_t until_ns; /* then the answer has to be asked for again */
	enum rt_share share;
	uint32_t times; /* that the answer of a long yield holds */
};

/* what the calling thread knows */
extern _Thread_local struct rt_share_known rt_share_known;

/* Yields, and brings *now_ns up to date. */
enum rt_share rt_share_yield_now(uint64_t *now_ns);

/* Returns what is known, or asks where nothing is known any more. */
static inline enum rt_share rt_share_ask(uint64_t *now_ns)
{
	return *now_ns < rt_share_known.until_ns ? rt_share_known.share
						 : rt_share_yield_now(now_ns);
}

/* Likewise, and gives the CPU up each time while some threads want the CPU. */
static inline enum rt_share rt_share_yield(uint64_t *now_ns)
{
	return rt_share_known.share == RT_SHARE_SOME
		       ? rt_share_yield_now(now_ns)
		       : rt_share_ask(now_ns);
}

#endif /* RT_BASE_SELF_H */
