/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * note.c -- see note.h. The calls are those that gcc and clang make for
 * -fsanitize=thread; this program is not linked with it.
 */

#include "note.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LINE	   64
#define SLOTS	   (1u << 16)
#define EXCEPTIONS 64
#define PRINTED	   8

static _Thread_local unsigned self;
static _Atomic bool is_on;
static _Atomic uint64_t lines[SLOTS]; /* line << 8 | writer; 0: free */
static _Atomic uint64_t count;
static _Atomic unsigned conflicts;
static struct {
	uintptr_t from;
	uintptr_t to;
} exceptions[EXCEPTIONS];
static unsigned exception_count;

void note_thread(unsigned thread)
{
	self = thread;
}

void note_stores(bool yes)
{
	/* seq_cst: simple */
	atomic_store_explicit(&is_on, yes, memory_order_seq_cst);
}

void note_except(const void *from, size_t size)
{
	exceptions[exception_count].from = (uintptr_t)from;
	exceptions[exception_count++].to = (uintptr_t)from + size;
}

uint64_t note_count(void)
{
	/* seq_cst: simple */
	return atomic_load_explicit(&count, memory_order_seq_cst);
}

unsigned note_conflicts(void)
{
	/* seq_cst: simple */
	return atomic_load_explicit(&conflicts, memory_order_seq_cst);
}

void note_forget(void)
{
	memset((void *)lines, 0, sizeof(lines));
	/* seq_cst, both: simple */
	atomic_store_explicit(&count, 0, memory_order_seq_cst);
	atomic_store_explicit(&conflicts, 0, memory_order_seq_cst);
	exception_count = 0;
}

static bool is_excepted(uintptr_t at)
{
	unsigned i;

	for (i = 0; i < exception_count; i++) {
		if (at >= exceptions[i].from && at < exceptions[i].to)
			return true;
	}
	return false;
}

static void conflict(uintptr_t at, unsigned other, const void *caller)
{
	/* seq_cst: simple */
	if (atomic_fetch_add_explicit(&conflicts, 1, memory_order_seq_cst) <
	    PRINTED)
		fprintf(stderr, "%#lx: threads %u and %u, the latter at %p\n",
			(unsigned long)at, other, self, caller);
}

static void note_line(uintptr_t at, const void *caller)
{
	uint64_t entry = (uint64_t)(at / LINE) << 8 | self;
	uint64_t found;
	unsigned i = (unsigned)(at / LINE * 2654435761u) % SLOTS;

	for (;; i = (i + 1) % SLOTS) {
		found = 0;
		/* seq_cst: simple */
		if (atomic_compare_exchange_strong_explicit(
			    &lines[i], &found, entry, memory_order_seq_cst,
			    memory_order_seq_cst) ||
		    found == entry)
			return;
		if (found >> 8 == entry >> 8) {
			conflict(at, (unsigned)(found & 0xff), caller);
			return;
		}
	}
}

static void note(const volatile void *to, size_t size, const void *caller)
{
	uintptr_t at = (uintptr_t)to;
	uintptr_t end = at + size;

	/* relaxed, both: a wish; a count */
	if (self == 0 || !atomic_load_explicit(&is_on, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	for (; at < end; at = (at / LINE + 1) * LINE) {
		if (!is_excepted(at))
			note_line(at, caller);
	}
}

#define NOTE(to, size) note(to, size, __builtin_return_address(0))

/* ------------------------------------------------------- plain accesses --- */

#define PLAIN(n)                                       \
	void __tsan_read##n(const void *at);           \
	void __tsan_read##n(const void *at)            \
	{                                              \
		(void)at;                              \
	}                                              \
	void __tsan_write##n(void *at);                \
	void __tsan_write##n(void *at)                 \
	{                                              \
		NOTE(at, n);                           \
	}                                              \
	void __tsan_unaligned_read##n(const void *at); \
	void __tsan_unaligned_read##n(const void *at)  \
	{                                              \
		(void)at;                              \
	}                                              \
	void __tsan_unaligned_write##n(void *at);      \
	void __tsan_unaligned_write##n(void *at)       \
	{                                              \
		NOTE(at, n);                           \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(const void *at, size_t size);
void __tsan_read_range(const void *at, size_t size)
{
	(void)at;
	(void)size;
}

void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size)
{
	NOTE(at, size);
}

/* ------------------------------------------------------------- atomics --- */

/* seq_cst, all: whatever was asked for */
#define ORDER memory_order_seq_cst
#define RMW(n, type, name)                                                   \
	type __tsan_atomic##n##_##name(volatile type *at, type value,        \
				       int order);                           \
	type __tsan_atomic##n##_##name(volatile type *at, type value,        \
				       int order)                            \
	{                                                                    \
		(void)order;                                                 \
		NOTE(at, sizeof(type));                                      \
		return atomic_##name##_explicit((volatile _Atomic type *)at, \
						value, ORDER);               \
	}
