/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The few ordering idioms that are more than one atomic access, by name.
 *
 * Acquire and release of one word are written at the word, with the label of
 * their pair. What needs a full fence is always the same handshake: each side
 * stores its own word, fences, and reads the other's; at least one of the two
 * then sees the other. Without both fences both may read the old value.
 */

#ifndef RT_BASE_ORDER_H
#define RT_BASE_ORDER_H

#include <stdatomic.h>

#define RT_CACHE_LINE 64
/* Distance between words that different CPUs write: processors fetch lines in
 * pairs, so a write to one line takes the other from its writer too. */
#define RT_APART 128

/*
 * The full fence of a store-fence-load handshake; the comment at each call
 * names the pair. ThreadSanitizer does not model fences: there a locked
 * read-modify-write orders the machine just as well, and what happens before
 * what is carried by the acquire and release of the words themselves.
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

/* In a loop that waits for another thread's store. */
static inline void rt_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

#endif /* RT_BASE_ORDER_H */
