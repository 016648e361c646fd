/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lang.h -- additions of the runtime to the language: likely conditions, the
 * struct around a member, wide copies, memory that the address sanitizer
 * guards.
 */

#ifndef RT_BASE_LANG_H
#define RT_BASE_LANG_H

#include <stddef.h>
#include <stdint.h>

/* likely(), unlikely(): tell the compiler the usual value of a condition. */
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* RT_FROM(): from a member to the struct around the member. */

#define RT_FROM(type, member, ptr) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/*
 * rt_two_words: two words that are copied together, for records that are copied
 * soon after they were written. A copy by wide loads is fed from wide stores on
 * their way to the cache; after narrow stores the copy would wait until the
 * stores have arrived.
 */

typedef uint64_t rt_two_words
	__attribute__((vector_size(16), may_alias, aligned(8)));

/*
 * rt_poison() marks memory that has no owner for a while: the address sanitizer
 * reports every read and write of the memory. Does nothing in other builds.
 * Address and size are multiples of 8 bytes.
 */

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RT_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RT_POISONS 1
#endif

#ifdef RT_POISONS
#include <sanitizer/asan_interface.h>
#endif

/* Takes the memory from its owner: any access is reported from here on. */
static inline void rt_poison(const void *memory, size_t size)
{
#ifdef RT_POISONS
	__asan_poison_memory_region(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

/* Gives the memory to the caller: accesses are allowed again. */
static inline void rt_unpoison(const void *memory, size_t size)
{
#ifdef RT_POISONS
	__asan_unpoison_memory_region(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

/* Fetches the cache line of p from another CPU's cache, to be written to
 * soon. */
static inline void rt_fetch_to_write(const void *p)
{
#ifdef __x86_64__
	/* for x86-64 without options the builtin is a fetch to read */
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif /* RT_BASE_LANG_H */
