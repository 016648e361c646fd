/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The few ordering idioms with more than one atomic access, by name.
 *
 * Acquire and release of a single word are written at the word, with the label
 * of their pair. A full fence is always needed for the same handshake: each
 * side stores its own word, fences, and reads the word of the other; at least
 * one of the two then sees the store of the other. Without both fences both may
 * read the old value.
 */

#ifndef RT_BASE_ORDER_H
#define RT_BASE_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RT_CACHE_LINE 64
/* Distance between words written by different CPUs: processors fetch lines in
 * pairs, so a write to a line takes the other line of the pair from its writer
 * too. */
#define RT_APART 128

/*
 * The full fence of a store-fence-load handshake; the comment at each call
 * names the pair. ThreadSanitizer does not model fences: there a locked
 * read-modify-write orders the machine just as well, and the acquire and
 * release of the words themselves carry the happens-before.
 */
static inline void rt_fence_dekker(void)
{
#ifdef __SANITIZE_THREAD__
	_Atomic int orders_only = 0;

	/* seq_cst: stands for the fence below */
	atomic_fetch_add_explicit(&orders_only, 1, memory_order_seq_cst);
#else
	/* seq_cst: pairs with the fence of the other side */
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * The two halves of an asymmetric fence. A thread that stores, calls
 * rt_fence_light() and loads is ordered against a thread that stores, calls
 * rt_fence_heavy() and loads as if both had rt_fence_dekker(). The light half
 * costs nothing; the heavy half interrupts all running threads of the process,
 * and costs some microseconds.
 */
static inline void rt_fence_light(void)
{
	/* the compiler's half; membarrier() is the processor's */
	atomic_signal_fence(memory_order_seq_cst);
}

/* Prepares rt_fence_heavy(); the kernel may refuse. Any number of times, in any
 * thread. */
void rt_fence_start(void);
/* Returns whether the light half orders: rt_fence_start() was called, and the
 * kernel has refused nothing. */
bool rt_fence_is_ready(void);
/* REQUIRES: rt_fence_is_ready() has returned true at some time. If the kernel
 * refuses by now, because the program has forbidden membarrier() meanwhile,
 * sleeps for a millisecond instead, in which stores become visible. Thread:
 * any, also with a lock. */
void rt_fence_heavy(void);
/* Logs once that the kernel refuses membarrier(). Called with nothing held. */
void rt_fence_warn(void);

/* takes of a lock in a row by a single thread, after which the lock is kept for
 * that thread; tests set a smaller number */
extern uint16_t rt_keep_after;

/*
 * The orders visible to ThreadSanitizer in a program: src/tsan/. The library is
 * compiled with src/tsan/, the unit tests are not.
 */

/* A post to a queue pair or shared receive queue follows; a poll of a CQ found
 * completions. Work before the post comes before work after the completion.
 * rt_order_is_shown(): whether a sanitizer is there to see so. */
#ifdef tsan_posts
#define rt_order_posts(object) tsan_posts(object)
#define rt_order_polled(cq)    tsan_polled(cq)
#define rt_order_is_shown()    tsan_is_shown()
#else
#define rt_order_posts(object) ((void)(object))
#define rt_order_polled(cq)    ((void)(cq))
#define rt_order_is_shown()    false
#endif

/* An atomic access hidden from the sanitizer, two instructions less: of a word
 * read with each post or poll and handing over no data of the program. A build
 * with the sanitizer sees the access. The caller names the pair. */
#ifdef TSAN_LOAD
#define rt_load_unseen(at, order)      TSAN_LOAD(at, order)
#define rt_store_unseen(at, to, order) TSAN_STORE(at, to, order)
#else
/* acquire, release: the caller's */
#define rt_load_unseen(at, order)      atomic_load_explicit(at, order)
#define rt_store_unseen(at, to, order) atomic_store_explicit(at, to, order)
#endif

/* Pauses in a loop that waits for a store of another thread. */
static inline void rt_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

#endif /* RT_BASE_ORDER_H */
