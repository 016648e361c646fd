/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * self.h -- the role of the calling thread: a poller, or inside one of its
 * rounds; the event thread; or any other.
 */

#ifndef RT_BASE_SELF_H
#define RT_BASE_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif /* RT_BASE_SELF_H */
