/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * traced.c -- the calls that gcc and clang make for -fsanitize=thread: atomic
 * accesses are steps of explore.h if they are to watched words. Plain ones are
 * not: what is read and written between two steps is of one thread.
 */

#include "explore.h"

/* ------------------------------------------------------------- atomics --- */

/* seq_cst, all of what is left to the machine: one thread runs at a time */
#define ORDER __ATOMIC_SEQ_CST
#define RMW(n, type, name, builtin)                                   \
	type __tsan_atomic##n##_##name(volatile type *at, type value, \
				       int order);                    \
	type __tsan_atomic##n##_##name(volatile type *at, type value, \
				       int order)                     \
	{                                                             \
		(void)order;                                          \
		explore_modify(at);                                   \
		return builtin(at, value, ORDER);                     \
	}
#define SWAP(n, type, way)                                                 \
	int __tsan_atomic##n##_compare_exchange_##way(                     \
		volatile type *at, type *expected, type value, int order,  \
		int failure);                                              \
	int __tsan_atomic##n##_compare_exchange_##way(                     \
		volatile type *at, type *expected, type value, int order,  \
		int failure)                                               \
	{                                                                  \
		(void)order;                                               \
		(void)failure;                                             \
		explore_modify(at);                                        \
		return __atomic_compare_exchange_n(at, expected, value, 0, \
						   ORDER, ORDER);          \
	}
#define ATOMIC(n, type)                                                   \
	type __tsan_atomic##n##_load(const volatile type *at, int order); \
	type __tsan_atomic##n##_load(const volatile type *at, int order)  \
	{                                                                 \
		uint64_t value;                                           \
                                                                          \
		(void)order;                                              \
		if (explore_is_watched(at) && explore_load(at, &value))   \
			return (type)value;                               \
		return __atomic_load_n(at, ORDER);                        \
	}                                                                 \
	void __tsan_atomic##n##_store(volatile type *at, type value,      \
				      int order);                         \
	void __tsan_atomic##n##_store(volatile type *at, type value,      \
				      int order)                          \
	{                                                                 \
		if (!explore_is_watched(at)) {                            \
			__atomic_store_n(at, value, ORDER);               \
			return;                                           \
		}                                                         \
		explore_store(at, (uint64_t)value, n / 8);                \
		if (order == ORDER)                                       \
			explore_fence();                                  \
	}                                                                 \
	RMW(n, type, exchange, __atomic_exchange_n)                       \
	RMW(n, type, fetch_add, __atomic_fetch_add)                       \
	RMW(n, type, fetch_sub, __atomic_fetch_sub)                       \
	RMW(n, type, fetch_or, __atomic_fetch_or)                         \
	RMW(n, type, fetch_and, __atomic_fetch_and)                       \
	RMW(n, type, fetch_xor, __atomic_fetch_xor)                       \
	SWAP(n, type, strong)                                             \
	SWAP(n, type, weak)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	if (order == ORDER)
		explore_fence();
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* ------------------------------------------------------------ the rest --- */

#define NOTHING(name, ...)      \
	void name(__VA_ARGS__); \
	void name(__VA_ARGS__)  \
	{                       \
	}
#define PLAIN(n)                                        \
	NOTHING(__tsan_read##n, const void *)           \
	NOTHING(__tsan_write##n, void *)                \
	NOTHING(__tsan_unaligned_read##n, const void *) \
	NOTHING(__tsan_unaligned_write##n, void *)
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
NOTHING(__tsan_read_range, const void *, size_t)
NOTHING(__tsan_write_range, void *, size_t)
NOTHING(__tsan_init, void)
NOTHING(__tsan_func_entry, void *)
NOTHING(__tsan_func_exit, void)
NOTHING(__tsan_acquire, void *)
NOTHING(__tsan_release, void *)
NOTHING(__tsan_mutex_pre_lock, void *, unsigned)
NOTHING(__tsan_mutex_post_lock, void *, unsigned, int)
NOTHING(__tsan_mutex_pre_unlock, void *, unsigned)
NOTHING(__tsan_mutex_post_unlock, void *, unsigned)
