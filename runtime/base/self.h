/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * self.h -- the calling thread: the role (a poller, inside a round of a poller,
 * the event thread, or any other), and whether other threads want the CPU.
 */

#ifndef RT_BASE_SELF_H
#define RT_BASE_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----------------------------------------------------------------- self --- */

struct rt_poller;

/* A single object, and inline: each round and each call reads the object. */
struct rt_self {
	void *poller;	 /* of a room above; NULL: no poller */
	uint64_t number; /* 0: not asked for yet */
	uint32_t tid;	 /* likewise */
	bool is_events;
};
extern _Thread_local struct rt_self rt_self;

/* Returns the poller of the caller, a thread or a round; NULL: no poller. */
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

/* Returns rt_self_number() without a call; 0: not yet known on this thread. */
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

/* Returns rt_self_tid() without a call; 0: not yet known on this thread. */
static inline uint32_t rt_self_known_tid(void)
{
	return rt_self.tid;
}

static inline bool rt_self_is_events(void)
{
	return rt_self.is_events;
}

static inline void rt_self_set_events(void)
{
	rt_self.is_events = true;
}

/*
 * In the child of a fork: the only thread has no role, whatever the role
 * before, and gets another number, so that nothing is kept for the thread.
 */
static inline void rt_self_forked(void)
{
	rt_self = (struct rt_self){0};
}

/* ---------------------------------------------------------------- share --- */

/*
 * Whether other threads want the CPU of the calling thread, for threads that
 * spin before sleeping. A thread learns by a sched_yield(): the call returns
 * within a microsecond where no other thread runs in between. The answer holds
 * for a millisecond, and after long calls in a row for up to 32 times the call,
 * so that questions cost at most a few percent of the time.
 * doc/protocols/threads.md.
 */

enum rt_share {
	/* no other thread wanted the CPU: spinning costs other threads nothing
	 */
	RT_SHARE_ALONE = 0,
	/* threads with little to do, such as the threads that the caller waits
	 * for: the CPU comes back within microseconds */
	RT_SHARE_SOME = 1,
	/* computing threads: a sleep ends sooner than a yield */
	RT_SHARE_BUSY = 2
};

struct rt_share_known {
	uint64_t until_ns; /* then the answer has to be asked for again */
	enum rt_share share;
	uint32_t times; /* number of times the answer of a long yield holds */
};

/* the knowledge of the calling thread */
extern _Thread_local struct rt_share_known rt_share_known;

/* Yields, and brings *now_ns up to date. */
enum rt_share rt_share_yield_now(uint64_t *now_ns);

/* Returns the known answer, or asks if the answer is too old. */
static inline enum rt_share rt_share_ask(uint64_t *now_ns)
{
	return *now_ns < rt_share_known.until_ns ? rt_share_known.share
						 : rt_share_yield_now(now_ns);
}

/* Returns the answer for a wait, and asks again when the wait has lasted for
 * some time since the last question, at *asked_ns: the thread for which the
 * caller waits may have come to this CPU with the caller's last call. */
enum rt_share rt_share_ask_again(uint64_t *now_ns, uint64_t *asked_ns);

/*
 * Returns whether a wait that runs rounds, and spins until spin_ns, runs
 * another round at once, in place of a sleep of sleep_ns. Where computing
 * threads want the CPU, the wait sleeps. Where threads want the CPU for a
 * moment, such as those that bring the result, the wait gives the CPU up now
 * and then, and goes on for the length of a sleep. *asked_ns: when the wait
 * gave the CPU up last, at first when the wait began.
 */
bool rt_share_goes_on(uint64_t now_ns, uint64_t spin_ns, uint64_t sleep_ns,
		      uint64_t *asked_ns);

/*
 * Returns the answer like rt_share_ask(), and gives the CPU up each time while
 * some threads want the CPU.
 */
static inline enum rt_share rt_share_yield(uint64_t *now_ns)
{
	return rt_share_known.share == RT_SHARE_SOME
		       ? rt_share_yield_now(now_ns)
		       : rt_share_ask(now_ns);
}

#endif /* RT_BASE_SELF_H */
