/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stdatomic.h -- the <stdatomic.h> of librpma, librpma_rt and the loopback
 * device, which stands ahead of the compiler's in their include path: the same
 * macros, but each access is also shown to ThreadSanitizer.
 *
 * A program may be compiled with -fsanitize=thread while the libraries are not.
 * The sanitizer then sees the calls of libc that a library makes (memcpy(),
 * free(), pthread_mutex_lock()) and no atomic access of the library, so all
 * data handed over through the library looks like a race. Here an access that
 * releases calls tsan_release() first, and an access that acquires calls
 * tsan_acquire() afterwards, with the address of the atomic object: the
 * sanitizer knows the pairs named by the memory orders. An instrumented build
 * has the same pairs and no reports, so the pairs are complete. Relaxed
 * accesses are the compiler's. A fence is not shown, as in an instrumented
 * build: no pair depends on a fence alone.
 *
 * In an instrumented build this file is the compiler's <stdatomic.h>.
 */

#include_next <stdatomic.h>

#ifndef RPMA_TSAN_STDATOMIC_H
#define RPMA_TSAN_STDATOMIC_H

#include "tsan.h"

#ifndef TSAN_IS_BUILT_IN

/* the accesses themselves: of the compiler, as in <stdatomic.h> */
#ifdef __clang__
#define TSAN_LOAD     __c11_atomic_load
#define TSAN_STORE    __c11_atomic_store
#define TSAN_EXCHANGE __c11_atomic_exchange
#define TSAN_CAS_WEAK __c11_atomic_compare_exchange_weak
#define TSAN_CAS      __c11_atomic_compare_exchange_strong
#define TSAN_ADD      __c11_atomic_fetch_add
#define TSAN_SUB      __c11_atomic_fetch_sub
#define TSAN_OR	      __c11_atomic_fetch_or
#define TSAN_AND      __c11_atomic_fetch_and
#else
#define TSAN_LOAD     __atomic_load_n
#define TSAN_STORE    __atomic_store_n
#define TSAN_EXCHANGE __atomic_exchange_n
#define TSAN_CAS_WEAK(at, old, to, order, failure) \
	__atomic_compare_exchange_n(at, old, to, 1, order, failure)
#define TSAN_CAS(at, old, to, order, failure) \
	__atomic_compare_exchange_n(at, old, to, 0, order, failure)
#define TSAN_ADD __atomic_fetch_add
#define TSAN_SUB __atomic_fetch_sub
#define TSAN_OR	 __atomic_fetch_or
#define TSAN_AND __atomic_fetch_and
#endif

/* memory orders are constants: unused calls are compiled away */
#define TSAN_RELEASES(order)                                                   \
	((order) == memory_order_release || (order) == memory_order_acq_rel || \
	 (order) == memory_order_seq_cst)
#define TSAN_ACQUIRES(order)                                                   \
	((order) == memory_order_acquire || (order) == memory_order_acq_rel || \
	 (order) == memory_order_seq_cst)

/* A load, a store, or both, of the object tsan_at; at is evaluated once. The
 * value of the macro is the value of the access. */
#define TSAN_LOADS(at, order, access)            \
	__extension__({                          \
		__auto_type tsan_at = (at);      \
		__auto_type tsan_value = access; \
		if (TSAN_ACQUIRES(order))        \
			tsan_acquire(tsan_at);   \
		tsan_value;                      \
	})
#define TSAN_STORES(at, order, access)         \
	__extension__({                        \
		__auto_type tsan_at = (at);    \
		if (TSAN_RELEASES(order))      \
			tsan_release(tsan_at); \
		access;                        \
	})
#define TSAN_CHANGES(at, order, access)          \
	__extension__({                          \
		__auto_type tsan_at = (at);      \
		if (TSAN_RELEASES(order))        \
			tsan_release(tsan_at);   \
		__auto_type tsan_value = access; \
		if (TSAN_ACQUIRES(order))        \
			tsan_acquire(tsan_at);   \
		tsan_value;                      \
	})

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
/* not used by any library: each would need a macro here */
#undef atomic_fetch_xor_explicit
#undef atomic_flag_test_and_set_explicit
#undef atomic_flag_clear_explicit

#define atomic_load_explicit(at, order) \
	TSAN_LOADS(at, order, TSAN_LOAD(tsan_at, order))
#define atomic_store_explicit(at, value, order) \
	TSAN_STORES(at, order, TSAN_STORE(tsan_at, value, order))
#define atomic_exchange_explicit(at, value, order) \
	TSAN_CHANGES(at, order, TSAN_EXCHANGE(tsan_at, value, order))
#define atomic_compare_exchange_weak_explicit(at, old, to, order, failure) \
	TSAN_CHANGES(at, order, TSAN_CAS_WEAK(tsan_at, old, to, order, failure))
#define atomic_compare_exchange_strong_explicit(at, old, to, order, failure) \
	TSAN_CHANGES(at, order, TSAN_CAS(tsan_at, old, to, order, failure))
#define atomic_fetch_add_explicit(at, value, order) \
	TSAN_CHANGES(at, order, TSAN_ADD(tsan_at, value, order))
#define atomic_fetch_sub_explicit(at, value, order) \
	TSAN_CHANGES(at, order, TSAN_SUB(tsan_at, value, order))
#define atomic_fetch_or_explicit(at, value, order) \
	TSAN_CHANGES(at, order, TSAN_OR(tsan_at, value, order))
#define atomic_fetch_and_explicit(at, value, order) \
	TSAN_CHANGES(at, order, TSAN_AND(tsan_at, value, order))

#endif /* TSAN_IS_BUILT_IN */

#endif /* RPMA_TSAN_STDATOMIC_H */
