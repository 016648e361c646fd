/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * poison.h -- memory that is nobody's for a while: the address sanitizer
 * reports whoever reads or writes it. Nothing in other builds. Whole 8 bytes.
 */

#ifndef RT_BASE_POISON_H
#define RT_BASE_POISON_H

#include <stddef.h>

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

/* From here on it is nobody's. */
static inline void rt_poison(const void *memory, size_t size)
{
#ifdef RT_POISONS
	__asan_poison_memory_region(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

/* It is the caller's. */
static inline void rt_unpoison(const void *memory, size_t size)
{
#ifdef RT_POISONS
	__asan_unpoison_memory_region(memory, size);
#else
	(void)memory;
	(void)size;
#endif
}

#endif /* RT_BASE_POISON_H */