#define SWAP(n, type, way)                                                   \
	int __tsan_atomic##n##_compare_exchange_##way(                       \
		volatile type *at, type *expected, type value, int order,    \
		int failure);                                                \
	int __tsan_atomic##n##_compare_exchange_##way(                       \
		volatile type *at, type *expected, type value, int order,    \
		int failure)                                                 \
	{                                                                    \
		(void)order;                                                 \
		(void)failure;                                               \
		NOTE(at, sizeof(type));                                      \
		return atomic_compare_exchange_strong_explicit(              \
			(volatile _Atomic type *)at, expected, value, ORDER, \
			ORDER);                                              \
	}
#define ATOMIC(n, type)                                                        \
	type __tsan_atomic##n##_load(const volatile type *at, int order);      \
	type __tsan_atomic##n##_load(const volatile type *at, int order)       \
	{                                                                      \
		(void)order;                                                   \
		return atomic_load_explicit((const volatile _Atomic type *)at, \
					    ORDER);                            \
	}                                                                      \
	void __tsan_atomic##n##_store(volatile type *at, type value,           \
				      int order);                              \
	void __tsan_atomic##n##_store(volatile type *at, type value,           \
				      int order)                               \
	{                                                                      \
		(void)order;                                                   \
		NOTE(at, sizeof(type));                                        \
		atomic_store_explicit((volatile _Atomic type *)at, value,      \
				      ORDER);                                  \
	}                                                                      \
	RMW(n, type, exchange)                                                 \
	RMW(n, type, fetch_add)                                                \
	RMW(n, type, fetch_sub)                                                \
	RMW(n, type, fetch_or)                                                 \
	RMW(n, type, fetch_and)                                                \
	RMW(n, type, fetch_xor)                                                \
	SWAP(n, type, strong)                                                  \
	SWAP(n, type, weak)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* ------------------------------------------------------------- the rest --- */

#define NOTHING(name, ...)      \
	void name(__VA_ARGS__); \
	void name(__VA_ARGS__)  \
	{                       \
	}
NOTHING(__tsan_init, void)
NOTHING(__tsan_func_exit, void)

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	/* seq_cst: the strongest */
	atomic_signal_fence(memory_order_seq_cst);
}

void __tsan_acquire(void *at);
void __tsan_acquire(void *at)
{
	(void)at;
}

void __tsan_release(void *at);
void __tsan_release(void *at)
{
	(void)at;
}

void __tsan_mutex_pre_lock(void *at, unsigned flags);
void __tsan_mutex_pre_lock(void *at, unsigned flags)
{
	(void)at;
	(void)flags;
}

void __tsan_mutex_post_lock(void *at, unsigned flags, int depth);
void __tsan_mutex_post_lock(void *at, unsigned flags, int depth)
{
	(void)at;
	(void)flags;
	(void)depth;
}

void __tsan_mutex_pre_unlock(void *at, unsigned flags);
void __tsan_mutex_pre_unlock(void *at, unsigned flags)
{
	(void)at;
	(void)flags;
}

void __tsan_mutex_post_unlock(void *at, unsigned flags);
void __tsan_mutex_post_unlock(void *at, unsigned flags)
{
	(void)at;
	(void)flags;
}
