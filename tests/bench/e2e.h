/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * e2e.h -- the frame of bench_e2e: connections, messages and their bytes,
 * threads, clock, output. A form (e2e_FORM) posts, takes completions, and calls
 * the frame for each message. Inline where a form calls the frame for each
 * message; also for C++.
 */

#ifndef BENCH_E2E_H
#define BENCH_E2E_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

#define E2E_SIZE  64 /* bytes of a message */
#define E2E_WORDS (E2E_SIZE / 8)
#define E2E_BATCH 32	/* completions of a poll, work requests of a post */
#define E2E_RECVS 16	/* receives of a post, if fewer messages are out */
#define E2E_EACH  16	/* every sixteenth message is timed */
#define E2E_LOOK  32	/* rounds of a thread between two looks at the clock */
#define E2E_TIMES 16384 /* the last times of a thread */
/* what different threads write lies so far apart */
#define E2E_APART __attribute__((aligned(128)))

/* An end of a connection. */
struct E2E_APART e2e_end {
	struct e2e_thread *thread;
	struct e2e_end *next; /* in the list of touched ends */
	void *handle;	      /* the form's: queue pair or connection */
	void *extra;	      /* the form's */
	uint64_t id;	      /* of the connection */
	bool is_client;
	bool is_touched;
	uint32_t recvs;		 /* receives to be posted */
	uint32_t least_recvs;	 /* fewer receives are not posted yet */
	uint32_t sends;		 /* messages to be sent */
	uint64_t got;		 /* messages, so far */
	uint64_t received, sent; /* posted receives, posted sends */
	uint32_t in_count, out_count;
	char *in;  /* slots of receives */
	char *out; /* slots of a client's messages; a server sends from in */
	uint64_t *stamps; /* when a client sent, ns, in the order of out */
};

/* A thread with its ends. */
struct E2E_APART e2e_thread {
	uint32_t number;
	int cpu;
	bool is_client;	 /* has clients, perhaps beside servers */
	uint32_t rounds; /* until the next look at the clock */
	uint32_t end_count;
	struct e2e_end **ends;
	struct e2e_end *touched;
	uint64_t messages; /* echoes, since the beginning */
	/* the measured part */
	double begin, seconds;
	uint64_t first, counted;
	uint64_t *times; /* ns of messages, the last of them */
	uint64_t time_count;
	void *form; /* the form's */
	void *wrs;  /* the form's: work requests */
};

struct e2e {
	struct bench_args args;
	uint32_t conns, depth;
	uint32_t pairs; /* of threads, or threads with both ends */
	bool is_two;	/* clients and servers have threads of their own */
	uint32_t thread_count;
	struct e2e_thread *threads;
	struct e2e_end *ends; /* client and server of each connection */
	char *memory;
	size_t memory_size;
};

struct e2e_form {
	const char *name;
	/* the pairs' pollers have the first CPUs, and each thread both ends */
	bool has_pollers;
	/* Makes all that the threads share, before the first starts. */
	void (*open)(struct e2e *e2e);
	/* A thread: calls e2e_begin(), then e2e_is_over() after each round,
	 * until e2e_is_over() returns true. */
	void (*run)(struct e2e *e2e, struct e2e_thread *thread);
};

extern const struct e2e_form e2e_bare;
extern const struct e2e_form e2e_split;
extern const struct e2e_form e2e_manual;
extern const struct e2e_form e2e_shard;
extern const struct e2e_form e2e_future;
extern const struct e2e_form e2e_poller;
extern const struct e2e_form e2e_coroutine;

/* Waits until all threads are there. Every client has its first messages to
 * send then. */
void e2e_begin(struct e2e *e2e, struct e2e_thread *thread);
/* Looks at the clock: begins and ends the measured part. Returns true when all
 * threads have measured. */
bool e2e_look(struct e2e *e2e, struct e2e_thread *thread);

static inline bool e2e_is_over(struct e2e *e2e, struct e2e_thread *thread)
{
	return ++thread->rounds % E2E_LOOK == 0 && e2e_look(e2e, thread);
}

/* ---------------------------------------------------------------- bytes --- */

/* Writes the bytes of a message: each number and connection has its own. */
static inline void e2e_fill(void *to, uint64_t number, uint64_t id)
{
	uint64_t *words = (uint64_t *)to;
	uint64_t base = number * 0x9e3779b97f4a7c15u + id;
	int i;

	for (i = 0; i < E2E_WORDS; i++)
		words[i] = base + (uint64_t)i;
}

static inline void e2e_check(const void *from, uint64_t number, uint64_t id)
{
	const uint64_t *words = (const uint64_t *)from;
	uint64_t base = number * 0x9e3779b97f4a7c15u + id;
	uint64_t wrong = 0;
	int i;

	for (i = 0; i < E2E_WORDS; i++)
		wrong |= words[i] ^ (base + (uint64_t)i);
	if (__builtin_expect(wrong != 0, 0))
		bench_fail("a message came back with other bytes");
}

/* Returns the slot of the receive of this number. */
static inline char *e2e_in(const struct e2e_end *end, uint64_t number)
{
	return end->in + number % end->in_count * E2E_SIZE;
}

/* Returns the bytes of the message of this number, ready to be sent. */
static inline char *e2e_out(const struct e2e_end *end, uint64_t number)
{
	char *slot;

	if (!end->is_client)
		return e2e_in(end, number);
	slot = end->out + number % end->out_count * E2E_SIZE;
	e2e_fill(slot, number, end->id);
	if (number % E2E_EACH == 0)
		end->stamps[number % end->out_count] = bench_now_ns();
	return slot;
}

/* ------------------------------------------------------------- messages --- */

static inline void e2e_touch(struct e2e_end *end)
{
	if (end->is_touched)
		return;
	end->is_touched = true;
	end->next = end->thread->touched;
	end->thread->touched = end;
}

static inline void e2e_time(struct e2e_thread *thread, uint64_t sent)
{
	thread->times[thread->time_count++ % E2E_TIMES] = bench_now_ns() - sent;
}

/* The next message of the end has arrived: checks the bytes, and leaves a
 * receive and a message to be posted. */
static inline void e2e_got(struct e2e_end *end)
{
	uint64_t number = end->got++;

	if (end->is_client) {
		e2e_check(e2e_in(end, number), number, end->id);
		end->thread->messages++;
		if (number % E2E_EACH == 0)
			e2e_time(end->thread,
				 end->stamps[number % end->out_count]);
	}
	end->recvs++;
	end->sends++;
	e2e_touch(end);
}

/* Posts all that is due. post() returns false if something is left
 * for later. */
static inline void e2e_post_all(struct e2e_thread *thread,
				bool (*post)(struct e2e_end *end))
{
	struct e2e_end *end = thread->touched;
	struct e2e_end *next;

	thread->touched = NULL;
	for (; end != NULL; end = next) {
		next = end->next;
		end->is_touched = false;
		if (!post(end))
			e2e_touch(end);
	}
}

/* Returns whether a thread whose poll has found `got` completions polls again
 * before it posts, so that each post has as many work requests as there can be.
 * With both ends on the thread nothing comes after a poll that was not full. A
 * thread with one end looks again after several completions, and answers a
 * single one at once. */
static inline bool e2e_polls_again(const struct e2e *e2e, int got)
{
	return got >= (e2e->is_two ? 2 : E2E_BATCH);
}

/* Returns how many receives an end posts more than messages can be outstanding.
 * With few messages out it posts E2E_RECVS receives at a time. */
static inline uint32_t e2e_spare(const struct e2e *e2e)
{
	return e2e->depth < E2E_RECVS ? E2E_RECVS : 0;
}

/* Returns how many receives an end posts at most: a queue of just as many stays
 * in a near cache. */
static inline uint32_t e2e_recvs(const struct e2e *e2e)
{
	return e2e->depth + e2e_spare(e2e);
}

/* Returns how many sends the completion of a signaled send frees. With few
 * messages out the queues of many sends cost no memory that counts. */
static inline uint32_t e2e_sends_a_signal(const struct e2e *e2e)
{
	return e2e->depth < 8 ? 64 : e2e->depth <= 16 ? 16 : 32;
}

/* Returns whether the receives that are due are to be posted. */
static inline bool e2e_posts_recvs(const struct e2e_end *end)
{
	return end->recvs >= end->least_recvs;
}

static inline int e2e_batch(uint32_t due)
{
	return due < E2E_BATCH ? (int)due : E2E_BATCH;
}

#endif /* BENCH_E2E_H */
